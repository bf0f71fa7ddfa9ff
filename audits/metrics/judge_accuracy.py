"""Whether a judge is right: by order, by what a tie counts, and by how orders are combined."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from audits.metrics.judgments import (
    ABSTAIN,
    CONFLICT,
    TIE,
    JudgedItem,
    JudgmentRow,
    Order,
    modal_verdict,
)
from audits.metrics.question_table import Cell, QuestionTable
from audits.metrics.ratio import Ratio

METRIC = "judge_accuracy"
NO_GOLD = "no item with a verdict has a gold label"
ORDERS = ("given", "swapped", "all")
#: How the verdicts of one item under its orders become one.
COMBINATIONS = ("agree", "conflict_as_tie", "mean_score")

#: (credit, weight) of a verdict against the gold label.
Credit = Callable[[str, str], tuple[float, float]]


def credit_class(verdict: str, gold: str) -> tuple[float, float]:
    """A tie is a class of its own. An abstention is not right."""
    return float(verdict == gold), 1.0


def credit_decisive(verdict: str, gold: str) -> tuple[float, float]:
    """Only where verdict and gold both choose."""
    weight = float(verdict not in {TIE, ABSTAIN, CONFLICT} and gold != TIE)
    return weight * (verdict == gold), weight


def credit_half(verdict: str, gold: str) -> tuple[float, float]:
    """A tie on either side alone is worth one half."""
    if TIE in {verdict, gold} and verdict not in {ABSTAIN, CONFLICT}:
        return (1.0 if verdict == gold else 0.5), 1.0
    return credit_class(verdict, gold)


CREDITS: Mapping[str, Credit] = {
    "class": credit_class,
    "decisive": credit_decisive,
    "half": credit_half,
}


def accuracy_ratios(items: Sequence[JudgedItem], table: QuestionTable) -> Iterator[Ratio]:
    """Yield judge_accuracy by order and treatment of ties, then its variants.

    Over judgments with a verdict; ``by.invalid`` says what the others would make of it (``wrong``,
    or folded into a tie as some published figures do).
    """
    for order in ORDERS:
        for ties, credit in CREDITS.items():
            yield _ratio(items, table, {"order": order, "ties": ties}, credit)
    for side in sorted({item.facts.assigned for item in items if item.facts.assigned}):
        own = [item for item in items if item.facts.assigned == side]
        for order in ORDERS:
            by = {"order": order, "ties": "class", "assigned": side}
            yield _ratio(own, table, by, credit_class)
    if any(row.verdict is None for item in items for row in item.rows):
        yield from _with_invalid(items, table)
    yield from _combined(items, table)


def _ratio(
    items: Sequence[JudgedItem],
    table: QuestionTable,
    by: dict[str, str],
    credit: Credit,
    missing: str | None = None,
) -> Ratio:
    cells = list(_cells(items, by["order"], credit, missing))
    empty = NO_GOLD
    if any(item.facts.gold is not None for item in items):
        empty = f"no verdict to count in order {by['order']} with ties as {by['ties']}"
    return table.ratio(METRIC, cells, empty, by=by)


def _cells(
    items: Sequence[JudgedItem], wanted: str, credit: Credit, missing: str | None
) -> Iterator[Cell]:
    """Yield one cell per presentation: repeats of an order are averaged within it.

    ``missing`` is the verdict that stands for none, None where such judgments are left out.
    """
    for item in items:
        gold = item.facts.gold
        for order, rows in item.by_order.items():
            if gold is None or not _is_wanted(item, order, wanted):
                continue
            verdicts = [row.verdict if row.verdict is not None else missing for row in rows]
            earned = [credit(verdict, gold) for verdict in verdicts if verdict is not None]
            if earned:
                right, weight = np.mean(earned, axis=0)
                yield item.question_id, float(right), float(weight)


def _is_wanted(item: JudgedItem, order: Order, wanted: str) -> bool:
    if wanted == "all":
        return True
    return order == (item.given if wanted == "given" else item.swapped)


def _with_invalid(items: Sequence[JudgedItem], table: QuestionTable) -> Iterator[Ratio]:
    for name, stands_for in (("wrong", CONFLICT), ("tie", TIE)):
        for order in ORDERS:
            by = {"order": order, "ties": "class", "invalid": name}
            yield _ratio(items, table, by, credit_class, stands_for)


def _combined(items: Sequence[JudgedItem], table: QuestionTable) -> Iterator[Ratio]:
    """Yield the accuracy of the combined verdict, over items with a verdict in every order."""
    several = [item for item in items if len(item.by_order) > 1]
    for rule in COMBINATIONS if several else ():
        cells = []
        for item in several:
            verdict, gold = combined_verdict(item, rule), item.facts.gold
            if verdict is not None and gold is not None:
                cells.append((item.question_id, *credit_class(verdict, gold)))
        by = {"order": "all", "ties": "class", "combine": rule}
        if cells or rule != "mean_score":
            yield table.ratio(METRIC, cells, "no item has a verdict in every order", by=by)


def combined_verdict(item: JudgedItem, rule: str = "agree") -> str | None:
    """Return the verdict of an item over its orders; None where an order has no verdict.

    ``agree``: what all orders say, else CONFLICT. ``conflict_as_tie``: the same with a conflict
    read as a tie (a sensitivity row, for a flip is no tie). ``mean_score``: the highest mean
    score over orders, equal ones a tie. Within an order the most frequent verdict speaks.
    Raises ValueError for another rule.
    """
    if rule not in COMBINATIONS:
        raise ValueError(f"{rule} is no rule; there are {', '.join(COMBINATIONS)}")
    if rule == "mean_score":
        return _best_mean_score(item)
    if item.verdicts.keys() != item.by_order.keys():
        return None
    found = {modal_verdict(verdicts) for verdicts in item.verdicts.values()}
    if len(found) == 1 and found != {CONFLICT}:
        return found.pop()
    return CONFLICT if rule == "agree" else TIE


def mean_scores(item: JudgedItem) -> Mapping[str, float] | None:
    """Return each candidate's score, averaged over repeats, then orders; None where one has none.

    A failed order would leave the scores of the others uneven, so it leaves no score at all.
    """
    by_order = [_order_scores(item, rows) for rows in item.by_order.values()]
    scored = [scores for scores in by_order if scores is not None]
    if not scored or len(scored) < len(by_order):
        return None
    return dict(zip(item.given, np.mean(scored, axis=0).tolist(), strict=True))


def _order_scores(item: JudgedItem, rows: Sequence[JudgmentRow]) -> list[float] | None:
    found = [
        [row.scores[name] for name in item.given]
        for row in rows
        if row.verdict is not None and row.scores.keys() >= set(item.given)
    ]
    return [float(mean) for mean in np.mean(found, axis=0)] if found else None


def _best_mean_score(item: JudgedItem) -> str | None:
    scores = mean_scores(item)
    if scores is None:
        return None
    best = max(scores.values())
    winners = [name for name, score in scores.items() if best - score < 1e-9]
    return winners[0] if len(winners) == 1 else TIE


def panel_verdict(verdicts: Sequence[str | None], *, unparsed: str = "dropped") -> str | None:
    """Return the majority of several judges on one item: more votes than any other, else a tie.

    ``unparsed`` says what a missing verdict is: ``dropped`` from the vote, or a vote for ``tie``.
    None where nobody voted. Raises ValueError for another word.
    """
    if unparsed not in {"dropped", TIE}:
        raise ValueError(f"unparsed is dropped or {TIE}, not {unparsed}")
    votes = [TIE if vote is None else vote for vote in verdicts if vote or unparsed == TIE]
    if not votes:
        return None
    winner = modal_verdict(votes)
    return TIE if winner == CONFLICT else winner
