"""
The inputs of the protocol editor: each is named by its path in the YAML, so faults find theirs.

An input's text becomes a plain value and back; whether the value may stand there is judged by
the protocol language alone. What cannot be read stays the text it is, to be refused in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import BaseModel

from runs.protocols.decisions import Aggregation, Limits, Retries, Stopping, TiePolicy
from runs.protocols.parts import Agent, Output, Prompts, Selection, Topology

Document = dict[str, Any]
Kind = Literal["text", "area", "whole", "real", "words", "check", "choice", "edges", "groups"]
Step = str | int

_WHOLE = re.compile(r"[0-9]{1,15}")
_REAL = re.compile(r"[0-9]*\.?[0-9]+")
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")

#: What stands where the YAML says nothing.
DEFAULTS: Document = {
    "title": "",
    "description": "",
    "topology": Topology().model_dump(mode="json"),
    "selection": Selection().model_dump(mode="json"),
    "prompts": Prompts(initial="").model_dump(mode="json"),
    "output": Output().model_dump(mode="json"),
    "aggregation": Aggregation().model_dump(mode="json"),
    "stopping": Stopping().model_dump(mode="json"),
    "retries": Retries().model_dump(mode="json"),
    "limits": Limits().model_dump(mode="json"),
}
AGENT_DEFAULTS: Document = Agent(id="a").model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class Input:
    """One input; ``path`` is its place in the document and its name in the form."""

    path: str
    label: str
    kind: Kind = "text"
    help: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """Inputs that stand together under a heading."""

    title: str
    inputs: tuple[Input, ...]
    is_open: bool = False


def _options(model: type[BaseModel], name: str) -> tuple[str, ...]:
    """Return the words that a field of the language allows."""
    return tuple(get_args(model.model_fields[name].annotation))


_FIRST = Group(
    "What it is",
    (
        Input(
            "name",
            "Name",
            help="Lower-case letters, digits, dots, dashes. Saving under a name "
            "of yours adds a version to it.",
        ),
        Input("title", "Title"),
        Input("description", "Description", "area"),
        Input(
            "revision_rounds", "Rounds after the first answer", "whole", "0: nobody reads anybody."
        ),
    ),
    is_open=True,
)
_TOPOLOGY = Group(
    "Who may read whom",
    (
        Input("topology.kind", "Topology", "choice", choices=_options(Topology, "kind")),
        Input("topology.k", "Sources for each (k_regular)", "whole"),
        Input("topology.hub", "Centre (star)", help="An agent's id; empty: the first."),
        Input("topology.bidirectional", "A ring is read in both directions", "check"),
        Input("topology.groups", "Groups", "groups", "A group of ids on each line: a, b"),
        Input(
            "topology.edges",
            "Edges (custom)",
            "edges",
            "On each line who is read and who reads: a > b",
        ),
    ),
    is_open=True,
)
_SELECTION = Group(
    "What is shown of it",
    (
        Input("selection.show", "Of a peer", "choice", choices=_options(Selection, "show")),
        Input("selection.rounds", "Peers' rounds", "choice", choices=_options(Selection, "rounds")),
        Input(
            "selection.own_history",
            "Own answers",
            "choice",
            choices=_options(Selection, "own_history"),
        ),
        Input(
            "selection.order", "Order of the peers", "choice", choices=_options(Selection, "order")
        ),
        Input(
            "selection.identities",
            "Identities",
            "choice",
            choices=_options(Selection, "identities"),
        ),
        Input("selection.message_cap_chars", "Longest message, characters", "whole"),
        Input("selection.total_cap_chars", "All messages together, characters", "whole"),
        Input("selection.include_self", "Own answer among the peers' messages", "check"),
    ),
    is_open=True,
)
_PROMPTS = Group(
    "Prompts",
    (
        Input("prompts.system", "System", "area"),
        Input(
            "prompts.initial",
            "First answer",
            "area",
            "Slots: {{question}}, {{choices}}, {{evidence}}, {{persona}}, {{answer_format}}",
        ),
        Input(
            "prompts.revision", "Revision", "area", "Also: {{own_answer}}, {{own_text}}, {{peers}}"
        ),
        Input(
            "prompts.peer", "One peer's message", "area", "Slots: {{label}}, {{text}}, {{answer}}"
        ),
    ),
)
_OUTPUT = Group(
    "How an answer is read",
    (
        Input("output.format", "Form of the reply", "choice", choices=_options(Output, "format")),
        *(
            Input(
                f"output.extraction.{kind}",
                f"Rules for {word}",
                "words",
                "Tried in this order until one finds an answer.",
            )
            for kind, word in (
                ("number", "numbers"),
                ("choice", "choices"),
                ("yesno", "yes or no"),
                ("text", "texts"),
                ("open", "open answers"),
            )
        ),
        Input(
            "output.truncated",
            "A reply that was cut off",
            "choice",
            choices=_options(Output, "truncated"),
        ),
        Input("output.confidence", "Ask for a confidence", "check"),
        Input("output.claims", "Ask for claims", "check"),
        Input("output.abstention_allowed", "An agent may abstain", "check"),
    ),
)
_DECISION = Group(
    "How one answer is made of all",
    (
        Input("aggregation.kind", "Aggregation", "choice", choices=_options(Aggregation, "kind")),
        Input("aggregation.tie", "Ties, in this order", "words", ", ".join(get_args(TiePolicy))),
    ),
    is_open=True,
)
_STOPS = Group(
    "What ends it early",
    (
        Input("stopping.unanimous_at_zero", "All agree at t = 0", "check"),
        Input("stopping.unanimous", "All agree after a round", "check"),
        Input("stopping.stable_candidates", "No answer changed in a round", "check"),
    ),
    is_open=True,
)
_LIMITS = Group(
    "Retries and limits",
    (
        Input("retries.transport", "Retries after lost connections, 429 and 5xx", "whole"),
        Input("retries.timeout", "Retries after a timeout", "whole"),
        Input("retries.invalid", "Retries after an unreadable reply", "whole"),
        Input("limits.call_timeout_seconds", "A call at most, seconds", "whole"),
        Input("limits.round_timeout_seconds", "A round at most, seconds", "whole"),
        Input(
            "limits.round_reservation",
            "Budget of a round",
            "choice",
            choices=_options(Limits, "round_reservation"),
        ),
    ),
)
GROUPS = (_FIRST, _TOPOLOGY, _SELECTION, _DECISION, _STOPS, _PROMPTS, _OUTPUT, _LIMITS)
AGENT_INPUTS = (
    Input("id", "Id"),
    Input("model", "Model slot"),
    Input("role", "Role"),
    Input("decoding.temperature", "Temperature", "real"),
    Input("decoding.max_output_tokens", "Tokens out, at most", "whole"),
    Input("votes", "Votes", "check"),
    Input("persona", "Persona", "area"),
)
COUNT = "agents.count"


def steps_of(path: str) -> tuple[Step, ...]:
    """Return ``agents[0].id`` as its steps."""
    return tuple(int(index) if index else name for name, index in _STEP.findall(path))


def value_at(document: Any, steps: tuple[Step, ...]) -> Any:
    """Return what stands there, or None."""
    for step in steps:
        if isinstance(document, dict) and isinstance(step, str):
            document = document.get(step)
        elif isinstance(document, list) and isinstance(step, int) and step < len(document):
            document = document[step]
        else:
            return None
    return document


def default_at(path: str) -> Any:
    """Return what holds where the YAML is silent."""
    steps = steps_of(path)
    if steps[0] == "agents":
        return value_at(AGENT_DEFAULTS, steps[2:])
    return value_at(DEFAULTS, steps)


def with_value(document: Any, steps: tuple[Step, ...], value: Any) -> Any:
    """Return a copy of the document with one value changed; None takes the key away."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if isinstance(step, int):
        items = list(document) if isinstance(document, list) else []
        if step < len(items):
            items[step] = with_value(items[step], rest, value)
        return items
    made = dict(document) if isinstance(document, dict) else {}
    inner = with_value(made.get(step), rest, value)
    if inner is None or (inner == {} and step not in made):
        made.pop(step, None)
    else:
        made[step] = inner
    return made


