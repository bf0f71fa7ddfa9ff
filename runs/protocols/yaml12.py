"""
YAML 1.2 as plain values with line numbers: protocols, experiment files, model tables.

Values are built from the parser's events by the core schema and nothing else: ``yes``, ``no``,
``on`` are text, ``1e-3`` is a number, JSON is read as the subset it is. No tag is honoured, so
no file can make an object; depth, size, aliases and the nodes that aliases stand for are capped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
)

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
MAX_ALIASES = 100
MAX_NODES = 100_000
MAX_FAULTS = 20
MAX_INTEGER = 2**53 - 1  # Beyond it no canonical JSON exists (S35).

Path = tuple[str | int, ...]

_MAX_QUOTED = 60  # Characters of the file that a fault repeats.

_WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BREAKS_IN_JSON = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class FileFaultError(ValueError):
    """A file can't be used; ``lines`` says where and why, at most 20 of them."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)[:MAX_FAULTS]
        super().__init__("\n".join(self.lines))


class YamlError(FileFaultError):
    """The text is not YAML 1.2 of the kind that is accepted here."""


@dataclass(slots=True)
class _Node:
    """A value with the lines of its parts; ``size`` counts nodes with aliases written out."""

    line: int
    value: Any = None
    children: dict[str | int, _Node] = field(default_factory=dict)
    size: int = 1


@dataclass(frozen=True, slots=True)
class Document:
    """
    One parsed file.

    ``data`` is made of dict, list, str, int, float, bool and None; keys are always text.
    """

    data: Any
    where: str
    _root: _Node = field(repr=False, compare=False)

    def line(self, path: Sequence[str | int]) -> int:
        """Return the line of the deepest part of ``path`` that the file has, from 1."""
        node = self._root
        for step in path:
            child = node.children.get(step)
            if child is None:
                break
            node = child
        return node.line

    def fault(self, path: Sequence[str | int], what: str) -> str:
        """Return ``WHERE:LINE: field.path: what`` for one fault."""
        name = dotted(path)
        return f"{self.where}:{self.line(path)}: {name + ': ' if name else ''}{what}"


