"""Runs that we executed: states carried forward, votes counted again at every time."""

from __future__ import annotations

from audits.rows.executed import Verdict, outcome_rows, snapshots, state_rows
from audits.rows.scoring import Scorer
from runs.engine.draws import Draws
from runs.engine.types import Answer, AnswerKind, Outcome, Question, State
from runs.protocols.decisions import Aggregation
from runs.protocols.presets import load_preset
from runs.protocols.spec import Protocol

DU = load_preset("du_replay")
QUESTION = Question(id="q", text="How many?", answer_type="number", reference=("4",))
DRAWS = Draws(1, "q")


def answer(value: str) -> Answer:
    return Answer(raw=value, kind=AnswerKind.VALUE, value=value)


def state(agent: str, version: int, t: int, value: str) -> State:
    return State(
        agent_id=agent, state_version=version, parent_version=version - 1, round=t, text="",
        answer=answer(value), raw_hash="", content_hash="",
    )  # fmt: skip


def scorer() -> Scorer:
    return Scorer(QUESTION, DU.normaliser)


def with_aggregation(aggregation: Aggregation) -> Protocol:
    return DU.model_copy(update={"aggregation": aggregation})


HELD = [state("a", 1, 0, "4"), state("a", 2, 1, "5"), state("b", 1, 0, "4")]


def test_states_are_carried_forward_and_no_configured_agent_is_missing() -> None:
    verdicts = {
        (0, "a"): Verdict("SUCCEEDED", admitted=True),
        (0, "b"): Verdict("SUCCEEDED", admitted=True),
        (0, "c"): Verdict("INVALID", admitted=False),
        (1, "a"): Verdict("SUCCEEDED", admitted=True),
        (1, "b"): Verdict("TIMEOUT", admitted=False),
        (1, "c"): Verdict("INACTIVE", admitted=False),
    }
    rows = state_rows(scorer(), DU, snapshots(DU, HELD, 2), verdicts)
    assert [(r.t, r.agent_id, r.answer, r.correct, r.status) for r in rows] == [
        (0, "a", "4", True, "SUCCEEDED"),
        (0, "b", "4", True, "SUCCEEDED"),
        (0, "c", None, False, "INVALID"),
        (1, "a", "5", False, "SUCCEEDED"),
        (1, "b", "4", True, "TIMEOUT"),
        (1, "c", None, False, "INACTIVE"),
    ]


def test_a_run_that_opened_no_round_has_its_agents_at_the_start() -> None:
    after = snapshots(DU, [], 0)
    rows = state_rows(scorer(), DU, after, {})
    assert [(r.t, r.agent_id, r.correct, r.status) for r in rows] == [
        (0, agent, False, "INACTIVE") for agent in "abc"
    ]
    fallback = Outcome(
        t=0, aggregator="plurality", answer=Answer("", AnswerKind.ABSTAIN), counts=(),
        unresolved=True,
    )  # fmt: skip
    (end,) = outcome_rows(scorer(), DU, after, final=fallback, draws=DRAWS)
    assert (end.t, end.unresolved, end.abstained, end.correct) == (0, True, False, False)


def test_votes_are_counted_at_every_time_and_the_stored_result_stands_at_the_end() -> None:
    stored = Outcome(t=1, aggregator="plurality", answer=answer("5"), counts=(), tied=True)
    rows = outcome_rows(scorer(), DU, snapshots(DU, HELD, 2), final=stored, draws=DRAWS)
    assert [(r.t, r.answer, r.correct, r.tied) for r in rows] == [
        (0, "4", True, False),
        (1, "5", False, True),
    ]


def test_plurality_stands_beside_another_aggregator() -> None:
    protocol = with_aggregation(Aggregation(kind="strict_majority"))
    held = [*HELD, state("c", 1, 0, "6")]
    rows = outcome_rows(scorer(), protocol, snapshots(protocol, held, 1), final=None, draws=DRAWS)
    assert [(r.aggregator, r.t, r.answer) for r in rows] == [
        ("strict_majority", 0, "4"),
        ("plurality", 0, "4"),
    ]


def test_an_aggregator_that_takes_calls_has_its_outcome_at_the_end_alone() -> None:
    protocol = with_aggregation(Aggregation(kind="ranked"))
    stored = Outcome(t=1, aggregator="ranked", answer=answer("4"), counts=())
    after = snapshots(protocol, HELD, 2)
    rows = outcome_rows(scorer(), protocol, after, final=stored, draws=DRAWS)
    assert [r.t for r in rows if r.aggregator == "ranked"] == [1]
    assert [r.t for r in rows if r.aggregator == "plurality"] == [0, 1]


def test_a_protocol_that_decides_nothing_has_plurality_alone() -> None:
    protocol = with_aggregation(Aggregation(kind="none"))
    rows = outcome_rows(scorer(), protocol, snapshots(protocol, HELD, 1), final=None, draws=DRAWS)
    assert [r.aggregator for r in rows] == ["plurality"]
