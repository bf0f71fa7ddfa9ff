"""What the order of two candidates does to a judge, and what it does to itself when asked again.

A verdict under one order is set against a verdict under the other. With repeats every verdict of
one order meets every verdict of the other, and the item keeps the weight of one pair. Pairs of
which an order has no verdict (failed, unparseable, abstained) leave the rates; only
``position_consistency_all`` counts them against the judge.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from audits.metrics.arrays import FloatArray
from audits.metrics.figures import Figure, PairedTest
from audits.metrics.hypotheses import mcnemar_exact, sign_flip
from audits.metrics.judgments import ABSTAIN, SUCCEEDED, TIE, JudgedItem
from audits.metrics.question_table import Cell, QuestionTable
from audits.metrics.ratio import Ratio, Settings

NO_PAIRS = "no pair has a verdict in both orders"
NO_REPEATS = "no order was judged twice: the verdicts differ, which is not yet an order effect"


@dataclass(frozen=True, slots=True)
class PairShares:
    """One item with a verdict in both orders: shares of its verdict pairs, weighing one in all.

    ``primacy`` and ``recency`` are the pairs that lean to the first or the last shown, a tie in
    one order among them; ``conflict`` are those in which both orders chose the same place,
    ``half_conflict`` those with exactly one tie, ``decisive`` those without a tie.
    """

    question_id: str
    consistent: float
    conflict: float
    half_conflict: float
    decisive: float
    primacy: float
    recency: float


def pair_shares(items: Iterable[JudgedItem]) -> list[PairShares]:
    """Return the shares of every item of two candidates with a verdict in both orders."""
    return [
        _shares_of(item)
        for item in items
        if len(item.given) == 2 and item.given in item.verdicts and item.swapped in item.verdicts
    ]


def _shares_of(item: JudgedItem) -> PairShares:
    pairs = list(product(item.verdicts[item.given], item.verdicts[item.swapped]))
    first, last = item.given
    # In the given order the first shown is ``first``, in the swapped one it is ``last``.
    toward = [_lean(given, first) + _lean(swapped, last) for given, swapped in pairs]
    ties = [(given, swapped).count(TIE) for given, swapped in pairs]
    n = len(pairs)
    return PairShares(
        item.question_id,
        consistent=sum(given == swapped for given, swapped in pairs) / n,
        conflict=sum(abs(lean) == 2 for lean in toward) / n,
        half_conflict=ties.count(1) / n,
        decisive=ties.count(0) / n,
        primacy=sum(lean > 0 for lean in toward) / n,
        recency=sum(lean < 0 for lean in toward) / n,
    )


def _lean(verdict: str, shown_first: str) -> int:
    """Return 1 for a verdict for the first shown, -1 for the last shown, 0 for a tie."""
    if verdict == TIE:
        return 0
    return 1 if verdict == shown_first else -1


def order_ratios(items: Sequence[JudgedItem], table: QuestionTable) -> Iterator[Ratio]:
    """Yield the rates of pairs judged in both orders."""
    shares = pair_shares(items)
    for metric, cells in (
        ("position_consistency", [(s.question_id, s.consistent, 1.0) for s in shares]),
        ("conflict_rate", [(s.question_id, s.conflict, 1.0) for s in shares]),
        ("half_conflict_rate", [(s.question_id, s.half_conflict, 1.0) for s in shares]),
        ("primacy", [(s.question_id, s.primacy, 1.0) for s in shares]),
        ("recency", [(s.question_id, s.recency, 1.0) for s in shares]),
    ):
        yield table.ratio(metric, cells, NO_PAIRS)
    decisive = [(s.question_id, s.conflict, s.decisive) for s in shares]
    yield table.ratio("hard_flip_rate", decisive, "no pair was decided in both orders")
    everything = list(_consistent_of_all(items))
    yield table.ratio("position_consistency_all", everything, "no pair was shown in both orders")
    leans = [(s.question_id, s.recency - s.primacy, 1.0) for s in shares]
    yield table.ratio("preference_fairness", leans, NO_PAIRS, signed=True)
    yield table.ratio("excess_flip", excess_flip_cells(items), NO_REPEATS, signed=True)
    yield table.ratio("repetition_stability", _stability(items), "no order was judged twice")


def _consistent_of_all(items: Iterable[JudgedItem]) -> Iterator[Cell]:
    """Yield consistent / all pairs asked: a missing verdict counts as no agreement."""
    for item in items:
        if len(item.given) != 2 or not {item.given, item.swapped} <= item.by_order.keys():
            continue
        pairs = list(product(item.by_order[item.given], item.by_order[item.swapped]))
        same = sum(a.verdict == b.verdict for a, b in pairs if a.decided and b.decided)
        yield item.question_id, same / len(pairs), 1.0


def excess_flip_cells(items: Iterable[JudgedItem]) -> list[Cell]:
    """Return P(differ across orders) - P(differ within an order) of each item, for any K.

    Undefined (denominator 0) for an item without two orders or without a repeat of one.
    """
    cells = []
    for item in items:
        orders = list(item.verdicts.values())
        across = [_differ(product(a, b)) for a, b in combinations(orders, 2)]
        within = [_differ(combinations(same, 2)) for same in orders if len(same) > 1]
        if across and within:
            excess = float(np.mean(across) - np.mean(within))
            cells.append((item.question_id, excess, 1.0))
        elif across:
            cells.append((item.question_id, 0.0, 0.0))
    return cells


def _differ(pairs: Iterable[tuple[str, str]]) -> float:
    return float(np.mean([a != b for a, b in pairs]))


def _stability(items: Iterable[JudgedItem]) -> list[Cell]:
    """Return the modal share of each order judged at least twice; every order weighs one."""
    return [
        (item.question_id, max(Counter(same).values()) / len(same), 1.0)
        for item in items
        for same in item.verdicts.values()
        if len(same) > 1
    ]


def with_preference_test(
    figures: Sequence[Figure],
    items: Sequence[JudgedItem],
    table: QuestionTable,
    settings: Settings,
) -> list[Figure]:
    """Return the figures with the test of recency against primacy beside preference_fairness.

    Binomial where each question gives one pair; a sign-flip test by question, or family, else.
    """
    shares = pair_shares(items)
    test = _preference_test(shares, table, settings) if shares else None
    return [
        replace(figure, paired=test) if figure.metric == "preference_fairness" else figure
        for figure in figures
    ]


def _preference_test(
    shares: Sequence[PairShares], table: QuestionTable, settings: Settings
) -> PairedTest:
    leans = np.array([s.recency - s.primacy for s in shares])
    clusters = table.cluster_of(s.question_id for s in shares)
    whole = bool(np.isin(leans, (-1, 0, 1)).all())
    if whole and len(np.unique(clusters)) == len(clusters):
        return _binomial(leans)
    return PairedTest(sign_flip(leans, settings.seed, clusters), "sign_flip", None)


def _binomial(leans: FloatArray) -> PairedTest:
    # The binomial test of R out of R+P at one half is the exact test of two opposite counts.
    found = mcnemar_exact(int((leans > 0).sum()), int((leans < 0).sum()))
    flags = ("no_discordant",) if found.no_discordant else ()
    return PairedTest(found.p, "binomial", None, p_mid=found.p_mid, flags=flags)


def reply_ratios(items: Sequence[JudgedItem], table: QuestionTable) -> Iterator[Ratio]:
    """Yield the shares of judgments without a verdict, by cause, and of abstentions."""
    rows = [row for item in items for row in item.rows]
    empty = "no judgments"
    failed = [(row.question_id, float(row.status != SUCCEEDED), 1.0) for row in rows]
    yield table.ratio("invalid_rate", failed, empty)
    causes = sorted({(row.status, row.cause) for row in rows if row.status != SUCCEEDED})
    for status, cause in causes:
        cells = [(r.question_id, float((r.status, r.cause) == (status, cause)), 1.0) for r in rows]
        by = {"status": status} | ({"cause": cause} if cause else {})
        yield table.ratio("invalid_rate", cells, empty, by=by)
    silent = [(row.question_id, float(row.verdict == ABSTAIN), 1.0) for row in rows]
    yield table.ratio("abstain_rate", silent, empty)
