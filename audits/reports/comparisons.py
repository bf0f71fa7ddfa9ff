"""The comparisons that an experiment declared before it ran, and the arms that share a start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audits.metrics import (
    Figure,
    MetricsError,
    RunRow,
    Settings,
    cost_front,
    holm_adjust,
    paired_difference,
)
from audits.metrics.figures import PairedTest
from audits.queries import ArmRows
from audits.reports.figures import RowAddress

#: What the arms' cost is measured in, beside their accuracy.
FRONT_UNITS = ("cost_microusd", "tokens_out")


def declared_comparisons(
    arms: Mapping[str, ArmRows],
    analysis: Mapping[str, Any],
    *,
    address: RowAddress,
    settings: Settings,
) -> list[dict[str, Any]]:
    """
    Return every declared contrast with its primary metrics, Holm over all of them together.

    A difference that cannot be formed is null with the reason and stays in the family, where its
    p enters as 1: dropping it after the fact would make the others look better.
    """
    contrasts = [tuple(pair) for pair in analysis["contrasts"]]
    places = [(a, b, metric) for a, b in contrasts for metric in analysis["primary"]]
    figures = [
        _difference(arms[a].runs, arms[b].runs, metric, analysis["margin"], settings)
        for a, b, metric in places
    ]
    if analysis["family"] == "holm":
        figures = holm_adjust(figures)
    shown: dict[tuple[str, str], list[dict[str, object]]] = {pair: [] for pair in contrasts}
    for (a, b, _), figure in zip(places, figures, strict=True):
        shown[a, b].append(address.of(figure, a=a, b=b).to_json())
    return [{"a": a, "b": b, "figures": own} for (a, b), own in shown.items()]


def _difference(
    a: Sequence[RunRow],
    b: Sequence[RunRow],
    metric: str,
    margin: float | None,
    settings: Settings,
) -> Figure:
    try:
        return paired_difference(a, b, metric, margin=margin, settings=settings)
    except MetricsError as exc:
        return Figure(
            "difference",
            by={"metric": metric},
            reason=str(exc),
            source=settings.source,
            paired=PairedTest(None, "none", None, margin),
        )


def same_start_partner(own: ArmRows, arms: Mapping[str, ArmRows]) -> ArmRows | None:
    """
    Return the arm that revised alone from the initial answers that ``own`` started from too.

    None where there is none, or where ``own`` itself lets nobody read. Of several, the one with
    as many revision rounds is taken, else the first.
    """
    if not _is_debate(own):
        return None
    partners = [
        other
        for other in arms.values()
        if _revises_alone(other) and _first_arm(other, arms) == _first_arm(own, arms)
    ]
    rounds = own.protocol.revision_rounds
    partners.sort(key=lambda other: other.protocol.revision_rounds != rounds)
    return partners[0] if partners else None


def _is_debate(own: ArmRows) -> bool:
    return own.protocol.topology.kind != "none" and own.protocol.revision_rounds > 0


def _revises_alone(own: ArmRows) -> bool:
    return own.protocol.topology.kind == "none" and own.protocol.revision_rounds > 0


def _first_arm(own: ArmRows, arms: Mapping[str, ArmRows]) -> str:
    """Follow the branches to the arm that made the initial answers."""
    while own.arm.branch_from is not None:
        own = arms[own.arm.branch_from.name]
    return own.arm.name


def fronts(arms: Mapping[str, ArmRows], settings: Settings) -> list[dict[str, Any]]:
    """
    Return for each unit of cost which arms no other arm beats (docs/metrics.md, Cost).

    Arms that branched are left out: another arm paid for their initial answers. One arm alone
    has nothing to be compared with.
    """
    conditions = {name: own.runs for name, own in arms.items() if own.arm.branch_from is None}
    if len(conditions) < 2:
        return []
    return [_front(conditions, unit, settings) for unit in FRONT_UNITS]


def _front(
    conditions: Mapping[str, Sequence[RunRow]], unit: str, settings: Settings
) -> dict[str, Any]:
    try:
        points = cost_front(conditions, unit=unit, settings=settings)
    except MetricsError as exc:
        return {"unit": unit, "points": [], "reason": str(exc)}
    return {
        "unit": unit,
        "points": [
            {
                "condition": point.condition,
                "cost_per_question": point.cost_per_question,
                "accuracy": point.accuracy,
                "on_front": point.on_front,
                "membership": point.membership,
            }
            for point in points
        ],
        "B": settings.resamples,
        "seed": settings.seed,
        "reason": None if points else "no question is scored in every arm",
    }
