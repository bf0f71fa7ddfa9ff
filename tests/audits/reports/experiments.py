"""Experiments run here and now: the rounds of the shell in this thread, on this connection."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debateweb.access import ensure_default_workspace
from runs.execution import execute_round
from runs.experiment_file import parse
from runs.leases import LeaseKeeper
from runs.models import Experiment, Run, RunStatus
from runs.providers.gateway import Gateway
from runs.services import experiments, starting

MODEL = "simulated:accuracy=0.6,correlation=0.3,conformity=0.4,seed=7"

THREE_ARMS = f"""
name: NAME
questions: QUESTIONS
seeds: [1]
arms:
  - {{name: debate, protocol: du_2023, models: {{default: "{MODEL}"}}}}
  - name: revise-alone
    protocol: independent_revision
    models: {{default: "{MODEL}"}}
    branch_from: {{arm: debate, t: 0}}
  - {{name: vote, protocol: self_consistency, models: {{default: "{MODEL}"}}}}
analysis:
  primary: [accuracy_T]
  contrasts: [[debate, vote], [debate, revise-alone]]
  margin: 0.1
"""


class Deaf:
    """Stands for the queue where nobody hears the doorbell."""

    def send_task(self, *args: Any, **kwargs: Any) -> None:
        return None


def questions_file(folder: Path, count: int) -> Path:
    """Write ``count`` small sums as a question file."""
    path = folder / f"sums-{count}.jsonl"
    rows = (
        {
            "id": f"q{i:04}",
            "question": f"What is {i} + {i}?",
            "reference": str(2 * i),
            "answer_type": "number",
            "stratum": "even" if i % 2 == 0 else "odd",
        }
        for i in range(count)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def made(text: str, folder: Path) -> Experiment:
    """Make and start an experiment from its file."""
    experiment = experiments.create_experiment(
        workspace=ensure_default_workspace(),
        spec=parse(text, "experiment.yaml"),
        folder=folder,
        environ={},
    )
    experiments.start(experiment=experiment)
    return experiment


def executed(experiment: Experiment, *, most_rounds: int | None = None) -> Experiment:
    """Execute every due round of an experiment, or so many of them."""
    gateway = Gateway()
    # The pulse would look from another connection, which sees nothing of this transaction.
    keeper = LeaseKeeper(lambda held: dict.fromkeys(held, False))
    left = most_rounds
    running = Run.objects.filter(experiment=experiment, status=RunStatus.RUNNING)
    starting.start_runs(experiment_id=experiment.pk)
    while left != 0 and (run := running.order_by("position").first()):
        execute_round(run.pk, run.next_round, worker="test", gateway=gateway, keeper=keeper)
        left = None if left is None else left - 1
    gateway.close()
    experiment.refresh_from_db()
    return experiment
