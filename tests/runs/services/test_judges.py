"""A judge that decides at the end of a run (S28): asked on workers, on the ledger, on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction

from debateweb.errors import InputError
from runs.engine.replay import replay
from runs.models import (
    Aggregate,
    Attempt,
    AttemptOutcome,
    Commit,
    Experiment,
    JudgeVerdict,
    LedgerEntry,
    Run,
)
from runs.providers import endings
from runs.providers.base import ProviderReply
from runs.providers.endings import failed
from runs.services import experiments
from runs.services.verify import run_record, verify_experiment
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified
from tests.runs.scripted import Call, ScriptedGateway, replied, said

pytestmark = pytest.mark.django_db

PROMPT = "{{question}}\n{{candidates}}\n{{answer_format}}"


def judged_by(tie: tuple[str, ...] = (), **settings: Any) -> dict[str, Any]:
    """Return the parts of a protocol in which a judge decides, or decides ties."""
    aggregation: dict[str, Any] = {"judge": {"prompt": PROMPT, **settings}}
    aggregation |= {"tie": tie} if tie else {"kind": "judge"}
    return {"revision_rounds": 0, "retries": {"transport": 0}, "aggregation": aggregation}


def experiment(folder: Path, protocol: dict[str, Any], **parts: Any) -> Experiment:
    models = {"default": "scripted", "judge": "scripted"}
    return factories.experiment(
        folder,
        protocol=protocol,
        arms=[{"name": "debate", "protocol": "p.json", "models": models}],
        **parts,
    )


def is_judge(call: Call) -> bool:
    return call.agent_id.startswith("judge:")


def first_shown(call: Call) -> str:
    """Return the candidate that stands first in a judge's prompt."""
    prompt = call.request.prompt[-1].content
    return prompt.split("Answer: ", 1)[1].splitlines()[0]


def names(value: str) -> Any:
    """Answer as a judge who prefers this candidate wherever it stands."""
    return lambda call: replied(f"Final answer: {'A' if first_shown(call) == value else 'B'}")


def gateway(judge: Any, answers: str = "233") -> ScriptedGateway:
    """Let agents a, b and c give these answers and the judge reply as ``judge`` says."""

    def script(call: Call) -> ProviderReply | None:
        reply: ProviderReply | None
        reply = judge(call) if is_judge(call) else said(answers["abc".index(call.agent_id)])
        return reply

    return ScriptedGateway(script)


def outcome_of(made: Experiment) -> Aggregate:
    return Aggregate.objects.get(run__experiment=made)


def test_all_orders_are_asked_stored_and_combined(tmp_path: Path) -> None:
    of = gateway(names("2"))
    made = factories.finish(experiment(tmp_path, judged_by(repeats=2)), of)
    found = outcome_of(made)
    assert (found.aggregator, found.answer_value, found.unresolved) == ("judge", "2", False)
    assert found.counts == [["3", 2], ["2", 1]], "plurality of the same candidates stands beside"
    rows = JudgeVerdict.objects.order_by("position")
    assert [(row.order, row.repeat) for row in rows] == [
        (["2", "3"], 1),
        (["2", "3"], 2),
        (["3", "2"], 1),
        (["3", "2"], 2),
    ]
    assert {(row.said, row.choice, row.status) for row in rows} == {("candidate", "2", "SUCCEEDED")}
    attempts = Attempt.objects.filter(kind="judge")
    assert {row.attempt_id for row in rows} == set(attempts.values_list("pk", flat=True))
    assert Commit.objects.count() == 1, "a judge's stage is no round"
    assert_verified(made)
    assert_balanced()


def test_neither_ids_nor_the_number_of_holders_are_shown_to_a_judge(tmp_path: Path) -> None:
    of = gateway(names("2"))
    agents = [{"id": key} for key in ("hidden-x", "hidden-y", "hidden-z")]
    script = of.script
    of.script = lambda call: (
        script(call) if is_judge(call) else said("3" if call.agent_id == "hidden-x" else "2")
    )
    factories.finish(experiment(tmp_path, {**judged_by(), "agents": agents}), of)
    prompts = [c.request.prompt[-1].content for c in of.calls if is_judge(c)]
    assert len(prompts) == 2
    assert all("hidden" not in prompt and prompt.count("<candidate ") == 2 for prompt in prompts)


