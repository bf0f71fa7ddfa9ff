"""Two protocols compared field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runs.protocols.digest import DESCRIPTIVE_FIELDS
from runs.protocols.spec import Protocol

_LONG = 60  # Characters beyond which a text is shown around its first difference.
_LEAD = 20


class _Absent:
    """The value of a field that one side does not have, such as an agent's."""

    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs; values are JSON values, or ``ABSENT``."""

    path: str
    before: Any
    after: Any

    @property
    def is_descriptive(self) -> bool:
        """Whether the field only describes, so that the algorithm is the same."""
        return self.path.partition(".")[0] in DESCRIPTIVE_FIELDS

    def __str__(self) -> str:
        return f"{self.path}: {' → '.join(_shown(self.before, self.after))}"


def diff(a: Protocol, b: Protocol) -> list[Change]:
    """
    Return every field in which ``a`` and ``b`` differ, in the schema's order.

    Agents and verifiers are matched by id; where only their order differs, that is the change.
    """
    return list(_changes("", a.model_dump(mode="json"), b.model_dump(mode="json")))


def as_json(change: Change) -> dict[str, Any]:
    """Return a change for machines; a side that does not have the field is left out."""
    sides = {"before": change.before, "after": change.after}
    present = {side: value for side, value in sides.items() if value is not ABSENT}
    return {"path": change.path, "descriptive": change.is_descriptive, **present}


def _changes(path: str, before: Any, after: Any) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{path}.{key}" if path else key
            yield from _changes(inner, before.get(key, ABSENT), after.get(key, ABSENT))
    elif _has_ids(before) and _has_ids(after):
        yield from _by_id(path, before, after)
    elif before != after:
        yield Change(path, before, after)


def _has_ids(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, dict) and "id" in v for v in value)


def _by_id(
    path: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> Iterator[Change]:
    old, new = ({item["id"]: item for item in side} for side in (before, after))
    for name in dict.fromkeys((*old, *new)):
        yield from _changes(f"{path}[{name}]", old.get(name, ABSENT), new.get(name, ABSENT))
    kept_before = [name for name in old if name in new]
    kept_after = [name for name in new if name in old]
    if kept_before != kept_after:
        yield Change(f"{path}.order", kept_before, kept_after)


def _shown(before: Any, after: Any) -> tuple[str, str]:
    left, right = _text(before), _text(after)
    if max(len(left), len(right)) <= _LONG:
        return left, right
    same = next(
        (i for i, (x, y) in enumerate(zip(left, right, strict=False)) if x != y),
        min(len(left), len(right)),
    )
    start = max(0, same - _LEAD)
    return _window(left, start), _window(right, start)


def _text(value: Any) -> str:
    return repr(value) if value is ABSENT else json.dumps(value, ensure_ascii=False)


def _window(text: str, start: int) -> str:
    end = start + _LONG
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
