from dataclasses import replace

import pytest

from audits.metrics import Settings, debate_figures, debate_tables
from audits.metrics.errors import (
    DifferentStartError,
    QuestionSetsDifferError,
)
from audits.metrics.records import AS_LOGGED, RunRow, Usage
from tests.audits.metrics.builders import find, outcome, run, state, trajectories, trajectory

QUICK = Settings(resamples=500)


def test_repair_and_damage_of_unequal_questions_pooled_and_macro_g01() -> None:
    figures = debate_figures(
        trajectories(
            [[0, 0, 1], [1, 1], [0, 0, 0, 0], [1, 1, 1]],
            [[1, 0, 1], [0, 1], [1, 1, 1, 0], [1, 1, 0]],
        ),
        settings=QUICK,
    )
    repair, damage = find(figures, "repair_T", "pooled", by={}), find(figures, "damage_T", "pooled")
    assert (repair.num, repair.den, repair.n_questions, repair.n_undefined) == (4, 6, 2, 2)
    assert repair.value == pytest.approx(4 / 6, abs=1e-6)
    assert repair.se_cluster == pytest.approx(0.1111111, abs=1e-6)
    assert (damage.num, damage.den) == (2, 6)
    assert find(figures, "repair_T", "macro").value == pytest.approx(0.625, abs=1e-6)
    macro_damage = find(figures, "damage_T", "macro")
    assert macro_damage.value == pytest.approx(0.2777778, abs=1e-6)
    assert macro_damage.n_questions == 3
    before = find(figures, "agent_accuracy_0", "pooled").value
    after = find(figures, "agent_accuracy_T", "pooled").value
    assert before is not None and after is not None
    assert after - before == pytest.approx(1 / 6, abs=1e-6)


def test_repair_is_null_with_a_reason_when_nobody_was_wrong_g02() -> None:
    figures = debate_figures(trajectories([[1, 1], [1, 1]], [[1, 0], [1, 1]]), settings=QUICK)
    for agg in ("pooled", "macro"):
        repair = find(figures, "repair_T", agg)
        assert repair.value is None and repair.ci is None
        assert repair.reason == "no agent was wrong before"
        assert repair.n_undefined == 2
    assert find(figures, "damage_T", "pooled").value == 0.25
    assert find(figures, "damage_T", "macro").value == 0.25


def run_of_g03() -> RunRow:
    return run(
        "q",
        [
            state("a", 0, True),
            state("a", 1, True, status="TIMEOUT"),
            state("b", 0, False, answer=None, status="INVALID"),
            state("b", 1, False, answer=None, status="INACTIVE"),
            state("c", 0, False),
            state("c", 1, True),
        ],
    )


def test_failed_agents_stay_in_every_denominator_g03() -> None:
    figures = debate_figures([run_of_g03()], settings=QUICK)
    repair, damage = find(figures, "repair_T", "pooled", by={}), find(figures, "damage_T", "pooled")
    assert (repair.num, repair.den) == (1, 2)
    assert (damage.num, damage.den) == (0, 1)
    admitted = find(figures, "revision_admitted", "pooled")
    assert (admitted.num, admitted.den) == (1, 2)
    assert find(figures, "revision_attempted", "pooled").value == 1
    assert find(figures, "retained", "pooled").num == 1
    assert find(figures, "inactive", "pooled").num == 1
    valid = find(figures, "repair_T", "pooled", by={"variant": "valid_initial"})
    assert (valid.num, valid.den) == (1, 1)


def test_nothing_is_retained_where_a_log_is_scored_reply_by_reply() -> None:
    figures = debate_figures([replace(run_of_g03(), stop_reason=AS_LOGGED)], settings=QUICK)
    retained = find(figures, "retained", "pooled")
    assert retained.value is None and "reply by reply" in (retained.reason or "")
    assert find(figures, "revision_admitted", "pooled").num == 1


