"""What the pages of questions read: sets with what is in them, questions by key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Left

from debateweb.models import Workspace
from debateweb.texts import printable
from runs.models import Debate, DebateSet, Experiment, Question, QuestionSet

#: Choices of a filter; a set whose every question is a stratum of its own has no use for it.
MOST_CHOICES = 100
#: Characters of a text that are shown at once, and of all texts of a debate's page together.
MOST_CHARACTERS = 20_000
PAGE_CHARACTERS = 300_000
FEWEST_CHARACTERS = 500
#: Characters of a short field: an answer, a choice, a reference, a claim.
FIELD_CHARACTERS = 1_000
#: Characters of a question that a list reads of it.
LISTED_CHARACTERS = 300
FILTERS = {"type": "answer_type", "stratum": "stratum", "split": "split"}


@dataclass(frozen=True)
class Shortened:
    """A text of a file as far as it is shown; ``left`` characters are not."""

    text: str
    left: int


@dataclass(frozen=True)
class LoggedTurn:
    """What one agent did in one round of a debate that ran elsewhere, as its log has it."""

    agent_id: str
    label: str
    model: str
    answer: Shortened | None
    text: Shortened
    claims: list[tuple[str, Shortened]]
    status: str  # "" for a turn that succeeded.
    confidence: float | None


@dataclass(frozen=True)
class LoggedBelief:
    """A judge's shares of 1 over the options after some rounds, the largest first."""

    judge: str
    after: int
    shares: list[tuple[Shortened, float]]


@dataclass(frozen=True)
class LoggedDebate:
    """One debate as its page shows it. ``final`` is answer and aggregator, where the log says."""

    rounds: list[list[LoggedTurn]]
    beliefs: list[LoggedBelief]
    final: tuple[Shortened, str] | None


@dataclass(frozen=True)
class SetRow:
    """One set of the list, with what its questions are."""

    row: QuestionSet
    types: tuple[str, ...]
    strata: int
    splits: tuple[str, ...]
    referenced: int


@dataclass
class Facets:
    """How many questions of a set there are by answer type, stratum and split."""

    types: Counter[str] = field(default_factory=Counter)
    strata: Counter[str] = field(default_factory=Counter)
    splits: Counter[str] = field(default_factory=Counter)
    referenced: int = 0


def question_sets_in(workspace: Workspace) -> QuerySet[QuestionSet]:
    return QuestionSet.objects.filter(workspace=workspace, archived_at=None)


def debate_sets_in(workspace: Workspace) -> QuerySet[DebateSet]:
    return DebateSet.objects.filter(workspace=workspace, archived_at=None)


def debates_in(debate_set: DebateSet) -> QuerySet[Debate]:
    """Return the debates of a set for a list: with ``text_start``, without what they say."""
    rows = Debate.objects.filter(debate_set=debate_set).defer("body")
    return rows.annotate(text_start=Left("question__text", LISTED_CHARACTERS))


def described(sets: list[QuestionSet]) -> list[SetRow]:
    """Return sets with what is in them: one query for all of a page."""
    found = (
        Question.objects.filter(question_set__in=sets)
        .values("question_set_id")
        .annotate(
            types=ArrayAgg("answer_type", distinct=True),
            splits=ArrayAgg("split", distinct=True, filter=~Q(split=""), default=[]),
            strata=Count("stratum", distinct=True, filter=~Q(stratum="")),
            referenced=Count("pk", filter=~Q(reference=[])),
        )
    )
    by_set: dict[int, dict[str, Any]] = {item["question_set_id"]: {**item} for item in found}
    return [_set_row(row, by_set.get(row.pk, {})) for row in sets]


def _set_row(row: QuestionSet, item: dict[str, Any]) -> SetRow:
    return SetRow(
        row,
        tuple(item.get("types", ())),
        item.get("strata", 0),
        tuple(item.get("splits", ())),
        item.get("referenced", 0),
    )


def facets(question_set: QuestionSet) -> Facets:
    """Count a set's questions by what they can be filtered by: one query."""
    made = Facets()
    counted = question_set.questions.values_list("answer_type", "stratum", "split").annotate(
        count=Count("pk"), referenced=Count("pk", filter=~Q(reference=[]))
    )
    for answer_type, stratum, split, count, referenced in counted:
        made.types[answer_type] += count
        made.strata[stratum] += count
        made.splits[split] += count
        made.referenced += referenced
    return made


def questions_after(
    question_set: QuestionSet, chosen: dict[str, str], after: int, size: int
) -> tuple[list[Question], bool]:
    """
    Return the next ``size`` questions in the set's order and whether more follow: one query.

    They have ``text_start`` in place of the text, which may be a megabyte each.
    """
    rows = question_set.questions.filter(
        position__gt=after, **{FILTERS[name]: value for name, value in chosen.items()}
    )
    listed = rows.annotate(text_start=Left("text", LISTED_CHARACTERS)).order_by("position")
    found: list[Question] = list(
        listed.defer("text", "evidence", "metadata", "choices")[: size + 1]
    )
    return found[:size], len(found) > size


def experiments_with(question_set: QuestionSet) -> QuerySet[Experiment]:
    return Experiment.objects.filter(question_set=question_set, archived_at=None).order_by("-pk")


def shortened(text: str, limit: int | None) -> Shortened:
    """Return the first ``limit`` characters of a text and how many are left; None takes all."""
    kept = text[:limit]
    return Shortened(kept, len(text) - len(kept))


def logged(debate: Debate, *, shows_all: bool) -> LoggedDebate:
    """Return what the log of a debate says, each text cut so that the page stays bounded."""
    turns = sum(len(found) for found in debate.body["rounds"])
    fair = PAGE_CHARACTERS // max(turns, 1)
    most = None if shows_all else max(FEWEST_CHARACTERS, min(MOST_CHARACTERS, fair))
    limit = None if shows_all else FIELD_CHARACTERS
    models = {agent["agent_id"]: agent["model"] for agent in debate.body["agents"]}
    final = debate.body.get("final")
    return LoggedDebate(
        rounds=[
            [_turn(turn, t, models, most, limit) for turn in found]
            for t, found in enumerate(debate.body["rounds"])
        ],
        beliefs=[_belief(belief, limit) for belief in debate.body.get("beliefs", [])],
        final=(shortened(final["answer"] or "", limit), final["aggregator"]) if final else None,
    )


def _turn(
    turn: dict[str, Any], t: int, models: dict[str, str], most: int | None, limit: int | None
) -> LoggedTurn:
    answer, status = turn.get("answer"), turn.get("status", "SUCCEEDED")
    return LoggedTurn(
        agent_id=turn["agent_id"],
        label=printable(f"Reply of {turn['agent_id'][:80]}, round {t}"),
        model=models.get(turn["agent_id"], ""),
        answer=None if answer is None else shortened(answer, limit),
        text=shortened(turn.get("text") or "", most),
        claims=[(c["claim_id"], shortened(c["text"], limit)) for c in turn.get("claims", [])],
        status="" if status == "SUCCEEDED" else status,
        confidence=turn.get("confidence"),
    )


def _belief(belief: dict[str, Any], limit: int | None) -> LoggedBelief:
    shares = sorted(belief["belief"].items(), key=lambda share: -share[1])
    return LoggedBelief(
        belief["judge"], belief["after"], [(shortened(o, limit), share) for o, share in shares]
    )
