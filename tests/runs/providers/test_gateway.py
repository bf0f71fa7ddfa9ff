from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Literal

import pytest

from runs.engine.types import CallStatus, PromptMessage
from runs.providers.base import Origin, ProviderReply, ProviderRequest
from runs.providers.catalog import ModelConfig
from runs.providers.gateway import Finished, Gateway, close_gateway, gateway, pause_after
from runs.providers.litellm_provider import ensure_loaded
from runs.providers.recorded import RecordedProvider, RecordedReply
from runs.providers.redis_limits import RedisLimiter
from tests.stub_server import FAULTS, REPOSITORY, StubServer, due_fault


@pytest.fixture
def loop() -> Iterator[Gateway]:
    made = Gateway()
    yield made
    made.close()


def config(stub: StubServer, fault: str = "", **changes: Any) -> ModelConfig:
    model = f"stub@{fault}" if fault else "stub"
    base = ModelConfig(
        name=model, path="openai_compatible", base_url=stub.base_url, upstream_name=model
    )
    return replace(base, **changes)


def request(text: str = "What is 6 x 7?", timeout_seconds: float = 10.0) -> ProviderRequest:
    return ProviderRequest("slot", (PromptMessage("user", text),), 64, timeout_seconds)


def take(results: SimpleQueue[Finished], count: int) -> dict[object, ProviderReply]:
    """Return exactly ``count`` replies by token; one too many or too few fails."""
    got = [results.get(timeout=20) for _ in range(count)]
    with pytest.raises(Empty):
        results.get(timeout=0.02)
    by_token = {finished.token: finished.reply for finished in got}
    assert len(by_token) == count
    return by_token


def test_every_call_from_any_thread_is_answered_once(
    loop: Gateway, stub_server: StubServer
) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()

    def work(k: int) -> None:
        for i in range(10):
            loop.submit(
                config(stub_server), request(f"{k}-{i}"), token=(k, i), results=results, api_key="k"
            )

    threads = [threading.Thread(target=work, args=(k,)) for k in range(5)]
    for thread in threads:
        thread.start()
    replies = take(results, 50)
    for thread in threads:
        thread.join()
    assert all(reply.status is CallStatus.SUCCEEDED for reply in replies.values())
    stats = stub_server.stats()
    assert (stats["received"], set(stats["prompts"].values())) == (50, {1})
    assert stats["authorizations"] == {"Bearer k": 50}


def test_concurrency_of_a_model_is_bounded(loop: Gateway, stub_server: StubServer) -> None:
    stub_server.configure(latency_seconds=0.05)
    results: SimpleQueue[Finished] = SimpleQueue()
    for k in range(20):
        loop.submit(
            config(stub_server, max_concurrency=4), request(str(k)), token=k, results=results
        )
    replies = take(results, 20)
    assert stub_server.stats()["peak_in_flight"] == 4
    assert max(reply.queued_seconds for reply in replies.values()) > 0.15
    assert max(reply.latency_seconds for reply in replies.values()) < 0.15


def test_the_time_out_counts_from_the_slot_not_from_the_line(
    loop: Gateway, stub_server: StubServer
) -> None:
    stub_server.configure(latency_seconds=0.2)
    results: SimpleQueue[Finished] = SimpleQueue()
    for k in range(4):
        one = config(stub_server, max_concurrency=1)
        loop.submit(one, request(str(k), timeout_seconds=0.5), token=k, results=results)
    replies = take(results, 4)
    assert {reply.status for reply in replies.values()} == {CallStatus.SUCCEEDED}


def test_a_call_can_be_cancelled_in_line_and_in_flight(
    loop: Gateway, stub_server: StubServer
) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    slow = config(stub_server, "never", max_concurrency=1)
    flying = loop.submit(slow, request(), token="flying", results=results)
    in_line = loop.submit(slow, request(), token="line", results=results)
    while stub_server.stats()["received"] == 0:
        time.sleep(0.01)
    in_line.cancel()
    flying.cancel()
    flying.cancel()
    replies = take(results, 2)
    assert {reply.status for reply in replies.values()} == {CallStatus.CANCELLED}
    assert replies["flying"].billed == "maybe"
    assert replies["line"].billed == "no"
    assert stub_server.stats()["received"] == 1