def test_statuses_are_counted_by_round_g03() -> None:
    tables = debate_tables([run_of_g03()])
    statuses, moves = tables["status_by_round"], tables["transitions"]
    assert isinstance(statuses, list)
    assert isinstance(moves, list)
    counts = {(row["round"], row["status"]): row["n"] for row in statuses}
    assert counts[1, "TIMEOUT"] == 1
    assert counts[0, "INVALID"] == 1
    assert moves[0]["valid_initial"] == 2


def test_two_agents_have_no_minority_and_half_is_reported_apart_g04() -> None:
    cases = [(3, 0, 1), (3, 0, 0), (4, 1, 0), (4, 2, 0), (5, 2, 1), (5, 3, 1), (2, 1, 0)]
    runs = [
        trajectory(f"q{i}", [[1] * k + [0] * (n - k)] * 2, [0, z])
        for i, (n, k, z) in enumerate(cases)
    ]
    figures = debate_figures(runs, settings=QUICK)
    rescued = find(figures, "all_wrong_rescued", "pooled")
    lost = find(figures, "correct_minority_lost", "pooled", by={"aggregator": "plurality"})
    half = find(figures, "correct_minority_lost", "pooled", by={"variant": "half"})
    assert (rescued.num, rescued.den) == (1, 2)
    assert (lost.num, lost.den) == (1, 2)
    assert (half.num, half.den) == (2, 2)
    assert find(figures, "minority_won", "pooled").value == 0.5
    assert find(figures, "majority_lost", "pooled").value == 0
    vanished = find(
        figures, "correct_minority_lost", "pooled", by={"variant": "no_final_candidate"}
    )
    assert (vanished.num, vanished.den) == (0, 2)
    already = find(figures, "correct_minority_lost", "pooled", by={"plurality_0": "wrong"})
    assert (already.num, already.den) == (1, 2)


def test_round_zero_agreement_counts_missing_agents_as_disagreement_g05() -> None:
    initial: list[list[str | None]] = [
        ["A", "A", "A"],
        ["A", "A", "B"],
        ["B", "B", "B"],
        ["A", None, "A"],
        [None] * 3,
    ]
    runs = [
        run(
            f"q{i}",
            [
                state(
                    f"a{j}", 0, None if answer is None else answer == "A", answer=answer,
                    status="SUCCEEDED" if answer else "INVALID",
                )
                for j, answer in enumerate(row)
            ]
            + [state("a0", 1, False, answer=row[0], status="SUCCEEDED" if row[0] else "INACTIVE")],
            [outcome(1, z)],
            agents=["a0", "a1", "a2"],
        )
        for i, (row, z) in enumerate(zip(initial, [1, 1, 0, 1, 0], strict=True))
    ]  # fmt: skip
    figures = debate_figures(runs, settings=QUICK)
    assert find(figures, "round_zero_agreement_strict").value == pytest.approx(0.4)
    assert find(figures, "round_zero_agreement_admitted").value == pytest.approx(0.6)
    by = {"agreement": "strict", "at": "T"}
    assert find(figures, "accuracy_given_agreement", "pooled", by=by).value == 0.5
    split = find(figures, "accuracy_given_disagreement", "pooled", by=by)
    assert split.value == pytest.approx(0.6666667, abs=1e-6)
    never = find(figures, "accuracy_0")
    assert never.value is None and never.reason == "the aggregator gave no outcome at round 0"
    assert find(figures, "accuracy_change").value is None


def test_agreeing_to_abstain_is_no_agreement() -> None:
    silent = [state(f"a{j}", 0, False, answer="ABSTAIN", abstains=True) for j in range(3)]
    figures = debate_figures([run("q", silent, rounds=1)], settings=QUICK)
    assert find(figures, "round_zero_agreement_strict").value == 0
    assert find(figures, "round_zero_agreement_admitted").value == 0


