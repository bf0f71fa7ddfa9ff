"""
The thin path: endpoints that speak OpenAI's chat protocol, called with aiohttp.

LiteLLM costs about 13 ms of CPU a call where this costs under 1; see
docs/decisions/0010-litellm-and-the-thin-path.md.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from yarl import URL

from runs.providers import endings
from runs.providers.base import ProviderReply, ProviderRequest, Usage
from runs.providers.endings import Ending, failed, token_count

MAX_BODY_BYTES = 8 * 2**20

#: Below the 5 s after which uvicorn (vLLM and others) closes an idle connection: a request sent
#: on a connection that is being closed would count as possibly billed.
KEEPALIVE_SECONDS = 4.0

_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)


class BodyTooLargeError(Exception):
    """The response is larger than any answer can be."""


class Connections:
    """The pooled HTTP connections of one event loop, opened at the first call."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    def session(self) -> aiohttp.ClientSession:
        """Return the loop's session. Call it on the loop that closes it."""
        if self._session is None:
            # No limit here: concurrency is bounded per model, by the gateway.
            connector = aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=300, keepalive_timeout=KEEPALIVE_SECONDS
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=_NO_TIMEOUT,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=True,
            )
        return self._session

    async def aclose(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class OpenAICompatibleProvider:
    """Models behind one base URL and key. Stateless; any number of calls at once."""

    marked = ""

    def __init__(
        self, *, base_url: str, api_key: str = "", connections: Connections | None = None
    ) -> None:
        """``connections`` are shared and stay open on ``aclose``; without them it has its own."""
        self._url = URL(base_url.rstrip("/") + "/chat/completions")
        self._secrets = (api_key,) if api_key else ()
        self._owned = Connections() if connections is None else None
        self._connections = connections or self._owned or Connections()
        self._length_field = length_field(base_url)
        # Unpacking would only hide a body's size until it is in memory.
        self._headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"

    async def complete(self, request: ProviderRequest) -> ProviderReply:
        """Return how the call ended. Raises only ``asyncio.CancelledError``."""
        payload = json.dumps(chat_body(request, self._length_field)).encode()
        started = time.perf_counter()
        try:
            async with asyncio.timeout(request.timeout_seconds):
                status, headers, body = await self._post(payload)
        except Exception as exc:  # noqa: BLE001 - base.py: nothing may escape
            latency = time.perf_counter() - started
            return failed(
                cause_of(exc), describe(exc), secrets=self._secrets, latency_seconds=latency
            )
        latency = time.perf_counter() - started
        if 200 <= status < 300:
            return parse_completion(body, latency, self._secrets)
        return self._refused(status, headers, body, latency)

    async def _post(self, payload: bytes) -> tuple[int, Mapping[str, str], bytes]:
        # A redirect would carry the key to wherever the server points.
        async with self._connections.session().post(
            self._url, data=payload, headers=self._headers, allow_redirects=False
        ) as response:
            return response.status, response.headers, await _capped(response)

    def _refused(
        self, status: int, headers: Mapping[str, str], body: bytes, latency: float
    ) -> ProviderReply:
        text = body.decode("utf-8", "replace")
        return failed(
            endings.http_ending(status, text),
            endings.http_detail(status, text),
            secrets=self._secrets,
            latency_seconds=latency,
            retry_after=endings.retry_after_seconds(headers.get("Retry-After"), time.time()),
        )

    async def aclose(self) -> None:
        if self._owned is not None:
            await self._owned.aclose()


async def _capped(response: aiohttp.ClientResponse) -> bytes:
    if (response.content_length or 0) > MAX_BODY_BYTES:
        raise BodyTooLargeError(f"response of {response.content_length} bytes")
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise BodyTooLargeError(f"response of more than {MAX_BODY_BYTES} bytes")
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def length_field(base_url: str) -> str:
    """Return the name of the output limit: OpenAI's own newer models refuse the old one."""
    host = urlsplit(base_url).hostname or ""
    return "max_completion_tokens" if host == "api.openai.com" else "max_tokens"


def chat_body(request: ProviderRequest, length_name: str) -> dict[str, Any]:
    """Return the request's JSON body. Only what is set is sent, and nothing of its origin."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": m.role, "content": m.content} for m in request.prompt],
        length_name: request.max_output_tokens,
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop"] = list(request.stop)
    if request.seed is not None:
        body["seed"] = request.seed
    if request.response_schema is not None:
        body["response_format"] = response_format(request.response_schema)
    return body


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request for an answer that follows a JSON schema."""
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": schema},
    }


def cause_of(exc: Exception) -> Ending:
    """Return what kept a response from arriving."""
    if isinstance(exc, TimeoutError):
        return endings.TIMEOUT
    if isinstance(exc, BodyTooLargeError):
        return endings.BODY_TOO_LARGE
    if isinstance(exc, aiohttp.ClientConnectorError):  # Refused, no such host, bad certificate.
        return endings.UNREACHABLE
    if isinstance(exc, aiohttp.InvalidURL):
        return endings.BAD_REQUEST
    if isinstance(exc, aiohttp.ClientError | OSError):
        return endings.CONNECTION_LOST
    return endings.INTERNAL


def describe(exc: BaseException) -> str:
    return f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__


def parse_completion(
    body: bytes, latency_seconds: float, secrets: tuple[str, ...] = ()
) -> ProviderReply:
    """Return the reply that a successful response's body holds, whatever it holds."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as exc:
        return _unreadable(body, describe(exc), latency_seconds, secrets)
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list):
        return _unreadable(body, "the response has no choices", latency_seconds, secrets)
    usage = parse_usage(data.get("usage"))
    version = endings.model_version(data.get("model"), data.get("system_fingerprint"))
    choice = choices[0] if choices and isinstance(choices[0], dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        return failed(
            endings.EMPTY_CHOICES,
            "the response's choices hold no message",
            latency_seconds=latency_seconds,
            usage=usage,
            model_version=version,
        )
    return endings.finished(
        content=message.get("content"),
        refusal=message.get("refusal"),
        finish_reason=choice.get("finish_reason"),
        usage=usage,
        model_version=version,
        latency_seconds=latency_seconds,
    )


def _unreadable(
    body: bytes, what: str, latency_seconds: float, secrets: tuple[str, ...]
) -> ProviderReply:
    start = body[:400].decode("utf-8", "replace")
    return failed(
        endings.unreadable_body(start),
        f"{what}; it begins {start[:80]!r}",
        secrets=secrets,
        latency_seconds=latency_seconds,
    )


def parse_usage(usage: object) -> Usage:
    """Return the tokens as reported; a part that is missing or no count is None."""
    if not isinstance(usage, dict):
        return Usage()
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    if cached is None:
        cached = token_count(usage.get("prompt_cache_hit_tokens"))  # DeepSeek's name.
    return Usage(
        input_tokens=token_count(usage.get("prompt_tokens")),
        cached_tokens=cached,
        output_tokens=token_count(usage.get("completion_tokens")),
        reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: dict[str, Any], group: str, name: str) -> int | None:
    details = usage.get(group)
    return token_count(details.get(name)) if isinstance(details, dict) else None
