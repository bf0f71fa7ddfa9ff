"""Whole experiments on the database, with replies that the test decides."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from runs.engine.replay import replay
from runs.models import (
    AttemptOutcome,
    Commit,
    Epoch,
    Experiment,
    LedgerEntry,
    Message,
    Run,
    State,
    Verdict,
)
from runs.services.verify import run_record, verify_experiment
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, said

pytestmark = pytest.mark.django_db


def verified(made: Experiment) -> None:
    count, found = verify_experiment(made, tell=lambda done, total: None)
    assert count == made.runs.count()
    assert not found, str(found[0])


def test_three_agents_and_two_revisions_leave_every_record_and_agree_with_their_replay(
    tmp_path: Path,
) -> None:
    made = factories.finish(factories.experiment(tmp_path))
    run = made.runs.get()
    assert (made.status, run.status, run.stop_reason) == ("FINISHED", "DONE", "round_limit")
    assert Epoch.objects.count() == Commit.objects.count() == 3
    assert AttemptOutcome.objects.filter(status="SUCCEEDED").count() == 9
    assert Verdict.objects.filter(status="SUCCEEDED").count() == 9
    assert State.objects.count() == Message.objects.count() == 9
    assert run.aggregates.get().answer_value == "2"
    verified(made)
