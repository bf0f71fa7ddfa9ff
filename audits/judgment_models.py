"""
Judgments: what judges, models and others, said of pairs and lists of candidates.

A set is imported whole, or is read out of an experiment whose agents are the presentations of a
judge (docs/decisions/0071). Judges with different hashes never pool. Rows are never changed.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from debateweb.models import Workspace
from runs.models import HASH, Experiment


class JudgmentSet(models.Model):
    """A named set of judged items with their judgments. ``experiment`` is ours that made it."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="judgment_sets")
    name = models.CharField(max_length=100)
    format = models.CharField(max_length=32)
    content_hash = models.CharField(max_length=HASH)
    size = models.PositiveIntegerField()
    design = models.JSONField(default=dict)  # How the judge is asked, where we ask it.
    experiment = models.OneToOneField(
        Experiment, models.PROTECT, null=True, related_name="judgment_set"
    )
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="judgment_set_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class JudgedItem(models.Model):
    """
    What was judged: a question and its candidates.

    ``candidates`` is a list of ``{"candidate_id", "text", "model"?}`` in the file's order;
    ``gold`` is a candidate's id, ``tie``, or nothing. ``question_id`` is the cluster.
    """

    judgment_set = models.ForeignKey(JudgmentSet, models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    item_id = models.CharField(max_length=200)
    question_id = models.CharField(max_length=200)
    question = models.TextField()
    candidates = models.JSONField()
    gold = models.CharField(max_length=200, blank=True)
    group = models.CharField(max_length=200, blank=True)
    metadata = models.JSONField(default=dict)
    content_hash = models.CharField(max_length=HASH)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judgment_set", "item_id"], name="judged_item_once_per_set"
            ),
            models.UniqueConstraint(
                fields=["judgment_set", "position"], name="judged_item_position_once"
            ),
        ]

    def __str__(self) -> str:
        return self.item_id


class Judge(models.Model):
    """Who judged, in full: another model version, prompt, rubric or decoding is another judge."""

    judgment_set = models.ForeignKey(JudgmentSet, models.PROTECT, related_name="judges")
    name = models.CharField(max_length=200)
    model = models.CharField(max_length=200, blank=True)
    model_version = models.CharField(max_length=200, blank=True)
    prompt_hash = models.CharField(max_length=HASH, blank=True)
    rubric_version = models.CharField(max_length=100, blank=True)
    decoding = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    judge_hash = models.CharField(max_length=HASH)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judgment_set", "judge_hash"], name="judge_once_per_set"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Judgment(models.Model):
    """
    One verdict under one order, as it was said. ``order_shown`` lists candidate ids as shown.

    ``verdict`` is a candidate's id, ``tie`` or ``abstain``; it is empty exactly where ``status``
    is not SUCCEEDED, and ``cause`` then says why. No verdict is ever folded into a tie.
    """

    item = models.ForeignKey(JudgedItem, models.PROTECT, related_name="judgments")
    judge = models.ForeignKey(Judge, models.PROTECT, related_name="judgments")
    order_shown = models.JSONField()
    order_key = models.CharField(max_length=HASH)  # Hash of the order, for the constraint.
    repeat = models.PositiveIntegerField()
    status = models.CharField(max_length=16)
    cause = models.CharField(max_length=64, blank=True)
    verdict = models.CharField(max_length=200, blank=True)
    scores = models.JSONField(null=True)
    rationale = models.TextField(blank=True)
    metadata = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item", "judge", "order_key", "repeat"], name="judgment_once"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["SUCCEEDED", "FAILED", "TIMEOUT", "INVALID"]),
                name="judgment_status_known",
            ),
            models.CheckConstraint(
                condition=Q(status="SUCCEEDED", verdict__gt="")
                | (~Q(status="SUCCEEDED") & Q(verdict="")),
                name="judgment_verdict_iff_succeeded",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verdict or self.status} by {self.judge_id}"
