"""Invitations and tokens are used or revoked, never deleted; what they promise stays (S37)."""

from django.db import migrations

SQL = """
CREATE TRIGGER debateweb_invitation_kept BEFORE DELETE ON debateweb_invitation
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
CREATE TRIGGER debateweb_invitation_promise BEFORE UPDATE OF
    workspace_id, role, note, token_sha256, created_by_id, created_at, expires_at
    ON debateweb_invitation
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
CREATE TRIGGER debateweb_apitoken_kept BEFORE DELETE ON debateweb_apitoken
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
CREATE TRIGGER debateweb_apitoken_promise BEFORE UPDATE OF
    user_id, name, token_sha256, created_at
    ON debateweb_apitoken
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
"""


class Migration(migrations.Migration):
    dependencies = [("debateweb", "0003_invitations_and_tokens")]

    operations = [migrations.RunSQL(SQL, migrations.RunSQL.noop)]
