"""All figures of one condition of debates, in the order in which a report shows them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from audits.metrics import debate_rates as rates
from audits.metrics.comparisons import excess_ratios
from audits.metrics.dependence_figures import dependence_figures, dependence_ratios
from audits.metrics.figures import Figure
from audits.metrics.panel import Panel, build_panel
from audits.metrics.ratio import Ratio, Settings, figures_from
from audits.metrics.records import RunRow

_BY_STRATUM = frozenset(
    {"accuracy_0", "accuracy_T", "agent_accuracy_0", "agent_accuracy_T", "repair_T", "damage_T"}
)


def debate_figures(
    runs: Sequence[RunRow],
    *,
    same_start: Sequence[RunRow] = (),
    aggregator: str | None = None,
    blind_start: bool = True,
    settings: Settings | None = None,
) -> list[Figure]:
    """Return every figure of one condition.

    ``same_start`` are the runs of the arm that revised alone from the same initial answers: with
    them the excess rates lead, without them the raw rates are labelled to include resampling.
    ``aggregator`` names the one behind the headline figures (default: the only one beside
    plurality, else plurality). ``blind_start`` is False for protocols that start sequentially.
    Raises MetricsError (``audits.metrics.errors``) for rows that no figure may be made of.
    """
    settings = settings or Settings()
    panel = build_panel(runs)
    chosen = panel.aggregator(aggregator)
    ratios = debate_ratios(
        panel,
        alone=build_panel(same_start) if same_start else None,
        aggregator=aggregator,
        blind_start=blind_start,
    )
    return [
        # One call for all of them: they share one set of resamples.
        *figures_from(panel, ratios, settings),
        *dependence_figures(panel, settings, blind_start=blind_start),
        *_usage_totals(panel, settings),
        *_stratum_figures(panel, chosen, settings, compared=bool(same_start)),
    ]


def debate_ratios(
    panel: Panel,
    *,
    alone: Panel | None = None,
    aggregator: str | None = None,
    blind_start: bool = True,
) -> list[Ratio]:
    """Return every rate of one condition as counts per run; arguments as in ``debate_figures``."""
    ratios = list(excess_ratios(panel, alone)) if alone is not None else []
    ratios += _ratios(panel, panel.aggregator(aggregator), compared=alone is not None)
    return [*ratios, *dependence_ratios(panel, blind_start=blind_start), *rates.usage(panel)]


def _ratios(panel: Panel, aggregator: str, *, compared: bool) -> Iterator[Ratio]:
    yield from rates.accuracy(panel, aggregator)
    for other in panel.outcomes:
        if other != aggregator:
            yield from rates.accuracy(panel, other)
    yield from rates.agent_accuracy(panel)
    notes = () if compared else (rates.INCLUDES_RESAMPLING,)
    yield from rates.repair_and_damage(panel, notes)
    yield from rates.one_step_rates(panel, (rates.INCLUDES_RESAMPLING,))
    yield from rates.flips(panel)
    yield from rates.revision_coverage(panel)
    yield from rates.round_zero_agreement(panel)
    yield from rates.accuracy_by_agreement(panel, aggregator)
    yield from rates.unanimous_accuracy(panel, aggregator)
    yield from rates.minority_fates(panel, aggregator)
    yield from rates.abstention(panel, aggregator)
    yield from rates.candidates_and_loss(panel)
    yield from rates.plurality_by_round(panel)


def _usage_totals(panel: Panel, settings: Settings) -> Iterator[Figure]:
    """Yield the totals of the ledger over all runs; null where a run did not record it."""
    questions = len(panel.question_ids)
    for metric, name, by in rates.USAGE_METRICS:
        values = rates.recorded(panel, name)
        missing = int(np.isnan(values).sum())
        reason = f"{rates.NOT_RECORDED} by {missing} of {len(values)} runs" if missing else None
        total = None if missing else float(values.sum())
        yield Figure(
            metric, by=by, num=total, value=total, n_questions=questions, reason=reason,
            source=settings.source,
        )  # fmt: skip


def _stratum_figures(
    panel: Panel, aggregator: str, settings: Settings, *, compared: bool
) -> Iterator[Figure]:
    """Yield the headline rates within each stratum, where there are several."""
    strata = sorted({run.stratum for run in panel.runs if run.stratum is not None})
    notes = () if compared else (rates.INCLUDES_RESAMPLING,)
    for stratum in strata if len(strata) > 1 else ():
        part = build_panel(run for run in panel.runs if run.stratum == stratum)
        ratios = [
            *rates.accuracy(part, aggregator),
            *rates.agent_accuracy(part),
            *rates.repair_and_damage(part, notes),
        ]
        labelled = [
            replace(ratio, by={**ratio.by, "stratum": stratum})
            for ratio in ratios
            if ratio.metric in _BY_STRATUM and "agent" not in ratio.by
        ]
        yield from figures_from(part, labelled, settings)
