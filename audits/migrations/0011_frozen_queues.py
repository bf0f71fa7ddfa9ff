"""What people and judges said stays as it was said; only progress moves (S37, decision 0070)."""

from django.db import migrations

FUNCTIONS = """
-- Of a queue only its progress moves, and a queue that was closed stays closed.
CREATE OR REPLACE FUNCTION debateweb_guard_queue() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moving CONSTANT text[] := ARRAY['status', 'closed_at', 'archived_at'];
BEGIN
    IF to_jsonb(OLD) - moving IS DISTINCT FROM to_jsonb(NEW) - moving
        OR (OLD.status = 'CLOSED' AND NEW.status <> 'CLOSED')
    THEN
        RAISE EXCEPTION 'queue % is frozen: this change is refused (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- A person may be admitted, limited, removed, and severed from their pseudonym: never swapped.
CREATE OR REPLACE FUNCTION debateweb_guard_annotator() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moving CONSTANT text[] :=
        ARRAY['capacity', 'admitted_at', 'removed_at', 'user_id', 'name'];
BEGIN
    IF to_jsonb(OLD) - moving IS DISTINCT FROM to_jsonb(NEW) - moving
        OR (NEW.user_id IS DISTINCT FROM OLD.user_id AND NEW.user_id IS NOT NULL)
        OR (NEW.name <> OLD.name AND NEW.user_id IS NOT NULL)
    THEN
        RAISE EXCEPTION 'annotator % is refused this change (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;

-- A slot stays what it is a slot of; the count of its leases only grows.
CREATE OR REPLACE FUNCTION debateweb_guard_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.item_id, OLD.queue_id, OLD.position, OLD.phase, OLD.ordinal)
       IS DISTINCT FROM (NEW.item_id, NEW.queue_id, NEW.position, NEW.phase, NEW.ordinal)
        OR NEW.fence < OLD.fence
    THEN
        RAISE EXCEPTION 'slot % is refused this change (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""

FROZEN = [
    "audits_adjudication",
    "audits_guideline",
    "audits_importedlabel",
    "audits_item",
    "audits_itemnote",
    "audits_itemsecret",
    "audits_judge",
    "audits_judgeditem",
    "audits_judgment",
    "audits_label",
    "audits_labelvoid",
    "audits_reveal",
    "audits_serving",
    "audits_skip",
]
GUARDED = {
    "audits_annotator": "debateweb_guard_annotator",
    "audits_judgmentset": "debateweb_guard_archive",
    "audits_queue": "debateweb_guard_queue",
    "audits_slot": "debateweb_guard_slot",
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
    dependencies = [("audits", "0010_judgments_and_queues"), ("runs", "0002_frozen_rows")]

    operations = [
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunSQL(_statements(), migrations.RunSQL.noop),
    ]
