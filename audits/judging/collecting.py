"""Reading judgments out of an audit's runs, once each; they are appended as runs end."""

from __future__ import annotations

import json
from collections.abc import Iterator

from django.db import transaction

from audits.judging.design import JudgeDesign, Presentation
from audits.judging.verdicts import Said, said
from audits.judgment_models import Judge, JudgedItem, Judgment, JudgmentSet
from runs.engine.hashing import digest
from runs.engine.types import AnswerKind, Status
from runs.models import Run, RunStatus, State, Verdict

BATCH = 500


@transaction.atomic
def collect_judgments(judgment_set: JudgmentSet) -> int:
    """
    Append the judgments of the runs that ended since the last time; returns how many.

    Two who collect at once append each judgment once: the constraint keeps the first.
    """
    if judgment_set.experiment_id is None:
        return 0
    design = JudgeDesign.model_validate_json(json.dumps(judgment_set.design))
    judge = Judge.objects.get(judgment_set=judgment_set)
    items = {item.item_id: item for item in JudgedItem.objects.filter(judgment_set=judgment_set)}
    before = Judgment.objects.filter(judge=judge).count()
    done = Run.objects.filter(experiment=judgment_set.experiment_id, status=RunStatus.DONE)
    fresh = done.exclude(
        question__external_id__in=Judgment.objects.filter(judge=judge).values("item__item_id")
    )
    ids = list(fresh.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(ids), BATCH):
        rows = _judgments(ids[start : start + BATCH], design, judge, items)
        Judgment.objects.bulk_create(rows, ignore_conflicts=True, batch_size=BATCH)
    return Judgment.objects.filter(judge=judge).count() - before


def _judgments(
    run_ids: list[int], design: JudgeDesign, judge: Judge, items: dict[str, JudgedItem]
) -> Iterator[Judgment]:
    states = {
        (state.run_id, state.agent_id): state
        for state in State.objects.filter(run__in=run_ids, round=0)
    }
    verdicts = {
        (verdict.run_id, verdict.agent_id): verdict
        for verdict in Verdict.objects.filter(run__in=run_ids, t=0)
    }
    for run in Run.objects.filter(pk__in=run_ids).select_related("question").order_by("pk"):
        item = items[run.question.external_id]
        for shown in design.presentations:
            key = (run.pk, shown.agent_id)
            state = states.get(key)
            what = _said(design, item, shown, verdicts.get(key), state, run)
            yield _judgment(judge, item, shown, what, state, run)


def _said(
    design: JudgeDesign,
    item: JudgedItem,
    shown: Presentation,
    verdict: Verdict | None,
    state: State | None,
    run: Run,
) -> Said:
    """A presentation that the run never came to ask stays a judgment that failed (S12)."""
    if verdict is None:
        return Said("FAILED", cause=f"never asked: the run ended {run.stop_reason}")
    return said(
        design=design,
        shown=shown,
        candidate_ids=tuple(c["candidate_id"] for c in item.candidates),
        status=Status(verdict.status),
        reason=verdict.reason,
        kind=AnswerKind(state.answer_kind) if state is not None else None,
        value=state.answer_value if state is not None else "",
    )


def _judgment(
    judge: Judge, item: JudgedItem, shown: Presentation, what: Said, state: State | None, run: Run
) -> Judgment:
    ids = [candidate["candidate_id"] for candidate in item.candidates]
    order = [ids[index] for index in shown.order]
    return Judgment(
        item=item,
        judge=judge,
        order_shown=order,
        order_key=digest(order),
        repeat=shown.repeat,
        status=what.status,
        cause=what.cause[:64],
        verdict=what.verdict or "",
        scores=dict(what.scores) or None,
        rationale=state.text if state is not None else "",
        metadata={"run": run.pk, "agent_id": shown.agent_id},
    )