def test_a_call_cancelled_before_its_first_step_is_answered_too(
    loop: Gateway, stub_server: StubServer
) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    for k in range(20):
        loop._loop.call_soon_threadsafe(time.sleep, 0.005)  # Start and cancel come together.
        loop.submit(config(stub_server), request(), token=k, results=results).cancel()
    replies = take(results, 20)
    assert {(reply.status, reply.billed) for reply in replies.values()} == {
        (CallStatus.CANCELLED, "no")
    }
    assert stub_server.stats()["received"] == 0


def test_cancelling_a_call_that_has_ended_does_nothing(
    loop: Gateway, stub_server: StubServer
) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    handle = loop.submit(config(stub_server), request(), token=1, results=results)
    assert take(results, 1)[1].status is CallStatus.SUCCEEDED
    handle.cancel()
    with pytest.raises(Empty):
        results.get(timeout=0.05)


def test_retry_after_pauses_the_model_for_all(loop: Gateway, stub_server: StubServer) -> None:
    stub_server.configure(retry_after_seconds=0.4)
    results: SimpleQueue[Finished] = SimpleQueue()
    limited = config(stub_server, "http_429")
    loop.submit(limited, request(), token=0, results=results)
    assert take(results, 1)[0].retry_after_seconds == pytest.approx(0.4)
    loop.submit(limited, request(), token=1, results=results)
    assert take(results, 1)[1].queued_seconds > 0.25


def test_a_429_without_a_time_pauses_briefly() -> None:
    reply = ProviderReply(CallStatus.FAILED, error_class="rate_limited")
    assert pause_after(reply) == 1.0
    assert pause_after(replace(reply, retry_after_seconds=0.0)) == 0.0
    assert pause_after(ProviderReply(CallStatus.SUCCEEDED)) == 0.0


def test_a_call_waits_until_it_may_start(loop: Gateway, stub_server: StubServer) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    started = time.monotonic()
    loop.submit(config(stub_server), request(), token=1, results=results, not_before_seconds=0.3)
    take(results, 1)
    assert time.monotonic() - started >= 0.3


def test_the_request_goes_out_as_the_model_takes_it(loop: Gateway, stub_server: StubServer) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    asked = replace(
        request(), seed=3, response_schema={"type": "object"}, origin=Origin(reference=("secret",))
    )
    loop.submit(config(stub_server), asked, token=1, results=results)
    take(results, 1)
    body = stub_server.stats()["last_body"]
    assert body["model"] == "stub"
    assert set(body) == {"model", "messages", "max_tokens"}
    assert "secret" not in str(body)


def test_simulated_and_recorded_models_answer_without_a_network(loop: Gateway) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    simulated = ModelConfig("s", "simulated", upstream_name="simulated:accuracy=1")
    log = ModelConfig("r", "recorded", upstream_name="log")
    origin = Origin(question_hash="q", reference=("4",), agent_id="a")
    asked = replace(request(), origin=origin)
    provider = RecordedProvider({("q", "a", 0): RecordedReply("Final answer: 5")})
    loop.submit(simulated, asked, token="s", results=results)
    loop.submit(log, asked, token="r", results=results, provider=provider)
    loop.submit(log, asked, token="none", results=results)
    replies = take(results, 3)
    assert replies["s"].raw.endswith(b"Final answer: 4")
    assert replies["s"].simulated
    assert replies["r"].raw == b"Final answer: 5"
    assert (replies["none"].status, replies["none"].error_class) == (
        CallStatus.FAILED,
        "internal_error",
    )


