"""Replies that were recorded elsewhere, given again as if the models had said them now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from runs.engine.types import CallStatus, Status
from runs.providers import endings
from runs.providers.base import ProviderReply, ProviderRequest, Usage

#: How a recorded model is named: ``recorded:NAME``.
PREFIX = "recorded:"

#: question_hash, agent_id (the protocol's), t.
RecordKey = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class RecordedReply:
    """
    One reply of a log. ``text`` is None where the log has a place for it but no words.

    ``status`` is that of debate files (formats.md), which says what became of an agent and not
    of a call: the provider gives again what a call must have brought to end so.
    """

    text: str | None
    finish_reason: str = "stop"
    status: str = Status.SUCCEEDED
    usage: Usage = endings.UNKNOWN_USAGE
    model_version: str = ""
    error_class: str = ""


class RecordedProvider:
    """
    An imported debate, reply by reply.

    What is not in the log fails as ``not_recorded``: it is never made up. A repeated call (a
    retry) gets the same reply again.
    """

    marked = "recorded"

    def __init__(self, replies: Mapping[RecordKey, RecordedReply]) -> None:
        self._replies = replies

    async def complete(self, request: ProviderRequest) -> ProviderReply:
        """Return the recorded reply to this question, agent and round."""
        origin = request.origin
        key = (origin.question_hash, origin.agent_id, origin.t)
        reply = self._replies.get(key)
        if reply is None or reply.status in _NO_CALL:
            where = f"agent {origin.agent_id} at t = {origin.t} on question {origin.question_id}"
            return endings.failed(endings.NOT_RECORDED, f"the log has no reply of {where}")
        return _given_again(reply)

    async def aclose(self) -> None:
        """There is nothing to release."""


#: No call was made, so there is no reply to give.
_NO_CALL = frozenset({Status.SKIPPED_BUDGET, Status.INACTIVE, Status.NOT_SCHEDULED})

#: A reply came: as it was (an unparseable one is for the parser to refuse again), or cut.
_ANSWERED: dict[str, str] = {
    Status.SUCCEEDED: "",
    Status.INVALID: "",
    Status.TRUNCATED: "length",
    Status.FILTERED: "content_filter",
}


def _given_again(reply: RecordedReply) -> ProviderReply:
    if reply.status in _ANSWERED:
        return ProviderReply(
            status=CallStatus.SUCCEEDED,
            raw=(reply.text or "").encode("utf-8", "surrogatepass"),
            usage=reply.usage,
            finish_reason=_ANSWERED[reply.status] or endings.short_name(reply.finish_reason),
            model_version=reply.model_version,
            billed="no",
        )
    ended = reply.status in set(CallStatus)
    return ProviderReply(
        status=CallStatus(reply.status) if ended else CallStatus.FAILED,
        usage=reply.usage,
        model_version=reply.model_version,
        error_class=reply.error_class or "recorded_failure",
        error_detail="the log records this failure",
        billed="no",
    )
