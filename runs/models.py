"""
Records of debates. Rows that say what happened are appended and never changed (S37).

Mutable are only: an experiment's and a run's progress, an account's balance, archive marks. All
else is refused by triggers (``migrations/0002_frozen_rows.py``) even to raw SQL.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from debateweb.models import Workspace

HASH = 64  # Hex digits of a SHA-256.


class Kind(models.TextChoices):
    """What a name in a workspace stands for."""

    PROTOCOL = "protocol"
    QUESTIONS = "questions"
    DEBATES = "debates"
    EXPERIMENT = "experiment"
    JUDGMENTS = "judgments"
    QUEUE = "queue"


class Name(models.Model):
    """A name taken in a workspace: unique across kinds, so that a command needs no kind."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="names")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=16, choices=Kind.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="name_once_per_workspace"),
        ]

    def __str__(self) -> str:
        return self.name


class ProtocolVersion(models.Model):
    """An immutable protocol (S1). ``canonical`` holds its canonical JSON as text."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="protocol_versions")
    name = models.CharField(max_length=100)
    version = models.PositiveIntegerField()
    protocol_hash = models.CharField(max_length=HASH)
    canonical = models.TextField()
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name", "version"], name="protocol_version_once"
            ),
        ]
        indexes = [models.Index(fields=["protocol_hash"], name="protocol_by_hash")]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class QuestionSet(models.Model):
    """A named set of questions, imported whole or not at all."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="question_sets")
    name = models.CharField(max_length=100)
    format = models.CharField(max_length=32)
    content_hash = models.CharField(max_length=HASH)
    size = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="question_set_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Question(models.Model):
    """One question of a set. The reference is stored apart from what ``question_hash`` covers."""

    question_set = models.ForeignKey(QuestionSet, models.PROTECT, related_name="questions")
    position = models.PositiveIntegerField()
    external_id = models.CharField(max_length=200)
    text = models.TextField()
    answer_type = models.CharField(max_length=8)
    choices = models.JSONField(default=list)
    reference = models.JSONField(default=list)
    stratum = models.CharField(max_length=200, blank=True)
    family = models.CharField(max_length=200, blank=True)
    split = models.CharField(max_length=16, blank=True)
    evidence = models.JSONField(default=list)
    metadata = models.JSONField(default=dict)
    question_hash = models.CharField(max_length=HASH)
    evidence_hash = models.CharField(max_length=HASH)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["question_set", "external_id"], name="question_id_once_per_set"
            ),
            models.UniqueConstraint(
                fields=["question_set", "position"], name="question_position_once_per_set"
            ),
            models.CheckConstraint(
                condition=Q(answer_type__in=["number", "choice", "yesno", "text", "open"]),
                name="question_answer_type_known",
            ),
        ]

    def __str__(self) -> str:
        return self.external_id


class DebateSet(models.Model):
    """Debates that ran elsewhere. ``rules`` names how their replies are read (formats.md)."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="debate_sets")
    name = models.CharField(max_length=100)
    format = models.CharField(max_length=32)
    rules = models.CharField(max_length=64)
    question_set = models.ForeignKey(QuestionSet, models.PROTECT, related_name="debate_sets")
    content_hash = models.CharField(max_length=HASH)
    size = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="debate_set_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Debate(models.Model):
    """One imported debate, as it was recorded. ``body`` is the record in our own format."""

    debate_set = models.ForeignKey(DebateSet, models.PROTECT, related_name="debates")
    question = models.ForeignKey(Question, models.PROTECT, related_name="debates")
    position = models.PositiveIntegerField()
    debate_id = models.CharField(max_length=200)
    protocol = models.CharField(max_length=200)
    seed = models.BigIntegerField(null=True)
    body = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["debate_set", "debate_id"], name="debate_id_once_per_set"
            ),
        ]

    def __str__(self) -> str:
        return self.debate_id


class ModelEntry(models.Model):
    """A version of one model's address, price and limits in a workspace. Holds no key."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="model_entries")
    name = models.CharField(max_length=200)
    version = models.PositiveIntegerField()
    body = models.JSONField()
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "name", "version"], name="model_entry_version_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version}"


