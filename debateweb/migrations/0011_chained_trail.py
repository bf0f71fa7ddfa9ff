"""
The database links each event to the chain of its workspace when the transaction commits.

At commit, because a lock taken in the middle of an act would be held to its end: acts would wait
for each other, and two could wait for each other for ever. One lock for all chains, because a
transaction may write to two of them.
"""

from django.db import migrations

FUNCTIONS = """
CREATE OR REPLACE FUNCTION debateweb_link_event(e debateweb_auditevent) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    head debateweb_traillink;
    place bigint;
    previous text;
    content text;
BEGIN
    SELECT * INTO head FROM debateweb_traillink l
        WHERE l.workspace_id IS NOT DISTINCT FROM e.workspace_id
        ORDER BY l.position DESC LIMIT 1;
    place := coalesce(head.position, 0) + 1;
    previous := coalesce(head.row_hash, repeat('0', 64));
    content := jsonb_build_array('debateweb-trail-1', e.workspace_id, place, previous, e.id,
        to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), e.actor_id,
        e.actor_name, e.act, e.object_kind, e.object_id, e.object_name, e.detail)::text;
    INSERT INTO debateweb_traillink (event_id, workspace_id, position, previous_hash, row_hash)
        VALUES (e.id, e.workspace_id, place, previous,
            encode(sha256(convert_to(content, 'UTF8')), 'hex'));
END $$;

CREATE OR REPLACE FUNCTION debateweb_chain_event() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(x'747261696c'::bigint);  -- "trail"
    PERFORM debateweb_link_event(NEW);
    RETURN NULL;
END $$;
"""
CHAIN_WHAT_IS_THERE = """
DO $$
DECLARE e debateweb_auditevent;
BEGIN
    FOR e IN SELECT * FROM debateweb_auditevent ORDER BY id LOOP
        PERFORM debateweb_link_event(e);
    END LOOP;
END $$;
"""
TRIGGERS = """
CREATE CONSTRAINT TRIGGER debateweb_auditevent_chained AFTER INSERT ON debateweb_auditevent
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION debateweb_chain_event();
CREATE TRIGGER debateweb_traillink_frozen BEFORE UPDATE OR DELETE ON debateweb_traillink
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_trail_change();
"""


class Migration(migrations.Migration):
    dependencies = [("debateweb", "0010_trail_links")]

    operations = [
        migrations.RunSQL(sql, migrations.RunSQL.noop)
        for sql in (FUNCTIONS, CHAIN_WHAT_IS_THERE, TRIGGERS)
    ]
