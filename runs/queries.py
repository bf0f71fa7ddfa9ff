"""
What is read: engine values from rows, and what a person may see.

Rows of questions, arms and protocol versions never change, so what is made of them is cached by
id for the life of the process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from django.db.models import Max, QuerySet

from debateweb.access import workspaces_of
from debateweb.models import User
from runs.bindings import from_json
from runs.engine.aggregation import may_judge
from runs.engine.judge_prompts import judge_agent
from runs.engine.judging import CALL_PREFIX
from runs.engine.ledger import Price
from runs.engine.snapshots import initial_snapshot, restored_snapshot
from runs.engine.types import (
    Answer,
    AnswerKind,
    Claim,
    Evidence,
    Question,
    Snapshot,
    State,
)
from runs.models import Arm, Commit, Debate, DebateSet, Experiment, QuestionSet, Run
from runs.models import Question as QuestionRow
from runs.models import State as StateRow
from runs.protocols.spec import Agent, Protocol
from runs.providers.catalog import ModelConfig
from runs.providers.recorded import RecordedProvider, RecordedReply


def experiments_visible_to(user: User) -> QuerySet[Experiment]:
    """Return the experiments of the workspaces ``user`` belongs to, newest first."""
    return Experiment.objects.filter(workspace__in=workspaces_of(user), archived_at=None).order_by(
        "-pk"
    )


def runs_visible_to(user: User) -> QuerySet[Run]:
    """Return the runs of the workspaces ``user`` belongs to, newest first."""
    return Run.objects.filter(experiment__workspace__in=workspaces_of(user)).order_by("-pk")


def question_sets_visible_to(user: User) -> QuerySet[QuestionSet]:
    """Return the question sets of the workspaces ``user`` belongs to, newest first."""
    return QuestionSet.objects.filter(workspace__in=workspaces_of(user), archived_at=None).order_by(
        "-pk"
    )


def debate_sets_visible_to(user: User) -> QuerySet[DebateSet]:
    """Return the debate sets of the workspaces ``user`` belongs to, newest first."""
    return DebateSet.objects.filter(workspace__in=workspaces_of(user), archived_at=None).order_by(
        "-pk"
    )


@dataclass(frozen=True)
class ArmContext:
    """
    What every round of an arm needs: its protocol and its models.

    ``models`` is keyed by agent and, for calls to a judge, by ``CALL_PREFIX``: see ``called``.
    ``recorded_sets`` gives under the same keys the debate set whose replies a recorded model
    repeats.
    """

    arm_id: int
    protocol: Protocol
    models: dict[str, ModelConfig]
    prices: dict[str, Price]
    recorded_sets: dict[str, int]

    @staticmethod
    def called(agent_id: str) -> str:
        """Return the key of who answers a call: the agent, or the one judge of all its calls."""
        return CALL_PREFIX if agent_id.startswith(CALL_PREFIX) else agent_id

    def model_of(self, agent_id: str) -> ModelConfig:
        return self.models[self.called(agent_id)]

    def price_of(self, agent_id: str) -> Price:
        return self.prices[self.called(agent_id)]

    def agent(self, agent_id: str) -> Agent:
        """Return the agent of a call, or the judge in an agent's place."""
        judge = self.protocol.aggregation.judge
        if judge is not None and self.called(agent_id) == CALL_PREFIX:
            return judge_agent(judge)
        return self.protocol.agent(agent_id)


@lru_cache(maxsize=512)
def arm_context(arm_id: int) -> ArmContext:
    """Return the context of an arm. One query for the first round of a process."""
    arm = Arm.objects.select_related("protocol").get(pk=arm_id)
    protocol = Protocol.model_validate_json(arm.protocol.canonical)
    bodies = {agent.id: arm.bindings.get(agent.id) for agent in protocol.agents}
    for agent in protocol.agents:
        bodies[agent.id] = bodies[agent.id] or arm.bindings[agent.model]
    if protocol.aggregation.judge is not None and may_judge(protocol):
        bodies[CALL_PREFIX] = arm.bindings[protocol.aggregation.judge.model]
    models = {key: from_json(body) for key, body in bodies.items()}
    return ArmContext(
        arm_id=arm_id,
        protocol=protocol,
        models=models,
        prices={key: config.price or Price.free() for key, config in models.items()},
        recorded_sets={key: b["debate_set"] for key, b in bodies.items() if "debate_set" in b},
    )


