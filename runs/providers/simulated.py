"""
Simulated agents: seeded answers with known accuracy, error correlation and conformity.

``simulate`` is a pure function of the request's origin and the parameters; every draw is keyed
(S36), so a reply is the same in every process and order of work. The model of errors:

- At t = 0 agent i has an indicator B_i ~ Bernoulli(√correlation) and takes the uniform V, which
  is common to all agents, where B_i holds and its own U_i where not. It is wrong iff its uniform
  is at least ``accuracy``. Two agents share V with probability ``correlation`` and are
  independent otherwise, so the pairwise correlation of their errors is exactly ``correlation``.
- A wrong answer is one of a few plausible values, drawn in common where B_i holds.
- A revision adopts, with probability ``conformity``, the unique plurality of the peers' answers
  that it was shown; failing that it is drawn afresh with probability ``churn``, independently of
  the others; else the agent keeps its answer. An agent without an answer draws as at t = 0.

``simulated_truth`` computes the figures that follow from this. See also
docs/decisions/0012-simulated-model-of-errors.md.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

from runs.engine.draws import Draws
from runs.engine.types import CallStatus
from runs.providers import endings
from runs.providers.base import Origin, ProviderReply, ProviderRequest, Usage
from runs.providers.errors import ModelSpecError
from runs.providers.plausible import right_answer, wrong_answers

PREFIX = "simulated:"
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class SimulatedParams:
    """Probabilities in 0 … 1, ``latency`` in mean seconds, ``tokens`` per reply."""

    accuracy: float = 0.6
    correlation: float = 0.0
    conformity: float = 0.0
    churn: float = 0.0
    latency: float = 0.0
    abstain: float = 0.0
    invalid: float = 0.0
    tokens: int = 120
    seed: int = 0


_INTEGERS = {"tokens": 1_000_000, "seed": 2**53 - 1}
_LATENCY_LIMIT_SECONDS = 3600.0


def parse_spec(spec: str) -> SimulatedParams:
    """
    Return the parameters in ``simulated:accuracy=0.6,correlation=0.3,…``; all have defaults.

    Raises ModelSpecError for an unknown or repeated key or a value out of range.
    """
    if not spec.startswith(PREFIX):
        raise ModelSpecError(f"{spec[:80]!r} does not start with {PREFIX!r}")
    values: dict[str, float | int] = {}
    known = [field.name for field in fields(SimulatedParams)]
    for part in filter(None, spec.removeprefix(PREFIX).split(",")):
        key, equals, text = (piece.strip() for piece in part.partition("="))
        if key not in known or not equals:
            raise ModelSpecError(
                f"simulated: unknown parameter {part.strip()[:40]!r}; there are {', '.join(known)}"
            )
        if key in values:
            raise ModelSpecError(f"simulated: {key} is given twice")
        values[key] = _value(key, text)
    return SimulatedParams(**values)  # type: ignore[arg-type] # _value gives each key its type.


def _value(key: str, text: str) -> float | int:
    if key in _INTEGERS:
        if text.isascii() and text.isdigit() and int(text[:20]) <= _INTEGERS[key]:
            return int(text[:20])
        raise ModelSpecError(
            f"simulated: {key}={text[:40]} is not a whole number from 0 to {_INTEGERS[key]}"
        )
    limit = _LATENCY_LIMIT_SECONDS if key == "latency" else 1.0
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= limit:  # Also false for NaN.
        raise ModelSpecError(f"simulated: {key}={text[:40]} is not a number from 0 to {limit:g}")
    return number


@dataclass(frozen=True, slots=True)
class _Agent:
    """The draws of one call: its own, and those that it has in common with all agents."""

    origin: Origin
    seed: int
    draws: Draws

    def own(self, purpose: str) -> float:
        return self.draws.uniform(
            agent=self.origin.agent_id, t=self.origin.t, purpose=self._key(purpose)
        )

    def common(self, purpose: str) -> float:
        return self.draws.uniform(t=self.origin.t, purpose=self._key(purpose))

    def _key(self, purpose: str) -> str:
        return f"simulated/{self.seed}/{self.origin.kind}/{purpose}"


def _agent(request: ProviderRequest, params: SimulatedParams) -> _Agent:
    origin = request.origin
    return _Agent(origin, params.seed, Draws(origin.run_seed, origin.question_hash))


def simulate(request: ProviderRequest, params: SimulatedParams) -> str:
    """Return the simulated agent's reply: its reasoning says what it is, its answer ends it."""
    agent = _agent(request, params)
    draw = agent.own("form")
    if draw < params.invalid:
        return "[simulated] This reply names no answer on purpose."
    if draw < params.invalid + params.abstain:
        return _formatted("abstain", "abstained", request.origin.output_format)
    answer, how = _answer(agent, params)
    return _formatted(answer, how, request.origin.output_format)


