"""
Stored reports. A report is asked for once, built once, and never changed afterwards.

What it was built from is its ``inputs_hash``: asking again for the same state of the records is
answered with the report that is there. Triggers keep rows as they are (``0001_initial``).
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Value
from django.db.models.functions import Now

from audits import judgment_models, queue_models  # noqa: F401  # Django finds models from here.
from debateweb.models import Workspace

HASH = 64  # Hex digits of a SHA-256.


class ReportStatus(models.TextChoices):
    """BUILDING → BUILT or FAILED; both ends are final."""

    BUILDING = "BUILDING"
    BUILT = "BUILT"
    FAILED = "FAILED"


class Report(models.Model):
    """
    A report on an experiment or on imported debates. ``body`` is its file, as text.

    ``rung_at`` is when a worker was last told of it, ``begun`` how many began to build it.
    ``counted`` names by condition the rates that the rows' ``counts`` are of, in their order.
    """

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="reports")
    kind = models.CharField(max_length=16)
    name = models.CharField(max_length=100)
    inputs_hash = models.CharField(max_length=HASH)
    status = models.CharField(
        max_length=16, choices=ReportStatus.choices, default=ReportStatus.BUILDING
    )
    body = models.TextField(blank=True)
    fault = models.TextField(blank=True)
    counted = models.JSONField(default=dict, db_default=Value({}, models.JSONField()))
    rung_at = models.DateTimeField(db_default=Now())
    begun = models.PositiveSmallIntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name", "inputs_hash"],
                condition=~models.Q(status="FAILED"),
                name="report_once_per_inputs",
            ),
        ]
        indexes = [models.Index(fields=["workspace", "name", "-id"], name="report_newest_of_name")]

    def __str__(self) -> str:
        return self.name


class ReportRow(models.Model):
    """
    What one agent, or the aggregate (``agent_id`` empty), came to in one run of a report.

    Lists are by round, carried forward as the figures count them. ``correct`` holds None where
    nothing was scored. For the aggregate it is ``[at the start, at T]`` by aggregator.
    """

    report = models.ForeignKey(Report, models.PROTECT, related_name="rows")
    condition = models.CharField(max_length=200)
    run_id = models.BigIntegerField(null=True)  # None for debates that ran elsewhere.
    run_key = models.TextField()
    question_id = models.CharField(max_length=200)
    stratum = models.CharField(max_length=200, blank=True)
    seed = models.BigIntegerField()
    agent_id = models.CharField(max_length=200, blank=True)
    rounds_opened = models.PositiveIntegerField()
    right_at_start = models.PositiveIntegerField()
    agents = models.PositiveIntegerField()
    correct = models.JSONField()
    answers = models.JSONField()
    statuses = models.JSONField()
    counts = models.JSONField(default=list, db_default=Value([], models.JSONField()))

    class Meta:
        indexes = [
            models.Index(fields=["report", "condition", "-id"], name="report_row_of_condition")
        ]

    def __str__(self) -> str:
        return f"{self.run_key} {self.agent_id}".strip()


class ReportItem(models.Model):
    """
    What judges and people said of one item, as a condition of a report counts it.

    ``judgments`` is a list of ``{"order", "repeat", "status", "cause", "verdict"}`` with the
    order as shown, ``labels`` of ``{"person", "label", "serving", "shown_order", "weight",
    "sealed"}``. ``counts`` are as those of ``ReportRow``: numerator and denominator of the rates
    that ``Report.counted`` names, in their order.
    """

    report = models.ForeignKey(Report, models.PROTECT, related_name="items")
    condition = models.CharField(max_length=500)
    item_id = models.CharField(max_length=500)
    question_id = models.CharField(max_length=200)
    stratum = models.CharField(max_length=200, blank=True)
    gold = models.CharField(max_length=200, blank=True)
    decided = models.CharField(max_length=200, blank=True)
    judgments = models.JSONField(default=list)
    labels = models.JSONField(default=list)
    counts = models.JSONField(default=list)

    class Meta:
        indexes = [
            models.Index(fields=["report", "condition", "-id"], name="report_item_of_condition")
        ]

    def __str__(self) -> str:
        return f"{self.condition}: {self.item_id}"
