"""Of a webhook only its revocation moves, of a delivery only how it went (S37)."""

from django.db import migrations


def _guard(table: str, moving: str) -> str:
    return f"""
CREATE OR REPLACE FUNCTION {table}_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moving CONSTANT text[] := ARRAY[{moving}];
BEGIN
    IF to_jsonb(OLD) - moving IS DISTINCT FROM to_jsonb(NEW) - moving THEN
        RAISE EXCEPTION '{table} % is refused this change (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER {table}_guarded BEFORE UPDATE ON {table}
    FOR EACH ROW EXECUTE FUNCTION {table}_guard();
CREATE TRIGGER {table}_kept BEFORE DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
"""


ENDPOINT = _guard("debateweb_webhookendpoint", "'revoked_at'")
DELIVERY = _guard(
    "debateweb_webhookdelivery",
    "'status', 'attempts', 'next_at', 'response_status', 'fault', 'ended_at'",
)


class Migration(migrations.Migration):
    dependencies = [("debateweb", "0012_webhooks")]

    operations = [
        migrations.RunSQL(ENDPOINT, migrations.RunSQL.noop),
        migrations.RunSQL(DELIVERY, migrations.RunSQL.noop),
    ]