def test_a_base_url_that_is_none_ends_the_call_and_not_the_gateway(
    loop: Gateway, stub_server: StubServer
) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    broken = ModelConfig("m", "openai_compatible", base_url="http://[oops", upstream_name="m")
    loop.submit(broken, request(), token=1, results=results)
    loop.submit(config(stub_server), request(), token=2, results=results)
    replies = take(results, 2)
    assert replies[1].status is CallStatus.FAILED
    assert replies[2].status is CallStatus.SUCCEEDED


def test_closing_delivers_what_is_in_flight(stub_server: StubServer) -> None:
    results: SimpleQueue[Finished] = SimpleQueue()
    made = Gateway()
    made.submit(config(stub_server, "never"), request(), token=1, results=results)
    time.sleep(0.2)
    made.close()
    made.close()
    assert take(results, 1)[1].status is CallStatus.CANCELLED
    with pytest.raises(RuntimeError):
        made.submit(config(stub_server), request(), token=2, results=results)


def test_two_gateways_share_a_limit_through_redis(redis_url: str, stub_server: StubServer) -> None:
    stub_server.configure(latency_seconds=0.03)
    results: SimpleQueue[Finished] = SimpleQueue()
    pair = [Gateway(lambda: RedisLimiter(redis_url)) for _ in range(2)]
    for k in range(60):
        model = config(stub_server, max_concurrency=6)
        pair[k % 2].submit(model, request(str(k)), token=k, results=results)
    replies = take(results, 60)
    for made in pair:
        made.close()
    assert {reply.status for reply in replies.values()} == {CallStatus.SUCCEEDED}
    assert stub_server.stats()["peak_in_flight"] <= 6


@pytest.mark.parametrize("path", ["openai_compatible", "litellm"])
def test_with_faults_of_every_kind_nothing_is_lost_or_doubled(
    path: Literal["openai_compatible", "litellm"], loop: Gateway, stub_server: StubServer
) -> None:
    if path == "litellm":
        ensure_loaded()
    upstream = "openai/stub" if path == "litellm" else "stub"
    stub_server.configure(fault_share=0.5, late_seconds=0.1, retry_after_seconds=0.01)
    results: SimpleQueue[Finished] = SimpleQueue()
    total = 4 * len(FAULTS)
    for k in range(total):
        model = config(stub_server, path=path, upstream_name=upstream)
        asked = request(str(k), timeout_seconds=1.5)
        loop.submit(model, asked, token=k, results=results, api_key="key")
    replies = take(results, total)
    stats = stub_server.stats()
    assert stats["received"] == total
    assert set(stats["prompts"].values()) == {1}
    assert stats["faults"] == dict.fromkeys(FAULTS, 2)
    # What the server counts as billed is never recorded as free.
    free = sum(reply.billed == "no" for reply in replies.values())
    assert free <= total - stats["billed"]


def test_faults_are_dealt_out_evenly() -> None:
    dealt = [due_fault(n, 0.1) for n in range(1, 10 * 2 * len(FAULTS) + 1)]
    assert {kind: dealt.count(kind) for kind in FAULTS} == dict.fromkeys(FAULTS, 2)
    assert len([kind for kind in dealt if kind]) == 2 * len(FAULTS)


def test_a_process_has_one_gateway() -> None:
    first = gateway()
    try:
        assert gateway() is first
        with pytest.raises(ValueError, match="another Redis"):
            gateway("redis://elsewhere")
    finally:
        close_gateway()
    assert gateway() is not first
    close_gateway()


FORKING = """
import os, sys
from queue import SimpleQueue
from runs.providers.base import ProviderRequest
from runs.providers.catalog import ModelConfig
from runs.providers.gateway import gateway

def ask():
    results = SimpleQueue()
    model = ModelConfig("s", "simulated", upstream_name="simulated:")
    gateway().submit(model, ProviderRequest("s", (), 9, 1.0), token=1, results=results)
    return results.get(timeout=5).reply.simulated

assert ask()
parents = gateway()
child = os.fork()
if child == 0:
    os._exit(0 if ask() and gateway() is not parents else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_child_makes_a_gateway_of_its_own() -> None:
    program = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    subprocess.run(program, check=True, timeout=30, cwd=REPOSITORY)
