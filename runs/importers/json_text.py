"""
Strict JSON, one value at a time.

Refused, because they would be kept wrongly or not at all: duplicate keys, integers beyond 2^53 - 1,
NaN and infinities, NUL and lone surrogates, and nesting deeper than 64.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from runs.importers.faults import one_line, shown

MAX_DEPTH = 64
MAX_INTEGER = 2**53 - 1  # Beyond it no canonical JSON exists (S35).
_MAX_INTEGER_DIGITS = 17
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)
_RISKY_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class JsonFault(ValueError):
    """A value that is not acceptable JSON: ``field`` is its path, the message says why."""

    def __init__(self, message: str, field: str = "json") -> None:
        super().__init__(message)
        self.field = field


def parse(text: str) -> Any:
    """Return the value; raises JsonFault."""
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as exc:
        raise JsonFault(f"not valid JSON at column {exc.colno}: {exc.msg}") from exc
    if _RISKY_ESCAPE.search(text):
        _check_characters(value)
    return value


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for match in _BRACKETS.finditer(text):
        token = match.group()
        if token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise JsonFault(f"nested deeper than {MAX_DEPTH} levels")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonFault(f"the key {shown(key)} stands twice in one object")
            seen.add(key)
    return found


def _integer(digits: str) -> int:
    if len(digits) > _MAX_INTEGER_DIGITS or abs(int(digits)) > MAX_INTEGER:
        raise JsonFault(f"the integer {one_line(digits)} is beyond 2^53 - 1; write it as text")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise JsonFault(f"the number {one_line(digits)} is too large")
    return value


def _constant(name: str) -> float:
    raise JsonFault(f"{name} is not a JSON number")


def _check_characters(value: Any) -> None:
    for path, text in _texts(value):
        if "\0" in text:
            raise JsonFault("holds a NUL character", path or "json")
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise JsonFault("holds a lone surrogate", path or "json")


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield path or "json", key
            yield from _texts(item, f"{path}.{key}" if path else key)
