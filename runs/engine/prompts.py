"""
Prompts (S6, S8, S20): a prompt and its read set, from the snapshot and nothing else.

Rendering is a function of protocol, question, evidence, snapshot, reader and seed: given the
stored states, every stored prompt comes out again byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest

from runs.engine.choices import letters
from runs.engine.delimiting import Fence, fence
from runs.engine.draws import Draws
from runs.engine.selection import Selected, Shown, own_state_shown, select
from runs.engine.snapshots import snapshot_at
from runs.engine.templates import DEFAULT_PEER, fill, slots_in, texts_for
from runs.engine.types import (
    Dropped,
    Evidence,
    PromptMessage,
    Question,
    ReadEntry,
    ReadSet,
    Snapshot,
    State,
)
from runs.protocols.spec import Agent, Protocol

#: What stands in place of peers' messages where there are none, and of a missing own answer.
NO_MESSAGES = "(no messages)"
NO_OWN_STATE = "(none)"
#: What a judge's candidates are called, with a letter.
CANDIDATE = "Answer"


@dataclass(frozen=True, slots=True)
class Asked:
    """What every prompt of a run on one question is made from, beside the states."""

    protocol: Protocol
    question: Question
    evidence: tuple[Evidence, ...]
    draws: Draws


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt and what the host put in it."""

    prompt: tuple[PromptMessage, ...]
    read_set: ReadSet


