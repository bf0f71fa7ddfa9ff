"""What a run may use at most, and caps under which no run could make its first calls (S31)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

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
    calls = [
        reserve_bound(
            input_token_bound=call.input_tokens,
            max_output_tokens=call.output_tokens,
            price=prices.get(call.agent_id) or prices.get(call.slot) or Price.free(),
        )
        for call in cost.bound(protocol, sizes).per_call
        if call.t == 0
    ]
    takes_all = protocol.limits.round_reservation == "all_or_nothing"
    together = sum if takes_all else min
    return Amount(
        microusd=together(c.microusd for c in calls) + protocol.limits.final_microusd,
        output_tokens=together(c.output_tokens for c in calls),
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
