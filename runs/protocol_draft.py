"""
A protocol being edited: one document, edited as a form and as YAML at once.

A page is made of one YAML text, the base. What comes back is the base, the YAML as typed and the
inputs as typed. Inputs that differ from the base are changes; they are made to the YAML as typed.
So both can be edited before either is sent, and nothing is lost.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field

from runs.protocol_fields import (
    AGENT_INPUTS,
    COUNT,
    GROUPS,
    Document,
    Input,
    default_at,
    read,
    shown,
    steps_of,
    value_at,
    with_value,
)
from runs.protocols.spec import Protocol
from runs.protocols.yaml12 import FileFaultError, load
from runs.protocols.yaml_io import dump_document, load_protocol

WHERE = "YAML"
MOST_AGENTS = 64
_FAULT = re.compile(
    rf"{WHERE}(?::(?P<line>\d+))?: (?:(?P<path>[a-z_][^\s:]*): )?(?P<what>.+)", re.DOTALL
)


@dataclass(frozen=True)
class BoundInput:
    """An input with its text and what is wrong with it."""

    input: Input
    text: str
    faults: tuple[str, ...]

    @property
    def id(self) -> str:
        return "in-" + re.sub(r"[^a-z0-9_]+", "-", self.input.path)


@dataclass(frozen=True)
class BoundGroup:
    title: str
    inputs: tuple[BoundInput, ...]
    is_open: bool


@dataclass
class Draft:
    """
    What the editor shows. ``base`` is the YAML that the inputs were made of.

    ``protocol`` is None while ``faults`` (lines) has any. ``conflicts`` name what was changed in
    the form and, differently, in the YAML; the form's value stands.
    """

    yaml: str
    base: str
    document: Document
    protocol: Protocol | None = None
    faults: list[str] = field(default_factory=list)
    by_path: dict[str, list[str]] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)
    typed: dict[str, str] = field(default_factory=dict)

    @property
    def agent_count(self) -> int:
        agents = self.document.get("agents")
        return len(agents) if isinstance(agents, list) else 0

    def groups(self) -> list[BoundGroup]:
        return [
            BoundGroup(
                g.title,
                tuple(self._bound(one) for one in g.inputs),
                self._is_open(g.inputs, g.is_open),
            )
            for g in GROUPS
        ]

    def agents(self) -> list[tuple[BoundInput, ...]]:
        return [
            tuple(self._bound(one) for one in agent_inputs(place))
            for place in range(min(self.agent_count, MOST_AGENTS))
        ]

    def count(self) -> BoundInput:
        one = Input(COUNT, "Agents", "whole", "More of them take the settings of those there are.")
        faults = tuple(self.by_path.get("agents", ()))
        return BoundInput(one, self.typed.get(COUNT, str(self.agent_count)), faults)

    def _bound(self, one: Input) -> BoundInput:
        text = self.typed.get(one.path, shown(self.document, one))
        return BoundInput(one, text, tuple(self.by_path.get(one.path, ())))

    def _is_open(self, inputs: tuple[Input, ...], default: bool) -> bool:
        return default or any(one.path in self.by_path for one in inputs)


def agent_inputs(place: int) -> tuple[Input, ...]:
    """Return the inputs of one agent of the list."""
    return tuple(
        Input(f"agents[{place}].{one.path}", one.label, one.kind, one.help, one.choices)
        for one in AGENT_INPUTS
    )


def draft_of_yaml(text: str) -> Draft:
    """Return the draft that a YAML text is the beginning of."""
    document, _ = _document(text)
    made = Draft(text, text, document or {})
    _judge(made)
    return made


def draft_of_post(data: Mapping[str, str]) -> Draft:
    """Return what was sent as one draft: the form's changes made to the YAML as typed."""
    base = data.get("base", "").replace("\r\n", "\n")
    text = data.get("yaml", base).replace("\r\n", "\n")
    document, faults = _document(text)
    before = document if text == base else _document(base)[0]
    before = before or {}
    if document is None:  # The YAML cannot be read: both stay as typed, to be mended.
        typed = {key: value for key, value in data.items() if key not in ("base", "yaml")}
        made = Draft(text, base, before, typed=typed)
        _note(made, faults)
        return made
    changed, conflicts = _changes(data, before, document)
    if changed != document:
        text, document = dump_document(changed), changed
    made = Draft(text, text, document, conflicts=conflicts)
    _judge(made)
    return made


