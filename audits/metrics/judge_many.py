"""Judges of more than two candidates: does the winner survive another order?

Everything is computed within an item and then averaged, so that items of different numbers of
candidates can stand together.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, floats
from audits.metrics.figures import Figure, PairedTest
from audits.metrics.judgments import JudgedItem, JudgmentRow
from audits.metrics.question_table import Cell, QuestionTable
from audits.metrics.ratio import Ratio, Settings

NO_ORDERS = "no item of three candidates or more has verdicts in two orders"
NO_RANKS = "no item of three candidates or more has scores in two orders"
UNBALANCED = "some item was not shown with every candidate in every place equally often"
PERMUTATIONS = 1_999


def many_figures(
    items: Sequence[JudgedItem], table: QuestionTable, settings: Settings
) -> list[Figure]:
    """Return the figures of items of three candidates or more; none where there is no such item."""
    many = [item for item in items if len(item.given) > 2]
    if not many:
        return []
    figures = table.figures(list(many_ratios(many, table)), settings)
    return [*figures, winner_position_figure(many, settings)]


def many_ratios(items: Sequence[JudgedItem], table: QuestionTable) -> Iterator[Ratio]:
    """Yield what is averaged over items of three candidates or more; nothing without such."""
    items = [item for item in items if len(item.given) > 2]
    if not items:
        return
    several = [item for item in items if len(item.verdicts) > 1]
    for metric, cells in (
        ("modal_winner_share", [_cell(item, _modal_share(item)) for item in several]),
        ("winner_entropy", [_cell(item, _entropy(item)) for item in several]),
        ("winner_differs", [_cell(item, _differs(item)) for item in several]),
    ):
        yield table.ratio(metric, cells, NO_ORDERS)
    rankings = [(item, ranks) for item in items if len(ranks := _scores_by_order(item)) > 1]
    taus = [(item, tau) for item, ranks in rankings if (tau := _mean_tau(ranks)) is not None]
    yield table.ratio(
        "kendall_tau_b", [_cell(item, tau) for item, tau in taus], NO_RANKS, bounded=False
    )
    concord = [(item, w) for item, ranks in rankings if (w := kendall_w(ranks)) is not None]
    yield table.ratio("kendall_w", [_cell(item, w) for item, w in concord], NO_RANKS)


def _cell(item: JudgedItem, value: float) -> Cell:
    return item.question_id, value, 1.0


def _winner_shares(item: JudgedItem) -> FloatArray:
    """Return how often each verdict was given, every order weighing one."""
    shares: dict[str, float] = {}
    for verdicts in item.verdicts.values():
        for verdict in verdicts:
            shares[verdict] = shares.get(verdict, 0.0) + 1 / len(verdicts)
    return floats(list(shares.values())) / len(item.verdicts)


def _modal_share(item: JudgedItem) -> float:
    return float(_winner_shares(item).max())


def _entropy(item: JudgedItem) -> float:
    """Return the winner's entropy over log K: 0 for one winner, 1 for all alike."""
    shares = _winner_shares(item)
    return min(1.0, float(-(shares * np.log(shares)).sum()) / math.log(len(item.given)))


def _differs(item: JudgedItem) -> float:
    """Return the share of pairs of orders whose winners differ."""
    pairs = combinations(item.verdicts.values(), 2)
    return float(np.mean([np.mean([a != b for a, b in product(*pair)]) for pair in pairs]))


def _scores_by_order(item: JudgedItem) -> list[FloatArray]:
    """Return the candidates' mean scores under each order that has them, in one sequence."""
    found = []
    for rows in item.by_order.values():
        scored = [
            [row.scores[name] for name in item.given]
            for row in rows
            if row.decided and row.scores.keys() >= set(item.given)
        ]
        if scored:
            found.append(floats(np.mean(scored, axis=0)))
    return found


def _mean_tau(scores: Sequence[FloatArray]) -> float | None:
    taus = [tau for a, b in combinations(scores, 2) if (tau := kendall_tau_b(a, b)) is not None]
    return float(np.mean(taus)) if taus else None


