"""
A model's limits shared by all processes through Redis or Valkey.

Each process holds a number of slots under a lease. One script exchanges: it renews the lease,
returns what is not needed, asks for more and learns of a pause. A slot that is freed goes to the
next in line here without a round trip, as long as nobody else waits or the process holds no more
than its share (what is left for it when all that wait get as much); it learns of both at least
every ``HEARTBEAT_SECONDS``. A process that dies stops renewing, and its slots are free after
``LEASE_SECONDS``.

While Redis can't be reached, slots already held go on being used and no new ones are granted.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import uuid
from dataclasses import dataclass, field
from typing import Any, cast

from redis.asyncio import BlockingConnectionPool, Redis
from redis.exceptions import RedisError

from runs.providers.limits import BURST_SECONDS, MAX_PAUSE_SECONDS, ModelLimits, SlotPool, rates

logger = logging.getLogger(__name__)

LEASE_SECONDS = 6.0
HEARTBEAT_SECONDS = 0.5

#: Between two asks while calls wait and no slot was free, with jitter on top.
POLL_SECONDS = 0.03

#: A slot that nobody here wants is kept so long: the next round often comes at once.
LINGER_SECONDS = 0.25

_KEY_PREFIX = "debateweb:limits:"

# KEYS: lease expiries (sorted set), held and wanted by process (hashes), pause.
# ARGV: process, slots kept, slots wanted besides, concurrency, lease in ms, 0 to ask for nothing
# this time (a process that gave a slot back because others wait must not be the first to ask).
# Times are the server's own, so that the clocks of processes do not matter.
_EXCHANGE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local me, kept, wanted = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local concurrency, lease = tonumber(ARGV[4]), tonumber(ARGV[5])
for _, dead in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
  redis.call('ZREM', KEYS[1], dead)
  redis.call('HDEL', KEYS[2], dead)
  redis.call('HDEL', KEYS[3], dead)
end
local others_held, satisfied, contenders, least = 0, 0, 1, concurrency
local held = redis.call('HGETALL', KEYS[2])
for i = 1, #held, 2 do
  if held[i] ~= me then
    local count = tonumber(held[i + 1])
    others_held = others_held + count
    if tonumber(redis.call('HGET', KEYS[3], held[i]) or '0') > 0 then
      contenders = contenders + 1
      least = math.min(least, count)
    else
      satisfied = satisfied + count
    end
  end
end
local allowed = concurrency
if contenders > 1 then
  local share = math.max(0, concurrency - satisfied) / contenders
  allowed = math.ceil(share)
  if least < math.max(1, math.floor(share)) then allowed = math.floor(share) end
end
local grant = math.min(wanted, concurrency - others_held - kept, math.max(1, allowed) - kept)
local pause = math.max(0, redis.call('PTTL', KEYS[4]))
if grant < 0 or pause > 0 or ARGV[6] == '0' then grant = 0 end
if kept + wanted == 0 then
  redis.call('ZREM', KEYS[1], me)
  redis.call('HDEL', KEYS[2], me)
  redis.call('HDEL', KEYS[3], me)
else
  redis.call('ZADD', KEYS[1], now + lease, me)
  redis.call('HSET', KEYS[2], me, kept + grant)
  redis.call('HSET', KEYS[3], me, wanted - grant)
  for i = 1, 3 do redis.call('PEXPIRE', KEYS[i], 10 * lease) end
end
return {grant, allowed, pause}
"""

