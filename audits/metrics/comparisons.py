"""Two arms on the same questions: paired differences, same-start excess rates, the cost front."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from audits.metrics import cost, planning
from audits.metrics import debate_rates as rates
from audits.metrics.arrays import BoolArray, FloatArray, IntArray, sums_by
from audits.metrics.bootstrap import METHOD, percentile_interval, ratio_replicates, resampled_sums
from audits.metrics.errors import DifferentStartError, QuestionSetsDifferError, UnpairedMetricError
from audits.metrics.figures import FEW_QUESTIONS, FEW_QUESTIONS_NOTE, Check, Figure, PairedTest
from audits.metrics.hypotheses import holm, mcnemar_exact, sign_flip
from audits.metrics.intervals import (
    Estimate,
    bonett_price,
    bonett_price_centre,
    mean_estimate,
    normal_upper_tail,
    t_upper_tail,
)
from audits.metrics.panel import Panel, build_panel
from audits.metrics.ratio import CHECK_FROM, Ratio, Settings
from audits.metrics.records import RunRow
from audits.metrics.revision import Transitions, transitions

#: Metrics with a value for every question, by the function that defines them.
_SOURCES: Mapping[str, Callable[[Panel, str], Iterator[Ratio]]] = {
    "accuracy_0": rates.accuracy,
    "accuracy_T": rates.accuracy,
    "accuracy_change": rates.accuracy,
    "agent_accuracy_0": lambda panel, _: rates.agent_accuracy(panel),
    "agent_accuracy_T": lambda panel, _: rates.agent_accuracy(panel),
    "coverage": rates.abstention,
    "abstained": rates.abstention,
    "failed": rates.abstention,
    "unresolved": rates.abstention,
    "oracle_any": lambda panel, _: rates.candidates_and_loss(panel),
    "calls": lambda panel, _: rates.usage(panel),
    "tokens_in": lambda panel, _: rates.usage(panel),
    "tokens_out": lambda panel, _: rates.usage(panel),
    "cost_microusd": lambda panel, _: rates.usage(panel),
    "wall_seconds": lambda panel, _: rates.usage(panel),
}
PAIRED_METRICS = frozenset(_SOURCES)


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """A metric per question: its mean over runs, the runs, and whether it is defined."""

    value: FloatArray
    defined: BoolArray
    single_run: bool


@dataclass(frozen=True, slots=True, eq=False)
class PairedSample:
    """Per-question differences δ [questions] with the family of each.

    ``binary`` says that every δ is the difference of two right/wrong outcomes of one run each,
    of unrelated questions: then exact tests and the Bonett-Price interval apply.
    """

    delta: FloatArray
    family: IntArray
    binary: bool


def paired_difference(
    a_runs: Sequence[RunRow],
    b_runs: Sequence[RunRow],
    metric: str,
    *,
    margin: float | None = None,
    aggregator: str | None = None,
    settings: Settings | None = None,
) -> Figure:
    """Return mean(y_A - y_B) over questions, each question's y averaged over its runs.

    ``margin`` (positive, declared before the run) asks for the one-sided test against -margin.
    Questions without an objective check on either side are counted as undefined.
    Raises QuestionSetsDifferError, and UnpairedMetricError for a metric outside PAIRED_METRICS.
    """
    settings = settings or Settings()
    a, b = build_panel(a_runs), build_panel(b_runs)
    _refuse_different_questions(a, b)
    y_a = _question_values(a, metric, a.aggregator(aggregator))
    y_b = _question_values(b, metric, b.aggregator(aggregator))
    both = y_a.defined & y_b.defined
    binary = y_a.single_run and y_b.single_run and _is_binary(y_a.value[both], y_b.value[both])
    family = a.family[both]
    alone = len(np.unique(family)) == len(family)
    sample = PairedSample((y_a.value - y_b.value)[both], family, binary and alone)
    base = Figure(
        "difference",
        by={"metric": metric},
        num=float(sample.delta.sum()),
        den=float(len(sample.delta)),
        n_questions=int(both.sum()),
        n_undefined=int((~both).sum()),
        source=settings.source,
        reason="no question has the metric on both sides",
    )
    return difference_figure(base, sample, margin, settings)


def difference_figure(
    base: Figure, sample: PairedSample, margin: float | None, settings: Settings
) -> Figure:
    """Return ``base`` with the paired effect of ``sample``, its interval and its test."""
    estimate = _paired_estimate(sample, settings.alpha)
    if estimate is None:
        return replace(base, paired=PairedTest(None, "none", None, margin))
    questions = len(sample.delta)
    notes = [FEW_QUESTIONS_NOTE] if questions < FEW_QUESTIONS else []
    if estimate.ci is None:
        notes.append("no interval: " + ("one cluster" if estimate.df == 0 else "no variation"))
    figure = replace(
        base,
        value=estimate.value,
        reason=None,
        ci=estimate.ci,
        ci_method=estimate.method if estimate.ci else None,
        se_cluster=estimate.se,
        n_clusters=len(np.unique(sample.family)),
        paired=_test(sample, estimate, margin, settings),
        notes=tuple(notes),
    )
    return _with_check(figure, sample, settings)


def _paired_estimate(sample: PairedSample, alpha: float) -> Estimate | None:
    if sample.binary:
        return bonett_price(*_discordant(sample), len(sample.delta), alpha)
    return mean_estimate(sample.delta, sample.family, alpha)


def _discordant(sample: PairedSample) -> tuple[int, int]:
    return int((sample.delta > 0).sum()), int((sample.delta < 0).sum())


def _test(
    sample: PairedSample, estimate: Estimate, margin: float | None, settings: Settings
) -> PairedTest:
    questions = len(sample.delta)
    if not sample.binary:
        p = sign_flip(sample.delta, settings.seed, sample.family)
        factor = planning.detectable_effect(1.0, 1, settings.alpha)
        mde = factor * estimate.se if factor and estimate.se else None
        bound = _non_inferior(estimate, estimate.value, margin)
        return PairedTest(p, "sign_flip", mde, margin, bound)
    gained, lost = _discordant(sample)
    found = mcnemar_exact(gained, lost)
    mde = planning.detectable_effect((gained + lost) / questions, questions, settings.alpha)
    centre, _ = bonett_price_centre(gained, lost, questions)
    return PairedTest(
        found.p,
        "mcnemar_exact",
        mde,
        margin,
        _non_inferior(estimate, centre, margin),
        p_mid=found.p_mid,
        flags=("no_discordant",) if found.no_discordant else (),
    )


def _non_inferior(estimate: Estimate, centre: float, margin: float | None) -> float | None:
    """Return the one-sided p against a true difference of -margin."""
    if margin is None or estimate.se is None:
        return None
    statistic = (centre + margin) / estimate.se
    if estimate.df is None:
        return normal_upper_tail(statistic)
    return t_upper_tail(statistic, estimate.df)


def _with_check(figure: Figure, sample: PairedSample, settings: Settings) -> Figure:
    """Put the percentile bootstrap beside the interval where clusters are many."""
    families, index = np.unique(sample.family, return_inverse=True)
    if len(families) < CHECK_FROM:
        return figure
    columns = np.stack(
        [
            sums_by(index.astype(np.int64), values, len(families))
            for values in (sample.delta, np.ones(len(sample.delta)))
        ],
        axis=1,
    )
    sums = resampled_sums(columns, settings.resamples, settings.seed)
    found = percentile_interval(ratio_replicates(sums[:, 0], sums[:, 1]), settings.alpha)
    check = Check(found.ci, METHOD, found.undefined_share)
    return replace(figure, check=check, resamples=settings.resamples, seed=settings.seed)


def holm_adjust(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures with Holm's p over the family of all that carry a test."""
    tested = [figure.paired for figure in figures if figure.paired]
    adjusted = iter(holm([test.p for test in tested]))
    return [
        replace(figure, paired=replace(figure.paired, p_holm=next(adjusted), holm_m=len(tested)))
        if figure.paired
        else figure
        for figure in figures
    ]


