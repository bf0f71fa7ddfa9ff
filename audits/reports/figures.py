"""Figures as a report shows them: with the address of their rows, and null with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode

from audits.metrics import (
    Figure,
    MetricsError,
    RunRow,
    Settings,
    debate_figures,
    debate_tables,
)
from audits.metrics.figures import FEW_QUESTIONS, FEW_QUESTIONS_NOTE

EXCESS = ("excess_repair_T", "excess_damage_T")


class RowAddress:
    """Where the rows behind a figure are had: a path of this site's API (audits/api.py)."""

    def __init__(self, workspace: str, collection: str, name: str) -> None:
        place = f"/api/v1/workspaces/{quote(workspace, safe='')}/{collection}"
        self._path = f"{place}/{quote(name, safe='')}/rows"

    def of(self, figure: Figure, **place: str) -> Figure:
        """Return ``figure`` with its address; ``place`` is its condition, or its two."""
        asked = {**place, "metric": figure.metric}
        if figure.agg is not None:
            asked["agg"] = figure.agg
        if figure.round is not None:
            asked["round"] = str(figure.round)
        asked |= {f"by.{key}": value for key, value in sorted(figure.by.items())}
        return replace(figure, rows=f"{self._path}?{urlencode(asked)}")


def condition_json(
    name: str,
    runs: Sequence[RunRow],
    *,
    address: RowAddress,
    settings: Settings,
    same_start: Sequence[RunRow] = (),
    blind_start: bool = True,
) -> dict[str, Any]:
    """
    Return a condition's name, labels, figures and tables.

    Rows that no figure may be made of leave nulls with the reason, never an error.
    """
    questions = len({run.question_id for run in runs})
    labels = [FEW_QUESTIONS_NOTE] if questions < FEW_QUESTIONS else []
    try:
        figures = _figures(runs, same_start, blind_start=blind_start, settings=settings)
        tables = debate_tables(runs)
    except MetricsError as exc:
        figures, tables = [Figure("accuracy_T", reason=str(exc))], {}
    return {
        "name": name,
        "labels": labels,
        "figures": [address.of(figure, condition=name).to_json() for figure in figures],
        "tables": tables,
    }


def _figures(
    runs: Sequence[RunRow],
    same_start: Sequence[RunRow],
    *,
    blind_start: bool,
    settings: Settings,
) -> Iterable[Figure]:
    if not same_start:
        return debate_figures(runs, blind_start=blind_start, settings=settings)
    try:
        return debate_figures(
            runs, same_start=same_start, blind_start=blind_start, settings=settings
        )
    except MetricsError as exc:
        # The pairing may be what is refused: the arm's own figures stand without it.
        excess = [Figure(metric, agg="pooled", reason=str(exc)) for metric in EXCESS]
        return [*excess, *debate_figures(runs, blind_start=blind_start, settings=settings)]
