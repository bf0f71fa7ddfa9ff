"""
What is wrong with a file, said by file, line and field.

A file is somebody else's word: values are quoted shortened and escaped, so that a message stays
one harmless line whatever the file holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

MAX_FAULTS_SHOWN = 20
_MAX_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. ``line`` counts from 1; 0 means the file as a whole."""

    where: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        place = f"{self.where}:{self.line}" if self.line else self.where
        return f"{place}: {self.field}: {self.message}"


class ImportFaults(Exception):
    """The file was refused and nothing was imported; holds the first 20 faults and their total."""

    code = "import_faults"

    def __init__(self, faults: tuple[Fault, ...], total: int | None = None) -> None:
        self.faults = faults[:MAX_FAULTS_SHOWN]
        self.total = len(faults) if total is None else total
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [str(fault) for fault in self.faults]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines)} more")
        return "\n".join(lines)


@dataclass(slots=True)
class FaultLog:
    """Faults of one pass over one file: the first 20 kept, all counted."""

    where: str
    kept: list[Fault] = field(default_factory=list)
    total: int = 0

    def add(self, line: int, field_name: str, message: str) -> None:
        self.total += 1
        if len(self.kept) < MAX_FAULTS_SHOWN:
            self.kept.append(Fault(self.where, line, one_line(field_name), message))

    def raise_if_any(self) -> None:
        """Raise ImportFaults unless the log is empty."""
        if self.total:
            raise ImportFaults(tuple(self.kept), self.total)


def one_line(text: str) -> str:
    """Return text without line breaks, control or bidirectional characters, shortened."""
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:_MAX_SHOWN_CHARS])
    return safe if len(text) <= _MAX_SHOWN_CHARS else safe + "…"


def shown(value: object) -> str:
    """Return a value of a file as it may be quoted in a message."""
    if isinstance(value, str):
        return f'"{one_line(value)}"'
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return one_line(str(value))
