"""The report on experiments that were executed: figures against records, and what departs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from audits.queries import experiment_rows
from audits.reports.build import experiment_report, report_bytes
from debateweb.access import ensure_default_workspace
from runs.engine.normalise import is_correct
from runs.engine.types import Answer, AnswerKind
from runs.importers.registry import read_debates
from runs.models import Aggregate, Experiment, Run, RunStatus, State
from runs.protocols.spec import Normaliser
from runs.queries import engine_question
from runs.services import experiments
from runs.services.imports import import_debates
from tests.audits.reports.commands import figure
from tests.audits.reports.conftest import Ran
from tests.audits.reports.experiments import executed, made

pytestmark = pytest.mark.django_db

#: Eight questions: the debate has two rounds, the branch one of its own, the vote one.
ALL_ROUNDS = 8 * (2 + 1 + 1)
FEW = 200  # Resamples: the intervals' width is tested elsewhere.


def report(experiment: Experiment) -> dict[str, Any]:
    return experiment_report(experiment, resamples=FEW)


def condition(found: dict[str, Any], name: str) -> dict[str, Any]:
    return dict(next(one for one in found["conditions"] if one["name"] == name))


def is_right(run: Run, kind: str, value: str) -> bool:
    answer = Answer(raw="", kind=AnswerKind(kind), value=value)
    return is_correct(answer, engine_question(run.question), Normaliser()) is True


def test_accuracy_counts_the_stored_results(ran: Ran) -> None:
    experiment = ran("sums")
    found = report(experiment)
    for arm in experiment.arms.all():
        ends = Aggregate.objects.filter(run__arm=arm).select_related("run__question")
        right = sum(is_right(end.run, end.answer_kind, end.answer_value) for end in ends)
        shown = figure(condition(found, arm.name), "accuracy_T", by={"aggregator": "plurality"})
        assert (shown["num"], shown["den"]) == (right, 8)


def test_repair_and_damage_count_the_stored_states(ran: Ran) -> None:
    experiment = ran("sums")
    moves: Counter[tuple[bool, bool]] = Counter()
    for run in Run.objects.filter(arm__name="debate").select_related("question"):
        states = State.objects.filter(run=run).order_by("agent_id", "state_version")
        first: dict[str, bool] = {}
        last: dict[str, bool] = {}
        for state in states:
            last[state.agent_id] = is_right(run, state.answer_kind, state.answer_value)
            first.setdefault(state.agent_id, last[state.agent_id])
        moves.update((first[agent], last[agent]) for agent in first)
    debate = condition(report(experiment), "debate")
    for metric, start in (("repair_T", False), ("damage_T", True)):
        shown = figure(debate, metric, agg="pooled", by={})
        wanted = (moves[start, not start], moves[start, True] + moves[start, False])
        assert (shown["num"], shown["den"]) == wanted


def test_a_debate_stands_beside_the_arm_that_revised_alone_from_its_answers(ran: Ran) -> None:
    found = report(ran("sums"))
    debate, alone = condition(found, "debate"), condition(found, "revise-alone")
    assert debate["same_start"] == "revise-alone"
    assert alone["same_start"] is None
    assert debate["figures"][0]["metric"] == "excess_repair_T"
    for metric in ("repair", "damage"):
        excess = figure(debate, f"excess_{metric}_T", agg="pooled")
        here, there = (figure(arm, f"{metric}_T", agg="pooled", by={}) for arm in (debate, alone))
        assert excess["den"] == here["den"] == there["den"]
        assert excess["num"] == here["num"] - there["num"]
    assert not [one for one in alone["figures"] if one["metric"].startswith("excess_")]


def test_declared_contrasts_are_one_family_with_their_margin(ran: Ran) -> None:
    pairs = report(ran("sums"))["comparisons"]
    assert [(pair["a"], pair["b"]) for pair in pairs] == [
        ("debate", "vote"),
        ("debate", "revise-alone"),
    ]
    for pair in pairs:
        (one,) = pair["figures"]
        assert (one["metric"], one["by"]) == ("difference", {"metric": "accuracy_T"})
        assert (one["holm_m"], one["margin"]) == (2, 0.1)
        assert one["p_holm"] >= one["p"]


def test_what_was_simulated_and_what_is_small_says_so(ran: Ran) -> None:
    for one in report(ran("sums"))["conditions"]:
        assert one["marked"] == "simulated"
        assert {"simulated", "few questions"} <= set(one["labels"])
        assert "few questions" in figure(one, "oracle_any", by={"at": "T"})["notes"]


def test_inputs_name_everything_that_the_figures_come_from(ran: Ran) -> None:
    experiment = ran("sums")
    inputs = report(experiment)["inputs"]
    assert inputs["questions"] == experiment.question_set.content_hash
    assert inputs["analysis"] == experiment.analysis_hash
    assert set(inputs["protocols"]) == {"debate", "revise-alone", "vote"}
    assert len(inputs["results"]) == 64


def without_time(found: dict[str, Any], *names: str) -> bytes:
    """Return a report's bytes without what may differ between two equal runs."""
    kept = {key: value for key, value in found.items() if key not in names}
    kept["inputs"] = {k: v for k, v in found["inputs"].items() if k not in names}
    kept["conditions"] = [
        one | {"figures": [f for f in one["figures"] if f["metric"] != "wall_seconds"]}
        for one in found["conditions"]
    ]
    return report_bytes(kept)


def test_the_same_records_give_the_same_bytes(ran: Ran) -> None:
    experiment = ran("sums")
    assert report_bytes(report(experiment)) == report_bytes(report(experiment))


