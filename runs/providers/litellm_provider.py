"""
The wide path: every provider that LiteLLM knows.

LiteLLM takes seconds to import and about 13 ms of CPU a call, so it is imported only where a
model needs it. It retries nothing here: retries are ours, on the ledger (S31).
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from runs.providers import endings
from runs.providers.base import ProviderReply, ProviderRequest, Usage
from runs.providers.endings import Ending, failed, token_count
from runs.providers.openai_compatible import MAX_BODY_BYTES, describe, response_format

_load_lock = threading.Lock()
_loaded: list[Any] = []  # The module, once imported.

#: LiteLLM's own deadline is this much later than ours, so that ours is the one that counts.
_GRACE_SECONDS = 5.0


def ensure_loaded() -> Any:
    """
    Import LiteLLM once and return it. Takes seconds: call it in a thread when a worker warms up.

    It then uses the price table in its package, sends no telemetry and prints no advice.
    """
    with _load_lock:
        if not _loaded:
            os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            import litellm

            litellm.telemetry = False
            litellm.suppress_debug_info = True
            litellm.num_retries = 0
            litellm.drop_params = False  # A setting that is dropped silently falsifies a record.
            _loaded.append(litellm)
    return _loaded[0]


#: Sent where a model of one's own needs no key.
NO_KEY = "none"


class LiteLLMProvider:
    """Models reached through LiteLLM, by LiteLLM's names."""

    marked = ""

    def __init__(self, *, base_url: str = "", api_key: str = "") -> None:
        self._fixed: dict[str, Any] = {"num_retries": 0, "max_retries": 0}
        if base_url:
            self._fixed["api_base"] = base_url
        if api_key or base_url:
            # The SDK beneath refuses to call without a key; one's own server may want none.
            self._fixed["api_key"] = api_key or NO_KEY
        self._secrets = (api_key,) if api_key else ()

    async def complete(self, request: ProviderRequest) -> ProviderReply:
        """Return how the call ended. Raises only ``asyncio.CancelledError``."""
        if not _loaded:
            await asyncio.to_thread(ensure_loaded)
        arguments = completion_arguments(request) | self._fixed
        started = time.perf_counter()
        try:
            async with asyncio.timeout(request.timeout_seconds):
                response = await _loaded[0].acompletion(**arguments)
        except Exception as exc:  # noqa: BLE001 - base.py: nothing may escape
            return failed_by(exc, time.perf_counter() - started, self._secrets)
        return reply_of(response, time.perf_counter() - started)

    async def aclose(self) -> None:
        """LiteLLM keeps its connections to itself and closes them with the process."""


def completion_arguments(request: ProviderRequest) -> dict[str, Any]:
    """Return the arguments of ``acompletion``. Nothing of the request's origin is among them."""
    arguments: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": m.role, "content": m.content} for m in request.prompt],
        "max_tokens": request.max_output_tokens,
        "timeout": request.timeout_seconds + _GRACE_SECONDS,
    }
    if request.temperature is not None:
        arguments["temperature"] = request.temperature
    if request.top_p is not None:
        arguments["top_p"] = request.top_p
    if request.stop:
        arguments["stop"] = list(request.stop)
    if request.seed is not None:
        arguments["seed"] = request.seed
    if request.response_schema is not None:
        arguments["response_format"] = response_format(request.response_schema)
    return arguments


def reply_of(response: Any, latency_seconds: float) -> ProviderReply:
    """Return the reply that a ``ModelResponse`` holds; ``choices: []`` raised nothing."""
    usage = usage_of(getattr(response, "usage", None))
    version = endings.model_version(
        getattr(response, "model", None), getattr(response, "system_fingerprint", None)
    )
    choices = getattr(response, "choices", None)
    message = getattr(choices[0], "message", None) if choices else None
    if not choices or message is None:
        return failed(
            endings.EMPTY_CHOICES,
            "the response's choices hold no message",
            latency_seconds=latency_seconds,
            usage=usage,
            model_version=version,
        )
    content = getattr(message, "content", None)
    if isinstance(content, str) and len(content) > MAX_BODY_BYTES:
        # LiteLLM reads whole responses; a larger one is at least not stored.
        return failed(
            endings.BODY_TOO_LARGE,
            f"answer of {len(content)} characters",
            latency_seconds=latency_seconds,
            usage=usage,
            model_version=version,
        )
    return endings.finished(
        content=content,
        refusal=getattr(message, "refusal", None),
        finish_reason=getattr(choices[0], "finish_reason", None),
        usage=usage,
        model_version=version,
        latency_seconds=latency_seconds,
    )