class Account(models.Model):
    """
    A balance of the ledger (S31). The schema itself keeps settled + held + reserved ≤ cap.

    ``overrun_…`` lies outside the cap: use beyond a reservation, shown and never hidden.
    """

    cap_microusd = models.BigIntegerField(null=True)
    cap_output_tokens = models.BigIntegerField(null=True)
    settled_microusd = models.BigIntegerField(default=0, db_default=0)
    held_microusd = models.BigIntegerField(default=0, db_default=0)
    reserved_microusd = models.BigIntegerField(default=0, db_default=0)
    overrun_microusd = models.BigIntegerField(default=0, db_default=0)
    settled_output_tokens = models.BigIntegerField(default=0, db_default=0)
    held_output_tokens = models.BigIntegerField(default=0, db_default=0)
    reserved_output_tokens = models.BigIntegerField(default=0, db_default=0)
    overrun_output_tokens = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(cap_microusd__isnull=True)
                | Q(
                    cap_microusd__gte=F("settled_microusd")
                    + F("held_microusd")
                    + F("reserved_microusd")
                ),
                name="account_within_cap_microusd",
            ),
            models.CheckConstraint(
                condition=Q(cap_output_tokens__isnull=True)
                | Q(
                    cap_output_tokens__gte=F("settled_output_tokens")
                    + F("held_output_tokens")
                    + F("reserved_output_tokens")
                ),
                name="account_within_cap_tokens",
            ),
            models.CheckConstraint(
                condition=Q(settled_microusd__gte=0)
                & Q(held_microusd__gte=0)
                & Q(reserved_microusd__gte=0)
                & Q(overrun_microusd__gte=0)
                & Q(settled_output_tokens__gte=0)
                & Q(held_output_tokens__gte=0)
                & Q(reserved_output_tokens__gte=0)
                & Q(overrun_output_tokens__gte=0),
                name="account_never_negative",
            ),
        ]

    def __str__(self) -> str:
        return f"account {self.pk}"


class ExperimentStatus(models.TextChoices):
    """READY → RUNNING ⇄ PAUSED | AWAITING_CONFIRMATION → FINISHED | CANCELLED."""

    READY = "READY"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    AWAITING_CONFIRMATION = "AWAITING_CONFIRMATION"
    CANCELLED = "CANCELLED"
    FINISHED = "FINISHED"


