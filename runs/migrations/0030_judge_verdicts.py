"""What a judge said of a run's candidates (S28): rows that never change (S37)."""

import django.db.models.deletion
from django.db import migrations, models

FREEZE = (
    "CREATE TRIGGER runs_judgeverdict_frozen BEFORE UPDATE OR DELETE ON runs_judgeverdict"
    " FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_change();"
)


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0021_kinds_of_audits"),
    ]

    operations = [
        migrations.CreateModel(
            name="JudgeVerdict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("t", models.PositiveIntegerField()),
                ("position", models.PositiveIntegerField()),
                ("call_id", models.CharField(max_length=64)),
                ("order", models.JSONField()),
                ("repeat", models.PositiveIntegerField()),
                ("status", models.CharField(max_length=16)),
                ("reason", models.TextField()),
                ("said", models.CharField(blank=True, max_length=16)),
                ("choice", models.TextField(blank=True)),
                ("score", models.IntegerField(null=True)),
                ("raw_hash", models.CharField(blank=True, max_length=64)),
                (
                    "attempt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judge_verdicts",
                        to="runs.attempt",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judge_verdicts",
                        to="runs.run",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("run", "position"), name="judge_verdict_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("said__in", ["", "candidate", "tie", "abstain", "score"]),
                            models.Q(("said", ""), ("status", "SUCCEEDED"), _connector="OR"),
                        ),
                        name="judge_verdict_of_a_success",
                    ),
                ],
            },
        ),
        migrations.RunSQL(FREEZE, migrations.RunSQL.noop),
    ]