def kendall_tau_b(a: FloatArray, b: FloatArray) -> float | None:
    """Return tau-b of two scorings; None where one of them ranks nothing."""
    upper = np.triu_indices(len(a), 1)
    x, y = (np.sign(v[:, None] - v[None, :])[upper] for v in (a, b))
    norm = math.sqrt(float((x**2).sum() * (y**2).sum()))
    return float((x * y).sum()) / norm if norm else None


def kendall_w(scores: Sequence[FloatArray]) -> float | None:
    """Return the concordance of several scorings, corrected for ties; None where none ranks."""
    from scipy.stats import rankdata  # at report time only

    ranks = np.stack([rankdata(each) for each in scores])
    m, k = ranks.shape
    spread = float(((ranks.sum(axis=0) - m * (k + 1) / 2) ** 2).sum())
    tied = sum(
        float((counts**3 - counts).sum())
        for row in ranks
        for counts in [np.unique(row, return_counts=True)[1].astype(np.float64)]
    )
    norm = m**2 * (k**3 - k) - m * tied
    return 12 * spread / norm if norm > 1e-12 else None


def winner_position_figure(items: Sequence[JudgedItem], settings: Settings) -> Figure:
    """Return χ² of the winners' places against equal use of all places, over items of most K.

    Only in a balanced design, where without an order effect every place is as good. The p comes
    from exchanging verdicts between the orders of one item.
    """
    k = Counter(len(item.given) for item in items).most_common(1)[0][0]
    own = [_chosen(item) for item in items if len(item.given) == k and len(item.by_order) > 1]
    chosen = [rows for rows in own if rows]
    base = Figure("winner_position_chi2", by={"candidates": str(k)}, reason=NO_ORDERS,
                  n_questions=len({rows[0].question_id for rows in chosen}),
                  source=settings.source)  # fmt: skip
    if not chosen:
        return base
    if not all(_is_balanced(rows, k) for rows in chosen):
        return Figure(base.metric, by=base.by, n_questions=base.n_questions, reason=UNBALANCED,
                      source=settings.source)  # fmt: skip
    rng = np.random.default_rng(settings.seed)
    places = [_places(rows) for rows in chosen]
    names = [np.array([row.candidates.index(row.verdict or "") for row in rows]) for rows in chosen]
    observed = _chi2(places, names, k)
    beyond = sum(
        _chi2(places, [rng.permutation(each) for each in names], k) >= observed - 1e-9
        for _ in range(PERMUTATIONS)
    )
    test = PairedTest((1 + beyond) / (1 + PERMUTATIONS), "permutation_within_item", None)
    return Figure(base.metric, by=base.by, value=observed, n_questions=base.n_questions,
                  source=settings.source, seed=settings.seed, paired=test)  # fmt: skip


def _chosen(item: JudgedItem) -> list[JudgmentRow]:
    return [row for row in item.rows if row.picks_one]


def _is_balanced(rows: Sequence[JudgmentRow], k: int) -> bool:
    seen = Counter((place, name) for row in rows for place, name in enumerate(row.order))
    return len(seen) == k * k and len(set(seen.values())) == 1


def _places(rows: Sequence[JudgmentRow]) -> IntArray:
    """Return at which place each candidate stood, [judgments, candidates]."""
    return np.array([[row.order.index(name) for name in row.candidates] for row in rows])


def _chi2(
    places: Sequence[IntArray],
    names: Sequence[IntArray],
    k: int,
) -> float:
    pairs = zip(places, names, strict=True)
    won = np.concatenate([at[np.arange(len(who)), who] for at, who in pairs])
    counts = np.bincount(won, minlength=k)
    expected = len(won) / k
    return float(((counts - expected) ** 2).sum() / expected)


def order_matrix(items: Iterable[JudgedItem]) -> list[dict[str, object]]:
    """Return one row an item and order: what stood where, and which place won how often."""
    return [
        {
            "item_id": item.facts.item_id,
            "order": list(order),
            "verdicts": [row.verdict for row in rows],
            "wins_by_place": [
                sum(row.position == place for row in rows) for place in range(len(order))
            ],
            "without_verdict": sum(not row.decided for row in rows),
        }
        for item in items
        for order, rows in item.by_order.items()
    ]
