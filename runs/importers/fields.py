"""
Typed access to one row of a file, noting every fault under the row's line and the field's path.

A getter returns a harmless value after a fault; ``clean`` says whether the row may be used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from runs.importers.faults import FaultLog, shown
from runs.importers.json_text import MAX_INTEGER

MAX_ID_CHARS = 200

Choice = TypeVar("Choice", bound=str)


class Fields:
    """The keys of one object of a file. ``path`` prefixes the names in faults."""

    def __init__(
        self,
        data: Any,
        line: int,
        log: FaultLog,
        path: str = "",
        leftovers: dict[str, Any] | None = None,
    ) -> None:
        self.line = line
        self._leftovers: dict[str, Any] = {} if leftovers is None else leftovers
        self._log = log
        self._path = path
        self._seen: set[str] = set()
        self._faults_before = log.total
        self._muted = False
        self.data: dict[str, Any] = data if isinstance(data, dict) else {}
        if not isinstance(data, dict):
            self.fault("", f"must be an object, not {shown(data)}")
            self._muted = True  # That every key is missing too is no news.

    @property
    def clean(self) -> bool:
        """Whether no fault was noted since this row began."""
        return self._log.total == self._faults_before

    def fault(self, key: str, message: str) -> None:
        if not self._muted:
            self._log.add(self.line, self._name(key), message)

    def _name(self, key: str) -> str:
        return ".".join(part for part in (self._path, key) if part) or "row"

    def get(self, key: str) -> Any:
        """Return the value as parsed, None where it is absent or null."""
        self._seen.add(key)
        return self.data.get(key)

    def has(self, key: str) -> bool:
        return key in self.data

    def require(self, key: str) -> bool:
        """Note a fault unless the key is present, if only as null."""
        if key in self.data:
            return True
        self._seen.add(key)
        self.fault(key, "is missing")
        return False

    def text(self, key: str) -> str:
        """Return a text that must be there and not blank."""
        value = self.optional_text(key)
        if value is None and self.clean_of(key):
            self.fault(key, "is null" if key in self.data else "is missing")
        elif value is not None and not value.strip():
            self.fault(key, "is empty")
        return value or ""

    def clean_of(self, key: str) -> bool:
        """Whether a value of None means absence and not a wrong type."""
        return self.data.get(key) is None

    def identifier(self, key: str) -> str:
        """Return a name: not blank, one printable line, at most 200 characters."""
        value = self.text(key)
        if len(value) > MAX_ID_CHARS:
            self.fault(key, f"is longer than {MAX_ID_CHARS} characters")
        elif not value.isprintable():
            self.fault(key, f"holds a control character: {shown(value)}")
        return value

    def optional_text(self, key: str) -> str | None:
        value = self.get(key)
        if value is None or isinstance(value, str):
            return value
        hint = f'; write "{value}"' if _is_number(value) else ""
        self.fault(key, f"must be text, not {shown(value)}{hint}")
        return None

    def whole(self, key: str, *, least: int = 0) -> int | None:
        """Return a whole number within [least, 2^53 - 1]."""
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.fault(key, f"must be a whole number, not {shown(value)}")
            return None
        if not least <= value <= MAX_INTEGER:
            self.fault(key, f"must be from {least} to 2^53 - 1, not {shown(value)}")
            return None
        return value

    def real(self, key: str, *, most: float = math.inf) -> float | None:
        """Return a number within [0, most]."""
        value = self.get(key)
        if value is None:
            return None
        if not _is_number(value):
            self.fault(key, f"must be a number, not {shown(value)}")
            return None
        if not 0 <= value <= most:
            limit = "not negative" if most == math.inf else f"from 0 to {most:g}"
            self.fault(key, f"must be {limit}, not {shown(value)}")
            return None
        return float(value)

    def one_of(self, key: str, allowed: Sequence[Choice]) -> Choice | None:
        value = self.optional_text(key)
        if value is None:
            return None
        for choice in allowed:
            if choice == value:
                return choice
        self.fault(key, f"must be one of {', '.join(allowed)}, not {shown(value)}")
        return None

    def texts(self, key: str, *, single: bool = False) -> tuple[str, ...]:
        """Return a list of texts; with ``single`` one text stands for a list of one."""
        value = self.get(key)
        if value is None:
            return ()
        if single and isinstance(value, str):
            return (value,)
        if not isinstance(value, list):
            wanted = "text, a list of texts or null" if single else "a list of texts"
            hint = f'; write "{value}"' if single and _is_number(value) else ""
            self.fault(key, f"must be {wanted}, not {shown(value)}{hint}")
            return ()
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self.fault(f"{key}[{index}]", f"must be text, not {shown(item)}")
        return tuple(item for item in value if isinstance(item, str))

    def items(self, key: str) -> list[Any]:
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(key, f"must be a list, not {shown(value)}")
            return []
        return value

    def objects(self, key: str) -> Iterator[Fields]:
        """Yield the members of a list of objects."""
        for index, item in enumerate(self.items(key)):
            yield self.inner(item, f"{key}[{index}]")

    def object(self, key: str) -> Fields | None:
        value = self.get(key)
        return None if value is None else self.inner(value, key)

    def inner(self, data: Any, key: str) -> Fields:
        path = self._name(key) if key else self._path
        return Fields(data, self.line, self._log, path, self._leftovers)

    def leave(self) -> None:
        """Hand the keys that nothing asked for to the row's metadata, under this path."""
        unknown = {key: value for key, value in self.data.items() if key not in self._seen}
        if unknown:
            self._leftovers[self._path] = unknown

    def row_metadata(self) -> dict[str, Any]:
        """Return ``metadata`` of the row with what its inner objects left; call it last."""
        return {**self.metadata(), **self._leftovers}

    def metadata(self) -> dict[str, Any]:
        """Return ``metadata`` and every key that nothing asked for; call it last."""
        kept = self.get("metadata")
        if kept is not None and not isinstance(kept, dict):
            self.fault("metadata", f"must be an object, not {shown(kept)}")
        found: dict[str, Any] = dict(kept) if isinstance(kept, dict) else {}
        for key, value in self.data.items():
            if key in self._seen:
                continue
            if key in found:
                self.fault(key, "stands beside and inside metadata")
            found[key] = value
        return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
