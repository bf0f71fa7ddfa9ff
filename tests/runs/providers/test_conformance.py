"""The two HTTP paths give the same record of the same fault."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from runs.engine.types import CallStatus, PromptMessage
from runs.providers.base import Provider, ProviderReply, ProviderRequest, Usage
from runs.providers.litellm_provider import LiteLLMProvider, ensure_loaded
from runs.providers.openai_compatible import OpenAICompatibleProvider
from tests.stub_server import FAULTS, StubServer

KEY = "test-key-123456"
SUCCEEDED, FAILED, TIMEOUT = CallStatus.SUCCEEDED, CallStatus.FAILED, CallStatus.TIMEOUT

#: fault: (status, error_class, transient, billed, finish_reason)
EXPECTED: dict[str, tuple[CallStatus, str, bool, str, str]] = {
    "": (SUCCEEDED, "", False, "yes", "stop"),
    "http_401": (FAILED, "unauthorized", False, "no", ""),
    "http_403": (FAILED, "forbidden", False, "no", ""),
    "http_404": (FAILED, "not_found", False, "no", ""),
    "http_409": (FAILED, "conflict", True, "maybe", ""),
    "http_429": (FAILED, "rate_limited", True, "no", ""),
    "http_429_date": (FAILED, "rate_limited", True, "no", ""),
    "quota": (FAILED, "insufficient_quota", False, "no", ""),
    "http_500": (FAILED, "server_error", True, "maybe", ""),
    "http_503": (FAILED, "server_error", True, "maybe", ""),
    "context_overflow": (FAILED, "context_overflow", False, "no", ""),
    "bad_request": (FAILED, "bad_request", False, "no", ""),
    "never": (TIMEOUT, "timeout", True, "maybe", ""),
    "late": (TIMEOUT, "timeout", True, "maybe", ""),
    "truncated": (FAILED, "connection_lost", True, "maybe", ""),
    "reset": (FAILED, "connection_lost", True, "maybe", ""),
    "malformed": (FAILED, "malformed_body", True, "maybe", ""),
    "deep": (FAILED, "malformed_body", True, "maybe", ""),
    "not_completion": (FAILED, "malformed_body", True, "maybe", ""),
    "html": (FAILED, "html_body", True, "maybe", ""),
    "huge": (FAILED, "body_too_large", False, "maybe", ""),
    "empty_choices": (FAILED, "empty_choices", True, "yes", ""),
    "length": (SUCCEEDED, "", False, "yes", "length"),
    "content_filter": (SUCCEEDED, "", False, "yes", "content_filter"),
    "refusal": (SUCCEEDED, "", False, "yes", "refusal"),
    "wrong_schema": (SUCCEEDED, "", False, "yes", "stop"),
    "echo": (SUCCEEDED, "", False, "yes", "stop"),
    "nul_surrogate": (SUCCEEDED, "", False, "yes", "stop"),
    "no_usage": (SUCCEEDED, "", False, "yes", "stop"),
}

Call = Callable[[str], ProviderReply]


@pytest.fixture(scope="session")
def litellm_loaded() -> None:
    ensure_loaded()


def request_for(model: str, **changes: Any) -> ProviderRequest:
    request = ProviderRequest(
        model=model,
        prompt=(PromptMessage("user", "What is 6 x 7?"),),
        max_output_tokens=64,
        timeout_seconds=10.0,
    )
    return replace(request, **changes)


def run(provider: Provider, request: ProviderRequest) -> ProviderReply:
    async def once() -> ProviderReply:
        try:
            return await provider.complete(request)
        finally:
            await provider.aclose()

    return asyncio.run(once())


class Path:
    """One HTTP path: how to reach a base URL, and what it calls a model there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def provider(self, base_url: str) -> Provider:
        if self.name == "litellm":
            return LiteLLMProvider(base_url=base_url, api_key=KEY)
        return OpenAICompatibleProvider(base_url=base_url, api_key=KEY)

    def model(self, fault: str = "") -> str:
        name = f"stub@{fault}" if fault else "stub"
        return f"openai/{name}" if self.name == "litellm" else name

    def call(self, base_url: str, fault: str = "", **changes: Any) -> ProviderReply:
        return run(self.provider(base_url), request_for(self.model(fault), **changes))


