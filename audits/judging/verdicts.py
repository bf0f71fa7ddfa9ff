"""What a reply of a judge says: letters back to candidates, failures with their cause. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from audits.judging.design import JudgeDesign, Presentation
from audits.metrics.judgments import ABSTAIN, SUCCEEDED, TIE
from runs.engine.choices import letters
from runs.engine.types import AnswerKind, Status

#: The statuses of an agent in a round, as a judgment has them (formats.md).
_STATUS = {
    Status.SUCCEEDED: SUCCEEDED,
    Status.TIMEOUT: "TIMEOUT",
    Status.INVALID: "INVALID",
    Status.TRUNCATED: "INVALID",
}


@dataclass(frozen=True, slots=True)
class Said:
    """A judgment's verdict, scores and status. ``cause`` says why there is no verdict."""

    status: str
    verdict: str | None = None
    cause: str = ""
    scores: tuple[tuple[str, float], ...] = ()


def said(
    *,
    design: JudgeDesign,
    shown: Presentation,
    candidate_ids: tuple[str, ...],
    status: Status,
    reason: str,
    kind: AnswerKind | None = None,
    value: str = "",
) -> Said:
    """
    Return what one presentation came to.

    ``candidate_ids`` are the item's, in its own order; ``value`` is the admitted answer under g.
    A refusal is an abstention of the judge. Nothing that failed becomes a tie.
    """
    if status is not Status.SUCCEEDED or kind is None:
        told = _STATUS.get(status, "FAILED")
        return Said(told, cause=reason or status.value.lower())
    if kind in {AnswerKind.ABSTAIN, AnswerKind.REFUSAL}:
        return Said(SUCCEEDED, ABSTAIN, cause=kind.value)
    if kind is AnswerKind.INVALID:
        return Said("INVALID", cause=reason or "no answer was found")
    if design.mode == "pointwise":
        return _scored(design, candidate_ids[shown.order[0]], value)
    return _chosen(design, shown, candidate_ids, value)


def _scored(design: JudgeDesign, candidate_id: str, value: str) -> Said:
    try:
        score = float(Decimal(value))
    except InvalidOperation:
        return Said("INVALID", cause="the score is no number")
    if not design.score_min <= score <= design.score_max:
        bounds = f"{design.score_min} to {design.score_max}"
        return Said("INVALID", cause=f"the score {value} is not from {bounds}")
    return Said(SUCCEEDED, candidate_id, scores=((candidate_id, score),))


def _chosen(
    design: JudgeDesign, shown: Presentation, candidate_ids: tuple[str, ...], value: str
) -> Said:
    place = letters(design.options).find(value)
    if place < 0:
        return Said("INVALID", cause=f"{value[:20]!r} is none of the options")
    if place < design.candidates:
        return Said(SUCCEEDED, candidate_ids[shown.order[place]])
    if design.ties and place == design.candidates:
        return Said(SUCCEEDED, TIE)
    return Said(SUCCEEDED, ABSTAIN, cause="chosen")
