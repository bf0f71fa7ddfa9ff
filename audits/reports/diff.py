"""Where two report JSONs differ, place by place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from debateweb.errors import InputError

_ABSENT = object()
MAX_VALUE_CHARS = 80
_NAMING = ("metric", "agg", "round", "by")
#: Addresses of a figure's rows: they hold the report's name and say nothing about the figure.
_ADDRESS = "rows"


def load_report(text: str, source: str) -> dict[str, Any]:
    """Return a report from its JSON. Raises InputError for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise InputError(f"{source}: is not JSON: {str(exc).splitlines()[0]}") from exc
    if not isinstance(found, dict) or not {"schema_version", "kind", "conditions"} <= set(found):
        raise InputError(f"{source}: is no report of this program")
    return found


def differences(a: object, b: object, path: str = "") -> Iterator[str]:
    """Yield a line for every place where two JSON values differ, in the order of the first."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys([*a, *b]):
            if key == _ADDRESS and "metric" in a:
                continue
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(a.get(key, _ABSENT), b.get(key, _ABSENT), inner)
    elif isinstance(a, list) and isinstance(b, list):
        yield from _list_differences(a, b, path)
    elif a is _ABSENT or b is _ABSENT or (type(a), a) != (type(b), b):
        yield f"{path}: {_shown(a)} → {_shown(b)}"


def _list_differences(a: list[Any], b: list[Any], path: str) -> Iterator[str]:
    """Compare named members by their names, so that one more figure does not shift all others."""
    ours, theirs = _by_name(a), _by_name(b)
    if ours is None or theirs is None:
        ours, theirs = dict(enumerate(a)), dict(enumerate(b))
    for key in dict.fromkeys([*ours, *theirs]):
        yield from differences(ours.get(key, _ABSENT), theirs.get(key, _ABSENT), f"{path}[{key}]")


def _by_name(members: list[Any]) -> dict[Any, Any] | None:
    names = [_name(member) for member in members]
    if None in names or len(set(names)) != len(names):
        return None
    return dict(zip(names, members, strict=True))


def _name(member: object) -> str | None:
    if not isinstance(member, dict):
        return None
    if "metric" in member:
        parts = (member.get(key) for key in _NAMING)
        return " ".join(_shown(part) if isinstance(part, dict) else str(part)
                        for part in parts if part not in (None, {}))  # fmt: skip
    if "name" in member:
        return str(member["name"])
    if "a" in member and "b" in member:
        return f"{member['a']} - {member['b']}"
    return None


def _shown(value: object) -> str:
    if value is _ABSENT:
        return "absent"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
