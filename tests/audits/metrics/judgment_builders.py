"""Short spellings of judgments: letters for places or candidates in, rows out."""

from collections.abc import Sequence
from typing import Any

from audits.metrics.judgments import JudgedItem, JudgmentRow, families_of, judged_items
from audits.metrics.question_table import QuestionTable

CANDIDATES = ("a", "b")
_BY_PLACE = {"A": 0, "B": 1}


def row(
    item: str,
    order: Sequence[str],
    verdict: str | None,
    *,
    repeat: int = 1,
    question: str | None = None,
    candidates: Sequence[str] | None = None,
    **facts: Any,
) -> JudgmentRow:
    """A judgment; a missing verdict is INVALID unless the status says otherwise."""
    status = facts.pop("status", "SUCCEEDED" if verdict is not None else "INVALID")
    return JudgmentRow(
        facts.pop("judge", "j"),
        question or item,
        item,
        tuple(candidates or sorted(order)),
        tuple(order),
        verdict,
        repeat,
        status,
        **facts,
    )


def twin(item: str, places: str, **facts: Any) -> list[JudgmentRow]:
    """Two judgments from the place chosen under each order: A first, B last, C tie, - none."""
    return [
        row(item, order, _verdict(place, order), candidates=CANDIDATES, **facts)
        for order, place in zip((CANDIDATES, CANDIDATES[::-1]), places, strict=True)
    ]


def _verdict(place: str, order: Sequence[str]) -> str | None:
    if place == "-":
        return None
    return "tie" if place == "C" else order[_BY_PLACE[place]]


def repeats(item: str, given: str, swapped: str = "", **facts: Any) -> list[JudgmentRow]:
    """Judgments from the content chosen in each repeat of each order, c being a tie."""
    rows = []
    for order, contents in ((CANDIDATES, given), (CANDIDATES[::-1], swapped)):
        for repeat, content in enumerate(contents.lower(), 1):
            verdict = "tie" if content == "c" else content
            rows.append(row(item, order, verdict, repeat=repeat, candidates=CANDIDATES, **facts))
    return rows


def arranged(rows: Sequence[JudgmentRow]) -> tuple[list[JudgedItem], QuestionTable]:
    items = judged_items(rows)
    return items, QuestionTable(families_of(items))