def shown(document: Document, one: Input) -> str:
    """Return the text of an input: the YAML's value, or the default that holds."""
    value = value_at(document, steps_of(one.path))
    if value is None:
        value = default_at(one.path)
    return _text(one.kind, value)


def _text(kind: Kind, value: Any) -> str:
    if value is None:
        return ""
    if kind == "check":
        return "on" if value is True else ""
    if kind in ("words", "groups", "edges") and isinstance(value, list):
        return (", " if kind == "words" else "\n").join(_item(kind, item) for item in value)
    return str(value)


def _item(kind: Kind, item: Any) -> str:
    if kind == "groups" and isinstance(item, list):
        return ", ".join(map(str, item))
    if kind == "edges" and isinstance(item, dict):
        return f"{item.get('source', '')} > {item.get('reader', '')}"
    return str(item)


def read(one: Input, text: str) -> Any:
    """Return the value that a text stands for; None where the default is to hold."""
    if one.kind == "check":
        return text == "on"
    if one.kind == "area":
        return text.replace("\r\n", "\n")
    text = text.strip()
    if one.kind == "whole":
        return int(text) if _WHOLE.fullmatch(text) else text or None
    if one.kind == "real":
        return float(text) if _REAL.fullmatch(text) else text or None
    if one.kind in ("words", "groups", "edges"):
        return list(_listed(one.kind, text))
    return text or (None if default_at(one.path) is None else "")


def _listed(kind: Kind, text: str) -> Iterator[Any]:
    if kind == "words":
        yield from (word for word in re.split(r"[\s,]+", text) if word)
        return
    for line in filter(None, map(str.strip, text.splitlines())):
        if kind == "groups":
            yield [word for word in re.split(r"[\s,]+", line) if word]
        else:
            source, arrow, reader = line.partition(">")
            yield {"source": source.strip(), "reader": reader.strip()} if arrow else line