def _changes(
    data: Mapping[str, str], before: Document, document: Document
) -> tuple[Document, list[str]]:
    """Return the document with every input that differs from ``before``, and the conflicts."""
    conflicts: list[str] = []
    places = range(len(before.get("agents") or []) if isinstance(before.get("agents"), list) else 0)
    inputs = [one for group in GROUPS for one in group.inputs]
    inputs += [one for place in places for one in agent_inputs(place)]
    changed = document
    for one in inputs:
        if one.path not in data and not (one.kind == "check" and f"has.{one.path}" in data):
            continue
        text = data.get(one.path, "").replace("\r\n", "\n")
        old = shown(before, one)
        if text.strip("\n") == old.strip("\n"):
            continue
        if shown(document, one) not in (old, text):
            conflicts.append(f"{one.label} ({one.path})")
        changed = _with_input(changed, one, text)
    return _with_count(changed, data.get(COUNT, ""), len(places)), conflicts


def _with_input(document: Document, one: Input, text: str) -> Document:
    steps = steps_of(one.path)
    value = read(one, text)
    if value == default_at(one.path) and value_at(document, steps) is None:
        return document
    made: Document = with_value(document, steps, value)
    return made


def _with_count(document: Document, text: str, before: int) -> Document:
    """Return the document with as many agents as asked for; new ones take settings in turn."""
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 4 else before
    agents = document.get("agents")
    if wanted == before or wanted > MOST_AGENTS or not isinstance(agents, list):
        return document
    kept = agents[:wanted]
    taken = {agent.get("id") for agent in kept if isinstance(agent, dict)}
    free = (name for name in _agent_ids() if name not in taken)
    settings = [agent for agent in agents if isinstance(agent, dict)] or [{}]
    while len(kept) < wanted:
        kept.append({**settings[len(kept) % len(settings)], "id": next(free)})
    return {**document, "agents": kept}


def _agent_ids() -> list[str]:
    letters = string.ascii_lowercase
    return [letter + (str(turn) if turn > 1 else "") for turn in range(1, 6) for letter in letters]


def _document(text: str) -> tuple[Document | None, list[str]]:
    try:
        data = load(text, WHERE).data if text.strip() else {}
    except FileFaultError as exc:
        return None, list(exc.lines)
    if not isinstance(data, dict):
        return None, [f"{WHERE}: a protocol is a mapping of fields"]
    return data, []


def _judge(draft: Draft) -> None:
    try:
        draft.protocol = load_protocol(draft.yaml, WHERE)
    except FileFaultError as exc:
        _note(draft, list(exc.lines))


def _note(draft: Draft, lines: list[str]) -> None:
    """Put each fault beside the input that its path lies in; the rest stand by themselves."""
    draft.faults = lines
    paths = [one.path for group in GROUPS for one in group.inputs]
    paths += [one.path for place in range(draft.agent_count) for one in agent_inputs(place)]
    paths.append("agents")
    for line in lines:
        found = _FAULT.fullmatch(line)
        path = found["path"] if found and found["path"] else ""
        near = [p for p in paths if path == p or path.startswith((f"{p}.", f"{p}["))]
        if found is None or not near:
            draft.others.append(line)
            continue
        nearest = max(near, key=len)
        inside = path.removeprefix(nearest).lstrip(".")
        words = f"{inside}: {found['what']}" if inside else found["what"]
        draft.by_path.setdefault(nearest, []).append(words)
