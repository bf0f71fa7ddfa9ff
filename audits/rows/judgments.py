"""Stored judgments as metric rows, by judge: judges with different hashes never pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from audits.judgment_models import Judge, JudgedItem, Judgment, JudgmentSet
from audits.metrics.beliefs import BeliefRow
from audits.metrics.judgments import JudgmentRow

#: Shares of one that were written down add up to within this.
ROUNDED = 1e-6


def judgment_rows(judgment_set: JudgmentSet) -> dict[Judge, list[JudgmentRow]]:
    """
    Return the rows of every judge of a set, in the order of items, orders and repeats.

    Lengths are in characters. A text that was scored alone is an item of its own, since its
    score compares it with nothing.
    """
    items = {item.pk: item for item in JudgedItem.objects.filter(judgment_set=judgment_set)}
    judges = {judge.pk: judge for judge in Judge.objects.filter(judgment_set=judgment_set)}
    found: dict[Judge, list[JudgmentRow]] = defaultdict(list)
    stored = Judgment.objects.filter(judge__judgment_set=judgment_set).order_by(
        "judge", "item__position", "order_key", "repeat"
    )
    for judgment in stored.iterator(chunk_size=2_000):
        judge = judges[judgment.judge_id]
        found[judge].append(_row(judgment, items[judgment.item_id], judge))
    return dict(found)


def believed(rows: Iterable[JudgmentRow]) -> list[BeliefRow]:
    """
    Return the scores of judgments as beliefs, where all of them are shares of one.

    Nothing where a score is no share, for then it is a grade, or where no right answer is known.
    """
    found = []
    for row in rows:
        if row.verdict is None:
            continue
        shares = row.scores
        if len(shares) < 2 or any(not 0 <= share <= 1 for share in shares.values()):
            return []
        if abs(sum(shares.values()) - 1) > ROUNDED:
            return []
        if row.gold in shares:
            found.append(_belief(row, str(row.gold)))
    return found


def _belief(row: JudgmentRow, correct: str) -> BeliefRow:
    return BeliefRow(
        session_id=f"{row.item_id} {row.order} {row.repeat}",
        question_id=row.question_id,
        after=0,
        belief=row.scores,
        correct=correct,
        assigned=row.assigned,
        family=row.family,
    )


def _row(judgment: Judgment, item: JudgedItem, judge: Judge) -> JudgmentRow:
    order = tuple(judgment.order_shown)
    shown = [c for c in item.candidates if c["candidate_id"] in order]
    is_alone = len(shown) == 1 and len(item.candidates) > 1
    names = tuple(candidate["candidate_id"] for candidate in shown)
    return JudgmentRow(
        judge=judge.judge_hash,
        question_id=item.question_id,
        item_id=f"{item.item_id} {names[0]}" if is_alone else item.item_id,
        candidates=names,
        order=order,
        verdict=judgment.verdict or None,
        repeat=judgment.repeat,
        status=judgment.status,
        cause=judgment.cause,
        gold=item.gold if not is_alone and item.gold in {*names, "tie"} else None,
        group=item.group,
        assigned=item.metadata.get("assigned"),
        own=next((c["candidate_id"] for c in shown if _wrote(judge, c)), None),
        lengths={c["candidate_id"]: float(len(c["text"])) for c in shown},
        scores=judgment.scores or {},
        models={c["candidate_id"]: c["model"] for c in shown if c.get("model")},
    )


def _wrote(judge: Judge, candidate: dict[str, str]) -> bool:
    return bool(judge.model) and candidate.get("model") == judge.model
