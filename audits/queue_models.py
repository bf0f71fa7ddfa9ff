"""
Queues: what people are asked, who holds what, and what they said (docs/decisions/0070).

Two tables hold progress and may change: ``Slot`` (who works on what now) and ``LabelDraft`` (what
is being typed). All else is appended. ``ItemSecret`` is apart so that no query for an annotator
can reach what they may not know yet: blindness is what is not read.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from audits.judgment_models import JudgmentSet
from debateweb.models import User, Workspace
from runs.models import HASH, DebateSet


class QueueKind(models.TextChoices):
    """What the items of a queue are, and so what is asked of them."""

    ANSWER = "answer"  # One answer: rubric, scale or per claim.
    PAIR = "pair"  # Two answers: which is better.
    JUDGE = "judge"  # A judge's decisions; own verdict first.
    DEBATE = "debate"  # A whole debate, turn by turn, with beliefs.
    MERGE = "merge"  # Two answers that the normaliser takes for one, or for two.
    CHECK = "check"  # A check that stayed UNKNOWN.


class QueueStatus(models.TextChoices):
    """OPEN ⇄ PAUSED → CLOSED. A queue that was closed stays closed."""

    OPEN = "OPEN"
    PAUSED = "PAUSED"
    CLOSED = "CLOSED"


class Queue(models.Model):
    """
    Items to be labelled under one design, frozen when it is made.

    ``design`` is the validated value of ``audits.queues.design.QueueDesign``: label schema,
    sampling, overlap, blinding, batch, calibration, lease. ``seed`` keys every draw (S36).
    """

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="queues")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=16, choices=QueueKind.choices)
    design = models.JSONField()
    design_hash = models.CharField(max_length=HASH)
    source = models.JSONField()  # What was sampled from: kind, name, hash of its state.
    seed = models.BigIntegerField()
    size = models.PositiveIntegerField()
    status = models.CharField(max_length=8, choices=QueueStatus.choices, default=QueueStatus.OPEN)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    closed_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="queue_name_once"),
            models.CheckConstraint(
                condition=Q(status__in=QueueStatus.values), name="queue_status_known"
            ),
            models.CheckConstraint(condition=Q(kind__in=QueueKind.values), name="queue_kind_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Guideline(models.Model):
    """A version of what people are told. ``examples`` are worked: text, label, why."""

    queue = models.ForeignKey(Queue, models.PROTECT, related_name="guidelines")
    version = models.PositiveIntegerField()
    body = models.TextField()
    examples = models.JSONField(default=list)
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "version"], name="guideline_version_once"),
        ]

    def __str__(self) -> str:
        return f"guideline v{self.version}"


class Annotator(models.Model):
    """
    Somebody who labels in a queue: a member, or a name in imported labels (``user`` is None).

    ``pseudonym`` is what exports show; it is random, so that destroying this row's link to a
    person is enough to sever it.
    """

    queue = models.ForeignKey(Queue, models.PROTECT, related_name="annotators")
    user = models.ForeignKey(User, models.PROTECT, null=True, related_name="annotating")
    name = models.CharField(max_length=150)
    pseudonym = models.CharField(max_length=32)
    capacity = models.PositiveIntegerField(null=True)  # Items at most; None: no limit.
    admitted_at = models.DateTimeField(null=True)  # After the calibration round.
    removed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["queue", "user"],
                condition=Q(user__isnull=False),
                name="annotator_user_once_per_queue",
            ),
            models.UniqueConstraint(fields=["queue", "name"], name="annotator_name_once"),
            models.UniqueConstraint(fields=["queue", "pseudonym"], name="annotator_pseudonym_once"),
        ]

    def __str__(self) -> str:
        return self.name


class ItemPhase(models.TextChoices):
    """Calibration items come first and decide who is admitted to the rest."""

    CALIBRATION = "calibration"
    MAIN = "main"


class Item(models.Model):
    """
    One thing to be labelled, as far as a person may know it before they label it.

    ``key`` names it in addresses: random, so that it says nothing. ``item_id`` names it in files
    and is not shown. ``shown`` holds question, candidates, turns and, where the design says so,
    the reference. ``served_as`` tells a second serving to the same person from a first.
    """

    queue = models.ForeignKey(Queue, models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    key = models.CharField(max_length=32, unique=True)
    item_id = models.CharField(max_length=200)
    shown = models.JSONField()
    content_hash = models.CharField(max_length=HASH)
    question_id = models.CharField(max_length=200)
    stratum = models.CharField(max_length=200, blank=True)
    weight = models.FloatField(default=1.0)  # 1 / inclusion probability.
    unit = models.CharField(max_length=16, default="item")  # item | transition | question
    phase = models.CharField(max_length=16, choices=ItemPhase.choices, default=ItemPhase.MAIN)
    again_of = models.ForeignKey("self", models.PROTECT, null=True, related_name="served_again")
    served_as = models.CharField(max_length=16, default="first")  # first | swapped | unswapped

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "position"], name="item_position_once"),
            models.UniqueConstraint(
                fields=["queue", "item_id", "served_as"], name="item_once_per_queue"
            ),
            models.CheckConstraint(condition=Q(weight__gt=0), name="item_weight_positive"),
        ]

    def __str__(self) -> str:
        return self.key


class ItemSecret(models.Model):
    """What an annotator may not know yet: model, arm, round, gold, verdicts, the other end."""

    item = models.OneToOneField(Item, models.PROTECT, related_name="secret")
    body = models.JSONField()
    is_gold = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"secret of {self.item_id}"


class SlotState(models.TextChoices):
    """FREE → HELD → DONE; a lease that ran out or was given back is FREE again."""

    FREE = "FREE"
    HELD = "HELD"
    DONE = "DONE"


class Slot(models.Model):
    """
    One of the k labels that an item needs: the unit of claiming, so that overlap is exact.

    ``fence`` counts the leases ever given on it; a submit names the one that it holds.
    ``holder`` stays after DONE. ``queue``, ``position`` and ``phase`` repeat the item's for the
    index that "next" walks.
    """

    item = models.ForeignKey(Item, models.PROTECT, related_name="slots")
    queue = models.ForeignKey(Queue, models.PROTECT, related_name="slots")
    position = models.PositiveIntegerField()
    phase = models.CharField(max_length=16)
    ordinal = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=SlotState.choices, default=SlotState.FREE)
    holder = models.ForeignKey(Annotator, models.PROTECT, null=True, related_name="slots")
    fence = models.PositiveBigIntegerField(default=0)
    leased_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "ordinal"], name="slot_once"),
            models.UniqueConstraint(
                fields=["item", "holder"],
                condition=Q(holder__isnull=False),
                name="slot_one_of_an_item_per_person",
            ),
            models.CheckConstraint(
                condition=Q(state="FREE", holder=None, leased_until=None)
                | Q(state="HELD", holder__isnull=False, leased_until__isnull=False)
                | Q(state="DONE", holder__isnull=False, leased_until=None),
                name="slot_state_and_holder_agree",
            ),
        ]
        indexes = [
            models.Index(
                fields=["queue", "phase", "position", "ordinal"],
                name="slot_free",
                condition=Q(state="FREE"),
            ),
            models.Index(
                fields=["queue", "leased_until"], name="slot_held", condition=Q(state="HELD")
            ),
            models.Index(fields=["holder", "state"], name="slot_of_holder"),
        ]

    def __str__(self) -> str:
        return f"slot {self.ordinal} of item {self.item_id}"


class Serving(models.Model):
    """What was put before a person when a slot was leased to them: stored as displayed."""

    slot = models.ForeignKey(Slot, models.PROTECT, related_name="servings")
    annotator = models.ForeignKey(Annotator, models.PROTECT, related_name="servings")
    fence = models.PositiveBigIntegerField()
    shown_order = models.JSONField(default=list)  # Candidate ids, left to right.
    guideline = models.ForeignKey(Guideline, models.PROTECT, related_name="servings")
    shown_reference = models.BooleanField()
    masked = models.BooleanField()
    served_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slot", "fence"], name="serving_once_per_lease"),
        ]

    def __str__(self) -> str:
        return f"serving of slot {self.slot_id}"


class LabelDraft(models.Model):
    """What a person is typing. The higher ``sequence`` wins, whichever save arrives last."""

    slot = models.ForeignKey(Slot, models.PROTECT, related_name="drafts")
    annotator = models.ForeignKey(Annotator, models.PROTECT, related_name="drafts")
    sequence = models.BigIntegerField()
    body = models.JSONField()
    saved_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["slot", "annotator"], name="draft_once_per_person"),
        ]

    def __str__(self) -> str:
        return f"draft of slot {self.slot_id}"


class Label(models.Model):
    """
    What a person said of an item. A correction, an undo or a clear is the next version.

    ``value`` None means "cleared". ``request_key`` makes a submit that is sent twice one label.
    ``provenance`` says where it came from: a person here, the same content labelled before, or a
    file.
    """

    item = models.ForeignKey(Item, models.PROTECT, related_name="labels")
    annotator = models.ForeignKey(Annotator, models.PROTECT, related_name="labels")
    serving = models.ForeignKey(Serving, models.PROTECT, null=True, related_name="labels")
    version = models.PositiveIntegerField()
    value = models.JSONField(null=True)
    confidence = models.FloatField(null=True)
    comment = models.TextField(blank=True)
    active_milliseconds = models.PositiveBigIntegerField(null=True)
    reveal_state = models.CharField(max_length=16, default="sealed")  # sealed | after_reveal
    reason = models.TextField(blank=True)  # Of a correction.
    guideline_version = models.PositiveIntegerField(null=True)
    shown_order = models.JSONField(default=list)
    shown_reference = models.BooleanField(null=True)
    provenance = models.JSONField(default=dict)
    metadata = models.JSONField(default=dict)
    request_key = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item", "annotator", "version"], name="label_version_once"
            ),
            models.UniqueConstraint(
                fields=["annotator", "request_key"], name="label_once_per_request"
            ),
            models.CheckConstraint(condition=Q(version__gte=1), name="label_version_from_one"),
            models.CheckConstraint(
                condition=Q(version=1) | ~Q(reason=""), name="label_correction_has_reason"
            ),
            models.CheckConstraint(
                condition=Q(reveal_state__in=["sealed", "after_reveal"]),
                name="label_reveal_state_known",
            ),
        ]

    def __str__(self) -> str:
        return f"label v{self.version} of item {self.item_id}"


class LabelVoid(models.Model):
    """A label that the lead took out of the figures, with the reason. The label itself stays."""

    label = models.OneToOneField(Label, models.PROTECT, related_name="void")
    reason = models.TextField()
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=~Q(reason=""), name="label_void_has_reason"),
        ]

    def __str__(self) -> str:
        return f"void of label {self.label_id}"


class Skip(models.Model):
    """A person put an item off. The first moves it to their end; the second takes it from them."""

    item = models.ForeignKey(Item, models.PROTECT, related_name="skips")
    annotator = models.ForeignKey(Annotator, models.PROTECT, related_name="skips")
    ordinal = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "annotator", "ordinal"], name="skip_once"),
            models.CheckConstraint(
                condition=Q(ordinal__gte=1) & Q(ordinal__lte=2), name="skip_twice_at_most"
            ),
        ]

    def __str__(self) -> str:
        return f"skip {self.ordinal} of item {self.item_id}"


class ItemNote(models.Model):
    """A flag, a question to the lead, or an answer: a thread on an item."""

    item = models.ForeignKey(Item, models.PROTECT, related_name="notes")
    annotator = models.ForeignKey(Annotator, models.PROTECT, null=True, related_name="notes")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)
    kind = models.CharField(max_length=16)  # flag | question | answer | settled
    text = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(kind__in=["flag", "question", "answer", "settled"]),
                name="item_note_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on item {self.item_id}"


class Reveal(models.Model):
    """From here on a person (or, with ``annotator`` None, everybody) may see what was hidden."""

    queue = models.ForeignKey(Queue, models.PROTECT, related_name="reveals")
    annotator = models.ForeignKey(Annotator, models.PROTECT, null=True, related_name="reveals")
    through_label = models.BigIntegerField()  # The last label that was sealed by then.
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)

    def __str__(self) -> str:
        return f"reveal in queue {self.queue_id}"


class Adjudication(models.Model):
    """The lead's decision on an item. All labels stay; a later decision is the next ordinal."""

    item = models.ForeignKey(Item, models.PROTECT, related_name="adjudications")
    ordinal = models.PositiveIntegerField()
    value = models.JSONField()
    reason = models.TextField()
    is_precedent = models.BooleanField(default=False)
    names_hidden = models.BooleanField()
    labels_seen = models.JSONField()  # Ids of the labels that were on the table.
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["item", "ordinal"], name="adjudication_once"),
            models.CheckConstraint(condition=~Q(reason=""), name="adjudication_has_reason"),
        ]

    def __str__(self) -> str:
        return f"adjudication {self.ordinal} of item {self.item_id}"


class ImportedLabel(models.Model):
    """
    A label out of a file, on an item of a judgment set or on an imported debate.

    ``body`` is the record as it was given. Labels for a queue of ours become ``Label`` rows;
    these are labels of people who worked elsewhere, on what was made elsewhere.
    """

    judgment_set = models.ForeignKey(
        JudgmentSet, models.PROTECT, null=True, related_name="imported_labels"
    )
    debate_set = models.ForeignKey(
        DebateSet, models.PROTECT, null=True, related_name="imported_labels"
    )
    item_id = models.CharField(max_length=200)
    annotator = models.CharField(max_length=150)
    kind = models.CharField(max_length=16)
    body = models.JSONField()
    content_hash = models.CharField(max_length=HASH)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judgment_set", "debate_set", "content_hash"],
                name="imported_label_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(judgment_set=None, debate_set__isnull=False)
                | Q(judgment_set__isnull=False, debate_set=None),
                name="imported_label_of_one_thing",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.annotator}"