class Experiment(models.Model):
    """Arms × questions × seeds. Specification and analysis are frozen when it is made."""

    workspace = models.ForeignKey(Workspace, models.PROTECT, related_name="experiments")
    name = models.CharField(max_length=100)
    question_set = models.ForeignKey(QuestionSet, models.PROTECT, related_name="experiments")
    spec = models.JSONField()
    spec_hash = models.CharField(max_length=HASH)
    analysis = models.JSONField(default=dict)
    analysis_hash = models.CharField(max_length=HASH)
    concurrency = models.PositiveIntegerField()
    window = models.PositiveIntegerField()
    deadline_seconds = models.PositiveIntegerField()
    stage_questions = models.PositiveIntegerField(null=True)
    stage_confirm_above_microusd = models.BigIntegerField(null=True)
    account = models.OneToOneField(Account, models.PROTECT, related_name="experiment")
    status = models.CharField(
        max_length=24, choices=ExperimentStatus.choices, default=ExperimentStatus.READY
    )
    created_at = models.DateTimeField(db_default=Now())
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    started_at = models.DateTimeField(null=True)
    stage_confirmed_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    archived_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="experiment_name_once"),
            models.CheckConstraint(
                condition=Q(status__in=ExperimentStatus.values), name="experiment_status_known"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Arm(models.Model):
    """One condition of an experiment. ``bindings`` binds slots to models and their prices."""

    experiment = models.ForeignKey(Experiment, models.PROTECT, related_name="arms")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=100)
    protocol = models.ForeignKey(ProtocolVersion, models.PROTECT, related_name="arms")
    bindings = models.JSONField()
    price_table_version = models.CharField(max_length=HASH)
    branch_from = models.ForeignKey("self", models.PROTECT, null=True, related_name="branches")
    marked = models.CharField(max_length=16, blank=True)  # simulated | recorded | mixed

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["experiment", "name"], name="arm_name_once_per_experiment"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RunStatus(models.TextChoices):
    """PENDING → RUNNING → DONE; why it is done is its stop reason (S13)."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"


class Run(models.Model):
    """
    One arm on one question with one seed (S2).

    ``fence`` counts the leases ever given on this run: every commit names the one it holds
    (S10). ``next_round`` is the t to open next. ``snapshot_hash`` is the read buffer of that
    round.
    """

    experiment = models.ForeignKey(Experiment, models.PROTECT, related_name="runs")
    arm = models.ForeignKey(Arm, models.PROTECT, related_name="runs")
    question = models.ForeignKey(Question, models.PROTECT, related_name="runs")
    position = models.PositiveIntegerField()
    seed = models.BigIntegerField()
    question_hash = models.CharField(max_length=HASH)
    protocol_hash = models.CharField(max_length=HASH)
    evidence_hash = models.CharField(max_length=HASH)
    branch_source = models.ForeignKey("self", models.PROTECT, null=True, related_name="branches")
    in_stage = models.BooleanField(default=False)
    account = models.OneToOneField(Account, models.PROTECT, related_name="run")

    status = models.CharField(max_length=8, choices=RunStatus.choices, default=RunStatus.PENDING)
    next_round = models.PositiveIntegerField(default=0)
    snapshot_hash = models.CharField(max_length=HASH)
    active = models.JSONField(null=True)
    fence = models.PositiveBigIntegerField(default=0)
    lease_owner = models.CharField(max_length=100, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True)
    rung_at = models.DateTimeField(null=True)
    crashes = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    stop_reason = models.CharField(max_length=32, blank=True, default="")
    stop_observables = models.JSONField(default=dict)
    model_changed = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["arm", "question", "seed"], name="run_once"),
            models.CheckConstraint(
                condition=Q(status__in=RunStatus.values), name="run_status_known"
            ),
            models.CheckConstraint(
                condition=~Q(status="DONE") | ~Q(stop_reason=""), name="run_done_has_stop_reason"
            ),
        ]
        indexes = [
            models.Index(
                fields=["experiment", "position"],
                name="run_pending",
                condition=Q(status="PENDING"),
            ),
            models.Index(
                fields=["lease_expires_at"], name="run_running", condition=Q(status="RUNNING")
            ),
            models.Index(
                fields=["experiment", "status", "arm", "stop_reason"], name="run_by_status_and_arm"
            ),
            models.Index(fields=["experiment", "position"], name="run_by_position"),
            models.Index(
                fields=["experiment", "ended_at"], name="run_ended", condition=Q(status="DONE")
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"


class Epoch(models.Model):
    """The frozen input of one round (S10). Inserted once, never updated."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="epochs")
    t = models.PositiveIntegerField()
    snapshot_hash = models.CharField(max_length=HASH)
    evidence_hash = models.CharField(max_length=HASH)
    opened_at = models.DateTimeField(db_default=Now())
    deadline_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "t"], name="epoch_opened_once"),
        ]

    def __str__(self) -> str:
        return f"epoch {self.t} of run {self.run_id}"


