"""The experiment file: what it means, its defaults, and every fault with its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.metrics import PAIRED_METRICS
from runs.experiment_file import (
    AnalysisSpec,
    BranchFrom,
    BudgetSpec,
    Match,
    RouteSpec,
    SampleSpec,
    StageSpec,
    analysis_hash,
    frozen_analysis,
    parse,
    unsupported,
)
from runs.metric_names import METRICS
from runs.protocols.yaml12 import FileFaultError

unhurried = settings(deadline=None)  # Machines are busy; time is no property here.
SMALL = """\
name: small
questions: set
arms:
  - {name: one, protocol: single, models: {default: m}}
"""
FULL = """\
name: full
questions: my-questions.jsonl
sample: {n: 20, seed: 4, by: stratum}
seeds: [3, 1]
arms:
  - {name: debate, protocol: du_2023, models: {default: openai/x, b: ollama/y}}
  - {name: alone, protocol: independent_revision, branch_from: {arm: debate, t: 0}}
  - {name: vote, protocol: self_consistency, match: {arm: alone, by: microusd}}
  - {name: five, protocol: self_consistency, models: {default: "recorded:log"}, agents: 5}
evidence_package: docs
route: {when: disagreement, from: vote}
budget:
  microusd_per_run: 20000
  output_tokens_per_run: 8000
  microusd_total: 5000000
  deadline_seconds: 600
  stage: {questions: 20, confirm_above_microusd: 500000}
analysis:
  primary: [accuracy_T, coverage]
  contrasts: [[debate, vote], [debate, alone]]
  family: none
  margin: 2e-2
  alpha: 0.1
  split: test
  stop_rule: fixed
