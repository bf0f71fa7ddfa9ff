"""What is computed from debates, and how: pure functions over NumPy arrays and frozen rows.

No Django, no I/O, no clock; randomness only from a seed handed in. Definitions, denominators and
intervals are explained in ``docs/metrics.md``.
"""

from audits.metrics.comparisons import (
    PAIRED_METRICS,
    FrontPoint,
    cost_front,
    holm_adjust,
    paired_difference,
)
from audits.metrics.debates import debate_figures
from audits.metrics.errors import MetricsError
from audits.metrics.figures import Figure
from audits.metrics.ratio import Settings
from audits.metrics.records import OutcomeRow, RunRow, StateRow, Usage
from audits.metrics.tables import debate_tables

__all__ = [
    "PAIRED_METRICS",
    "Figure",
    "FrontPoint",
    "MetricsError",
    "OutcomeRow",
    "RunRow",
    "Settings",
    "StateRow",
    "Usage",
    "cost_front",
    "debate_figures",
    "debate_tables",
    "holm_adjust",
    "paired_difference",
]