def _refuse_different_questions(a: Panel, b: Panel) -> None:
    only_a, only_b = (
        set(a.question_ids) - set(b.question_ids),
        set(b.question_ids) - set(a.question_ids),
    )
    if only_a or only_b:
        raise QuestionSetsDifferError(only_a, only_b)


def _question_values(panel: Panel, metric: str, aggregator: str) -> _Values:
    if metric not in _SOURCES:
        raise UnpairedMetricError(metric, PAIRED_METRICS)
    ratio = next(r for r in _SOURCES[metric](panel, aggregator) if r.metric == metric)
    counted = (ratio.den > 0) & (panel.scored | (not ratio.needs_check))
    own = np.divide(ratio.num, ratio.den, out=np.zeros(len(panel.runs)), where=counted)
    size = len(panel.question_ids)
    runs = sums_by(panel.question, counted.astype(np.float64), size)
    value = sums_by(panel.question, own, size) / np.maximum(runs, 1)
    single_run = bool((panel.runs_of_question == 1).all()) and not ratio.signed
    return _Values(value, runs > 0, single_run)


def _is_binary(a: FloatArray, b: FloatArray) -> bool:
    return bool(np.isin(a, (0, 1)).all() and np.isin(b, (0, 1)).all())


def excess_ratios(panel: Panel, alone: Panel) -> Iterator[Ratio]:
    """Yield repair and damage beyond what the same initial answers do when revised alone.

    Every run of ``panel`` is paired with the runs of ``alone`` that share its initial answers;
    one without a partner drops out and is counted in the notes.
    Raises QuestionSetsDifferError, and DifferentStartError where a shared start is not one.
    """
    _refuse_different_questions(panel, alone)
    partners = _partners(panel, alone)
    paired = np.array([bool(rows) for rows in partners], dtype=np.bool_)
    here = transitions(panel.correct[:, 0], panel.correct[:, -1], panel.configured)
    there = _means_over(
        transitions(alone.correct[:, 0], alone.correct[:, -1], alone.configured), partners
    )
    missing = int((~paired).sum())
    notes = (f"{missing} runs without a same-start partner",) if missing else ()
    for metric, num, den, empty in (
        ("excess_repair_T", here.fixed - there.fixed, here.wrong, rates.NO_WRONG),
        ("excess_damage_T", here.broke - there.broke, here.right, rates.NO_RIGHT),
    ):
        yield Ratio(
            metric, np.where(paired, num, 0.0), den, empty,
            applies=paired, bounded=False, notes=notes,
        )  # fmt: skip


