"""
The decision form: what a person chose, typed and ticked, to a draft and to a label, and back.

Forms name choices, options and claims by their numbers as displayed; ids of candidates are turned
back here, on the server. Faults are said in the words of the page.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import isclose, isfinite
from typing import Any

from django.http import QueryDict

from audits.label_cards import Card, letter_of
from audits.labelling.design import LabelSchema
from audits.labelling.values import BELIEF_TOLERANCE, BELIEF_TOTAL
from audits.queues.submitting import MAX_COMMENT_CHARS, Said

MOST_SEQUENCE = 2**62


def new_key() -> str:
    return secrets.token_urlsafe(18)


@dataclass(frozen=True, slots=True)
class Typed:
    """
    The state of the form, by numbers as displayed.

    ``choice`` is a choice's number; ``claims`` a choice's number by the claim's; ``beliefs`` texts
    by the option's number, as typed; ``reasons`` values of the schema; ``confidence`` a text, in
    per cent; ``note`` what is being written to the lead.
    """

    choice: int | None = None
    claims: Mapping[int, int] = field(default_factory=dict)
    beliefs: Mapping[int, str] = field(default_factory=dict)
    reasons: frozenset[str] = frozenset()
    confidence: str = ""
    comment: str = ""
    note: str = ""
    active_milliseconds: int | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, and the id of the field to go to."""

    field: str
    text: str


def typed_in(post: QueryDict) -> Typed:
    """Return what was sent. What is no number counts as not given."""
    return Typed(
        choice=_number(post.get("choice")),
        claims=_numbered(post, "claim-"),
        beliefs={
            number: value[:40]
            for number, value in _fields(post, "belief-").items()
            if value.strip() and "\x00" not in value
        },
        reasons=frozenset(post.getlist("reason")),
        confidence=_text(post, "confidence").strip()[:40],
        comment=_text(post, "comment"),
        note=_text(post, "note"),
        active_milliseconds=_number(post.get("active_milliseconds")),
    )


def _text(post: QueryDict, name: str) -> str:
    """PostgreSQL holds no NUL; browsers send line ends of their own."""
    return str(post.get(name, "")).replace("\r\n", "\n").replace("\x00", "\ufffd")


def _fields(post: QueryDict, prefix: str) -> dict[int, str]:
    found = {}
    for name in post:
        number = _number(name.removeprefix(prefix)) if name.startswith(prefix) else None
        if number is not None:
            found[number] = str(post[name])
    return found


def _numbered(post: QueryDict, prefix: str) -> dict[int, int]:
    numbers = {key: _number(value) for key, value in _fields(post, prefix).items()}
    return {key: value for key, value in numbers.items() if value is not None}


def _number(text: Any) -> int | None:
    is_whole = isinstance(text, str) and text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if is_whole else None


def sequence_in(post: QueryDict, otherwise: int) -> int:
    """Return the number that the page gave this save; pages without a script give none."""
    found = _number(post.get("sequence"))
    return min(found, MOST_SEQUENCE) if found else otherwise


def draft_body(typed: Typed, card: Card) -> dict[str, Any]:
    """Return the draft as it is stored: the label by ids, so that it survives another order."""
    return {
        "value": {
            "label": _label(typed, card),
            "reasons": sorted(reason for reason in typed.reasons if "\x00" not in reason),
        },
        "comment": typed.comment[:MAX_COMMENT_CHARS],
        "note": typed.note[:MAX_COMMENT_CHARS],
        "confidence_typed": typed.confidence,
        "active_milliseconds": typed.active_milliseconds,
    }


def _label(typed: Typed, card: Card) -> Any:
    if card.asks_beliefs:
        return {
            one: typed.beliefs[n]
            for n, one in enumerate(card.candidate_ids, 1)
            if n in typed.beliefs
        }
    if card.claim_ids:
        given = {n: _stored(card, number) for n, number in typed.claims.items()}
        return {
            one: given[n] for n, one in enumerate(card.claim_ids, 1) if given.get(n) is not None
        }
    return _stored(card, typed.choice)


def _stored(card: Card, number: int | None) -> Any:
    return next((choice.stored for choice in card.choices if choice.number == number), None)


