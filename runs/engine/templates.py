"""
Slots in prompt texts: ``{{name}}``, filled in one pass, so that no value is ever read as a text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from runs.engine.errors import UnsupportedProtocolError
from runs.protocols.checks import SLOT
from runs.protocols.spec import Agent, Prompts, Protocol

#: Every slot that a revision prompt may have here; the schema knows more.
FILLED_SLOTS = frozenset(
    (
        "question",
        "choices",
        "evidence",
        "candidates",
        "persona",
        "side",
        "answer_format",
        "agreement_intensity",
        "own_answer",
        "own_text",
        "peers",
    )
)

DEFAULT_PEER = "{{label}}:\n{{text}}"


class RoleTexts(NamedTuple):
    """The texts that one agent's prompts are made of."""

    system: str
    initial: str
    revision: str


def texts_for(prompts: Prompts, agent: Agent) -> RoleTexts:
    """Return the common texts with those of the agent's role in their place."""
    role = prompts.by_role.get(agent.role)
    if role is None:
        return RoleTexts(prompts.system, prompts.initial, prompts.revision)
    return RoleTexts(
        system=prompts.system if role.system is None else role.system,
        initial=prompts.initial if role.initial is None else role.initial,
        revision=prompts.revision if role.revision is None else role.revision,
    )


def slots_in(text: str) -> tuple[str, ...]:
    """Return the names of a text's slots in order of first appearance."""
    return tuple(dict.fromkeys(SLOT.findall(text)))


def fill(text: str, values: Mapping[str, str]) -> str:
    """
    Return ``text`` with every slot replaced by its value, which is not read again.

    Raises UnsupportedProtocolError for a slot without a value.
    """
    missing = [name for name in slots_in(text) if name not in values]
    if missing:
        raise UnsupportedProtocolError([f"slot {{{{{name}}}}}" for name in missing])
    return SLOT.sub(lambda match: values[match[1]], text)


def unfilled_slots(protocol: Protocol) -> list[str]:
    """Return the slots of this protocol's prompts that this engine cannot fill."""
    found: dict[str, None] = {}
    for agent in protocol.agents:
        for text in texts_for(protocol.prompts, agent):
            found.update(dict.fromkeys(n for n in slots_in(text) if n not in FILLED_SLOTS))
    return [f"prompts: the slot {{{{{name}}}}} is not filled yet" for name in found]
