import pytest

from audits.metrics import debate_figures
from audits.metrics.errors import BadRowError, DuplicateRunError, MixedConditionsError
from audits.metrics.panel import build_panel
from tests.audits.metrics.builders import outcome, run, state, trajectory


def test_rows_that_contradict_their_run_are_refused_in_one_line() -> None:
    good = trajectory("q0", [[1], [1]])
    with pytest.raises(DuplicateRunError):
        debate_figures([good, good])
    with pytest.raises(MixedConditionsError, match="alone, debate"):
        debate_figures([good, trajectory("q0", [[1]], condition="alone")])
    with pytest.raises(BadRowError, match="agent z is not configured"):
        debate_figures([run("q", [state("z", 0, True)], agents=["a"])])
    with pytest.raises(BadRowError, match="LOST is not a status"):
        debate_figures([run("q", [state("a", 0, True, status="LOST")])])
    with pytest.raises(BadRowError, match="two rows of a at t=0"):
        debate_figures([run("q", [state("a", 0, True), state("a", 0, True)])])
    with pytest.raises(BadRowError, match="outcome at t=2 of 2 rounds"):
        debate_figures([trajectory("q0", [[1], [1]], [1, 1, 1])])
    twice = [outcome(0, 1), outcome(0, 0)]
    with pytest.raises(BadRowError, match="two outcomes of plurality at t=0"):
        debate_figures([run("q", [state("a", 0, True)], twice)])
    with pytest.raises(BadRowError, match="in two families"):
        debate_figures(
            [trajectory("q0", [[1]], family="f"), trajectory("q0", [[1]], seed=2, family="g")]
        )


def test_states_and_the_last_outcome_are_carried_to_the_end_of_the_longest_run() -> None:
    panel = build_panel(
        [trajectory("q0", [[0], [1]], [0, 1]), trajectory("q1", [[0], [0], [0], [1]], [0, 0, 0, 1])]
    )
    assert panel.correct[0, :, 0].tolist() == [False, True, True, True]
    assert panel.outcomes["plurality"].correct[0].tolist() == [False, True, True, True]
    assert panel.admitted[0, :, 0].tolist() == [True, True, False, False]


def test_an_outcome_missing_between_two_is_not_invented() -> None:
    states = [state("a", t, True) for t in range(3)]
    panel = build_panel([run("q", states, [outcome(0, 1), outcome(2, 1)], rounds=3)])
    assert panel.outcomes["plurality"].ran[0].tolist() == [True, False, True]


def test_a_row_without_a_valid_state_is_never_right() -> None:
    panel = build_panel([run("q", [state("a", 0, True, answer=None, status="FAILED")], rounds=1)])
    assert not panel.correct.any()


def test_an_outcome_without_an_answer_is_never_right() -> None:
    panel = build_panel([run("q", [state("a", 0, True)], [outcome(0, 1, unresolved=True)])])
    assert not panel.outcomes["plurality"].correct.any()


def test_runs_come_in_the_same_order_whatever_order_they_were_given_in() -> None:
    runs = [trajectory(f"q{i}", [[1]], seed=seed) for i in (2, 0, 1) for seed in (2, 1)]
    keys = [r.run_key for r in build_panel(runs).runs]
    assert keys == [r.run_key for r in build_panel(reversed(runs)).runs]
    assert keys == sorted(keys)