@pytest.fixture(params=["openai_compatible", "litellm"])
def path(request: pytest.FixtureRequest) -> Path:
    if request.param == "litellm":
        request.getfixturevalue("litellm_loaded")
    return Path(request.param)


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_gives_the_same_record_on_both_paths(
    path: Path, fault: str, stub_server: StubServer
) -> None:
    slow = fault in {"never", "late"}
    reply = path.call(stub_server.base_url, fault, timeout_seconds=0.5 if slow else 10.0)

    got = (reply.status, reply.error_class, reply.transient, reply.billed, reply.finish_reason)
    expected = EXPECTED[fault]
    if (path.name, fault) == ("litellm", "huge"):
        # LiteLLM has read the whole response, with its usage, by the time that it can be judged.
        expected = (FAILED, "body_too_large", False, "yes", "")
    assert got == expected
    assert stub_server.stats()["received"] == 1  # Nothing retries behind the ledger's back.
    if reply.status is not SUCCEEDED:
        assert reply.raw == b""
        assert reply.error_detail
        assert len(reply.error_detail) <= 300
        assert reply.error_detail.isprintable()


def test_every_kind_of_the_stub_has_an_expected_record() -> None:
    assert set(FAULTS) <= set(EXPECTED)


def test_usage_and_model_version_are_kept(path: Path, stub_server: StubServer) -> None:
    reply = path.call(stub_server.base_url)

    assert reply.usage == Usage(
        input_tokens=4, cached_tokens=2, output_tokens=40, reasoning_tokens=10
    )
    assert reply.model_version == "stub-2026-01-01 fp_stub"
    assert reply.raw.startswith(b"The stub thought about it.\nFinal answer: ")
    assert 0 < reply.latency_seconds < 10


def test_usage_that_was_not_reported_is_unknown(path: Path, stub_server: StubServer) -> None:
    assert path.call(stub_server.base_url, "no_usage").usage == Usage()


def test_known_usage_of_a_failed_call_is_kept(path: Path, stub_server: StubServer) -> None:
    assert path.call(stub_server.base_url, "empty_choices").usage.output_tokens == 40


def test_nul_and_lone_surrogates_arrive_as_bytes(path: Path, stub_server: StubServer) -> None:
    reply = path.call(stub_server.base_url, "nul_surrogate")

    assert reply.raw == b"a\x00b\xed\xa0\x80c\nFinal answer: 7"


def test_a_refusal_is_the_text_of_its_field(path: Path, stub_server: StubServer) -> None:
    assert path.call(stub_server.base_url, "refusal").raw == b"I cannot help with that."


def test_retry_after_is_read(path: Path, stub_server: StubServer) -> None:
    stub_server.configure(retry_after_seconds=7)

    assert path.call(stub_server.base_url, "http_429").retry_after_seconds == 7.0
    assert path.call(stub_server.base_url, "http_429_date").retry_after_seconds == 0.0
    assert path.call(stub_server.base_url, "http_500").retry_after_seconds is None


def test_an_error_never_shows_a_key(path: Path, stub_server: StubServer) -> None:
    for fault in ("secret_error", "http_401"):
        reply = path.call(stub_server.base_url, fault)

        assert KEY not in reply.error_detail
        assert "stubsecret" not in reply.error_detail
        assert "\n" not in reply.error_detail
        assert "[redacted]" in reply.error_detail


def test_a_closed_port_is_unreachable_and_free(path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    reply = path.call(f"http://127.0.0.1:{port}/v1")

    assert (reply.status, reply.error_class, reply.transient, reply.billed) == (
        FAILED,
        "unreachable",
        True,
        "no",
    )


def test_only_what_is_set_is_sent(path: Path, stub_server: StubServer) -> None:
    path.call(stub_server.base_url)

    assert stub_server.stats()["last_body"] == {
        "model": "stub",
        "messages": [{"role": "user", "content": "What is 6 x 7?"}],
        "max_tokens": 64,
    }
    assert stub_server.stats()["authorizations"] == {f"Bearer {KEY}": 1}


def test_every_setting_reaches_the_server(path: Path, stub_server: StubServer) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    reply = path.call(
        stub_server.base_url,
        temperature=0.5,
        top_p=0.9,
        stop=("END",),
        seed=3,
        response_schema=schema,
    )
    body = stub_server.stats()["last_body"]

    assert (body["temperature"], body["top_p"], body["stop"], body["seed"]) == (
        0.5,
        0.9,
        ["END"],
        3,
    )
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert reply.raw.startswith(b'{"answer": ')


def test_a_prompt_with_a_lone_surrogate_can_be_sent(path: Path, stub_server: StubServer) -> None:
    prompt = (PromptMessage("user", "half \ud800 pair"),)
    reply = path.call(stub_server.base_url, prompt=prompt)

    assert reply.status in {SUCCEEDED, FAILED}
    if path.name == "openai_compatible":
        assert reply.status is SUCCEEDED


def test_cancelling_a_call_raises_and_nothing_else(path: Path, stub_server: StubServer) -> None:
    provider = path.provider(stub_server.base_url)

    async def cancel(call: Awaitable[ProviderReply]) -> None:
        task = asyncio.ensure_future(call)
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.aclose()

    asyncio.run(cancel(provider.complete(request_for(path.model("never")))))
