"""
The synchronous operator (S9): plan a round from a frozen snapshot, commit it in one piece.

``plan_round`` reads the snapshot only; ``commit_round`` fills the next one. Neither knows in
which order calls ended, so the order can change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runs.engine.admission import REJECTED, admit, version_of
from runs.engine.branching import branch_commit
from runs.engine.draws import Draws
from runs.engine.errors import InconsistentInputError, UnsupportedProtocolError
from runs.engine.hashing import canonical_bytes, question_hash, raw_digest, request_digest
from runs.engine.parsing import response_schema
from runs.engine.prompts import Asked, Rendered, render_initial, render_revision
from runs.engine.snapshots import following_snapshot, initial_snapshot
from runs.engine.stopping import stop_after
from runs.engine.templates import unfilled_slots
from runs.engine.types import (
    CallKind,
    CallPlan,
    CallResult,
    Evidence,
    PromptMessage,
    Question,
    RoundCommit,
    RoundPlan,
    Snapshot,
    Status,
    Verdict,
)
from runs.protocols.checks import unsupported
from runs.protocols.spec import Agent, Protocol

__all__ = [
    "branch_commit",
    "commit_round",
    "decoding_settings",
    "initial_snapshot",
    "plan_round",
    "refuse_unsupported",
]

#: Tokens that a chat format may add around one message, generously.
TOKENS_PER_MESSAGE = 16

#: Seeds are sent as non-negative 31-bit integers, which every provider takes.
_SEED_BOUND = 1 << 31

NO_RESULT = "no_result"


def refuse_unsupported(protocol: Protocol) -> None:
    """Raise UnsupportedProtocolError where the protocol needs a rule that is not carried out."""
    found = [*unsupported(protocol), *unfilled_slots(protocol)]
    if found:
        raise UnsupportedProtocolError(found)


def plan_round(
    *,
    protocol: Protocol,
    question: Question,
    evidence: tuple[Evidence, ...],
    snapshot: Snapshot,
    active: tuple[str, ...] | None,
    run_seed: int,
    t: int,
) -> RoundPlan:
    """
    Return the calls of round ``t``: one for each scheduled agent, in configured order.

    At t = 0 every configured agent is scheduled and no prompt is made from ``snapshot`` (S8);
    later the active set is scheduled (S12). ``active`` is None before t = 0 was committed.
    Raises UnsupportedProtocolError; InconsistentInputError where snapshot, ``active`` and t do
    not belong together.
    """
    refuse_unsupported(protocol)
    _refuse_mismatch(protocol, snapshot, active, t)
    asked = Asked(protocol, question, evidence, Draws(run_seed, question_hash(question)))
    scheduled = protocol.agent_ids if active is None else _in_order(protocol, active)
    return RoundPlan(
        t=t,
        snapshot_hash=snapshot.snapshot_hash,
        scheduled=scheduled,
        calls=tuple(_call(asked, protocol.agent(agent_id), snapshot) for agent_id in scheduled),
    )


def commit_round(
    *,
    protocol: Protocol,
    question: Question,
    plan: RoundPlan,
    snapshot: Snapshot,
    results: Iterable[CallResult],
    skipped: Iterable[str] = (),
    active: tuple[str, ...] | None,
    run_seed: int,
) -> RoundCommit:
    """
    Return what one transaction writes at the end of a round.

    ``results`` may come in any order, twice, late, or from another epoch; ``skipped`` are the
    agents that got no call because the budget did not allow one. Late results change nothing.
    Of several admissible results of one agent the one with the lowest (attempt, raw hash) is
    admitted (docs/decisions/0042). Every configured agent gets a verdict; an agent whose result
    was not admitted keeps its last valid state (S11).
    Raises InconsistentInputError where the plan is not of this snapshot and this run.
    """
    _refuse_mismatch(protocol, snapshot, active, plan.t)
    _refuse_foreign_plan(protocol, question, plan, snapshot, run_seed)
    epoch = _Epoch(protocol, question, plan, snapshot, results, skipped, active)
    verdicts = tuple(epoch.verdict(agent_id) for agent_id in protocol.agent_ids)
    after = following_snapshot(
        snapshot=snapshot,
        admitted=[v.state for v in verdicts if v.state is not None],
        agent_ids=protocol.agent_ids,
    )
    remaining = tuple(s.agent_id for s in after.states) if active is None else active
    stop = stop_after(
        protocol=protocol,
        t=plan.t,
        before=snapshot,
        after=after,
        verdicts=verdicts,
        active=remaining,
    )
    return RoundCommit(
        snapshot=after, verdicts=verdicts, active=_in_order(protocol, remaining), stop=stop
    )


def decoding_settings(agent: Agent, seed: int | None) -> dict[str, Any]:
    """Return the decoding settings that ``request_digest`` covers."""
    decoding = agent.decoding
    return {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_output_tokens": decoding.max_output_tokens,
        "stop": list(decoding.stop),
        "seed": seed,
    }


class _Epoch:
    """One closed epoch: what came back, by agent, for verdicts that do not depend on order."""

    def __init__(
        self,
        protocol: Protocol,
        question: Question,
        plan: RoundPlan,
        snapshot: Snapshot,
        results: Iterable[CallResult],
        skipped: Iterable[str],
        active: tuple[str, ...] | None,
    ) -> None:
        self._protocol = protocol
        self._question = question
        self._plan = plan
        self._snapshot = snapshot
        self._skipped = frozenset(skipped)
        self._active = active
        self._calls = {call.agent_id: call for call in plan.calls}
        self._results = _in_epoch(results, plan.t)

    def verdict(self, agent_id: str) -> Verdict:
        call = self._calls.get(agent_id)
        if self._active is not None and agent_id not in self._active:
            return self._without_call(agent_id, Status.INACTIVE)
        if call is None:
            return self._without_call(agent_id, Status.NOT_SCHEDULED)
        results = self._results.get(agent_id, ())
        if not results and agent_id in self._skipped:
            return self._without_call(agent_id, Status.SKIPPED_BUDGET, "worker_budget")
        if not results:
            return self._without_call(agent_id, Status.TIMEOUT, NO_RESULT)
        return self._first_admissible(call, results)

    def _first_admissible(self, call: CallPlan, results: Sequence[CallResult]) -> Verdict:
        """Return the first admission; without one, the last of the call's own failures."""
        failure = strange = None
        for result in results:
            verdict = self._admit(call, result)
            if verdict.admitted:
                return verdict
            if verdict.reason.startswith(REJECTED):
                strange = strange or verdict
            else:
                failure = verdict
        return failure or strange or self._without_call(call.agent_id, Status.TIMEOUT, NO_RESULT)

    def _admit(self, call: CallPlan, result: CallResult) -> Verdict:
        return admit(
            protocol=self._protocol,
            question=self._question,
            call=call,
            result=result,
            snapshot=self._snapshot,
        )

    def _without_call(self, agent_id: str, status: Status, reason: str = "") -> Verdict:
        return Verdict(agent_id=agent_id, t=self._plan.t, status=status, reason=reason)


