"""The rows behind a figure: one a run, with what the run adds to its numerator and denominator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from audits.metrics import MetricsError, RunRow
from audits.metrics.debates import debate_ratios
from audits.metrics.panel import Panel, build_panel
from audits.metrics.ratio import Ratio

Counts = dict[str, tuple[float, float]]
DIFFERENCE = "difference"
AGGREGATOR = "aggregator"


@dataclass(frozen=True)
class FigureKey:
    """Which figure of a condition: the parts of its rows' address."""

    metric: str
    round: int | None = None
    by: Mapping[str, str] = field(default_factory=dict)

    def of_one_side(self) -> FigureKey:
        """Return the figure that a difference is taken of, else this one."""
        if self.metric != DIFFERENCE or "metric" not in self.by:
            return self
        rest = {key: value for key, value in self.by.items() if key != "metric"}
        return FigureKey(self.by["metric"], self.round, rest)


def condition_rows(
    name: str,
    runs: Sequence[RunRow],
    key: FigureKey,
    *,
    same_start: Sequence[RunRow] = (),
    blind_start: bool = True,
) -> Iterator[dict[str, Any]]:
    """
    Yield what each run of a condition came to, in order.

    ``num`` and ``den`` are the run's own, before runs are averaged within their question; None
    where the figure is no rate, or does not ask this run. ``states`` and ``outcomes`` are of the
    figure's round where it has one.
    """
    stratum = key.by.get("stratum")
    chosen = [run for run in runs if stratum is None or run.stratum == stratum]
    counts = _counts(chosen, same_start, key, blind_start=blind_start)
    for run in chosen:
        num, den = counts.get(run.run_key, (None, None))
        yield {
            "condition": name,
            "run_key": run.run_key,
            "question_id": run.question_id,
            "family": run.family,
            "stratum": run.stratum,
            "seed": run.seed,
            "rounds_opened": run.rounds_opened,
            "stop_reason": run.stop_reason,
            "num": num,
            "den": den,
            "states": [asdict(s) for s in run.states if key.round in {None, s.t}],
            "outcomes": [asdict(o) for o in run.outcomes if key.round in {None, o.t}],
        }


def _counts(
    runs: Sequence[RunRow], same_start: Sequence[RunRow], key: FigureKey, *, blind_start: bool
) -> Counts:
    """Return numerator and denominator by run; nothing where no rate has this key."""
    try:
        panel = build_panel(runs)
        alone = build_panel(same_start) if same_start else None
        ratios = debate_ratios(panel, alone=alone, blind_start=blind_start)
    except MetricsError:
        return {}
    wanted = {name: value for name, value in key.by.items() if name != "stratum"}
    named = [ratio for ratio in ratios if (ratio.metric, ratio.round) == (key.metric, key.round)]
    # A difference names no aggregator: the arm's own comes first.
    fitting = [ratio for ratio in named if wanted.items() <= ratio.by.items()]
    exact = [ratio for ratio in fitting if dict(ratio.by) == wanted]
    found = exact or [ratio for ratio in fitting if set(ratio.by) - set(wanted) <= {AGGREGATOR}]
    return _counts_of(panel, found[0]) if found else {}


def _counts_of(panel: Panel, ratio: Ratio) -> Counts:
    asked = np.ones(len(panel.runs), dtype=np.bool_) if ratio.applies is None else ratio.applies
    if ratio.needs_check:
        asked = asked & panel.scored
    return {
        run.run_key: (float(num), float(den))
        for run, num, den, is_asked in zip(panel.runs, ratio.num, ratio.den, asked, strict=True)
        if is_asked and np.isfinite(num) and np.isfinite(den)
    }
