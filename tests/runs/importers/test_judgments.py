"""Judgments of our own format: what is read, and every fault with its line and field."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.importers.judged_records import (
    JUDGMENT_STATUSES,
    CandidateRecord,
    ItemRecord,
    JudgeRecord,
    JudgmentRecord,
    judgment_hash,
)
from runs.importers.judged_registry import write_judgments
from tests.runs.importers.helpers import lines
from tests.runs.importers.judged import CANDIDATES, a_judgment, judgment_faults, judgments
from tests.runs.importers.test_round_trip import FULL_TEXTS, METADATA, NAMES, TEXTS

JUDGE = {
    "name": "gpt",
    "model": "gpt-4",
    "model_version": "0613",
    "prompt_hash": "ab12",
    "rubric_version": "2",
    "decoding": {"temperature": 0.2},
}


def test_a_judgment_is_read_with_everything_it_says() -> None:
    row = a_judgment(
        judge=JUDGE,
        order=["b", "a"],
        repeat=1,
        verdict="tie",
        scores={"a": 7.5, "b": -1},
        rationale="Both are short.",
        gold="a",
        group="easy",
        question_id="q1",
        seconds=2.5,
    )
    (record,) = judgments(lines(row))
    assert record.item == ItemRecord(
        "i1",
        "q1",
        "2 + 2?",
        (CandidateRecord("a", "Four.", "m"), CandidateRecord("b", "Five.", "n")),
        gold="a",
        group="easy",
    )
    assert record.judge == JudgeRecord("gpt", "gpt-4", "0613", "ab12", "2", {"temperature": 0.2})
    assert (record.order, record.repeat, record.verdict) == (("b", "a"), 1, "tie")
    assert record.scores == {"a": 7.5, "b": -1.0}
    assert record.metadata == {"seconds": 2.5}


def test_the_cluster_is_the_item_where_no_question_is_named() -> None:
    (record,) = judgments(lines(a_judgment()))
    assert record.item.question_id == "i1"


def test_a_judge_by_name_only_is_that_judge() -> None:
    (record,) = judgments(lines(a_judgment()))
    assert record.judge == JudgeRecord("j")


@pytest.mark.parametrize("part", sorted(JUDGE))
def test_judges_that_differ_in_anything_have_different_hashes(part: str) -> None:
    other = {"temperature": 0.7} if part == "decoding" else "other"
    found = judgments(
        lines(a_judgment(judge=JUDGE), a_judgment(judge={**JUDGE, part: other}, repeat=1))
    )
    assert len({record.judge.judge_hash for record in found}) == 2


def test_a_judgment_without_a_status_succeeded_only_with_a_verdict() -> None:
    rows = [a_judgment(status=...), a_judgment(status=..., verdict=None, repeat=1)]
    assert [record.status for record in judgments(lines(*rows))] == ["SUCCEEDED", "INVALID"]


@pytest.mark.parametrize("status", ["FAILED", "TIMEOUT", "INVALID"])
def test_a_judge_that_said_nothing_is_no_tie(status: str) -> None:
    (record,) = judgments(lines(a_judgment(status=status, verdict=None)))
    assert (record.status, record.verdict) == (status, None)


def test_a_candidate_may_have_said_nothing() -> None:
    silent = [{**CANDIDATES[0], "text": ""}, CANDIDATES[1]]
    (record,) = judgments(lines(a_judgment(candidates=silent)))
    assert record.item.candidates[0].text == ""


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"item_id": ...}, "item_id: is missing"),
        ({"item_id": "a\u202eb"}, 'item_id: holds a control character: "a\\u202eb"'),
        ({"question": " "}, "question: is empty"),
        ({"candidates": []}, "candidates: must list at least one candidate"),
        ({"candidates": "a"}, 'candidates: must be a list, not "a"'),
        ({"candidates": [{"candidate_id": "a"}]}, "candidates[0].text: is missing"),
        ({"candidates": CANDIDATES[:1] * 2}, 'candidates[1].candidate_id: "a" stands twice'),
        (
            {"candidates": [{"candidate_id": "tie", "text": ""}]},
            'candidates[0].candidate_id: "tie" is no name to choose',
        ),
        ({"judge": ...}, "judge: is missing"),
        ({"judge": {"model": "m"}}, "judge.name: is missing"),
        ({"judge": {**JUDGE, "prompt_hash": "x" * 65}}, "judge.prompt_hash: is longer than 64"),
        ({"judge": 3}, "judge: must be an object, not 3"),
        ({"order": ...}, "order: is missing"),
        ({"order": ["a", "z"]}, 'order[1]: "z" is none of the candidates'),
        ({"order": ["a", "a"]}, 'order[1]: "a" stands twice'),
        ({"order": ["a"]}, 'order: leaves out "b"'),
        ({"repeat": -1}, "repeat: must be from 0 to 2^53 - 1, not -1"),
        ({"verdict": ...}, "verdict: is missing"),
        ({"verdict": "z"}, 'verdict: "z" is none of the candidates, tie or abstain'),
        ({"verdict": None}, "verdict: is null, but the status is SUCCEEDED"),
        ({"status": "INVALID"}, "verdict: is given, but the status is INVALID"),
        ({"status": "OK"}, "status: must be one of SUCCEEDED, FAILED, TIMEOUT, INVALID"),
        ({"scores": {"z": 1}}, "scores.z: is none of the candidates"),
        ({"scores": {"a": "7"}}, 'scores.a: must be a number, not "7"'),
        ({"gold": "z"}, 'gold: "z" is none of the candidates and not tie'),
    ],
)
def test_a_faulty_judgment_is_refused_with_its_line(changes: dict[str, Any], fault: str) -> None:
    text = lines(a_judgment(repeat=7), a_judgment(**changes))
    assert any(found.startswith(f"j.jsonl:2: {fault}") for found in judgment_faults(text))


def test_one_judgment_twice_is_refused() -> None:
    faults = judgment_faults(lines(a_judgment(), a_judgment(repeat=1), a_judgment(verdict="b")))
    what = '"i1" by "j" in this order with repeat 0 stands on line 1 already'
    assert faults == [f"j.jsonl:3: item_id: {what}"]


@pytest.mark.parametrize(
    "changes",
    [{"question": "2 + 3?"}, {"gold": "b"}, {"group": "g"}, {"candidates": CANDIDATES[::-1]}],
)
def test_one_item_is_the_same_in_the_whole_file(changes: dict[str, Any]) -> None:
    faults = judgment_faults(lines(a_judgment(), a_judgment(repeat=1, **changes)))
    assert faults == ['j.jsonl:2: item_id: "i1" is another item than on line 1']


@st.composite
def judgment_records(draw: st.DrawFn) -> JudgmentRecord:
    ids = draw(st.lists(NAMES.filter(lambda name: name not in ("tie", "abstain")), min_size=1,
                        max_size=4, unique=True))  # fmt: skip
    maybe_name = st.none() | NAMES
    status = draw(st.sampled_from(JUDGMENT_STATUSES))
    item_id = draw(NAMES)
    return JudgmentRecord(
        item=ItemRecord(
            item_id,
            draw(st.just(item_id) | NAMES),
            draw(FULL_TEXTS),
            tuple(CandidateRecord(own, draw(TEXTS), draw(maybe_name)) for own in ids),
            gold=draw(st.none() | st.sampled_from([*ids, "tie"])),
            group=draw(maybe_name),
            metadata=draw(METADATA),
        ),
        judge=JudgeRecord(
            draw(NAMES),
            draw(maybe_name),
            draw(maybe_name),
            decoding=draw(METADATA),
            metadata=draw(METADATA),
        ),  # fmt: skip
        order=tuple(draw(st.permutations(ids))),
        repeat=draw(st.integers(0, 9)),
        verdict=draw(st.sampled_from([*ids, "tie", "abstain"])) if status == "SUCCEEDED" else None,
        status=status,
        scores=draw(st.none() | st.fixed_dictionaries({ids[0]: st.floats(-9, 9)})),
        rationale=draw(st.none() | TEXTS),
        metadata=draw(METADATA),
    )


@given(judgment_records())
def test_judgments_come_back_as_they_were_written(record: JudgmentRecord) -> None:
    stream = io.StringIO()
    assert write_judgments([record], stream) == 1
    (found,) = judgments(stream.getvalue())
    assert found == record
    assert judgment_hash(found) == judgment_hash(record)
