"""Rows that must not change cannot be changed, whoever tries (S37)."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, models, transaction
from django.db.models import F

from debateweb import webhooks
from debateweb.access import ensure_default_workspace, make_link
from debateweb.membership import invite
from debateweb.models import AuditEvent, Member, Role, User
from debateweb.tokens import create_token
from runs.importers.records import AgentRecord, DebateRecord, TurnRecord
from runs.models import (
    Account,
    CheckResult,
    Claim,
    Experiment,
    JudgeVerdict,
    ModelEntry,
    QuestionSet,
    Run,
    State,
)
from runs.services.imports import import_debates
from tests.runs import factories
from tests.runs.scripted import ScriptedGateway

pytestmark = pytest.mark.django_db

#: Never changed and never deleted.
FROZEN = {
    "debateweb_auditevent",
    "debateweb_traillink",
    "runs_aggregate",
    "runs_arm",
    "runs_attempt",
    "runs_attemptoutcome",
    "runs_checkresult",
    "runs_claim",
    "runs_commit",
    "runs_debate",
    "runs_epoch",
    "runs_judgeverdict",
    "runs_ledgerentry",
    "runs_message",
    "runs_modelentry",
    "runs_name",
    "runs_protocolversion",
    "runs_question",
    "runs_state",
    "runs_verdict",
}
#: Never deleted; only some columns move.
GUARDED = {
    "debateweb_apitoken",
    "debateweb_invitation",
    "debateweb_webhookdelivery",
    "debateweb_webhookendpoint",
    "runs_account",
    "runs_debateset",
    "runs_experiment",
    "runs_questionset",
    "runs_run",
}
#: Never deleted; names and archive marks move.
KEPT = {"debateweb_workspace", "debateweb_member"}
#: Accounts of people: no record of a debate.
FREE = {
    "debateweb_onetimelink",
    "debateweb_user",
    "debateweb_user_groups",
    "debateweb_user_user_permissions",
}


@pytest.fixture
def everything(tmp_path: Path) -> Experiment:
    """A finished experiment, and a row in every table that a debate does not fill."""
    workspace = ensure_default_workspace()
    made = factories.finish(factories.experiment(tmp_path, in_workspace=workspace))
    state = State.objects.first()
    assert state is not None
    claim = Claim.objects.create(state=state, claim_id="c1", claim_hash="0" * 64, text="so")
    CheckResult.objects.create(
        claim=claim,
        verifier_id="v",
        verifier_version="1",
        status="PASS",
        scope="all",
        observed="",
        input_hash="0" * 64,
    )
    JudgeVerdict.objects.create(
        run=Run.objects.all()[0],
        t=3,
        position=1,
        call_id="judge:1",
        order=["2", "3"],
        repeat=1,
        status="SUCCEEDED",
        said="tie",
    )
    ModelEntry.objects.create(workspace=workspace, name="m", version=1, body={})
    import_debates(workspace=workspace, name="log", format_name="jsonl", records=[a_debate()])
    user = User.objects.create_user("alice")
    Member.objects.create(workspace=workspace, user=user, role="owner")
    make_link(user=user)
    invite(workspace=workspace, role=Role.READER, note="", actor=user)
    create_token(user=user, name="t")
    events = [webhooks.LABEL_SUBMIT]
    webhooks.add_endpoint(workspace=workspace, url="https://x.example/", events=events, actor=user)
    webhooks.emit(workspace, webhooks.LABEL_SUBMIT, {})
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # The trail is chained at commit.
    return made


def a_debate() -> DebateRecord:
    return DebateRecord(
        debate_id="d1",
        question=factories.questions(1)[0],
        protocol="du",
        agents=(AgentRecord(agent_id="a", model="m"),),
        rounds=((TurnRecord(agent_id="a", answer="2"),),),
    )


def _table_of(name: str) -> type[models.Model]:
    return next(m for m in apps.get_models(include_auto_created=True) if m._meta.db_table == name)


def _refused(sql: str, *params: int) -> None:
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, params)


def test_every_table_has_a_place_among_the_rules() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            " AND (tablename LIKE 'runs\\_%%' OR tablename LIKE 'debateweb\\_%%')",
            [],
        )
        tables = {name for (name,) in cursor.fetchall()}
    assert tables == FROZEN | GUARDED | KEPT | FREE


def test_no_row_of_a_frozen_table_can_be_changed(everything: Experiment) -> None:
    for table in sorted(FROZEN):
        model = _table_of(table)
        assert model._default_manager.exists(), f"{table} holds nothing to try on"
        for field in model._meta.concrete_fields:
            _refused(f"UPDATE {table} SET {field.column} = {field.column}")
        name = next(f.attname for f in model._meta.concrete_fields if not f.primary_key)
        with pytest.raises(DatabaseError), transaction.atomic():
            model._default_manager.update(**{name: F(name)})


def test_no_row_of_a_record_can_be_deleted(everything: Experiment) -> None:
    for table in sorted(FROZEN | GUARDED | KEPT):
        assert _table_of(table)._default_manager.exists(), f"{table} holds nothing to try on"
        _refused(f"DELETE FROM {table}")


def test_the_refusal_says_which_rule(everything: Experiment) -> None:
    with pytest.raises(DatabaseError, match=r"UPDATE of runs_state is refused.*S37"):
        State.objects.update(text="better")


@pytest.mark.parametrize(
    "change",
    [
        "seed = seed + 1",
        "question_hash = repeat('1', 64)",
        "protocol_hash = repeat('1', 64)",
        "evidence_hash = repeat('1', 64)",
        "position = position + 1",
        "in_stage = NOT in_stage",
        "branch_source_id = id",
        "fence = fence - 1",
        "next_round = next_round - 1",
    ],
)
def test_what_binds_a_run_cannot_be_changed(tmp_path: Path, change: str) -> None:
    (run,) = factories.begin(factories.experiment(tmp_path))
    factories.execute(run, ScriptedGateway())
    _refused(f"UPDATE runs_run SET {change} WHERE id = %s", run.pk)
    assert Run.objects.filter(pk=run.pk).update(rung_at=None) == 1


def test_a_run_that_is_done_stays_as_it_ended(everything: Experiment) -> None:
    for change in ("status = 'RUNNING'", "stop_reason = 'error'", "lease_owner = 'x'"):
        _refused(f"UPDATE runs_run SET {change}")


@pytest.mark.parametrize(
    "change",
    [
        "name = 'other'",
        "spec = '{}'",
        "spec_hash = repeat('1', 64)",
        "analysis = '{}'",
        "analysis_hash = repeat('1', 64)",
        "deadline_seconds = 1",
        '"window" = 1000',
        "concurrency = 1000",
        "stage_questions = 1000",
        "stage_confirm_above_microusd = 1000",
        "created_at = now()",
        "created_by_id = NULL, question_set_id = -1",
    ],
)
def test_what_an_experiment_promised_cannot_be_changed(everything: Experiment, change: str) -> None:
    _refused(f"UPDATE runs_experiment SET {change}")


def test_an_experiment_and_imported_sets_can_be_archived(everything: Experiment) -> None:
    for table in ("runs_experiment", "runs_questionset", "runs_debateset"):
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET archived_at = now()")
            assert cursor.rowcount > 0
    _refused("UPDATE runs_questionset SET name = 'other'")
    _refused("UPDATE runs_debateset SET rules = 'other'")


@pytest.mark.parametrize(
    "change",
    [
        "invitation SET role = 'owner'",
        "invitation SET expires_at = now()",
        "invitation SET token_sha256 = repeat('1', 64)",
        "apitoken SET token_sha256 = repeat('1', 64)",
        "apitoken SET user_id = user_id",
    ],
)
def test_what_a_link_or_a_key_promises_cannot_be_changed(
    everything: Experiment, change: str
) -> None:
    _refused(f"UPDATE debateweb_{change}")


@pytest.mark.parametrize("cap", ["cap_microusd", "cap_output_tokens"])
def test_a_cap_is_set_once(everything: Experiment, cap: str) -> None:
    _refused(f"UPDATE runs_account SET {cap} = {cap} + 1 WHERE {cap} IS NOT NULL")
    _refused(f"UPDATE runs_account SET {cap} = NULL WHERE {cap} IS NOT NULL")
    _refused(f"UPDATE runs_account SET {cap} = 1 WHERE {cap} IS NULL")
    assert Account.objects.filter(**{f"{cap}__isnull": True}).exists()


def test_a_question_set_is_found_as_it_was_imported(everything: Experiment) -> None:
    assert QuestionSet.objects.filter(content_hash="").count() == 0
    assert AuditEvent.objects.filter(act="questions.import").exists()
