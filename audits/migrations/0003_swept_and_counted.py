"""Reports that wait are rung for again; rows hold what they add to every rate."""

import django.db.models.functions.datetime
from django.db import migrations, models

# The guard of 0002, with the columns that move while a report is being built.
GUARD = """
CREATE OR REPLACE FUNCTION debateweb_guard_report() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moving CONSTANT text[] := ARRAY[
        'status', 'body', 'fault', 'ended_at', 'counted', 'rung_at', 'begun'
    ];
BEGIN
    IF OLD.status <> 'BUILDING' OR to_jsonb(OLD) - moving IS DISTINCT FROM to_jsonb(NEW) - moving
    THEN
        RAISE EXCEPTION 'report % is refused a change (S37)', OLD.id
            USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("audits", "0002_frozen_rows"),
    ]

    operations = [
        migrations.AddField(
            model_name="report",
            name="begun",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="report",
            name="counted",
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict),
        ),
        migrations.AddField(
            model_name="report",
            name="rung_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name="reportrow",
            name="counts",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.RunSQL(GUARD, migrations.RunSQL.noop),
    ]
