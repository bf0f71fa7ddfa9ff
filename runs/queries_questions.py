"""What the pages of questions read: sets with what is in them, questions by key."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, QuerySet

from debateweb.models import Workspace
from runs.models import DebateSet, Experiment, Question, QuestionSet

#: Choices of a filter; a set whose every question is a stratum of its own has no use for it.
MOST_CHOICES = 100
FILTERS = {"type": "answer_type", "stratum": "stratum", "split": "split"}


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
    """Return the next ``size`` questions in the set's order and whether more follow: one query."""
    rows = question_set.questions.filter(
        position__gt=after, **{FILTERS[name]: value for name, value in chosen.items()}
    ).order_by("position")
    found = list(rows[: size + 1])
    return found[:size], len(found) > size


def experiments_with(question_set: QuestionSet) -> QuerySet[Experiment]:
    return Experiment.objects.filter(question_set=question_set, archived_at=None).order_by("-pk")
