"""What is exported is imported as it was; hashes say whether two records are the same."""

from __future__ import annotations

import io
import string
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runs.engine.types import Evidence
from runs.importers.records import (
    ANSWER_TYPES,
    SPLITS,
    STATUSES,
    AgentRecord,
    BeliefRecord,
    ClaimRecord,
    DebateRecord,
    FinalRecord,
    QuestionRecord,
    ReadRecord,
    TurnRecord,
    UsageRecord,
    record_hash,
)
from runs.importers.references import reference_problem
from runs.importers.registry import read_debates, read_questions
from runs.importers.writers import write_debates, write_questions
from tests.runs.importers.helpers import a_debate, a_question, debates, lines, questions

# What files can hold: any text without NUL and half surrogates.
unhurried = settings(deadline=None)  # Machines are busy; time is no property here.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
FULL_TEXTS = TEXTS.filter(lambda text: bool(text.strip()))
NAMES = st.text(string.ascii_letters + "-_.é", min_size=1, max_size=8)
MAYBE = st.none() | TEXTS
# References of text questions are those that can be counted: "?" and "n/a" cannot.
COUNTED_TEXTS = FULL_TEXTS.filter(lambda text: reference_problem(text, "text") is None)
METADATA = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1, max_size=5).map(lambda key: f"x_{key}"),
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS | st.lists(TEXTS),
    max_size=2,
)


@st.composite
def question_records(draw: st.DrawFn) -> QuestionRecord:
    answer_type = draw(st.sampled_from(ANSWER_TYPES))
    choices: tuple[str, ...] = ()
    references: st.SearchStrategy[str] = FULL_TEXTS if answer_type == "open" else COUNTED_TEXTS
    if answer_type == "choice":
        choices = ("red", "green", "blue")
        references = st.sampled_from([*choices, "A", "C"])
    elif answer_type == "number":
        references = st.integers(-(10**30), 10**30).map(str)
    elif answer_type == "yesno":
        references = st.sampled_from(["yes", "no"])
    ids = draw(st.lists(NAMES, max_size=2, unique=True))
    return QuestionRecord(
        id=draw(NAMES),
        question=draw(FULL_TEXTS),
        reference=tuple(draw(st.lists(references, max_size=2))),
        answer_type=answer_type,
        choices=choices,
        stratum=draw(MAYBE),
        family=draw(MAYBE),
        split=draw(st.none() | st.sampled_from(SPLITS)),
        evidence=tuple(Evidence(id=own, text=draw(FULL_TEXTS), source=draw(TEXTS)) for own in ids),
        metadata=draw(METADATA),
    )


def _turn(draw: st.DrawFn, agent_id: str, t: int, agents: list[str]) -> TurnRecord:
    answer = draw(MAYBE)
    status = draw(st.sampled_from(STATUSES)) if answer is not None else "INVALID"
    reads = [ReadRecord(a, t - 1, place) for place, a in enumerate(agents)] if t else []
    return TurnRecord(
        agent_id,
        answer,
        text=draw(MAYBE),
        prompt=draw(MAYBE),
        claims=draw(st.sampled_from([(), (ClaimRecord("c", "so"),)])),
        status=status,
        finish_reason=draw(MAYBE),
        confidence=draw(st.none() | st.floats(0, 1)),
        reads=draw(st.sampled_from([None, (), tuple(reads)])),
        order=draw(st.sampled_from([None, agents.index(agent_id)])),
        metadata=draw(METADATA),
    )


@st.composite
def debate_records(draw: st.DrawFn) -> DebateRecord:
    agents = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    rounds = tuple(
        tuple(_turn(draw, agent, t, agents) for agent in agents)
        for t in range(draw(st.integers(1, 3)))
    )
    return DebateRecord(
        debate_id=draw(NAMES),
        question=replace(draw(question_records()), metadata={}),
        protocol=draw(NAMES),
        agents=tuple(AgentRecord(own, "m", draw(MAYBE), draw(MAYBE)) for own in agents),
        rounds=rounds,
        seed=draw(st.none() | st.integers(0, 2**53 - 1)),
        beliefs=draw(st.sampled_from([(), (BeliefRecord("j", 1, {"x": 0.25}),)])),
        final=draw(st.sampled_from([None, FinalRecord(None, "vote"), FinalRecord("x", "vote")])),
        usage=draw(st.sampled_from([None, UsageRecord(), UsageRecord(1, 2, 0.5)])),
        reads_known=draw(st.sampled_from(["assumed", "unknown"])),
        rules=draw(st.none() | NAMES),
        metadata=draw(METADATA),
    )


@unhurried
@given(st.lists(question_records(), min_size=1, max_size=4, unique_by=lambda r: r.id))
def test_questions_come_back_as_they_were_written(records: list[QuestionRecord]) -> None:
    stream = io.StringIO()
    assert write_questions(records, stream) == len(records)
    found = list(read_questions(io.BytesIO(stream.getvalue().encode()), "jsonl"))
    assert found == records
    assert [record_hash(r) for r in found] == [record_hash(r) for r in records]


@unhurried
@given(debate_records())
def test_debates_come_back_as_they_were_written(record: DebateRecord) -> None:
    stream = io.StringIO()
    assert write_debates([record], stream) == 1
    (found,) = read_debates(io.BytesIO(stream.getvalue().encode()), "jsonl")
    assert found == record
    assert record_hash(found) == record_hash(record)


def test_a_hash_knows_every_part_of_a_question() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"question": "2 + 3?"},
        {"reference": "5"},
        {"stratum": "s"},
        {"family": "s"},
        {"split": "test"},
        {"metadata": {"k": 1}},
        {"evidence": [{"id": "e", "text": "t"}]},
    ]
    found = [record_hash(questions(lines(a_question(**change)))[0]) for change in changes]
    assert len(set(found)) == len(changes)


def test_the_order_of_keys_in_a_file_does_not_change_a_hash() -> None:
    forward, backward = a_debate(), dict(reversed(a_debate().items()))
    hashes = {record_hash(debates(lines(item))[0]) for item in (forward, backward)}
    assert len(hashes) == 1


def test_a_question_and_a_debate_never_share_a_hash() -> None:
    question = questions(lines(a_question()))[0]
    debate = debates(lines(a_debate()))[0]
    assert record_hash(question) != record_hash(debate)
