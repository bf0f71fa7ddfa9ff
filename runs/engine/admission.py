"""
Admission (S11): whether a result becomes a state. It certifies form, not truth.

Cheap checks come first. Whatever a reply holds, the answer is a verdict and never an error.
"""

from __future__ import annotations

from runs.engine.hashing import content_hash, raw_digest
from runs.engine.parsing import ParsedReply, cut_status, display_text, parse_reply
from runs.engine.types import (
    Answer,
    AnswerKind,
    CallPlan,
    CallResult,
    CallStatus,
    Question,
    Snapshot,
    State,
    Status,
    Verdict,
)
from runs.protocols.spec import Protocol

#: Prefix of the reason where the result, not its content, was refused.
REJECTED = "rejected:"

#: What providers' finish reasons are mapped to where the model declined.
REFUSAL_FINISH = "refusal"

_FAILURES = {
    CallStatus.FAILED: Status.FAILED,
    CallStatus.CANCELLED: Status.CANCELLED,
    CallStatus.TIMEOUT: Status.TIMEOUT,
}


def admit(
    *,
    protocol: Protocol,
    question: Question,
    call: CallPlan,
    result: CallResult,
    snapshot: Snapshot,
) -> Verdict:
    """
    Return the verdict on one result of ``call`` in the epoch that ``snapshot`` opened.

    ``state`` is set if and only if the result is admitted. REFUSAL and ABSTAIN are answers and
    are admitted as such. A refused result is INVALID with a reason that begins "rejected:".
    """
    refused = rejection(call=call, result=result, snapshot=snapshot)
    if refused:
        return _verdict(call, Status.INVALID, REJECTED + refused)
    if result.status is not CallStatus.SUCCEEDED:
        return _verdict(call, _FAILURES[result.status], result.error_class)
    cut = _cut_short(protocol, result)
    if cut is not None:
        return _verdict(call, cut, result.finish_reason)
    return _judge_content(protocol, question, call, result)


def rejection(*, call: CallPlan, result: CallResult, snapshot: Snapshot) -> str:
    """
    Return why a result does not belong to this call of this epoch; empty where it does.

    The request digest covers the prompt, which the host rendered from its own read set, so a
    result with the right digest answers what this agent was shown and nothing else.
    """
    if (result.agent_id, result.t) != (call.agent_id, call.t) or call.t != snapshot.t:
        return "epoch"
    if result.late:
        return "late"
    if result.request_digest != call.request_digest:
        return "request_digest"
    if not result.parent_version == call.parent_version == version_of(snapshot, call.agent_id):
        return "parent_version"
    return ""


def version_of(snapshot: Snapshot, agent_id: str) -> int:
    """Return the version of an agent's last valid state, 0 where it has none (S3)."""
    state = snapshot.state_of(agent_id)
    return state.state_version if state is not None else 0


def _cut_short(protocol: Protocol, result: CallResult) -> Status | None:
    """Return the failure of a reply that was cut or filtered, never read as an answer (S4)."""
    if _is_refusal(result):
        return None
    cut = cut_status(result.finish_reason)
    read_anyway = {
        Status.TRUNCATED: protocol.output.truncated == "parse",
        Status.FILTERED: protocol.output.filtered == "parse",
    }
    return None if cut is None or read_anyway[cut] else cut


def _is_refusal(result: CallResult) -> bool:
    """Whether the provider says that the model itself declined, which is an answer (S26)."""
    return result.finish_reason.strip().casefold() == REFUSAL_FINISH


def _judge_content(
    protocol: Protocol, question: Question, call: CallPlan, result: CallResult
) -> Verdict:
    reply = _read(protocol, question, call, result)
    if reply.answer.kind is AnswerKind.INVALID:
        return _verdict(call, Status.INVALID, reply.answer.reason or "no_answer")
    if reply.answer.kind is AnswerKind.ABSTAIN and not protocol.output.abstention_allowed:
        return _verdict(call, Status.INVALID, "abstention_not_allowed")
    try:
        state = _state(call, result, reply)
    except ValueError:  # Text that has no canonical form could never be hashed again (S35).
        return _verdict(call, Status.INVALID, "no_canonical_form")
    return Verdict(agent_id=call.agent_id, t=call.t, status=Status.SUCCEEDED, state=state)


def _read(
    protocol: Protocol, question: Question, call: CallPlan, result: CallResult
) -> ParsedReply:
    if _is_refusal(result):
        text = display_text(result.raw[: protocol.output.max_reply_chars])
        return ParsedReply(text=text, answer=Answer(raw=text, kind=AnswerKind.REFUSAL))
    return parse_reply(
        result.raw,
        question=question,
        protocol=protocol,
        prompt=call.prompt,
        finish_reason=result.finish_reason,
    )


def _state(call: CallPlan, result: CallResult, reply: ParsedReply) -> State:
    raw_hash = raw_digest(result.raw)
    return State(
        agent_id=call.agent_id,
        state_version=call.parent_version + 1,
        parent_version=call.parent_version,
        round=call.t,
        text=reply.text,
        answer=reply.answer,
        raw_hash=raw_hash,
        content_hash=content_hash(
            text=reply.text, answer=reply.answer, raw_hash=raw_hash, claims=reply.claims
        ),
        claims=reply.claims,
        confidence=reply.confidence,
        change=reply.change,
    )


def _verdict(call: CallPlan, status: Status, reason: str) -> Verdict:
    return Verdict(agent_id=call.agent_id, t=call.t, status=status, reason=reason)
