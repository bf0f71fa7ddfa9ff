"""The items behind figures of judges and people, kept with their report (S37)."""

import django.db.models.deletion
from django.db import migrations, models

FREEZE = """
CREATE TRIGGER audits_reportitem_frozen BEFORE UPDATE OR DELETE ON audits_reportitem
    FOR EACH ROW EXECUTE FUNCTION debateweb_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("audits", "0011_frozen_queues")]

    operations = [
        migrations.CreateModel(
            name="ReportItem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("condition", models.CharField(max_length=500)),
                ("item_id", models.CharField(max_length=500)),
                ("question_id", models.CharField(max_length=200)),
                ("stratum", models.CharField(blank=True, max_length=200)),
                ("gold", models.CharField(blank=True, max_length=200)),
                ("decided", models.CharField(blank=True, max_length=200)),
                ("judgments", models.JSONField(default=list)),
                ("labels", models.JSONField(default=list)),
                ("counts", models.JSONField(default=list)),
                (
                    "report",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="items",
                        to="audits.report",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        fields=["report", "condition", "-id"], name="report_item_of_condition"
                    )
                ],
            },
        ),
        migrations.RunSQL(FREEZE, migrations.RunSQL.noop),
    ]
