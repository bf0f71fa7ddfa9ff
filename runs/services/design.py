"""
From the arms of an experiment file to protocols with models, prices and bounds.

Everything that could stop a run before its first call is found here, all of it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from debateweb.errors import InputError
from debateweb.models import Workspace
from runs import bindings
from runs.engine.aggregation import may_judge
from runs.engine.errors import EngineError
from runs.engine.ledger import Amount, Price, reserve_bound
from runs.engine.operators import refuse_unsupported
from runs.experiment_file import ArmSpec, ExperimentSpec
from runs.models import DebateSet, Question, QuestionSet
from runs.protocols import cost
from runs.protocols.digest import protocol_hash
from runs.protocols.presets import with_agents
from runs.protocols.spec import Protocol
from runs.protocols.yaml12 import FileFaultError
from runs.providers.catalog import ModelConfig, missing, resolve
from runs.providers.errors import ModelSpecError, UnknownModelError
from runs.providers.models_yaml import load_models_yaml
from runs.queries import engine_question
from runs.services.caps import caps_that_admit_nothing, opening_bound
from runs.services.faults import DesignError
from runs.services.models_table import table_of
from runs.services.protocols import find_protocol
from runs.services.recorded import recorded_faults

MODELS_FILE = "models.yaml"
#: The display model's sizes where nothing is measured yet (docs/metrics.md, §9).
TYPICAL_QUESTION_TOKENS = 300
TYPICAL_ANSWER_TOKENS = 400


@dataclass(frozen=True)
class ArmDesign:
    """
    An arm ready to be stored. ``models`` is keyed as the file's: by slot or by agent.

    Bounds are for one run, in micro-USD and tokens, over the longest of the questions.
    """

    name: str
    protocol: Protocol
    models: dict[str, ModelConfig]
    debate_sets: dict[str, int]
    branch_from: str | None
    bound_microusd: int
    bound_output_tokens: int

    @property
    def protocol_hash(self) -> str:
        return protocol_hash(self.protocol)

    @property
    def bindings(self) -> dict[str, dict[str, Any]]:
        found = {key: bindings.to_json(config) for key, config in self.models.items()}
        for key, debate_set in self.debate_sets.items():
            found[key]["debate_set"] = debate_set
        return found

    @property
    def marked(self) -> str:
        """What every output of this arm has to say: simulated, recorded, mixed or nothing."""
        marks = {config.marked for config in self.models.values()}
        if len(marks) > 1:
            return "mixed"
        return marks.pop()


def design_arms(
    *,
    workspace: Workspace,
    spec: ExperimentSpec,
    question_set: QuestionSet,
    questions: Sequence[Question],
    folder: Path,
    environ: Mapping[str, str],
) -> list[ArmDesign]:
    """Return every arm, ready to be stored. Raises DesignError with one line for each fault."""
    table = model_table(workspace, folder, environ)
    designer = _Designer(workspace, spec, question_set, questions, folder, environ, table)
    for place, arm in enumerate(spec.arms):
        designer.add(f"arms[{place}]", arm)
    if designer.faults:
        raise DesignError(designer.faults)
    return list(designer.designs.values())


def model_table(
    workspace: Workspace, folder: Path, environ: Mapping[str, str]
) -> dict[str, ModelConfig]:
    """Return the models known here: ``models.yaml`` beside the file, over the workspace's table."""
    table = table_of(workspace)
    path = folder / MODELS_FILE
    if path.is_file():
        try:
            table |= load_models_yaml(path.read_text(encoding="utf-8"), str(path), environ)
        except FileFaultError as exc:
            raise InputError("\n".join(exc.lines)) from exc
        except (OSError, UnicodeDecodeError) as exc:
            raise InputError(f"{path}: cannot be read: {exc}") from exc
    return table


