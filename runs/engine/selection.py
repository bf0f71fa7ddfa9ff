"""
What of the states that a reader may see is shown to it, in which order, how long (S19).

Everything comes from the frozen snapshot. What is left out is recorded with its reason (S6).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from runs.engine.draws import Draws
from runs.engine.errors import UnsupportedProtocolError
from runs.engine.topology import neighbours
from runs.engine.types import AnswerKind, Dropped, Snapshot, State
from runs.protocols.spec import Protocol, Selection

#: What stands for an answer that has no value, wherever an answer is shown.
NO_VALUE = {
    AnswerKind.ABSTAIN: "(abstains)",
    AnswerKind.REFUSAL: "(refuses to answer)",
    AnswerKind.INVALID: "(no answer)",
}

TOTAL_CAP = "total_cap"
NO_SLOT = "no_slot"


@dataclass(frozen=True, slots=True)
class Shown:
    """
    One state as a prompt shows it. Lengths are in characters.

    ``text`` and ``answer`` are empty where the prompt has no slot for them. ``from_chars`` is
    what would have been shown without a cap.
    """

    state: State
    own: bool
    label: str
    text: str
    answer: str
    from_chars: int

    @property
    def to_chars(self) -> int:
        return len(self.text) + len(self.answer)


@dataclass(frozen=True, slots=True)
class Selected:
    """What one reader is shown of its peers, in order, and what was left out."""

    shown: tuple[Shown, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def select(
    *,
    protocol: Protocol,
    snapshot: Snapshot,
    reader: str,
    draws: Draws,
    slots: frozenset[str],
) -> Selected:
    """
    Return what ``reader`` is shown of its peers in the round that ``snapshot`` opens.

    ``slots`` are those of "text" and "answer" that the peer template has; with neither, every
    visible state is dropped as "no_slot". Messages are taken in order while they fit in
    ``total_cap_chars``; the first that does not fit and all behind it are dropped as
    "total_cap", so that a short message is never preferred to a long one before it.
    """
    ordered = _ordered(protocol, snapshot, reader, draws)
    if not slots:
        return Selected(dropped=tuple(_drop(state, NO_SLOT) for state in ordered))
    shown = _labelled(protocol, ordered, reader, slots)
    kept = _fitting(shown, protocol.selection.total_cap_chars)
    dropped = tuple(_drop(item.state, TOTAL_CAP) for item in shown[len(kept) :])
    return Selected(shown=kept, dropped=dropped)


def own_state_shown(*, selection: Selection, state: State, slots: frozenset[str]) -> Shown:
    """Return the reader's own state, in full whatever peers show, under one message's cap."""
    return _cut(selection, state, state.text, own=True, label="", slots=slots)


def shown_answer(state: State) -> str:
    """Return a state's answer as given, or words that say why it has no value."""
    return NO_VALUE.get(state.answer.kind, state.answer.raw)


def shown_text(selection: Selection, state: State) -> str:
    """Return a state's text before any cap. Raises UnsupportedProtocolError by its mode."""
    if selection.show == "full_answer":
        return state.text
    if selection.show == "final_answer":
        return shown_answer(state)
    if selection.show == "final_and_justification":
        return f"Answer: {shown_answer(state)}\nJustification: {state.text}"
    raise UnsupportedProtocolError([f"selection.show: {selection.show}"])


def _ordered(
    protocol: Protocol, snapshot: Snapshot, reader: str, draws: Draws
) -> tuple[State, ...]:
    """Return the visible states in the order in which they are shown, older rounds first."""
    selection = protocol.selection
    sources = neighbours(protocol.topology, protocol.agent_ids, draws)[reader]
    visible = set(sources) | ({reader} if selection.include_self else set())
    order = _agent_order(protocol, visible, reader, snapshot.t, draws)
    if selection.rounds == "all":
        history = [state for agent_id in order for state in snapshot.history_of(agent_id)]
        return tuple(sorted(history, key=lambda state: state.round))
    last = (snapshot.state_of(agent_id) for agent_id in order)
    return tuple(state for state in last if state is not None)


def _agent_order(
    protocol: Protocol, visible: set[str], reader: str, t: int, draws: Draws
) -> tuple[str, ...]:
    selection = protocol.selection
    if selection.order == "fixed":
        return tuple(agent_id for agent_id in selection.fixed_order if agent_id in visible)
    by_id = sorted(visible)
    if selection.order == "seeded_shuffle":
        return draws.shuffled(by_id, agent=reader, t=t, purpose="message_order")
    return tuple(by_id)


def _labelled(
    protocol: Protocol, ordered: Iterable[State], reader: str, slots: frozenset[str]
) -> tuple[Shown, ...]:
    numbers: dict[str, int] = {}
    shown = []
    for state in ordered:
        number = numbers.setdefault(state.agent_id, len(numbers) + 1)
        shown.append(
            _cut(
                protocol.selection,
                state,
                shown_text(protocol.selection, state),
                own=state.agent_id == reader,
                label=_label(protocol, state.agent_id, number),
                slots=slots,
            )
        )
    return tuple(shown)


def _label(protocol: Protocol, agent_id: str, number: int) -> str:
    """Return a name for an agent that gives away no more than the protocol allows."""
    if protocol.selection.identities == "ids":
        return agent_id
    if protocol.selection.identities == "roles":
        return protocol.agent(agent_id).role
    return f"Agent {number}"


def _cut(
    selection: Selection, state: State, text: str, *, own: bool, label: str, slots: frozenset[str]
) -> Shown:
    """Cut a message to its cap: the answer is kept first, the text loses its end."""
    # A message that alone is over the total would drop everything behind it unseen.
    cap = min(selection.message_cap_chars, selection.total_cap_chars)
    whole_answer = shown_answer(state) if "answer" in slots else ""
    whole_text = text if "text" in slots else ""
    answer = whole_answer[:cap]
    return Shown(
        state=state,
        own=own,
        label=label,
        text=whole_text[: cap - len(answer)],
        answer=answer,
        from_chars=len(whole_text) + len(whole_answer),
    )


def _fitting(shown: tuple[Shown, ...], total_cap_chars: int) -> tuple[Shown, ...]:
    used = 0
    for count, item in enumerate(shown):
        used += item.to_chars
        if used > total_cap_chars:
            return shown[:count]
    return shown


def _drop(state: State, reason: str) -> Dropped:
    return Dropped(
        agent_id=state.agent_id,
        state_version=state.state_version,
        content_hash=state.content_hash,
        reason=reason,
    )
