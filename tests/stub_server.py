"""
A model server that speaks the OpenAI protocol and misbehaves on demand.

Run it by hand with ``python -m tests.stub_server --port 8099 --latency 0.3 --faults 10%``. In
tests take the fixture ``stub_server`` or ``StubServer.running()``: it lives in a process of its
own, so that its CPU time is not the client's.

A call's fault is chosen by the suffix of the model's name (``stub@http_500``) or else by a
counter: with ``--faults 10%`` every tenth call fails, each kind in turn. Answers depend on the
prompt alone.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

REPOSITORY = Path(__file__).resolve().parents[1]

#: Kinds that ``--faults`` deals out in turn, and whether the server counts them as billed: the
#: model has then done its work, whatever becomes of the answer on its way.
FAULTS: dict[str, bool] = {
    "http_429": False,
    "http_500": False,
    "http_503": False,
    "never": True,
    "truncated": True,
    "malformed": True,
    "html": False,
    "empty_choices": True,
    "refusal": True,
    "wrong_schema": True,
    "echo": True,
    "late": True,
    "length": True,
    "content_filter": True,
    "reset": True,
    "nul_surrogate": True,
}
#: Asked for by name only: they do not go away when the call is repeated.
LASTING_FAULTS: dict[str, bool] = {
    "http_401": False,
    "http_403": False,
    "http_404": False,
    "http_409": False,
    "http_429_date": False,
    "quota": False,
    "redirect": False,
    "context_overflow": False,
    "bad_request": False,
    "secret_error": False,
    "not_completion": False,
    "no_usage": True,
    "huge": True,
    "deep": True,
}


@dataclass
class Settings:
    latency_seconds: float = 0.0
    late_seconds: float = 2.0
    fault_share: float = 0.0
    retry_after_seconds: float = 1.0


@dataclass
class Stats:
    """What the server saw since the last reset. ``prompts`` counts calls by prompt digest."""

    received: int = 0
    billed: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    output_tokens: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    prompts: Counter[str] = field(default_factory=Counter)
    authorizations: Counter[str] = field(default_factory=Counter)
    last_body: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    body: dict[str, Any]
    prompt: str
    digest: str
    settings: Settings

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))


def answer_for(prompt: str, wants_json: bool) -> str:
    """Return a reply that answers the prompt's question, by a hash of the prompt."""
    number = int.from_bytes(hashlib.sha256(prompt.encode("utf-8", "replace")).digest()[:4], "big")
    letters = sorted(set(re.findall(r"^\s*\(?([A-J])[).:]", prompt, re.MULTILINE)))
    if len(letters) > 1:
        answer = letters[number % len(letters)]
    elif "yes or no" in prompt.lower():
        answer = ("yes", "no")[number % 2]
    else:
        answer = str(number % 100)
    if wants_json:
        return json.dumps({"answer": answer, "reasoning": "Stub."})
    return f"The stub thought about it.\nFinal answer: {answer}"


def completion(call: Call, text: str, **choice: Any) -> dict[str, Any]:
    """Return the body of a successful reply; ``choice`` overrides fields of the choice."""
    message = {"role": "assistant", "content": text}
    prompt_tokens = len(call.prompt) // 4 + 1
    return {
        "id": f"chatcmpl-{call.digest[:12]}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": f"{call.model}-2026-01-01",
        "system_fingerprint": "fp_stub",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"} | choice],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": 40,
            "total_tokens": prompt_tokens + 40,
            "prompt_tokens_details": {"cached_tokens": 2},
            "completion_tokens_details": {"reasoning_tokens": 10},
        },
    }


