"""
A judge as a run's last step (S28): which calls it takes, and what each of them came to.

The calls follow from the last snapshot alone, so that replay makes them again (S34). Verdicts are
read from results as admission reads them: the lowest attempt that can be read decides, late and
foreign results decide nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations

from runs.engine.aggregation import judged_candidates, may_judge
from runs.engine.choices import letters
from runs.engine.draws import Draws
from runs.engine.hashing import question_hash, raw_digest, request_digest
from runs.engine.judge_combining import ABSTAIN, CANDIDATE, SCORE, TIE
from runs.engine.judge_prompts import SCORE_MAX, SCORE_MIN, judge_agent, options, render_judge
from runs.engine.operators import (
    NO_RESULT,
    decoding_settings,
    input_token_bound,
    sampling_seed,
)
from runs.engine.parsing import cut_status, parse_reply
from runs.engine.presentation import (
    ALL_ORDERS_TO,
    Orders,
    drawn,
    presentation_orders,
    williams,
)
from runs.engine.prompts import Asked
from runs.engine.types import (
    Answer,
    AnswerKind,
    CallKind,
    CallPlan,
    CallResult,
    CallStatus,
    Evidence,
    JudgePlan,
    JudgeVerdict,
    Question,
    Snapshot,
    Status,
    Stop,
    StopReason,
)
from runs.protocols.decisions import JudgeSettings
from runs.protocols.parts import Normaliser, Output
from runs.protocols.spec import Protocol

#: Begins the name of each call to a judge. No agent's id can hold a colon.
CALL_PREFIX = "judge:"

#: A run that ended so makes no further call (S14).
_NEVER_AFTER = frozenset(
    (StopReason.CANCELLED, StopReason.ERROR, StopReason.INSUFFICIENT_FINAL_BUDGET)
)

_SCORES = frozenset(str(score) for score in range(SCORE_MIN, SCORE_MAX + 1))

_FAILURES = {
    CallStatus.FAILED: Status.FAILED,
    CallStatus.CANCELLED: Status.CANCELLED,
    CallStatus.TIMEOUT: Status.TIMEOUT,
}


def final_seconds(protocol: Protocol) -> int:
    """
    Return the time that is kept back for a run's end (S30): work ends so long before the deadline.

    Where a judge may be asked that is at least the time of one call, whatever the protocol keeps.
    """
    limits = protocol.limits
    if not may_judge(protocol):
        return limits.final_time_cap_seconds
    return max(limits.final_time_cap_seconds, limits.call_timeout_seconds)


def orders_shown(settings: JudgeSettings, k: int, draws: Draws | None) -> Orders:
    """
    Return the orders in which ``k`` candidates are shown, as indices, repeats apart.

    Pairwise shows every pair, in its given order or both; pointwise each candidate alone. The
    others show all at once: as given, given and reversed, every order (a Williams design beyond
    four), or balanced. A design that leaves orders out is drawn (S36); None leaves it as it is.
    """
    given = tuple(range(k))
    if settings.mode == "pointwise":
        return tuple((index,) for index in given)
    if settings.mode == "pairwise":
        pairs = tuple(combinations(given, 2))
        return (
            pairs
            if settings.orders == "given"
            else tuple(order for pair in pairs for order in (pair, pair[::-1]))
        )
    if settings.orders == "given":
        return (given,)
    if settings.orders == "both":
        return (given, given[::-1])
    if settings.orders == "all" and k <= ALL_ORDERS_TO:
        return presentation_orders(k)
    return williams(k) if draws is None else drawn(williams(k), k, draws)


def plan_judging(
    *,
    protocol: Protocol,
    question: Question,
    evidence: tuple[Evidence, ...],
    zero: Snapshot,
    last: Snapshot,
    stop: Stop,
    t: int,
    stage_t: int,
    run_seed: int,
) -> JudgePlan | None:
    """
    Return the calls to the judge that a run ending with ``stop`` after round ``t`` needs.

    ``stage_t`` is the place of the stage among the run's rounds, under which its calls are
    stored. None where no judge decides, or nothing is left for it to decide.
    """
    settings = protocol.aggregation.judge
    if settings is None or stop.reason in _NEVER_AFTER or not last.states:
        return None
    draws = Draws(run_seed, question_hash(question))
    values = judged_candidates(protocol=protocol, snapshot=last, zero=zero, t=t, draws=draws)
    if len(values) < 2:
        return None
    asked = Asked(protocol, question, evidence, draws)
    indices = orders_shown(settings, len(values), draws)
    shown = [
        (tuple(values[index] for index in order), repeat)
        for order in indices
        for repeat in range(1, settings.repeats + 1)
    ]
    return JudgePlan(
        t=stage_t,
        candidates=values,
        orders=tuple(order for order, _ in shown),
        repeats=tuple(repeat for _, repeat in shown),
        calls=tuple(
            _call(asked, settings, last, order, f"{CALL_PREFIX}{place}", stage_t)
            for place, (order, _) in enumerate(shown, start=1)
        ),
    )


def _call(
    asked: Asked,
    settings: JudgeSettings,
    last: Snapshot,
    order: Sequence[str],
    call_id: str,
    stage_t: int,
) -> CallPlan:
    rendered = render_judge(asked, settings, last, order)
    agent = judge_agent(settings)
    seed = sampling_seed(asked.draws, agent.model_copy(update={"id": call_id}), last.t)
    return CallPlan(
        agent_id=call_id,
        t=stage_t,
        kind=CallKind.JUDGE,
        model_slot=settings.model,
        prompt=rendered.prompt,
        read_set=rendered.read_set,
        parent_version=0,
        max_output_tokens=settings.decoding.max_output_tokens,
        input_token_bound=input_token_bound(rendered.prompt, None),
        request_digest=request_digest(
            model_slot=settings.model,
            prompt=rendered.prompt,
            decoding=decoding_settings(agent, seed),
            response_schema=None,
        ),
        seed=seed,
    )


def asked_of_judge(settings: JudgeSettings, count: int) -> Question:
    """Return what a judge answers, as a question that the engine's own rules can read."""
    if settings.mode == "pointwise":
        return Question(id="judge", text="", answer_type="number")
    return Question(id="judge", text="", answer_type="choice", choices=options(count))


