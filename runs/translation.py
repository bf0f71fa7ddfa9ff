"""Between the engine's values, what providers take and give, and what is stored."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from runs.engine.draws import Draws
from runs.engine.ledger import Amount, Price, cost, is_known, reserve_bound, settlement
from runs.engine.types import CallKind, CallPlan, CallResult, Question, ReadSet, Snapshot
from runs.protocols.spec import Agent, Protocol
from runs.providers.base import Origin, ProviderReply, ProviderRequest
from runs.providers.catalog import ModelConfig
from runs.queries import prompt_json
from runs.services.ledger import AttemptDraft, OutcomeDraft

#: A finish reason is a provider's word; its column holds no novel.
MAX_FINISH_REASON_CHARS = 64


def attempt_draft(
    call: CallPlan,
    *,
    model: str,
    price: Price,
    agent: Agent,
    ordinal: int,
    retry_of: int | None,
) -> AttemptDraft:
    """Return the attempt row of a call, with a reservation that bounds what it can use (S31)."""
    decoding = agent.decoding.model_dump(mode="json", exclude_none=True)
    return AttemptDraft(
        agent_id=call.agent_id,
        kind=call.kind.value,
        ordinal=ordinal,
        request_digest=call.request_digest,
        model_slot=call.model_slot,
        model=model,
        prompt=prompt_json(call.prompt),
        read_set=json.dumps(read_set_json(call.read_set)),
        decoding=json.dumps({**decoding, "seed": call.seed}),
        parent_version=call.parent_version,
        reserve=reserve_bound(
            input_token_bound=call.input_token_bound,
            max_output_tokens=call.max_output_tokens,
            price=price,
        ),
        retry_of=retry_of,
    )


def read_set_json(read_set: ReadSet) -> dict[str, Any]:
    """Return a read set as it is stored: what was put in the prompt, cut, and left out (S6)."""
    return {
        "entries": [asdict(entry) for entry in read_set.entries],
        "dropped": [asdict(entry) for entry in read_set.dropped],
    }


def provider_request(
    call: CallPlan,
    *,
    config: ModelConfig,
    agent: Agent,
    protocol: Protocol,
    question: Question,
    snapshot: Snapshot,
    draws: Draws,
    timeout_seconds: float,
) -> ProviderRequest:
    """Return what the provider is asked, with what simulated and recorded models may know."""
    decoding = agent.decoding
    return ProviderRequest(
        model=config.upstream_name,
        prompt=call.prompt,
        max_output_tokens=call.max_output_tokens,
        timeout_seconds=timeout_seconds,
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        stop=decoding.stop,
        seed=call.seed,
        response_schema=call.response_schema,
        origin=_origin(call, protocol, question, snapshot, draws),
    )


def _origin(
    call: CallPlan, protocol: Protocol, question: Question, snapshot: Snapshot, draws: Draws
) -> Origin:
    if call.kind is CallKind.JUDGE:
        return _judge_origin(call, question, draws)
    own = snapshot.state_of(call.agent_id)
    answers = {(s.agent_id, s.state_version): s.answer for s in snapshot.history}
    shown = sorted(call.read_set.peers, key=lambda entry: entry.position)
    peers = [answers[entry.agent_id, entry.state_version] for entry in shown]
    return Origin(
        run_seed=draws.run_seed,
        question_hash=draws.question_hash,
        question_id=question.id,
        answer_type=question.answer_type,
        choices=question.choices,
        reference=question.reference,
        agent_id=call.agent_id,
        agent_index=protocol.agent_ids.index(call.agent_id),
        t=call.t,
        kind=call.kind,
        own_answer=own.answer.value if own is not None and own.answer.is_vote else None,
        peer_answers=tuple(answer.value if answer.is_vote else None for answer in peers),
        output_format=protocol.output.format,
    )


def _judge_origin(call: CallPlan, asked: Question, draws: Draws) -> Origin:
    """Return what a simulated judge may know: its options, and not which of them is right."""
    return Origin(
        run_seed=draws.run_seed,
        question_hash=draws.question_hash,
        question_id=asked.id,
        answer_type=asked.answer_type,
        choices=asked.choices,
        agent_id=call.agent_id,
        t=call.t,
        kind=call.kind,
    )


def call_result(call: CallPlan, ordinal: int, reply: ProviderReply) -> CallResult:
    """Return a reply as admission sees it."""
    return CallResult(
        agent_id=call.agent_id,
        t=call.t,
        status=reply.status,
        attempt=ordinal,
        raw=reply.raw,
        finish_reason=reply.finish_reason,
        error_class=reply.error_class,
        request_digest=call.request_digest,
        parent_version=call.parent_version,
    )


def outcome_draft(
    *, attempt_id: int, reply: ProviderReply, reserved: Amount, price: Price
) -> OutcomeDraft:
    """Return the outcome row of an attempt and what becomes of its reservation."""
    usage = reply.usage if is_known(reply.usage) else None
    return OutcomeDraft(
        attempt_id=attempt_id,
        status=reply.status.value,
        raw=reply.raw,
        finish_reason=reply.finish_reason[:MAX_FINISH_REASON_CHARS],
        error_class=reply.error_class,
        error_detail=reply.error_detail,
        input_tokens=reply.usage.input_tokens,
        cached_tokens=reply.usage.cached_tokens,
        output_tokens=reply.usage.output_tokens,
        reasoning_tokens=reply.usage.reasoning_tokens,
        cost_microusd=cost(usage, price) if usage is not None else None,
        latency_milliseconds=round(reply.latency_seconds * 1000),
        queued_milliseconds=round(reply.queued_seconds * 1000),
        model_version=reply.model_version,
        settlement=settlement(reserved=reserved, usage=usage, billed=reply.billed, price=price),
    )