def good_reply(call: Call) -> web.Response:
    wants_json = "response_format" in call.body or '{"answer"' in call.prompt
    return web.json_response(completion(call, answer_for(call.prompt, wants_json)))


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> web.Response:
    body = {"error": {"message": message, "type": "stub_error", "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response(body, status=status, headers=named)


def _message(call: Call, **message: Any) -> web.Response:
    body = completion(call, "", message={"role": "assistant", "content": None} | message)
    return web.json_response(body)


def _empty_choices(call: Call) -> web.Response:
    return web.json_response(completion(call, "") | {"choices": []})


def _no_usage(call: Call) -> web.Response:
    body = completion(call, answer_for(call.prompt, False))
    del body["usage"]
    return web.json_response(body)


def _cut(call: Call, reason: str) -> web.Response:
    return web.json_response(completion(call, "The answer would be", finish_reason=reason))


def _nul_surrogate(call: Call) -> web.Response:
    return web.json_response(completion(call, "a\x00b\ud800c\nFinal answer: 7"))


def _raw(text: str, content_type: str = "application/json", status: int = 200) -> web.Response:
    return web.Response(text=text, content_type=content_type, status=status)


REPLIES: dict[str, Callable[[Call], web.Response]] = {
    "http_401": lambda _: error(401, "Incorrect API key provided: sk-stubsecret0123456789."),
    "http_403": lambda _: error(403, "This key may not use that model."),
    "http_404": lambda call: error(404, f"The model {call.model} does not exist."),
    "http_409": lambda _: error(409, "Another request holds the resource."),
    "http_429": lambda call: error(
        429, "Slow down.", Retry_After=f"{call.settings.retry_after_seconds:g}"
    ),
    "http_429_date": lambda _: error(
        429, "Slow down.", Retry_After="Wed, 01 Jan 2020 00:00:00 GMT"
    ),
    "quota": lambda _: error(429, "You exceeded your quota.", code="insufficient_quota"),
    "http_500": lambda _: error(500, "The server had an error."),
    "http_503": lambda _: error(503, "Overloaded."),
    "redirect": lambda _: web.Response(status=302, headers={"Location": "/elsewhere"}),
    "context_overflow": lambda _: error(
        400,
        "This model's maximum context length is 128 tokens.",
        code="context_length_exceeded",
    ),
    "bad_request": lambda _: error(400, "temperature must be at most 2"),
    "secret_error": lambda _: error(
        400, "line one\nauthorization: Bearer test-key-123456 api_key=test-key-123456\x00 end"
    ),
    "malformed": lambda _: _raw('{"id": "x", "choices": [{"message": {"content": oops'),
    "html": lambda _: _raw("<!doctype html><h1>Bad gateway</h1>", "text/html"),
    "not_completion": lambda _: _raw('{"hello": "world"}'),
    "empty_choices": _empty_choices,
    "no_usage": _no_usage,
    "refusal": lambda call: _message(call, refusal="I cannot help with that."),
    "wrong_schema": lambda call: _message(call, content='{"verdict": [42]}'),
    "echo": lambda call: _message(call, content=call.prompt),
    "length": lambda call: _cut(call, "length"),
    "content_filter": lambda call: _cut(call, "content_filter"),
    "nul_surrogate": _nul_surrogate,
    "huge": lambda call: web.json_response(completion(call, "x" * 9_000_000)),
    "deep": lambda _: _raw("[" * 200_000),
    "late": good_reply,
}


async def _truncated(request: web.Request, call: Call) -> web.StreamResponse:
    body = json.dumps(completion(call, answer_for(call.prompt, False))).encode()
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    _drop(request)
    return response


async def _reset(request: web.Request, call: Call) -> web.StreamResponse:
    _drop(request)
    return web.Response()


async def _never(request: web.Request, call: Call) -> web.StreamResponse:
    await asyncio.sleep(3600)
    return web.Response(status=504)


def _drop(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


STREAMS: dict[str, Callable[[web.Request, Call], Awaitable[web.StreamResponse]]] = {
    "truncated": _truncated,
    "reset": _reset,
    "never": _never,
}


class Stub:
    """The server's state: settings, the counter that chooses faults, and what it saw."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.stats = Stats()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self.complete)
        app.router.add_get("/stats", self.show_stats)
        app.router.add_post("/configure", self.configure)
        return app

    async def show_stats(self, request: web.Request) -> web.Response:
        return web.json_response(vars(self.stats))

    async def configure(self, request: web.Request) -> web.Response:
        """Take new settings and forget what was seen."""
        self.settings = Settings(**await request.json())
        self.stats = Stats()
        return web.json_response(asdict(self.settings))

    def fault_of(self, model: str) -> str:
        if "@" in model:
            return model.rpartition("@")[2]
        return due_fault(self.stats.received, self.settings.fault_share)

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = "\n".join(str(m.get("content")) for m in body.get("messages", []))
        digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()
        call = Call(body, prompt, digest, self.settings)
        stats = self.stats
        stats.received += 1
        fault = self.fault_of(call.model)
        self._count(stats, call, fault, request.headers.get("Authorization", ""))
        stats.in_flight += 1
        stats.peak_in_flight = max(stats.peak_in_flight, stats.in_flight)
        try:
            return await self._reply(request, call, fault)
        finally:
            stats.in_flight -= 1

    def _count(self, stats: Stats, call: Call, fault: str, authorization: str) -> None:
        stats.prompts[call.digest] += 1
        stats.authorizations[authorization] += 1
        stats.last_body = call.body
        if fault:
            stats.faults[fault] += 1
        if (FAULTS | LASTING_FAULTS).get(fault, True):
            stats.billed += 1
            stats.output_tokens += 40

    async def _reply(self, request: web.Request, call: Call, fault: str) -> web.StreamResponse:
        extra = self.settings.late_seconds if fault == "late" else 0.0
        if self.settings.latency_seconds + extra > 0:
            await asyncio.sleep(self.settings.latency_seconds + extra)
        if fault in STREAMS:
            return await STREAMS[fault](request, call)
        return REPLIES.get(fault, good_reply)(call)


def due_fault(nth_call: int, share: float) -> str:
    """Return the fault of the n-th call (from 1) so that a share of all fails, kinds in turn."""
    if share <= 0 or int(nth_call * share) == int((nth_call - 1) * share):
        return ""
    kinds = list(FAULTS)
    return kinds[(int(nth_call * share) - 1) % len(kinds)]


@dataclass(frozen=True)
class StubServer:
    """A stub in another process, as tests see it."""

    origin: str
    process: subprocess.Popen[str]

    @property
    def base_url(self) -> str:
        return f"{self.origin}/v1"

    def stats(self) -> dict[str, Any]:
        return self._ask("/stats")

    def configure(self, **settings: float) -> None:
        """Take these settings, defaults for the rest, and reset the statistics."""
        self._ask("/configure", settings)

    def _ask(self, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        url = self.origin + path
        with urllib.request.urlopen(url, data, timeout=10) as response:  # noqa: S310 - loopback
            answer: dict[str, Any] = json.load(response)
            return answer

    @classmethod
    @contextlib.contextmanager
    def running(cls, *options: str) -> Iterator[StubServer]:
        """Start a stub on a free port; it ends with the block, or with its parent."""
        command = [sys.executable, "-m", "tests.stub_server", "--port", "0", "--with-parent"]
        process = subprocess.Popen(
            [*command, *options],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield cls(process.stdout.readline().strip(), process)
        finally:
            process.stdin.close()
            process.wait(timeout=10)
            process.stdout.close()


@pytest.fixture(scope="session")
def stub_process() -> Iterator[StubServer]:
    with StubServer.running() as server:
        yield server


@pytest.fixture
def stub_server(stub_process: StubServer) -> StubServer:
    """A stub with default settings and fresh statistics."""
    stub_process.configure()
    return stub_process


async def serve(port: int, settings: Settings, with_parent: bool) -> None:
    runner = web.AppRunner(Stub(settings).application(), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=2048)
    await site.start()
    host, bound_port = runner.addresses[0][:2]
    print(f"http://{host}:{bound_port}", flush=True)
    try:
        if with_parent:
            await asyncio.to_thread(sys.stdin.read)  # Ends when the parent does.
        else:
            await asyncio.Event().wait()
    finally:
        await runner.cleanup()


def _share(text: str) -> float:
    return float(text.removesuffix("%")) / 100 if text.endswith("%") else float(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="A model server that misbehaves on demand.")
    parser.add_argument("--port", type=int, default=8099, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument("--late", type=float, default=2.0, help="seconds added by the fault late")
    parser.add_argument("--faults", type=_share, default=0.0, help="share of calls, such as 10%%")
    parser.add_argument("--retry-after", type=float, default=1.0, help="seconds told with a 429")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    settings = Settings(options.latency, options.late, options.faults, options.retry_after)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(options.port, settings, options.with_parent))


if __name__ == "__main__":
    main()
