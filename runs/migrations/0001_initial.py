import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("debateweb", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Question",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("external_id", models.CharField(max_length=200)),
                ("text", models.TextField()),
                ("answer_type", models.CharField(max_length=8)),
                ("choices", models.JSONField(default=list)),
                ("reference", models.JSONField(default=list)),
                ("stratum", models.CharField(blank=True, max_length=200)),
                ("family", models.CharField(blank=True, max_length=200)),
                ("split", models.CharField(blank=True, max_length=16)),
                ("evidence", models.JSONField(default=list)),
                ("metadata", models.JSONField(default=dict)),
                ("question_hash", models.CharField(max_length=64)),
                ("evidence_hash", models.CharField(max_length=64)),
            ],
        ),
        migrations.CreateModel(
            name="Account",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("cap_microusd", models.BigIntegerField(null=True)),
                ("cap_output_tokens", models.BigIntegerField(null=True)),
                ("settled_microusd", models.BigIntegerField(db_default=0, default=0)),
                ("held_microusd", models.BigIntegerField(db_default=0, default=0)),
                ("reserved_microusd", models.BigIntegerField(db_default=0, default=0)),
                ("overrun_microusd", models.BigIntegerField(db_default=0, default=0)),
                ("settled_output_tokens", models.BigIntegerField(db_default=0, default=0)),
                ("held_output_tokens", models.BigIntegerField(db_default=0, default=0)),
                ("reserved_output_tokens", models.BigIntegerField(db_default=0, default=0)),
                ("overrun_output_tokens", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cap_microusd__isnull", True),
                            (
                                "cap_microusd__gte",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("settled_microusd"), "+", models.F("held_microusd")
                                    ),
                                    "+",
                                    models.F("reserved_microusd"),
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="account_within_cap_microusd",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("cap_output_tokens__isnull", True),
                            (
                                "cap_output_tokens__gte",
                                django.db.models.expressions.CombinedExpression(
                                    django.db.models.expressions.CombinedExpression(
                                        models.F("settled_output_tokens"),
                                        "+",
                                        models.F("held_output_tokens"),
                                    ),
                                    "+",
                                    models.F("reserved_output_tokens"),
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="account_within_cap_tokens",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("settled_microusd__gte", 0),
                            ("held_microusd__gte", 0),
                            ("reserved_microusd__gte", 0),
                            ("overrun_microusd__gte", 0),
                            ("settled_output_tokens__gte", 0),
                            ("held_output_tokens__gte", 0),
                            ("reserved_output_tokens__gte", 0),
                            ("overrun_output_tokens__gte", 0),
                        ),
                        name="account_never_negative",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Attempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("t", models.PositiveIntegerField()),
                ("agent_id", models.CharField(max_length=64)),
                ("kind", models.CharField(max_length=16)),
                ("ordinal", models.PositiveIntegerField()),
                ("request_digest", models.CharField(max_length=64)),
                ("model_slot", models.CharField(max_length=100)),
                ("model", models.CharField(max_length=300)),
                ("prompt", models.TextField()),
                ("read_set", models.JSONField()),
                ("decoding", models.JSONField()),
                ("parent_version", models.PositiveIntegerField()),
                ("reserved_microusd", models.BigIntegerField()),
                ("reserved_output_tokens", models.BigIntegerField()),
                ("fence", models.PositiveBigIntegerField()),
                ("worker", models.CharField(max_length=100)),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "retry_of",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="retries",
                        to="runs.attempt",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DebateSet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("format", models.CharField(max_length=32)),
                ("rules", models.CharField(max_length=64)),
                ("content_hash", models.CharField(max_length=64)),
                ("size", models.PositiveIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="debate_sets",
                        to="debateweb.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Experiment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("spec", models.JSONField()),
                ("spec_hash", models.CharField(max_length=64)),
                ("analysis", models.JSONField(default=dict)),
                ("analysis_hash", models.CharField(max_length=64)),
                ("concurrency", models.PositiveIntegerField()),
                ("window", models.PositiveIntegerField()),
                ("deadline_seconds", models.PositiveIntegerField()),
                ("stage_questions", models.PositiveIntegerField(null=True)),
                ("stage_confirm_above_microusd", models.BigIntegerField(null=True)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("READY", "Ready"),
                            ("RUNNING", "Running"),
                            ("PAUSED", "Paused"),
                            ("AWAITING_CONFIRMATION", "Awaiting Confirmation"),
                            ("CANCELLED", "Cancelled"),
                            ("FINISHED", "Finished"),
                        ],
                        default="READY",
                        max_length=24,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("started_at", models.DateTimeField(null=True)),
                ("stage_confirmed_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("archived_at", models.DateTimeField(null=True)),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="experiment",
                        to="runs.account",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="experiments",
                        to="debateweb.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ProtocolVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("version", models.PositiveIntegerField()),
                ("protocol_hash", models.CharField(max_length=64)),
                ("canonical", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="protocol_versions",
                        to="debateweb.workspace",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Arm",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("name", models.CharField(max_length=100)),
                ("bindings", models.JSONField()),
                ("price_table_version", models.CharField(max_length=64)),
                ("marked", models.CharField(blank=True, max_length=16)),
                (
                    "branch_from",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="branches",
                        to="runs.arm",
                    ),
                ),
                (
                    "experiment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="arms",
                        to="runs.experiment",
                    ),
                ),
                (
                    "protocol",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="arms",
                        to="runs.protocolversion",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Debate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("debate_id", models.CharField(max_length=200)),
                ("protocol", models.CharField(max_length=200)),
                ("seed", models.BigIntegerField(null=True)),
                ("body", models.JSONField()),
                (
                    "debate_set",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="debates",
                        to="runs.debateset",
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="debates",
                        to="runs.question",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="QuestionSet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                ("format", models.CharField(max_length=32)),
                ("content_hash", models.CharField(max_length=64)),
                ("size", models.PositiveIntegerField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("archived_at", models.DateTimeField(blank=True, null=True)),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="question_sets",
                        to="debateweb.workspace",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="question",
            name="question_set",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="questions",
                to="runs.questionset",
            ),
        ),
        migrations.AddField(
            model_name="experiment",
            name="question_set",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="experiments",
                to="runs.questionset",
            ),
        ),
        migrations.AddField(
            model_name="debateset",
            name="question_set",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="debate_sets",
                to="runs.questionset",
            ),
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.PositiveIntegerField()),
                ("seed", models.BigIntegerField()),
                ("question_hash", models.CharField(max_length=64)),
                ("protocol_hash", models.CharField(max_length=64)),
                ("evidence_hash", models.CharField(max_length=64)),
                ("in_stage", models.BooleanField(default=False)),
                (
                    "status",
                    models.CharField(
                        choices=[("PENDING", "Pending"), ("RUNNING", "Running"), ("DONE", "Done")],
                        default="PENDING",
                        max_length=8,
                    ),
                ),
                ("next_round", models.PositiveIntegerField(default=0)),
                ("snapshot_hash", models.CharField(max_length=64)),
                ("active", models.JSONField(null=True)),
                ("fence", models.PositiveBigIntegerField(default=0)),
                ("lease_owner", models.CharField(blank=True, default="", max_length=100)),
                ("lease_expires_at", models.DateTimeField(null=True)),
                ("rung_at", models.DateTimeField(null=True)),
                ("crashes", models.PositiveIntegerField(default=0)),
                ("started_at", models.DateTimeField(null=True)),
                ("deadline_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("stop_reason", models.CharField(blank=True, default="", max_length=32)),
                ("stop_observables", models.JSONField(default=dict)),
                ("model_changed", models.BooleanField(default=False)),
                (
                    "account",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="run",
                        to="runs.account",
                    ),
                ),
                (
                    "arm",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.arm",
                    ),
                ),
                (
                    "branch_source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="branches",
                        to="runs.run",
                    ),
                ),
                (
                    "experiment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.experiment",
                    ),
                ),
                (
                    "question",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="runs",
                        to="runs.question",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("t", models.PositiveIntegerField()),
                ("kind", models.CharField(max_length=16)),
                ("sender", models.CharField(max_length=64)),
                ("recipients", models.JSONField()),
                ("source_state_version", models.PositiveIntegerField()),
                ("target", models.JSONField(null=True)),
                ("content_hash", models.CharField(max_length=64)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="messages",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("reserve", "Reserve"),
                            ("settle", "Settle"),
                            ("hold", "Hold"),
                            ("release", "Release"),
                            ("overrun", "Overrun"),
                        ],
                        max_length=8,
                    ),
                ),
                ("source", models.CharField(blank=True, max_length=8)),
                ("microusd", models.BigIntegerField()),
                ("output_tokens", models.BigIntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "account",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="runs.account",
                    ),
                ),
                (
                    "attempt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="runs.attempt",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="entries",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Epoch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("t", models.PositiveIntegerField()),
                ("snapshot_hash", models.CharField(max_length=64)),
                ("evidence_hash", models.CharField(max_length=64)),
                (
                    "opened_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("deadline_at", models.DateTimeField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="epochs",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Commit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("t", models.PositiveIntegerField()),
                ("snapshot_hash", models.CharField(max_length=64)),
                ("active", models.JSONField()),
                ("scheduled", models.JSONField()),
                ("fence", models.PositiveBigIntegerField()),
                (
                    "committed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="commits",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="attempt",
            name="run",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT, related_name="attempts", to="runs.run"
            ),
        ),
        migrations.CreateModel(
            name="Aggregate",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("ordinal", models.PositiveIntegerField()),
                ("t", models.PositiveIntegerField()),
                ("aggregator", models.CharField(max_length=32)),
                ("answer_raw", models.TextField()),
                ("answer_kind", models.CharField(max_length=8)),
                ("answer_value", models.TextField()),
                ("answer_rule", models.CharField(max_length=32)),
                ("answer_reason", models.TextField()),
                ("counts", models.JSONField()),
                ("tied", models.BooleanField()),
                ("tie_resolved_by", models.CharField(max_length=32)),
                ("unresolved", models.BooleanField()),
                ("candidates", models.JSONField()),
                ("open_issues", models.JSONField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="aggregates",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="State",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("agent_id", models.CharField(max_length=64)),
                ("state_version", models.PositiveIntegerField()),
                ("parent_version", models.PositiveIntegerField()),
                ("round", models.PositiveIntegerField()),
                ("text", models.TextField()),
                ("answer_raw", models.TextField()),
                ("answer_kind", models.CharField(max_length=8)),
                ("answer_value", models.TextField()),
                ("answer_rule", models.CharField(max_length=32)),
                ("raw_hash", models.CharField(max_length=64)),
                ("content_hash", models.CharField(max_length=64)),
                ("claims", models.JSONField(default=list)),
                ("evidence_refs", models.JSONField(default=list)),
                ("unresolved", models.JSONField(default=list)),
                ("confidence", models.CharField(max_length=32, null=True)),
                ("change", models.JSONField(default=list)),
                (
                    "attempt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="states",
                        to="runs.attempt",
                    ),
                ),
                (
                    "origin",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="branched",
                        to="runs.state",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="states",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Claim",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("claim_id", models.CharField(max_length=64)),
                ("claim_hash", models.CharField(max_length=64)),
                ("text", models.TextField()),
                (
                    "state",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claim_rows",
                        to="runs.state",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("t", models.PositiveIntegerField()),
                ("agent_id", models.CharField(max_length=64)),
                ("status", models.CharField(max_length=16)),
                ("reason", models.TextField()),
                ("state_version", models.PositiveIntegerField(null=True)),
                (
                    "attempt",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="runs.attempt",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="verdicts",
                        to="runs.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AttemptOutcome",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("late", models.BooleanField()),
                ("status", models.CharField(max_length=16)),
                ("raw", models.BinaryField()),
                ("finish_reason", models.CharField(max_length=64)),
                ("error_class", models.CharField(max_length=64)),
                ("error_detail", models.TextField()),
                ("input_tokens", models.BigIntegerField(null=True)),
                ("cached_tokens", models.BigIntegerField(null=True)),
                ("output_tokens", models.BigIntegerField(null=True)),
                ("reasoning_tokens", models.BigIntegerField(null=True)),
                ("cost_microusd", models.BigIntegerField(null=True)),
                ("latency_milliseconds", models.BigIntegerField(null=True)),
                ("queued_milliseconds", models.BigIntegerField(null=True)),
                ("model_version", models.CharField(max_length=200)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "attempt",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="outcomes",
                        to="runs.attempt",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("attempt", "late"), name="attempt_ends_once_and_late_once"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["SUCCEEDED", "FAILED", "CANCELLED", "TIMEOUT"])
                        ),
                        name="outcome_status_known",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="CheckResult",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("verifier_id", models.CharField(max_length=100)),
                ("verifier_version", models.CharField(max_length=100)),
                (
                    "status",
                    models.CharField(
                        choices=[("PASS", "Pass"), ("FAIL", "Fail"), ("UNKNOWN", "Unknown")],
                        max_length=8,
                    ),
                ),
                ("unknown_cause", models.CharField(blank=True, max_length=32)),
                ("scope", models.TextField()),
                ("observed", models.TextField()),
                ("evidence_refs", models.JSONField(default=list)),
                ("input_hash", models.CharField(max_length=64)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                (
                    "supersedes",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="superseded_by",
                        to="runs.checkresult",
                    ),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="checks",
                        to="runs.claim",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("status__in", ["PASS", "FAIL", "UNKNOWN"])),
                        name="check_status_known",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "PASS"), _negated=True),
                            models.Q(("scope", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="check_pass_has_scope",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("status", "UNKNOWN"), ("unknown_cause__gt", "")),
                            models.Q(
                                models.Q(("status", "UNKNOWN"), _negated=True),
                                ("unknown_cause", ""),
                            ),
                            _connector="OR",
                        ),
                        name="check_unknown_has_cause",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("version", models.PositiveIntegerField()),
                ("body", models.JSONField()),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="model_entries",
                        to="debateweb.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "name", "version"), name="model_entry_version_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Name",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("protocol", "Protocol"),
                            ("questions", "Questions"),
                            ("debates", "Debates"),
                            ("experiment", "Experiment"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "workspace",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="names",
                        to="debateweb.workspace",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("workspace", "name"), name="name_once_per_workspace"
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="protocolversion",
            index=models.Index(fields=["protocol_hash"], name="protocol_by_hash"),
        ),
        migrations.AddConstraint(
            model_name="protocolversion",
            constraint=models.UniqueConstraint(
                fields=("workspace", "name", "version"), name="protocol_version_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="arm",
            constraint=models.UniqueConstraint(
                fields=("experiment", "name"), name="arm_name_once_per_experiment"
            ),
        ),
        migrations.AddConstraint(
            model_name="debate",
            constraint=models.UniqueConstraint(
                fields=("debate_set", "debate_id"), name="debate_id_once_per_set"
            ),
        ),
        migrations.AddConstraint(
            model_name="questionset",
            constraint=models.UniqueConstraint(
                fields=("workspace", "name"), name="question_set_name_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.UniqueConstraint(
                fields=("question_set", "external_id"), name="question_id_once_per_set"
            ),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.UniqueConstraint(
                fields=("question_set", "position"), name="question_position_once_per_set"
            ),
        ),
        migrations.AddConstraint(
            model_name="question",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("answer_type__in", ["number", "choice", "yesno", "text", "open"])
                ),
                name="question_answer_type_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="experiment",
            constraint=models.UniqueConstraint(
                fields=("workspace", "name"), name="experiment_name_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="experiment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "status__in",
                        [
                            "READY",
                            "RUNNING",
                            "PAUSED",
                            "AWAITING_CONFIRMATION",
                            "CANCELLED",
                            "FINISHED",
                        ],
                    )
                ),
                name="experiment_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="debateset",
            constraint=models.UniqueConstraint(
                fields=("workspace", "name"), name="debate_set_name_once"
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status", "PENDING")),
                fields=["experiment", "position"],
                name="run_pending",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("status", "RUNNING")),
                fields=["lease_expires_at"],
                name="run_running",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(fields=["experiment", "status"], name="run_by_status"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(fields=("arm", "question", "seed"), name="run_once"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(("status__in", ["PENDING", "RUNNING", "DONE"])),
                name="run_status_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("status", "DONE"), _negated=True),
                    models.Q(("stop_reason", ""), _negated=True),
                    _connector="OR",
                ),
                name="run_done_has_stop_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                fields=("run", "sender", "source_state_version", "kind"), name="message_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(("kind__in", ["PROPOSAL", "CHALLENGE", "CHECK", "REVISION"])),
                name="message_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(("microusd__gte", 0), ("output_tokens__gte", 0)),
                name="entry_not_negative",
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("kind__in", ["reserve", "settle", "hold", "release", "overrun"])
                ),
                name="entry_kind_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="epoch",
            constraint=models.UniqueConstraint(fields=("run", "t"), name="epoch_opened_once"),
        ),
        migrations.AddConstraint(
            model_name="commit",
            constraint=models.UniqueConstraint(fields=("run", "t"), name="epoch_closed_once"),
        ),
        migrations.AddConstraint(
            model_name="attempt",
            constraint=models.UniqueConstraint(
                fields=("run", "t", "agent_id", "kind", "ordinal"), name="attempt_ordinal_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="aggregate",
            constraint=models.UniqueConstraint(fields=("run", "ordinal"), name="aggregate_once"),
        ),
        migrations.AddConstraint(
            model_name="state",
            constraint=models.UniqueConstraint(
                fields=("run", "agent_id", "state_version"), name="state_version_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="state",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state_version",
                        django.db.models.expressions.CombinedExpression(
                            models.F("parent_version"), "+", models.Value(1)
                        ),
                    )
                ),
                name="state_follows_parent",
            ),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.UniqueConstraint(
                fields=("state", "claim_id"), name="claim_once_per_state"
            ),
        ),
        migrations.AddConstraint(
            model_name="verdict",
            constraint=models.UniqueConstraint(
                fields=("run", "t", "agent_id"), name="verdict_once"
            ),
        ),
    ]
