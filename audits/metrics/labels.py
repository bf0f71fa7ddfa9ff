"""People's labels as rows, and the labels of one kind arranged as items by annotators."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, IntArray
from audits.metrics.errors import MetricsError
from audits.metrics.question_table import QuestionTable

MISSING: Final = -1
SEALED: Final = "sealed"
#: Kinds whose labels are numbers with an order; the labels of the others are names.
SCALE_KINDS: Final = frozenset({"scale"})

LabelValue = str | float | Mapping[str, float]


class BadLabelError(MetricsError):
    """A label contradicts the others or cannot be counted."""

    code = "bad_label"

    def __init__(self, item_id: str, annotator: str, problem: str) -> None:
        super().__init__(f"item {item_id}, annotator {annotator}: {problem}")


class MixedKindsError(MetricsError):
    """Labels of different kinds or units were given where one is described."""

    code = "mixed_kinds"

    def __init__(self, kinds: Iterable[str]) -> None:
        super().__init__(f"labels of several kinds or units: {', '.join(sorted(kinds))}")


@dataclass(frozen=True, slots=True)
class LabelRow:
    """What one person said of one item.

    ``question_id`` is the cluster, ``family`` groups questions that are not independent (None:
    the question alone). ``weight`` is 1/inclusion probability. ``shown_order`` lists the
    candidates as shown; a verdict in ``label`` names content, never a position. ``serving``
    counts the times that this person got the item, from 0: agreement is about the first.
    ``gold`` is the label that is known to be right, on gold items only.
    """

    item_id: str
    annotator: str
    kind: str
    label: LabelValue
    question_id: str
    family: str | None = None
    unit: str = "item"
    weight: float = 1.0
    stratum: str | None = None
    shown_order: tuple[str, ...] = ()
    serving: int = 0
    reveal_state: str = SEALED
    gold: str | float | None = None

    @property
    def category(self) -> str:
        """Return the label as a name, equal numbers by one name.

        Raises BadLabelError for a belief, which is no category.
        """
        if isinstance(self.label, Mapping):
            raise BadLabelError(self.item_id, self.annotator, "a belief is no category")
        return category_name(self.label)


def category_name(label: str | float) -> str:
    return label if isinstance(label, str) else f"{float(label):g}"


@dataclass(frozen=True, eq=False)
class LabelTable:
    """First sealed labels. ``codes`` is [items, annotators], MISSING where there is none.

    ``categories`` name the codes, in the rubric's order. ``weights`` are [items], all 1 where
    they do not differ, for then they change nothing but the look of the counts.
    """

    item_ids: tuple[str, ...]
    annotators: tuple[str, ...]
    categories: tuple[str, ...]
    codes: IntArray
    weights: FloatArray
    item_questions: tuple[str, ...]
    questions: QuestionTable
    after_reveal: int

    @cached_property
    def cluster(self) -> IntArray:
        """Return the family index of every item."""
        return self.questions.cluster_of(self.item_questions)

    @cached_property
    def counts(self) -> IntArray:
        """Return how many people gave each category, [items, categories]."""
        wanted = self.codes[:, :, None] == np.arange(len(self.categories))
        return np.asarray(wanted.sum(axis=1), dtype=np.int64)

    @property
    def several(self) -> BoolArray:
        """Return which items have two labels or more."""
        return np.asarray(self.counts.sum(axis=1) >= 2)

    def column(self, annotator: str) -> IntArray:
        return self.codes[:, self.annotators.index(annotator)]


def label_table(rows: Sequence[LabelRow], categories: Sequence[str] | None = None) -> LabelTable:
    """Arrange the labels of one kind and unit.

    ``categories`` are the rubric's, in order; without, those that occur (numbers by size).
    Labels after a reveal are left out and counted: they are not independent.
    Raises MixedKindsError, and BadLabelError for a label outside the rubric, a second label of
    one serving, or a question in two families.
    """
    kinds = {f"{row.kind} of a {row.unit}" for row in rows}
    if len(kinds) > 1:
        raise MixedKindsError(kinds)
    sealed = [row for row in rows if row.reveal_state == SEALED]
    first = first_labels(sealed)
    names = tuple(categories) if categories is not None else _occurring(first)
    item_ids = tuple(sorted({row.item_id for row in first}))
    annotators = tuple(sorted({row.annotator for row in first}))
    item_at, person_at, code_of = (
        {name: index for index, name in enumerate(keys)} for keys in (item_ids, annotators, names)
    )
    codes = np.full((len(item_ids), len(annotators)), MISSING, dtype=np.int64)
    weights = np.ones(len(item_ids))
    for row in first:
        if row.category not in code_of:
            raise BadLabelError(
                row.item_id, row.annotator, f"label {row.category} is not in the rubric"
            )
        codes[item_at[row.item_id], person_at[row.annotator]] = code_of[row.category]
        weights[item_at[row.item_id]] = row.weight
    question_of = {row.item_id: row.question_id for row in first}
    return LabelTable(
        item_ids,
        annotators,
        names,
        codes,
        np.ones(len(weights)) if len(set(weights.tolist())) == 1 else weights,
        tuple(question_of[item_id] for item_id in item_ids),
        QuestionTable(_families(first)),
        len(rows) - len(sealed),
    )


def first_labels(rows: Iterable[LabelRow]) -> list[LabelRow]:
    """Return each person's label at the first serving of each item.

    Raises BadLabelError for two labels of one serving.
    """
    found: dict[tuple[str, str], LabelRow] = {}
    seen = Counter((row.item_id, row.annotator, row.serving) for row in rows)
    for (item_id, annotator, _), count in seen.items():
        if count > 1:
            raise BadLabelError(item_id, annotator, "two labels of one serving")
    for row in rows:
        key = (row.item_id, row.annotator)
        if key not in found or row.serving < found[key].serving:
            found[key] = row
    return list(found.values())


def _occurring(rows: Iterable[LabelRow]) -> tuple[str, ...]:
    return tuple(sorted({row.category for row in rows}, key=_by_size))


def _by_size(name: str) -> tuple[float, str]:
    value = number_of(name)
    return (float("inf") if value is None else value, name)


def number_of(category: str) -> float | None:
    """Return the number that a category's name is, or None."""
    try:
        value = float(category)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _families(rows: Iterable[LabelRow]) -> dict[str, str]:
    families: dict[str, str] = {}
    questions: dict[str, str] = {}
    for row in rows:
        family = row.family or row.question_id
        if families.setdefault(row.question_id, family) != family:
            problem = f"question {row.question_id} is in two families"
            raise BadLabelError(row.item_id, row.annotator, problem)
        if questions.setdefault(row.item_id, row.question_id) != row.question_id:
            raise BadLabelError(row.item_id, row.annotator, "its labels name two questions")
    return families


def majority_labels(table: LabelTable, without: int | None = None) -> IntArray:
    """Return the category with the most labels of each item; MISSING for none or for a tie.

    ``without`` leaves one annotator (their column) out.
    """
    counts = table.counts
    if without is not None:
        own = table.codes[:, [without]] == np.arange(len(table.categories))
        counts = counts - own
    best = counts.max(axis=1, initial=0)
    unique = (counts == best[:, None]).sum(axis=1) == 1
    return np.where((best > 0) & unique, counts.argmax(axis=1), MISSING)