def _in_epoch(results: Iterable[CallResult], t: int) -> Mapping[str, tuple[CallResult, ...]]:
    """Group the results that came in time by agent, in an order that is theirs alone."""
    grouped: dict[str, set[CallResult]] = {}
    for result in results:
        if not result.late and result.t == t:
            grouped.setdefault(result.agent_id, set()).add(result)
    return {agent_id: tuple(sorted(found, key=_rank)) for agent_id, found in grouped.items()}


def _rank(result: CallResult) -> tuple[int, str, str, str, str, str, int]:
    # The first two decide who wins; the rest only makes the order total.
    return (
        result.attempt,
        raw_digest(result.raw),
        result.status.value,
        result.finish_reason,
        result.error_class,
        result.request_digest,
        result.parent_version,
    )


def _call(asked: Asked, agent: Agent, snapshot: Snapshot) -> CallPlan:
    t = snapshot.t
    rendered = _rendered(asked, agent.id, snapshot)
    schema = response_schema(asked.question, asked.protocol)
    seed = sampling_seed(asked.draws, agent, t)
    return CallPlan(
        agent_id=agent.id,
        t=t,
        kind=CallKind.INITIAL if t == 0 else CallKind.REVISION,
        model_slot=agent.model,
        prompt=rendered.prompt,
        read_set=rendered.read_set,
        parent_version=0 if t == 0 else version_of(snapshot, agent.id),
        max_output_tokens=agent.decoding.max_output_tokens,
        input_token_bound=input_token_bound(rendered.prompt, schema),
        request_digest=request_digest(
            model_slot=agent.model,
            prompt=rendered.prompt,
            decoding=decoding_settings(agent, seed),
            response_schema=schema,
        ),
        response_schema=schema,
        seed=seed,
    )


def _rendered(asked: Asked, agent_id: str, snapshot: Snapshot) -> Rendered:
    if snapshot.t == 0:
        return render_initial(asked, agent_id)
    return render_revision(asked, agent_id, snapshot)


def sampling_seed(draws: Draws, agent: Agent, t: int) -> int | None:
    """Return the seed that is sent with a call, where the agent's decoding asks for one."""
    if not agent.decoding.seeded:
        return None
    return draws.below(_SEED_BOUND, agent=agent.id, t=t, purpose="sampling")


def input_token_bound(prompt: Iterable[PromptMessage], schema: Mapping[str, Any] | None) -> int:
    """Return an upper bound of the input's tokens: no tokenizer makes more than one a byte."""
    texts = sum(len(m.content.encode("utf-8")) + TOKENS_PER_MESSAGE for m in prompt)
    return texts + (len(canonical_bytes(schema)) if schema is not None else 0)


def _in_order(protocol: Protocol, agent_ids: Iterable[str]) -> tuple[str, ...]:
    chosen = frozenset(agent_ids)
    return tuple(agent_id for agent_id in protocol.agent_ids if agent_id in chosen)


def _refuse_mismatch(
    protocol: Protocol, snapshot: Snapshot, active: tuple[str, ...] | None, t: int
) -> None:
    if snapshot.t != t:
        raise InconsistentInputError(f"round {t} cannot read the snapshot of round {snapshot.t}")
    if (active is None) != (t == 0):
        raise InconsistentInputError("the active set is frozen after t = 0 and unknown before")
    strangers = sorted(set(active or ()) - {state.agent_id for state in snapshot.states})
    if strangers:
        raise InconsistentInputError(f"active without a state: {', '.join(strangers)}")
    if t > protocol.revision_rounds:
        raise InconsistentInputError(f"the protocol has no round {t}")


def _refuse_foreign_plan(
    protocol: Protocol, question: Question, plan: RoundPlan, snapshot: Snapshot, run_seed: int
) -> None:
    if plan.snapshot_hash != snapshot.snapshot_hash:
        raise InconsistentInputError("the plan was made from another snapshot")
    draws = Draws(run_seed, question_hash(question))
    for call in plan.calls:
        if call.seed != sampling_seed(draws, protocol.agent(call.agent_id), plan.t):
            raise InconsistentInputError(f"the plan of {call.agent_id!r} has another run's seed")
