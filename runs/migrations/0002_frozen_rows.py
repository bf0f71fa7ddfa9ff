"""
Rows that must not change cannot be changed, whoever tries (S37).

Row triggers hold against ``QuerySet.update()``, raw SQL and the admin alike. TRUNCATE is not a
row event: the application's role is never granted it.
"""

from django.db import migrations

REFUSE = """
CREATE OR REPLACE FUNCTION debateweb_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: its rows are never changed (S37)', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;

-- A run binds question, protocol, evidence and seed before its first call (S2), its fence and
-- its rounds only grow, and a run that is done stays as it ended.
CREATE OR REPLACE FUNCTION debateweb_guard_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.status = 'DONE'
        OR (OLD.experiment_id, OLD.arm_id, OLD.question_id, OLD.position, OLD.seed,
            OLD.question_hash, OLD.protocol_hash, OLD.evidence_hash, OLD.account_id,
            OLD.in_stage, OLD.branch_source_id)
           IS DISTINCT FROM
           (NEW.experiment_id, NEW.arm_id, NEW.question_id, NEW.position, NEW.seed,
            NEW.question_hash, NEW.protocol_hash, NEW.evidence_hash, NEW.account_id,
            NEW.in_stage, NEW.branch_source_id)
        OR NEW.fence < OLD.fence OR NEW.next_round < OLD.next_round
    THEN
        RAISE EXCEPTION 'run % is bound: this change is refused (S2, S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- Of an experiment only its progress and its archive mark move.
CREATE OR REPLACE FUNCTION debateweb_guard_experiment() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moving CONSTANT text[] :=
        ARRAY['status', 'started_at', 'stage_confirmed_at', 'ended_at', 'archived_at'];
BEGIN
    IF to_jsonb(OLD) - moving IS DISTINCT FROM to_jsonb(NEW) - moving THEN
        RAISE EXCEPTION 'experiment % is frozen: this change is refused (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- A cap is set once; what a run did not need it gives back by a release, not by a smaller cap.
CREATE OR REPLACE FUNCTION debateweb_guard_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.cap_microusd, OLD.cap_output_tokens)
       IS DISTINCT FROM (NEW.cap_microusd, NEW.cap_output_tokens)
    THEN
        RAISE EXCEPTION 'the cap of account % is refused a change (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- Names, authors and contents of imported sets stay; only the archive mark moves.
CREATE OR REPLACE FUNCTION debateweb_guard_archive() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(OLD) - 'archived_at' IS DISTINCT FROM to_jsonb(NEW) - 'archived_at' THEN
        RAISE EXCEPTION 'row % of % is refused a change (S37)', OLD.id, TG_TABLE_NAME
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""

FROZEN = [
    "runs_aggregate",
    "runs_arm",
    "runs_attempt",
    "runs_attemptoutcome",
    "runs_checkresult",
    "runs_claim",
    "runs_commit",
    "runs_debate",
    "runs_epoch",
    "runs_ledgerentry",
    "runs_message",
    "runs_modelentry",
    "runs_name",
    "runs_protocolversion",
    "runs_question",
    "runs_state",
    "runs_verdict",
]
GUARDED = {
    "runs_account": "debateweb_guard_account",
    "runs_debateset": "debateweb_guard_archive",
    "runs_experiment": "debateweb_guard_experiment",
    "runs_questionset": "debateweb_guard_archive",
    "runs_run": "debateweb_guard_run",
}


def _frozen(table: str) -> str:
    return (
        f"CREATE TRIGGER {table}_frozen BEFORE UPDATE OR DELETE ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_change();"
    )


def _guarded(table: str, function: str) -> str:
    return (
        f"CREATE TRIGGER {table}_guarded BEFORE UPDATE ON {table}"
        f" FOR EACH ROW EXECUTE FUNCTION {function}();"
        f"CREATE TRIGGER {table}_kept BEFORE DELETE ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_change();"
    )


def _statements() -> str:
    frozen = [_frozen(table) for table in FROZEN]
    guarded = [_guarded(table, function) for table, function in GUARDED.items()]
    return "\n".join(frozen + guarded)


class Migration(migrations.Migration):
    dependencies = [("runs", "0001_initial")]

    operations = [
        migrations.RunSQL(REFUSE, migrations.RunSQL.noop),
        migrations.RunSQL(_statements(), migrations.RunSQL.noop),
    ]
