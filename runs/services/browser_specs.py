"""
Experiments that a browser describes: the same rules as for a file, but no file is ever read.

A command may name files beside its own. Somebody far away may not: question sets, protocols and
models are those of the workspace and the presets.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from debateweb.errors import InputError
from debateweb.models import User, Workspace
from runs.experiment_file import ExperimentSpec
from runs.models import DebateSet, Experiment, QuestionSet
from runs.protocols.yaml12 import FileFaultError
from runs.services.experiments import create_experiment
from runs.services.plan import ExperimentPlan, plan_experiment

FILE_ENDINGS = (".yaml", ".yml", ".json")
MOST_RUNS = 100_000


def plan_from_browser(*, workspace: Workspace, spec: ExperimentSpec) -> ExperimentPlan:
    """Return what the experiment may cost. Raises InputError with one line for each fault."""
    _refuse_files(workspace, spec)
    with _no_files() as folder:
        return plan_experiment(workspace=workspace, spec=spec, folder=folder, environ=os.environ)


def create_from_browser(
    *, workspace: Workspace, spec: ExperimentSpec, actor: User | None
) -> Experiment:
    """Make the experiment or return the one made from the same before. Raises InputError."""
    _refuse_files(workspace, spec)
    _refuse_too_many(workspace, spec)
    with _no_files() as folder:
        return create_experiment(
            workspace=workspace, spec=spec, folder=folder, environ=os.environ, actor=actor
        )


def question_set_names(workspace: Workspace) -> list[str]:
    """Return what ``questions`` may name in this workspace, newest first."""
    sets = QuestionSet.objects.filter(workspace=workspace, archived_at=None).order_by("-pk")
    debates = DebateSet.objects.filter(workspace=workspace, archived_at=None).order_by("-pk")
    return [*sets.values_list("name", flat=True), *debates.values_list("name", flat=True)]


@contextmanager
def _no_files() -> Iterator[Path]:
    """Give a folder with nothing in it, and faults of stored things as lines."""
    with TemporaryDirectory(prefix="debateweb-") as name:
        try:
            yield Path(name)
        except FileFaultError as exc:
            raise InputError("\n".join(exc.lines)) from exc


def _refuse_files(workspace: Workspace, spec: ExperimentSpec) -> None:
    faults = [
        f"arms[{place}].protocol: {arm.protocol!r} names a file; choose a preset or a protocol of "
        "this workspace"
        for place, arm in enumerate(spec.arms)
        if arm.protocol.endswith(FILE_ENDINGS)
    ]
    if spec.questions not in question_set_names(workspace):
        faults.insert(0, f"questions: there is no question set {spec.questions!r} here")
    if faults:
        raise InputError("\n".join(faults))


def _refuse_too_many(workspace: Workspace, spec: ExperimentSpec) -> None:
    """A browser waits for the answer, and others with it: so many rows take a minute."""
    sizes = QuestionSet.objects.filter(workspace=workspace, name=spec.questions)
    size = sizes.values_list("size", flat=True).first() or 0
    chosen = spec.sample.n if spec.sample is not None else (spec.limit or size)
    runs = min(chosen, size) * len(spec.seeds) * len(spec.arms)
    if runs > MOST_RUNS:
        raise InputError(
            f"{runs:,} runs are too many to make in a browser; the most is {MOST_RUNS:,}. Take "
            "fewer questions or seeds, or use the command: experiment run FILE"
        )
