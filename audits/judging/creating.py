"""Making a judge audit: items to questions, design to protocol, both to an experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from django.db import transaction

from audits.judging.design import JudgeDesign, judge_protocol
from audits.judging.families import own_family
from audits.judging.items import AuditItem, as_question
from audits.judgment_models import Judge, JudgedItem, JudgmentSet
from debateweb.audit import record
from debateweb.errors import InputError
from debateweb.models import User, Workspace
from runs.engine.hashing import digest
from runs.experiment_file import ArmSpec, BudgetSpec, ExperimentSpec
from runs.importers.records import QuestionRecord
from runs.protocols.spec import Protocol
from runs.services.experiments import create_experiment
from runs.services.imports import import_questions
from runs.services.protocol_versions import save_version

ARM = "judge"
BATCH = 2_000


class JudgeAuditError(InputError):
    """The audit cannot be made like this; the message says what is in the way."""

    code = "judge_audit_not_valid"


@dataclass(frozen=True, slots=True)
class NewJudgeAudit:
    """What an audit is made from. ``model`` is the judge, by its name in experiments."""

    name: str
    items: Sequence[AuditItem]
    design: JudgeDesign
    model: str
    microusd_total: int | None = None
    concurrency: int = 64


@transaction.atomic
def create_judge_audit(
    *,
    workspace: Workspace,
    new: NewJudgeAudit,
    environ: Mapping[str, str],
    actor: User | None = None,
) -> JudgmentSet:
    """
    Store the items, the protocol and the experiment of an audit, ready to start.

    Raises JudgeAuditError for items that do not fit the design, that stand twice, or that the
    judge's own family wrote where that is not allowed; and what making an experiment raises.
    """
    _refuse_unfit(new)
    import_questions(
        workspace=workspace,
        name=f"{new.name}-items",
        format_name="judge_audit",
        records=[_question(item, new.design) for item in new.items],
        actor=actor,
    )
    protocol = judge_protocol(_protocol_name(new.name), new.design)
    version, _ = save_version(workspace=workspace, protocol=protocol, actor=actor)
    experiment = create_experiment(
        workspace=workspace,
        spec=_spec(new, protocol),
        folder=Path("/nonexistent"),  # Everything goes by name.
        environ=environ,
        actor=actor,
    )
    made = JudgmentSet.objects.create(
        workspace=workspace,
        name=new.name,
        format="audit",
        content_hash=digest([asdict(item) for item in new.items]),
        size=len(new.items),
        design=new.design.model_dump(mode="json"),
        experiment=experiment,
        created_by=actor,
    )
    _store_items(made, new.items)
    _store_judge(made, new, version.protocol_hash)
    record(act="judge_audit.create", workspace=workspace, obj=made, actor=actor)
    return made


def _refuse_unfit(new: NewJudgeAudit) -> None:
    if not new.items:
        raise JudgeAuditError("items: there is nothing to judge")
    twice = [name for name, n in Counter(item.item_id for item in new.items).items() if n > 1]
    if twice:
        raise JudgeAuditError(f"items: {twice[0]!r} stands twice")
    if new.design.same_family:
        return
    authors = {candidate.model for item in new.items for candidate in item.candidates}
    own = own_family(new.model, authors)
    if own:
        raise JudgeAuditError(
            f"model: {new.model} is of one family with {', '.join(own[:3])}, which wrote what it "
            "would judge; choose another judge or set same_family"
        )


def _question(item: AuditItem, design: JudgeDesign) -> QuestionRecord:
    try:
        return as_question(item, design)
    except ValueError as exc:
        raise JudgeAuditError(str(exc)) from exc


def _protocol_name(name: str) -> str:
    """Protocol names are narrower than names of things; the digest keeps them apart."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "-" for c in name.lower())
    return f"judge-{plain.strip('-')[:40] or 'audit'}-{digest(name)[:8]}"


def _spec(new: NewJudgeAudit, protocol: Protocol) -> ExperimentSpec:
    return ExperimentSpec(
        name=new.name,
        questions=f"{new.name}-items",
        arms=(ArmSpec(name=ARM, protocol=protocol.name, models={"judge": new.model}),),
        budget=BudgetSpec(microusd_total=new.microusd_total),
        concurrency=new.concurrency,
    )


def _store_items(made: JudgmentSet, items: Sequence[AuditItem]) -> None:
    JudgedItem.objects.bulk_create(
        [
            JudgedItem(
                judgment_set=made,
                position=position,
                item_id=item.item_id,
                question_id=item.question_id,
                question=item.question,
                candidates=[asdict(candidate) for candidate in item.candidates],
                gold=item.gold,
                group=item.group,
                content_hash=digest([item.question, [c.text for c in item.candidates]]),
            )
            for position, item in enumerate(items)
        ],
        batch_size=BATCH,
    )


def _store_judge(made: JudgmentSet, new: NewJudgeAudit, protocol_hash: str) -> Judge:
    decoding = {
        "temperature": None if new.design.temperature is None else str(new.design.temperature),
        "max_output_tokens": new.design.max_output_tokens,
    }
    identity = [new.model, protocol_hash, new.design.rubric_version, decoding]
    return Judge.objects.create(
        judgment_set=made,
        name=new.model,
        model=new.model,
        prompt_hash=protocol_hash,
        rubric_version=new.design.rubric_version,
        decoding=decoding,
        judge_hash=digest(identity),
    )
