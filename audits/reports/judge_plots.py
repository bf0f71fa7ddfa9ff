"""Matrices of judge audits as SVG: counts stand in the cells, and in a table beneath."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from audits.reports.plots import cut, svg

CELL = 72
HEIGHT = 36
LABELS = 190
HEAD = 58
NARROW, MOST_COLUMNS = 4, 8  # Two widths, each with its class in the style sheet.
#: The strongest shade still leaves its number readable in both schemes.
DARKEST = 0.45


@dataclass(frozen=True, slots=True)
class Matrix:
    """Counts by row and column; ``kept`` marks the cells that are no change."""

    title: str
    said: str
    row_title: str
    column_title: str
    rows: Sequence[str]
    columns: Sequence[str]
    counts: Mapping[tuple[str, str], str]
    shares: Mapping[tuple[str, str], float]
    kept: frozenset[tuple[str, str]] = frozenset()


def matrix(drawn: Matrix) -> SafeString:
    """Draw a matrix; nothing where it has no cell or too many columns to be read."""
    if not drawn.counts or len(drawn.columns) > MOST_COLUMNS:
        return SafeString("")
    width = LABELS + CELL * (NARROW if len(drawn.columns) <= NARROW else MOST_COLUMNS)
    height = HEAD + HEIGHT * len(drawn.rows) + 4
    heads = format_html_join(
        "",
        '<text x="{}" y="{}" text-anchor="middle">{}</text>',
        (
            (LABELS + CELL * i + CELL // 2, HEAD - 10, cut(name, 11))
            for i, name in enumerate(drawn.columns)
        ),
    )
    titles = format_html(
        '<text class="plot-quiet" x="{0}" y="16">{1}</text>'
        '<text class="plot-quiet" x="0" y="{2}">{3}</text>',
        LABELS, drawn.column_title, HEAD - 10, drawn.row_title,
    )  # fmt: skip
    rows = format_html_join(
        "", "{}", ((_row(drawn, name, HEAD + HEIGHT * i),) for i, name in enumerate(drawn.rows))
    )
    return svg(drawn.title, drawn.said, width, height, titles + heads + rows)


def _row(drawn: Matrix, name: str, y: int) -> SafeString:
    cells = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}" fill-opacity="{}"></rect>'
        '<text x="{}" y="{}" text-anchor="middle">{}</text>',
        (
            _cell(drawn, (name, column), LABELS + CELL * i, y)
            for i, column in enumerate(drawn.columns)
        ),
    )
    return format_html('<text x="0" y="{}">{}</text>{}', y + HEIGHT // 2 + 4, cut(name, 26), cells)


def _cell(drawn: Matrix, key: tuple[str, str], x: int, y: int) -> tuple[object, ...]:
    shade = "plot-cell plot-cell-kept" if key in drawn.kept else "plot-cell plot-cell-turned"
    opacity = f"{DARKEST * drawn.shares.get(key, 0.0):.2f}"
    return (
        shade, x + 1, y + 1, CELL - 2, HEIGHT - 2, opacity,
        x + CELL // 2, y + HEIGHT // 2 + 4, drawn.counts.get(key, "0"),
    )  # fmt: skip


def flips(rows: Sequence[Mapping[str, Any]]) -> SafeString:
    """Draw the order-flip matrix of a condition's table ``order_flips``."""
    counts = {(row["given"], row["swapped"]): row["n"] for row in rows}
    total = sum(counts.values())
    if not total:
        return SafeString("")
    names = list(_ordered(rows))
    same = sum(n for (a, b), n in counts.items() if a == b)
    return matrix(
        Matrix(
            title="Verdicts under both orders",
            said=f"Of {total} pairs shown in both orders, {same} came to the same.",
            row_title="given order ↓",
            column_title="swapped order →",
            rows=names,
            columns=names,
            counts={key: str(n) for key, n in counts.items()},
            shares={key: n / max(counts.values()) for key, n in counts.items()},
            kept=frozenset((name, name) for name in names),
        )
    )


def _ordered(rows: Sequence[Mapping[str, Any]]) -> dict[str, None]:
    """Return all that occurs, what occurs in the given order first."""
    return dict.fromkeys([*(row["given"] for row in rows), *(row["swapped"] for row in rows)])


def places(rows: Sequence[Mapping[str, Any]]) -> SafeString:
    """Draw which candidate won at which place, of a condition's table ``winners_by_place``."""
    if not rows:
        return SafeString("")
    columns = [f"place {place}" for place in sorted({row["place"] for row in rows})]
    shares = {
        (row["candidate"], f"place {row['place']}"): row["won"] / row["shown"]
        for row in rows
        if row["shown"]
    }
    words = "; ".join(
        f"{row['candidate']} at place {row['place']}: {row['won']} of {row['shown']}"
        for row in rows
    )
    return matrix(
        Matrix(
            title="Wins by candidate and place",
            said=words,
            row_title="candidate ↓",
            column_title="won at →",
            rows=list(dict.fromkeys(row["candidate"] for row in rows)),
            columns=columns,
            counts={
                (row["candidate"], f"place {row['place']}"): f"{row['won']}/{row['shown']}"
                for row in rows
            },
            shares=shares,
        )
    )