class Commit(models.Model):
    """The close of one epoch (S9, S10): its uniqueness is what makes the close happen once."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="commits")
    t = models.PositiveIntegerField()
    snapshot_hash = models.CharField(max_length=HASH)
    active = models.JSONField()
    scheduled = models.JSONField()
    fence = models.PositiveBigIntegerField()
    committed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "t"], name="epoch_closed_once"),
        ]

    def __str__(self) -> str:
        return f"commit of round {self.t} of run {self.run_id}"


class Attempt(models.Model):
    """One provider invocation, written before the call (S4)."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="attempts")
    t = models.PositiveIntegerField()
    agent_id = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    ordinal = models.PositiveIntegerField()
    request_digest = models.CharField(max_length=HASH)
    model_slot = models.CharField(max_length=100)
    model = models.CharField(max_length=300)
    prompt = models.TextField()
    read_set = models.JSONField()
    decoding = models.JSONField()
    parent_version = models.PositiveIntegerField()
    reserved_microusd = models.BigIntegerField()
    reserved_output_tokens = models.BigIntegerField()
    retry_of = models.ForeignKey("self", models.PROTECT, null=True, related_name="retries")
    fence = models.PositiveBigIntegerField()
    worker = models.CharField(max_length=100)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "t", "agent_id", "kind", "ordinal"], name="attempt_ordinal_once"
            ),
        ]
        indexes = [
            # Prompts make the rows wide: counting has to get by without them.
            models.Index(fields=["run", "id"], name="attempt_of_run"),
            models.Index(
                fields=["run"], name="attempt_retried", condition=Q(retry_of__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"attempt {self.ordinal} of {self.agent_id} in round {self.t}"


class AttemptOutcome(models.Model):
    """
    How an attempt ended: one row, and one more if a receipt came after that (S4, S10).

    ``raw`` holds the reply's bytes as they came: text columns refuse NUL and surrogates (S35).
    """

    attempt = models.ForeignKey(Attempt, models.PROTECT, related_name="outcomes")
    late = models.BooleanField()
    status = models.CharField(max_length=16)
    raw = models.BinaryField()
    finish_reason = models.CharField(max_length=64)
    error_class = models.CharField(max_length=64)
    error_detail = models.TextField()
    input_tokens = models.BigIntegerField(null=True)
    cached_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    reasoning_tokens = models.BigIntegerField(null=True)
    cost_microusd = models.BigIntegerField(null=True)
    latency_milliseconds = models.BigIntegerField(null=True)
    queued_milliseconds = models.BigIntegerField(null=True)
    model_version = models.CharField(max_length=200)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["attempt", "late"], name="attempt_ends_once_and_late_once"
            ),
            models.CheckConstraint(
                condition=Q(status__in=["SUCCEEDED", "FAILED", "CANCELLED", "TIMEOUT"]),
                name="outcome_status_known",
            ),
        ]
        indexes = [
            # For counting outcomes by kind without their replies.
            models.Index(
                fields=["attempt"], include=["late", "status", "error_class"], name="outcome_kinds"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.status} of attempt {self.attempt_id}"


class State(models.Model):
    """An admitted, host-versioned candidate (S3). ``origin`` is the state that it branched from."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="states")
    agent_id = models.CharField(max_length=64)
    state_version = models.PositiveIntegerField()
    parent_version = models.PositiveIntegerField()
    round = models.PositiveIntegerField()
    text = models.TextField()
    answer_raw = models.TextField()
    answer_kind = models.CharField(max_length=8)
    answer_value = models.TextField()
    answer_rule = models.CharField(max_length=32)
    raw_hash = models.CharField(max_length=HASH)
    content_hash = models.CharField(max_length=HASH)
    claims = models.JSONField(default=list)
    evidence_refs = models.JSONField(default=list)
    unresolved = models.JSONField(default=list)
    confidence = models.CharField(max_length=32, null=True)  # noqa: DJ001  # None: none given.
    change = models.JSONField(default=list)
    attempt = models.ForeignKey(Attempt, models.PROTECT, null=True, related_name="states")
    origin = models.ForeignKey("self", models.PROTECT, null=True, related_name="branched")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "agent_id", "state_version"], name="state_version_once"
            ),
            models.CheckConstraint(
                condition=Q(state_version=F("parent_version") + 1), name="state_follows_parent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} v{self.state_version}"


class Claim(models.Model):
    """One wording of an atomic claim, in the state that first held it (S7)."""

    state = models.ForeignKey(State, models.PROTECT, related_name="claim_rows")
    claim_id = models.CharField(max_length=64)
    claim_hash = models.CharField(max_length=HASH)
    text = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["state", "claim_id"], name="claim_once_per_state"),
        ]

    def __str__(self) -> str:
        return self.claim_id


class CheckStatus(models.TextChoices):
    """UNKNOWN never counts as PASS (S22)."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNKNOWN = "UNKNOWN"


class CheckResult(models.Model):
    """What a verifier, machine or person, found about one wording of a claim (S22, S24)."""

    claim = models.ForeignKey(Claim, models.PROTECT, related_name="checks")
    verifier_id = models.CharField(max_length=100)
    verifier_version = models.CharField(max_length=100)
    status = models.CharField(max_length=8, choices=CheckStatus.choices)
    unknown_cause = models.CharField(max_length=32, blank=True)
    scope = models.TextField()
    observed = models.TextField()
    evidence_refs = models.JSONField(default=list)
    input_hash = models.CharField(max_length=HASH)
    supersedes = models.ForeignKey("self", models.PROTECT, null=True, related_name="superseded_by")
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=CheckStatus.values), name="check_status_known"
            ),
            models.CheckConstraint(
                condition=~Q(status="PASS") | ~Q(scope=""), name="check_pass_has_scope"
            ),
            models.CheckConstraint(
                condition=Q(status="UNKNOWN", unknown_cause__gt="")
                | (~Q(status="UNKNOWN") & Q(unknown_cause="")),
                name="check_unknown_has_cause",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.status} by {self.verifier_id}"