def engine_question(row: QuestionRow) -> Question:
    """Return a question row as the engine debates it."""
    return Question(
        id=row.external_id,
        text=row.text,
        answer_type=row.answer_type,  # type: ignore[arg-type]  # A check constraint's values.
        choices=tuple(row.choices),
        reference=tuple(row.reference),
        evidence=tuple(Evidence(e["id"], e["text"], e["source"]) for e in row.evidence),
    )


@lru_cache(maxsize=4096)
def question_by_id(question_id: int) -> Question:
    """Return a stored question. One query for the first round of a process."""
    return engine_question(QuestionRow.objects.get(pk=question_id))


def snapshot_of_run(*, run_id: int, t: int, agent_ids: tuple[str, ...]) -> Snapshot:
    """Return the read buffer of round ``t``: one query, none at t = 0."""
    if t == 0:
        return initial_snapshot()
    rows = StateRow.objects.filter(run_id=run_id, round__lt=t)
    return restored_snapshot(t=t, history=map(engine_state, rows), agent_ids=agent_ids)


def committed_rounds(run_id: int) -> int:
    """Return how many rounds a run has committed; the last snapshot opens the one after them."""
    newest = Commit.objects.filter(run_id=run_id).aggregate(t=Max("t"))["t"]
    return 0 if newest is None else int(newest) + 1


def engine_state(row: StateRow) -> State:
    """Return a state row as the engine knows it."""
    return State(
        agent_id=row.agent_id,
        state_version=row.state_version,
        parent_version=row.parent_version,
        round=row.round,
        text=row.text,
        answer=Answer(
            raw=row.answer_raw,
            kind=AnswerKind(row.answer_kind),
            value=row.answer_value,
            rule=row.answer_rule,
        ),
        raw_hash=row.raw_hash,
        content_hash=row.content_hash,
        claims=tuple(Claim(c["claim_id"], c["text"], c["claim_hash"]) for c in row.claims),
        evidence_refs=tuple(row.evidence_refs),
        unresolved=tuple(row.unresolved),
        confidence=row.confidence,
        change=tuple((key, value) for key, value in row.change),
    )


def states_of_run(run_id: int) -> Iterable[StateRow]:
    """Return every admitted state of a run, oldest version first."""
    return StateRow.objects.filter(run_id=run_id).order_by("agent_id", "state_version")


def recorded_provider(
    *, debate_set_id: int, question_id: int, question_hash: str, seed: int, context: ArmContext
) -> RecordedProvider:
    """
    Return a model that gives the recorded replies of one debate, agent by agent.

    The protocol's agents stand for the log's in the order of both. Where a question was debated
    several times, the run's seed names the debate, else the first is taken.
    """
    debates = Debate.objects.filter(debate_set_id=debate_set_id, question_id=question_id)
    debate = debates.filter(seed=seed).first() or debates.order_by("position").first()
    replies: dict[tuple[str, str, int], RecordedReply] = {}
    if debate is not None:
        for position, agent_id in enumerate(context.protocol.agent_ids):
            for t, reply in _recorded_turns(debate.body, position).items():
                replies[question_hash, agent_id, t] = reply
    return RecordedProvider(replies)


def _recorded_turns(
    body: dict[str, list[dict[str, object]]], position: int
) -> dict[int, RecordedReply]:
    agents = body["agents"]
    if position >= len(agents):
        return {}
    name = agents[position]["agent_id"]
    found = {}
    for t, turns in enumerate(body["rounds"]):
        for turn in turns:
            if turn["agent_id"] == name:  # type: ignore[index]
                found[t] = _recorded_reply(turn)  # type: ignore[arg-type]
    return found


def _recorded_reply(turn: dict[str, object]) -> RecordedReply:
    text = turn.get("text")
    if text is None and turn.get("answer") is not None:
        text = _reply_of(str(turn["answer"]))  # The log kept the answer and not the reply.
    return RecordedReply(
        text=None if text is None else str(text),
        finish_reason=str(turn.get("finish_reason") or "stop"),
        status=str(turn.get("status") or "SUCCEEDED"),
    )


def _reply_of(answer: str) -> str:
    """Put an answer as a reply; an abstention is one alone, which no rule need look for."""
    return answer if answer.strip().casefold() == "abstain" else f"Final answer: {answer}"


def prompt_json(messages: Iterable[object]) -> str:
    """Return a prompt as it is stored: JSON text, because it is compared byte for byte."""
    return json.dumps(
        [{"role": m.role, "content": m.content} for m in messages],  # type: ignore[attr-defined]
        ensure_ascii=False,
    )
