"""
All model calls of a process through one event loop in a thread of its own.

Threads hand in calls and get each reply once, through a queue of their own. Connections are
shared, the limits of a model are shared by all processes (limits.py, redis_limits.py), and the
clock of a call's time-out starts when the call has its slot. No ORM runs here: what is slow here
delays every call of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import NamedTuple

from runs.providers import endings
from runs.providers.base import Provider, ProviderReply, ProviderRequest
from runs.providers.catalog import ModelConfig, adapted
from runs.providers.endings import failed
from runs.providers.limits import Limiter, LocalLimiter, ModelLimits
from runs.providers.litellm_provider import LiteLLMProvider
from runs.providers.openai_compatible import Connections, OpenAICompatibleProvider, describe
from runs.providers.redis_limits import RedisLimiter
from runs.providers.simulated import SimulatedProvider, parse_spec

#: A model is left alone for so long after a 429 that names no time.
PAUSE_WITHOUT_RETRY_AFTER_SECONDS = 1.0

#: UTF-8 bytes of a prompt that count as one token for the rates of a model.
BYTES_PER_TOKEN = 4

_CLOSE_SECONDS = 5.0


class Finished(NamedTuple):
    """What arrives in a results queue: the token of the call, and how it ended."""

    token: object
    reply: ProviderReply


Results = SimpleQueue[Finished]


@dataclass(slots=True, eq=False)
class _Call:
    config: ModelConfig
    request: ProviderRequest
    token: object
    results: Results
    api_key: str
    not_before_seconds: float
    provider: Provider | None
    sent: bool = False
    task: asyncio.Task[ProviderReply] | None = None
    cancelled: bool = False


class Handle:
    """A call on its way."""

    def __init__(self, gateway: Gateway, call: _Call) -> None:
        self._gateway = gateway
        self._call = call

    @property
    def is_sent(self) -> bool:
        """Tell whether the call has its slot: from then on its provider may be doing work."""
        return self._call.sent

    def cancel(self) -> None:
        """
        Stop the call if it has not ended. Its reply still arrives, once: CANCELLED, or whatever
        it had ended with before.
        """
        self._gateway.cancel_soon(self._call)


class Gateway:
    """The event loop of a process. Thread-safe; ``close`` it, or let it end with the process."""

    def __init__(self, make_limiter: Callable[[], Limiter] = LocalLimiter) -> None:
        """``make_limiter`` is called on the loop."""
        self._make_limiter = make_limiter
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._closed = False
        self._providers: dict[tuple[str, ...], Provider] = {}
        self._calls: set[_Call] = set()
        self._thread = threading.Thread(target=self._run, name="model-gateway", daemon=True)
        self._thread.start()
        self._started.wait()

    def submit(
        self,
        config: ModelConfig,
        request: ProviderRequest,
        *,
        token: object,
        results: Results,
        api_key: str = "",
        not_before_seconds: float = 0.0,
        provider: Provider | None = None,
    ) -> Handle:
        """
        Start a call and return at once; ``Finished(token, reply)`` arrives in ``results`` once.

        ``not_before_seconds`` from now the call takes its place in the model's line.
        ``provider`` is used as it is where given (recorded models); others are made from
        ``config`` and kept. Raises RuntimeError after ``close``.
        """
        if self._closed:
            raise RuntimeError("the gateway is closed")
        call = _Call(config, request, token, results, api_key, not_before_seconds, provider)
        self._loop.call_soon_threadsafe(self._start, call)
        return Handle(self, call)

    def cancel_soon(self, call: _Call) -> None:
        """Cancel a call from any thread."""
        with contextlib.suppress(RuntimeError):  # The loop is closed: the call has ended.
            self._loop.call_soon_threadsafe(self._cancel, call)

    def close(self) -> None:
        """Cancel what is in flight (each reply is delivered), release all, end the thread."""
        if self._closed:
            return
        self._closed = True
        future = asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop)
        with contextlib.suppress(TimeoutError):
            future.result(_CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._limiter = self._make_limiter()
        self._connections = Connections()
        self._started.set()
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _shut_down(self) -> None:
        tasks = [call.task for call in self._calls if call.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for provider in self._providers.values():
            await provider.aclose()
        await self._connections.aclose()
        await self._limiter.aclose()

    def _start(self, call: _Call) -> None:
        self._calls.add(call)
        call.task = self._loop.create_task(self._complete(call))
        # Not in the coroutine: one that is cancelled before its first step never runs.
        call.task.add_done_callback(lambda task: self._deliver(call, task))

    def _deliver(self, call: _Call, task: asyncio.Task[ProviderReply]) -> None:
        self._calls.discard(call)
        reply = _stopped(call) if task.cancelled() else task.result()
        call.results.put(Finished(call.token, reply))

    def _cancel(self, call: _Call) -> None:
        if call.task is None or call.task.done() or call.cancelled:
            return
        call.cancelled = True
        call.task.cancel()

    async def _complete(self, call: _Call) -> ProviderReply:
        """Bring one call to its end. Raises only CancelledError."""
        try:
            return await self._limited(call)
        except Exception as exc:  # noqa: BLE001 - a call without an end would hold its round
            return failed(endings.INTERNAL, describe(exc), secrets=(call.api_key,))

    async def _limited(self, call: _Call) -> ProviderReply:
        provider = call.provider or self._provider(call.config, call.api_key)
        request = adapted(call.request, call.config)
        if call.not_before_seconds > 0:
            await asyncio.sleep(call.not_before_seconds)
        if provider.marked:  # No server stands behind it that limits would spare.
            call.sent = True
            return await provider.complete(request)
        return await self._in_a_slot(call, provider, request)

    async def _in_a_slot(
        self, call: _Call, provider: Provider, request: ProviderRequest
    ) -> ProviderReply:
        key, limits = limits_of(call.config)
        asked_at = self._loop.time()
        await self._limiter.acquire(key, limits, tokens_at_most(request) if limits.rated else 0)
        queued = self._loop.time() - asked_at
        try:
            call.sent = True
            reply = await provider.complete(request)
            if pause := pause_after(reply):
                await self._limiter.pause(key, pause)
        finally:
            self._limiter.release(key)
        return replace(reply, queued_seconds=queued)

    def _provider(self, config: ModelConfig, api_key: str) -> Provider:
        key: tuple[str, ...] = (config.path, config.base_url, api_key)
        if config.path == "simulated":
            key = (config.path, config.upstream_name)
        if key not in self._providers:
            self._providers[key] = self._made(config, api_key)
        return self._providers[key]

    def _made(self, config: ModelConfig, api_key: str) -> Provider:
        if config.path == "openai_compatible":
            return OpenAICompatibleProvider(
                base_url=config.base_url, api_key=api_key, connections=self._connections
            )
        if config.path == "litellm":
            return LiteLLMProvider(base_url=config.base_url, api_key=api_key)
        if config.path == "simulated":
            return SimulatedProvider(parse_spec(config.upstream_name))
        raise ValueError(f"a {config.path} model needs its provider handed in")


def limits_of(config: ModelConfig) -> tuple[str, ModelLimits]:
    """Return the name under which processes share a model's limits, and the limits."""
    key = f"{config.path}|{config.base_url}|{config.upstream_name}"
    limits = ModelLimits(
        config.max_concurrency, config.requests_per_minute, config.tokens_per_minute
    )
    return key, limits