def _partners(panel: Panel, alone: Panel) -> list[list[int]]:
    """Return for every run of ``panel`` the rows of ``alone`` with the same start."""
    parent = {run.run_key: run.branch_of for run in (*panel.runs, *alone.runs)}
    by_start: dict[str, list[int]] = {}
    for row, run in enumerate(alone.runs):
        by_start.setdefault(_start_of(run.run_key, parent), []).append(row)
    partners = [by_start.get(_start_of(run.run_key, parent), []) for run in panel.runs]
    for row, others in enumerate(partners):
        for other in others:
            _refuse_different_start(panel, row, alone, other)
    return partners


def _start_of(run_key: str, parent: Mapping[str, str | None]) -> str:
    """Follow the branches to the run whose initial answers were the first."""
    seen = {run_key}
    while (above := parent.get(run_key)) is not None and above not in seen:
        seen.add(above)
        run_key = above
    return run_key


def _refuse_different_start(panel: Panel, row: int, alone: Panel, other: int) -> None:
    here, there = panel.runs[row], alone.runs[other]
    if here.question_id != there.question_id:
        raise DifferentStartError(there.run_key, f"another question than {here.run_key}")
    if sorted(here.agent_ids) != sorted(there.agent_ids):
        raise DifferentStartError(there.run_key, f"other agents than {here.run_key}")
    n = len(here.agent_ids)
    if (panel.correct[row, 0, :n] != alone.correct[other, 0, :n]).any():
        raise DifferentStartError(there.run_key, f"other initial answers than {here.run_key}")


def _means_over(counts: Transitions, partners: Sequence[Sequence[int]]) -> Transitions:
    def mean(values: FloatArray) -> FloatArray:
        return np.array([values[list(rows)].mean() if rows else 0.0 for rows in partners])

    return Transitions(
        mean(counts.wrong), mean(counts.right), mean(counts.fixed), mean(counts.broke)
    )


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """An arm on the plane of cost and accuracy, and how often resamples keep it on the front."""

    condition: str
    cost_per_question: float
    accuracy: float
    on_front: bool
    membership: float


def cost_front(
    conditions: Mapping[str, Sequence[RunRow]],
    *,
    unit: str = "cost_microusd",
    settings: Settings | None = None,
) -> list[FrontPoint]:
    """Return the arms by accuracy_T and mean cost per question in ``unit`` (a paired metric).

    Raises QuestionSetsDifferError where the arms did not answer the same questions.
    """
    settings = settings or Settings()
    panels = {name: build_panel(runs) for name, runs in conditions.items()}
    if not panels:
        return []
    first = next(iter(panels.values()))
    for panel in panels.values():
        _refuse_different_questions(first, panel)
    spent = [_question_values(p, unit, p.aggregator(None)) for p in panels.values()]
    right = [_question_values(p, "accuracy_T", p.aggregator(None)) for p in panels.values()]
    defined = np.logical_and.reduce([side.defined for side in (*spent, *right)])
    if not defined.any():
        return []
    index, size = first.family[defined], int(first.family.max()) + 1
    used = np.unique(index)
    costs, gains = (
        np.stack([sums_by(index, s.value[defined], size)[used] for s in sides], axis=1)
        for sides in (spent, right)
    )
    questions = int(defined.sum())
    mean_cost, accuracy = costs.sum(axis=0) / questions, gains.sum(axis=0) / questions
    front = cost.pareto_front(mean_cost, accuracy)
    share = cost.front_membership(costs, gains, settings.resamples, settings.seed)
    return [
        FrontPoint(name, float(mean_cost[i]), float(accuracy[i]), bool(front[i]), float(share[i]))
        for i, name in enumerate(panels)
    ]
