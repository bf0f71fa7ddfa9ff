"""
The experiment file: arms × questions × seeds, parsed and judged before anything starts.

Pure: text in, a frozen ``ExperimentSpec`` or ``ExperimentFileError`` out. Whether a name of a
question set, protocol or model exists is for the caller to say. Defaults are those of the
dataclasses and stand in docs/formats.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from runs.engine.hashing import digest
from runs.experiment_fields import Section
from runs.metric_names import METRICS
from runs.protocols.yaml12 import MAX_FAULTS, Document, FileFaultError, load

MatchUnit = Literal["output_tokens", "microusd"]

MAX_ARMS = 64
MAX_SEEDS = 1_000
MAX_CONCURRENCY = 1_024
MAX_AGENTS = 64
MAX_REVISION_ROUNDS = 64
MAX_MICROUSD = 10**13  # Ten million US dollars: a slip of the finger, not a budget.
MAX_TOKENS = 10**10
MAX_SECONDS = 30 * 24 * 3600


class ExperimentFileError(FileFaultError):
    """The experiment file cannot be used; ``lines`` says where and why."""

    code = "experiment_file"


@dataclass(frozen=True, slots=True)
class SampleSpec:
    """``n`` questions drawn with ``seed``, in equal shares of the values of ``by``."""

    n: int
    seed: int = 1
    by: Literal["stratum", "family"] | None = None


@dataclass(frozen=True, slots=True)
class BranchFrom:
    """Start from the stored states of round ``t`` of an arm listed before."""

    arm: str
    t: int = 0


@dataclass(frozen=True, slots=True)
class Match:
    """Take as many agents as cost what an arm listed before costs."""

    arm: str
    by: MatchUnit


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """``protocol`` is a name or a file; ``models`` fills the protocol's model slots."""

    name: str
    protocol: str
    models: dict[str, str] = field(hash=False)
    branch_from: BranchFrom | None = None
    match: Match | None = None
    agents: int | None = None


@dataclass(frozen=True, slots=True)
class RouteSpec:
    when: Literal["disagreement"]
    from_arm: str


@dataclass(frozen=True, slots=True)
class StageSpec:
    """Stop after so many questions; go on without asking up to the projected total."""

    questions: int
    confirm_above_microusd: int = 0


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """
    Caps; None sets none of its own. ``microusd_per_run`` and ``output_tokens_per_run`` then
    fall back to the protocol's upper bound (S31).
    """

    microusd_per_run: int | None = None
    output_tokens_per_run: int | None = None
    microusd_total: int | None = None
    deadline_seconds: int | None = None
    stage: StageSpec | None = None


@dataclass(frozen=True, slots=True)
class AnalysisSpec:
    """What is compared and how, frozen when the experiment starts."""

    primary: tuple[str, ...] = ("accuracy_T",)
    contrasts: tuple[tuple[str, str], ...] = ()
    family: Literal["holm", "none"] = "holm"
    margin: float | None = None
    alpha: float = 0.05
    split: Literal["validation", "test"] | None = None
    stop_rule: Literal["fixed"] = "fixed"


@dataclass(frozen=True, slots=True)
class ExperimentSpec:
    """One experiment file. ``questions`` is a set by name, or a file."""

    name: str
    questions: str
    arms: tuple[ArmSpec, ...]
    limit: int | None = None
    sample: SampleSpec | None = None
    seeds: tuple[int, ...] = (1,)
    evidence_package: str | None = None
    route: RouteSpec | None = None
    budget: BudgetSpec = BudgetSpec()
    analysis: AnalysisSpec = AnalysisSpec()
    concurrency: int = 64

    def arm(self, name: str) -> ArmSpec:
        """Return the arm of that name; KeyError when there is none."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        raise KeyError(name)

    def models_of(self, name: str) -> dict[str, str]:
        """Return an arm's models: its own, else those of the arm that it follows."""
        arm = self.arm(name)
        followed = arm.branch_from or arm.match
        return arm.models if arm.models or followed is None else self.models_of(followed.arm)


def parse(text: str, where: str) -> ExperimentSpec:
    """
    Return the experiment that the text describes; ``where`` names the file in faults.

    Raises YamlError where the text is not YAML 1.2, ExperimentFileError where a key is unknown
    or a value cannot be; both carry lines ``FILE:LINE: field: what is wrong``.
    """
    document = load(text, where)
    faults: list[str] = []
    spec = _experiment(Section(document, (), document.data, faults))
    if faults:
        raise ExperimentFileError(_in_file_order(faults, document))
    return spec


def _in_file_order(faults: list[str], document: Document) -> list[str]:
    skip = len(document.where) + 1
    return sorted(faults, key=lambda fault: int(fault[skip:].split(":", 1)[0]))[:MAX_FAULTS]