def test_another_run_with_the_same_seeds_differs_in_its_name_alone(ran: Ran) -> None:
    one, two = report(ran("sums")), report(ran("once-more"))
    assert one["inputs"]["results"] == two["inputs"]["results"]
    renamed = without_time(two, "name", "spec").replace(b"/once-more/", b"/sums/")
    assert without_time(one, "name", "spec") == renamed


def test_the_number_of_queries_does_not_grow(ran: Ran) -> None:
    counts = []
    for size in (3, 9):
        experiment = ran(f"sums-of-{size}", questions=size)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            experiment_rows(experiment)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 9


def test_runs_that_are_not_done_are_counted_and_left_out(ran: Ran) -> None:
    experiment = ran("sums", most_rounds=9)
    done = Run.objects.filter(experiment=experiment, status=RunStatus.DONE)
    found = report(experiment)
    said = [one for one in found["deviations"] if one["code"] == "runs_not_done"]
    assert {one["condition"] for one in said} == {"debate", "revise-alone", "vote"}
    for one in found["conditions"]:
        mine = done.filter(arm__name=one["name"]).count()
        assert one["runs"] == {"done": mine, "designed": 8}
        assert one["tables"].get("counts", {"runs": 0})["runs"] == mine
    assert found["deviations"][0]["text"] == "the experiment is RUNNING"


def test_arms_with_other_questions_are_not_compared(ran: Ran) -> None:
    experiment = ran("sums", most_rounds=ALL_ROUNDS - 1)  # The last vote is missing.
    pairs = {pair["b"]: pair["figures"][0] for pair in report(experiment)["comparisons"]}
    assert pairs["vote"]["value"] is None
    assert "question sets differ: 1 only in the first" in pairs["vote"]["reason"]
    assert pairs["revise-alone"]["value"] is not None
    assert pairs["revise-alone"]["holm_m"] == 2, "a refused contrast stays in its family"


def test_a_partner_without_all_questions_leaves_null_excess_with_the_reason(ran: Ran) -> None:
    experiment = ran("sums", most_rounds=ALL_ROUNDS - 2)  # The last lonely revision too.
    debate = condition(report(experiment), "debate")
    shown = figure(debate, "excess_repair_T")
    assert shown["value"] is None
    assert "question sets differ" in shown["reason"]
    assert figure(debate, "repair_T", agg="pooled", by={})["den"] is not None


def test_runs_cancelled_before_their_first_round_are_no_wrong_answers(ran: Ran) -> None:
    experiment = ran("sums", most_rounds=0)
    experiments.cancel(experiment=experiment)
    experiments.end_pending(experiment)
    executed(experiment)
    found = report(experiment)
    for one in found["conditions"]:
        assert one["runs"] == {"done": 0, "designed": 8}
        assert figure(one, "accuracy_T")["value"] is None
    texts = " ".join(one["text"] for one in found["deviations"])
    assert "8 were cancelled before their first round and are left out" in texts


LOG: list[tuple[str, list[list[str | None]], str]] = [
    # An invalid revision keeps the last valid state; an agent without an answer is inactive.
    ("q1", [["4", "4", "5"], ["4", None, "4"]], "4"),
    ("q2", [["1", "2", None], ["2", "2", "2"]], "2"),
    ("q3", [[None, None, None], ["7", "7", "7"]], "7"),
]

REPLAY = """
name: replayed
questions: log
arms:
  - {name: replay, protocol: du_replay, models: {default: "recorded:log"}}
"""


def recorded_log(folder: Path) -> None:
    path = folder / "log.jsonl"
    rows = [
        {
            "debate_id": name,
            "question_id": name,
            "question": f"The question {name}?",
            "reference": reference,
            "answer_type": "number",
            "protocol": "du",
            "agents": [{"agent_id": agent, "model": "m"} for agent in "abc"],
            "rounds": [
                [
                    {"agent_id": agent, "answer": None, "text": f"It is {said}." if said else "-"}
                    for agent, said in zip("abc", turns, strict=True)
                ]
                for turns in rounds
            ],
        }
        for name, rounds, reference in LOG
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    import_debates(
        workspace=ensure_default_workspace(), name="log", format_name="jsonl",
        records=read_debates(path, "jsonl"),
    )  # fmt: skip


@pytest.mark.usefixtures("deaf")
def test_a_replayed_log_keeps_valid_states_and_configured_agents(tmp_path: Path) -> None:
    recorded_log(tmp_path)
    found = report(executed(made(REPLAY, tmp_path)))
    (replay,) = found["conditions"]
    assert replay["marked"] == "recorded"
    opened = [row["opened"] for row in replay["tables"]["rounds"]]
    assert opened[:2] == [3, 2], "the debate without an initial answer opened no second round"
    assert figure(replay, "inactive", agg="pooled")["num"] == 4
    assert figure(replay, "agent_accuracy_0", agg="pooled", by={})["num"] == 3
    assert figure(replay, "agent_accuracy_0", agg="pooled", by={})["den"] == 9
    assert figure(replay, "agent_accuracy_T", agg="pooled", by={})["num"] == 5
    codes = Counter(one["code"] for one in found["deviations"])
    assert codes["not_admitted"] >= 1


def test_usage_is_what_the_ledger_and_the_outcomes_say(ran: Ran) -> None:
    debate = condition(report(ran("sums")), "debate")
    assert figure(debate, "calls", agg=None)["value"] == 8 * 3 * 2
    kinds = debate["tables"]["usage_by_kind"]
    assert {kind: counts["calls"] for kind, counts in kinds.items()} == {
        "initial": 24,
        "revision": 24,
    }
    total = sum(counts["output_tokens"] for counts in kinds.values())
    assert figure(debate, "tokens_out", agg=None, by={})["value"] == total > 0