def test_coverage_and_error_among_the_answered_g06() -> None:
    outcomes = [outcome(0, 1)] * 6 + [outcome(0, 0)] + [outcome(0, 0, abstained=True)] * 2
    runs = [
        run(f"q{i}", [state("a", 0, False)], [row], rounds=1) for i, row in enumerate(outcomes)
    ] + [run("q9", [state("a", 0, False, answer=None, status="TIMEOUT")], rounds=1)]
    figures = debate_figures(runs, settings=QUICK)
    assert find(figures, "coverage").value == pytest.approx(0.7)
    assert find(figures, "error_given_answered", "pooled").value == pytest.approx(
        0.1428571, abs=1e-6
    )
    assert find(figures, "accuracy_T").value == pytest.approx(0.6)
    assert find(figures, "abstained").value == pytest.approx(0.2)
    assert find(figures, "failed").value == pytest.approx(0.1)


def test_error_among_the_answered_is_null_when_nobody_answers_g06() -> None:
    silent = run("q", [state("a", 0, False)], [outcome(0, 0, abstained=True)], rounds=1)
    figures = debate_figures([silent], settings=QUICK)
    error = find(figures, "error_given_answered", "pooled")
    assert error.value is None and error.reason == "nobody answered"


START = [[0, 0, 1], [0, 1]]


def test_excess_repair_and_damage_over_the_arm_that_revised_alone_g23() -> None:
    debate = trajectories(START, [[1, 0, 1], [1, 1]])
    alone = trajectories(START, [[0, 1, 1], [0, 0]], condition="alone", branch_of="debate")
    figures = debate_figures(debate, same_start=alone, settings=QUICK)
    assert figures[0].metric == "excess_repair_T"  # they lead where the arm exists
    assert figures[0].value == pytest.approx(0.3333333, abs=1e-6)
    excess_damage = find(figures, "excess_damage_T", "pooled")
    assert excess_damage.value == pytest.approx(-0.5)
    assert find(figures, "repair_T", "pooled").value == pytest.approx(2 / 3)
    assert find(figures, "damage_T", "pooled").value == 0
    assert "includes resampling" not in find(figures, "repair_T", "pooled").notes


def test_raw_rates_say_that_they_include_resampling() -> None:
    figures = debate_figures(trajectories(START, START), settings=QUICK)
    assert "includes resampling" in find(figures, "repair_T", "pooled").notes
    assert "few questions" in find(figures, "repair_T", "pooled").notes


def test_an_arm_with_another_start_is_refused() -> None:
    debate = trajectories(START, START)
    other = trajectories([[1, 0, 1], [0, 1]], START, condition="alone", branch_of="debate")
    with pytest.raises(DifferentStartError, match="other initial answers"):
        debate_figures(debate, same_start=other, settings=QUICK)
    with pytest.raises(QuestionSetsDifferError, match="1 only in the first"):
        debate_figures(debate, same_start=other[1:], settings=QUICK)


def test_one_step_rates_count_only_questions_that_opened_the_round() -> None:
    runs = [
        trajectory("q0", [[0, 0], [0, 1], [1, 1]], [0, 0, 1]),
        trajectory("q1", [[0, 0], [1, 1]], [0, 1]),
        trajectory("q2", [[0, 0]], [0]),
    ]
    figures = debate_figures(runs, settings=QUICK)
    first = find(figures, "repair_t", "pooled", t=1)
    second = find(figures, "repair_t", "pooled", t=2)
    assert (first.num, first.den, first.n_questions) == (3, 4, 2)
    assert (second.num, second.den, second.n_questions) == (1, 1, 1)
    # States are carried forward: the questions that stopped still count by round.
    by_round = [find(figures, "plurality_accuracy", t=t).num for t in range(3)]
    assert by_round == [0, 1, 2]
    rounds = debate_tables(runs)["rounds"]
    assert rounds == [
        {"round": 0, "opened": 3}, {"round": 1, "opened": 2}, {"round": 2, "opened": 1}
    ]  # fmt: skip


