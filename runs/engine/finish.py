"""
A run's result (S14): final aggregation, or the local fallback. Neither makes a call.

Where a judge decides (S28) its calls were made before, and what it said is handed in.
"""

from __future__ import annotations

from runs.engine.aggregation import (
    UnsupportedAggregationError,
    aggregate,
    judged_candidates,
    may_judge,
    unresolved,
)
from runs.engine.draws import Draws
from runs.engine.hashing import question_hash
from runs.engine.judge_combining import JudgeVerdicts
from runs.engine.types import Outcome, Question, Snapshot, Stop
from runs.protocols.spec import Protocol


def final_outcome(
    *,
    protocol: Protocol,
    zero: Snapshot,
    last: Snapshot,
    stop: Stop,
    t: int,
    run_seed: int,
    question: Question,
    judged: JudgeVerdicts | None = None,
) -> Outcome:
    """
    Return the result of a run that ended with ``stop`` after round ``t``.

    ``zero`` is the snapshot after t = 0 and ``last`` the newest one. A run that ends early is
    aggregated over what was admitted; where nothing was, or the votes cannot decide by
    themselves, the outcome is unresolved and names the stop. ``judged`` are the judge's verdicts;
    None where it was not asked, which leaves what it had to decide unresolved.
    """
    issue = f"the run stopped: {stop.reason.value}"
    if not last.states:
        return unresolved(protocol=protocol, snapshot=last, t=t, issues=(issue,))
    draws = Draws(run_seed, question_hash(question))
    if judged is None and may_judge(protocol):
        asked = judged_candidates(protocol=protocol, snapshot=last, zero=zero, t=t, draws=draws)
        judged = () if len(asked) < 2 else None
    try:
        return aggregate(
            protocol=protocol, snapshot=last, t=t, zero=zero, draws=draws, judged=judged
        )
    except UnsupportedAggregationError as exc:
        return unresolved(protocol=protocol, snapshot=last, t=t, issues=(issue, str(exc)))
