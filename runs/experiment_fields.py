"""Typed access to one mapping or item of a YAML file; every fault becomes one line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any, TypeVar

from runs.protocols.yaml12 import MAX_INTEGER, Document, Path

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MAX_TEXT_CHARS = 500

Word = TypeVar("Word", bound=str)


class Section:
    """A place in the document. Getters return None after a fault or where a key is absent."""

    def __init__(self, document: Document, path: Path, data: Any, faults: list[str]) -> None:
        self._document = document
        self._path = path
        self._faults = faults
        self._own = data

    @property
    def _data(self) -> dict[str, Any]:
        return self._own if isinstance(self._own, dict) else {}

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._data)

    def fault(self, key: str, what: str) -> None:
        self._faults.append(self._document.fault((*self._path, key) if key else self._path, what))

    def has(self, key: str) -> bool:
        return self._data.get(key) is not None

    def only(self, allowed: str) -> None:
        """Note a fault for anything but a mapping and for every key that is not allowed."""
        if not isinstance(self._own, dict):
            self.fault("", f"must be a mapping, not {kind(self._own)}")
        names = allowed.split()
        for key in self.keys:
            if key not in names:
                near = difflib.get_close_matches(key, names, 1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(names)}"
                self.fault(key, f"is no key of this part; {hint}")

    def _value(self, key: str, *, required: bool) -> Any:
        value = self._data.get(key)
        if value is None and required:
            self.fault(key, "is empty" if key in self._data else "is missing")
        return value

    def text(self, key: str, *, required: bool = True) -> str | None:
        value = self._value(key, required=required)
        if value is None:
            return None
        if not isinstance(value, str):
            self.fault(key, f"must be text, not {kind(value)}")
            return None
        if not value.strip() or not value.isprintable() or len(value) > _MAX_TEXT_CHARS:
            self.fault(key, f"must be one line of at most {_MAX_TEXT_CHARS} characters")
            return None
        return value

    def name(self, key: str) -> str | None:
        """Return a required name: letters, digits and ``_ . -``, at most 100 characters."""
        value = self.text(key)
        if value is not None and not _NAME.fullmatch(value):
            self.fault(key, f"{value!r} may hold letters, digits, dots, dashes and underscores")
        return value

    def whole(
        self, key: str, *, least: int = 0, most: int = MAX_INTEGER, required: bool = False
    ) -> int | None:
        value = self._value(key, required=required)
        return None if value is None else self._whole(key, value, least, most)

    def own_whole(self) -> int | None:
        """Return this item as a whole number that is not negative."""
        return self._whole("", self._own, 0, MAX_INTEGER)

    def _whole(self, key: str, value: Any, least: int, most: int) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(key, f"must be a whole number, not {kind(value)}")
            return None
        if not least <= value <= most:
            self.fault(key, f"must be from {least} to {most}, not {value}")
            return None
        return value

    def real(self, key: str, *, above: float, below: float) -> float | None:
        value = self._data.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(key, f"must be a number, not {kind(value)}")
            return None
        if not above < value < below:
            self.fault(key, f"must be between {above:g} and {below:g}, not {value:g}")
            return None
        return float(value)

    def one_of(self, key: str, allowed: Sequence[Word], *, required: bool = False) -> Word | None:
        value = self._value(key, required=required)
        if value is None:
            return None
        for word in allowed:
            if word == value:
                return word
        self.fault(key, f"must be {' or '.join(allowed)}, not {kind(value)}")
        return None

    def known(self, key: str, names: Sequence[str], what: str) -> str:
        """Return a required text that is one of the names; empty after a fault."""
        value = self.text(key)
        return "" if value is None else self._known(key, value, names, what)

    def own_known(self, names: Sequence[str], what: str) -> str:
        if not isinstance(self._own, str):
            self.fault("", f"must be text, not {kind(self._own)}")
            return ""
        return self._known("", self._own, names, what)

    def _known(self, key: str, value: str, names: Sequence[str], what: str) -> str:
        if value in names:
            return value
        near = difflib.get_close_matches(value, names, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        self.fault(key, f"{kind(value)} is not {what}{hint}")
        return ""

    def section(self, key: str) -> Section | None:
        """Return a mapping below; None where it is absent."""
        value = self._data.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fault(key, f"must be a mapping, not {kind(value)}")
            return None
        return Section(self._document, (*self._path, key), value, self._faults)

    def items(self, key: str, *, required: bool = False) -> list[Section] | None:
        """Return the members of a list below; None where it is absent."""
        value = self._value(key, required=required)
        if value is None:
            return None
        if not isinstance(value, list):
            self.fault(key, f"must be a list, not {kind(value)}")
            return None
        return self._members((*self._path, key), value)

    def own_items(self) -> list[Section]:
        """Return the members of this list; none where it is something else."""
        return self._members(self._path, self._own if isinstance(self._own, list) else [])

    def _members(self, path: Path, values: list[Any]) -> list[Section]:
        return [
            Section(self._document, (*path, place), value, self._faults)
            for place, value in enumerate(values)
        ]


def kind(value: Any) -> str:
    """Return a value of the file as it may be quoted in one line."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
