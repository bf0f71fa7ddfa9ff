"""Values that engine tests are made of: small protocols, states, snapshots, scripted replies."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import strategies as st

from runs.engine.draws import Draws
from runs.engine.hashing import content_hash, question_hash, raw_digest
from runs.engine.prompts import Asked
from runs.engine.snapshots import following_snapshot, initial_snapshot
from runs.engine.types import (
    Answer,
    AnswerKind,
    CallPlan,
    CallResult,
    CallStatus,
    Evidence,
    Question,
    Snapshot,
    State,
)
from runs.protocols.spec import Protocol

QUESTION = Question(id="q1", text="What is 6 times 7?", answer_type="number", reference=("42",))

PROMPTS: dict[str, Any] = {
    "system": "You are {{persona}}.",
    "initial": "{{question}}\n{{choices}}{{evidence}}\n{{answer_format}}",
    "revision": "{{question}}\nYou said {{own_answer}}:\n{{own_text}}\nOthers:\n{{peers}}",
    "peer": "{{label}}:\n{{text}}",
}


def protocol(
    *, agents: Iterable[str | dict[str, Any]] = ("a", "b", "c"), rounds: int = 2, **parts: Any
) -> Protocol:
    """Return a synchronous protocol with texts that show everything."""
    fields: dict[str, Any] = {
        "name": "test",
        "agents": [a if isinstance(a, dict) else {"id": a} for a in agents],
        "revision_rounds": rounds,
        "prompts": PROMPTS,
    }
    return Protocol.model_validate_json(json.dumps({**fields, **parts}))


def state(
    agent_id: str, text: str, *, value: str = "1", version: int = 1, t: int = 0, kind: str = "value"
) -> State:
    """Return an admitted state with true hashes."""
    answer = Answer(raw=value, kind=AnswerKind(kind), value=value if kind == "value" else "")
    raw_hash = raw_digest(text.encode())
    return State(
        agent_id=agent_id,
        state_version=version,
        parent_version=version - 1,
        round=t,
        text=text,
        answer=answer,
        raw_hash=raw_hash,
        content_hash=content_hash(text=text, answer=answer, raw_hash=raw_hash),
    )


def snapshot_of(rounds: Iterable[Mapping[str, str]], agents: Iterable[str]) -> Snapshot:
    """Return the read buffer after rounds in which agents had these texts admitted."""
    ids = tuple(agents)
    snapshot = initial_snapshot()
    for texts in rounds:
        admitted = [
            state(
                agent_id,
                text,
                value=str(len(text)),
                version=len(snapshot.history_of(agent_id)) + 1,
                t=snapshot.t,
            )
            for agent_id, text in texts.items()
        ]
        snapshot = following_snapshot(snapshot=snapshot, admitted=admitted, agent_ids=ids)
    return snapshot


def asked(
    of: Protocol,
    *,
    question: Question = QUESTION,
    evidence: tuple[Evidence, ...] = (),
    run_seed: int = 1,
) -> Asked:
    return Asked(of, question, evidence, Draws(run_seed, question_hash(question)))


def answered(
    call: CallPlan,
    text: str | bytes,
    *,
    attempt: int = 0,
    status: CallStatus = CallStatus.SUCCEEDED,
    finish_reason: str = "stop",
    late: bool = False,
) -> CallResult:
    """Return a result of ``call`` as a provider would have given it."""
    return CallResult(
        agent_id=call.agent_id,
        t=call.t,
        status=status,
        attempt=attempt,
        raw=text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"),
        finish_reason=finish_reason,
        error_class="" if status is CallStatus.SUCCEEDED else status.value.lower(),
        request_digest=call.request_digest,
        parent_version=call.parent_version,
        late=late,
    )


#: Texts as PostgreSQL and canonical JSON can hold them: what states have.
texts = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40
).filter(str.strip)


@st.composite
def histories(draw: st.DrawFn, agents: tuple[str, ...], *, max_t: int = 3) -> Snapshot:
    """Draw the read buffer of a round > 0: some agents inactive, some revisions not admitted."""
    active = [agent_id for agent_id in agents if draw(st.booleans())] or [agents[0]]
    rounds = [{agent_id: draw(texts) for agent_id in active}]
    rounds += [
        {agent_id: draw(texts) for agent_id in active if draw(st.booleans())}
        for _ in range(draw(st.integers(0, max_t - 1)))
    ]
    return snapshot_of(rounds, agents)
