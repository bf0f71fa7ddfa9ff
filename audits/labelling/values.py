"""
What a label may be, given what was asked: the one gate for pages, API and files.

A value is ``{"label": …, "reasons": […]}``; ``label`` is an option's value, a number, or numbers
by option (formats.md). Nothing is guessed: what does not fit is refused with its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isclose, isfinite
from typing import Any

from audits.labelling.design import Ask, LabelSchema

TIE, ABSTAIN = "tie", "abstain"
BELIEF_TOTAL = 100.0
BELIEF_TOLERANCE = 0.01


class LabelFaultError(ValueError):
    """One line: where in the label, and what is wrong with it."""


def checked_value(
    schema: LabelSchema,
    value: object,
    *,
    candidates: Sequence[str] = (),
    claims: Sequence[str] = (),
    comment: str = "",
) -> dict[str, Any]:
    """
    Return the label as it is stored. Raises LabelFaultError.

    ``candidates`` are the ids of the item's candidates (pairwise, belief, turn), ``claims`` those
    of its claims. ``comment`` counts where the schema requires one.
    """
    if not isinstance(value, Mapping):
        raise LabelFaultError("label: has to be an object")
    unknown = sorted(set(map(str, value)) - {"label", "reasons"})
    if unknown:
        raise LabelFaultError(f"{unknown[0]}: no such field")
    label = _checked_label(schema.ask, value.get("label"), candidates, claims)
    reasons = _checked_reasons(schema, value.get("reasons", []), label)
    if schema.comment == "required" and not comment.strip():
        raise LabelFaultError("comment: this queue asks for one with each label")
    return {"label": label, "reasons": reasons}


def _checked_label(
    ask: Ask, label: object, candidates: Sequence[str], claims: Sequence[str]
) -> object:
    if label is None:
        raise LabelFaultError("label: nothing was chosen")
    if ask.kind == "pairwise":
        extra = [word for word, on in ((TIE, ask.ties), (ABSTAIN, ask.abstain)) if on]
        return _one_of(label, [*candidates, *extra], "label")
    if ask.kind == "scale":
        return _on_scale(ask, label)
    if ask.kind in {"belief", "turn"}:
        return _belief(label, candidates)
    values = [option.value for option in ask.options]
    if ask.kind == "claim":
        return _by_claim(label, claims, values)
    return _one_of(label, values, "label")


def _one_of(label: object, allowed: Sequence[str], where: str) -> str:
    if not isinstance(label, str) or label not in allowed:
        raise LabelFaultError(f"{where}: has to be one of {', '.join(allowed)}")
    return label


def _on_scale(ask: Ask, label: object) -> int:
    is_whole = isinstance(label, int) and not isinstance(label, bool)
    if not is_whole or not ask.scale_min <= label <= ask.scale_max:  # type: ignore[operator]
        raise LabelFaultError(
            f"label: has to be a whole number from {ask.scale_min} to {ask.scale_max}"
        )
    return int(label)  # type: ignore[call-overload, no-any-return]


def _belief(label: object, options: Sequence[str]) -> dict[str, float]:
    if not isinstance(label, Mapping) or set(label) != set(options):
        raise LabelFaultError(f"label: has to give a number for each of {', '.join(options)}")
    for option in options:
        share = label[option]
        if isinstance(share, bool) or not isinstance(share, int | float) or not isfinite(share):
            raise LabelFaultError(f"label.{option}: has to be a number")
        if not 0 <= share <= BELIEF_TOTAL:
            raise LabelFaultError(f"label.{option}: has to be from 0 to 100")
    total = float(sum(label.values()))
    if not isclose(total, BELIEF_TOTAL, abs_tol=BELIEF_TOLERANCE):
        raise LabelFaultError(f"label: the numbers have to sum to 100, they sum to {total:g}")
    return {option: float(label[option]) for option in options}


def _by_claim(label: object, claims: Sequence[str], values: Sequence[str]) -> dict[str, str]:
    if not isinstance(label, Mapping) or set(label) != set(claims):
        raise LabelFaultError(f"label: has to give a verdict for each of {', '.join(claims)}")
    return {claim: _one_of(label[claim], values, f"label.{claim}") for claim in claims}


def _checked_reasons(schema: LabelSchema, given: object, label: object) -> list[str]:
    if schema.reasons is None:
        if given:
            raise LabelFaultError("reasons: this queue asks for none")
        return []
    allowed = [option.value for option in schema.reasons.options]
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise LabelFaultError("reasons: has to be a list")
    chosen = {_one_of(reason, allowed, "reasons") for reason in given}
    if not chosen and isinstance(label, str) and label in schema.reasons.needed_for:
        raise LabelFaultError(f"reasons: {label} has to come with one")
    return [reason for reason in allowed if reason in chosen]
