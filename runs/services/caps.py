"""What a run may use at most, and caps under which no run could make its first calls (S31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runs.engine.aggregation import may_judge
from runs.engine.ledger import Amount, Price, reserve_bound
from runs.experiment_file import BudgetSpec
from runs.protocols import cost
from runs.protocols.spec import Protocol

#: A run that loses its worker pays the calls in flight again: room for a few such losses.
ROOM_FOR_LOSSES = 4


def run_cap(budget: BudgetSpec, bound: Amount) -> Amount:
    """Return what one run may use: the file's caps, or a few times the bound of its protocol."""
    per_run, tokens = budget.microusd_per_run, budget.output_tokens_per_run
    return Amount(
        microusd=bound.microusd * ROOM_FOR_LOSSES if per_run is None else per_run,
        output_tokens=bound.output_tokens * ROOM_FOR_LOSSES if tokens is None else tokens,
    )


def opening_bound(protocol: Protocol, sizes: cost.Sizes, prices: Mapping[str, Price]) -> Amount:
    """
    Return what has to be reserved before a run's first answer, each call tried once.

    All calls of round 0, or the least of them where a round takes as many as can be paid; and
    what is kept back for the final aggregation, without which no run begins. ``prices`` is keyed
    by agent or by slot.
    """
    most = cost.bound(protocol, sizes)
    calls = [_once(call, prices) for call in most.per_call if call.t == 0]
    final = _kept_back(most, prices)
    takes_all = protocol.limits.round_reservation == "all_or_nothing"
    together = sum if takes_all else min
    return Amount(
        microusd=together(c.microusd for c in calls) + final.microusd,
        output_tokens=together(c.output_tokens for c in calls) + final.output_tokens,
    )


def final_bound(protocol: Protocol, sizes: cost.Sizes, prices: Mapping[str, Price]) -> Amount:
    """
    Return what is kept back before a run's first call (S30).

    What the protocol says, and the most that a judge's calls can use at the end, retries included.
    ``prices`` is keyed as in ``opening_bound``, or by the prefix of a judge's calls.
    """
    if not may_judge(protocol):
        return Amount(microusd=protocol.limits.final_microusd)
    return _kept_back(cost.bound(protocol, sizes), prices)


def _kept_back(most: cost.Bound, prices: Mapping[str, Price]) -> Amount:
    kept = Amount(microusd=most.final_microusd)
    for call in most.judging:
        one = _once(call, prices)
        kept += Amount(one.microusd * call.attempts, one.output_tokens * call.attempts)
    return kept


def _once(call: cost.CallBound, prices: Mapping[str, Price]) -> Amount:
    return reserve_bound(
        input_token_bound=call.input_tokens,
        max_output_tokens=call.output_tokens,
        price=prices.get(call.agent_id) or prices.get(call.slot) or Price.free(),
    )


def caps_that_admit_nothing(
    budget: BudgetSpec, *, arm: str, bound: Amount, opening: Amount
) -> Iterator[str]:
    """
    Yield one line for each cap under which every run of an arm would end without an answer.

    ``opening`` is ``opening_bound`` over the shortest question: what does not pay for that pays
    for nothing. A run sets its whole cap aside of the total when it starts.
    """
    cap = run_cap(budget, bound)
    ending = "every run would end without an answer"
    if cap.microusd < opening.microusd:
        yield (
            f"budget.microusd_per_run: {cap.microusd} does not pay for the first calls of arm "
            f"{arm!r}, which may cost {opening.microusd}: {ending}"
        )
    if cap.output_tokens < opening.output_tokens:
        yield (
            f"budget.output_tokens_per_run: {cap.output_tokens} is less than the first calls of "
            f"arm {arm!r} may use, {opening.output_tokens}: {ending}"
        )
    total = budget.microusd_total
    if total is None or cap.microusd <= total:
        return
    if budget.microusd_per_run is None:
        yield (
            f"budget.microusd_total: {total} is less than one run of arm {arm!r} sets aside, "
            f"{cap.microusd} ({ROOM_FOR_LOSSES} times its bound): {ending}. Raise it, or set "
            "microusd_per_run"
        )
