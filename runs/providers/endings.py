"""
How a call can end, and what each ending means for a retry and for the ledger.

Both HTTP paths sort by this one table, by cause and not by the name of a library's exception,
so that the same fault gives the same record whichever path a model takes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from runs.engine.types import CallStatus
from runs.providers.base import ProviderReply, Usage

MAX_DETAIL_CHARS = 300
UNKNOWN_USAGE = Usage()
MAX_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class Ending:
    """One cause of failure. ``billed`` is "no" only where the provider surely did no work."""

    error_class: str
    transient: bool
    billed: str
    status: CallStatus = CallStatus.FAILED


UNREACHABLE = Ending("unreachable", transient=True, billed="no")
CONNECTION_LOST = Ending("connection_lost", transient=True, billed="maybe")
TIMEOUT = Ending("timeout", transient=True, billed="maybe", status=CallStatus.TIMEOUT)
CANCELLED = Ending("cancelled", transient=False, billed="maybe", status=CallStatus.CANCELLED)
NEVER_SENT = Ending("cancelled", transient=False, billed="no", status=CallStatus.CANCELLED)
MALFORMED_BODY = Ending("malformed_body", transient=True, billed="maybe")
HTML_BODY = Ending("html_body", transient=True, billed="maybe")
EMPTY_CHOICES = Ending("empty_choices", transient=True, billed="maybe")
BODY_TOO_LARGE = Ending("body_too_large", transient=False, billed="maybe")
REDIRECTED = Ending("redirected", transient=False, billed="no")
CONTEXT_OVERFLOW = Ending("context_overflow", transient=False, billed="no")
CONTENT_FILTER = Ending("content_filter", transient=False, billed="maybe")
INSUFFICIENT_QUOTA = Ending("insufficient_quota", transient=False, billed="no")
RATE_LIMITED = Ending("rate_limited", transient=True, billed="no")
BAD_REQUEST = Ending("bad_request", transient=False, billed="no")
SERVER_ERROR = Ending("server_error", transient=True, billed="maybe")
NOT_RECORDED = Ending("not_recorded", transient=False, billed="no")
INTERNAL = Ending("internal_error", transient=False, billed="maybe")

_BY_HTTP_STATUS = {
    401: Ending("unauthorized", transient=False, billed="no"),
    402: Ending("payment_required", transient=False, billed="no"),
    403: Ending("forbidden", transient=False, billed="no"),
    404: Ending("not_found", transient=False, billed="no"),
    408: TIMEOUT,
    # The provider may have begun on the request that this one collided with.
    409: Ending("conflict", transient=True, billed="maybe"),
    429: RATE_LIMITED,
}

_OVERFLOW = re.compile(
    r"context[ _]length|context[ _]window|context size|maximum context|too many tokens"
    r"|prompt is too long|input is too long|exceeds? the (available|maximum) context"
    r"|exceed_context_size",
    re.IGNORECASE,
)
_FILTERED = re.compile(r"content[_ ](filter|policy)|content management policy", re.IGNORECASE)
_QUOTA = re.compile(r"insufficient_quota|billing_hard_limit", re.IGNORECASE)


def http_ending(status: int, body: str) -> Ending:
    """Return what an HTTP status other than 2xx means; ``body`` settles what the number can't."""
    if 300 <= status < 400:
        return REDIRECTED
    if status >= 500:
        return SERVER_ERROR
    if status == 429 and _QUOTA.search(body):
        return INSUFFICIENT_QUOTA
    if status in (400, 413, 422):
        return _refused_request(body)
    return _BY_HTTP_STATUS.get(status, BAD_REQUEST)


def _refused_request(body: str) -> Ending:
    if _OVERFLOW.search(body):
        return CONTEXT_OVERFLOW
    return CONTENT_FILTER if _FILTERED.search(body) else BAD_REQUEST