def asked_in(protocol: Protocol, plan: JudgePlan) -> dict[str, Question]:
    """Return for each call of ``plan`` what it asks the judge."""
    settings = protocol.aggregation.judge
    if settings is None:
        return {}
    pairs = zip(plan.calls, plan.orders, strict=True)
    return {call.agent_id: asked_of_judge(settings, len(order)) for call, order in pairs}


def read_verdicts(
    *,
    protocol: Protocol,
    plan: JudgePlan,
    results: Iterable[CallResult],
    skipped: Iterable[str] = (),
) -> tuple[JudgeVerdict, ...]:
    """
    Return one verdict for each presentation of ``plan``, in its order.

    ``results`` may come in any order, twice, late or from elsewhere; ``skipped`` are the calls
    that the budget did not allow. A presentation without a readable reply has the status and the
    reason of its last failure.
    """
    settings = protocol.aggregation.judge
    if settings is None:
        return ()
    came = set(results)
    left_out = frozenset(skipped)
    verdicts = []
    for call, order, repeat in zip(plan.calls, plan.orders, plan.repeats, strict=True):
        unread = JudgeVerdict(call.agent_id, order, repeat, Status.TIMEOUT, NO_RESULT)
        if call.agent_id in left_out:
            unread = replace(unread, status=Status.SKIPPED_BUDGET, reason="worker_budget")
        mine = sorted((r for r in came if _answers(r, call)), key=_rank)
        read = [_read(protocol, settings, call, unread, result) for result in mine]
        decided = next((v for v in read if v.status is Status.SUCCEEDED), None)
        verdicts.append(decided or (read[-1] if read else unread))
    return tuple(verdicts)


def _answers(result: CallResult, call: CallPlan) -> bool:
    if (result.agent_id, result.t, result.late) != (call.agent_id, call.t, False):
        return False
    return (result.request_digest, result.parent_version) == (call.request_digest, 0)


def _rank(result: CallResult) -> tuple[int, str, str, str, str]:
    return (
        result.attempt,
        raw_digest(result.raw),
        result.status.value,
        result.finish_reason,
        result.error_class,
    )


def _read(
    protocol: Protocol,
    settings: JudgeSettings,
    call: CallPlan,
    unread: JudgeVerdict,
    result: CallResult,
) -> JudgeVerdict:
    verdict = replace(
        unread, attempt=result.attempt, raw_hash=raw_digest(result.raw) if result.raw else ""
    )
    if result.status is not CallStatus.SUCCEEDED:
        return replace(verdict, status=_FAILURES[result.status], reason=result.error_class)
    cut = cut_status(result.finish_reason)
    if cut is not None:
        return replace(verdict, status=cut, reason=result.finish_reason)
    answer = _answer(protocol, call, asked_of_judge(settings, len(unread.order)), result)
    if answer.kind is AnswerKind.INVALID:
        return replace(verdict, status=Status.INVALID, reason=answer.reason or "no_answer")
    verdict = replace(verdict, status=Status.SUCCEEDED, reason="")
    if answer.kind is not AnswerKind.VALUE:
        return replace(verdict, said=ABSTAIN, reason=answer.kind.value)
    read = _scored if settings.mode == "pointwise" else _chosen
    return read(verdict, answer.value)


def _answer(protocol: Protocol, call: CallPlan, asked: Question, result: CallResult) -> Answer:
    # The judge replies in its own form, whatever form the debaters' replies have.
    reader = protocol.model_copy(update={"output": Output(), "normaliser": Normaliser()})
    answer = parse_reply(
        result.raw,
        question=asked,
        protocol=reader,
        prompt=call.prompt,
        finish_reason=result.finish_reason,
    ).answer
    if asked.answer_type == "number" and answer.is_vote and answer.value not in _SCORES:
        reason = f"the score is no whole number from {SCORE_MIN} to {SCORE_MAX}"
        return Answer(raw=answer.raw, kind=AnswerKind.INVALID, reason=reason)
    return answer


def judged_invalid(protocol: Protocol, call: CallPlan, asked: Question, result: CallResult) -> bool:
    """Return whether a judge's reply came whole and says nothing that can be read."""
    if cut_status(result.finish_reason) is not None:
        return False
    return _answer(protocol, call, asked, result).kind is AnswerKind.INVALID


def _scored(verdict: JudgeVerdict, value: str) -> JudgeVerdict:
    return replace(verdict, said=SCORE, choice=verdict.order[0], score=int(value))


def _chosen(verdict: JudgeVerdict, value: str) -> JudgeVerdict:
    place = letters(options(len(verdict.order))).index(value)
    if place < len(verdict.order):
        return replace(verdict, said=CANDIDATE, choice=verdict.order[place])
    return replace(verdict, said=TIE if place == len(verdict.order) else ABSTAIN)