def test_runs_are_averaged_within_their_question_and_never_enlarge_n() -> None:
    once = [
        trajectory("q0", [[0, 1, 0, 1], [1, 1, 0, 1]], [0, 1]),
        trajectory("q1", [[0, 1, 0, 1], [0, 0, 0, 1]], [0, 0]),
    ]
    many = [replace(r, seed=seed, run_key=f"{r.run_key}-{seed}") for r in once for seed in range(5)]
    one, five = (debate_figures(runs, settings=QUICK) for runs in (once, many))
    for metric in ("repair_T", "damage_T", "agent_accuracy_T"):
        a, b = find(one, metric, "pooled"), find(five, metric, "pooled")
        assert (a.num, a.den, a.se_cluster, a.ci) == (b.num, b.den, b.se_cluster, b.ci)
    assert find(five, "accuracy_T").n_questions == 2
    assert find(five, "accuracy_T").between_run_sd == 0
    assert find(one, "accuracy_T").between_run_sd is None


def test_between_run_sd_is_over_seeds() -> None:
    runs = [
        trajectory(f"q{i}", [[0], [z]], [0, z], seed=seed)
        for seed, zs in ((1, (1, 1)), (2, (0, 0)))
        for i, z in enumerate(zs)
    ]
    accuracy = find(debate_figures(runs, settings=QUICK), "accuracy_T")
    assert accuracy.value == 0.5
    assert accuracy.between_run_sd == pytest.approx(0.7071068)


def test_an_open_question_has_no_correctness_figure_but_keeps_its_coverage() -> None:
    states = [state(f"a{j}", t, None, answer="essay") for j in range(2) for t in range(2)]
    figures = debate_figures([run("q", states, [outcome(1, 0)])], settings=QUICK)
    accuracy = find(figures, "accuracy_T")
    assert accuracy.value is None and accuracy.reason == "no question has an objective check"
    assert find(figures, "mean_phi", by={"at": "0"}).value is None
    assert find(figures, "revision_admitted", "pooled").value == 1
    assert find(figures, "coverage").value == 1


def test_an_instrument_that_gave_nothing_counts_zero_with_bounds_beside_it() -> None:
    states = [state("a", 0, True), state("b", 0, None, answer="x"), state("c", 0, False)]
    runs = [run("q", states, rounds=1)]
    assert find(debate_figures(runs, settings=QUICK), "agent_accuracy_T", "pooled").num == 1
    instrument = debate_tables(runs)["instrument"]
    assert instrument == {
        "unscored_states": 1,
        "agent_accuracy_T_low": 1 / 3,
        "agent_accuracy_T_high": 2 / 3,
        "agent_accuracy_T_scored_only": 1 / 2,
        "n_scored": 2,
    }


def test_a_run_that_never_opened_keeps_its_agents_in_the_denominators() -> None:
    dead = run("q1", [], [], agents=["a0", "a1"], rounds=0)
    figures = debate_figures([trajectory("q0", [[1, 1]], [1]), dead], settings=QUICK)
    assert find(figures, "accuracy_T").value == 0.5
    assert find(figures, "agent_accuracy_T", "pooled").value == 0.5
    assert find(figures, "inactive", "pooled").den == 4
    assert find(figures, "inactive", "pooled").num == 2


def test_a_condition_without_runs_has_only_null_figures() -> None:
    figures = debate_figures([], settings=QUICK)
    rates = [f for f in figures if f.den is not None]
    assert rates and all(f.value is None and f.reason for f in rates)


def test_nothing_could_be_repaired_where_no_revision_round_was_opened() -> None:
    figures = debate_figures([trajectory("q0", [[0, 1]], [1])], settings=QUICK)
    for metric in ("repair_T", "damage_T"):
        assert find(figures, metric, "pooled").reason == "no revision round was opened"


def test_every_aggregator_is_shown_on_the_same_candidates() -> None:
    states = [state(f"a{i}", t, i == 0) for i in range(3) for t in range(2)]
    outcomes = [outcome(t, 0, tied=True, abstained=True) for t in range(2)]
    outcomes += [outcome(t, 1, aggregator="judge") for t in range(2)]
    runs = [run("q", states, outcomes)]
    figures = debate_figures(runs, settings=QUICK)
    headline = find(figures, "accuracy_T")
    assert (headline.by["aggregator"], headline.value) == ("judge", 1)
    assert find(figures, "accuracy_T", by={"aggregator": "plurality"}).value == 0
    assert find(figures, "aggregation_loss", by={"aggregator": "plurality"}).value == 1
    assert find(figures, "oracle_any", by={"at": "T"}).value == 1
    assert find(figures, "plurality_tied", t=1).num == 1
    chosen = debate_figures(runs, aggregator="plurality", settings=QUICK)
    assert find(chosen, "accuracy_T").value == 0
    table = debate_tables(runs)["aggregators"]
    assert isinstance(table, list)
    assert [row["tied"] for row in table if row["aggregator"] == "plurality"] == [1, 1]


