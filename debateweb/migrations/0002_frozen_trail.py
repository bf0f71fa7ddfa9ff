"""The trail is appended to and never changed; members and workspaces are archived (S37)."""

from django.db import migrations

SQL = """
CREATE OR REPLACE FUNCTION debateweb_refuse_trail_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% of % is refused: its rows are never changed (S37)', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER debateweb_auditevent_frozen BEFORE UPDATE OR DELETE ON debateweb_auditevent
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
CREATE TRIGGER debateweb_workspace_kept BEFORE DELETE ON debateweb_workspace
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
CREATE TRIGGER debateweb_member_kept BEFORE DELETE ON debateweb_member
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
"""


class Migration(migrations.Migration):
    dependencies = [("debateweb", "0001_initial")]

    operations = [migrations.RunSQL(SQL, migrations.RunSQL.noop)]
