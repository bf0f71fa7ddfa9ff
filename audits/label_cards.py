"""
An item as it is put before a person: texts under letters and numbers, nothing else.

Only what is named here leaves the server: ids of candidates may be names of models, names of
speakers may be roles, and a source may have put more into ``shown`` than a person may know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from audits.labelling.design import Ask, QueueDesign
from audits.labelling.values import ABSTAIN, TIE

#: A text beyond this is cut, with the way to all of it.
MOST_CHARACTERS = 20_000
MOST_RADIOS = 11
WITH_BELIEFS = frozenset({"belief", "turn"})


@dataclass(frozen=True, slots=True)
class Text:
    """A text with what it is called on the page; ``left`` counts characters that are not shown."""

    name: str
    text: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """One answer: its number is what the form sends; ``stored`` never leaves the server."""

    number: int
    title: str
    stored: Any
    help: str = ""

    @property
    def key(self) -> str:
        return str(self.number) if self.number <= 9 else ""


@dataclass(frozen=True, slots=True)
class Card:
    """What is shown of an item, and what can be said of it."""

    question: Text
    answer: Text | None
    reference: Text | None
    rubric: Text | None
    evidence: tuple[Text, ...]
    candidates: tuple[Text, ...]
    claims: tuple[Text, ...]
    turns: tuple[Text, ...]
    choices: tuple[Choice, ...]
    candidate_ids: tuple[str, ...]  # As displayed. Ids stay on the server.
    claim_ids: tuple[str, ...]
    turns_in_all: int
    asks_beliefs: bool

    @property
    def turns_left(self) -> int:
        return self.turns_in_all - len(self.turns)

    @property
    def is_pair(self) -> bool:
        return len(self.candidates) == 2 and not self.asks_beliefs


def card_of(
    shown: Mapping[str, Any],
    design: QueueDesign,
    order: Sequence[str],
    *,
    with_reference: bool,
    turns_read: int | None = None,
    whole: bool = False,
) -> Card:
    """
    Return the card. ``order`` are candidate ids, left to right; ``turns_read`` None: all turns.

    ``whole`` leaves long texts uncut.
    """
    most = None if whole else MOST_CHARACTERS
    ask = design.label.ask
    turns = _turns(shown.get("turns", ()), most)
    asks_beliefs = ask.kind in WITH_BELIEFS
    texts = {c["candidate_id"]: str(c["text"]) for c in shown.get("candidates", ())}
    ordered = [one for one in order if one in texts] or list(texts)
    return Card(
        question=_cut("Question", shown.get("question", ""), most),
        answer=_optional("Answer", shown.get("answer"), most),
        reference=_optional("Reference", shown.get("reference"), most) if with_reference else None,
        rubric=_optional("Rubric", shown.get("rubric"), most),
        evidence=tuple(
            _cut(f"Evidence {n}", _text_of(one), most)
            for n, one in enumerate(shown.get("evidence") or (), 1)
        ),
        candidates=tuple(
            _cut(f"Option {letter_of(n)}" if asks_beliefs else letter_of(n), texts[one], most)
            for n, one in enumerate(ordered)
        ),
        claims=tuple(
            _cut(f"Claim {n}", one["text"], most)
            for n, one in enumerate(shown.get("claims") or (), 1)
        ),
        turns=turns if turns_read is None else turns[: turns_read + 1],
        choices=choices_of(ask, ordered),
        candidate_ids=tuple(ordered),
        claim_ids=tuple(c["claim_id"] for c in shown.get("claims") or ()),
        turns_in_all=len(turns),
        asks_beliefs=asks_beliefs,
    )


def _cut(name: str, text: object, most: int | None) -> Text:
    whole = str(text)
    shown = whole if most is None else whole[:most]
    return Text(name, shown, len(whole) - len(shown))


def _optional(name: str, text: object, most: int | None) -> Text | None:
    return None if text in (None, "") else _cut(name, text, most)


def _text_of(value: object) -> str:
    return str(value.get("text", "")) if isinstance(value, Mapping) else str(value)


def letter_of(index: int) -> str:
    return ascii_uppercase[index] if index < len(ascii_uppercase) else f"No. {index + 1}"


def _turns(turns: Sequence[Mapping[str, Any]], most: int | None) -> tuple[Text, ...]:
    """Name speakers in the order in which they begin: their own names may tell their sides."""
    speakers: dict[str, int] = {}
    found = []
    for number, turn in enumerate(turns, 1):
        name = str(turn.get("speaker", ""))
        speaker = speakers.setdefault(name, len(speakers) + 1)
        said = f"Turn {number} · speaker {speaker}" if name else f"Turn {number}"
        found.append(_cut(said, turn.get("text", ""), most))
    return tuple(found)


def choices_of(ask: Ask, order: Sequence[str]) -> tuple[Choice, ...]:
    """Return what can be chosen, numbered as displayed; nothing for beliefs."""
    if ask.kind in WITH_BELIEFS:
        return ()
    if ask.kind == "pairwise":
        return _of_candidates(ask, order)
    if ask.kind == "scale":
        points = range(ask.scale_min, ask.scale_max + 1)
        return tuple(
            Choice(n, f"{point}", point, ask.anchors.get(str(point), ""))
            for n, point in enumerate(points, 1)
        )
    return tuple(
        Choice(n, option.title, option.value, option.help)
        for n, option in enumerate(ask.options, 1)
    )


def _of_candidates(ask: Ask, order: Sequence[str]) -> tuple[Choice, ...]:
    word = "better" if len(order) == 2 else "best"
    found = [Choice(n, f"{letter_of(n - 1)} is {word}", one) for n, one in enumerate(order, 1)]
    if ask.ties:
        found.append(Choice(len(found) + 1, "Equally good", TIE))
    if ask.abstain:
        found.append(Choice(len(found) + 1, "Cannot tell", ABSTAIN))
    return tuple(found)


def in_words(card: Card, label: Any) -> str:
    """Return a stored label as the person saw it: by letters and titles, never by ids."""
    if label is None:
        return "nothing chosen"
    if isinstance(label, Mapping) and card.asks_beliefs:
        return ", ".join(
            f"{letter_of(n)} {label.get(one, 0):g} %" for n, one in enumerate(card.candidate_ids)
        )
    if isinstance(label, Mapping):
        said = [
            f"claim {n}: {_title(card, label.get(one))}" for n, one in enumerate(card.claim_ids, 1)
        ]
        return "; ".join(said)
    return _title(card, label)


def _title(card: Card, stored: Any) -> str:
    for choice in card.choices:
        if choice.stored == stored:
            return choice.title
    return "nothing chosen"
