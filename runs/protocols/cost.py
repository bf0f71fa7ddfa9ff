"""
What a protocol can cost at most (S31), and what it is expected to cost (docs/metrics.md, §9).

The bound follows the protocol's own prompts with every cap at its maximum, every round opened
and every retry used. The expectation is the display model of the cost table; once there is a
ledger, the ledger replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from runs.engine.aggregation import may_judge
from runs.engine.judging import CALL_PREFIX, orders_shown
from runs.engine.ledger import TOKENS_PER_PRICE_UNIT, Price, reserve_bound
from runs.engine.operators import refuse_unsupported
from runs.protocols.prompt_lengths import PromptLengths, Sizes, in_degree
from runs.protocols.spec import Protocol

__all__ = [
    "Bound",
    "CallBound",
    "Expected",
    "Prices",
    "Sizes",
    "Unit",
    "Use",
    "bound",
    "expected",
    "in_degree",
    "match_samples",
]

Prices = Mapping[str, Price]
"""Model slot → price."""

Unit = Literal["output_tokens", "microusd"]


@dataclass(frozen=True, slots=True)
class CallBound:
    """The most that one agent's call in round ``t`` can use, an attempt."""

    agent_id: str
    t: int
    slot: str
    attempts: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Bound:
    """
    The most that a run can use: every round, every retry, every cap.

    ``judging`` are the calls to a judge at the end (S28), as many as there may be; like
    ``final_microusd`` they are kept back before anything is sampled (S30).
    """

    per_call: tuple[CallBound, ...]
    final_microusd: int = 0
    judging: tuple[CallBound, ...] = ()

    @property
    def every_call(self) -> tuple[CallBound, ...]:
        return self.per_call + self.judging

    @property
    def calls(self) -> int:
        return sum(call.attempts for call in self.every_call)

    @property
    def input_tokens(self) -> int:
        return sum(call.attempts * call.input_tokens for call in self.every_call)

    @property
    def output_tokens(self) -> int:
        return sum(call.attempts * call.output_tokens for call in self.every_call)

    def microusd(self, prices: Prices) -> int:
        """Return the bound in money. Raises ValueError for a slot without a price."""
        return self.final_microusd + sum(
            call.attempts
            * reserve_bound(
                input_token_bound=call.input_tokens,
                max_output_tokens=call.output_tokens,
                price=_price(prices, call.slot),
            ).microusd
            for call in self.every_call
        )


@dataclass(frozen=True, slots=True)
class Use:
    """Calls and tokens of one model slot; fractions, since an expectation is one."""

    calls: Fraction
    input_tokens: Fraction
    output_tokens: Fraction


@dataclass(frozen=True, slots=True)
class Expected:
    """What a run is expected to use, by model slot."""

    by_slot: Mapping[str, Use]

    @property
    def calls(self) -> float:
        return float(sum(use.calls for use in self.by_slot.values()))

    @property
    def input_tokens(self) -> int:
        return round(sum(use.input_tokens for use in self.by_slot.values()))

    @property
    def output_tokens(self) -> int:
        return round(sum(use.output_tokens for use in self.by_slot.values()))

    def microusd(self, prices: Prices) -> int:
        """Return the expected money, fresh input. Raises ValueError for a missing price."""
        return round(self.exact_microusd(prices))

    def exact_microusd(self, prices: Prices) -> Fraction:
        """Return the expected money without rounding, for comparisons."""
        total = Fraction(0)
        for slot, use in self.by_slot.items():
            price = _price(prices, slot)
            total += use.input_tokens * price.input_microusd_per_mtok
            total += use.output_tokens * price.output_microusd_per_mtok
        return total / TOKENS_PER_PRICE_UNIT


def bound(protocol: Protocol, sizes: Sizes) -> Bound:
    """
    Return an upper bound of every prompt that the engine can render, and of every reply.

    Raises UnsupportedProtocolError where the engine would not run the protocol either.
    """
    refuse_unsupported(protocol)
    lengths = PromptLengths(protocol, sizes)
    retries = protocol.retries
    return Bound(
        per_call=tuple(
            CallBound(
                agent_id=agent.id,
                t=t,
                slot=agent.model,
                attempts=1 + retries.transport + retries.timeout + retries.invalid,
                input_tokens=lengths.call(agent, t) + sizes.schema_bytes,
                output_tokens=agent.decoding.max_output_tokens,
            )
            for t in range(protocol.revision_rounds + 1)
            for agent in protocol.agents
        ),
        final_microusd=protocol.limits.final_microusd,
        judging=_judging(protocol, lengths),
    )


