"""Validation errors as lines a person can act on: where, which field, what is wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from runs.protocols.spec import ProtocolProblemsError
from runs.protocols.yaml12 import Document, Path, dotted

_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")

#: Our words where the library's would puzzle someone who wrote YAML.
_WORDS: dict[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "there is no such field",
    "string_type": "has to be text; put it in quotes",
    "bool_type": "has to be true or false",
    "int_type": "has to be a whole number",
    "float_type": "has to be a number",
    "tuple_type": "has to be a list",
    "list_type": "has to be a list",
    "dict_type": "has to be a mapping",
    "model_type": "has to be a mapping of fields",
    "model_attributes_type": "has to be a mapping of fields",
}


def fault_lines(error: ValidationError, document: Document) -> list[str]:
    """Return one ``WHERE:LINE: field.path: what is wrong`` for every fault, in file order."""
    found = [
        (_within(path, document.data), what)
        for item in error.errors(include_url=False, include_input=False)
        for path, what in _faults(item)
    ]
    # Where one branch of a union got further than another, only its fault helps.
    faults = [(at, what) for at, what in found if not _is_surpassed(at, found)]
    lines = {document.fault(at, what): document.line(at) for at, what in faults}
    return sorted(lines, key=lambda line: lines[line])


def plain_faults(error: ValidationError) -> list[str]:
    """Return ``field.path: what is wrong`` for every fault of a value that came from no file."""
    found = [fault for item in error.errors(include_url=False) for fault in _faults(item)]
    return [f"{dotted(path)}: {what}" for path, what in found if not _is_surpassed(path, found)]


def _is_surpassed(at: Path, found: Sequence[tuple[Path, str]]) -> bool:
    return any(len(path) > len(at) > 0 and path[: len(at)] == at for path, _ in found)


def _faults(item: Mapping[str, Any]) -> list[tuple[Path, str]]:
    location: Path = tuple(item["loc"])
    cause = (item.get("ctx") or {}).get("error")
    if isinstance(cause, ProtocolProblemsError):
        return [_split(line) for line in cause.found]
    return [(location, _words(item))]


def _split(line: str) -> tuple[Path, str]:
    path, _, what = line.partition(": ")
    steps = (int(index) if index else name for name, index in _STEP.findall(path))
    return tuple(steps), what


def _words(item: Mapping[str, Any]) -> str:
    kind, context = item["type"], item.get("ctx") or {}
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "literal_error":
        return f"has to be {context['expected']}"
    if kind == "string_pattern_mismatch":
        return f"has to match {context['pattern']}"
    if kind == "too_long":
        return f"has more than {context['max_length']} entries"
    if kind == "too_short":
        return f"has fewer than {context['min_length']} entries"
    message = str(item["msg"]).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _within(path: Path, data: Any) -> Path:
    """Drop the steps that the validator adds for its own union branches."""
    kept: list[str | int] = []
    for position, step in enumerate(path):
        is_last = position == len(path) - 1
        if isinstance(data, dict) and (step in data or is_last):
            data = data.get(step) if isinstance(step, str) else None
        elif isinstance(data, list) and isinstance(step, int) and step < len(data):
            data = data[step]
        else:
            continue
        kept.append(step)
    return tuple(kept)
