"""
The arithmetic of the ledger (S30–S32): reserve, then settle, hold or release.

Everything is integral: micro-USD, tokens, and prices in micro-USD per million tokens. What is
here decides amounts; who may write them, and that it happens atomically, is the shell's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

#: Prices are quoted for so many tokens.
TOKENS_PER_PRICE_UNIT = 1_000_000


class TokenUsage(Protocol):
    """What the ledger reads of a provider's usage report; ``None`` where it did not say."""

    @property
    def input_tokens(self) -> int | None: ...
    @property
    def cached_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Price:
    """One model's price, micro-USD per million tokens. Cached input is a part of the input."""

    input_microusd_per_mtok: int
    cached_input_microusd_per_mtok: int
    output_microusd_per_mtok: int

    def __post_init__(self) -> None:
        if min(self._parts) < 0:
            raise ValueError("a price must not be negative")

    @classmethod
    def free(cls) -> Price:
        """Return the price of a model that is declared to cost nothing."""
        return cls(0, 0, 0)

    @property
    def _parts(self) -> tuple[int, int, int]:
        return (
            self.input_microusd_per_mtok,
            self.cached_input_microusd_per_mtok,
            self.output_microusd_per_mtok,
        )

    @property
    def dearest_input_microusd_per_mtok(self) -> int:
        """The most that an input token can cost, whether it is cached or not."""
        return max(self.input_microusd_per_mtok, self.cached_input_microusd_per_mtok)


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity of the two things that are capped. Differences may be negative."""

    microusd: int = 0
    output_tokens: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.microusd + other.microusd, self.output_tokens + other.output_tokens)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.microusd - other.microusd, self.output_tokens - other.output_tokens)

    def least(self, other: Amount) -> Amount:
        """Return the smaller quantity in each unit."""
        return Amount(
            min(self.microusd, other.microusd), min(self.output_tokens, other.output_tokens)
        )


@dataclass(frozen=True, slots=True)
class Settlement:
    """
    How one reservation ends: ``settle + hold + release`` is what was reserved.

    ``overrun`` is known use beyond the reservation. It stands outside the invariant
    ``settled + held + reserved <= cap`` and ends the run with ``worker_budget`` (S31).
    """

    settle: Amount = Amount()
    hold: Amount = Amount()
    release: Amount = Amount()
    overrun: Amount = Amount()

    @property
    def overran(self) -> bool:
        return self.overrun != Amount()


def reserve_bound(*, input_token_bound: int, max_output_tokens: int, price: Price) -> Amount:
    """
    Return the most that a call can use, rounded up, so that settling cannot overdraw (S31).

    Raises ValueError for a negative count.
    """
    if input_token_bound < 0 or max_output_tokens < 0:
        raise ValueError("token counts must not be negative")
    priced = (
        input_token_bound * price.dearest_input_microusd_per_mtok
        + max_output_tokens * price.output_microusd_per_mtok
    )
    return Amount(microusd=_in_microusd(priced), output_tokens=max_output_tokens)


def cost(usage: TokenUsage, price: Price) -> int:
    """
    Return what a call cost in micro-USD, rounded up once for the whole call.

    A cached part above the input is cut to the input. Raises ValueError where the provider
    left input or output out or reported a negative count: such a use is unknown, not zero.
    """
    input_tokens, cached_tokens, output_tokens = _counts(usage)
    return _in_microusd(
        (input_tokens - cached_tokens) * price.input_microusd_per_mtok
        + cached_tokens * price.cached_input_microusd_per_mtok
        + output_tokens * price.output_microusd_per_mtok
    )


def settlement(
    *, reserved: Amount, usage: TokenUsage | None, billed: str, price: Price
) -> Settlement:
    """
    Decide what becomes of one reservation (S31).

    ``billed`` is the provider's word: "no" releases everything; "maybe", or a use that nobody
    knows, holds everything until a receipt settles it; otherwise the known use is settled.
    Raises ValueError for another word.
    """
    if billed not in ("yes", "no", "maybe"):
        raise ValueError(f"billed must be yes, no or maybe, not {billed!r}")
    if billed == "no":
        return Settlement(release=reserved)
    if billed == "maybe" or usage is None or not is_known(usage):
        return Settlement(hold=reserved)
    used = Amount(microusd=cost(usage, price), output_tokens=_counts(usage)[2])
    settle = used.least(reserved)
    return Settlement(settle=settle, release=reserved - settle, overrun=used - settle)


def fits(cap: Amount, used: Amount, want: Amount) -> bool:
    """Return whether ``want`` can be reserved beside ``used`` in both units (S31)."""
    total = used + want
    return total.microusd <= cap.microusd and total.output_tokens <= cap.output_tokens


def is_known(usage: TokenUsage) -> bool:
    """Return whether a usage report can be settled: complete, and no count below zero."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return False
    return min(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0) >= 0


def _counts(usage: TokenUsage) -> tuple[int, int, int]:
    if not is_known(usage) or usage.input_tokens is None or usage.output_tokens is None:
        raise ValueError("the provider did not report this use, or reported a negative count")
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    return usage.input_tokens, cached, usage.output_tokens


def _in_microusd(microusd_times_unit: int) -> int:
    return -(-microusd_times_unit // TOKENS_PER_PRICE_UNIT)  # Ceiling keeps money integral.