def _answer(agent: _Agent, params: SimulatedParams) -> tuple[str, str]:
    origin = agent.origin
    if origin.t == 0 or origin.own_answer is None:
        return _first_answer(agent, params), "drew its answer"
    peers = unique_plurality(origin.peer_answers)
    if peers is not None and agent.own("conform") < params.conformity:
        return peers, "adopted the plurality of its peers"
    if agent.own("churn") < params.churn:
        return _fresh_answer(agent, params), "drew a new answer"
    return origin.own_answer, "kept its answer"


def _first_answer(agent: _Agent, params: SimulatedParams) -> str:
    in_common = agent.own("common?") < math.sqrt(params.correlation)
    draw = agent.common if in_common else agent.own
    return _drawn(agent.origin, params.accuracy, draw("wrong?"), draw("which wrong"))


def _fresh_answer(agent: _Agent, params: SimulatedParams) -> str:
    return _drawn(
        agent.origin, params.accuracy, agent.own("again wrong?"), agent.own("again which wrong")
    )


def _drawn(origin: Origin, accuracy: float, wrong: float, which: float) -> str:
    right = right_answer(origin)
    if wrong < accuracy and right is not None:
        return right
    values = wrong_answers(origin)
    return values[int(which * len(values))]


def unique_plurality(answers: Sequence[str | None]) -> str | None:
    """Return the most frequent answer, or None where there is none or two are level."""
    ranked = Counter(a for a in answers if a is not None).most_common(2)
    if not ranked or (len(ranked) == 2 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def _formatted(answer: str, how: str, output_format: str) -> str:
    reasoning = f"[simulated] No model was asked: a seeded agent {how}."
    if output_format == "json":
        return json.dumps({"answer": answer, "reasoning": reasoning}, ensure_ascii=False)
    return f"{reasoning}\nFinal answer: {answer}"


def simulated_usage(request: ProviderRequest, params: SimulatedParams) -> Usage:
    """Return the tokens that such a call would report."""
    prompt_bytes = sum(len(m.content.encode("utf-8", "replace")) for m in request.prompt)
    return Usage(
        input_tokens=-(-prompt_bytes // BYTES_PER_TOKEN),
        cached_tokens=0,
        output_tokens=min(params.tokens, request.max_output_tokens),
        reasoning_tokens=0,
    )


def simulated_latency_seconds(request: ProviderRequest, params: SimulatedParams) -> float:
    """Return a seeded duration, uniform within half and one and a half times the mean."""
    if params.latency == 0:
        return 0.0
    return params.latency * (0.5 + _agent(request, params).own("latency"))


class SimulatedProvider:
    """A model that is none: marked wherever its output shows."""

    marked = "simulated"

    def __init__(self, params: SimulatedParams) -> None:
        self.params = params

    async def complete(self, request: ProviderRequest) -> ProviderReply:
        """Return the seeded reply after its seeded latency."""
        seconds = simulated_latency_seconds(request, self.params)
        if seconds > 0:
            await asyncio.sleep(min(seconds, request.timeout_seconds))
        if seconds > request.timeout_seconds:
            return endings.failed(
                endings.TIMEOUT,
                "the simulated latency is longer than the time-out",
                latency_seconds=request.timeout_seconds,
            )
        return ProviderReply(
            status=CallStatus.SUCCEEDED,
            raw=simulate(request, self.params).encode("utf-8", "surrogatepass"),
            usage=simulated_usage(request, self.params),
            finish_reason="stop",
            model_version="simulated-1",
            latency_seconds=seconds,
            simulated=True,
        )

    async def aclose(self) -> None:
        """There is nothing to release."""