class Message(models.Model):
    """What one agent sent to those who may read it (S5)."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="messages")
    t = models.PositiveIntegerField()
    kind = models.CharField(max_length=16)
    sender = models.CharField(max_length=64)
    recipients = models.JSONField()
    source_state_version = models.PositiveIntegerField()
    target = models.JSONField(null=True)
    content_hash = models.CharField(max_length=HASH)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "sender", "source_state_version", "kind"], name="message_once"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=["PROPOSAL", "CHALLENGE", "CHECK", "REVISION"]),
                name="message_kind_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.sender}"


class Verdict(models.Model):
    """Admission's record of one configured agent in one round (S11)."""

    run = models.ForeignKey(Run, models.PROTECT, related_name="verdicts")
    t = models.PositiveIntegerField()
    agent_id = models.CharField(max_length=64)
    status = models.CharField(max_length=16)
    reason = models.TextField()
    state_version = models.PositiveIntegerField(null=True)
    attempt = models.ForeignKey(Attempt, models.PROTECT, null=True, related_name="verdicts")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "t", "agent_id"], name="verdict_once"),
        ]

    def __str__(self) -> str:
        return f"{self.status} for {self.agent_id} in round {self.t}"


class JudgeVerdict(models.Model):
    """
    What one presentation of a run's candidates to a judge came to (S28).

    ``position`` is its place among the presentations, ``order`` the candidates' values as shown.
    A failure has its status and reason and says nothing; it is never a tie.
    """

    run = models.ForeignKey(Run, models.PROTECT, related_name="judge_verdicts")
    t = models.PositiveIntegerField()
    position = models.PositiveIntegerField()
    call_id = models.CharField(max_length=64)
    order = models.JSONField()
    repeat = models.PositiveIntegerField()
    status = models.CharField(max_length=16)
    reason = models.TextField()
    said = models.CharField(max_length=16, blank=True)
    choice = models.TextField(blank=True)
    score = models.IntegerField(null=True)
    raw_hash = models.CharField(max_length=HASH, blank=True)
    attempt = models.ForeignKey(Attempt, models.PROTECT, null=True, related_name="judge_verdicts")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "position"], name="judge_verdict_once"),
            models.CheckConstraint(
                condition=Q(said__in=["", "candidate", "tie", "abstain", "score"])
                & (Q(said="") | Q(status="SUCCEEDED")),
                name="judge_verdict_of_a_success",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.said or self.status} in {self.call_id}"


class Aggregate(models.Model):
    """
    A final answer, or the local unresolved fallback (S14, S27).

    A later resolution appends another with the next ``ordinal``; none replaces another (S24).
    """

    run = models.ForeignKey(Run, models.PROTECT, related_name="aggregates")
    ordinal = models.PositiveIntegerField()
    t = models.PositiveIntegerField()
    aggregator = models.CharField(max_length=32)
    answer_raw = models.TextField()
    answer_kind = models.CharField(max_length=8)
    answer_value = models.TextField()
    answer_rule = models.CharField(max_length=32)
    answer_reason = models.TextField()
    counts = models.JSONField()
    tied = models.BooleanField()
    tie_resolved_by = models.CharField(max_length=32)
    unresolved = models.BooleanField()
    candidates = models.JSONField()
    open_issues = models.JSONField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "ordinal"], name="aggregate_once"),
        ]

    def __str__(self) -> str:
        return f"aggregate {self.ordinal} of run {self.run_id}"


class EntryKind(models.TextChoices):
    """Movements of the ledger (S31)."""

    RESERVE = "reserve"
    SETTLE = "settle"
    HOLD = "hold"
    RELEASE = "release"
    OVERRUN = "overrun"


class LedgerEntry(models.Model):
    """
    One movement on an account. Appended, never changed.

    ``source`` says from which part the amount is taken: nothing for a reserve and an overrun,
    ``reserved`` or ``held`` for the rest.
    """

    account = models.ForeignKey(Account, models.PROTECT, related_name="entries")
    attempt = models.ForeignKey(Attempt, models.PROTECT, null=True, related_name="entries")
    run = models.ForeignKey(Run, models.PROTECT, null=True, related_name="entries")
    kind = models.CharField(max_length=8, choices=EntryKind.choices)
    source = models.CharField(max_length=8, blank=True)
    microusd = models.BigIntegerField()
    output_tokens = models.BigIntegerField()
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(microusd__gte=0) & Q(output_tokens__gte=0), name="entry_not_negative"
            ),
            models.CheckConstraint(condition=Q(kind__in=EntryKind.values), name="entry_kind_known"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.microusd}"
