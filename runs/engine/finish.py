"""A run's result (S14): final aggregation, or the local fallback. Neither makes a call."""

from __future__ import annotations

from runs.engine.aggregation import UnsupportedAggregationError, aggregate, unresolved
from runs.engine.draws import Draws
from runs.engine.hashing import question_hash
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
) -> Outcome:
    """
    Return the result of a run that ended with ``stop`` after round ``t``.

    ``zero`` is the snapshot after t = 0 and ``last`` the newest one. A run that ends early is
    aggregated over what was admitted; where nothing was, or the votes cannot decide by
    themselves, the outcome is unresolved and names the stop.
    """
    issue = f"the run stopped: {stop.reason.value}"
    if not last.states:
        return unresolved(protocol=protocol, snapshot=last, t=t, issues=(issue,))
    draws = Draws(run_seed, question_hash(question))
    try:
        return aggregate(protocol=protocol, snapshot=last, t=t, zero=zero, draws=draws)
    except UnsupportedAggregationError as exc:
        return unresolved(protocol=protocol, snapshot=last, t=t, issues=(issue, str(exc)))