def tokens_at_most(request: ProviderRequest) -> int:
    """Return about how many tokens a call may use, for the rate of a model."""
    prompt_bytes = sum(len(m.content.encode("utf-8", "replace")) for m in request.prompt)
    return prompt_bytes // BYTES_PER_TOKEN + request.max_output_tokens


def pause_after(reply: ProviderReply) -> float:
    """Return for how many seconds a reply asks that its model be left alone."""
    if reply.retry_after_seconds is not None:
        return reply.retry_after_seconds
    if reply.error_class == endings.RATE_LIMITED.error_class:
        return PAUSE_WITHOUT_RETRY_AFTER_SECONDS
    return 0.0


def _stopped(call: _Call) -> ProviderReply:
    ending = endings.CANCELLED if call.sent else endings.NEVER_SENT
    if call.provider is not None and call.provider.marked:
        ending = endings.NEVER_SENT
    return failed(ending, "the call was cancelled")


@dataclass(slots=True)
class _Current:
    """The gateway of this process; a forked child starts without one."""

    gateway: Gateway | None = None
    redis_url: str | None = None


_current = _Current()
_lock = threading.Lock()


def gateway(redis_url: str | None = None) -> Gateway:
    """
    Return the process's gateway; the first call makes it.

    With ``redis_url`` limits are shared with every process that names the same server; without
    it they hold in this process. Raises ValueError for another URL than the first.
    """
    with _lock:
        if _current.gateway is None:
            limiter: Callable[[], Limiter] = LocalLimiter
            if redis_url is not None:
                limiter = lambda: RedisLimiter(redis_url)  # noqa: E731 - made on the loop
            _current.gateway, _current.redis_url = Gateway(limiter), redis_url
        elif redis_url != _current.redis_url:
            raise ValueError("this process's gateway already uses another Redis")
        return _current.gateway


def close_gateway() -> None:
    """Close the process's gateway if there is one."""
    with _lock:
        if _current.gateway is not None:
            _current.gateway.close()
        _current.gateway = None


def _forget_in_child() -> None:
    # The loop's thread does not exist in a forked child, and its sockets are the parent's.
    global _lock  # noqa: PLW0603 - another thread may have held the old one at the fork
    _lock = threading.Lock()
    _current.gateway = None


os.register_at_fork(after_in_child=_forget_in_child)
