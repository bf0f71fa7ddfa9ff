"""A report as a table: one row a figure, for spreadsheets and statistics programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from audits.reports.stored import Counted

COLUMNS = (
    "condition", "marked", "metric", "agg", "round", "by", "num", "den", "value", "ci_low",
    "ci_high", "ci_method", "B", "seed", "n_questions", "n_undefined", "reason", "source",
    "se_cluster", "p", "p_holm", "test", "mde_80", "margin", "p_non_inferior", "notes", "rows",
)  # fmt: skip

#: A cell that begins so is a formula to a spreadsheet, and names in a report are others' words.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

#: A cell of a spreadsheet holds 32,767 characters.
MOST_CELL = 32_000
ROW_COLUMNS = (
    "condition", "run_id", "run_key", "question_id", "stratum", "seed", "agent_id",
    "rounds_opened", "right_at_start", "agents", "right_before", "right_after",
    "answer_before", "answer_after", "statuses", "num", "den",
)  # fmt: skip


def table_bytes(report: Mapping[str, Any]) -> bytes:
    """Return the figures of a report as CSV in UTF-8."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for row in _rows(report):
        writer.writerow({key: harmless(value) for key, value in row.items()})
    return stream.getvalue().encode()


def _rows(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for condition in report["conditions"]:
        for figure in condition["figures"]:
            place = {"condition": condition["name"], "marked": condition.get("marked")}
            yield place | _flat(figure)
    for pair in report["comparisons"]:
        for figure in pair["figures"]:
            yield {"condition": f"{pair['a']} - {pair['b']}"} | _flat(figure)


def _flat(figure: Mapping[str, Any]) -> dict[str, Any]:
    low, high = figure["ci"] or (None, None)
    return {
        **figure,
        "by": json.dumps(figure["by"], ensure_ascii=False) if figure["by"] else None,
        "ci_low": low,
        "ci_high": high,
        "notes": "; ".join(figure["notes"]),
    }


def rows_csv(rows: Iterable[Counted]) -> Iterator[bytes]:
    """Yield the rows behind a figure as lines of CSV in UTF-8, the names of columns first."""
    yield _line(ROW_COLUMNS)
    for one in rows:
        row = one.row
        yield _line(
            (
                row.condition, row.run_id, row.run_key, row.question_id, row.stratum, row.seed,
                row.agent_id, row.rounds_opened, row.right_at_start, row.agents, one.start,
                one.end, one.before, one.after, " ".join(row.statuses), one.num, one.den,
            )
        )  # fmt: skip


def _line(cells: Iterable[object]) -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream).writerow([harmless(cell) for cell in cells])
    return stream.getvalue().encode()


def harmless(value: object) -> object:
    """
    Return a cell that no spreadsheet takes for a formula; numbers stay numbers.

    Text that no cell of a spreadsheet can hold is cut, and says so; the JSON has it whole.
    """
    if not isinstance(value, str):
        return value
    if len(value) > MOST_CELL:
        value = f"{value[:MOST_CELL]}… ({len(value):,} characters)"
    return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