def _judging(protocol: Protocol, lengths: PromptLengths) -> tuple[CallBound, ...]:
    """Bound the calls to a judge: as many and as long as any number of candidates makes them."""
    settings = protocol.aggregation.judge
    voters = sum(agent.votes for agent in protocol.agents)
    if settings is None or not may_judge(protocol) or voters < 2:
        return ()
    retries = protocol.retries
    numbers = range(2, voters + 1)
    presentations = max(len(orders_shown(settings, k, None)) for k in numbers) * settings.repeats
    at_once = {"pairwise": 2, "pointwise": 1}.get(settings.mode, voters)
    return (
        CallBound(
            agent_id=CALL_PREFIX,
            t=protocol.revision_rounds + 1,
            slot=settings.model,
            attempts=presentations * (1 + retries.transport + retries.timeout + retries.invalid),
            input_tokens=lengths.judge(settings, at_once),
            output_tokens=settings.decoding.max_output_tokens,
        ),
    )


def expected(
    protocol: Protocol, *, q_tokens: int, a_tokens: int, agreement: float = 0.0
) -> Expected:
    """
    Return the display model: every question ``q_tokens`` long, every answer ``a_tokens``.

    A revision reads the question once and an answer for each peer it may read and for itself;
    with ``own_history: all`` those of the earlier rounds again. ``agreement`` is the share of
    questions on which a disagreement-triggered protocol stops at t = 0; elsewhere it is unused.
    """
    opened = Fraction(1)
    if protocol.stopping.unanimous_at_zero:
        opened -= Fraction(agreement).limit_denominator(1_000_000)
    totals: dict[str, Use] = {}
    for agent in protocol.agents:
        peers = in_degree(protocol, agent.id) + protocol.selection.include_self
        reads = sum(_answers_read(protocol, peers, t) for t in _revisions(protocol))
        revisions = opened * protocol.revision_rounds
        before = totals.get(agent.model, Use(Fraction(0), Fraction(0), Fraction(0)))
        totals[agent.model] = Use(
            calls=before.calls + 1 + revisions,
            input_tokens=before.input_tokens
            + (1 + revisions) * q_tokens
            + opened * reads * a_tokens,
            output_tokens=before.output_tokens + (1 + revisions) * a_tokens,
        )
    _add_judging(totals, protocol, q_tokens, a_tokens)
    return Expected(totals)


def _add_judging(totals: dict[str, Use], protocol: Protocol, q_tokens: int, a_tokens: int) -> None:
    """Add a judge that always decides: it is expected to be asked about two candidates."""
    settings = protocol.aggregation.judge
    if settings is None or protocol.aggregation.kind != "judge" or len(protocol.agents) < 2:
        return
    calls = len(orders_shown(settings, 2, None)) * settings.repeats
    read = {"pointwise": 1, "transcript": 2 + len(protocol.agents)}.get(settings.mode, 2)
    before = totals.get(settings.model, Use(Fraction(0), Fraction(0), Fraction(0)))
    totals[settings.model] = Use(
        calls=before.calls + calls,
        input_tokens=before.input_tokens + calls * (q_tokens + read * a_tokens),
        output_tokens=before.output_tokens + calls * a_tokens,
    )


def match_samples(
    target: Expected,
    sample: Expected,
    *,
    by: Unit,
    target_prices: Prices | None = None,
    sample_prices: Prices | None = None,
) -> int:
    """
    Return how many samples fit into what ``target`` uses, at least one.

    ``sample`` is the expectation of the sampling protocol with one agent. By money each needs
    the prices of its slots. Raises ValueError for a missing price, and where one sample uses
    nothing, so that any number would fit.
    """
    whole = _quantity(target, by, target_prices or {})
    one = _quantity(sample, by, sample_prices or {})
    if one <= 0:
        raise ValueError(f"one sample uses no {by}, so no number of samples matches")
    return max(1, whole // one)


def _quantity(cost: Expected, by: Unit, prices: Prices) -> Fraction:
    if by == "microusd":
        return cost.exact_microusd(prices)
    return sum((use.output_tokens for use in cost.by_slot.values()), Fraction(0))


def _answers_read(protocol: Protocol, peers: int, t: int) -> int:
    selection = protocol.selection
    if selection.rounds == "all":
        peers *= t
    own = 0 if selection.own_history == "none" else 1
    return (peers + own) * (t if selection.own_history == "all" else 1)


def _revisions(protocol: Protocol) -> range:
    return range(1, protocol.revision_rounds + 1)


def _price(prices: Prices, slot: str) -> Price:
    if slot not in prices:
        raise ValueError(f"model slot {slot!r} has no price")
    return prices[slot]
