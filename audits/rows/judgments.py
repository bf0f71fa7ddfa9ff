"""Stored judgments as metric rows, by judge: judges with different hashes never pool."""

from __future__ import annotations

from collections import defaultdict

from audits.judgment_models import Judge, JudgedItem, Judgment, JudgmentSet
from audits.metrics.judgments import JudgmentRow


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
        gold=item.gold if item.gold in {*names, "tie"} else None,
        group=item.group,
        assigned=item.metadata.get("assigned"),
        own=next((c["candidate_id"] for c in shown if _wrote(judge, c)), None),
        lengths={c["candidate_id"]: float(len(c["text"])) for c in shown},
        scores=judgment.scores or {},
        models={c["candidate_id"]: c["model"] for c in shown if c.get("model")},
    )


def _wrote(judge: Judge, candidate: dict[str, str]) -> bool:
    return bool(judge.model) and candidate.get("model") == judge.model