def test_a_flip_between_orders_is_unresolved_and_stated(tmp_path: Path) -> None:
    made = factories.finish(
        experiment(tmp_path, judged_by()), gateway(lambda _: replied("Final answer: A"))
    )
    found = outcome_of(made)
    assert (found.answer_kind, found.unresolved, found.tied) == ("abstain", True, False)
    assert found.open_issues == ["judge: conflict between presentations: 2 1, 3 1"]
    assert found.candidates == [["a", "2"], ["b", "3"], ["c", "3"]]
    assert_verified(made)
    assert_balanced()


def test_an_order_that_fails_is_shown_with_its_cause_and_decides_nothing(tmp_path: Path) -> None:
    def judge(call: Call) -> ProviderReply:
        if first_shown(call) == "3":
            return failed(endings.BAD_REQUEST, "no")
        return replied("Final answer: A")

    made = factories.finish(experiment(tmp_path, judged_by()), gateway(judge))
    found = outcome_of(made)
    assert found.unresolved
    assert "order 3 | 2: 1 of 1 without a verdict: FAILED" in " ".join(found.open_issues)
    status = JudgeVerdict.objects.order_by("position").values_list("status", "said")
    assert list(status) == [("SUCCEEDED", "candidate"), ("FAILED", "")]
    assert_verified(made)
    assert_balanced()


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        (failed(endings.BAD_REQUEST, "no"), "FAILED"),
        (replied("I like both."), "INVALID"),
        (replied("Final answer: A", finish_reason="length"), "TRUNCATED"),
    ],
)
def test_a_judge_that_says_nothing_leaves_the_run_unresolved(
    tmp_path: Path, reply: ProviderReply, status: str
) -> None:
    made = factories.finish(experiment(tmp_path, judged_by()), gateway(lambda _: reply))
    assert outcome_of(made).unresolved
    assert set(JudgeVerdict.objects.values_list("status", flat=True)) == {status}
    assert_verified(made)
    assert_balanced()


def test_a_reply_without_a_verdict_is_asked_for_again_where_the_protocol_says_so(
    tmp_path: Path,
) -> None:
    def judge(call: Call) -> ProviderReply:
        if call.nth == 0:
            return replied("Both?")
        reply: ProviderReply = names("3")(call)
        return reply

    protocol = {**judged_by(), "retries": {"invalid": 1}}
    made = factories.finish(experiment(tmp_path, protocol), gateway(judge))
    assert outcome_of(made).answer_value == "3"
    assert set(JudgeVerdict.objects.values_list("attempt__ordinal", flat=True)) == {1}
    assert_verified(made)
    assert_balanced()


def test_a_single_candidate_needs_no_judge(tmp_path: Path) -> None:
    of = gateway(names("2"), answers="222")
    made = factories.finish(experiment(tmp_path, judged_by()), of)
    assert outcome_of(made).answer_value == "2"
    assert not any(map(is_judge, of.calls))
    assert_verified(made)
    assert_balanced()


def test_a_judge_breaks_a_tie_and_is_not_asked_where_there_is_none(tmp_path: Path) -> None:
    tied = gateway(lambda _: replied("Final answer: A"), answers="234")
    protocol = judged_by(tie=("judge", "abstain"))
    made = factories.finish(experiment(tmp_path, protocol), tied)
    found = outcome_of(made)
    assert (found.answer_kind, found.tied, found.tie_resolved_by) == ("abstain", True, "abstain")
    assert all("conflict" in issue for issue in found.open_issues)
    assert len(found.open_issues) == 3
    two = {**protocol, "agents": [{"id": "a"}, {"id": "b"}]}
    (tmp_path / "two").mkdir()
    made = factories.finish(experiment(tmp_path / "two", two), gateway(names("3"), answers="23"))
    found = outcome_of(made)
    assert (found.answer_value, found.tied, found.tie_resolved_by) == ("3", True, "judge")
    assert_verified(made)
    (tmp_path / "clear").mkdir()
    clear = gateway(names("3"))
    made = factories.finish(experiment(tmp_path / "clear", protocol), clear)
    assert outcome_of(made).answer_value == "3"
    assert not any(map(is_judge, clear.calls))
    assert_verified(made)
    assert_balanced()