# KEYS: one time a rate. ARGV: microseconds that this call uses of each, burst in microseconds.
_BOOK = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local burst, wait = tonumber(ARGV[#ARGV]), 0
for i, key in ipairs(KEYS) do
  local used = tonumber(ARGV[i])
  local due = math.max(tonumber(redis.call('GET', key) or '0'), now) + used
  redis.call('SET', key, string.format('%.0f', due), 'PX', math.ceil((due - now) / 1000) + 1000)
  wait = math.max(wait, due - math.max(burst, used) - now)
end
return math.ceil(wait)
"""


@dataclass(slots=True)
class _Shared:
    """One model as this process sees it."""

    model: str
    limits: ModelLimits
    pool: SlotPool = field(default_factory=SlotPool)
    allowed: int = 0
    yielded: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    keeper: asyncio.Task[None] | None = None
    linger: asyncio.TimerHandle | None = None

    @property
    def keys(self) -> list[str]:
        base = f"{_KEY_PREFIX}{{{self.model}}}:"  # One hash slot in a cluster.
        return [base + part for part in ("leases", "held", "wanted", "pause")]


class RedisLimiter:
    """Limits shared by every process that names the same Redis. Used on one event loop."""

    def __init__(self, url: str) -> None:
        pool = BlockingConnectionPool.from_url(
            url, max_connections=16, timeout=5.0, socket_timeout=5.0, socket_connect_timeout=5.0
        )
        self._redis: Redis = Redis.from_pool(pool)
        self._exchange_script = self._redis.register_script(_EXCHANGE)
        self._book_script = self._redis.register_script(_BOOK)
        self._process = uuid.uuid4().hex
        self._models: dict[str, _Shared] = {}
        self._redis_is_away = False

    async def acquire(self, model: str, limits: ModelLimits, tokens: int) -> None:
        shared = self._shared(model, limits)
        if not shared.pool.try_take():
            self._keep(shared)
            await shared.pool.take()
        if limits.rated:
            try:
                await asyncio.sleep(await self._book(shared, tokens))
            except asyncio.CancelledError:
                self._freed(shared)
                raise

    def _shared(self, model: str, limits: ModelLimits) -> _Shared:
        shared = self._models.get(model)
        if shared is None:
            shared = self._models[model] = _Shared(model, limits)
        shared.limits = limits
        return shared

    def release(self, model: str) -> None:
        self._freed(self._models[model])

    def _freed(self, shared: _Shared) -> None:
        pool = shared.pool
        if pool.held > shared.allowed:
            pool.held -= 1  # Others wait: it goes back with the next exchange.
            shared.yielded = True
            shared.changed.set()
        pool.give_back()
        if pool.idle and shared.linger is None:
            loop = asyncio.get_running_loop()
            shared.linger = loop.call_later(LINGER_SECONDS, self._stop_lingering, shared)

    @staticmethod
    def _stop_lingering(shared: _Shared) -> None:
        shared.linger = None
        shared.changed.set()

    async def pause(self, model: str, seconds: float) -> None:
        shared = self._models.get(model)
        if shared is None or seconds <= 0:
            return
        shared.pool.pause(seconds)
        milliseconds = max(1, int(min(seconds, MAX_PAUSE_SECONDS) * 1000))
        try:
            # A shorter pause must not cut a longer one.
            if await self._redis.pttl(shared.keys[3]) < milliseconds:
                await self._redis.set(shared.keys[3], "1", px=milliseconds)
        except RedisError as exc:
            self._note_failure(exc)

    def _keep(self, shared: _Shared) -> None:
        """Have the model's keeper ask for a slot."""
        shared.changed.set()
        if shared.keeper is None or shared.keeper.done():
            shared.keeper = asyncio.get_running_loop().create_task(self._keep_lease(shared))

    async def _keep_lease(self, shared: _Shared) -> None:
        """Exchange with Redis until this process holds nothing and wants nothing."""
        while True:
            shared.changed.clear()
            denied = not await self._exchange(shared, kept=self._kept(shared))
            pool = shared.pool
            if pool.held == 0 and pool.waiting == 0:
                return
            await self._wait_for_change(shared, denied)

    @staticmethod
    def _kept(shared: _Shared) -> int:
        """Return how many slots to go on holding: the idle ones go back."""
        pool = shared.pool
        if pool.waiting == 0:
            pool.held = pool.busy
        return pool.held

    async def _wait_for_change(self, shared: _Shared, denied: bool) -> None:
        pool = shared.pool
        if pool.waiting and pool.pause_seconds > 0.0:
            await asyncio.sleep(min(pool.pause_seconds, HEARTBEAT_SECONDS))
            return
        if denied and pool.held < shared.limits.concurrency:
            # Others hold what is wanted here; whoever asks at random moments gets its turn.
            await asyncio.sleep(POLL_SECONDS * (1.0 + random.random()))  # noqa: S311 - jitter
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await shared.changed.wait()

    async def _exchange(self, shared: _Shared, kept: int) -> bool:
        """Renew ``kept`` slots, ask for those that are wanted; return whether all were given."""
        wanted = max(0, shared.pool.waiting - (kept - shared.pool.busy))
        asks = 0 if shared.yielded else 1
        shared.yielded = False
        lease_ms = int(LEASE_SECONDS * 1000)
        arguments: list[str | int] = [self._process, kept, wanted]
        arguments += [shared.limits.concurrency, lease_ms, asks]
        try:
            answer = await self._exchange_script(keys=shared.keys, args=arguments)
        except RedisError as exc:
            self._note_failure(exc)
            await asyncio.sleep(POLL_SECONDS * 10)
            return False
        self._redis_is_away = False
        grant, shared.allowed, pause_ms = cast(list[int], answer)
        if pause_ms > 0:
            shared.pool.pause(pause_ms / 1000)
        shared.pool.held += grant
        shared.pool.serve()
        return grant == wanted

    async def _book(self, shared: _Shared, tokens: int) -> float:
        """Return the seconds to wait for the model's rates."""
        booked = rates(shared.limits, tokens)
        keys = [f"{_KEY_PREFIX}{{{shared.model}}}:{unit}" for unit, _, _ in booked]
        used = [amount * 60_000_000 // per_minute for _, per_minute, amount in booked]
        try:
            wait: Any = await self._book_script(keys=keys, args=[*used, int(BURST_SECONDS * 1e6)])
        except RedisError as exc:
            self._note_failure(exc)
            return max(amount * 60.0 / per_minute for _, per_minute, amount in booked)
        return int(wait) / 1e6

    def _note_failure(self, exc: RedisError) -> None:
        if not self._redis_is_away:
            logger.warning("The shared limits of models can't be reached: %s", exc)
        self._redis_is_away = True

    async def aclose(self) -> None:
        """Give every slot back and close the connections."""
        for shared in self._models.values():
            shared.pool.close()
            if shared.linger is not None:
                shared.linger.cancel()
            if shared.keeper is not None:
                shared.keeper.cancel()
                await asyncio.gather(shared.keeper, return_exceptions=True)
                shared.pool.held = 0
                with contextlib.suppress(RedisError):
                    await self._exchange_script(
                        keys=shared.keys, args=[self._process, 0, 0, 0, 0, 0]
                    )
        await self._redis.aclose()
