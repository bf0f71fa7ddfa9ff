"""
Runs of an experiment in which an agent's last answer is right and its first was wrong, or so.

Whose answers differ, the database says; which of them are right, ``is_correct`` says here, for one
page of runs at a time: a tolerance or a spelling is no matter of SQL.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from runs.engine.normalise import is_correct
from runs.engine.types import Answer, AnswerKind, Question
from runs.models import Experiment, Run
from runs.models import State as StateRow
from runs.queries import arm_context
from runs.run_pages.matrix import Went

#: Runs whose answers differ that one page looks at.
LOOKED_AT = 100
#: Positions that one page looks through, so that a page of rare turns costs no more.
WINDOW = 4_000

_DIFFERING = """
SELECT r.id FROM runs_run r
WHERE r.experiment_id = %(experiment)s AND r.position > %(after)s
  AND r.position <= %(until)s AND EXISTS (
    SELECT FROM runs_state f JOIN runs_state l ON l.run_id = f.run_id AND l.agent_id = f.agent_id
    WHERE f.run_id = r.id AND f.state_version = 1 AND l.state_version > 1
      AND (l.answer_kind, l.answer_value) <> (f.answer_kind, f.answer_value)
)
ORDER BY r.position LIMIT %(most)s
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """An agent's first and last answer."""

    agent_id: str
    first: Answer
    last: Answer


@dataclass(frozen=True, slots=True)
class TurnedRun:
    run: Run
    turns: list[Turn]


@dataclass(frozen=True, slots=True)
class TurnedPage:
    """``next_after`` is the position behind which the next page begins, None on the last one."""

    rows: list[TurnedRun]
    next_after: int | None


def turned_runs(experiment: Experiment, went: Went, *, after: int = -1) -> TurnedPage:
    """
    Return the runs behind position ``after`` in which an agent went so, by position.

    Four queries. A page looks at ``LOOKED_AT`` runs whose answers differ, among ``WINDOW``
    positions, and lists those that turned: it may be short, or empty, and yet not the last.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _DIFFERING,
            {
                "experiment": experiment.pk,
                "after": after,
                "until": after + WINDOW,
                "most": LOOKED_AT + 1,
            },
        )
        ids = [row[0] for row in cursor.fetchall()]
    runs = list(
        Run.objects.filter(pk__in=ids[:LOOKED_AT])
        .select_related("arm", "question")
        .defer("question__text", "question__evidence", "question__metadata", "arm__bindings")
        .order_by("position")
    )
    turns = _turns([run.pk for run in runs])
    is_more = Run.objects.filter(experiment=experiment, position__gt=after + WINDOW).exists()
    rows = [TurnedRun(run, _that_went(run, turns.get(run.pk, []), went)) for run in runs]
    next_after = after + WINDOW if is_more else None
    if len(ids) > LOOKED_AT:
        next_after = runs[-1].position
    return TurnedPage(rows=[row for row in rows if row.turns], next_after=next_after)


def _turns(run_ids: list[int]) -> dict[int, list[Turn]]:
    """Return first and last answer of every agent by run. One query."""
    states = StateRow.objects.filter(run_id__in=run_ids).order_by(
        "run_id", "agent_id", "state_version"
    )
    answers: dict[tuple[int, str], list[Answer]] = {}
    for run_id, agent_id, kind, value in states.values_list(
        "run_id", "agent_id", "answer_kind", "answer_value"
    ):
        answers.setdefault((run_id, agent_id), []).append(Answer("", AnswerKind(kind), value))
    found: dict[int, list[Turn]] = {}
    for (run_id, agent_id), given in answers.items():
        found.setdefault(run_id, []).append(Turn(agent_id, given[0], given[-1]))
    return found


def _that_went(run: Run, turns: Iterable[Turn], went: Went) -> list[Turn]:
    settings = arm_context(run.arm_id).protocol.normaliser
    question = Question(
        id=run.question.external_id,
        text="",
        answer_type=run.question.answer_type,  # type: ignore[arg-type]  # A check constraint's.
        choices=tuple(run.question.choices),
        reference=tuple(run.question.reference),
    )
    # The order of right and wrong that is asked for; None, unscored, is neither.
    asked = (True, False) if went == "broke" else (False, True)
    return [
        turn
        for turn in turns
        if turn.first != turn.last
        and (is_correct(turn.first, question, settings), is_correct(turn.last, question, settings))
        == asked
    ]
