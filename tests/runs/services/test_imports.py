"""Imports on the database: whole or not at all, once, and under one name (formats.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from django.db import transaction

from debateweb.errors import InputError
from debateweb.models import AuditEvent, Workspace
from runs.importers.faults import Fault, ImportFaults
from runs.importers.records import QuestionRecord
from runs.importers.registry import read_questions
from runs.models import Debate, DebateSet, Name, Question, QuestionSet
from runs.services.imports import Imported, import_debates, import_questions
from runs.services.naming import NameTakenError
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories
from tests.runs.services.test_frozen_rows import a_debate


@pytest.fixture
def home(db: None) -> Workspace:
    return factories.workspace()


def import_as(home: Workspace, name: str, records: Iterable[QuestionRecord]) -> Imported:
    return import_questions(workspace=home, name=name, format_name="jsonl", records=records)


def test_questions_are_stored_in_their_order_with_their_hashes(home: Workspace) -> None:
    done = import_as(home, "set", factories.questions(1200))
    stored = QuestionSet.objects.get()
    assert (done.size, done.added, stored.size) == (1200, True, 1200)
    rows = list(stored.questions.order_by("position").values_list("external_id", flat=True))
    assert rows == [f"q{i}" for i in range(1, 1201)]
    assert stored.questions.values("question_hash").distinct().count() == 1200


def test_a_fault_in_the_last_line_writes_nothing(home: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    line = '{"id": "q%d", "question": "What?", "reference": "1", "answer_type": "number"}\n'
    path.write_text("".join(line % i for i in range(700)) + "{broken\n")
    with pytest.raises(ImportFaults, match=":701:"):
        import_as(home, "set", read_questions(path, "jsonl"))
    assert not QuestionSet.objects.exists()
    assert not Question.objects.exists()
    assert not Name.objects.exists()
    assert not AuditEvent.objects.exists()


def test_a_fault_of_the_database_in_the_last_batch_writes_nothing(home: Workspace) -> None:
    twice = [*factories.questions(600), factories.questions(1)[0]]
    with pytest.raises(Exception, match="question_id_once_per_set"), transaction.atomic():
        import_as(home, "set", twice)
    assert not QuestionSet.objects.exists()
    assert not Name.objects.exists()


def test_the_same_content_again_adds_nothing(home: Workspace) -> None:
    first = import_as(home, "set", factories.questions(3))
    again = import_as(home, "set", factories.questions(3))
    assert (again.added, again.content_hash, again.size) == (False, first.content_hash, 3)
    assert Question.objects.count() == 3
    assert AuditEvent.objects.filter(act="questions.import").count() == 1


def test_other_content_under_a_taken_name_is_refused_in_one_line(home: Workspace) -> None:
    import_as(home, "set", factories.questions(3))
    changed = [*factories.questions(2), replace(factories.questions(3)[2], stratum="new")]
    with pytest.raises(NameTakenError, match="'set' is taken by other content"):
        import_as(home, "set", changed)
    assert Question.objects.count() == 3


def test_the_order_of_questions_is_content(home: Workspace) -> None:
    import_as(home, "set", factories.questions(3))
    with pytest.raises(NameTakenError):
        import_as(home, "set", factories.questions(3)[::-1])


def test_a_name_stands_for_one_thing_across_kinds(home: Workspace, tmp_path: Path) -> None:
    import_as(home, "set", factories.questions(1))
    with pytest.raises(NameTakenError, match="'set'"):
        import_debates(workspace=home, name="set", format_name="jsonl", records=[a_debate()])
    import_debates(workspace=home, name="log", format_name="jsonl", records=[a_debate()])
    with pytest.raises(NameTakenError, match="'log'"):
        import_as(home, "log", factories.questions(2))
    with pytest.raises(NameTakenError, match="'log'"):
        factories.experiment(tmp_path, in_workspace=home, name="log")


@pytest.mark.parametrize("name", ["", "x" * 101, " set", "set\n", "a/b", "../set", "a\u202eb"])
def test_a_name_that_cannot_be_written_elsewhere_is_refused(home: Workspace, name: str) -> None:
    with pytest.raises(InputError, match="name"):
        import_as(home, name, factories.questions(1))
    with pytest.raises(InputError, match="name"):
        import_debates(workspace=home, name=name, format_name="jsonl", records=[a_debate()])
    assert not Name.objects.exists()


def test_a_name_may_be_of_any_language(home: Workspace) -> None:
    assert import_as(home, "Frågor 1, ä=b", factories.questions(1)).added


def test_another_workspace_has_names_of_its_own(home: Workspace) -> None:
    import_as(home, "set", factories.questions(1))
    other = import_as(factories.workspace(), "set", factories.questions(2))
    assert other.added
    assert QuestionSet.objects.count() == 2


def test_debates_come_with_their_questions_once(home: Workspace) -> None:
    records = [a_debate(), replace(a_debate(), debate_id="d2", seed=2)]
    first = import_debates(workspace=home, name="log", format_name="jsonl", records=records)
    again = import_debates(workspace=home, name="log", format_name="jsonl", records=records)
    assert (first.added, again.added) == (True, False)
    assert Debate.objects.count() == 2
    assert DebateSet.objects.get().question_set.size == Question.objects.count() == 1


def test_an_import_that_breaks_midway_in_debates_writes_nothing(home: Workspace) -> None:
    def broken() -> Iterator[object]:
        yield a_debate()
        raise ImportFaults((Fault("log.jsonl", 2, "rounds", "is missing"),))

    with pytest.raises(ImportFaults):
        import_debates(workspace=home, name="log", format_name="jsonl", records=broken())  # type: ignore[arg-type]
    assert not DebateSet.objects.exists()
    assert not Name.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_imports_at_once_under_one_name_one_is_refused() -> None:
    home = factories.workspace()

    def other() -> str:
        try:
            import_as(home, "set", factories.questions(2))
        except NameTakenError as exc:
            return str(exc)
        return "added"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            import_as(home, "set", factories.questions(1))
            waiting = pool.submit(in_own_session(other))
            wait_for_blocked_session()
        assert "'set' is taken" in waiting.result(timeout=10)
    assert QuestionSet.objects.get().size == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_imports_at_once_of_the_same_content_one_adds_it() -> None:
    home = factories.workspace()

    def other() -> tuple[bool, bool]:
        questions = import_as(home, "set", factories.questions(2))
        log = import_debates(workspace=home, name="log", format_name="jsonl", records=[a_debate()])
        return questions.added, log.added

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            import_as(home, "set", factories.questions(2))
            import_debates(workspace=home, name="log", format_name="jsonl", records=[a_debate()])
            waiting = pool.submit(in_own_session(other))
            wait_for_blocked_session()
        assert waiting.result(timeout=10) == (False, False)
    assert QuestionSet.objects.filter(name="set").count() == 1
