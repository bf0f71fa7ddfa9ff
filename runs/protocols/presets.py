"""Published protocols shipped as YAML, and protocols made from another by its size."""

from __future__ import annotations

import string
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import ValidationError

from runs.protocols.faults import plain_faults
from runs.protocols.spec import Protocol
from runs.protocols.yaml_io import load_protocol

_SUFFIX = ".yaml"


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of the shipped protocols, sorted."""
    names = (entry.name for entry in files(__package__).joinpath("presets").iterdir())
    return tuple(sorted(n.removesuffix(_SUFFIX) for n in names if n.endswith(_SUFFIX)))


@cache
def load_preset(name: str) -> Protocol:
    """Return a shipped protocol. Raises KeyError for a name that is none."""
    return load_protocol(preset_text(name), f"{name}{_SUFFIX}")


def preset_text(name: str) -> str:
    """Return a shipped protocol's YAML with its comments. Raises KeyError for no such name."""
    if name not in preset_names():
        raise KeyError(name)
    return files(__package__).joinpath("presets", f"{name}{_SUFFIX}").read_text("utf-8")


def with_agents(protocol: Protocol, n: int) -> Protocol:
    """
    Return ``protocol`` with ``n`` agents, named a, b, …, z, a2, b2, …

    The agents there are give their settings in turn, so a protocol of two kinds stays mixed.
    Raises ValueError where the protocol names agents one by one or can't have so many.
    """
    named = _named_agents(protocol)
    if named:
        raise ValueError(f"{named} names agents one by one; their number can't change")
    settings = protocol.agents
    agents = tuple(
        settings[i % len(settings)].model_copy(update={"id": _agent_id(i)}) for i in range(n)
    )
    return _rebuilt(protocol, agents=agents)


def with_rounds(protocol: Protocol, revision_rounds: int) -> Protocol:
    """Return ``protocol`` with that many rounds after t = 0. Raises ValueError if it can't."""
    return _rebuilt(protocol, revision_rounds=revision_rounds)


def _agent_id(index: int) -> str:
    turn, letter = divmod(index, len(string.ascii_lowercase))
    return string.ascii_lowercase[letter] + (str(turn + 1) if turn else "")


def _named_agents(protocol: Protocol) -> str:
    """Return the first field that refers to agents by id, or nothing."""
    fields = {
        "operator.permutation": isinstance(protocol.operator.permutation, tuple),
        "topology.hub": protocol.topology.hub is not None,
        "topology.edges": bool(protocol.topology.edges),
        "topology.groups": bool(protocol.topology.groups),
        "selection.fixed_order": bool(protocol.selection.fixed_order),
        "selection.against_majority": bool(protocol.selection.against_majority),
        "aggregation.track_record": bool(protocol.aggregation.track_record),
        "challenges.challengers": protocol.challenges is not None
        and bool(protocol.challenges.challengers),
    }
    return next((path for path, is_named in fields.items() if is_named), "")


def _rebuilt(protocol: Protocol, **changes: Any) -> Protocol:
    """Validate again, since a change of size can break what fitted before."""
    parts = {name: getattr(protocol, name) for name in type(protocol).model_fields}
    try:
        return Protocol(**{**parts, **changes})
    except ValidationError as exc:
        raise ValueError("; ".join(plain_faults(exc))) from exc
