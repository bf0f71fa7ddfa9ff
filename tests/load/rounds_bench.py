"""
Whole rounds against the stub: wall time over the ideal, and CPU of the worker a call.

Run by ``make bench``. 100 questions × 3 agents × 3 rounds at 300 ms and a cap of 64 are 900
calls, everything recorded on a durable PostgreSQL by a warm worker process of its own. The ideal
is calls × latency ÷ cap. On the LiteLLM path the yardstick is a bare ``acompletion`` loop over
as many calls in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "debateweb.settings")
django.setup()

from django.core.management import call_command  # noqa: E402

from debateweb.access import ensure_default_workspace  # noqa: E402
from debateweb.models import Workspace  # noqa: E402
from debateweb.services.supervisor import Supervisor, wait_for_workers, worker_roles  # noqa: E402
from runs.experiment_file import parse  # noqa: E402
from runs.importers.records import QuestionRecord  # noqa: E402
from runs.models import Attempt, AttemptOutcome, Experiment, ExperimentStatus  # noqa: E402
from runs.services import experiments  # noqa: E402
from runs.services.imports import import_questions  # noqa: E402
from tests.load.providers_bench import Load, Measured, bare_litellm, measure  # noqa: E402
from tests.stub_server import StubServer  # noqa: E402

AGENTS, ROUNDS = 3, 3
WARM_QUESTIONS = 12
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

MODELS = """
models:
  stub/fast:
    path: openai_compatible
    base_url: {base_url}
    upstream_name: stub
    free: true
  stub/litellm:
    path: litellm
    base_url: {base_url}
    upstream_name: openai/stub
    free: true
"""
PROTOCOL = """
name: bench
agents: [{id: a}, {id: b}, {id: c}]
revision_rounds: 2
prompts:
  initial: "{{question}}\\n{{answer_format}}"
  revision: "{{question}}\\nYour answer: {{own_answer}}\\n{{peers}}\\n{{answer_format}}"
output: {extraction: {number: [final_line, last_number]}}
"""
SPEC = """
name: {name}
questions: {questions}
arms: [{{name: debate, protocol: bench.yaml, models: {{default: {model}}}}}]
concurrency: {cap}
"""


@dataclass(frozen=True)
class Worker:
    """The process that executes rounds, whose CPU is counted with all its threads."""

    pid: int

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def questions(workspace: Workspace, name: str, count: int) -> None:
    records = [
        QuestionRecord(
            id=f"q{k}", question=f"What is {k} × 7?", reference=(str(k * 7),), answer_type="number"
        )
        for k in range(count)
    ]
    import_questions(workspace=workspace, name=name, format_name="jsonl", records=records)


def run_once(folder: Path, name: str, question_set: str, model: str, load: Load) -> float:
    """Run one experiment to its end; return its wall time in seconds."""
    text = SPEC.format(name=name, questions=question_set, model=model, cap=load.cap)
    experiment = experiments.create_experiment(
        workspace=ensure_default_workspace(),
        spec=parse(text, name),
        folder=folder,
        environ=os.environ,
    )
    started = time.perf_counter()
    experiments.start(experiment=experiment)
    while True:
        status = Experiment.objects.values_list("status", flat=True).get(pk=experiment.pk)
        if status == ExperimentStatus.FINISHED:
            return time.perf_counter() - started
        if time.perf_counter() - started > 300:
            raise SystemExit(f"{name}: still {status} after 300 s")
        time.sleep(0.02)


def measured(
    folder: Path, path: str, model: str, load: Load, stub: StubServer, worker: Worker
) -> Measured:
    stub.configure(latency_seconds=load.latency_seconds)
    run_once(folder, f"warm-{path}", "warm", model, load)
    stub.configure(latency_seconds=load.latency_seconds)
    cpu = worker.cpu_seconds()
    wall = run_once(folder, f"bench-{path}", "bench", model, load)
    cpu = worker.cpu_seconds() - cpu
    made = Attempt.objects.filter(run__experiment__name=f"bench-{path}").count()
    ended = AttemptOutcome.objects.filter(
        attempt__run__experiment__name=f"bench-{path}", status="SUCCEEDED"
    ).count()
    received = stub.stats()["received"]
    if not made == ended == received == load.calls:
        raise SystemExit(f"{path}: {made} attempts, {ended} succeeded, {received} received")
    return Measured(path, wall, cpu * 1000 / load.calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--latency", type=float, default=0.3)
    parser.add_argument("--cap", type=int, default=64)
    parser.add_argument("--skip-litellm", action="store_true")
    options = parser.parse_args()
    load = Load(options.questions * AGENTS * ROUNDS, options.latency, options.cap)
    call_command("migrate", verbosity=0)
    workspace = ensure_default_workspace()
    questions(workspace, "warm", WARM_QUESTIONS)
    questions(workspace, "bench", options.questions)
    with TemporaryDirectory() as name, StubServer.running() as stub:
        folder = Path(name)
        (folder / "models.yaml").write_text(MODELS.format(base_url=stub.base_url))
        (folder / "bench.yaml").write_text(PROTOCOL)
        suffix = str(os.getpid())
        with Supervisor(worker_roles(suffix)) as supervisor:
            wait_for_workers(supervisor, suffix)
            worker = Worker(supervisor.running["rounds"].pid)
            thin = measured(folder, "thin", "stub/fast", load, stub, worker)
            report(load, thin, load.ideal_seconds)
            if not options.skip_litellm:
                bare = measure("bare", load, stub, lambda: bare_litellm(load, stub.base_url))
                report(load, bare, load.ideal_seconds)
                ours = measured(folder, "litellm", "stub/litellm", load, stub, worker)
                report(load, ours, bare.wall_seconds)


def report(load: Load, result: Measured, yardstick_seconds: float) -> None:
    print(
        json.dumps(
            {
                "path": result.path,
                "calls": load.calls,
                "wall_seconds": round(result.wall_seconds, 2),
                "yardstick_seconds": round(yardstick_seconds, 2),
                "ratio": round(result.wall_seconds / yardstick_seconds, 3),
                "worker_cpu_ms_per_call": round(result.cpu_ms_per_call, 2),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