def typed_before(body: Mapping[str, Any], card: Card) -> Typed:
    """Return the form's state out of a draft, or out of a label's fields."""
    value = body.get("value") or {}
    label = value.get("label")
    by_id = label if isinstance(label, Mapping) else {}
    confidence = body.get("confidence")
    milliseconds = body.get("active_milliseconds")
    return Typed(
        choice=None if isinstance(label, Mapping) else _number_of(card, label),
        claims={
            n: number
            for n, one in enumerate(card.claim_ids, 1)
            if (number := _number_of(card, by_id.get(one))) is not None
        },
        beliefs={
            n: _plain(by_id[one]) for n, one in enumerate(card.candidate_ids, 1) if one in by_id
        },
        reasons=frozenset(value.get("reasons") or ()),
        confidence=body.get("confidence_typed")
        or ("" if confidence is None else _plain(round(confidence * 100, 6))),
        comment=body.get("comment") or "",
        note=body.get("note") or "",
        active_milliseconds=milliseconds if isinstance(milliseconds, int) else None,
    )


def is_empty(typed: Typed) -> bool:
    """Whether nothing was chosen, typed or ticked: no draft is made of it."""
    return replace(typed, active_milliseconds=None) == Typed()


def cleared(typed: Typed) -> Typed:
    """Return the form with the decision taken back; what was written stays."""
    return replace(typed, choice=None, claims={}, beliefs={}, reasons=frozenset())


def _number_of(card: Card, stored: Any) -> int | None:
    if stored is None:
        return None
    return next((choice.number for choice in card.choices if choice.stored == stored), None)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def said_of(
    typed: Typed, card: Card, schema: LabelSchema, request_key: str
) -> tuple[Said | None, list[Fault]]:
    """Return what is handed in, or what is wrong with it."""
    faults: list[Fault] = []
    label = _belief(typed, card, faults) if card.asks_beliefs else _label(typed, card)
    if card.claim_ids and not card.asks_beliefs:
        faults += [
            Fault(f"claim-{n}-1", f"Claim {n}: choose a verdict.")
            for n, one in enumerate(card.claim_ids, 1)
            if one not in label
        ]
    elif label is None:
        faults.append(Fault("choice-1", "Choose an answer first."))
    faults += _reason_faults(typed, schema, label)
    confidence = _confidence(typed, schema, faults)
    if schema.comment == "required" and not typed.comment.strip():
        faults.append(Fault("comment", "This queue asks for a comment with each label."))
    if len(typed.comment) > MAX_COMMENT_CHARS:
        faults.append(Fault("comment", f"At most {MAX_COMMENT_CHARS:,} characters."))
    if faults:
        return None, faults
    said = Said(
        request_key=request_key,
        value={"label": label, "reasons": _reasons(typed, schema)},
        comment="" if schema.comment == "none" else typed.comment,
        confidence=confidence,
        active_milliseconds=typed.active_milliseconds,
    )
    return said, []


def _reasons(typed: Typed, schema: LabelSchema) -> list[str]:
    options = schema.reasons.options if schema.reasons is not None else ()
    return [option.value for option in options if option.value in typed.reasons]


def _reason_faults(typed: Typed, schema: LabelSchema, label: Any) -> list[Fault]:
    if schema.reasons is None or typed.reasons or not isinstance(label, str):
        return []
    if label not in schema.reasons.needed_for:
        return []
    return [Fault("reason-1", "This answer has to come with a reason.")]


def _confidence(typed: Typed, schema: LabelSchema, faults: list[Fault]) -> float | None:
    if not schema.confidence or not typed.confidence:
        return None
    number = _share(typed.confidence)
    if number is None:
        faults.append(Fault("confidence", "Confidence is a number from 0 to 100."))
        return None
    return number / 100


def _share(text: str) -> float | None:
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        return None
    return number if isfinite(number) and 0 <= number <= BELIEF_TOTAL else None


def _belief(typed: Typed, card: Card, faults: list[Fault]) -> dict[str, float]:
    belief: dict[str, float] = {}
    for n, one in enumerate(card.candidate_ids, 1):
        share = _share(typed.beliefs.get(n, ""))
        if share is None:
            said = f"Option {letter_of(n - 1)}: give a number from 0 to 100."
            faults.append(Fault(f"belief-{n}", said))
        else:
            belief[one] = share
    total = sum(belief.values())
    if not faults and not isclose(total, BELIEF_TOTAL, abs_tol=BELIEF_TOLERANCE):
        faults.append(Fault("belief-1", f"The numbers have to sum to 100. They sum to {total:g}."))
    return belief