def _experiment(top: Section) -> ExperimentSpec:
    top.only(
        "name questions limit sample seeds arms evidence_package route budget analysis concurrency"
    )
    arms = _arms(top)
    names = tuple(arm.name for arm in arms)
    if top.has("limit") and top.has("sample"):
        top.fault("sample", "stands beside limit; only one of them can choose the questions")
    return ExperimentSpec(
        name=top.name("name") or "",
        questions=top.text("questions") or "",
        arms=arms,
        limit=top.whole("limit", least=1),
        sample=_sample(top.section("sample")),
        seeds=_seeds(top),
        evidence_package=top.text("evidence_package", required=False),
        route=_route(top.section("route"), names),
        budget=_budget(top.section("budget")),
        analysis=_analysis(top.section("analysis"), names),
        concurrency=top.whole("concurrency", least=1, most=MAX_CONCURRENCY) or 64,
    )


def _sample(section: Section | None) -> SampleSpec | None:
    if section is None:
        return None
    section.only("n seed by")
    seed = section.whole("seed")
    return SampleSpec(
        n=section.whole("n", least=1, required=True) or 1,
        seed=1 if seed is None else seed,
        by=section.one_of("by", ("stratum", "family")),
    )


def _seeds(top: Section) -> tuple[int, ...]:
    given = top.items("seeds")
    if given is None:
        return (1,)
    seeds = tuple(item.own_whole() for item in given)
    found = tuple(seed for seed in seeds if seed is not None)
    if not given:
        top.fault("seeds", "must list at least one seed")
    elif len(given) > MAX_SEEDS:
        top.fault("seeds", f"lists {len(given)} seeds; the most is {MAX_SEEDS}")
    for place, seed in enumerate(seeds):
        if seed is not None and seed in seeds[:place]:
            given[place].fault("", f"{seed} stands twice")
    return found


def _arms(top: Section) -> tuple[ArmSpec, ...]:
    given = top.items("arms", required=True) or []
    if top.has("arms") and given == []:
        top.fault("arms", "must list at least one arm")
    if len(given) > MAX_ARMS:
        top.fault("arms", f"lists {len(given)} arms; the most is {MAX_ARMS}")
    arms: list[ArmSpec] = []
    for section in given:
        earlier = tuple(arm.name for arm in arms)
        arm = _arm(section, earlier)
        if arm.name and arm.name in earlier:
            section.fault("name", f"{arm.name!r} names two arms")
        arms.append(arm)
    return tuple(arms)


def _arm(section: Section, earlier: tuple[str, ...]) -> ArmSpec:
    section.only("name protocol models branch_from match agents")
    if section.has("agents") and section.has("match"):
        section.fault("agents", "stands beside match, which decides how many agents there are")
    return ArmSpec(
        name=section.name("name") or "",
        protocol=section.text("protocol") or "",
        models=_models(section),
        branch_from=_branch_from(section.section("branch_from"), earlier),
        match=_match(section.section("match"), earlier),
        agents=section.whole("agents", least=1, most=MAX_AGENTS),
    )


def _models(arm: Section) -> dict[str, str]:
    """An arm that branches or matches may leave its models to the arm it follows."""
    section = arm.section("models")
    if section is None:
        if not (arm.has("branch_from") or arm.has("match")):
            arm.fault("models", "is missing; write models: {default: MODEL}")
        return {}
    if not section.keys:
        arm.fault("models", "names no model; write models: {default: MODEL}")
    return {slot: section.text(slot) or "" for slot in section.keys}


def _branch_from(section: Section | None, earlier: tuple[str, ...]) -> BranchFrom | None:
    if section is None:
        return None
    section.only("arm t")
    return BranchFrom(
        arm=section.known("arm", earlier, "an arm listed before"),
        t=section.whole("t", most=MAX_REVISION_ROUNDS) or 0,
    )


def _match(section: Section | None, earlier: tuple[str, ...]) -> Match | None:
    if section is None:
        return None
    section.only("arm by")
    arm = section.known("arm", earlier, "an arm listed before")
    units: tuple[MatchUnit, ...] = ("output_tokens", "microusd")
    return Match(arm=arm, by=section.one_of("by", units, required=True) or "output_tokens")


def _route(section: Section | None, names: tuple[str, ...]) -> RouteSpec | None:
    if section is None:
        return None
    section.only("when from")
    section.one_of("when", ("disagreement",), required=True)
    return RouteSpec(when="disagreement", from_arm=section.known("from", names, "an arm"))