@pytest.mark.parametrize(
    ("settings", "calls"),
    [
        ({"mode": "listwise", "orders": "all"}, 6),
        ({"mode": "listwise", "orders": "both"}, 2),
        ({"mode": "listwise", "orders": "balanced"}, 6),
        ({"mode": "pairwise", "orders": "both"}, 6),
        ({"mode": "pointwise"}, 3),
        (
            {
                "mode": "transcript",
                "orders": "given",
                "sees_rounds": "all",
                "prompt": "{{transcript}}\n" + PROMPT,
            },
            1,
        ),
    ],
)
def test_every_mode_runs_from_calls_to_a_replay(
    tmp_path: Path, settings: dict[str, Any], calls: int
) -> None:
    def judge(call: Call) -> ProviderReply:
        prompt = call.request.prompt[-1].content.rpartition("Candidate A")[2]
        shown = [part.splitlines()[0] for part in call.request.prompt[-1].content.split("Answer: ")]
        if "Score it" in prompt:
            return replied(f"Final answer: {9 if '3' in shown else 2}")
        # Candidates stand last, each once: the transcript before them does not count.
        mine = [value for value in shown[1:] if value in "234"][-prompt_candidates(call) :]
        return replied(f"Final answer: {'ABC'[mine.index('3')] if '3' in mine else 'A'}")

    of = gateway(judge, answers="234")
    made = factories.finish(experiment(tmp_path, judged_by(**settings)), of)
    asked = [call for call in of.calls if is_judge(call)]
    assert len(asked) == calls == JudgeVerdict.objects.count()
    assert outcome_of(made).answer_value == "3"
    assert_verified(made)
    assert_balanced()


def prompt_candidates(call: Call) -> int:
    return call.request.prompt[-1].content.count("<candidate ")


def test_a_budget_that_cannot_keep_the_judge_back_ends_the_run_before_sampling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    factories.unchecked_caps(monkeypatch)
    of = gateway(names("2"))
    # Three agents' calls would fit; a judge's two replies of 1024 tokens at most do not.
    budget = {"output_tokens_per_run": 2_000, "microusd_per_run": 10**9}
    made = factories.finish(experiment(tmp_path, judged_by(), budget=budget), of)
    (run,) = made.runs.all()
    assert run.stop_reason == "insufficient_final_budget"
    assert of.calls == []
    assert run.aggregates.get().unresolved
    assert_verified(made)
    assert_balanced()


def test_what_is_kept_back_for_the_judge_is_no_agents_to_spend(tmp_path: Path) -> None:
    made = experiment(tmp_path, judged_by())
    (run,) = factories.begin(made)
    run.refresh_from_db()
    # Up to three candidates are three pairs in both orders, of 1024 tokens at most.
    assert run.account.reserved_output_tokens == 6 * 1024
    factories.finish(made, gateway(names("2")))
    freed = LedgerEntry.objects.filter(account=run.account, kind="release", attempt=None).first()
    assert freed is not None
    assert freed.output_tokens == 6 * 1024
    assert_balanced()


def test_a_run_past_its_deadline_is_still_judged_over_what_it_has(tmp_path: Path) -> None:
    protocol = {**judged_by(), "revision_rounds": 2, "limits": {"final_time_cap_seconds": 200}}
    made = experiment(tmp_path, protocol, budget={"deadline_seconds": 260})
    (run,) = factories.begin(made)
    factories.execute(run, gateway(names("2")))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run SET deadline_at = clock_timestamp() + interval '190 seconds'"
        )
    factories.finish(made, gateway(names("2")))
    run.refresh_from_db()
    assert run.stop_reason == "work_deadline"
    assert run.aggregates.get().answer_value == "2"
    assert_verified(made)
    assert_balanced()


class Died(BaseException):
    """The worker process is gone: nothing of ours runs after this."""


def dies(run: Run, of: ScriptedGateway) -> None:
    with pytest.raises(Died):
        factories.execute(run, of, worker="dead")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE runs_run SET lease_expires_at = clock_timestamp() - interval '1 second'"
            " WHERE id = %s AND lease_expires_at IS NOT NULL",
            [run.pk],
        )


def to_the_judge(made: Experiment) -> Run:
    """Return the run after its last round, before its judge was asked."""
    (run,) = factories.begin(made)
    factories.execute(run, gateway(names("2")))
    run.refresh_from_db()
    assert (run.status, run.next_round, run.stop_reason) == ("RUNNING", 1, "round_limit")
    return run


