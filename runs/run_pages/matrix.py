"""
One debate as a matrix of agents and rounds, composed of rows that were read (no query here).

Right and wrong are ``is_correct``'s: an agent's place in round t is judged by the candidate that
it holds after t, a new one or the one it kept (S11).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from debateweb.texts import DiffPart, printable
from runs.engine.normalise import is_correct
from runs.engine.types import Answer, Question, Status
from runs.protocols.spec import Normaliser
from runs.run_pages.reads import Ruling, RunRows, Version
from runs.run_pages.texts import changed_words, excerpt_of

Went = Literal["", "broke", "fixed"]
#: What ``?show=`` takes: rows with such a cell are listed, the other cells recede.
SHOWS = {
    "broke": "right → wrong",
    "fixed": "wrong → right",
    "changed": "answer changed",
    "refused": "not admitted",
}
#: Characters of candidates' texts on one page; what comes after is one click away.
PAGE_TEXT_CHARS = 60_000
#: Characters of a change that a cell shows before it is opened.
EXCERPT_CHARS = 240
#: Where a model's name may break at the end of a line.
_JOINTS = re.compile(r"(?<=[,:/])")

#: Kind and word of the badge for each status (S11).
STATUS_BADGES = {
    Status.SUCCEEDED: ("ok", "admitted"),
    Status.INVALID: ("bad", "invalid"),
    Status.TRUNCATED: ("truncated", "truncated"),
    Status.FILTERED: ("bad", "filtered"),
    Status.FAILED: ("failed", "failed"),
    Status.TIMEOUT: ("bad", "timeout"),
    Status.CANCELLED: ("cancelled", "cancelled"),
    Status.SKIPPED_BUDGET: ("stop", "skipped: budget"),
    Status.INACTIVE: ("stop", "inactive"),
    Status.NOT_SCHEDULED: ("wait", "not scheduled"),
}
CORRECT_BADGES = {
    True: ("right", "right"),
    False: ("wrong", "wrong"),
    None: ("unknown", "unscored"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """
    An agent in a round. ``held`` is its candidate after the round, ``before`` the one before.

    ``parts`` says what changed since ``before`` (or holds the first text), None where the page
    has no room left and the cell's own page shows it.
    """

    t: int
    agent_id: str
    anchor: str
    badge: tuple[str, str]
    reason: str = ""
    attempts: int = 0
    held: Version | None = None
    before: Version | None = None
    correct: bool | None = None
    was_correct: bool | None = None
    checks: dict[str, int] = field(default_factory=dict)
    parts: list[DiffPart] | None = None
    is_refused: bool = False
    is_aside: bool = False
    next_turned: str = ""  # The anchor of the next listed cell that went the same way.

    @property
    def label(self) -> str:
        what = "Text of" if self.is_first else "What changed in"
        return f"{what} {self.agent_id}, round {self.t}"

    @property
    def is_new(self) -> bool:
        return self.held is not None and self.held is not self.before

    @property
    def is_first(self) -> bool:
        return self.is_new and self.before is None

    @property
    def answer_changed(self) -> bool:
        return (
            self.held is not None
            and self.before is not None
            and counted(self.held.answer) != counted(self.before.answer)
        )

    @property
    def went(self) -> Went:
        return way_between(self.was_correct, self.correct)

    @property
    def correct_badge(self) -> tuple[str, str]:
        return CORRECT_BADGES[self.correct]

    @property
    def excerpt(self) -> list[DiffPart]:
        """Return what changed in a few words; nothing for a first text or an equal one."""
        if self.before is None or self.parts is None:
            return []
        return excerpt_of(self.parts, EXCERPT_CHARS)

    @property
    def is_same_text(self) -> bool:
        """Whether a new version says, word for word, what the one before said."""
        if not self.is_new or self.parts is None or self.before is None:
            return False
        return all(part.change == "same" for part in self.parts)

    @property
    def is_excerpt_whole(self) -> bool:
        """Whether the excerpt leaves nothing for the fold below it."""
        return self.excerpt == self.parts

    @property
    def words_changed(self) -> tuple[int, int]:
        """Return how many words came and went since the version before."""
        counts = {"added": 0, "removed": 0, "same": 0}
        for part in self.parts or []:
            counts[part.change] += len(part.text.split())
        return counts["added"], counts["removed"]


@dataclass(frozen=True, slots=True)
class Row:
    """One agent with its cells by round."""

    agent_id: str
    model: str
    cells: list[Cell]

    @property
    def model_parts(self) -> list[str]:
        """Return the model's name in pieces between which a line may break."""
        return [part for part in _JOINTS.split(printable(self.model)) if part]


@dataclass(frozen=True, slots=True)
class Matrix:
    """``rows`` are those that ``show`` lists; ``jumps`` are the cells of all rows that turned."""

    rounds: list[int]
    rows: list[Row]
    agents: int
    counts: dict[str, int]
    broke: list[Cell]
    fixed: list[Cell]


def way_between(before: bool | None, after: bool | None) -> Went:
    """Return which way an answer turned; "" for no turn and where one of both is unscored."""
    if before is None or after is None or before is after:
        return ""
    return "fixed" if after else "broke"


