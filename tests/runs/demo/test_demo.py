"""What the demonstration brings is right, complete and says that it is simulated."""

from __future__ import annotations

from collections import Counter

import pytest

from runs.demo import EXPERIMENT_FILE, LOG_FILE, LOG_NAME, QUESTIONS_FILE, QUESTIONS_NAME
from runs.experiment_file import parse, unsupported
from runs.experiment_starts import STARTS
from runs.importers.records import ANSWER_TYPES, DebateRecord, QuestionRecord
from runs.importers.registry import guess_format, read_debates, read_questions
from runs.protocols.presets import load_preset


def questions() -> dict[str, QuestionRecord]:
    return {record.id: record for record in read_questions(QUESTIONS_FILE)}


def log() -> list[DebateRecord]:
    return list(read_debates(LOG_FILE))


def test_there_are_twenty_questions_over_all_answer_types() -> None:
    found = questions().values()
    assert len(found) == 20
    assert {record.answer_type for record in found} == set(ANSWER_TYPES)
    assert all(record.stratum for record in found)
    assert sum(1 for record in found if record.evidence) == 3


def test_every_question_that_can_be_scored_has_a_reference() -> None:
    for record in questions().values():
        assert bool(record.reference) == (record.answer_type != "open")


def test_references_that_can_be_computed_are_right() -> None:
    found = {key: record.reference[0] for key, record in questions().items() if record.reference}
    assert found["library-loans"] == str(48 + 48 // 2 - 15)
    assert found["train-minutes"] == str((12 * 60 + 15) - (9 * 60 + 40))
    assert found["jacket-price"] == f"{80 * 1.25 * 0.75:g}"
    assert found["three-or-five"] == str(sum(n % 3 == 0 or n % 5 == 0 for n in range(1, 101)))
    assert found["handshakes"] == str(6 * 5 // 2)
    assert found["ferry-crossings"] == str(14 - 2 + 9)
    assert found["inner-word"] == "stones"[1:-1]
    primes = [n for n in (51, 57, 59, 63) if all(n % k for k in range(2, n))]
    assert found["prime-number"] == str(primes[0])


def test_the_experiment_asks_for_the_questions_and_can_start() -> None:
    spec = parse(EXPERIMENT_FILE.read_text(encoding="utf-8"), EXPERIMENT_FILE.name)
    assert spec.questions == QUESTIONS_NAME
    assert unsupported(spec) == []
    assert [arm.name for arm in spec.arms] == ["debate", "revise-alone", "vote"]
    models = {model for arm in spec.arms for model in arm.models.values()}
    assert all(model.startswith("simulated:") for model in models)
    assert LOG_NAME != spec.name != QUESTIONS_NAME


@pytest.mark.parametrize("kind", ["demo", *STARTS])
def test_arms_that_are_compared_read_the_same_initial_answers_as_the_same_vote(kind: str) -> None:
    """Else their plurality at t = 0 would differ where the answers are the same (S27)."""
    if kind == "demo":
        protocols = [arm.protocol for arm in parse(EXPERIMENT_FILE.read_text(), "demo").arms]
    else:
        protocols = [arm["protocol"] for arm in STARTS[kind][1]["arms"]]
    ties = {load_preset(name).aggregation.tie for name in protocols}
    assert ties == {("abstain",)}


def test_the_log_is_twelve_debates_about_questions_of_the_set() -> None:
    known = questions()
    found = log()
    assert guess_format(LOG_FILE.name, LOG_FILE.read_bytes()) == "jsonl"
    assert len(found) == 12
    for record in found:
        own = known[record.question.id]
        assert record.question.question == own.question
        assert record.question.reference == own.reference
        assert (len(record.agents), len(record.rounds)) == (3, 3)
        assert record.reads_known == "recorded"


def test_every_reply_of_the_log_says_that_it_is_simulated() -> None:
    for record in log():
        assert record.metadata["simulated"] is True
        assert {agent.model for agent in record.agents} == {"simulated"}
        said = [turn.text for turns in record.rounds for turn in turns if turn.text is not None]
        assert said
        assert all(text.startswith("[simulated] ") for text in said)


def test_the_log_holds_changes_in_both_directions_and_failures() -> None:
    changes: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for record in log():
        statuses.update(turn.status for turns in record.rounds for turn in turns)
        for agent in range(3):
            first, last = record.rounds[0][agent].answer, record.rounds[-1][agent].answer
            changes[_right(record, first) + _right(record, last)] += 1
    assert changes["WR"] >= 8
    assert changes["RW"] >= 1
    assert (statuses["TIMEOUT"], statuses["INVALID"]) == (1, 1)


def _right(record: DebateRecord, answer: str | None) -> str:
    references = {reference.casefold() for reference in record.question.reference}
    if record.question.choices and answer:
        answer = record.question.choices["ABCD".index(answer)]
    return "R" if answer is not None and answer.casefold() in references else "W"
