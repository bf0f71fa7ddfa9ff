"""
Who may call a model now: slots for concurrency, a line for rates, a pause after a 429.

A ``SlotPool`` is one model's line of waiters in this process. What may fill it differs: the
``LocalLimiter`` here grants everything at once (one process, no Redis, tests); the
``RedisLimiter`` shares the model's limits with all other processes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

#: A rate may be used up this much ahead, so that a round can start at once.
BURST_SECONDS = 10.0

#: No server may silence a model for longer, whatever its Retry-After says.
MAX_PAUSE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Limits of one model, for all processes together. ``None``: no limit."""

    concurrency: int
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    @property
    def rated(self) -> bool:
        return self.requests_per_minute is not None or self.tokens_per_minute is not None


class Limiter(Protocol):
    """Admits calls to models. Used on one event loop."""

    async def acquire(self, model: str, limits: ModelLimits, tokens: int) -> None:
        """
        Wait until the model may be called.

        ``tokens`` is what the call may use at most, for the rate. A wait that is cancelled
        takes nothing.
        """
        ...

    def release(self, model: str) -> None:
        """Give the slot back; the next in line gets it."""
        ...

    async def pause(self, model: str, seconds: float) -> None:
        """Let nobody call the model for so long."""
        ...

    async def aclose(self) -> None:
        """Give everything back."""
        ...


class SlotPool:
    """
    One model's slots in this process: ``held`` by it, ``busy`` in calls, and those who wait.

    First come, first served. ``on_release`` decides whether a freed slot stays.
    """

    def __init__(self, held: int = 0) -> None:
        self.held = held
        self.busy = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._waker: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        return sum(not future.done() for future in self._line)

    @property
    def idle(self) -> int:
        return max(0, self.held - self.busy)

    @property
    def pause_seconds(self) -> float:
        return max(0.0, self._paused_until - asyncio.get_running_loop().time())

    def try_take(self) -> bool:
        """Take a slot if one is free and nobody is before."""
        if self.busy < self.held and not self._line and self.pause_seconds == 0.0:
            self.busy += 1
            return True
        return False

    async def take(self) -> None:
        """Wait in line for a slot."""
        future = asyncio.get_running_loop().create_future()
        self._line.append(future)
        self.serve()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give_back()  # It was handed over in the same instant.
            raise

    def give_back(self) -> None:
        self.busy -= 1
        self.serve()

    def serve(self) -> None:
        """Hand free slots to those who wait."""
        if self._line and self.pause_seconds > 0.0:
            self._wake_after_pause()
            return
        while self._line and self.busy < self.held:
            future = self._line.popleft()
            if not future.done():
                self.busy += 1
                future.set_result(None)

    def pause(self, seconds: float) -> None:
        until = asyncio.get_running_loop().time() + min(seconds, MAX_PAUSE_SECONDS)
        self._paused_until = max(self._paused_until, until)

    def _wake_after_pause(self) -> None:
        if self._waker is not None:
            self._waker.cancel()
        loop = asyncio.get_running_loop()
        self._waker = loop.call_at(self._paused_until, self.serve)

    def close(self) -> None:
        if self._waker is not None:
            self._waker.cancel()


@dataclass(slots=True)
class Pacer:
    """
    A token bucket as a theoretical arrival time: units pass at ``per_minute``.

    A caller books its units at once and is told how long to wait, so that those who wait need
    not ask again and are served in order.
    """

    per_minute: int
    due_at: float = 0.0

    def book(self, units: int, now: float) -> float:
        """Return the seconds to wait before using ``units``; ``now`` is in seconds."""
        seconds = units * 60.0 / self.per_minute
        self.due_at = max(self.due_at, now) + seconds
        return max(0.0, self.due_at - max(BURST_SECONDS, seconds) - now)


@dataclass(slots=True)
class _LocalModel:
    pool: SlotPool
    pacers: dict[str, Pacer] = field(default_factory=dict)


class LocalLimiter:
    """Limits within one process: the in-memory double of the shared limiter."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._models: dict[str, _LocalModel] = {}
        self._clock = clock

    async def acquire(self, model: str, limits: ModelLimits, tokens: int) -> None:
        state = self._state(model)
        if state.pool.held != limits.concurrency:
            state.pool.held = limits.concurrency
            state.pool.serve()
        if not state.pool.try_take():
            await state.pool.take()
        if limits.rated:
            try:
                await asyncio.sleep(self._wait(state, limits, tokens))
            except asyncio.CancelledError:
                state.pool.give_back()
                raise

    def _state(self, model: str) -> _LocalModel:
        return self._models.setdefault(model, _LocalModel(SlotPool()))

    def _wait(self, state: _LocalModel, limits: ModelLimits, tokens: int) -> float:
        now = self._clock() if self._clock else asyncio.get_running_loop().time()
        wait = 0.0
        for unit, per_minute, amount in rates(limits, tokens):
            pacer = state.pacers.setdefault(unit, Pacer(per_minute))
            pacer.per_minute = per_minute
            wait = max(wait, pacer.book(amount, now))
        return wait

    def release(self, model: str) -> None:
        self._models[model].pool.give_back()

    async def pause(self, model: str, seconds: float) -> None:
        self._state(model).pool.pause(seconds)

    async def aclose(self) -> None:
        for state in self._models.values():
            state.pool.close()


def rates(limits: ModelLimits, tokens: int) -> list[tuple[str, int, int]]:
    """Return (unit, units a minute, units of this call) of each rate that is limited."""
    found = []
    if limits.requests_per_minute is not None:
        found.append(("requests", limits.requests_per_minute, 1))
    if limits.tokens_per_minute is not None:
        found.append(("tokens", limits.tokens_per_minute, tokens))
    return found