def _budget(section: Section | None) -> BudgetSpec:
    if section is None:
        return BudgetSpec()
    section.only("microusd_per_run output_tokens_per_run microusd_total deadline_seconds stage")
    budget = BudgetSpec(
        microusd_per_run=section.whole("microusd_per_run", most=MAX_MICROUSD),
        output_tokens_per_run=section.whole("output_tokens_per_run", least=1, most=MAX_TOKENS),
        microusd_total=section.whole("microusd_total", most=MAX_MICROUSD),
        deadline_seconds=section.whole("deadline_seconds", least=1, most=MAX_SECONDS),
        stage=_stage(section.section("stage")),
    )
    per_run, total = budget.microusd_per_run, budget.microusd_total
    if per_run is not None and total is not None and per_run > total:
        section.fault("microusd_per_run", f"{per_run} is more than microusd_total {total}")
    return budget


def _stage(section: Section | None) -> StageSpec | None:
    if section is None:
        return None
    section.only("questions confirm_above_microusd")
    return StageSpec(
        questions=section.whole("questions", least=1, required=True) or 1,
        confirm_above_microusd=section.whole("confirm_above_microusd", most=MAX_MICROUSD) or 0,
    )


def _analysis(section: Section | None, names: tuple[str, ...]) -> AnalysisSpec:
    if section is None:
        return AnalysisSpec()
    section.only("primary contrasts family margin alpha split stop_rule")
    alpha = section.real("alpha", above=0, below=1)
    section.one_of("stop_rule", ("fixed",))
    return AnalysisSpec(
        primary=_primary(section),
        contrasts=_contrasts(section, names),
        family=section.one_of("family", ("holm", "none")) or "holm",
        margin=section.real("margin", above=0, below=1),
        alpha=0.05 if alpha is None else alpha,
        split=section.one_of("split", ("validation", "test")),
    )


def _primary(section: Section) -> tuple[str, ...]:
    given = section.items("primary")
    if given is None:
        return ("accuracy_T",)
    if not given:
        section.fault("primary", "must list at least one metric")
    return tuple(item.own_known(METRICS, "a metric of comparisons") for item in given)


def _contrasts(section: Section, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found: list[tuple[str, str]] = []
    for item in section.items("contrasts") or []:
        pair = item.own_items()
        if len(pair) != 2:
            item.fault("", "must be a pair of arms: [a, b]")
            continue
        a, b = (arm.own_known(names, "an arm") for arm in pair)
        if a and a == b:
            item.fault("", f"compares {a!r} with itself")
        elif a and b and ((a, b) in found or (b, a) in found):
            item.fault("", f"{a!r} and {b!r} are compared twice")
        found.append((a, b))
    return tuple(found)


def frozen_analysis(spec: ExperimentSpec) -> dict[str, Any]:
    """
    Return, as plain JSON, what the experiment promised to analyse before it ran.

    The analysis block with its defaults written out, and what it is an analysis of: arms,
    seeds and the choice of questions.
    """
    analysis = asdict(spec.analysis)
    analysis["primary"] = list(spec.analysis.primary)
    analysis["contrasts"] = [list(pair) for pair in spec.analysis.contrasts]
    return {
        "analysis": analysis,
        "arms": [arm.name for arm in spec.arms],
        "questions": spec.questions,
        "limit": spec.limit,
        "sample": None if spec.sample is None else asdict(spec.sample),
        "seeds": list(spec.seeds),
    }


def analysis_hash(spec: ExperimentSpec) -> str:
    """Return the hex SHA-256 of the frozen analysis (S35)."""
    return digest(frozen_analysis(spec))


def unsupported(spec: ExperimentSpec) -> list[str]:
    """Return one line for each part of a valid file that cannot be executed yet."""
    found = [
        f"arms[{place}].branch_from.t: branching at t = {arm.branch_from.t} cannot be executed "
        "yet; only t = 0 can"
        for place, arm in enumerate(spec.arms)
        if arm.branch_from is not None and arm.branch_from.t > 0
    ]
    if spec.evidence_package is not None:
        found.append("evidence_package: evidence packages cannot be executed yet")
    if spec.route is not None:
        found.append("route: routing cannot be executed yet")
    return found


def located(faults: Iterable[str], text: str, where: str) -> list[str]:
    """
    Return faults that name a field as ``FILE:LINE: field: what``, in the order of the file.

    For what only the caller can find: unknown protocols, models without a price. A fault that
    begins with no field of the file stands for the file as a whole.
    """
    document = load(text, where)
    return [_located(fault, document) for fault in faults]


def _located(fault: str, document: Document) -> str:
    field, _, what = fault.partition(": ")
    if not what or not _FIELD.fullmatch(field):
        return f"{document.where}: {fault}"
    path = tuple(int(step) if step.isdigit() else step for step in _STEP.findall(field))
    return f"{document.where}:{document.line(path)}: {fault}"


_FIELD = re.compile(r"[a-z_]+(?:\[\d+\]|\.[^.\[\] ]+)*")
_STEP = re.compile(r"[^.\[\]]+")