def dotted(path: Sequence[str | int]) -> str:
    """Return ``agents[0].decoding.top_p`` for ``("agents", 0, "decoding", "top_p")``."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        else:
            out += f".{_quoted(step)}" if out else _quoted(step)
    return out


def _quoted(text: str) -> str:
    """Return what a file says as it can stand in one line: short, nothing unprintable."""
    short = text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)


def load(text: str, where: str) -> Document:
    """
    Return the one document in ``text``; ``where`` names it in faults.

    Raises YamlError: not YAML 1.2, a duplicate key, a tag, a value that JSON does not have,
    more than one document, too large, too deep, too many aliases.
    """
    if len(text) > MAX_BYTES or len(_utf8(text, where)) > MAX_BYTES:
        raise YamlError([f"{where}:1: larger than {MAX_BYTES} bytes"])
    root = _Builder(where).build(_events(_json_escaped(text), where))
    return Document(root.value, where, root)


def _utf8(text: str, where: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as exc:
        line = text.count("\n", 0, exc.start) + 1
        raise YamlError([f"{where}:{line}: half of a surrogate pair is not text"]) from exc


def _json_escaped(text: str) -> str:
    """
    Return JSON with the few characters escaped that YAML reads otherwise than JSON does.

    Outside of its strings JSON has none of them, so that replacing them is safe.
    """
    if not _BREAKS_IN_JSON.search(text):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _BREAKS_IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _events(text: str, where: str) -> Iterator[Event]:
    yaml = YAML(typ="safe", pure=True)
    try:
        yield from yaml.parse(text)
    except YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        position = getattr(exc, "position", None)
        line = mark.line + 1 if mark else text.count("\n", 0, position or 0) + 1
        what = getattr(exc, "problem", None) or getattr(exc, "reason", None) or "not YAML"
        raise YamlError([f"{where}:{line}: not YAML: {what}"]) from exc
    except (ValueError, ArithmeticError, LookupError, AttributeError, TypeError) as exc:
        # The scanner lets a few of its own slips through, e.g. for escapes beyond U+10FFFF.
        raise YamlError([f"{where}:1: not YAML: {type(exc).__name__}"]) from exc


class _Builder:
    """Folds parser events into nodes without recursion."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.anchors: dict[str, _Node] = {}
        self.open_anchors: list[str | None] = []
        self.aliases = 0
        self.documents = 0
        self.stack: list[_Node] = []
        self.keys: list[str | None] = []
        self.root = _Node(line=1)

    def build(self, events: Iterator[Event]) -> _Node:
        for event in events:
            self._take(event)
        return self.root

    def _take(self, event: Event) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, DocumentStartEvent):
            self._start_document(event, line)
        elif isinstance(event, ScalarEvent):
            self._refuse_tag(event, line)
            self._scalar(event, line)
        elif isinstance(event, AliasEvent):
            self._alias(event, line)
        elif isinstance(event, CollectionStartEvent):
            self._refuse_tag(event, line)
            self._open(event, line)
        elif isinstance(event, CollectionEndEvent):
            self._close()

    def _start_document(self, event: DocumentStartEvent, line: int) -> None:
        self.documents += 1
        if self.documents > 1:
            raise self._error(line, "more than one document")
        if event.version is not None and tuple(event.version) != (1, 2):
            raise self._error(line, "only YAML 1.2 is read")

    def _refuse_tag(self, event: ScalarEvent | CollectionStartEvent, line: int) -> None:
        if event.ctag is not None:
            raise self._error(line, f"tags are not read: {_quoted(str(event.ctag))}")

    def _scalar(self, event: ScalarEvent, line: int) -> None:
        text = self._text(event.value, line)
        if self._awaits_key():
            self._key(text, line)
            if event.anchor:
                raise self._error(line, "an anchor on a key")
            return
        plain = event.implicit[0]
        node = _Node(line, self._plain(text, line) if plain else text)
        if event.anchor:
            self.anchors[event.anchor] = node
        self._place(node)

    def _text(self, value: str, line: int) -> str:
        try:
            # JSON writes characters beyond U+FFFF as two escapes.
            text = value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as exc:
            raise self._error(line, "half of a surrogate pair is not text") from exc
        if "\0" in text:
            raise self._error(line, "NUL is not text")
        return text

    def _plain(self, text: str, line: int) -> Any:
        if text in _WORDS:
            return _WORDS[text]
        if _NOT_FINITE.fullmatch(text):
            raise self._error(line, f"{text} is not a finite number")
        if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
            return self._integer(text, line)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number in (float("inf"), float("-inf")):
                raise self._error(line, f"{_quoted(text)} is not a finite number")
            return number
        return text

    def _integer(self, text: str, line: int) -> int:
        # Few enough digits to stay clear of the interpreter's own limit.
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        if len(text) <= 100 and abs(number := int(text, base)) <= MAX_INTEGER:
            return number
        raise self._error(line, f"{_quoted(text)} is beyond 2^53 - 1")

    def _awaits_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.keys[-1] is None

    def _key(self, text: str, line: int) -> None:
        parent = self.stack[-1]
        if text in parent.value:
            first = parent.children[text].line
            raise self._error(line, f"duplicate key '{_quoted(text)}', first on line {first}")
        if text == "<<":
            raise self._error(line, "merge keys (<<) are not part of YAML 1.2")
        parent.value[text] = None
        parent.children[text] = _Node(line)
        self.keys[-1] = text

    def _alias(self, event: AliasEvent, line: int) -> None:
        self.aliases += 1
        if self.aliases > MAX_ALIASES:
            raise self._error(line, f"more than {MAX_ALIASES} aliases")
        if self._awaits_key():
            raise self._error(line, "an alias as a key")
        if event.anchor in self.open_anchors:
            raise self._error(line, f"alias *{_quoted(event.anchor)} stands inside what it names")
        if event.anchor not in self.anchors:
            raise self._error(line, f"alias *{_quoted(event.anchor)} names no anchor")
        self._place(self.anchors[event.anchor])

    def _open(self, event: CollectionStartEvent, line: int) -> None:
        if self._awaits_key():
            raise self._error(line, "a key has to be text")
        if len(self.stack) >= MAX_DEPTH:
            raise self._error(line, f"nested deeper than {MAX_DEPTH}")
        value: Any = {} if isinstance(event, MappingStartEvent) else []
        self.stack.append(_Node(line, value))
        self.keys.append(None)
        self.open_anchors.append(event.anchor)

    def _close(self) -> None:
        node = self.stack.pop()
        self.keys.pop()
        anchor = self.open_anchors.pop()
        if anchor:
            self.anchors[anchor] = node
        self._place(node)

    def _place(self, node: _Node) -> None:
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        parent.size += node.size
        if parent.size > MAX_NODES:
            raise self._error(node.line, f"more than {MAX_NODES} values")
        key = self.keys[-1]
        if key is not None:
            line = parent.children[key].line
            parent.value[key] = node.value
            parent.children[key] = _Node(line, children=node.children)
            self.keys[-1] = None
        else:
            parent.children[len(parent.value)] = node
            parent.value.append(node.value)

    def _error(self, line: int, what: str) -> YamlError:
        return YamlError([f"{self.where}:{line}: {what}"])