class _Designer:
    """Collects designs and faults, arm by arm; a later arm may refer to an earlier one."""

    def __init__(
        self,
        workspace: Workspace,
        spec: ExperimentSpec,
        question_set: QuestionSet,
        questions: Sequence[Question],
        folder: Path,
        environ: Mapping[str, str],
        table: Mapping[str, ModelConfig],
    ) -> None:
        self.workspace = workspace
        self.spec = spec
        self.question_set = question_set
        self.rows = questions
        self.questions = [engine_question(q) for q in questions]
        self.folder = folder
        self.environ = environ
        self.table = table
        self.faults: list[str] = []
        self.designs: dict[str, ArmDesign] = {}

    def add(self, where: str, arm: ArmSpec) -> None:
        models, debate_sets = self._models(where, arm)
        protocol = self._protocol(where, arm, models)
        if protocol is None or models is None:
            return
        self._check_slots(where, arm, protocol, models)
        for key, debate_set in debate_sets.items():
            self.faults += [
                f"{where}.models.{key}: {fault}"
                for fault in recorded_faults(
                    debate_set_id=debate_set,
                    protocol=protocol,
                    questions=self.rows,
                    seeds=self.spec.seeds,
                )
            ]
        self._check_branch(where, arm, protocol)
        prices = binding_prices(models)
        bound = cost.bound(protocol, self._sizes(protocol, max))
        self.designs[arm.name] = ArmDesign(
            name=arm.name,
            protocol=protocol,
            models=models,
            debate_sets=debate_sets,
            branch_from=arm.branch_from.arm if arm.branch_from is not None else None,
            bound_microusd=_money(bound, prices),
            bound_output_tokens=bound.output_tokens,
        )
        self._check_caps(self.designs[arm.name], prices)

    def _protocol(
        self, where: str, arm: ArmSpec, models: Mapping[str, ModelConfig] | None
    ) -> Protocol | None:
        try:
            protocol = find_protocol(
                workspace=self.workspace, name=arm.protocol, folder=self.folder
            )
            refuse_unsupported(protocol)
            if arm.agents is not None:
                protocol = with_agents(protocol, arm.agents)
            if arm.match is not None and models is not None:
                protocol = with_agents(protocol, self._matched(arm, protocol, models))
        except (InputError, EngineError, ValueError) as exc:
            self.faults.append(f"{where}.protocol: {exc}")
            return None
        return protocol

    def _matched(self, arm: ArmSpec, protocol: Protocol, models: Mapping[str, ModelConfig]) -> int:
        """Return the number of samples that use what the matched arm is expected to use."""
        if arm.match is None or arm.match.arm not in self.designs:
            raise InputError("the arm that it is matched to has faults of its own")
        target = self.designs[arm.match.arm]
        return cost.match_samples(
            _expected(by_binding(target.protocol, target.models)),
            _expected(by_binding(with_agents(protocol, 1), models)),
            by=arm.match.by,
            target_prices=binding_prices(target.models),
            sample_prices=binding_prices(models),
        )

    def _models(
        self, where: str, arm: ArmSpec
    ) -> tuple[dict[str, ModelConfig] | None, dict[str, int]]:
        models: dict[str, ModelConfig] = {}
        debate_sets: dict[str, int] = {}
        for key, name in self.spec.models_of(arm.name).items():
            at = f"{where}.models.{key}"
            try:
                config = resolve(name, self.table, self.environ)
            except (UnknownModelError, ModelSpecError) as exc:
                self.faults.append(f"{at}: {exc}")
                continue
            self.faults += missing(config, self.environ)
            most = min(config.max_concurrency, self.spec.concurrency)
            models[key] = replace(config, max_concurrency=most)
            if config.path == "recorded":
                self._recorded(at, key, config.upstream_name, debate_sets)
        return models or None, debate_sets

    def _recorded(self, at: str, key: str, name: str, debate_sets: dict[str, int]) -> None:
        found = DebateSet.objects.filter(workspace=self.workspace, name=name).first()
        if found is None:
            self.faults.append(f"{at}: there is no imported debate set {name!r}")
        elif found.question_set_id != self.question_set.pk:
            self.faults.append(
                f"{at}: {name!r} answers other questions than {self.spec.questions!r}"
            )
        else:
            debate_sets[key] = found.pk

    def _check_slots(
        self, where: str, arm: ArmSpec, protocol: Protocol, models: Mapping[str, ModelConfig]
    ) -> None:
        known = {*protocol.model_slots, *protocol.agent_ids}
        for key in models:
            if key not in known:
                self.faults.append(
                    f"{where}.models.{key}: {arm.protocol} has no slot and no agent of that name"
                )
        for agent in protocol.agents:
            if agent.model not in models and agent.id not in models:
                self.faults.append(f"{where}.models: no model for slot {agent.model!r}")
        judge = protocol.aggregation.judge
        if judge is not None and may_judge(protocol) and judge.model not in models:
            self.faults.append(f"{where}.models: no model for slot {judge.model!r}, the judge's")

    def _check_branch(self, where: str, arm: ArmSpec, protocol: Protocol) -> None:
        if arm.branch_from is None or arm.branch_from.arm not in self.designs:
            return
        source = self.designs[arm.branch_from.arm].protocol
        if source.agent_ids != protocol.agent_ids:
            self.faults.append(
                f"{where}.branch_from: agents {', '.join(protocol.agent_ids)} cannot take over the "
                f"answers of {', '.join(source.agent_ids)}"
            )

    def _check_caps(self, design: ArmDesign, prices: Mapping[str, Price]) -> None:
        shortest = self._sizes(design.protocol, min)
        is_branch = design.branch_from is not None  # It has its first answers already.
        self.faults += caps_that_admit_nothing(
            self.spec.budget,
            arm=design.name,
            bound=Amount(design.bound_microusd, design.bound_output_tokens),
            opening=Amount() if is_branch else opening_bound(design.protocol, shortest, prices),
        )

    def _sizes(self, protocol: Protocol, of: Callable[[Iterable[int]], int]) -> cost.Sizes:
        """Return the most or the least that any of the questions puts into prompts."""
        found = [cost.Sizes.of(protocol, q, q.evidence) for q in self.questions]
        names = cost.Sizes.__dataclass_fields__
        return cost.Sizes(**{name: of(getattr(s, name) for s in found) for name in names})


def _expected(protocol: Protocol) -> cost.Expected:
    return cost.expected(protocol, q_tokens=TYPICAL_QUESTION_TOKENS, a_tokens=TYPICAL_ANSWER_TOKENS)


def by_binding(protocol: Protocol, models: Mapping[str, ModelConfig]) -> Protocol:
    """
    Return the protocol with each agent's slot named as what fills it: its own model, or its slot's.

    For what is added up by slot: two agents of one slot may cost differently.
    """
    agents = (
        agent.model_copy(update={"model": agent.id}) if agent.id in models else agent
        for agent in protocol.agents
    )
    return protocol.model_copy(update={"agents": tuple(agents)})


def binding_prices(models: Mapping[str, ModelConfig]) -> dict[str, Price]:
    """Return the price of each of an arm's models, under the names of ``by_binding``."""
    return {key: config.price or Price.free() for key, config in models.items()}


def _money(bound: cost.Bound, prices: Mapping[str, Price]) -> int:
    total = bound.final_microusd
    for call in bound.every_call:
        price = prices.get(call.agent_id) or prices.get(call.slot) or Price.free()
        one = reserve_bound(
            input_token_bound=call.input_tokens, max_output_tokens=call.output_tokens, price=price
        )
        total += call.attempts * one.microusd
    return total
