"""What an experiment would be, may cost and lacks, with nothing written (docs/metrics.md, §9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.db import transaction

from debateweb.models import Workspace
from runs.experiment_file import ExperimentSpec, unsupported
from runs.models import Question
from runs.protocols import cost
from runs.protocols.presets import with_rounds
from runs.services.design import (
    TYPICAL_ANSWER_TOKENS,
    ArmDesign,
    binding_prices,
    by_binding,
    design_arms,
)
from runs.services.faults import DesignError
from runs.services.sampling import chosen_questions, question_set_for

#: UTF-8 bytes that count as one token where nothing is measured yet.
BYTES_PER_TOKEN = 4
#: The expected cost is shown for answers this many times shorter and longer as well.
LENGTH_RANGE = 2
#: How long a person is assumed to take for one answer; nothing here measures it.
SECONDS_AN_ANSWER = 60
SECONDS_AN_HOUR = 3600


@dataclass(frozen=True, slots=True)
class PersonWork:
    """
    What no rule scores and a person would have to: the answers to open questions.

    Every version of every agent's answer counts, once: a branch takes its first answers over.
    ``hours`` follows from ``seconds_an_answer``, which is assumed.
    """

    open_questions: int
    answers: int
    seconds_an_answer: int = SECONDS_AN_ANSWER

    @property
    def hours(self) -> float:
        return self.answers * self.seconds_an_answer / SECONDS_AN_HOUR


def person_work(
    answer_types: Iterable[str], *, seeds: int, answers_a_run: Iterable[int]
) -> PersonWork:
    """
    Return what people would have to score, at most: an early stop makes fewer answers.

    ``answer_types`` has one entry for each question, ``answers_a_run`` one for each arm.
    """
    is_open = sum(kind == "open" for kind in answer_types)
    return PersonWork(is_open, is_open * seeds * sum(answers_a_run))


@dataclass(frozen=True, slots=True)
class ArmPlan:
    """
    One arm, per run: what the display model expects beside the bound that holds (S31).

    A branch pays for no initial answers. ``low`` and ``high`` are what it costs with answers half
    and twice as long. Tokens and micro-USD.
    """

    name: str
    marked: str
    protocol_hash: str
    agents: int
    revision_rounds: int
    expected_input_tokens: int
    expected_output_tokens: int
    expected_microusd: int
    low_microusd: int
    high_microusd: int
    bound_output_tokens: int
    bound_microusd: int


@dataclass(frozen=True, slots=True)
class ExperimentPlan:
    """The whole. ``bound_microusd`` is the file's total cap where it has a lower one."""

    name: str
    questions: int
    runs: int
    expected_microusd: int
    low_microusd: int
    high_microusd: int
    bound_microusd: int
    people: PersonWork
    arms: tuple[ArmPlan, ...]

    def as_json(self) -> dict[str, Any]:
        found = asdict(self)
        found["people"]["hours"] = self.people.hours
        return found


def plan_experiment(
    *, workspace: Workspace, spec: ExperimentSpec, folder: Path, environ: Mapping[str, str]
) -> ExperimentPlan:
    """Return the plan of a specification. Raises what making the experiment would raise."""
    with transaction.atomic():
        faults = unsupported(spec)
        if faults:
            raise DesignError(faults)
        question_set = question_set_for(workspace=workspace, spec=spec, folder=folder, actor=None)
        questions = chosen_questions(spec, question_set)
        designs = design_arms(
            workspace=workspace,
            spec=spec,
            question_set=question_set,
            questions=questions,
            folder=folder,
            environ=environ,
        )
        transaction.set_rollback(True)  # A file of questions was imported to be looked at only.
    return _plan(spec, questions, designs)


def _plan(
    spec: ExperimentSpec, questions: Sequence[Question], designs: Sequence[ArmDesign]
) -> ExperimentPlan:
    lengths = [len(question.text.encode()) for question in questions]
    question_tokens = max(1, sum(lengths) // len(lengths) // BYTES_PER_TOKEN)
    arms = tuple(_arm(spec, design, question_tokens) for design in designs)
    repeats = len(questions) * len(spec.seeds)
    bound = repeats * sum(arm.bound_microusd for arm in arms)
    total = spec.budget.microusd_total
    return ExperimentPlan(
        name=spec.name,
        questions=len(questions),
        runs=repeats * len(arms),
        expected_microusd=repeats * sum(arm.expected_microusd for arm in arms),
        low_microusd=repeats * sum(arm.low_microusd for arm in arms),
        high_microusd=repeats * sum(arm.high_microusd for arm in arms),
        bound_microusd=bound if total is None else min(bound, total),
        people=person_work(
            (question.answer_type for question in questions),
            seeds=len(spec.seeds),
            answers_a_run=map(_answers_a_run, designs),
        ),
        arms=arms,
    )


def _answers_a_run(design: ArmDesign) -> int:
    protocol = design.protocol
    rounds = protocol.revision_rounds + (design.branch_from is None)
    return len(protocol.agents) * rounds


def _arm(spec: ExperimentSpec, design: ArmDesign, question_tokens: int) -> ArmPlan:
    usual = _expected(design, question_tokens, TYPICAL_ANSWER_TOKENS)
    short = _expected(design, question_tokens, TYPICAL_ANSWER_TOKENS // LENGTH_RANGE)
    long = _expected(design, question_tokens, TYPICAL_ANSWER_TOKENS * LENGTH_RANGE)
    budget = spec.budget
    return ArmPlan(
        name=design.name,
        marked=design.marked,
        protocol_hash=design.protocol_hash,
        agents=len(design.protocol.agents),
        revision_rounds=design.protocol.revision_rounds,
        expected_input_tokens=usual.input_tokens,
        expected_output_tokens=usual.output_tokens,
        expected_microusd=usual.microusd,
        low_microusd=short.microusd,
        high_microusd=long.microusd,
        bound_output_tokens=_capped(design.bound_output_tokens, budget.output_tokens_per_run),
        bound_microusd=_capped(design.bound_microusd, budget.microusd_per_run),
    )


@dataclass(frozen=True, slots=True)
class _Use:
    input_tokens: int
    output_tokens: int
    microusd: int


def _expected(design: ArmDesign, question_tokens: int, answer_tokens: int) -> _Use:
    """Return what one run is expected to use; a branch takes its initial answers over."""
    protocol = by_binding(design.protocol, design.models)
    longest = min(agent.decoding.max_output_tokens for agent in protocol.agents)
    sizes = {"q_tokens": question_tokens, "a_tokens": min(answer_tokens, longest)}
    prices = binding_prices(design.models)
    whole = cost.expected(protocol, **sizes)
    use = _Use(whole.input_tokens, whole.output_tokens, whole.microusd(prices))
    if design.branch_from is None:
        return use
    taken_over = cost.expected(with_rounds(protocol, 0), **sizes)
    return _Use(
        use.input_tokens - taken_over.input_tokens,
        use.output_tokens - taken_over.output_tokens,
        use.microusd - taken_over.microusd(prices),
    )


def _capped(bound: int, cap: int | None) -> int:
    return bound if cap is None else min(bound, cap)