def http_detail(status: int, body: str) -> str:
    """Return the provider's own message where its body has one, else the start of the body."""
    message: object = None
    if body.lstrip().startswith("{"):
        try:
            error = json.loads(body).get("error")
            message = error.get("message") if isinstance(error, dict) else error
        except (ValueError, RecursionError):
            message = None
    return f"HTTP {status}: {message if isinstance(message, str) else body[:MAX_DETAIL_CHARS]}"


def unreadable_body(text: str) -> Ending:
    """Return what a successful response is that holds no chat completion."""
    return HTML_BODY if text.lstrip()[:1] == "<" else MALFORMED_BODY


def retry_after_seconds(value: str | None, now_seconds: float) -> float | None:
    """
    Return the wait that a Retry-After header asks for: seconds, or an HTTP date.

    ``now_seconds`` is seconds since the epoch. A date that has passed gives 0; what can't be
    read gives None.
    """
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = _until(value, now_seconds)
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _until(date: str, now_seconds: float) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - now_seconds
    except (ValueError, TypeError, OverflowError):
        return math.nan


_SECRETS = re.compile(
    r"(?i)\bbearer\s+[^\s\"',;]+"
    r"|\b(?:sk|pk|gsk|xai|key|hf)[-_][A-Za-z0-9_\-*.]{6,}"
    r"|\b(?:api[-_ ]?key|authorization|token|secret|password)[\"']?\s*[=:]\s*[\"']?[^\s\"',;]+"
)


def one_line(text: str, *, secrets: Iterable[str] = (), limit: int = MAX_DETAIL_CHARS) -> str:
    """
    Return hostile text as one short printable line without keys.

    Whitespace becomes one blank; what can't be printed (NUL, surrogates, bidi controls) is
    escaped.
    """
    for secret in secrets:
        if len(secret) > 3:
            text = text.replace(secret, "[redacted]")
    text = _SECRETS.sub("[redacted]", text[: 4 * MAX_DETAIL_CHARS])
    text = " ".join(text.split())
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def failed(
    ending: Ending,
    detail: str = "",
    *,
    secrets: Iterable[str] = (),
    latency_seconds: float = 0.0,
    retry_after: float | None = None,
    usage: Usage = UNKNOWN_USAGE,
    model_version: str = "",
) -> ProviderReply:
    """Return the reply for a call that ended without an answer. Known usage was billed."""
    return ProviderReply(
        status=ending.status,
        usage=usage,
        model_version=model_version,
        latency_seconds=latency_seconds,
        error_class=ending.error_class,
        error_detail=one_line(detail, secrets=secrets),
        transient=ending.transient,
        billed="yes" if usage.known else ending.billed,
        retry_after_seconds=retry_after,
    )


def finished(
    *,
    content: object,
    refusal: object,
    finish_reason: object,
    usage: Usage,
    model_version: str,
    latency_seconds: float,
) -> ProviderReply:
    """
    Return the reply for a call that brought an answer, or a refusal in a field of its own.

    ``content`` is text, the list of parts that some endpoints send, or None.
    """
    if isinstance(refusal, str) and refusal:
        content, finish_reason = refusal, "refusal"
    return ProviderReply(
        status=CallStatus.SUCCEEDED,
        raw=_text(content).encode("utf-8", "surrogatepass"),
        usage=usage,
        finish_reason=short_name(finish_reason),
        model_version=model_version,
        latency_seconds=latency_seconds,
    )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return ""


def short_name(value: object) -> str:
    """Return a provider's name for something, safe to store as text."""
    if not isinstance(value, str):
        return ""
    if value.isprintable() and len(value) <= MAX_NAME_CHARS:
        return value
    return one_line(value, limit=MAX_NAME_CHARS)


def model_version(model: object, fingerprint: object) -> str:
    """Return the provider's name of what answered, its build beside it where it says so."""
    return " ".join(filter(None, (short_name(model), short_name(fingerprint))))


def token_count(value: Any) -> int | None:
    """Return a reported count, or None where it is no count."""
    # Beyond 2^53 no record can hold it (S35): the report is then not believed.
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
        return value
    return None
