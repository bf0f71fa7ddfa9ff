"""Whatever is done to an experiment, in any order, every run ends with a result and a balance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debateweb.errors import StateError
from runs.models import AttemptOutcome, Experiment, ExperimentStatus
from runs.providers import endings
from runs.providers.endings import failed
from runs.services import experiments, starting
from runs.services.sweep import sweep
from tests.runs import factories
from tests.runs.checks import assert_balanced, assert_verified
from tests.runs.scripted import Call, ScriptedGateway, replied, said
from tests.runs.services.test_lost_workers import Died, lease_runs_out

ACTS = ("execute", "execute", "execute", "kill", "pause", "resume", "cancel", "sweep", "start")
STEPS = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(0, 1000)), max_size=20)
ARMS = [
    {"name": "debate", "protocol": "p.json", "models": {"default": "scripted"}},
    {"name": "alone", "protocol": "p.json", "branch_from": {"arm": "debate", "t": 0}},
]


def reply_of(number: int) -> Any:
    """Return one of many fates of a call, by number."""
    fates = [
        said(str(number % 3)),
        said("2"),
        replied("nothing"),
        failed(endings.RATE_LIMITED, "slow down"),
        failed(endings.BAD_REQUEST, "no"),
        failed(endings.TIMEOUT, "slow"),
        said("2", output_tokens=10**5 if number % 7 == 0 else 20),
    ]
    return fates[number % len(fates)]


class _Walk:
    def __init__(self, made: Experiment) -> None:
        self.made = made

    def step(self, act: str, number: int) -> None:
        self.made.refresh_from_db()
        try:
            getattr(self, f"_{act}")(number)
        except StateError:
            return  # Not allowed in this status: nothing happened.

    def _execute(self, number: int) -> None:
        runs = factories.under_way(self.made)
        if runs:
            run = runs[number % len(runs)]
            factories.execute(run, ScriptedGateway(lambda call: reply_of(number + call.t)))

    def _kill(self, number: int) -> None:
        runs = factories.under_way(self.made)
        if not runs:
            return
        run = runs[number % len(runs)]
        gateway = ScriptedGateway()

        def script(_call: Call) -> Any:
            if len(gateway.calls) > number % 4:
                raise Died
            return reply_of(number)

        gateway.script = script
        try:
            factories.execute(run, gateway)
        except Died:
            lease_runs_out(run)

    def _start(self, _number: int) -> None:
        if self.made.status == ExperimentStatus.READY:
            experiments.start(experiment=self.made)
        starting.start_runs(experiment_id=self.made.pk)

    def _pause(self, _number: int) -> None:
        experiments.pause(experiment=self.made)

    def _resume(self, _number: int) -> None:
        if self.made.status == ExperimentStatus.AWAITING_CONFIRMATION:
            experiments.confirm_stage(experiment=self.made)
        else:
            experiments.resume(experiment=self.made)

    def _cancel(self, number: int) -> None:
        if number % 3 == 0:
            experiments.cancel(experiment=self.made)

    def _sweep(self, _number: int) -> None:
        sweep()


@pytest.mark.django_db
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS, tight=st.booleans(), staged=st.booleans())
def test_every_walk_ends_with_results_and_balanced_accounts(
    tmp_path: Path, steps: list[tuple[str, int]], tight: bool, staged: bool
) -> None:
    with transaction.atomic():
        budget: dict[str, Any] = {"stage": {"questions": 1}} if staged else {}
        if tight:
            budget |= {"microusd_per_run": 500_000, "microusd_total": 600_000}
        made = factories.experiment(
            tmp_path, arms=ARMS, question_count=3, concurrency=1, budget=budget
        )
        walk = _Walk(made)
        for act, number in steps:
            walk.step(act, number)
            assert_balanced()
        _bring_to_an_end(made)
        assert made.runs.count() == made.runs.filter(status="DONE").count() == 6
        assert_verified(made)
        assert_balanced()
        assert not AttemptOutcome.objects.filter(late=True).exists()
        transaction.set_rollback(True)


def _bring_to_an_end(made: Experiment) -> None:
    for _ in range(10):
        made.refresh_from_db()
        if made.status == ExperimentStatus.PAUSED:
            experiments.resume(experiment=made)
        factories.finish(made)
        if made.status == ExperimentStatus.AWAITING_CONFIRMATION:
            experiments.confirm_stage(experiment=made)
        elif made.status in (ExperimentStatus.FINISHED, ExperimentStatus.CANCELLED):
            return
    with connection.cursor() as cursor:
        cursor.execute("SELECT status FROM runs_experiment")
        raise AssertionError(f"it does not end: {cursor.fetchall()}")
