"""Reports and their rows stay as they were made; a report under way ends once (S37)."""

from django.db import migrations

STATEMENTS = """
CREATE OR REPLACE FUNCTION debateweb_guard_report() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moving CONSTANT text[] := ARRAY['status', 'body', 'fault', 'ended_at'];
BEGIN
    IF OLD.status <> 'BUILDING' OR to_jsonb(OLD) - moving IS DISTINCT FROM to_jsonb(NEW) - moving
    THEN
        RAISE EXCEPTION 'report % is refused a change (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER audits_report_guarded BEFORE UPDATE ON audits_report
    FOR EACH ROW EXECUTE FUNCTION debateweb_guard_report();
CREATE TRIGGER audits_report_kept BEFORE DELETE ON audits_report
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_change();
CREATE TRIGGER audits_reportrow_frozen BEFORE UPDATE OR DELETE ON audits_reportrow
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("audits", "0001_initial"), ("runs", "0002_frozen_rows")]

    operations = [migrations.RunSQL(STATEMENTS, migrations.RunSQL.noop)]
