"""Judgments as rows, and the rows of one judge arranged by item and order.

A verdict names content, never a position: what was shown where is in ``order``. A judgment that
failed stays a row, so that it leaves the rates and is counted with its cause.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from audits.metrics.errors import MetricsError

TIE: Final = "tie"
ABSTAIN: Final = "abstain"
#: A combined verdict on which the orders of one item do not agree. It is never a tie.
CONFLICT: Final = "conflict"
SUCCEEDED: Final = "SUCCEEDED"
JUDGMENT_STATUSES: Final = (SUCCEEDED, "FAILED", "TIMEOUT", "INVALID")

Order = tuple[str, ...]


class BadJudgmentError(MetricsError):
    """A judgment contradicts its item or itself."""

    code = "bad_judgment"

    def __init__(self, item_id: str, problem: str) -> None:
        super().__init__(f"item {item_id}: {problem}")


class MixedJudgesError(MetricsError):
    """Judges with different hashes never pool."""

    code = "mixed_judges"

    def __init__(self, judges: Iterable[str]) -> None:
        super().__init__(f"judgments of several judges: {', '.join(sorted(judges))}")


@dataclass(frozen=True, slots=True)
class JudgmentRow:
    """One verdict of one judge on one item under one order.

    ``judge`` is the judge's hash. ``question_id`` is the cluster, ``family`` groups questions
    that are not independent (None: the question alone). ``candidates`` stand in the file's
    order, ``order`` as shown. ``verdict`` is a candidate's id, ``tie`` or ``abstain``, and None
    exactly where ``status`` is not SUCCEEDED; ``cause`` then says why. ``gold`` is a candidate's
    id or ``tie``. ``assigned`` is the side, ``correct`` or ``incorrect``, that the text judged
    was told to argue. ``own`` is the candidate that the judge's own model wrote. ``lengths`` are
    in one unit for all candidates, ``models`` say who wrote which.
    """

    judge: str
    question_id: str
    item_id: str
    candidates: Order
    order: Order
    verdict: str | None
    repeat: int = 1
    status: str = SUCCEEDED
    cause: str = ""
    gold: str | None = None
    group: str = ""
    family: str | None = None
    assigned: str | None = None
    own: str | None = None
    lengths: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)

    @property
    def decided(self) -> bool:
        """Whether there is a verdict on the candidates: neither a failure nor an abstention."""
        return self.verdict is not None and self.verdict != ABSTAIN

    @property
    def picks_one(self) -> bool:
        return self.verdict in self.candidates

    @property
    def position(self) -> int | None:
        """Return the place, from 0, at which the chosen candidate stood."""
        return self.order.index(self.verdict) if self.verdict in self.order else None


@dataclass(frozen=True)
class JudgedItem:
    """One item with its judgments by order. ``facts`` is any of its rows."""

    facts: JudgmentRow
    by_order: Mapping[Order, tuple[JudgmentRow, ...]]

    @property
    def question_id(self) -> str:
        return self.facts.question_id

    @cached_property
    def rows(self) -> tuple[JudgmentRow, ...]:
        return tuple(row for rows in self.by_order.values() for row in rows)

    @cached_property
    def verdicts(self) -> Mapping[Order, tuple[str, ...]]:
        """Return the verdicts of each order that has any, failures and abstentions left out."""
        found = {
            order: tuple(row.verdict for row in rows if row.decided and row.verdict is not None)
            for order, rows in self.by_order.items()
        }
        return {order: verdicts for order, verdicts in found.items() if verdicts}

    @property
    def given(self) -> Order:
        return self.facts.candidates

    @property
    def swapped(self) -> Order:
        return tuple(reversed(self.facts.candidates))


def judged_items(rows: Iterable[JudgmentRow]) -> list[JudgedItem]:
    """Arrange the judgments of one judge, in the order of item ids.

    Raises MixedJudgesError, and BadJudgmentError for a row that contradicts itself or its item,
    or that is given twice.
    """
    by_item: dict[str, list[JudgmentRow]] = {}
    for row in rows:
        by_item.setdefault(row.item_id, []).append(row)
    judges = {row.judge for of_item in by_item.values() for row in of_item}
    if len(judges) > 1:
        raise MixedJudgesError(judges)
    return [_arranged(by_item[item_id]) for item_id in sorted(by_item)]


def _arranged(rows: Sequence[JudgmentRow]) -> JudgedItem:
    facts = rows[0]
    seen: set[tuple[Order, int]] = set()
    by_order: dict[Order, list[JudgmentRow]] = {}
    for row in rows:
        problem = _problem(row, facts)
        if (row.order, row.repeat) in seen:
            problem = f"repeat {row.repeat} of one order is given twice"
        if problem:
            raise BadJudgmentError(row.item_id, problem)
        seen.add((row.order, row.repeat))
        by_order.setdefault(row.order, []).append(row)
    return JudgedItem(
        facts,
        {
            order: tuple(sorted(by_order[order], key=lambda row: row.repeat))
            for order in sorted(by_order, key=lambda order: (order != facts.candidates, order))
        },
    )


def _problem(row: JudgmentRow, facts: JudgmentRow) -> str | None:
    """Return the first thing that is wrong with a row, or None."""
    names = set(row.candidates)
    same = (facts.question_id, facts.candidates, facts.gold)
    faults = (
        ((row.question_id, row.candidates, row.gold) != same,
         "its rows differ in question, candidates or gold"),
        (row.status not in JUDGMENT_STATUSES, f"{row.status} is not a status of a judgment"),
        (len(names) < len(row.candidates) or bool({TIE, ABSTAIN} & names),
         "candidate ids are not distinct, or one is a word for no candidate"),
        (Counter(row.order) != Counter(row.candidates),
         "the order shown is not an order of its candidates"),
        ((row.verdict is None) == (row.status == SUCCEEDED),
         f"status {row.status} with verdict {row.verdict}"),
        (row.verdict not in {None, TIE, ABSTAIN, *names},
         f"verdict {row.verdict} names no candidate"),
        (row.gold not in {None, TIE, *names}, f"gold {row.gold} names no candidate"),
    )  # fmt: skip
    return next((problem for wrong, problem in faults if wrong), None)


def families_of(items: Iterable[JudgedItem]) -> dict[str, str]:
    """Return the family of every question.

    Raises BadJudgmentError for a question in two families.
    """
    found: dict[str, str] = {}
    for item in items:
        family = item.facts.family or item.question_id
        if found.setdefault(item.question_id, family) != family:
            raise BadJudgmentError(
                item.facts.item_id, f"question {item.question_id} is in two families"
            )
    return found


def modal_verdict(verdicts: Sequence[str]) -> str:
    """Return the verdict given most often under one order; CONFLICT where two are."""
    counts = Counter(verdicts).most_common(2)
    if len(counts) > 1 and counts[0][1] == counts[1][1]:
        return CONFLICT
    return counts[0][0]