def test_calls_of_a_judge_in_flight_at_a_loss_are_held_and_made_again(tmp_path: Path) -> None:
    made = experiment(tmp_path, judged_by())
    run = to_the_judge(made)

    def killed(_: Call) -> ProviderReply:
        raise Died

    dies(run, gateway(killed))
    factories.finish(made, gateway(names("2")))
    lost = AttemptOutcome.objects.filter(attempt__kind="judge", error_class="lost_worker")
    assert lost.count() == 2
    run.refresh_from_db()
    assert run.account.held_output_tokens == sum(o.attempt.reserved_output_tokens for o in lost) > 0
    assert run.aggregates.get().answer_value == "2"
    assert set(JudgeVerdict.objects.values_list("attempt__ordinal", flat=True)) == {1}
    assert_verified(made)
    assert_balanced()


def test_verdicts_that_are_in_are_not_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = experiment(tmp_path, judged_by())
    run = to_the_judge(made)

    def killed(*_: Any, **__: Any) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr("runs.execution.finish.commit_and_close", killed)
        dies(run, gateway(names("2")))
    again = gateway(names("3"))
    factories.finish(made, again)
    assert again.calls == []
    assert run.aggregates.get().answer_value == "2"
    assert JudgeVerdict.objects.count() == 2
    assert_verified(made)
    assert_balanced()


def test_an_experiment_that_is_cancelled_before_its_judge_asks_nobody(tmp_path: Path) -> None:
    made = experiment(tmp_path, judged_by())
    run = to_the_judge(made)
    experiments.cancel(experiment=made)
    of = gateway(names("2"))
    factories.finish(made, of)
    run.refresh_from_db()
    assert (run.status, run.stop_reason) == ("DONE", "cancelled")
    assert of.calls == []
    assert run.aggregates.get().unresolved
    assert_verified(made)
    assert_balanced()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("choice = '3'", "verdict.choice"),
        ("said = 'tie', choice = ''", "verdict.said"),
        ("status = 'FAILED', said = ''", "verdict.status"),
        ('"order" = \'["3", "2"]\'', "verdict.order"),
        ("raw_hash = repeat('1', 64)", "verdict.raw_hash"),
        ("attempt_id = NULL", "verdict.attempt"),
    ],
)
def test_verify_names_a_verdict_that_was_tampered_with(
    tmp_path: Path, change: str, named: str
) -> None:
    made = factories.finish(experiment(tmp_path, judged_by()), gateway(names("2")))
    assert_verified(made)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET LOCAL session_replication_role = 'replica'")
        cursor.execute(f"UPDATE runs_judgeverdict SET {change} WHERE position = 1")
        _, found = verify_experiment(made, tell=lambda _done, _total: None)
        transaction.set_rollback(True)
    assert found, "nothing was noticed"
    assert named in str(found[0])


def test_verify_notices_a_verdict_that_is_missing(tmp_path: Path) -> None:
    made = factories.finish(experiment(tmp_path, judged_by()), gateway(names("2")))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = 'replica'")
        cursor.execute("DELETE FROM runs_judgeverdict WHERE position = 2")
        _, found = verify_experiment(made, tell=lambda _done, _total: None)
        transaction.set_rollback(True)
    assert "verdict" in str(found[0])


def test_a_run_whose_judge_is_under_way_replays_as_far_as_it_is(tmp_path: Path) -> None:
    made = experiment(tmp_path, judged_by())
    assert replay(run_record(to_the_judge(made).pk)) == []


def test_an_experiment_without_a_model_for_its_judge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model for slot 'judge', the judge's"):
        factories.experiment(tmp_path, protocol=judged_by())


def test_a_branch_without_revisions_is_judged_over_the_answers_that_it_took_over(
    tmp_path: Path,
) -> None:
    models = {"default": "scripted", "judge": "scripted"}
    arms = [
        {"name": "first", "protocol": "p.json", "models": models},
        {
            "name": "again",
            "protocol": "p.json",
            "models": models,
            "branch_from": {"arm": "first", "t": 0},
        },
    ]
    made = factories.finish(
        factories.experiment(tmp_path, protocol=judged_by(), arms=arms), gateway(names("2"))
    )
    answers = Aggregate.objects.filter(run__experiment=made).values_list("answer_value", flat=True)
    assert list(answers) == ["2", "2"]
    assert JudgeVerdict.objects.count() == 4
    assert_verified(made)
    assert_balanced()
