"""What tests of the shell are made of: workspaces, questions, experiments, hands to run them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from debateweb.models import Workspace
from runs.execution import execute_round
from runs.experiment_file import parse
from runs.importers.records import QuestionRecord
from runs.leases import LeaseKeeper
from runs.models import Experiment, ExperimentStatus, Run, RunStatus
from runs.services import experiments, starting
from runs.services.imports import import_questions
from runs.services.rounds import Lease
from tests.runs.scripted import ScriptedGateway

_numbers = count(1)

#: Never says that a lease is lost: the leases of tests that are not about them.
KEEPER = LeaseKeeper(renew_leases=lambda held: dict.fromkeys(held, False))
SIMULATED = "simulated:accuracy=0.6,correlation=0.3,conformity=0.4,churn=0.1,seed=7"

MODELS = """
models:
  scripted:
    path: openai_compatible
    base_url: http://127.0.0.1:9/v1
    price:
      input_microusd_per_mtok: 1000000
      cached_input_microusd_per_mtok: 500000
      output_microusd_per_mtok: 10000000
"""


def workspace(name: str | None = None) -> Workspace:
    return Workspace.objects.create(name=name or f"w{next(_numbers)}")


def questions(count_: int = 1) -> list[QuestionRecord]:
    return [
        QuestionRecord(
            id=f"q{i}",
            question=f"What is {i} plus {i}?",
            reference=(str(2 * i),),
            answer_type="number",
        )
        for i in range(1, count_ + 1)
    ]


def protocol_text(**parts: Any) -> str:
    """Return a protocol file of three agents who read each other and revise twice."""
    fields: dict[str, Any] = {
        "schema_version": 1,
        "name": "test",
        "agents": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
        "revision_rounds": 2,
        "prompts": {
            "initial": "{{question}}\n{{answer_format}}",
            "revision": "{{question}}\nYou said {{own_answer}}:\n{{own_text}}\nOthers:\n{{peers}}",
            "peer": "{{label}}:\n{{text}}",
        },
    }
    return json.dumps({**fields, **parts})


def experiment(
    folder: Path,
    *,
    in_workspace: Workspace | None = None,
    question_count: int = 1,
    protocol: Mapping[str, Any] | None = None,
    arms: Iterable[Mapping[str, Any]] | None = None,
    model: str = "scripted",
    environ: Mapping[str, str] | None = None,
    **parts: Any,
) -> Experiment:
    """Return a READY experiment; by default one arm of the protocol of ``protocol_text``."""
    home = in_workspace or workspace()
    (folder / "p.json").write_text(protocol_text(**(protocol or {})))
    (folder / "models.yaml").write_text(MODELS)
    set_name = f"set{next(_numbers)}"
    import_questions(
        workspace=home, name=set_name, format_name="jsonl", records=questions(question_count)
    )
    body = {
        "name": f"e{next(_numbers)}",
        "questions": set_name,
        "arms": list(
            arms or [{"name": "debate", "protocol": "p.json", "models": {"default": model}}]
        ),
        **parts,
    }
    return experiments.create_experiment(
        workspace=home,
        spec=parse(json.dumps(body), "test"),
        folder=folder,
        environ=environ or {},
    )


def unchecked_caps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let experiments be made whose caps admit no call: what becomes of such a run is tested."""
    monkeypatch.setattr("runs.services.design.caps_that_admit_nothing", lambda *_, **__: ())


def begin(made: Experiment) -> list[Run]:
    """Start an experiment and return its runs that are under way, by position."""
    if made.status == ExperimentStatus.READY:
        experiments.start(experiment=made)
    starting.start_runs(experiment_id=made.pk)
    return under_way(made)


def under_way(made: Experiment) -> list[Run]:
    return list(made.runs.filter(status=RunStatus.RUNNING).order_by("position"))


def execute(run: Run, gateway: Any, *, worker: str = "w1", keeper: LeaseKeeper = KEEPER) -> Run:
    """Execute the run's next round and return the run as it is then."""
    run.refresh_from_db()
    execute_round(run.pk, run.next_round, worker=worker, gateway=gateway, keeper=keeper)
    run.refresh_from_db()
    return run


def finish(
    made: Experiment,
    gateway: Any = None,
    *,
    order: Callable[[list[Run]], list[Run]] = lambda runs: runs,
) -> Experiment:
    """Run an experiment to where it moves no more by itself, runs in the given order."""
    gateway = gateway or ScriptedGateway()
    begin(made)
    for _ in range(10_000):
        runs = under_way(made)
        if not runs:
            starting.start_runs(experiment_id=made.pk)
            runs = under_way(made)
        made.refresh_from_db()
        if not runs or made.status not in (ExperimentStatus.RUNNING, ExperimentStatus.CANCELLED):
            return made
        for run in order(runs):
            execute(run, gateway)
    raise AssertionError("the experiment does not end")


def lease(run_id: int) -> Lease:
    """Return a lease for what needs no row behind it."""
    return Lease(
        run_id=run_id,
        t=0,
        fence=1,
        worker="w1",
        experiment_id=1,
        arm_id=1,
        question_id=1,
        account_id=1,
        seed=1,
        active=None,
        snapshot_hash="",
        evidence_hash="",
        cancelled=False,
        crashes=0,
        deadline_seconds=60.0,
    )
