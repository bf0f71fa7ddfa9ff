"""
The rows of a debate that ran elsewhere, as its log has it. Pure: no database, no clock.

"Imported as logged": each round's reply is scored as it stands, an unscorable one is wrong and
keeps no earlier answer alive, and plurality needs a unique winner. Sending a log through the
engine (``recorded:``) follows the engine's rules instead and may give other figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from audits.metrics.beliefs import BeliefRow
from audits.metrics.records import AS_LOGGED, PLURALITY, OutcomeRow, RunRow, StateRow, Usage
from audits.rows.scoring import Scorer
from runs.engine.normalise import normalise
from runs.engine.parsing import cut_status, parse_reply
from runs.engine.types import Answer, AnswerKind, Question
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import Normaliser, Protocol

#: The aggregate that a log says it ended with, whatever made it.
LOGGED = "logged"
#: What an agent's model is called, alone or before a colon, where nothing was asked of a model.
SIMULATED = "simulated"

_NORMALISER = Normaliser()
_UNSCORABLE = Answer(raw="", kind=AnswerKind.INVALID)

Turn = Mapping[str, Any]
Votes = Mapping[str, Answer]


def logged_run(
    body: Mapping[str, Any], *, condition: str, question: Question, family: str,
    stratum: str | None, rules: str,
) -> RunRow:  # fmt: skip
    """
    Return the row of one stored debate. ``rules`` names how replies without an answer are read.
    """
    protocol = _preset(body.get("rules") or rules)
    scorer = Scorer(question, protocol.normaliser if protocol is not None else _NORMALISER)
    agents = tuple(agent["agent_id"] for agent in body["agents"])
    rounds = body["rounds"]
    answers = [
        {turn["agent_id"]: _read(turn, question, protocol) for turn in turns} for turns in rounds
    ]
    return RunRow(
        run_key=body["debate_id"],
        condition=condition,
        question_id=question.id,
        family=family,
        stratum=stratum,
        seed=body.get("seed") or 0,
        agent_ids=agents,
        rounds_opened=len(rounds),
        states=tuple(_states(scorer, agents, rounds, answers)),
        outcomes=tuple(_outcomes(scorer, agents, answers, body.get("final"), question)),
        stop_reason=AS_LOGGED,
        usage=_usage(body.get("usage") or {}),
    )


def logged_beliefs(
    body: Mapping[str, Any], *, question: Question, family: str
) -> Iterator[BeliefRow]:
    """
    Yield what judges believed after each round, where the right option is among their options.

    ``assigned`` is the side of the only speaker; where both sides spoke there is none.
    """
    agents = body["agents"]
    alone = agents[0].get("side") if len(agents) == 1 else None
    for said in body.get("beliefs") or ():
        belief = said["belief"]
        correct = next((option for option in belief if option in question.reference), None)
        if correct is not None:
            yield BeliefRow(
                session_id=f"{body['debate_id']} {said['judge']}",
                question_id=question.id,
                after=said["after"],
                belief=belief,
                correct=correct,
                assigned=alone if alone in {"correct", "incorrect"} else None,
                family=family,
            )


def starts_blind(body: Mapping[str, Any]) -> bool:
    """Whether no turn of the first round is known to have read, or followed, another one (S8)."""
    first = body["rounds"][0] if body["rounds"] else []
    return not any(turn.get("reads") or turn.get("order") for turn in first)


def names_simulated_agents(body: Mapping[str, Any]) -> bool:
    """Whether the log itself says that some agent was no model but a simulation."""
    models = (str(agent.get("model", "")) for agent in body["agents"])
    return any(model.partition(":")[0] == SIMULATED for model in models)


@lru_cache
def _preset(rules: str) -> Protocol | None:
    return load_preset(rules) if rules in preset_names() else None


def _read(turn: Turn, question: Question, protocol: Protocol | None) -> Answer:
    """Return the answer of a turn: the log's own, or what the rules find in its text."""
    cut = cut_status(turn.get("finish_reason") or "")
    if cut is not None and turn.get("answer") is None:
        return _UNSCORABLE
    if turn.get("answer") is not None:
        return normalise(turn["answer"], question, _NORMALISER)
    if protocol is None or turn.get("text") is None:
        return _UNSCORABLE
    parsed = parse_reply(
        turn["text"].encode("utf-8", "surrogatepass"),
        question=question,
        protocol=protocol,
        prompt=(),
        finish_reason=turn.get("finish_reason") or "",
    )
    return parsed.answer


def _states(
    scorer: Scorer,
    agents: Sequence[str],
    rounds: Sequence[Sequence[Turn]],
    answers: Sequence[Votes],
) -> Iterator[StateRow]:
    """Yield a row a turn; an agent without one keeps what it has, and has nothing at first."""
    for t, turns in enumerate(rounds):
        spoken = {turn["agent_id"]: turn for turn in turns}
        for agent_id in agents:
            if agent_id in spoken:
                yield _state(scorer, spoken[agent_id], t, answers[t][agent_id])
            elif t == 0:
                yield scorer.state(agent_id, 0, None, status="INACTIVE", admitted=False)
    if not rounds:
        for agent_id in agents:
            yield scorer.state(agent_id, 0, None, status="INACTIVE", admitted=False)


def _state(scorer: Scorer, turn: Turn, t: int, answer: Answer) -> StateRow:
    status = turn.get("status", "SUCCEEDED")
    invalid = answer.kind is AnswerKind.INVALID
    if invalid and status == "SUCCEEDED":
        cut = cut_status(turn.get("finish_reason") or "")
        status = cut.value if cut is not None else "INVALID"
    return scorer.state(
        turn["agent_id"], t, None if invalid else answer, status=status, admitted=not invalid
    )


def _outcomes(
    scorer: Scorer,
    agents: Sequence[str],
    answers: Sequence[Votes],
    final: Mapping[str, Any] | None,
    question: Question,
) -> Iterator[OutcomeRow]:
    held: dict[str, Answer] = {}
    for t, spoken in enumerate(answers):
        held |= spoken
        yield _plurality(scorer, t, [held[agent] for agent in agents if agent in held])
    if final is not None:
        last = max(len(answers) - 1, 0)
        said = final.get("answer")
        answer = normalise(said, question, _NORMALISER) if said is not None else None
        yield scorer.outcome(last, LOGGED, answer)


def _plurality(scorer: Scorer, t: int, answers: Sequence[Answer]) -> OutcomeRow:
    votes = Counter(answer.value for answer in answers if answer.is_vote).most_common()
    if not votes:
        silent = any(answer.kind is not AnswerKind.INVALID for answer in answers)
        nothing = Answer(raw="", kind=AnswerKind.ABSTAIN) if silent else None
        return scorer.outcome(t, PLURALITY, nothing)
    value, count = votes[0]
    if len(votes) > 1 and votes[1][1] == count:
        return scorer.outcome(t, PLURALITY, None, tied=True)
    return scorer.outcome(t, PLURALITY, Answer(raw=value, kind=AnswerKind.VALUE, value=value))


def _usage(recorded: Mapping[str, Any]) -> Usage:
    """Return what the log recorded; the rest is unknown, which is not nothing."""
    cost = recorded.get("cost_usd")
    return Usage(
        calls=None,
        input_tokens=recorded.get("input_tokens"),
        cached_input_tokens=None,
        output_tokens=recorded.get("output_tokens"),
        reasoning_tokens=None,
        cost_microusd=None if cost is None else round(cost * 1_000_000),
        held_microusd=None,
        overrun_microusd=None,
        wall_seconds=None,
    )
