"""Agreement between people, and between people and anyone else, as figures.

Coefficients have a percentile interval from resampled questions; plain agreement, being a rate,
has the interval of rates. Where nothing varies the coefficients are null and plain agreement
stays.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from audits.metrics import agreement
from audits.metrics.agreement import Level, Parts
from audits.metrics.arrays import BoolArray, FloatArray, IntArray, floats, sums_by
from audits.metrics.bootstrap import resampled_sums
from audits.metrics.figures import Figure
from audits.metrics.labels import MISSING, SCALE_KINDS, LabelTable, number_of
from audits.metrics.question_table import with_replicates
from audits.metrics.ratio import Ratio, Settings

NO_VARIATION = "all labels are the same: nothing to agree about beyond chance"
NO_OVERLAP = "no item has two labels"
NO_SHARED = "they have no item in common"
WEIGHTED = "weighted by 1/inclusion probability"

#: Columns resampled at once: 10,000 resamples of 1,000 columns are 80 MB.
_BATCH_COLUMNS = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Coefficient:
    """A coefficient to report: ``columns`` [items, C] are summed, ``parts`` makes it of the sums.

    ``used`` marks the items that say something about it.
    """

    metric: str
    by: Mapping[str, str]
    columns: FloatArray
    parts: Callable[[FloatArray], Parts]
    used: BoolArray
    varies: bool
    empty: str = NO_OVERLAP
    notes: tuple[str, ...] = field(default=())


def levels_of(table: LabelTable, kind: str) -> tuple[Level, ...]:
    """Return the levels of measurement that the labels of a kind have."""
    if kind not in SCALE_KINDS:
        return ("nominal",)
    if numeric_values(table) is None:
        return ("nominal", "ordinal")
    return ("nominal", "ordinal", "interval")


def numeric_values(table: LabelTable) -> FloatArray | None:
    """Return the numbers that the categories are, or None where one is a word."""
    numbers = [number_of(name) for name in table.categories]
    known = [number for number in numbers if number is not None]
    return floats(known) if len(known) == len(numbers) else None


def group_coefficients(table: LabelTable, levels: Sequence[Level]) -> Iterator[Coefficient]:
    """Yield alpha by level, AC1 and Fleiss' kappa over all annotators."""
    k, counts, weights = len(table.categories), table.counts, table.weights
    used = table.several
    varies = bool((counts[used].sum(axis=0) > 0).sum() > 1)
    coincidence = agreement.coincidences(counts, weights).reshape(len(counts), k * k)
    for level in levels:
        yield Coefficient(
            "krippendorff_alpha", {"level": level}, coincidence,
            _alpha_of(table, level), used, varies,
        )  # fmt: skip
    yield _gwet_of(counts, weights, k, {}, NO_OVERLAP)
    yield _fleiss_of(counts, weights, used, varies)


def _alpha_of(table: LabelTable, level: Level) -> Callable[[FloatArray], Parts]:
    k = len(table.categories)
    values = numeric_values(table) if level == "interval" else None
    return lambda sums: agreement.alpha(sums.reshape(*sums.shape[:-1], k, k), level, values)


def _gwet_of(
    counts: IntArray, weights: FloatArray, k: int, by: Mapping[str, str], empty: str
) -> Coefficient:
    labels = counts.sum(axis=1)
    several = weights * (labels >= 2)
    shares = counts / np.maximum(labels, 1)[:, None] * weights[:, None]
    columns = np.column_stack(
        [agreement.observed_agreement(counts) * weights, several, weights * (labels > 0), shares]
    )
    return Coefficient(
        "gwet_ac1", by, columns,
        lambda sums: agreement.gwet(sums[..., 0], sums[..., 1], sums[..., 3:], sums[..., 2], k),
        labels >= 2, bool((counts.sum(axis=0) > 0).sum() > 1), empty,
    )  # fmt: skip


def _fleiss_of(counts: IntArray, weights: FloatArray, used: BoolArray, varies: bool) -> Coefficient:
    labels = counts.sum(axis=1)
    uneven = len(set(labels[used].tolist())) > 1
    kept = used & (not uneven)
    shares = counts / np.maximum(labels, 1)[:, None]
    rows = np.column_stack([agreement.observed_agreement(counts), np.ones(len(counts)), shares])
    return Coefficient(
        "fleiss_kappa", {}, rows * (weights * kept)[:, None],
        lambda sums: agreement.fleiss(sums[..., 0], sums[..., 2:], sums[..., 1]), kept, varies,
        "items have different numbers of labels" if uneven else NO_OVERLAP,
    )  # fmt: skip


def pair_coefficients(
    a: IntArray, b: IntArray, weights: FloatArray, k: int, by: Mapping[str, str]
) -> Iterator[Coefficient]:
    """Yield kappa and AC1 of two columns of codes."""
    both = (a != MISSING) & (b != MISSING)
    tables = agreement.confusion(a, b, weights, k)
    varies = len(set(a[both].tolist()) | set(b[both].tolist())) > 1
    yield Coefficient(
        "cohen_kappa", by, tables.reshape(len(a), k * k),
        lambda sums: agreement.kappa(sums.reshape(*sums.shape[:-1], k, k)),
        both, varies, NO_SHARED,
    )  # fmt: skip
    counts = (a[:, None] == np.arange(k)).astype(np.int64) + (b[:, None] == np.arange(k))
    yield _gwet_of(counts * both[:, None], weights, k, by, NO_SHARED)