def counted(answer: Answer) -> tuple[str, str]:
    return answer.kind, answer.value


def matrix_of(
    rows: RunRows,
    *,
    agent_ids: tuple[str, ...],
    models: dict[str, str],
    question: Question,
    settings: Normaliser,
    show: str = "",
) -> Matrix:
    """Return the matrix; ``show`` is one of ``SHOWS`` or "" for every agent."""
    judged = _judge(question, settings)
    agents = (*agent_ids, *sorted({agent for _t, agent in rows.attempts} - set(agent_ids)))
    seen = [t for t, _agent in (*rows.rulings, *rows.attempts)]
    rounds = list(range(max(seen) + 1)) if seen else []
    every = [
        Row(agent, models.get(agent, ""), list(_cells(rows, agent, i, rounds, judged)))
        for i, agent in enumerate(agents, start=1)
    ]
    cells = [cell for row in every for cell in row.cells]
    listed = _listed(every, show) if show in SHOWS else every
    return Matrix(
        rounds=rounds,
        rows=_with_jumps(_with_texts(listed)),
        agents=len(every),
        counts={name: sum(_has(cell, name) for cell in cells) for name in SHOWS},
        broke=[cell for cell in cells if cell.went == "broke"],
        fixed=[cell for cell in cells if cell.went == "fixed"],
    )


def _judge(question: Question, settings: Normaliser) -> Callable[[Answer], bool | None]:
    """Return ``is_correct`` of this question that reads each distinct answer once."""
    known: dict[tuple[str, str], bool | None] = {}

    def judged(answer: Answer) -> bool | None:
        key = counted(answer)
        if key not in known:
            known[key] = is_correct(answer, question, settings)
        return known[key]

    return judged


def _cells(
    rows: RunRows,
    agent_id: str,
    number: int,
    rounds: list[int],
    judged: Callable[[Answer], bool | None],
) -> Iterator[Cell]:
    new = {version.round: version for version in rows.versions.get(agent_id, [])}
    held: Version | None = None
    for t in rounds:
        before, held = held, new.get(t, held)
        ruling = rows.rulings.get((t, agent_id))
        attempts = rows.attempts.get((t, agent_id), 0)
        yield Cell(
            t=t,
            agent_id=agent_id,
            anchor=f"cell-{number}-{t}",
            badge=_badge(ruling, attempts, is_branched=t in new),
            reason=ruling.reason if ruling is not None else "",
            attempts=attempts,
            held=held,
            before=before,
            correct=judged(held.answer) if held is not None else None,
            was_correct=judged(before.answer) if before is not None else None,
            checks=rows.checks.get((agent_id, held.state_version), {}) if held is not None else {},
            is_refused=ruling is not None and ruling.status != Status.SUCCEEDED,
        )


def _badge(ruling: Ruling | None, attempts: int, *, is_branched: bool) -> tuple[str, str]:
    if ruling is not None:
        return STATUS_BADGES[Status(ruling.status)]
    if is_branched:
        return ("ok", "admitted")
    return ("busy", "in flight") if attempts else ("wait", "not yet")


def _has(cell: Cell, show: str) -> bool:
    if show == "changed":
        return cell.answer_changed
    if show == "refused":
        return cell.is_refused
    return cell.went == show


def _listed(rows: list[Row], show: str) -> list[Row]:
    return [
        replace(row, cells=[replace(cell, is_aside=not _has(cell, show)) for cell in row.cells])
        for row in rows
        if any(_has(cell, show) for cell in row.cells)
    ]


def _with_jumps(rows: list[Row]) -> list[Row]:
    """Chain the cells that turned, so that one leads to the next of its kind."""
    later: dict[str, str] = {}
    chained = []
    for row in reversed(rows):
        cells = []
        for cell in reversed(row.cells):
            cells.append(replace(cell, next_turned=later.get(cell.went, "")))
            if cell.went:
                later[cell.went] = cell.anchor
        chained.append(replace(row, cells=cells[::-1]))
    return chained[::-1]


def _with_texts(rows: list[Row]) -> list[Row]:
    """Put texts into the cells, row by row, as long as the page has room."""
    room = PAGE_TEXT_CHARS
    done = []
    for row in rows:
        cells = []
        for cell in row.cells:
            need = _text_chars(cell)
            if cell.is_new and need <= room:
                room -= need
                cells.append(replace(cell, parts=_parts(cell)))
            else:
                cells.append(cell)
        done.append(replace(row, cells=cells))
    return done


def _text_chars(cell: Cell) -> int:
    return sum(len(v.text.text) for v in (cell.held, cell.before) if v is not None)


def _parts(cell: Cell) -> list[DiffPart] | None:
    """Return the first text, or what changed; None for a change within texts that are cut."""
    if cell.held is None:
        return None
    new = printable(cell.held.text.text)
    if cell.before is None:
        return [DiffPart("same", new)]
    if cell.held.text.is_cut or cell.before.text.is_cut:
        return None
    return changed_words(printable(cell.before.text.text), new)
