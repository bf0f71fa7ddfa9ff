"""
What a judge is shown (S6, S20, S28): candidates under neutral letters, in the order of one call.

Nothing tells who holds a candidate, how many do, or in which order they answered. Prompts and
read sets come from stored states alone and re-render byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from runs.engine.choices import letters
from runs.engine.delimiting import Fence, fence
from runs.engine.prompts import Asked, Rendered, choices_text, evidence_body, evidence_text
from runs.engine.selection import Shown, own_state_shown
from runs.engine.templates import fill, slots_in
from runs.engine.types import PromptMessage, ReadEntry, ReadSet, Snapshot, State
from runs.protocols.decisions import JudgeSettings
from runs.protocols.spec import Agent, AnswerFormats

#: What a candidate and a speaker are called, with a letter or a number.
CANDIDATE_NAME = "Candidate"
SPEAKER_NAME = "Speaker"
TIE_OPTION = "They are equally good"
ABSTAIN_OPTION = "I cannot decide"
SCORE_MIN, SCORE_MAX = 1, 10

_PARTS = frozenset(("text", "answer"))


def judge_agent(settings: JudgeSettings) -> Agent:
    """Return the judge as calls and attempts know who is called; it is no agent of the debate."""
    return Agent(id="judge", model=settings.model, role="judge", decoding=settings.decoding)


def options(count: int) -> tuple[str, ...]:
    """Return what a judge of ``count`` candidates may choose; the candidates come first."""
    named = (f"{CANDIDATE_NAME} {letter} is best" for letter in letters(("",) * count))
    return (*named, TIE_OPTION, ABSTAIN_OPTION)


def reply_format(settings: JudgeSettings, count: int) -> str:
    """Return what fills ``{{answer_format}}``: the options with their letters, or the scale."""
    if settings.mode == "pointwise":
        return f"Score it from {SCORE_MIN} (worst) to {SCORE_MAX} (best).\n{AnswerFormats().number}"
    listed = options(count)
    lines = [f"({letter}) {text}" for letter, text in zip(letters(listed), listed, strict=True)]
    return "\n".join([*lines, AnswerFormats().choice])


def candidate_head(letter: str, round_: int | None) -> str:
    """Return the line above a candidate's text; the round is told where several are shown."""
    return f"{CANDIDATE_NAME} {letter}{'' if round_ is None else f', round {round_}'}:\n"


def speaker_head(number: int, round_: int) -> str:
    return f"{SPEAKER_NAME} {number}, round {round_}:\n"


@dataclass(frozen=True, slots=True)
class _Piece:
    """One state as it stands in the prompt, below its line and between its marks."""

    head: str
    kind: str
    shown: Shown

    def text(self, marks: Fence) -> str:
        return self.head + marks.block(self.kind, _body(self.shown))


def render_judge(
    asked: Asked, settings: JudgeSettings, last: Snapshot, order: Sequence[str]
) -> Rendered:
    """Return the prompt that shows the candidates in ``order``, and what stands in it."""
    slots = slots_in(settings.prompt)
    pieces = {
        "candidates": _candidates(asked, settings, last, order) if "candidates" in slots else [],
        "transcript": _transcript(asked, settings, last, order) if "transcript" in slots else [],
    }
    standing = [piece for slot in slots for piece in pieces.get(slot, ())]
    bodies = [_body(piece.shown) for piece in standing]
    evidence = asked.evidence if settings.sees_evidence else ()
    enclosed = (*bodies, *(evidence_body(item) for item in evidence))
    marks = fence(enclosed, seed=(asked.draws.question_hash, last.t))
    values = {name: "\n\n".join(p.text(marks) for p in found) for name, found in pieces.items()}
    values |= {
        "question": asked.question.text,
        "choices": choices_text(asked.question),
        "evidence": evidence_text(asked, judge_agent(settings), marks) if evidence else "",
        "answer_format": reply_format(settings, len(order)),
    }
    prompt = (PromptMessage("user", fill(settings.prompt, values)),)
    entries = tuple(_entry(piece.shown, place) for place, piece in enumerate(standing))
    return Rendered(prompt=prompt, read_set=ReadSet(entries=entries))


def _candidates(
    asked: Asked, settings: JudgeSettings, last: Snapshot, order: Sequence[str]
) -> list[_Piece]:
    pieces = []
    for letter, value in zip(letters(("",) * len(order)), order, strict=True):
        states = _spoken_for(asked, settings, last, value)
        for state in states:
            head = candidate_head(letter, state.round if settings.sees_rounds == "all" else None)
            pieces.append(_Piece(head, "candidate", _shown(asked, state)))
    return pieces


def _spoken_for(
    asked: Asked, settings: JudgeSettings, last: Snapshot, value: str
) -> tuple[State, ...]:
    """
    Return the states that stand for a candidate: those of one agent who holds it.

    Of several holders the one whose states hash lowest is taken, so that neither ids nor the
    order of agents say whose text is read.
    """
    voters = frozenset(agent.id for agent in asked.protocol.agents if agent.votes)
    holders = [
        _seen(settings, last, state)
        for state in last.states
        if state.agent_id in voters and state.answer.is_vote and state.answer.value == value
    ]
    return min(holders, key=_content)


def _seen(settings: JudgeSettings, last: Snapshot, state: State) -> tuple[State, ...]:
    if settings.sees_rounds == "last":
        return (state,)
    history = last.history_of(state.agent_id)
    return history if settings.sees_rounds == "all" else history[:1]


def _content(states: Iterable[State]) -> tuple[str, ...]:
    return tuple(state.content_hash for state in states)


def _transcript(
    asked: Asked, settings: JudgeSettings, last: Snapshot, order: Sequence[str]
) -> list[_Piece]:
    """Return what was said round by round; speakers stand in the order of what they hold."""
    place = {value: i for i, value in enumerate(order)}

    def rank(state: State) -> tuple[int, tuple[str, ...]]:
        held = place.get(state.answer.value, len(place)) if state.answer.is_vote else len(place)
        return held, _content(last.history_of(state.agent_id))

    speakers = sorted(last.states, key=rank)
    said = [
        (state, number)
        for number, speaker in enumerate(speakers, start=1)
        for state in _seen(settings, last, speaker)
    ]
    said.sort(key=lambda item: (item[0].round, item[1]))
    return [
        _Piece(speaker_head(number, state.round), "message", _shown(asked, state))
        for state, number in said
    ]


def _shown(asked: Asked, state: State) -> Shown:
    # In full whatever peers show, under one message's cap: the answer is kept first.
    return own_state_shown(selection=asked.protocol.selection, state=state, slots=_PARTS)


def _body(shown: Shown) -> str:
    return f"{shown.text}\nAnswer: {shown.answer}"


def _entry(shown: Shown, position: int) -> ReadEntry:
    return ReadEntry(
        agent_id=shown.state.agent_id,
        state_version=shown.state.state_version,
        content_hash=shown.state.content_hash,
        position=position,
        from_chars=shown.from_chars,
        to_chars=shown.to_chars,
    )
