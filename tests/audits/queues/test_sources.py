"""What queues are drawn from: the right items, split strictly into shown and secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from audits.labelling.design import QueueDesign
from audits.queue_models import Item, ItemSecret, QueueKind
from audits.queues.creating import create_queue, planned
from audits.queues.designs import PRESETS, new_queue, read_document
from audits.queues.errors import QueueDesignError
from audits.queues.sources import Source, source_items, state_hash
from debateweb.models import Workspace
from runs.importers.records import AgentRecord, DebateRecord, QuestionRecord, TurnRecord
from runs.providers.base import ProviderReply
from runs.services.imports import import_debates
from tests.audits.judging import making
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, replied

pytestmark = pytest.mark.django_db
MARKER = "acme/planted-model"


def design(kind: QueueKind, **fields: Any) -> QueueDesign:
    return QueueDesign(label=PRESETS[kind], overlap=1, **fields)


def debates(home: Workspace, name: str = "logs", n: int = 1) -> None:
    records = []
    for i in range(n):
        question = QuestionRecord(f"q{i}", "Which?", ("Red",), "choice", choices=("Red", "Blue"))
        agents = (
            AgentRecord("planted-one", MARKER, side="Blue"),
            AgentRecord("planted-two", MARKER, side="Red"),
        )
        rounds = tuple(
            tuple(
                TurnRecord(who, answer, text=f"Round {t}: it is {answer}.")
                for who, answer in (("planted-one", "Blue"), ("planted-two", "Red"))
            )
            for t in range(3)
        )
        records.append(DebateRecord(f"planted-{i}", question, "p", agents=agents, rounds=rounds))
    import_debates(workspace=home, name=name, format_name="jsonl", records=records)


def as_text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("runs.dispatch.current_app", Mock())
    return factories.finish(factories.experiment(tmp_path, question_count=2))


def test_an_experiment_gives_the_first_and_last_answer_of_each_agent(experiment: Any) -> None:
    source = Source(kind="experiment", name=experiment.name, questions="all")
    kind = QueueKind.ANSWER
    found = source_items(experiment.workspace, source, kind, design(kind))
    assert len(found) == 2 * 3 * 2
    assert {item.secret["end"] for item in found} == {"first", "last"}
    for item in found:
        assert set(item.shown) == {"question", "answer"}
        assert item.secret["model"] and item.secret["arm"] == "debate"


def test_a_transition_is_two_items_of_one_unit(experiment: Any) -> None:
    source = Source(kind="experiment", name=experiment.name, questions="all")
    kind = QueueKind.ANSWER
    found = source_items(experiment.workspace, source, kind, design(kind, unit="transition"))
    units = [item.unit_id for item in found]
    assert len(found) == 12 and {units.count(unit) for unit in units} == {2}


def test_only_open_questions_are_taken_by_default(experiment: Any) -> None:
    source = Source(kind="experiment", name=experiment.name)
    kind = QueueKind.ANSWER
    assert source_items(experiment.workspace, source, kind, design(kind)) == []


def test_the_reference_is_shown_only_where_the_design_says_so(experiment: Any) -> None:
    source = Source(kind="experiment", name=experiment.name, questions="all")
    kind = QueueKind.ANSWER
    sealed = source_items(experiment.workspace, source, kind, design(kind))
    told = source_items(experiment.workspace, source, kind, design(kind, show_reference=True))
    assert all("reference" not in item.shown for item in sealed)
    assert {item.shown["reference"] for item in told} == {"2", "4"}
    assert state_hash(sealed) != state_hash(told)


def test_judgments_give_pairs_with_models_and_verdicts_in_the_secret() -> None:
    made = making.judged(making.audit(making.pairs(4, model=MARKER)), making.first)
    for kind in (QueueKind.PAIR, QueueKind.JUDGE):
        source = Source(kind="judgments", name=made.name)
        found = source_items(made.workspace, source, kind, design(kind))
        assert len(found) == 4
        for item in found:
            assert MARKER not in as_text(item.shown)
            assert MARKER in as_text(item.secret)
            assert item.flagged, "always the first: the verdict follows the order"
            assert {one["verdict"] for one in item.secret["verdicts"]} == {"one", "two"}


def test_debates_show_neutral_speakers_and_options_and_hide_sides_and_models() -> None:
    home = factories.workspace()
    debates(home)
    kind = QueueKind.DEBATE
    (item,) = source_items(home, Source(kind="debates", name="logs"), kind, design(kind))
    assert len(item.shown["turns"]) == 6
    assert [one["candidate_id"] for one in item.shown["candidates"]] == ["o1", "o2"]
    assert "planted" not in as_text(item.shown)
    assert item.secret["sides"] == {"planted-one": "Blue", "planted-two": "Red"}
    assert item.secret["correct"] == "o1" and "assigned" not in item.secret


def test_debates_give_the_ends_of_each_agent_as_answers() -> None:
    home = factories.workspace()
    debates(home)
    source, kind = Source(kind="debates", name="logs", questions="all"), QueueKind.ANSWER
    found = source_items(home, source, kind, design(kind))
    assert len(found) == 4 and all(item.flagged for item in found)
    assert "planted" not in as_text([dict(item.shown) for item in found])
    masked = source_items(home, source, kind, design(kind, mask_giveaways=True))
    assert all(item.secret["giveaways"] == {"time": 1} for item in masked)


def test_differently_worded_answers_of_one_value_are_a_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.dispatch.current_app", Mock())
    words = {"a": "4", "b": "4.0", "c": "5"}

    def script(call: Call) -> ProviderReply:
        return replied(f"So.\nFinal answer: {words[call.agent_id]}")

    made = factories.finish(factories.experiment(tmp_path), ScriptedGateway(script))
    source, kind = Source(kind="experiment", name=made.name, questions="all"), QueueKind.MERGE
    (item,) = source_items(made.workspace, source, kind, design(kind))
    assert set(item.shown) == {"question", "candidates"}
    assert [one["text"] for one in item.shown["candidates"]] == ["4", "4.0"]
    assert item.secret["taken_for"] == "one" and item.stratum == "merged" and not item.flagged


DOCUMENT = """
name: beliefs
kind: debate
source: {kind: debates, name: logs}
design: {overlap: 2, sampling: {kind: random, n: 4}}
guideline: Read turn by turn.
seed: 5
"""


def test_a_document_makes_a_queue_with_weights_that_sum_to_the_source() -> None:
    home = factories.workspace()
    debates(home, n=10)
    new = new_queue(home, read_document(DOCUMENT))
    assert sum(one.weight for one in planned(new)) == pytest.approx(10)
    queue = create_queue(workspace=home, new=new, actor=None)
    assert queue.size == 4 and queue.slots.count() == 8
    assert queue.source["state_hash"] == state_hash(new.items)
    shown = list(Item.objects.filter(queue=queue).values_list("shown", flat=True))
    assert "planted" not in as_text(shown)
    assert ItemSecret.objects.filter(item__queue=queue, body__correct="o1").count() == 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("overlap: 2", "overlap: 0", "design.overlap: "),
        ("seed: 5", "sead: 5", "sead: "),
        ("name: beliefs", "name: [", "design: no YAML or JSON"),
        ("kind: debate\n", "kind: nothing\n", "kind: "),
    ],
)
def test_a_fault_in_a_document_is_told_by_field(old: str, new: str, said: str) -> None:
    with pytest.raises(QueueDesignError, match=said):
        read_document(DOCUMENT.replace(old, new))


def test_another_workspaces_source_does_not_exist() -> None:
    debates(factories.workspace())
    with pytest.raises(QueueDesignError, match="no debates 'logs'"):
        new_queue(factories.workspace(), read_document(DOCUMENT))


def test_a_source_says_which_kinds_it_does_not_give() -> None:
    document = read_document(DOCUMENT.replace("kind: debate\n", "kind: pair\n"))
    with pytest.raises(QueueDesignError, match="give no items of kind pair"):
        new_queue(factories.workspace(), document)
