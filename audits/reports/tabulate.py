"""The tables of a report's condition as columns and rows: one form for page, file and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.reports.table import harmless

Cell = str | int | float | bool | None

#: The tables that are shown, in their order, with their title.
TITLES = {
    "transitions": "Moves between right and wrong, by step",
    "fate_by_right_at_start": "Aggregate before and after, by how many agents started right",
    "right_at_start": "Agents right at the start",
    "status_by_round": "Status of the agents, by round",
    "rounds": "Runs that opened each round",
    "stop_reasons": "Why runs stopped",
    "aggregators": "What each aggregator made of the same candidates",
    "instrument": "What the check left unscored",
    "usage_by_kind": "Usage by kind of call",
    "dependence": "Errors of each agent and their correlation (phi)",
    "rho_by_stratum": "Correlation of errors within strata",
    "reads": "What is known of who read whom",
    "order_flips": "Verdicts under both orders",
    "winners_by_place": "Wins by candidate and place",
    "combined": "What became of items over their orders",
    "judged_and_audited": "As judged beside as audited",
    "majority": "What people decided",
    "label_counts": "Labels of each person",
    "failures": "Judgments without a verdict",
    "beliefs_by_turn": "Beliefs by turn",
    "largest_moves": "The turn that moved a belief most",
    "reliability": "Confidence and being right, by bin",
    "labels": "Counts of labels",
    "counts": "Counts",
}
WORDS = {
    "n": "count",
    "right": "right at the start",
    "z_0": "aggregate at the start",
    "z_T": "aggregate at the end",
    "at": "at",
    "rho_cov": "correlation of errors",
}
#: Columns whose numbers stand for yes and no.
_RIGHT_OR_WRONG = {"z_0", "z_T"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a condition. ``reason`` says why it is empty."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    reason: str = ""

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(WORDS.get(name, name.replace("_", " ")) for name in self.columns)

    @property
    def shown(self) -> Iterator[list[str]]:
        """Yield the rows for people: a dash for None, fractions with four digits."""
        for row in self.rows:
            yield [_shown(cell) for cell in row]


def tables_of(condition: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a condition that have something to show, in a reader's order."""
    bodies = condition["tables"]
    made = (_table(name, bodies[name]) for name in TITLES if name in bodies)
    return [table for table in made if table.rows or table.reason]


def _table(name: str, body: Any) -> Table:
    reason = ""
    if name == "dependence":
        rows = list(_dependence(body))
        reason = next((str(one["reason"]) for one in body if "reason" in one), "")
    elif name == "rho_by_stratum":
        rows, reason = body["strata"], body["reason"] or ""
    elif isinstance(body, list):
        rows = body
    else:
        rows = list(_lines(body))
    columns = tuple(dict.fromkeys(key for row in rows for key in row))
    cells = tuple(tuple(_cell(key, row.get(key)) for key in columns) for row in rows)
    return Table(name, TITLES[name], columns, cells, "" if cells else reason)


def _lines(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for key, value in body.items():
        yield {"what": key} | (value if isinstance(value, dict) else {"value": value})


def _dependence(body: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for one in body:
        if "agents" not in one:
            continue
        for i, agent in enumerate(one["agents"]):
            phi = {f"phi with {other}": one["phi"][i][j] for j, other in enumerate(one["agents"])}
            yield {"at": one["at"], "agent": agent, "error_rate": one["error_rate"][i]} | phi


def _shown(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _cell(column: str, value: Any) -> Cell:
    if column in _RIGHT_OR_WRONG and value is not None:
        return "right" if value else "wrong"
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def table_csv(table: Table) -> bytes:
    """Return one table as CSV in UTF-8, with no cell that a spreadsheet takes for a formula."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([harmless(name) for name in table.columns])
    writer.writerows([harmless(cell) for cell in row] for row in table.rows)
    return stream.getvalue().encode()
