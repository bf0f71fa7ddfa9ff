"""Judges who give probabilities after each turn: how right, how calibrated, and what moved them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from audits.metrics import calibration
from audits.metrics.arrays import FloatArray, floats, sums_by
from audits.metrics.bootstrap import resampled_sums
from audits.metrics.errors import MetricsError
from audits.metrics.figures import Figure, plain
from audits.metrics.question_table import QuestionTable, with_replicates
from audits.metrics.ratio import Settings

NO_BELIEFS = "no beliefs"
EVENT = "event: the belief's first choice is the correct option"
_SUM_TOLERANCE = 1e-6


class BadBeliefError(MetricsError):
    """Something that is no probability of options, or a session that contradicts itself."""

    code = "bad_belief"

    def __init__(self, session_id: str, problem: str) -> None:
        super().__init__(f"session {session_id}: {problem}")


@dataclass(frozen=True, slots=True)
class BeliefRow:
    """What a judge believed in one session after turn ``after`` (0: before any).

    ``belief`` gives every option its probability. ``assigned`` is the side of the only speaker,
    ``correct`` or ``incorrect``, None where both sides spoke.
    """

    session_id: str
    question_id: str
    after: int
    belief: Mapping[str, float]
    correct: str
    assigned: str | None = None
    family: str | None = None

    @property
    def on_correct(self) -> float:
        return float(self.belief[self.correct])

    @property
    def error(self) -> float:
        """Return the Brier score on 0 to 1: half the squared error summed over options."""
        return sum((p - (o == self.correct)) ** 2 for o, p in self.belief.items()) / 2

    @property
    def confidence(self) -> float:
        return max(self.belief.values())

    @property
    def is_right(self) -> bool:
        """Whether the correct option alone has the highest probability."""
        ranked = sorted(self.belief.values(), reverse=True)
        return self.on_correct == ranked[0] and ranked[0] - ranked[1] > 1e-9


def sessions_of(rows: Iterable[BeliefRow]) -> dict[str, list[BeliefRow]]:
    """Return each session's beliefs by turn. Raises BadBeliefError."""
    found: dict[str, list[BeliefRow]] = {}
    for row in rows:
        found.setdefault(row.session_id, []).append(row)
    for session_id, beliefs in found.items():
        beliefs.sort(key=lambda row: row.after)
        facts = {(row.question_id, row.correct, row.assigned) for row in beliefs}
        if len(facts) > 1:
            raise BadBeliefError(session_id, "its rows differ in question, key or side")
        if len({row.after for row in beliefs}) < len(beliefs):
            raise BadBeliefError(session_id, "two beliefs after one turn")
        for row in beliefs:
            _refuse_improper(row)
    return dict(sorted(found.items()))


def _refuse_improper(row: BeliefRow) -> None:
    values = list(row.belief.values())
    proper = all(0 <= p <= 1 for p in values) and abs(sum(values) - 1) <= _SUM_TOLERANCE
    if not proper or len(values) < 2:
        problem = f"{values} are no probabilities of two options or more"
        raise BadBeliefError(row.session_id, problem)
    if row.correct not in row.belief:
        raise BadBeliefError(row.session_id, f"no probability of the correct option {row.correct}")


def belief_figures(rows: Sequence[BeliefRow], settings: Settings | None = None) -> list[Figure]:
    """Return judge_accuracy, brier, log_score and ece of the last beliefs, overall and by side.

    Where one speaker was assigned a side the figures by.assigned are the ones to read: pooled
    over sides they say nothing about persuasion.
    """
    settings = settings or Settings()
    last = [beliefs[-1] for beliefs in sessions_of(rows).values()]
    table = QuestionTable({row.question_id: row.family or row.question_id for row in last})
    figures: list[Figure] = []
    for side in [None, *sorted({row.assigned for row in last if row.assigned})]:
        own = [row for row in last if side in {None, row.assigned}]
        figures += _figures(own, table, {"assigned": side} if side else {}, settings)
    return figures


