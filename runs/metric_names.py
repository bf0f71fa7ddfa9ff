"""
Metrics that an experiment file may promise to compare between arms (docs/metrics.md).

Those with a value for every question, so that arms can be paired by question; rates over some of
the questions (repair, damage) stand in every report but have no such value.
"""

from __future__ import annotations

METRICS = (
    "accuracy_T",
    "accuracy_0",
    "accuracy_change",
    "agent_accuracy_0",
    "agent_accuracy_T",
    "coverage",
    "abstained",
    "failed",
    "unresolved",
    "oracle_any",
    "calls",
    "tokens_in",
    "tokens_out",
    "cost_microusd",
    "wall_seconds",
)
