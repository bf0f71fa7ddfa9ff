"""`experiment`: make, start, watch, pause, resume, cancel and verify experiments."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from audits.stage import Stage, stage_of
from debateweb.access import command_workspace
from debateweb.errors import InputError, NegativeAnswer, StateError
from debateweb.management.actions import Actions
from debateweb.management.base import Command as DebatewebCommand
from debateweb.models import Workspace
from debateweb.services.supervisor import temporary_worker, worker_is_alive
from runs.experiment_file import located, parse
from runs.importers.faults import ImportFaults
from runs.models import Experiment, ExperimentStatus
from runs.protocols.yaml12 import FileFaultError
from runs.services import experiments
from runs.services.faults import DesignError
from runs.services.plan import plan_experiment
from runs.services.progress import progress_of
from runs.services.verify import verify_experiment

POLL_SECONDS = 0.25
#: Disagreements printed; --json has them all.
MOST_SHOWN = 20
#: An experiment in one of these states moves on by itself.
MOVING = (ExperimentStatus.RUNNING,)


class ReplayDisagreesError(NegativeAnswer):
    """Some record does not follow from the others."""

    code = "replay_disagrees"


class Command(DebatewebCommand):
    help = "Run experiments: arms × questions × seeds."
    example = "python manage.py experiment run gsm8k-debate.yaml --wait"
    needs_broker = True

    def add_arguments(self, parser: CommandParser) -> None:
        actions = Actions(parser, "experiment")
        run = actions.add("run", "make an experiment from a file and start it", "exp.yaml --wait")
        run.add_argument("spec", metavar="SPEC", help="a file, - , or a stored experiment's name")
        run.add_argument("--wait", action="store_true", help="return when it has ended")
        run.add_argument("--yes", action="store_true", help="go on after the stage without asking")
        check = actions.add("check", "say what it may cost and what is missing", "exp.yaml")
        check.add_argument("spec", metavar="SPEC", help="a file, or - for standard input")
        for name, text in (
            ("status", "say how far it is"),
            ("pause", "open no further round"),
            ("resume", "go on after a pause, or after the stage"),
            ("cancel", "end it; pending runs make no call"),
            ("verify", "recompute every run from its records, without any model call"),
        ):
            action = actions.add(name, text, "gsm8k-debate")
            action.add_argument("name", metavar="N", help="the experiment")
        actions.add("list", "list the experiments", "")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = command_workspace(self.workspace_name)
        action = options["action"]
        if action == "run":
            self._run_spec(workspace, options["spec"], wait=options["wait"], yes=options["yes"])
        elif action == "check":
            self._check_spec(workspace, options["spec"])
        elif action == "list":
            self._list(workspace)
        else:
            getattr(self, f"_{action}")(_named(workspace, options["name"]))

    def _run_spec(self, workspace: Workspace, source: str, *, wait: bool, yes: bool) -> None:
        experiment = _made(workspace, source)
        with temporary_worker() if wait else nullcontext(None) as look_after_workers:
            if experiment.status == ExperimentStatus.READY:
                _start(experiment)
            if look_after_workers is not None:
                self._wait(experiment, yes=yes, meanwhile=look_after_workers)
        self._say(experiment)

    def _check_spec(self, workspace: Workspace, source: str) -> None:
        where, text = _named_source(source), _text(source)
        with _faults_as_input_errors(where, text):
            plan = plan_experiment(
                workspace=workspace,
                spec=parse(text, where),
                folder=_folder(source),
                environ=os.environ,
            )
        lines = [f"{plan.name}: {plan.questions:,} questions, {plan.runs:,} runs; nothing started"]
        lines += [
            f"  {arm.name}{f' [{arm.marked}]' if arm.marked else ''}: expected "
            f"{arm.expected_input_tokens:,} in, {arm.expected_output_tokens:,} out, "
            f"{arm.expected_microusd:,} micro-USD a run; at most {arm.bound_output_tokens:,} out, "
            f"{arm.bound_microusd:,} micro-USD"
            for arm in plan.arms
        ]
        lines.append(
            f"  all runs: {plan.expected_microusd:,} micro-USD expected, "
            f"{plan.bound_microusd:,} at most"
        )
        self.emit(plan.as_json(), "\n".join(lines))

    def _wait(self, experiment: Experiment, *, yes: bool, meanwhile: Callable[[], object]) -> None:
        while True:
            meanwhile()
            experiment.refresh_from_db()
            seen = progress_of(experiment)
            self.progress(seen["done"], seen["runs"], experiment.name)
            if experiment.status == ExperimentStatus.AWAITING_CONFIRMATION and yes:
                experiments.confirm_stage(experiment=experiment)
            elif experiment.status not in MOVING and seen["running"] == 0:
                return
            time.sleep(POLL_SECONDS)

    def _say(self, experiment: Experiment) -> None:
        experiment.refresh_from_db()
        seen = progress_of(experiment)
        lines = [
            f"{seen['name']}: {seen['status']}, {seen['done']:,} of {seen['runs']:,} runs done, "
            f"{seen['running']:,} running"
        ]
        for name, arm in seen["arms"].items():
            stops = ", ".join(f"{k} {v:,}" for k, v in sorted(arm["stops"].items()))
            mark = f" [{arm['marked']}]" if arm["marked"] else ""
            lines.append(
                f"  {name}{mark}: {arm['DONE']:,} done{' (' + stops + ')' if stops else ''}"
            )
        lines.append(
            f"  micro-USD: {seen['settled_microusd']:,} settled, {seen['held_microusd']:,} held, "
            f"{seen['reserved_microusd']:,} reserved"
        )
        if experiment.status == ExperimentStatus.AWAITING_CONFIRMATION:
            stage = stage_of(experiment)
            seen["stage"] = stage.as_json()
            lines += _stage_lines(experiment.name, stage)
        if experiment.status in MOVING and not worker_is_alive():
            lines.append("  no worker is there: start one with `make up`, or wait with --wait")
        self.emit(seen, "\n".join(lines))

    def _status(self, experiment: Experiment) -> None:
        self._say(experiment)

    def _pause(self, experiment: Experiment) -> None:
        experiments.pause(experiment=experiment)
        self._say(experiment)

    def _resume(self, experiment: Experiment) -> None:
        if experiment.status == ExperimentStatus.AWAITING_CONFIRMATION:
            experiments.confirm_stage(experiment=experiment)
        else:
            experiments.resume(experiment=experiment)
        self._say(experiment)

    def _cancel(self, experiment: Experiment) -> None:
        experiments.cancel(experiment=experiment)
        experiments.end_pending(experiment)
        self._say(experiment)

    def _verify(self, experiment: Experiment) -> None:
        checked, found = verify_experiment(
            experiment, tell=lambda done, total: self.progress(done, total, "runs replayed")
        )
        lines = [str(one) for one in found]
        self.emit(
            {"runs": checked, "disagreements": lines},
            "\n".join([*lines[:MOST_SHOWN], f"{experiment.name}: {checked:,} runs replayed"]),
        )
        if found:
            raise ReplayDisagreesError(f"{found[0]} ({len(found)} in all)")

    def _list(self, workspace: Workspace) -> None:
        rows = Experiment.objects.filter(workspace=workspace, archived_at=None).order_by("-pk")
        data = [{"name": e.name, "status": e.status, "created_at": e.created_at} for e in rows]
        self.emit(data, "\n".join(f"{d['name']}  {d['status']}" for d in data) or "none yet")


def _stage_lines(name: str, stage: Stage) -> list[str]:
    def percent(share: float | None) -> str:
        return "undefined" if share is None else f"{100 * share:.1f} %"

    lines = [
        f"  the stage is done: {stage.runs_done:,} of {stage.runs:,} runs; projected total "
        f"{stage.projected_microusd:,} micro-USD",
        f"  answers truncated: {percent(stage.truncated_share)}, invalid: "
        f"{percent(stage.invalid_share)}",
    ]
    for contrast in stage.contrasts:
        mde = "undefined (they never differed)"
        if contrast.mde_80 is not None:
            mde = f"{contrast.mde_80:.3f}"
        lines.append(
            f"  {contrast.a} against {contrast.b}: discordance {contrast.discordance:.3f} on "
            f"{contrast.stage_questions} questions; found with 80 % power: {mde} or more"
        )
    return [
        *lines,
        f"  go on with: experiment resume {name}, or end it with: experiment cancel {name}",
    ]


def _named(workspace: Workspace, name: str) -> Experiment:
    found = Experiment.objects.filter(workspace=workspace, name=name).first()
    if found is None:
        raise InputError(f"there is no experiment {name!r}")
    return found


def _start(experiment: Experiment) -> None:
    try:
        experiments.start(experiment=experiment)
    except StateError:
        experiment.refresh_from_db()
        if experiment.status != ExperimentStatus.RUNNING:
            raise  # Else the same command started it in another terminal at this moment.


def _made(workspace: Workspace, source: str) -> Experiment:
    """Return the experiment of a file or of a name; make it where it is new."""
    path = Path(source)
    if source != "-" and not path.exists():
        stored = Experiment.objects.filter(workspace=workspace, name=source).first()
        if stored is None:
            raise InputError(f"there is no file and no experiment {source!r}")
        return stored
    where, text = _named_source(source), _text(source)
    with _faults_as_input_errors(where, text):
        return experiments.create_experiment(
            workspace=workspace,
            spec=parse(text, where),
            folder=_folder(source),
            environ=os.environ,
        )


@contextmanager
def _faults_as_input_errors(source: str, text: str) -> Iterator[None]:
    """Say where in which file each fault lies; files that the experiment names may have some."""
    try:
        yield
    except FileFaultError as exc:
        raise InputError("\n".join(exc.lines)) from exc
    except ImportFaults as exc:
        raise InputError(str(exc)) from exc
    except DesignError as exc:
        raise InputError("\n".join(located(exc.faults, text, source))) from exc


def _named_source(source: str) -> str:
    return "standard input" if source == "-" else source


def _folder(source: str) -> Path:
    """Return where an experiment's relative file names are looked for: beside it."""
    return Path.cwd() if source == "-" else Path(source).resolve().parent


def _text(source: str) -> str:
    """Return the specification's text, from the file or from standard input."""
    if source == "-":
        return sys.stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8")
    except OSError as exc:
        raise InputError(f"{source}: cannot be read: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{source}: is not UTF-8 text") from exc
