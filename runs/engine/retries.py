"""When a call is made again (S4, S11, S31): decided here, waited for and paid for elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from runs.engine.types import CallStatus
from runs.protocols.spec import Retries

#: Waiting before the first repetition; it doubles up to the most.
FIRST_BACKOFF_SECONDS = 0.5
MOST_BACKOFF_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Ending:
    """
    How a call ended, as far as a repetition depends on it.

    ``invalid`` is admission's verdict on a reply that did arrive.
    """

    status: CallStatus
    transient: bool = False
    invalid: bool = False
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Call again after ``delay_seconds``; ``cause`` is the allowance that it uses up."""

    cause: str
    delay_seconds: float


def decide(
    *,
    allowed: Retries,
    used: dict[str, int],
    ending: Ending,
    jitter: float,
    remaining_seconds: float,
) -> Retry | None:
    """
    Return whether and when the same call is made again, or None.

    ``used`` counts earlier repetitions by cause; ``jitter`` is a draw in [0, 1) handed in, so
    that equal runs wait alike. A wait that ends after the round's time is no retry.
    """
    cause = _cause(ending)
    if cause is None or used.get(cause, 0) >= getattr(allowed, cause):
        return None
    backoff = min(FIRST_BACKOFF_SECONDS * 2.0 ** used.get(cause, 0), MOST_BACKOFF_SECONDS)
    delay = backoff * (0.5 + jitter / 2) if cause == "transport" else 0.0
    delay = max(delay, ending.retry_after_seconds or 0.0)
    return Retry(cause, delay) if delay < remaining_seconds else None


def _cause(ending: Ending) -> str | None:
    if ending.invalid:
        return "invalid"
    if ending.status is CallStatus.TIMEOUT:
        return "timeout"
    if ending.status is CallStatus.FAILED and ending.transient:
        return "transport"
    return None
