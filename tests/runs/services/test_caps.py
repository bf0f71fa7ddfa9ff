"""Caps: what a run may use, and what is refused because no run could begin under it (S31)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.ledger import Amount, Price
from runs.experiment_file import BudgetSpec
from runs.models import Experiment
from runs.protocols import cost
from runs.protocols.presets import load_preset
from runs.services.caps import caps_that_admit_nothing, opening_bound, run_cap
from runs.services.faults import DesignError
from tests.runs import factories

SIZES = cost.Sizes(question_bytes=100)
PRICE = Price(1_000_000, 1_000_000, 10_000_000)
AMOUNTS = st.builds(Amount, st.integers(0, 10**6), st.integers(1, 10**6))
CAPS = st.none() | st.integers(0, 10**7)


def test_a_run_opens_with_one_call_of_each_agent_and_what_is_kept_for_the_end() -> None:
    protocol = load_preset("du_2023_corrected")
    first = [call for call in cost.bound(protocol, SIZES).per_call if call.t == 0]
    opening = opening_bound(protocol, SIZES, {"default": PRICE})
    assert opening.output_tokens == sum(call.output_tokens for call in first)
    assert opening.microusd == sum(c.input_tokens + 10 * c.output_tokens for c in first)
    limits = protocol.limits.model_copy(update={"final_microusd": 500})
    kept = protocol.model_copy(update={"limits": limits})
    assert opening_bound(kept, SIZES, {"default": PRICE}).microusd == opening.microusd + 500


def test_where_a_round_takes_what_can_be_paid_one_call_is_enough_to_begin() -> None:
    protocol = load_preset("du_2023_corrected")
    limits = protocol.limits.model_copy(update={"round_reservation": "seeded_order"})
    one_by_one = protocol.model_copy(update={"limits": limits})
    all_of_them = opening_bound(protocol, SIZES, {"default": PRICE})
    least = opening_bound(one_by_one, SIZES, {"default": PRICE})
    assert 3 * least.output_tokens == all_of_them.output_tokens


@given(bound=AMOUNTS, opening=AMOUNTS, per_run=CAPS, tokens=CAPS, total=CAPS)
def test_a_cap_is_refused_exactly_where_no_run_could_begin(
    bound: Amount, opening: Amount, per_run: int | None, tokens: int | None, total: int | None
) -> None:
    budget = BudgetSpec(
        microusd_per_run=per_run, output_tokens_per_run=tokens, microusd_total=total
    )
    cap = run_cap(budget, bound)
    faults = list(caps_that_admit_nothing(budget, arm="a", bound=bound, opening=opening))
    assert any("microusd_per_run: " in f for f in faults) == (cap.microusd < opening.microusd)
    assert any("tokens_per_run: " in f for f in faults) == (
        cap.output_tokens < opening.output_tokens
    )
    sets_aside_too_much = per_run is None and total is not None and total < cap.microusd
    assert any("microusd_total: " in f for f in faults) == sets_aside_too_much


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"microusd_per_run": 100}, "budget.microusd_per_run: 100 does not pay"),
        ({"output_tokens_per_run": 10}, "budget.output_tokens_per_run: 10 is less"),
        ({"microusd_total": 100}, "budget.microusd_total: 100 is less"),
        ({"stage": {"questions": 5}}, "budget.stage.questions: 5 questions are wanted, 4 are"),
    ],
)
def test_what_could_never_run_is_refused_with_its_field_and_nothing_is_made(
    tmp_path: Path, budget: dict[str, object], said: str
) -> None:
    with pytest.raises(DesignError) as caught:
        factories.experiment(tmp_path, question_count=4, budget=budget)
    assert str(caught.value).startswith(said)
    assert not Experiment.objects.exists()


@pytest.mark.django_db
def test_a_limit_beyond_the_set_is_refused_as_a_sample_beyond_it_is(tmp_path: Path) -> None:
    with pytest.raises(DesignError, match="limit: 5 questions are wanted, 4 are there"):
        factories.experiment(tmp_path, question_count=4, limit=5)
    with pytest.raises(DesignError, match=r"stage\.questions: 3 questions are wanted, 2"):
        factories.experiment(
            tmp_path, question_count=4, limit=2, budget={"stage": {"questions": 3}}
        )
    assert factories.experiment(tmp_path, question_count=4, limit=4).runs.count() == 4
