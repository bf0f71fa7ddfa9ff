"""
What a call costs on each path: CPU of this process and wall time against the ideal.

Run ``python -m tests.load.providers_bench``. The stub server runs in a process of its own; every
path makes the same calls in the same run, so the ratios hold although the figures are noisy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

import aiohttp

from runs.engine.types import CallStatus, PromptMessage
from runs.providers.base import ProviderRequest
from runs.providers.catalog import ModelConfig
from runs.providers.gateway import Finished, Gateway
from runs.providers.limits import LocalLimiter
from runs.providers.litellm_provider import ensure_loaded
from runs.providers.redis_limits import RedisLimiter
from tests.stub_server import StubServer


@dataclass(frozen=True)
class Load:
    calls: int
    latency_seconds: float
    cap: int

    @property
    def ideal_seconds(self) -> float:
        return self.calls * self.latency_seconds / self.cap

    def prompt(self, k: int) -> str:
        return f"Question {k}: what is {k} x 7? " + "Think step by step. " * 40


@dataclass(frozen=True)
class Measured:
    path: str
    wall_seconds: float
    cpu_ms_per_call: float


def measure(path: str, load: Load, stub: StubServer, work: Callable[[], int]) -> Measured:
    """Run ``work``, which returns how many calls succeeded, and count what the server saw."""
    stub.configure(latency_seconds=load.latency_seconds)
    cpu, wall = time.process_time(), time.perf_counter()
    succeeded = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    received = stub.stats()["received"]
    if not succeeded == received == load.calls:
        raise SystemExit(f"{path}: {succeeded} of {load.calls} succeeded, {received} received")
    return Measured(path, wall, cpu * 1000 / load.calls)


def at_most(load: Load, call: Callable[[int], Awaitable[bool]]) -> int:
    """Make all calls, ``cap`` at once; return how many succeeded."""

    async def work() -> int:
        slots = asyncio.Semaphore(load.cap)

        async def one(k: int) -> bool:
            async with slots:
                return await call(k)

        return sum(await asyncio.gather(*(one(k) for k in range(load.calls))))

    return asyncio.run(work())


def bare_aiohttp(load: Load, base_url: str) -> int:
    async def work() -> int:
        slots = asyncio.Semaphore(load.cap)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def one(k: int) -> bool:
                body = {
                    "model": "stub",
                    "messages": [{"role": "user", "content": load.prompt(k)}],
                    "max_tokens": 64,
                }
                url = f"{base_url}/chat/completions"
                async with slots, session.post(url, json=body) as response:
                    return bool(json.loads(await response.read())["choices"])

            return sum(await asyncio.gather(*(one(k) for k in range(load.calls))))

    return asyncio.run(work())


def bare_litellm(load: Load, base_url: str) -> int:
    litellm = ensure_loaded()

    async def one(k: int) -> bool:
        response = await litellm.acompletion(
            model="openai/stub",
            messages=[{"role": "user", "content": load.prompt(k)}],
            max_tokens=64,
            api_base=base_url,
            api_key="key",
            num_retries=0,
            max_retries=0,
        )
        return bool(response.choices)

    return at_most(load, one)


def through_gateway(load: Load, gateway: Gateway, config: ModelConfig) -> int:
    results: SimpleQueue[Finished] = SimpleQueue()
    for k in range(load.calls):
        request = ProviderRequest("slot", (PromptMessage("user", load.prompt(k)),), 64, 30.0)
        gateway.submit(config, request, token=k, results=results, api_key="key")
    replies = [results.get(timeout=120).reply for _ in range(load.calls)]
    return sum(reply.status is CallStatus.SUCCEEDED for reply in replies)


def run(load: Load, stub: StubServer, redis_url: str | None) -> list[Measured]:
    ensure_loaded()
    thin = ModelConfig(
        "stub",
        "openai_compatible",
        base_url=stub.base_url,
        upstream_name="stub",
        max_concurrency=load.cap,
    )
    wide = ModelConfig(
        "wide",
        "litellm",
        base_url=stub.base_url,
        upstream_name="openai/stub",
        max_concurrency=load.cap,
    )
    gateway = Gateway(LocalLimiter if redis_url is None else lambda: RedisLimiter(redis_url))
    warm = Load(load.cap, 0.05, load.cap)
    for config in (thin, wide):
        measure("warm-up", warm, stub, partial(through_gateway, warm, gateway, config))
    measured = [
        measure("aiohttp, bare", load, stub, lambda: bare_aiohttp(load, stub.base_url)),
        measure("openai_compatible", load, stub, lambda: through_gateway(load, gateway, thin)),
        measure("LiteLLM, bare", load, stub, lambda: bare_litellm(load, stub.base_url)),
        measure("litellm", load, stub, lambda: through_gateway(load, gateway, wide)),
    ]
    gateway.close()
    return measured


def report(load: Load, measured: list[Measured]) -> None:
    print(f"{load.calls} calls, {load.latency_seconds} s, {load.cap} at once")
    print(f"{'path':<20} {'wall s':>7} {'x ideal':>8} {'x bare':>7} {'CPU ms a call':>14}")
    for bare, ours in (measured[0:2], measured[2:4]):
        for row in (bare, ours):
            print(
                f"{row.path:<20} {row.wall_seconds:7.2f}"
                f" {row.wall_seconds / load.ideal_seconds:8.2f}"
                f" {row.wall_seconds / bare.wall_seconds:7.2f} {row.cpu_ms_per_call:14.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what a call costs on each path.")
    parser.add_argument("--calls", type=int, default=900)
    parser.add_argument("--latency", type=float, default=0.3, help="seconds")
    parser.add_argument("--cap", type=int, default=64, help="calls at once")
    parser.add_argument("--redis-url", help="share limits through this server, as workers do")
    options = parser.parse_args()
    load = Load(options.calls, options.latency, options.cap)
    with StubServer.running() as stub:
        report(load, run(load, stub, options.redis_url))


if __name__ == "__main__":
    main()
