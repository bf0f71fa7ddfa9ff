"""
Where things lie in a drawing: numbers only. Templates write the SVG, so every label is escaped.

Units are those of the drawing's view box.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Beyond these a drawing shows nothing that the table does not show better.
MOST_NODES = 16
MOST_COLUMNS = 9
MOST_ARROWS = 800

_RADIUS = 14.0
_ARROW_GAP = 5.0
_LABEL_CHARACTERS = 4
_MARGIN = 28.0
_COLUMN, _ROW, _HEAD, _SIDE = 88.0, 44.0, 28.0, 48.0


@dataclass(frozen=True, slots=True)
class Node:
    """A circle with a short label; ``name`` is the whole one."""

    x: float
    y: float
    name: str

    @property
    def label(self) -> str:
        if len(self.name) <= _LABEL_CHARACTERS:
            return self.name
        return self.name[: _LABEL_CHARACTERS - 1] + "…"


@dataclass(frozen=True, slots=True)
class Line:
    """An arrow from one circle's edge to another's. ``is_own``: an agent's own earlier answer."""

    x1: float
    y1: float
    x2: float
    y2: float
    is_both_ways: bool = False
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A word that stands by itself, such as a column's head."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """What is drawn, in a view box of ``width`` × ``height``."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    marks: tuple[Mark, ...] = ()
    radius: float = _RADIUS


def topology(reads: Mapping[str, Sequence[str]]) -> Drawing | None:
    """
    Draw agents on a circle; an arrow points from who is read to the reader.

    ``reads``: reader → those it may read. None for more agents than a drawing can show.
    """
    names = list(reads)
    if not 1 <= len(names) <= MOST_NODES:
        return None
    spread = max(60.0, len(names) * 14.0) if len(names) > 1 else 0.0
    middle = spread + _MARGIN
    places = {
        name: _on_circle(place, len(names), middle, spread) for place, name in enumerate(names)
    }
    nodes = tuple(Node(x, y, name) for name, (x, y) in places.items())
    order = {name: place for place, name in enumerate(names)}
    lines: list[Line] = []
    for reader, sources in reads.items():
        for source in sources:
            both = reader in reads.get(source, ())
            if both and order[source] > order[reader]:
                continue  # Drawn once, with two heads.
            lines.append(_arrow(places[source], places[reader], both=both))
    return Drawing(2 * middle, 2 * middle, nodes, tuple(lines))


def timeline(
    names: Sequence[str], rounds: Sequence[int], edges: Iterable[tuple[int, str, str]]
) -> Drawing | None:
    """
    Draw a column for each of the rounds and a row for each agent.

    ``edges`` holds (t, reader, source): in round t the reader is shown the source's answer of
    round t − 1; reader and source may be the same. An arrow is drawn where both rounds are; where
    some are left out stands a "…". None where it would be too large.
    """
    if not 1 <= len(names) <= MOST_NODES or not 1 <= len(rounds) <= MOST_COLUMNS:
        return None
    place = {name: _SIDE / 2 + _HEAD + row * _ROW for row, name in enumerate(names)}
    columns = {t: _SIDE + at * _COLUMN for at, t in enumerate(rounds)}
    nodes = tuple(Node(x, place[name], name) for x in columns.values() for name in names)
    lines = tuple(
        _arrow(
            (columns[t - 1], place[source]),
            (columns[t], place[reader]),
            both=False,
            own=source == reader,
        )
        for t, reader, source in edges
        if t in columns and t - 1 in columns
    )
    gaps = [x for t, x in columns.items() if t - 1 not in columns and t != rounds[0]]
    marks = [Mark(x, 16.0, f"t = {t}") for t, x in columns.items()]
    marks += [Mark(x - _COLUMN / 2, 16.0, "…") for x in gaps]
    width = columns[rounds[-1]] + _SIDE
    return Drawing(width, _HEAD + len(names) * _ROW + 8.0, nodes, lines, tuple(marks))


def _on_circle(place: int, count: int, middle: float, spread: float) -> tuple[float, float]:
    angle = 2 * math.pi * place / count - math.pi / 2
    return (
        round(middle + spread * math.cos(angle), 2),
        round(middle + spread * math.sin(angle), 2),
    )


def _arrow(
    start: tuple[float, float], end: tuple[float, float], *, both: bool, own: bool = False
) -> Line:
    """Shorten a line to the edges of its circles, with room for the heads."""
    (x1, y1), (x2, y2) = start, end
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    before = _RADIUS + (_ARROW_GAP if both else 0.0)
    after = _RADIUS + _ARROW_GAP
    return Line(
        round(x1 + dx * before, 2),
        round(y1 + dy * before, 2),
        round(x2 - dx * after, 2),
        round(y2 - dy * after, 2),
        both,
        own,
    )