concurrency: 8
"""


def faults(text: str) -> list[str]:
    with pytest.raises(FileFaultError) as caught:
        parse(text, "e.yaml")
    return list(caught.value.lines)


def test_a_small_file_gets_the_documented_defaults() -> None:
    spec = parse(SMALL, "e.yaml")
    assert (spec.limit, spec.sample, spec.seeds, spec.concurrency) == (None, None, (1,), 64)
    assert spec.budget == BudgetSpec(None, None, None, None, None)
    assert spec.analysis == AnalysisSpec(
        primary=("accuracy_T",),
        contrasts=(),
        family="holm",
        margin=None,
        alpha=0.05,
        split=None,
        stop_rule="fixed",
    )


def test_a_full_file_is_read_whole() -> None:
    spec = parse(FULL, "e.yaml")
    assert spec.sample == SampleSpec(20, 4, "stratum")
    assert spec.seeds == (3, 1)
    assert spec.arm("debate").models == {"default": "openai/x", "b": "ollama/y"}
    assert spec.arm("alone").branch_from == BranchFrom("debate", 0)
    assert spec.arm("vote").match == Match("alone", "microusd")
    assert spec.arm("five").agents == 5
    assert (spec.evidence_package, spec.route) == ("docs", RouteSpec("disagreement", "vote"))
    assert spec.budget == BudgetSpec(20000, 8000, 5000000, 600, StageSpec(20, 500000))
    assert spec.analysis.contrasts == (("debate", "vote"), ("debate", "alone"))
    assert (spec.analysis.family, spec.analysis.margin, spec.analysis.alpha) == ("none", 0.02, 0.1)


def test_an_arm_without_models_has_those_of_the_arm_that_it_follows() -> None:
    spec = parse(FULL, "e.yaml")
    assert spec.models_of("vote") == spec.models_of("alone") == spec.arm("debate").models
    assert spec.models_of("five") == {"default": "recorded:log"}


def test_what_cannot_be_executed_yet_is_said_part_by_part() -> None:
    late = FULL.replace("t: 0", "t: 2")
    assert unsupported(parse(late, "e.yaml")) == [
        "arms[1].branch_from.t: branching at t = 2 cannot be executed yet; only t = 0 can",
        "evidence_package: evidence packages cannot be executed yet",
        "route: routing cannot be executed yet",
    ]
    assert unsupported(parse(SMALL, "e.yaml")) == []


def test_yes_and_no_are_names_and_not_truth_values() -> None:
    spec = parse(SMALL.replace("name: one", "name: no"), "e.yaml")
    assert spec.arms[0].name == "no"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("name: small\n", "", "e.yaml:1: name: is missing"),
        ("small", "a b", "e.yaml:1: name: 'a b' may hold letters, digits, dots, dashes and"),
        ("small", "[a]", "e.yaml:1: name: must be text, not a list"),
        ("questions: set\n", "", "e.yaml:1: questions: is missing"),
        ("questions:", "qestions:", "e.yaml:2: qestions: is no key of this part; did you mean q"),
        ("questions: set", "questions: 5", "e.yaml:2: questions: must be text, not 5"),
        ("arms:", "limit: 0\narms:", "e.yaml:3: limit: must be from 1 to "),
        ("arms:", "limit: 1.5\narms:", "e.yaml:3: limit: must be a whole number, not 1.5"),
        (
            "arms:",
            "limit: 3\nsample: {n: 2}\narms:",
            "e.yaml:4: sample: stands beside limit; only one of them",
        ),
        ("arms:", "sample: {seed: 2}\narms:", "e.yaml:3: sample.n: is missing"),
        ("arms:", "sample: 5\narms:", "e.yaml:3: sample: must be a mapping, not 5"),
        (
            "arms:",
            "sample: {n: 1, by: topic}\narms:",
            "e.yaml:3: sample.by: must be stratum or family, not 'topic'",
        ),
        ("arms:", "seeds: []\narms:", "e.yaml:3: seeds: must list at least one seed"),
        ("arms:", "seeds: 3\narms:", "e.yaml:3: seeds: must be a list, not 3"),
        ("arms:", "seeds: [1, -1]\narms:", "e.yaml:3: seeds[1]: must be from 0 to "),
        (
            "arms:",
            "seeds: [1, true]\narms:",
            "e.yaml:3: seeds[1]: must be a whole number, not true",
        ),
        ("arms:", "seeds:\n- 1\n- 1\narms:", "e.yaml:5: seeds[1]: 1 stands twice"),
        ("arms:", "seeds: [9007199254740992]\narms:", "e.yaml:3: 9007199254740992 is beyond 2^53"),
        ("arms:", "concurrency: 0\narms:", "e.yaml:3: concurrency: must be from 1 to 1024, not 0"),
        ("protocol: single, ", "", "e.yaml:4: arms[0].protocol: is missing"),
        (", models: {default: m}", "", "e.yaml:4: arms[0].models: is missing; write models: {def"),
        ("{default: m}", "{}", "e.yaml:4: arms[0].models: names no model"),
        ("{default: m}", "{default: 3}", "e.yaml:4: arms[0].models.default: must be text, not 3"),
        ("{default: m}", "m", "e.yaml:4: arms[0].models: must be a mapping, not 'm'"),
        (
            "models:",
            "agents: 65, models:",
            "e.yaml:4: arms[0].agents: must be from 1 to 64, not 65",
        ),
        ("name: small", "name: small\nname: b", "e.yaml:2: duplicate key 'name', first on line 1"),
        ("name: small", "name: [", "e.yaml:"),
    ],
)
def test_a_faulty_file_is_refused_by_line_and_field(old: str, new: str, fault: str) -> None:
    assert old in SMALL
    found = faults(SMALL.replace(old, new))
    assert any(line.startswith(fault) for line in found), found


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("name: vote,", "name: alone,", "e.yaml:8: arms[2].name: 'alone' names two arms"),
        (
            "{arm: debate, t: 0}",
            "{arm: vote, t: 0}",
            "e.yaml:7: arms[1].branch_from.arm: 'vote' is not an arm listed before",
        ),
        (
            "{arm: debate, t: 0}",
            "{arm: alone, t: 0}",
            "e.yaml:7: arms[1].branch_from.arm: 'alone' is not an arm listed before",
        ),
        ("t: 0", "t: 65", "e.yaml:7: arms[1].branch_from.t: must be from 0 to 64, not 65"),
        (
            "arm: alone,",
            "arm: debte,",
            "e.yaml:8: arms[2].match.arm: 'debte' is not an arm listed b",
        ),
        ("by: microusd", "by: calls", "e.yaml:8: arms[2].match.by: must be output_tokens or micr"),
        (
            "by: microusd}",
            "by: microusd}, agents: 3",
            "e.yaml:8: arms[2].agents: stands beside match",
        ),
        ("when: disagreement", "when: late", "e.yaml:11: route.when: must be disagreement, not"),
        ("from: vote", "from: x", "e.yaml:11: route.from: 'x' is not an arm"),
        ("20000", "5000001", "e.yaml:13: budget.microusd_per_run: 5000001 is more than microusd_t"),
        ("20000", "-1", "e.yaml:13: budget.microusd_per_run: must be from 0 to "),
        ("8000", "0", "e.yaml:14: budget.output_tokens_per_run: must be from 1 to "),
        ("600", "86400000", "e.yaml:16: budget.deadline_seconds: must be from 1 to 2592000"),
        ("questions: 20", "questions: 0", "e.yaml:17: budget.stage.questions: must be from 1 to"),
        ("coverage]", "fixed_T]", "e.yaml:19: analysis.primary[1]: 'fixed_T' is not a metric"),
        ("[accuracy_T, coverage]", "[]", "e.yaml:19: analysis.primary: must list at least one"),
        ("[debate, vote]", "[debate, v]", "e.yaml:20: analysis.contrasts[0][1]: 'v' is not an arm"),
        ("[debate, vote]", "[vote]", "e.yaml:20: analysis.contrasts[0]: must be a pair of arms"),
        (
            "[debate, vote]",
            "[vote, vote]",
            "e.yaml:20: analysis.contrasts[0]: compares 'vote' with",
        ),
        (
            "[debate, vote]",
            "[alone, debate]",
            "e.yaml:20: analysis.contrasts[1]: 'debate' and 'alone' are compared twice",
        ),
        (
            "family: none",
            "family: bh",
            "e.yaml:21: analysis.family: must be holm or none, not 'bh'",
        ),
        ("margin: 2e-2", "margin: 0", "e.yaml:22: analysis.margin: must be between 0 and 1, not 0"),
        ("alpha: 0.1", "alpha: '0.1'", "e.yaml:23: analysis.alpha: must be a number, not '0.1'"),
        ("split: test", "split: train", "e.yaml:24: analysis.split: must be validation or test"),
        (
            "stop_rule: fixed",
            "stop_rule: peek",
            "e.yaml:25: analysis.stop_rule: must be fixed, not",
        ),
    ],
)
def test_what_arms_budget_and_analysis_cannot_mean_is_refused(
    old: str, new: str, fault: str
) -> None:
    assert old in FULL
    found = faults(FULL.replace(old, new))
    assert any(line.startswith(fault) for line in found), found


def test_faults_come_in_the_order_of_the_file_and_at_most_twenty() -> None:
    found = faults(SMALL + "".join(f"k{n}: 1\n" for n in range(30)))
    numbers = [int(line.split(":")[1]) for line in found]
    assert len(found) == 20
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("text", ["", "- a", "3", "arms: []", "arms: [3]", "arms: {a: b}"])
def test_other_yaml_is_refused_with_a_line(text: str) -> None:
    assert all(line.startswith("e.yaml:") for line in faults(text))


def test_the_frozen_analysis_writes_its_defaults_out() -> None:
    assert frozen_analysis(parse(SMALL, "e.yaml")) == {
        "analysis": {
            "primary": ["accuracy_T"],
            "contrasts": [],
            "family": "holm",
            "margin": None,
            "alpha": 0.05,
            "split": None,
            "stop_rule": "fixed",
        },
        "arms": ["one"],
        "questions": "set",
        "limit": None,
        "sample": None,
        "seeds": [1],
    }


def test_an_analysis_hash_depends_on_what_is_promised_and_on_nothing_else() -> None:
    full = analysis_hash(parse(FULL, "e.yaml"))
    assert full == analysis_hash(parse(FULL.replace("concurrency: 8", ""), "other.yaml"))
    for old, new in [("0.1", "0.05"), ("[3, 1]", "[3, 2]"), ("n: 20", "n: 21")]:
        assert full != analysis_hash(parse(FULL.replace(old, new), "e.yaml"))


def test_a_file_may_promise_exactly_what_reports_can_pair() -> None:
    assert set(METRICS) == PAIRED_METRICS


def test_a_rate_without_a_value_for_every_question_cannot_be_promised() -> None:
    (fault,) = faults(FULL.replace("coverage]", "repair_T]"))
    assert fault.startswith("e.yaml:19: analysis.primary[1]: 'repair_T' is not a metric")


@unhurried
@given(
    st.integers(0, len(FULL)),
    st.integers(0, 30),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
)
def test_a_damaged_file_is_read_or_refused_but_never_a_traceback(
    start: int, length: int, junk: str
) -> None:
    text = FULL[:start] + junk + FULL[start + length :]
    found: tuple[str, ...] = ()
    try:
        parse(text, "e.yaml")
    except FileFaultError as exc:
        found = exc.lines
    assert all(line.startswith("e.yaml:") and "\n" not in line for line in found)
