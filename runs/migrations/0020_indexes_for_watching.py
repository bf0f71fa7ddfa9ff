"""Counts for pages that are asked for every 2 s come from indexes alone."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0002_frozen_rows"),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name="run",
            name="run_by_status",
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(fields=["run", "id"], name="attempt_of_run"),
        ),
        migrations.AddIndex(
            model_name="attempt",
            index=models.Index(
                condition=models.Q(("retry_of__isnull", False)),
                fields=["run"],
                name="attempt_retried",
            ),
        ),
        migrations.AddIndex(
            model_name="attemptoutcome",
            index=models.Index(
                fields=["attempt"], include=("late", "status", "error_class"), name="outcome_kinds"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                fields=["experiment", "status", "arm", "stop_reason"], name="run_by_status_and_arm"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["experiment", "position"], name="run_by_position"),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status", "DONE")),
                fields=["experiment", "ended_at"],
                name="run_ended",
            ),
        ),
    ]
