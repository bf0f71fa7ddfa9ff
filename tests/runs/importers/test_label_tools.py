"""
Files of annotation tools, as the tools themselves write them; the texts in them are ours.

``samples/label_studio.json`` was exported by a Label Studio 1.23 server (export type JSON, all
tasks) after three people had answered three tasks over its API. ``samples/argilla.json`` was
written by argilla 2.8 (``JsonIO.to_json`` of ``Record`` objects), ``samples/langfuse_v2.json``
and ``_v3.json`` by the response models of the langfuse SDK 5.0.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runs.importers.argilla import user_id
from runs.importers.beside import open_files
from runs.importers.judged_records import CandidateRecord, ItemRecord, LabelRecord
from runs.importers.judged_registry import (
    TASK_WRITERS,
    guess_labels,
    read_labels,
    write_tasks,
)
from runs.importers.label_studio import label_config
from tests.runs.importers.helpers import lines
from tests.runs.importers.judged import label_faults, labels, tasks, written

SAMPLES = Path(__file__).with_name("samples")
ITEM = ItemRecord(
    "i1",
    "q1",
    "2 + 2?",
    (CandidateRecord("a", "4", "gpt"), CandidateRecord("b", "5", "llama")),
    gold="a",
    group="easy",
)
LABEL = LabelRecord("i1", "ann", "pairwise", "a", shown_order=("b", "a"), comment="Right.")
TOOLS = ("label_studio", "argilla", "langfuse")


def sample(name: str) -> Any:
    return json.loads((SAMPLES / name).read_text())


def in_short(records: list[LabelRecord]) -> list[tuple[str, str, str, Any]]:
    return [(r.item_id, r.annotator, r.kind, r.label) for r in records]


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("label_studio.json", "label_studio"),
        ("argilla.json", "argilla"),
        ("langfuse_v2.json", "langfuse"),
        ("langfuse_v3.json", "langfuse"),
    ],
)
def test_a_file_of_a_tool_is_known_by_its_beginning(name: str, format_name: str) -> None:
    with open_files(SAMPLES / name) as files:
        assert guess_labels(files) == format_name


def test_an_export_of_label_studio_has_every_control_of_every_person() -> None:
    found = list(read_labels(SAMPLES / "label_studio.json"))
    assert len(found) == 3 * (3 * 3) - 3  # One annotation was cancelled.
    assert in_short(found)[:3] == [
        ("1", "1", "pairwise", "answer_b"),
        ("1", "1", "scale", 1.0),
        ("1", "1", "correctness", "correct"),
    ]
    first = found[0]
    assert first.shown_order == ("answer_a", "answer_b")
    assert (first.active_seconds, first.comment) == (3.5, "Shorter.\nAnd right.")
    assert first.at == "2026-12-01T03:27:21.543637Z"


def test_what_label_studio_exported_goes_back_as_it_came() -> None:
    found = list(read_labels(SAMPLES / "label_studio.json"))
    assert json.loads(written(found, "label_studio")) == sample("label_studio.json")


def test_a_label_of_label_studio_that_is_changed_here_goes_back_changed() -> None:
    found = list(read_labels(SAMPLES / "label_studio.json"))
    found[1] = replace(found[1], label=5.0)
    found[2] = replace(found[2], label="incorrect")
    result = json.loads(written(found, "label_studio"))[0]["annotations"][0]["result"]
    assert [one["value"] for one in result[:3]] == [
        {"selected": "right"},
        {"rating": 5.0},
        {"choices": ["incorrect"]},
    ]


def test_the_tasks_of_label_studio_are_items() -> None:
    found = tasks((SAMPLES / "label_studio.json").read_bytes(), "label_studio")
    assert [item.item_id for item in found] == ["1", "2", "3"]
    assert found[0].question == "Which bird cannot fly?"
    assert [candidate.text for candidate in found[0].candidates] == ["The ostrich.", "The swift."]


def test_an_export_of_argilla_has_every_response_of_every_person() -> None:
    found = list(read_labels(SAMPLES / "argilla.json"))
    ann, bob = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
    assert in_short(found)[:4] == [
        ("q1", ann, "pairwise", "answer_a"),
        ("q1", bob, "pairwise", "answer_b"),
        ("q1", ann, "scale", 3.0),
        ("q1", bob, "scale", 4.0),
    ]
    assert [record.comment for record in found[:2]] == ["clear", None]
    assert len(found) == 8


def test_what_argilla_exported_goes_back_as_it_came() -> None:
    found = list(read_labels(SAMPLES / "argilla.json"))
    assert json.loads(written(found, "argilla")) == sample("argilla.json")


def test_the_records_of_argilla_are_items() -> None:
    found = tasks((SAMPLES / "argilla.json").read_bytes(), "argilla")
    assert [(item.item_id, item.question) for item in found] == [
        ("q1", "Which bird cannot fly?"),
        ("q2", "What is 7 times 8?"),
    ]


@pytest.mark.parametrize("status", ["draft", "discarded"])
def test_a_response_that_was_not_submitted_is_no_label(status: str) -> None:
    records = sample("argilla.json")
    records[0]["responses"]["preference"][0]["status"] = status
    assert len(labels(json.dumps(records), "argilla")) == 7


def test_scores_of_langfuse_are_labels_of_people_only() -> None:
    found = list(read_labels(SAMPLES / "langfuse_v2.json"))
    assert in_short(found) == [
        ("t1", "ann", "scale", 4.0),
        ("o1", "ann", "correctness", "correct"),
        ("t2", "bob", "correctness", "True"),
    ]
    assert (found[0].comment, found[0].at) == ("Clear.", "2026-03-01T09:00:00Z")


def test_a_page_of_langfuse_says_what_its_list_says() -> None:
    found = list(read_labels(SAMPLES / "langfuse_v3.json"))
    assert in_short(found) == [
        ("t1", "ann", "scale", 4.0),
        ("t1", "ann", "correctness", "correct"),
        ("t2", "bob", "correctness", "True"),
    ]


@pytest.mark.parametrize("name", ["langfuse_v2.json", "langfuse_v3.json"])
def test_what_langfuse_listed_goes_back_as_it_came(name: str) -> None:
    listed = sample(name)
    scores = listed["data"] if isinstance(listed, dict) else listed
    found = list(read_labels(SAMPLES / name))
    people = [score for score in scores if score["source"] == "ANNOTATION"]
    assert json.loads(written(found, "langfuse")) == people


def test_a_score_that_is_changed_here_goes_back_changed() -> None:
    found = list(read_labels(SAMPLES / "langfuse_v2.json"))
    changed = [replace(found[0], label=2.0), replace(found[1], label="incorrect")]
    scores = json.loads(written(changed, "langfuse"))
    assert (scores[0]["value"], scores[1]["stringValue"]) == (2.0, "incorrect")


@pytest.mark.parametrize("tool", TOOLS)
def test_items_go_out_blind(tool: str) -> None:
    text = written([LABEL], tool, [ITEM])
    assert not any(word in text for word in ("gpt", "llama", "gold", "easy"))


@pytest.mark.parametrize("tool", sorted(TASK_WRITERS))
def test_tasks_come_back_as_what_may_be_shown(tool: str, tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    with path.open("w") as stream:
        write_tasks([ITEM, replace(ITEM, item_id="i2")], stream, tool)
    first, second = tasks(path.read_bytes(), tool)
    shown = tuple(replace(candidate, model=None) for candidate in ITEM.candidates)
    assert first == ItemRecord("i1", "q1", "2 + 2?", shown)
    assert second.item_id == "i2"


def test_items_that_nobody_labelled_go_out_too() -> None:
    both = json.loads(written([LABEL], "label_studio", [replace(ITEM, item_id="i0"), ITEM]))
    assert [len(task["annotations"]) for task in both] == [0, 1]


def test_a_side_of_label_studio_is_the_side_on_which_it_shows_the_text() -> None:
    (task,) = json.loads(written([LABEL], "label_studio", [ITEM]))
    (first, _) = task["annotations"][0]["result"]
    assert (first["type"], first["value"]) == ("pairwise", {"selected": "left"})
    assert task["data"]["candidate_1"] == "4"


@pytest.mark.parametrize(
    ("value", "label"),
    [({"selected": "right"}, "b"), ({"selected": "left"}, "a")],
)
def test_a_label_that_was_changed_in_label_studio_wins(value: Any, label: str) -> None:
    (task,) = json.loads(written([LABEL], "label_studio", [ITEM]))
    task["annotations"][0]["result"][0]["value"] = value
    (found,) = labels(json.dumps([task]), "label_studio")
    assert found == replace(LABEL, label=label)


def test_a_label_that_was_changed_in_argilla_or_langfuse_wins() -> None:
    (record,) = json.loads(written([LABEL], "argilla", [ITEM]))
    record["responses"]["pairwise"][0]["value"] = "b"
    (score,) = json.loads(written([LABEL], "langfuse"))
    score.update(value="b", comment="Really.")
    assert labels(json.dumps([record]), "argilla") == [replace(LABEL, label="b")]
    assert labels(json.dumps([score]), "langfuse") == [replace(LABEL, label="b", comment="Really.")]


def test_a_response_that_was_deleted_in_argilla_is_gone() -> None:
    both = [LABEL, replace(LABEL, annotator="bob")]
    (record,) = json.loads(written(both, "argilla", [ITEM]))
    record["responses"]["pairwise"].pop(0)
    assert labels(json.dumps([record]), "argilla") == [both[1]]


def test_a_second_serving_goes_through_argilla_beside_the_first() -> None:
    both = [LABEL, replace(LABEL, shown_order=("a", "b"), label="b", comment=None)]
    text = written(both, "argilla", [ITEM])
    assert len(json.loads(text)[0]["responses"]["pairwise"]) == 1
    assert labels(text, "argilla") == both


def test_people_have_one_id_in_argilla_wherever_they_stand() -> None:
    assert user_id("ann") == user_id("ann") != user_id("bob")


@pytest.mark.parametrize(
    ("kind", "control"),
    [("pairwise", "<Pairwise"), ("scale", "<Number"), ("belief", "<TextArea"), ("check", "<Choic")],
)
def test_label_studio_gets_an_interface_for_each_kind(kind: str, control: str) -> None:
    config = label_config(kind, 2, ['a "quoted" <one>'])
    assert f"{control.rstrip('s')}" in config
    assert 'value="$candidate_2"' in config
    assert "<one>" not in config


def an_annotation(*result: Any, **changes: Any) -> str:
    one = {"id": 1, "completed_by": 7, "result": list(result), **changes}
    return json.dumps([{"id": 5, "data": {"text": "x"}, "annotations": [one]}])


CHOICE = {"from_name": "c", "to_name": "t", "type": "choices", "value": {"choices": ["good"]}}


def test_several_choices_are_kept_together() -> None:
    both = {**CHOICE, "value": {"choices": ["good", "short"]}}
    (found,) = labels(an_annotation(both), "label_studio")
    assert found.label == '["good", "short"]'


@pytest.mark.parametrize(
    "who", [{"id": 7, "email": "ann@example.org", "first_name": "Ann"}, {"id": 7}, 7]
)
def test_a_person_of_label_studio_is_an_address_or_a_number(who: Any) -> None:
    (found,) = labels(an_annotation(CHOICE, completed_by=who), "label_studio")
    assert found.annotator in ("ann@example.org", "7")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (an_annotation(CHOICE, completed_by=None), "annotations[0].completed_by: must name a"),
        (an_annotation(CHOICE, completed_by="a\u202eb"), "annotations[0].result[0].annotator: "),
        (an_annotation({"type": "labels"}), "annotations[0].result: holds no choices, rating"),
        (an_annotation(3), "annotations[0].result: must be a list of objects"),
        (an_annotation(CHOICE, lead_time=-1), "annotations[0].result[0].active_seconds: must be"),
        ('[{"id": 1}]', "data: is missing"),
        ('[{"data": {}, "annotations": []}]', "id: is missing"),
        ('[{"id": 1, "data": {}, "annotations": {}}]', "annotations: must be a list, not an"),
        ('[{"id": 1, "data": {}, "annotations": [1]}]', "annotations[0]: must be an object"),
    ],
)
def test_a_faulty_export_of_label_studio_is_refused(text: str, fault: str) -> None:
    assert label_faults(text, "label_studio")[0].startswith(f"l.jsonl:1: {fault}")


@pytest.mark.parametrize(
    ("record", "fault"),
    [
        ({"fields": {}, "responses": {"q": [{"value": 1, "user_id": "u"}]}}, "_server_id: is"),
        ({"id": "r", "responses": {"q": [{"value": 1}]}}, "responses.q[0].user_id: is missing"),
        ({"id": "r", "responses": {"q": [{"user_id": "u"}]}}, "responses.q[0].value: is missing"),
        ({"id": "r", "responses": {"q": 1}}, "responses.q: must be a list, not 1"),
        ({"id": "r", "metadata": {"debateweb": "{"}}, "metadata.debateweb: not valid JSON"),
    ],
)
def test_a_faulty_export_of_argilla_is_refused(record: dict[str, Any], fault: str) -> None:
    assert label_faults(lines(record), "argilla")[0].startswith(f"l.jsonl:1: {fault}")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"value": "x"}, 'value: must be a number, not "x"'),
        ({"dataType": "VECTOR"}, "dataType: must be one of NUMERIC, CATEGORICAL, BOOLEAN"),
        ({"traceId": None}, "traceId: is missing"),
        ({"timestamp": "soon"}, 'at: is no time of ISO 8601: "soon"'),
        ({"metadata": {"debateweb": {"kind": "scale"}}}, "debateweb.item_id: is missing"),
    ],
)
def test_a_faulty_score_of_langfuse_is_refused(changes: dict[str, Any], fault: str) -> None:
    score = {
        "traceId": "t",
        "name": "quality",
        "dataType": "NUMERIC",
        "value": 1,
        "source": "ANNOTATION",
        "authorUserId": "ann",
        **changes,
    }
    assert label_faults(lines(score), "langfuse")[0].startswith(f"l.jsonl:1: {fault}")