def test_a_condition_that_was_never_aggregated_has_no_accuracy_of_an_aggregate() -> None:
    figures = debate_figures(trajectories([[1, 0, 0]], [[1, 0, 0]]), settings=QUICK)
    reason = "no run has an outcome of this aggregator"
    assert find(figures, "accuracy_T").reason == reason
    assert find(figures, "coverage").reason == reason
    assert find(figures, "correct_minority_lost", "pooled").value is None
    assert find(figures, "agent_accuracy_T", "pooled").value == pytest.approx(1 / 3)


def test_a_run_without_an_outcome_counts_as_wrong_where_others_have_one() -> None:
    runs = [trajectory("q0", [[1], [1]], [1, 1]), trajectory("q1", [[1], [1]])]
    figures = debate_figures(runs, settings=QUICK)
    assert find(figures, "accuracy_T").value == 0.5
    assert find(figures, "failed").value == 0.5
    start = find(figures, "accuracy_0")
    assert (start.value, start.n_questions, start.n_undefined) == (1, 1, 1)


def test_oscillators_cross_at_least_twice() -> None:
    runs = [trajectory("q0", [[0, 0, 1], [1, 1, 0], [0, 1, 0]])]
    oscillators = find(debate_figures(runs, settings=QUICK), "oscillators", "pooled")
    assert (oscillators.num, oscillators.den) == (1, 3)


def test_usage_is_a_total_and_a_mean_per_question() -> None:
    runs = [
        replace(r, usage=Usage(calls=3 + i, cost_microusd=100, held_microusd=20))
        for i, r in enumerate(trajectories([[1], [1]], [[1], [1]]))
    ]
    figures = debate_figures(runs, settings=QUICK)
    assert find(figures, "calls").value == 7
    assert find(figures, "calls", "macro").value == 3.5
    assert debate_tables(runs)["cost_range_microusd"] == {"low": 200, "high": 240}


def test_usage_that_was_not_recorded_is_unknown_not_nothing() -> None:
    known, unknown = trajectories([[1], [1]], [[1], [1]])
    runs = [
        replace(known, usage=Usage(calls=4)),
        replace(unknown, usage=Usage(calls=None, cost_microusd=None)),
    ]
    figures = debate_figures(runs, settings=QUICK)
    total = find(figures, "calls")
    assert total.value is None
    assert total.reason == "not recorded by 1 of 2 runs"
    mean = find(figures, "calls", "macro")
    assert (mean.value, mean.n_questions, mean.n_undefined) == (4, 1, 1)
    assert debate_tables(runs)["cost_range_microusd"] == {"low": None, "high": None}


def test_strata_are_shown_where_there_are_several() -> None:
    runs = [
        trajectory("q0", [[1], [1]], [1, 1], stratum="easy"),
        trajectory("q1", [[0], [0]], [0, 0], stratum="hard"),
    ]
    figures = debate_figures(runs, settings=QUICK)
    assert find(figures, "accuracy_T", by={"stratum": "easy"}).value == 1
    assert find(figures, "accuracy_T", by={"stratum": "hard"}).value == 0


def test_a_sequential_start_has_no_independent_errors() -> None:
    runs = trajectories([[0, 1], [1, 0]], [[1, 1], [0, 1]])
    figures = debate_figures(runs, blind_start=False, settings=QUICK)
    assert "sequentially" in (find(figures, "rho_cov", by={"at": "0"}).reason or "")
    assert "sequentially" in (find(figures, "within_run_dependence").reason or "")
    assert find(figures, "accuracy_0").reason == "the aggregator gave no outcome at round 0"
