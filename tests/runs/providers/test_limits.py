"""The in-memory limiter and the one shared through Valkey keep the same rules."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.providers import redis_limits
from runs.providers.limits import BURST_SECONDS, Limiter, LocalLimiter, ModelLimits, Pacer
from runs.providers.redis_limits import RedisLimiter

MakeLimiter = Callable[[], Limiter]


@pytest.fixture(params=["local", "redis"])
def make_limiter(request: pytest.FixtureRequest) -> MakeLimiter:
    if request.param == "local":
        return LocalLimiter
    url: str = request.getfixturevalue("redis_url")
    return lambda: RedisLimiter(url)


@contextlib.asynccontextmanager
async def limiters(make: MakeLimiter, count: int) -> AsyncIterator[list[Limiter]]:
    made = [make() for _ in range(count)]
    try:
        yield made
    finally:
        for limiter in made:
            await limiter.aclose()


class Meter:
    """Counts calls at once over all limiters."""

    def __init__(self) -> None:
        self.now = 0
        self.peak = 0
        self.done: list[int] = []

    async def call(
        self, limiter: Limiter, limits: ModelLimits, seconds: float, who: int = 0, model: str = "m"
    ) -> None:
        await limiter.acquire(model, limits, 10)
        self.now += 1
        self.peak = max(self.peak, self.now)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.now -= 1
            self.done.append(who)
            limiter.release(model)


def run(test: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await test

    asyncio.run(bounded())


def test_never_more_calls_at_once_than_the_limit(make_limiter: MakeLimiter) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            meter, limits = Meter(), ModelLimits(concurrency=4)
            await asyncio.gather(*(meter.call(limiter, limits, 0.01) for _ in range(40)))
            assert (meter.peak, len(meter.done)) == (4, 40)

    run(test())


def test_models_do_not_wait_for_each_other(make_limiter: MakeLimiter) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            limits = ModelLimits(concurrency=1)
            await limiter.acquire("busy", limits, 1)
            async with asyncio.timeout(2):
                await limiter.acquire("free", limits, 1)
            limiter.release("free")
            limiter.release("busy")

    run(test())


def test_the_line_is_served_in_order(make_limiter: MakeLimiter) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            meter, limits = Meter(), ModelLimits(concurrency=1)
            await asyncio.gather(*(meter.call(limiter, limits, 0.001, k) for k in range(12)))
            assert meter.done == list(range(12))

    run(test())


def test_a_cancelled_wait_takes_nothing(make_limiter: MakeLimiter) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            limits = ModelLimits(concurrency=1)
            await limiter.acquire("m", limits, 1)
            waits = [asyncio.create_task(limiter.acquire("m", limits, 1)) for _ in range(3)]
            await asyncio.sleep(0.05)
            for wait in waits:
                wait.cancel()
            limiter.release("m")
            await asyncio.gather(*waits, return_exceptions=True)
            async with asyncio.timeout(2):
                await limiter.acquire("m", limits, 1)
            limiter.release("m")

    run(test())


def test_a_wait_cancelled_in_the_instant_of_its_turn_loses_no_slot(
    make_limiter: MakeLimiter,
) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            limits = ModelLimits(concurrency=1)
            await limiter.acquire("m", limits, 1)
            wait = asyncio.create_task(limiter.acquire("m", limits, 1))
            await asyncio.sleep(0.05)
            limiter.release("m")  # Hands the slot over …
            wait.cancel()  # … to one that is cancelled before it runs.
            await asyncio.gather(wait, return_exceptions=True)
            async with asyncio.timeout(2):
                await limiter.acquire("m", limits, 1)
            limiter.release("m")

    run(test())


def test_a_pause_holds_everybody_back(make_limiter: MakeLimiter) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            loop, meter, limits = asyncio.get_running_loop(), Meter(), ModelLimits(concurrency=4)
            await meter.call(limiter, limits, 0.0)
            started = loop.time()
            await limiter.pause("m", 0.4)
            await limiter.pause("m", 0.1)  # Does not shorten the first.
            await asyncio.gather(*(meter.call(limiter, limits, 0.0) for _ in range(3)))
            assert 0.38 <= loop.time() - started < 3.0

    run(test())


def test_requests_beyond_the_rate_wait(make_limiter: MakeLimiter) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            # 600 a minute with a burst of 10 s: 100 at once, then one each 0.1 s.
            loop, meter = asyncio.get_running_loop(), Meter()
            limits = ModelLimits(concurrency=200, requests_per_minute=600)
            started = loop.time()
            await asyncio.gather(*(meter.call(limiter, limits, 0.0) for _ in range(100)))
            assert loop.time() - started < 2.0
            await asyncio.gather(*(meter.call(limiter, limits, 0.0) for _ in range(5)))
            assert 0.2 <= loop.time() - started < 5.0

    run(test())


def test_tokens_beyond_the_rate_wait(make_limiter: MakeLimiter) -> None:
    async def test() -> None:
        async with limiters(make_limiter, 1) as (limiter,):
            loop = asyncio.get_running_loop()
            limits = ModelLimits(concurrency=9, tokens_per_minute=6000)
            started = loop.time()
            await limiter.acquire("m", limits, 2000)  # More than the burst: passes when idle.
            assert loop.time() - started < 1.0
            waiting = asyncio.create_task(limiter.acquire("m", limits, 10))
            await asyncio.sleep(0.3)
            assert not waiting.done()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            limiter.release("m")

    run(test())


@given(st.lists(st.floats(0, 30), min_size=1, max_size=40), st.integers(1, 600))
def test_a_pacer_never_lets_more_pass_than_burst_and_rate(
    gaps: list[float], per_minute: int
) -> None:
    pacer, now, passed = Pacer(per_minute), 0.0, []
    for gap in gaps:
        now += gap
        passed.append(now + pacer.book(1, now))
    interval = 60.0 / per_minute
    for i, first in enumerate(passed):
        for j in range(i, len(passed)):
            allowed = (passed[j] - first) / interval + max(BURST_SECONDS / interval, 1.0) + 1e-6
            assert j - i + 1 <= allowed + 1


def test_processes_share_one_limit(redis_url: str) -> None:
    async def test() -> None:
        async with limiters(lambda: RedisLimiter(redis_url), 3) as group:
            meter, limits = Meter(), ModelLimits(concurrency=5)
            await asyncio.gather(
                *(meter.call(group[k % 3], limits, 0.02, k % 3) for k in range(90))
            )
            assert meter.peak <= 5
            assert [meter.done.count(who) for who in range(3)] == [30, 30, 30]

    run(test())


def test_a_busy_process_does_not_starve_a_newcomer(redis_url: str) -> None:
    async def test() -> None:
        async with limiters(lambda: RedisLimiter(redis_url), 2) as (busy, newcomer):
            meter, limits = Meter(), ModelLimits(concurrency=2)
            crowd = [asyncio.create_task(meter.call(busy, limits, 0.05)) for _ in range(200)]
            await asyncio.sleep(0.2)
            async with asyncio.timeout(3):  # The crowd needs 5 s.
                await meter.call(newcomer, limits, 0.0, 1)
            assert meter.peak == 2
            for task in crowd:
                task.cancel()
            await asyncio.gather(*crowd, return_exceptions=True)

    run(test())


def test_one_slot_goes_round_among_many_processes(redis_url: str) -> None:
    async def test() -> None:
        async with limiters(lambda: RedisLimiter(redis_url), 3) as group:
            meter, limits = Meter(), ModelLimits(concurrency=1)
            await asyncio.gather(
                *(meter.call(group[k % 3], limits, 0.005, k % 3) for k in range(9))
            )
            assert (meter.peak, len(meter.done)) == (1, 9)

    run(test())


def test_slots_of_a_dead_process_come_back(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_limits, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(redis_limits, "HEARTBEAT_SECONDS", 0.1)

    async def test() -> None:
        limits = ModelLimits(concurrency=2)
        async with limiters(lambda: RedisLimiter(redis_url), 2) as (dead, alive):
            assert isinstance(dead, RedisLimiter)
            await dead.acquire("m", limits, 1)
            await dead.acquire("m", limits, 1)
            keeper = dead._models["m"].keeper
            assert keeper is not None
            keeper.cancel()  # As if the process had been killed: nothing renews or returns.
            loop = asyncio.get_running_loop()
            started = loop.time()
            await alive.acquire("m", limits, 1)
            assert 0.2 < loop.time() - started < 3.0
            alive.release("m")

    run(test())


def test_a_slot_that_is_used_for_long_is_renewed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_limits, "LEASE_SECONDS", 0.4)
    monkeypatch.setattr(redis_limits, "HEARTBEAT_SECONDS", 0.1)

    async def test() -> None:
        async with limiters(lambda: RedisLimiter(redis_url), 2) as (first, second):
            meter, limits = Meter(), ModelLimits(concurrency=1)
            await asyncio.gather(meter.call(first, limits, 1.2), meter.call(second, limits, 0.0, 1))
            assert meter.peak == 1

    run(test())


def test_a_pause_reaches_other_processes(redis_url: str) -> None:
    async def test() -> None:
        async with limiters(lambda: RedisLimiter(redis_url), 2) as (told, other):
            loop, meter, limits = asyncio.get_running_loop(), Meter(), ModelLimits(concurrency=4)
            await meter.call(told, limits, 0.0)
            await told.pause("m", 0.5)
            started = loop.time()
            await meter.call(other, limits, 0.0)
            assert 0.4 <= loop.time() - started < 3.0

    run(test())


def test_without_redis_calls_wait_and_nothing_breaks(tmp_path: object) -> None:
    async def test() -> None:
        limiter = RedisLimiter("unix:///nowhere/at/all")
        wait = asyncio.create_task(limiter.acquire("m", ModelLimits(concurrency=1), 1))
        await asyncio.sleep(0.3)
        assert not wait.done()
        wait.cancel()
        await asyncio.gather(wait, return_exceptions=True)
        await limiter.aclose()

    run(test())