def agreement_ratio(table: LabelTable, a: IntArray, b: IntArray, by: Mapping[str, str]) -> Ratio:
    """Return plain agreement of two columns of codes, over the items that both have."""
    both = np.flatnonzero((a != MISSING) & (b != MISSING))
    cells = [
        (table.item_questions[i], float(a[i] == b[i]) * table.weights[i], table.weights[i])
        for i in both.tolist()
    ]
    return table.questions.ratio("percent_agreement", cells, NO_SHARED, by=by, notes=_notes(table))


def group_agreement_ratio(table: LabelTable) -> Ratio:
    """Return the share of equal pairs of labels, every item weighing one."""
    shares = agreement.observed_agreement(table.counts)
    cells = [
        (table.item_questions[i], float(shares[i]) * table.weights[i], table.weights[i])
        for i in np.flatnonzero(table.several).tolist()
    ]
    return table.questions.ratio("percent_agreement", cells, NO_OVERLAP, notes=_notes(table))


def prevalence_ratios(table: LabelTable) -> Iterator[Ratio]:
    """Yield the share of each category among an item's labels, every item weighing one."""
    shares = table.counts / np.maximum(table.counts.sum(axis=1), 1)[:, None]
    for code, name in enumerate(table.categories):
        cells = [
            (question, float(shares[i, code]) * table.weights[i], table.weights[i])
            for i, question in enumerate(table.item_questions)
        ]
        by = {"category": name}
        yield table.questions.ratio("prevalence", cells, "no labels", by=by, notes=_notes(table))


def _notes(table: LabelTable) -> tuple[str, ...]:
    notes = () if (table.weights == 1).all() else (WEIGHTED,)
    if table.after_reveal:
        notes = (*notes, f"{table.after_reveal} labels after the reveal are left out")
    return notes


def annotator_pairs(table: LabelTable) -> Iterator[tuple[dict[str, str], IntArray, IntArray]]:
    """Yield (by, codes, codes) of every two annotators with an item in common."""
    for one, other in combinations(range(len(table.annotators)), 2):
        a, b = table.codes[:, one], table.codes[:, other]
        if ((a != MISSING) & (b != MISSING)).any():
            yield {"pair": f"{table.annotators[one]}|{table.annotators[other]}"}, a, b


def coefficient_figures(
    table: LabelTable, wanted: Sequence[Coefficient], settings: Settings
) -> list[Figure]:
    """Return the coefficients with a question bootstrap; all share one set of resamples."""
    figures: list[Figure] = []
    batch: list[Coefficient] = []
    for coefficient in wanted:
        width = sum(each.columns.shape[1] for each in [*batch, coefficient])
        if batch and width > _BATCH_COLUMNS:
            figures += _batch_figures(table, batch, settings)
            batch = []
        batch.append(coefficient)
    return figures + (_batch_figures(table, batch, settings) if batch else [])


def _batch_figures(
    table: LabelTable, batch: Sequence[Coefficient], settings: Settings
) -> list[Figure]:
    families = table.questions.family_count
    columns = np.concatenate([coefficient.columns for coefficient in batch], axis=1)
    drawn = np.zeros((0, columns.shape[1]))
    if families:
        by_family = np.stack([sums_by(table.cluster, c, families) for c in columns.T], axis=1)
        drawn = resampled_sums(by_family, settings.resamples, settings.seed)
    figures, start = [], 0
    for coefficient in batch:
        end = start + coefficient.columns.shape[1]
        figures.append(_figure(table, coefficient, drawn[:, start:end], settings))
        start = end
    return figures


def _figure(
    table: LabelTable, wanted: Coefficient, drawn: FloatArray, settings: Settings
) -> Figure:
    questions = {table.item_questions[i] for i in np.flatnonzero(wanted.used).tolist()}
    base = Figure(
        wanted.metric,
        by=wanted.by,
        n_questions=len(questions),
        n_undefined=len(table.questions) - len(questions),
        n_clusters=len(np.unique(table.cluster[wanted.used])),
        reason=NO_VARIATION if questions else wanted.empty,
        source=settings.source,
        notes=(*_notes(table), *wanted.notes),
    )
    if not questions or not wanted.varies:
        return base
    gained, possible = (float(part) for part in wanted.parts(wanted.columns.sum(axis=0)))
    if not possible > 1e-12:
        return base
    num, den = wanted.parts(drawn)
    replicates = np.full(len(drawn), np.nan)
    np.divide(num, den, out=replicates, where=den > 1e-12)
    counted = replace(base, num=gained, den=possible)
    return with_replicates(counted, gained / possible, replicates, settings)