@dataclass(frozen=True, slots=True)
class _Turn:
    """One user message, the states that stand in it in order, and those left out."""

    content: str
    shown: tuple[Shown, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def render_initial(asked: Asked, reader: str) -> Rendered:
    """Return the prompt of t = 0. It is handed no snapshot, so it can show no peer (S8)."""
    agent = asked.protocol.agent(reader)
    user = PromptMessage("user", _initial_turn(asked, agent).content)
    return Rendered(prompt=(*_system(asked, agent), user), read_set=ReadSet())


def render_revision(asked: Asked, reader: str, snapshot: Snapshot) -> Rendered:
    """
    Return the prompt of ``reader`` in the round that ``snapshot`` opens, and its read set.

    With ``own_history: all`` the prompt is the conversation so far: the turns in which the
    reader's states were admitted, rendered again from their own snapshots, each answered by the
    state's text. A turn whose reply was not admitted is no part of it.
    """
    agent = asked.protocol.agent(reader)
    turn = _revision_turn(asked, agent, snapshot)
    messages = list(_system(asked, agent))
    standing: list[tuple[Shown, bool]] = []
    if asked.protocol.selection.own_history == "all":
        for past, reply in _conversation(asked, agent, snapshot):
            messages.append(PromptMessage("user", past.content))
            messages.append(PromptMessage("assistant", reply.text))
            standing += [(item, True) for item in (*past.shown, reply)]
    messages.append(PromptMessage("user", turn.content))
    standing += [(item, False) for item in turn.shown]
    entries = tuple(
        _entry(item, position, earlier) for position, (item, earlier) in enumerate(standing)
    )
    return Rendered(prompt=tuple(messages), read_set=ReadSet(entries=entries, dropped=turn.dropped))


def _conversation(asked: Asked, agent: Agent, snapshot: Snapshot) -> Iterator[tuple[_Turn, Shown]]:
    selection = asked.protocol.selection
    for state in snapshot.history_of(agent.id):
        reply = own_state_shown(selection=selection, state=state, slots=frozenset({"text"}))
        if state.round == 0:
            yield _initial_turn(asked, agent), reply
        else:
            yield _revision_turn(asked, agent, snapshot_at(snapshot, state.round)), reply


def _system(asked: Asked, agent: Agent) -> tuple[PromptMessage, ...]:
    template = texts_for(asked.protocol.prompts, agent).system
    marks = _marks(asked, agent, (), 0)
    content = fill(template, _common_values(asked, agent, marks))
    return (PromptMessage("system", content),) if content.strip() else ()


def _initial_turn(asked: Asked, agent: Agent) -> _Turn:
    template = texts_for(asked.protocol.prompts, agent).initial
    marks = _marks(asked, agent, (), 0)
    return _Turn(content=fill(template, _common_values(asked, agent, marks)))


def _revision_turn(asked: Asked, agent: Agent, snapshot: Snapshot) -> _Turn:
    protocol = asked.protocol
    template = texts_for(protocol.prompts, agent).revision
    slots = slots_in(template)
    peer_template = protocol.prompts.peer or DEFAULT_PEER
    peers = select(
        protocol=protocol,
        snapshot=snapshot,
        reader=agent.id,
        draws=asked.draws,
        slots=_message_slots(peer_template) if "peers" in slots else frozenset(),
    )
    own = _own(protocol, snapshot.state_of(agent.id), slots)
    texts = [text for item in (*peers.shown, *own) for text in (item.text, item.answer)]
    marks = _marks(asked, agent, texts, snapshot.t)
    values = _common_values(asked, agent, marks) | _own_values(own, marks)
    values["peers"] = _peers_value(protocol, peer_template, peers, marks)
    return _Turn(
        content=fill(template, values),
        shown=_in_order_of_appearance(slots, own, peers.shown),
        dropped=peers.dropped,
    )


def _message_slots(peer_template: str) -> frozenset[str]:
    return frozenset(slots_in(peer_template)) & {"text", "answer"}


def _own(protocol: Protocol, state: State | None, slots: tuple[str, ...]) -> tuple[Shown, ...]:
    """Return the reader's own last state as the turn shows it: once, or not at all."""
    wanted = frozenset(slot.removeprefix("own_") for slot in slots if slot.startswith("own_"))
    if state is None or not wanted or protocol.selection.own_history == "none":
        return ()
    return (own_state_shown(selection=protocol.selection, state=state, slots=wanted),)


def _own_values(own: tuple[Shown, ...], marks: Fence) -> dict[str, str]:
    if not own:
        return {"own_answer": NO_OWN_STATE, "own_text": NO_OWN_STATE}
    return {
        "own_answer": marks.inline("own_answer", own[0].answer),
        "own_text": marks.block("own_text", own[0].text),
    }


def _peers_value(protocol: Protocol, peer_template: str, peers: Selected, marks: Fence) -> str:
    if not peers.shown:
        return NO_MESSAGES
    return protocol.prompts.separator.join(
        fill(
            peer_template,
            {
                "label": item.label,
                "text": marks.block("message", item.text),
                "answer": marks.inline("answer", item.answer),
                "count": "1",
            },
        )
        for item in peers.shown
    )


def _in_order_of_appearance(
    slots: tuple[str, ...], own: tuple[Shown, ...], peers: tuple[Shown, ...]
) -> tuple[Shown, ...]:
    own_slot = next((slot for slot in slots if slot.startswith("own_")), None)
    if own and "peers" in slots and slots.index("peers") < slots.index(own_slot or "peers"):
        return (*peers, *own)
    return (*own, *peers)


def _common_values(asked: Asked, agent: Agent, marks: Fence) -> dict[str, str]:
    intensity = asked.protocol.selection.agreement_intensity_percent
    return {
        "question": asked.question.text,
        "choices": choices_text(asked.question),
        "evidence": evidence_text(asked, agent, marks),
        "candidates": _candidates_text(asked, agent, marks),
        "persona": agent.persona,
        "side": agent.side or "",
        "answer_format": asked.protocol.answer_format(asked.question.answer_type),
        "agreement_intensity": "" if intensity is None else str(intensity),
    }


def choices_text(question: Question) -> str:
    """Return the options of a choice question, a line each, under the letters that g reads."""
    named = zip_longest(question.choices, letters(question.choices))
    lines = (f"({letter}) {text}" if letter else f"- {text}" for text, letter in named)
    return "\n".join(lines) if question.choices else ""


def evidence_text(asked: Asked, agent: Agent, marks: Fence) -> str:
    """Return the evidence that this agent reads, each piece between marks."""
    return "\n".join(
        marks.block("evidence", evidence_body(item)) for item in _evidence_for(asked, agent)
    )


def _candidates_text(asked: Asked, agent: Agent, marks: Fence) -> str:
    """
    Return the evidence as candidates for a judge (S28): letters in the agent's own order.

    No id and no source stands there, so that nothing but the text and its place is seen.
    """
    texts = {item.id: item.text for item in asked.evidence}
    order = agent.evidence or tuple(texts)
    shown = [texts[name] for name in order if name in texts]
    return "\n\n".join(
        f"{CANDIDATE} {letter}:\n{marks.block('candidate', text)}"
        for letter, text in zip(letters(tuple(shown)), shown, strict=False)
    )


def _evidence_for(asked: Asked, agent: Agent) -> tuple[Evidence, ...]:
    if not agent.evidence:
        return asked.evidence
    return tuple(item for item in asked.evidence if item.id in agent.evidence)


def evidence_body(item: Evidence) -> str:
    """Return a piece of evidence as it stands between its marks."""
    # Ids and sources come from the same files as the texts and are no more to be trusted.
    head = f"[{item.id}] {item.source}".rstrip()
    return f"{head}\n{item.text}"


def _marks(asked: Asked, agent: Agent, texts: Iterable[str], t: int) -> Fence:
    # Without reader and seed in the key, prompts that say the same are the same bytes.
    evidence = (evidence_body(item) for item in _evidence_for(asked, agent))
    return fence((*texts, *evidence), seed=(asked.draws.question_hash, t))


def _entry(item: Shown, position: int, earlier: bool) -> ReadEntry:
    return ReadEntry(
        agent_id=item.state.agent_id,
        state_version=item.state.state_version,
        content_hash=item.state.content_hash,
        position=position,
        own=item.own,
        from_chars=item.from_chars,
        to_chars=item.to_chars,
        earlier=earlier,
    )