def _figures(
    rows: Sequence[BeliefRow], table: QuestionTable, by: dict[str, str], settings: Settings
) -> list[Figure]:
    right = [(row.question_id, float(row.is_right), 1.0) for row in rows]
    error = [(row.question_id, row.error, 1.0) for row in rows]
    on_correct = floats([row.on_correct for row in rows])
    nats = calibration.log_score(on_correct, np.ones(len(rows)))
    logs = [(row.question_id, float(n), 1.0) for row, n in zip(rows, nats, strict=True)]
    floored = int((on_correct < calibration.LOG_FLOOR).sum())
    notes = (f"{floored} probabilities counted as {calibration.LOG_FLOOR:g}",) if floored else ()
    ratios = [
        table.ratio("judge_accuracy", right, NO_BELIEFS, by=by),
        table.ratio("brier", error, NO_BELIEFS, by=by),
        table.ratio("log_score", logs, NO_BELIEFS, by=by, bounded=False, notes=notes),
    ]
    return [*table.figures(ratios, settings), _ece(rows, table, by, settings)]


def _ece(
    rows: Sequence[BeliefRow], table: QuestionTable, by: dict[str, str], settings: Settings
) -> Figure:
    """Return the ECE of the highest probability against whether it was right, 10 bins."""
    base = Figure(
        "ece", by=by, n_questions=len({row.question_id for row in rows}), reason=NO_BELIEFS,
        source=settings.source, notes=(EVENT, "10 bins, left-closed", "biased upward"),
    )  # fmt: skip
    if not rows:
        return base
    columns = calibration.calibration_columns(*_confidences(rows))
    clusters = table.cluster_of(row.question_id for row in rows)
    summed = np.stack([sums_by(clusters, c, table.family_count) for c in columns.T], axis=1)
    summed = summed[summed[:, 0] > 0]
    drawn = resampled_sums(summed, settings.resamples, settings.seed)
    total = columns.sum(axis=0)
    value = float(calibration.ece_of_sums(total))
    counted = replace(
        base, num=value * float(total[0]), den=float(total[0]), n_clusters=len(summed)
    )
    return with_replicates(counted, value, calibration.ece_of_sums(drawn), settings)


def _confidences(rows: Sequence[BeliefRow]) -> tuple[FloatArray, FloatArray]:
    return floats([row.confidence for row in rows]), floats([row.is_right for row in rows])


def belief_tables(rows: Sequence[BeliefRow]) -> dict[str, object]:
    """Return the tables ``beliefs_by_turn``, ``largest_moves`` and ``reliability``."""
    sessions = sessions_of(rows)
    last = [beliefs[-1] for beliefs in sessions.values()]
    return {
        "beliefs_by_turn": _by_turn(sessions),
        "largest_moves": [
            move for name, beliefs in sessions.items() if (move := largest_move(name, beliefs))
        ],
        "reliability": [
            {
                "low": each.low, "high": each.high, "n": each.n,
                "mean_confidence": plain(each.mean_r), "share_right": plain(each.mean_y),
                "ci": list(each.ci) if each.ci else None,
            }
            for each in (calibration.reliability_table(*_confidences(last)) if last else ())
        ],
    }  # fmt: skip


def _by_turn(sessions: Mapping[str, Sequence[BeliefRow]]) -> list[dict[str, object]]:
    """Only the sessions that were still going at a turn are in its row."""
    by_turn: dict[tuple[int, str], list[BeliefRow]] = {}
    for beliefs in sessions.values():
        for row in beliefs:
            by_turn.setdefault((row.after, row.assigned or ""), []).append(row)
    return [
        {
            "after": after, "assigned": side or None, "n": len(own),
            "mean_on_correct": float(np.mean([row.on_correct for row in own])),
            "brier": float(np.mean([row.error for row in own])),
            "right": sum(row.is_right for row in own),
        }
        for (after, side), own in sorted(by_turn.items())
    ]  # fmt: skip


def largest_move(session_id: str, beliefs: Sequence[BeliefRow]) -> dict[str, object] | None:
    """Return the turn after which the belief in the correct option moved most, the first of equal
    ones; None for a single belief.
    """
    steps = [
        (after.after, after.on_correct - before.on_correct) for before, after in pairwise(beliefs)
    ]
    if not steps:
        return None
    turn, change = max(steps, key=lambda step: abs(step[1]))
    return {"session_id": session_id, "after": turn, "change": change}