def usage_of(usage: Any) -> Usage:
    """Return the tokens as reported. LiteLLM fills in zeros where the provider said nothing."""
    input_tokens = token_count(getattr(usage, "prompt_tokens", None))
    output_tokens = token_count(getattr(usage, "completion_tokens", None))
    if not input_tokens and not output_tokens:
        return Usage()
    return Usage(
        input_tokens=input_tokens,
        cached_tokens=_detail(usage, "prompt_tokens_details", "cached_tokens"),
        output_tokens=output_tokens,
        reasoning_tokens=_detail(usage, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(usage: Any, group: str, name: str) -> int | None:
    return token_count(getattr(getattr(usage, group, None), name, None))


def failed_by(
    exc: Exception, latency_seconds: float, secrets: tuple[str, ...] = ()
) -> ProviderReply:
    """
    Return the failed reply for an exception of LiteLLM, by cause.

    Its classes don't tell causes apart: malformed JSON, a cut body and a refused connection all
    come as InternalServerError with status 500. The chain of causes does.
    """
    chain = tuple(_causes(exc))
    response = _http_response(chain)
    if response is None:
        ending, detail, headers = _without_response(chain), describe(exc), _headers(exc)
    else:
        status, text, headers = response
        ending, detail = endings.http_ending(status, text), endings.http_detail(status, text)
    return failed(
        ending,
        detail,
        secrets=secrets,
        latency_seconds=latency_seconds,
        retry_after=endings.retry_after_seconds(headers.get("retry-after"), time.time()),
    )


def _causes(exc: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = exc
    seen: set[int] = set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _http_response(
    chain: tuple[BaseException, ...],
) -> tuple[int, str, Mapping[str, str]] | None:
    """Return status, body and headers of the response that the HTTP client refused."""
    for cause in chain:
        if type(cause).__name__ == "HTTPStatusError":
            response = getattr(cause, "response", None)
            if response is not None:
                return int(response.status_code), _body_text(response), response.headers
    return None


def _body_text(response: Any) -> str:
    try:
        return str(response.text)
    except Exception:  # noqa: BLE001 - a body that nobody read; the status still counts
        return ""


def _headers(exc: Exception) -> Mapping[str, str]:
    headers = getattr(getattr(exc, "response", None), "headers", None)
    return headers if isinstance(headers, Mapping) else {}


#: By the name of a cause in the chain, the first that matches: LiteLLM may sit on httpx, aiohttp
#: or a provider's SDK, and none of them is imported here.
_BY_CAUSE: tuple[tuple[re.Pattern[str], Ending], ...] = (
    (re.compile(r"Timeout"), endings.TIMEOUT),
    (re.compile(r"ConnectError|ConnectorError|ConnectionRefused|gaierror"), endings.UNREACHABLE),
    (
        re.compile(
            r"ReadError|WriteError|RemoteProtocolError|PayloadError|Disconnected"
            r"|ConnectionReset|BrokenPipe|MidStreamFallback|ClientOSError"
        ),
        endings.CONNECTION_LOST,
    ),
    (re.compile(r"JSONDecodeError|RecursionError|UnicodeDecodeError"), endings.MALFORMED_BODY),
    (re.compile(r"ContextWindowExceeded"), endings.CONTEXT_OVERFLOW),
    (re.compile(r"ContentPolicyViolation"), endings.CONTENT_FILTER),
    (re.compile(r"UnsupportedParams|UnknownProvider|NotMapped"), endings.BAD_REQUEST),
)
_RECEIVED_HTML = re.compile(r"Received: ['\"]\s*<")
_NO_COMPLETION = re.compile(
    r"no 'choices'|Empty or invalid response|Unable to (parse|get) json", re.IGNORECASE
)


def _without_response(chain: tuple[BaseException, ...]) -> Ending:
    names = " ".join(type(cause).__name__ for cause in chain)
    for pattern, ending in _BY_CAUSE:
        if pattern.search(names):
            return ending
    message = str(chain[0])
    if _RECEIVED_HTML.search(message):
        return endings.HTML_BODY
    if _NO_COMPLETION.search(message):
        return endings.MALFORMED_BODY
    return _by_status(chain[0], message)


def _by_status(exc: BaseException, message: str) -> Ending:
    status = getattr(exc, "status_code", None)
    if isinstance(status, int) and 300 <= status < 600:
        return endings.http_ending(status, message)
    return endings.INTERNAL
