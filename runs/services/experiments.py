"""
Experiments: made from a file, started, paused, resumed, cancelled, confirmed.

Making one checks everything that can be checked before the first call: a missing key, an
unknown model or a protocol that cannot run is said now, in one go, and nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from debateweb.audit import record
from debateweb.errors import StateError
from debateweb.models import User, Workspace
from runs import dispatch
from runs.engine.hashing import digest, snapshot_hash
from runs.engine.ledger import Amount
from runs.experiment_file import ExperimentSpec, analysis_hash, frozen_analysis, unsupported
from runs.models import (
    Account,
    Arm,
    Experiment,
    ExperimentStatus,
    Kind,
    Question,
    Run,
    RunStatus,
)
from runs.protocols.digest import canonical_text
from runs.protocols.presets import with_agents
from runs.providers.catalog import price_table_version
from runs.services import starting
from runs.services.caps import run_cap
from runs.services.design import ArmDesign, design_arms
from runs.services.faults import DesignError
from runs.services.imports import BATCH, batched
from runs.services.naming import NameTakenError, take_name
from runs.services.protocol_versions import lock_protocols, version_of_arm
from runs.services.protocols import find_protocol
from runs.services.sampling import chosen_questions, question_set_for

DEFAULT_DEADLINE_SECONDS = 3600


@transaction.atomic
def create_experiment(
    *,
    workspace: Workspace,
    spec: ExperimentSpec,
    folder: Path,
    environ: Mapping[str, str],
    actor: User | None = None,
) -> Experiment:
    """
    Make an experiment from its specification, or return the one made from the same before.

    ``folder`` is where relative file names are looked for; ``environ`` says which keys are
    there. Raises DesignError with every fault, NameTakenError; then nothing is written, the
    question set of a file neither.
    """
    spec_json = asdict(spec)
    existing = _made_before(workspace, spec, folder)
    if existing is not None:
        return existing
    _refuse(unsupported(spec))
    lock_protocols(workspace)
    question_set = question_set_for(workspace=workspace, spec=spec, folder=folder, actor=actor)
    questions = chosen_questions(spec, question_set)
    arms = design_arms(
        workspace=workspace,
        spec=spec,
        question_set=question_set,
        questions=questions,
        folder=folder,
        environ=environ,
    )
    try:
        take_name(workspace=workspace, name=spec.name, kind=Kind.EXPERIMENT)
    except NameTakenError:
        existing = _made_before(workspace, spec, folder)
        if existing is None:
            raise
        return existing  # Somebody made the same at this moment.
    experiment = Experiment.objects.create(
        workspace=workspace,
        name=spec.name,
        question_set=question_set,
        spec=spec_json,
        spec_hash=digest(spec_json),
        analysis=frozen_analysis(spec),
        analysis_hash=analysis_hash(spec),
        concurrency=spec.concurrency,
        window=_window(spec, arms),
        deadline_seconds=spec.budget.deadline_seconds or DEFAULT_DEADLINE_SECONDS,
        stage_questions=spec.budget.stage.questions if spec.budget.stage else None,
        stage_confirm_above_microusd=(
            spec.budget.stage.confirm_above_microusd if spec.budget.stage else None
        ),
        account=Account.objects.create(cap_microusd=spec.budget.microusd_total),
        created_by=actor,
    )
    _create_runs(experiment, spec, questions, _create_arms(experiment, arms, actor), arms)
    record(
        act="experiment.create",
        workspace=workspace,
        obj=experiment,
        actor=actor,
        detail={"spec_hash": experiment.spec_hash, "analysis_hash": experiment.analysis_hash},
    )
    return experiment


def _made_before(workspace: Workspace, spec: ExperimentSpec, folder: Path) -> Experiment | None:
    """Return the experiment of this name, None where there is none; another one is refused."""
    existing = Experiment.objects.filter(workspace=workspace, name=spec.name).first()
    if existing is None:
        return None
    if existing.spec_hash != digest(asdict(spec)):
        raise NameTakenError(f"experiment {spec.name!r} exists with another specification")
    _refuse_changed_protocols(existing, spec, folder)
    return existing


def _refuse_changed_protocols(existing: Experiment, spec: ExperimentSpec, folder: Path) -> None:
    """A file keeps its name when it changes, and what is stored does not follow it (S1)."""
    stored = dict(existing.arms.values_list("name", "protocol__canonical"))
    for arm in spec.arms:
        if arm.match is not None or not (folder / arm.protocol).is_file():
            continue
        found = find_protocol(workspace=existing.workspace, name=arm.protocol, folder=folder)
        if arm.agents is not None:
            found = with_agents(found, arm.agents)
        if canonical_text(found) != stored[arm.name]:
            raise NameTakenError(
                f"experiment {spec.name!r} exists with another protocol of arm {arm.name!r}; "
                f"{arm.protocol} has changed since: choose another name"
            )


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise DesignError(faults)


def _window(spec: ExperimentSpec, arms: Sequence[ArmDesign]) -> int:
    """
    Return how many runs are under way at once.

    Enough that the calls in flight reach the experiment's concurrency while some runs commit:
    half as many again as would fill it, and two.
    """
    fewest = min(len(arm.protocol.agents) for arm in arms)
    return max(2, -(-spec.concurrency * 3 // (2 * fewest)) + 2)


def _create_arms(
    experiment: Experiment, designs: Sequence[ArmDesign], actor: User | None
) -> dict[str, Arm]:
    arms: dict[str, Arm] = {}
    for position, design in enumerate(designs):
        arms[design.name] = Arm.objects.create(
            experiment=experiment,
            position=position,
            name=design.name,
            protocol=version_of_arm(
                workspace=experiment.workspace, protocol=design.protocol, actor=actor
            ),
            bindings=design.bindings,
            price_table_version=price_table_version(design.models.values()),
            branch_from=arms[design.branch_from] if design.branch_from is not None else None,
            marked=design.marked,
        )
    return arms


def _create_runs(
    experiment: Experiment,
    spec: ExperimentSpec,
    questions: Sequence[Question],
    arms: Mapping[str, Arm],
    designs: Sequence[ArmDesign],
) -> None:
    """Write every run with its account: question by question, so that a stage is a beginning."""
    empty = snapshot_hash(0, ())
    staged = experiment.stage_questions or 0
    sources: dict[tuple[int, int, int], Run] = {}
    drafts: list[Run] = []
    for place, question in enumerate(questions):
        for seed in spec.seeds:
            for design in designs:
                arm = arms[design.name]
                drafts.append(
                    Run(
                        experiment=experiment,
                        arm=arm,
                        question=question,
                        position=len(drafts),
                        seed=seed,
                        question_hash=question.question_hash,
                        protocol_hash=arm.protocol.protocol_hash,
                        evidence_hash=question.evidence_hash,
                        in_stage=place < staged,
                        snapshot_hash=empty,
                    )
                )
    designs_by_name = {design.name: design for design in designs}
    for batch in batched(drafts, BATCH):
        accounts = Account.objects.bulk_create(
            [_account(spec, designs_by_name[run.arm.name]) for run in batch]
        )
        for run, account in zip(batch, accounts, strict=True):
            run.account = account
            if run.arm.branch_from_id is not None:
                run.branch_source = sources[run.arm.branch_from_id, run.question_id, run.seed]
            sources[run.arm_id, run.question_id, run.seed] = run
        _insert(batch)


def _insert(batch: Sequence[Run]) -> None:
    """Insert sources before the branches that point at them."""
    Run.objects.bulk_create([run for run in batch if run.branch_source is None])
    left = [run for run in batch if run.branch_source is not None]
    while left:
        ready = [run for run in left if _has_key(run.branch_source)]
        for run in ready:
            run.branch_source = run.branch_source  # Django copies the key, known only now.
        Run.objects.bulk_create(ready)
        left = [run for run in left if not _has_key(run)]


def _has_key(run: Run | None) -> bool:
    return run is not None and run.pk is not None


def _account(spec: ExperimentSpec, design: ArmDesign) -> Account:
    cap = run_cap(spec.budget, Amount(design.bound_microusd, design.bound_output_tokens))
    return Account(cap_microusd=cap.microusd, cap_output_tokens=cap.output_tokens)


def start(*, experiment: Experiment, actor: User | None = None) -> None:
    """Start a READY experiment. Raises StateError otherwise."""
    _change(
        experiment,
        (ExperimentStatus.READY,),
        ExperimentStatus.RUNNING,
        "experiment.start",
        actor,
        started_at=Now(),
    )
    dispatch.ask_to_start_runs(experiment.pk)


def pause(*, experiment: Experiment, actor: User | None = None) -> None:
    """Open no further round; rounds under way end and are committed."""
    running = (ExperimentStatus.RUNNING, ExperimentStatus.AWAITING_CONFIRMATION)
    _change(experiment, running, ExperimentStatus.PAUSED, "experiment.pause", actor)


def resume(*, experiment: Experiment, actor: User | None = None) -> None:
    """Go on after a pause. Deadlines went on during it."""
    _change(
        experiment,
        (ExperimentStatus.PAUSED,),
        ExperimentStatus.RUNNING,
        "experiment.resume",
        actor,
    )
    _ring_all(experiment)


def confirm_stage(*, experiment: Experiment, actor: User | None = None) -> None:
    """Let an experiment go on that stopped after its stage."""
    _change(
        experiment,
        (ExperimentStatus.AWAITING_CONFIRMATION,),
        ExperimentStatus.RUNNING,
        "experiment.confirm",
        actor,
        stage_confirmed_at=Now(),
    )
    dispatch.ask_to_start_runs(experiment.pk)


def cancel(*, experiment: Experiment, actor: User | None = None) -> None:
    """
    End an experiment: pending runs end without a call, calls in flight are given up.

    What they may have cost stays held.
    """
    _change(
        experiment,
        (
            ExperimentStatus.READY,
            ExperimentStatus.RUNNING,
            ExperimentStatus.PAUSED,
            ExperimentStatus.AWAITING_CONFIRMATION,
        ),
        ExperimentStatus.CANCELLED,
        "experiment.cancel",
        actor,
        ended_at=Now(),
    )
    _ring_all(experiment)


@transaction.atomic
def _change(
    experiment: Experiment,
    allowed: Sequence[ExperimentStatus],
    status: ExperimentStatus,
    act: str,
    actor: User | None,
    **values: Any,
) -> None:
    # The WHERE clause compares: of two people who press at once, one acts.
    moved = Experiment.objects.filter(pk=experiment.pk, status__in=allowed).update(
        status=status, **values
    )
    if not moved:
        experiment.refresh_from_db()
        raise StateError(
            f"experiment {experiment.name!r} is {experiment.status}; {act.partition('.')[2]} "
            f"needs {' or '.join(allowed)}"
        )
    record(act=act, workspace=experiment.workspace, obj=experiment, actor=actor)
    experiment.refresh_from_db()


def _ring_all(experiment: Experiment) -> None:
    """Ring for every run under way and ask for more, so that nobody waits for the sweep."""
    under_way = Run.objects.filter(experiment=experiment, status=RunStatus.RUNNING)
    for run_id, t in under_way.values_list("pk", "next_round"):
        dispatch.ring_after_commit(run_id, t)
    dispatch.ask_to_start_runs(experiment.pk)


def end_pending(experiment: Experiment) -> None:
    """End the pending runs of a cancelled experiment here and now, without a worker."""
    starting.start_runs(experiment_id=experiment.pk)
