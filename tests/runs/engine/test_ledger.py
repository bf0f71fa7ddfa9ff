"""The ledger's arithmetic (S31, S32): nothing is created, nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.ledger import (
    Amount,
    Price,
    Settlement,
    cost,
    fits,
    reserve_bound,
    settlement,
)
from runs.providers.base import Usage

tokens = st.integers(min_value=0, max_value=10**7)
per_mtok = st.integers(min_value=0, max_value=10**9)
prices = st.builds(Price, per_mtok, per_mtok, per_mtok)
amounts = st.builds(Amount, st.integers(0, 10**12), tokens)
counts = st.none() | st.integers(min_value=-5, max_value=10**7)
usages = st.none() | st.builds(Usage, counts, counts, counts, counts)
words = st.sampled_from(["yes", "no", "maybe"])

MINI = Price(400_000, 100_000, 1_600_000)


@given(reserved=amounts, usage=usages, billed=words, price=prices)
def test_settle_hold_and_release_are_together_what_was_reserved(
    reserved: Amount, usage: Usage | None, billed: str, price: Price
) -> None:
    end = settlement(reserved=reserved, usage=usage, billed=billed, price=price)
    assert end.settle + end.hold + end.release == reserved
    for part in (end.settle, end.hold, end.release, end.overrun):
        assert min(part.microusd, part.output_tokens) >= 0


@given(reserved=amounts, input_tokens=tokens, cached=tokens, output=tokens, price=prices)
def test_known_use_is_settled_and_its_excess_is_overrun(
    reserved: Amount, input_tokens: int, cached: int, output: int, price: Price
) -> None:
    usage = Usage(input_tokens, cached, output)
    end = settlement(reserved=reserved, usage=usage, billed="yes", price=price)
    assert end.settle + end.overrun == Amount(cost(usage, price), output)
    assert end.hold == Amount()
    assert end.overran == (
        cost(usage, price) > reserved.microusd or output > reserved.output_tokens
    )


@given(bound=tokens, cap=tokens, price=prices, data=st.data())
def test_use_within_its_bounds_never_overruns_its_reservation(
    bound: int, cap: int, price: Price, data: st.DataObject
) -> None:
    reserved = reserve_bound(input_token_bound=bound, max_output_tokens=cap, price=price)
    input_tokens = data.draw(st.integers(0, bound))
    usage = Usage(
        input_tokens, data.draw(st.integers(0, input_tokens)), data.draw(st.integers(0, cap))
    )
    assert not settlement(reserved=reserved, usage=usage, billed="yes", price=price).overran


def test_a_bound_and_a_cost_are_rounded_up_once_for_the_whole_call() -> None:
    assert reserve_bound(input_token_bound=1, max_output_tokens=1, price=MINI) == Amount(2, 1)
    assert cost(Usage(1000, 600, 200), MINI) == 160 + 60 + 320
    assert cost(Usage(1, 0, 0), MINI) == 1


def test_a_cached_price_above_the_fresh_one_is_bounded_too() -> None:
    odd = Price(100, 5_000_000, 0)
    assert reserve_bound(input_token_bound=10, max_output_tokens=0, price=odd).microusd == 50


def test_a_cached_part_above_the_input_is_cut_to_the_input() -> None:
    assert cost(Usage(1_000_000, 5_000_000, 0), MINI) == 100_000


def test_a_call_that_was_certainly_not_billed_is_released() -> None:
    reserved = Amount(70, 7)
    end = settlement(reserved=reserved, usage=None, billed="no", price=MINI)
    assert end == Settlement(release=reserved)


@pytest.mark.parametrize(
    ("usage", "billed"),
    [
        (None, "yes"),
        (Usage(), "yes"),
        (Usage(10, 0, None), "yes"),
        (Usage(10, 0, -1), "yes"),
        (Usage(10, 0, 5), "maybe"),
    ],
)
def test_use_that_nobody_knows_for_sure_stays_held(usage: Usage | None, billed: str) -> None:
    reserved = Amount(70, 7)
    end = settlement(reserved=reserved, usage=usage, billed=billed, price=MINI)
    assert end == Settlement(hold=reserved)


def test_unknown_use_has_no_cost_rather_than_a_cost_of_zero() -> None:
    with pytest.raises(ValueError, match="did not report"):
        cost(Usage(10, 0, None), MINI)


def test_a_free_model_costs_nothing_and_still_uses_its_output_tokens() -> None:
    free = Price.free()
    assert reserve_bound(input_token_bound=9, max_output_tokens=4, price=free) == Amount(0, 4)
    assert cost(Usage(9, 0, 4), free) == 0


@given(cap=amounts, used=amounts, want=amounts)
def test_what_fits_keeps_the_total_within_the_cap_in_both_units(
    cap: Amount, used: Amount, want: Amount
) -> None:
    rest = cap - used - want
    assert fits(cap, used, want) == (rest.microusd >= 0 and rest.output_tokens >= 0)


def test_negative_counts_prices_and_unknown_words_are_refused() -> None:
    with pytest.raises(ValueError, match="token counts"):
        reserve_bound(input_token_bound=-1, max_output_tokens=0, price=MINI)
    with pytest.raises(ValueError, match="price"):
        Price(-1, 0, 0)
    with pytest.raises(ValueError, match="billed"):
        settlement(reserved=Amount(), usage=None, billed="perhaps", price=MINI)
