"""Replay of stored runs: it agrees with what happened and names what was tampered with (S34)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from runs.engine.replay import replay
from runs.models import Experiment, Run
from runs.queries import question_by_id
from runs.services.verify import run_record, verify_experiment
from tests.runs import factories
from tests.runs.checks import assert_verified
from tests.runs.scripted import Call, ScriptedGateway, replied, said

pytestmark = pytest.mark.django_db


def eventful(call: Call) -> Any:
    """An invalid reply, an inactive agent, changing answers."""
    if call.agent_id == "c" and call.t != 1:
        return replied("nothing") if call.t == 2 else said("3")
    return said(str(2 + call.t * (call.agent_id == "b")))


@pytest.fixture
def made(tmp_path: Path) -> Experiment:
    agents = [{"id": name, "decoding": {"seeded": True}} for name in "abc"]
    made = factories.experiment(tmp_path, protocol={"agents": agents})
    done = factories.finish(made, ScriptedGateway(eventful))
    assert_verified(done)
    return done


_ONE = "(SELECT id FROM {table} WHERE {where} ORDER BY id LIMIT 1)"


@pytest.mark.parametrize(
    ("table", "where", "change", "named"),
    [
        ("runs_state", "round = 1", "text = text || '!'", "text"),
        ("runs_state", "round = 1", "answer_value = '9'", "answer"),
        ("runs_state", "round = 0", "content_hash = repeat('1', 64)", "content_hash"),
        ("runs_state", "round = 2", "raw_hash = repeat('1', 64)", "raw_hash"),
        ("runs_attempt", "t = 1", "prompt = replace(prompt, 'What', 'who')", "prompt"),
        ("runs_attempt", "t = 1", "request_digest = repeat('1', 64)", "request_digest"),
        ("runs_attempt", "t = 1", "read_set = jsonb_set(read_set, '{entries}', '[]')", "read_set"),
        ("runs_attempt", "t = 2", "parent_version = parent_version + 1", "parent_version"),
        ("runs_attemptoutcome", "true", "raw = 'So the answer is 9.'::bytea", "state"),
        ("runs_attemptoutcome", "true", "finish_reason = 'length'", "verdict"),
        ("runs_attemptoutcome", "true", "status = 'TIMEOUT'", "verdict"),
        ("runs_verdict", "t = 1", "status = 'TIMEOUT'", "verdict.status"),
        ("runs_verdict", "t = 1", "reason = 'because'", "verdict.reason"),
        ("runs_epoch", "t = 1", "snapshot_hash = repeat('1', 64)", "snapshot_hash"),
        ("runs_commit", "t = 0", "active = '[\"a\"]'", "active"),
        ("runs_commit", "t = 0", "snapshot_hash = repeat('1', 64)", "snapshot_hash"),
        ("runs_commit", "t = 2", "snapshot_hash = repeat('1', 64)", "snapshot_hash"),
        ("runs_commit", "t = 1", "scheduled = '[\"a\"]'", "scheduled"),
        ("runs_aggregate", "true", "answer_value = '9'", "answer"),
        ("runs_aggregate", "true", "counts = '[[\"9\", 3]]'", "counts"),
        ("runs_aggregate", "true", "tied = NOT tied", "tied"),
        ("runs_aggregate", "true", "unresolved = NOT unresolved", "unresolved"),
        ("runs_run", "true", "seed = seed + 1", "request_digest"),
        ("runs_run", "true", "question_hash = repeat('1', 64)", "question_hash"),
        ("runs_run", "true", "protocol_hash = repeat('1', 64)", "protocol_hash"),
        ("runs_run", "true", "evidence_hash = repeat('1', 64)", "evidence_hash"),
        ("runs_run", "true", "stop_reason = 'unanimous'", "stop.reason"),
        ("runs_run", "true", "stop_observables = '{}'", "stop.observables"),
        ("runs_run", "true", "snapshot_hash = repeat('1', 64)", "snapshot_hash"),
        ("runs_attempt", "t = 1", "decoding = jsonb_set(decoding, '{seed}', '5')", "digest"),
        ("runs_attempt", "t = 1", "decoding = decoding || '{\"top_p\": 0.1}'", "decoding"),
        ("runs_question", "true", "text = text || '?'", "question_hash"),
        ("runs_message", "t = 1", "content_hash = repeat('1', 64)", "message"),
        ("runs_message", "t = 1", "recipients = '[]'", "message"),
    ],
)
def test_a_field_that_was_tampered_with_is_named(
    made: Experiment, table: str, where: str, change: str, named: str
) -> None:
    with transaction.atomic():
        tamper(table, f"UPDATE {table} SET {change} WHERE id = {_ONE}", where)
        question_by_id.cache_clear()
        _, found = verify_experiment(made, tell=lambda _done, _total: None)
        question_by_id.cache_clear()
        transaction.set_rollback(True)
    assert found, "nothing was noticed"
    assert named in str(found[0])


@pytest.mark.parametrize(
    ("table", "where"),
    [
        ("runs_state", "round = 2"),
        ("runs_verdict", "t = 1"),
        ("runs_attemptoutcome", "true"),
        ("runs_aggregate", "true"),
        ("runs_commit", "t = 2"),
        ("runs_message", "t = 0"),
    ],
)
def test_a_record_that_is_missing_is_noticed(made: Experiment, table: str, where: str) -> None:
    with transaction.atomic():
        tamper(table, f"DELETE FROM {table} WHERE id = {_ONE}", where)
        _, found = verify_experiment(made, tell=lambda _done, _total: None)
        transaction.set_rollback(True)
    assert found, "nothing was noticed"


def tamper(table: str, sql: str, where: str) -> None:
    """Change a record as only the owner of the tables could."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL session_replication_role = 'replica'")
        cursor.execute(sql.replace("{table}", table).replace("{where}", where))
        assert cursor.rowcount == 1


def test_a_run_under_way_replays_as_far_as_it_is(tmp_path: Path) -> None:
    made = factories.experiment(tmp_path)
    (run,) = factories.begin(made)
    factories.execute(run, ScriptedGateway(eventful))
    assert Run.objects.get().next_round == 1
    assert replay(run_record(run.pk)) == []


def test_every_run_is_told_of_as_it_is_checked(tmp_path: Path) -> None:
    made = factories.finish(factories.experiment(tmp_path, question_count=3))
    told: list[tuple[int, int]] = []
    count, found = verify_experiment(made, tell=lambda done, total: told.append((done, total)))
    assert (count, found) == (3, [])
    assert told == [(1, 3), (2, 3), (3, 3)]
