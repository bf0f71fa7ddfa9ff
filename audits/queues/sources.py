"""
Items of a queue out of what the workspace holds: answers, judgments, debates, merges.

Each item is split strictly: ``shown`` is what a person may read before they label, all else is
secret. File names, models, agents, arms, rounds, verdicts and right answers are secret.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from string import ascii_uppercase
from typing import Any, Final, Literal

from django.db.models import QuerySet

from audits.judgment_models import JudgedItem, Judgment, JudgmentSet
from audits.labelling.design import Part, QueueDesign, plain_digest
from audits.labelling.giveaways import giveaways
from audits.queue_models import QueueKind
from audits.queues.creating import NewItem
from audits.queues.errors import QueueDesignError
from debateweb.models import Workspace
from runs.engine.hashing import digest
from runs.models import Debate, DebateSet, Experiment, Question, State

#: Differently worded answers that were taken for two, with at least this share of words in common.
NEAR: Final = 0.5


class Source(Part):
    """
    What a queue is drawn from. ``answers``: the first and last of each agent, or all of them.

    ``questions``: those with an open answer, or all.
    """

    kind: Literal["experiment", "judgments", "debates"]
    name: str
    answers: Literal["ends", "all"] = "ends"
    questions: Literal["open", "all"] = "open"


def source_items(
    workspace: Workspace, source: Source, kind: QueueKind, design: QueueDesign
) -> list[NewItem]:
    """
    Return all that may be drawn, in the order of the source.

    Raises QueueDesignError where there is no such source, or it gives no items of this kind.
    """
    read = _READERS.get((source.kind, kind))
    if read is None:
        raise QueueDesignError(f"kind: {source.kind} give no items of kind {kind}")
    items = list(read(workspace, source, design))
    return [_counted(item) for item in items] if design.mask_giveaways else items


def state_hash(items: Iterable[NewItem]) -> str:
    """Return the hash of what a source gave: another after anything of it changed."""
    return digest([[item.item_id, plain_digest(item.shown)] for item in items])


def _counted(item: NewItem) -> NewItem:
    """Note in the secret how often the item's texts give away who wrote them, or when."""
    texts = [str(item.shown.get("answer", ""))]
    for part in ("candidates", "turns"):
        texts += [one["text"] for one in item.shown.get(part, ())]
    names = [str(name) for name in item.secret.get("names", ())]
    counts: dict[str, int] = defaultdict(int)
    for text in texts:
        for found in giveaways(text, names):
            counts[found.kind] += 1
    return replace(item, secret={**item.secret, "giveaways": dict(counts)})


def _asked(question: Question, design: QueueDesign) -> dict[str, Any]:
    shown: dict[str, Any] = {"question": _with_choices(question)}
    if question.evidence:
        shown["evidence"] = [str(one.get("text", "")) for one in question.evidence]
    if design.show_reference and question.reference:
        shown["reference"] = " / ".join(map(str, question.reference))
    return shown


def _with_choices(question: Question) -> str:
    lettered = zip(ascii_uppercase, question.choices, strict=False)
    return "\n".join([question.text, *(f"{letter}) {choice}" for letter, choice in lettered)])


def _unit(design: QueueDesign, item: str, transition: str, question: str) -> str:
    return {"item": item, "transition": transition, "question": question}[design.unit]


def _experiment(workspace: Workspace, name: str) -> Experiment:
    found = Experiment.objects.filter(workspace=workspace, name=name).first()
    if found is None:
        raise QueueDesignError(f"source: no experiment {name!r} in this workspace")
    return found


def _states(experiment: Experiment, source: Source) -> QuerySet[State]:
    """Return what agents answered. A branch's copies of its source's states are left out."""
    states = State.objects.filter(run__experiment=experiment, origin=None)
    if source.questions == "open":
        states = states.filter(run__question__answer_type="open")
    return states.select_related("run__question", "run__arm", "attempt").order_by(
        "run__position", "run_id", "agent_id", "state_version"
    )


def _answers(workspace: Workspace, source: Source, design: QueueDesign) -> Iterator[NewItem]:
    by_run: dict[int, dict[str, list[State]]] = defaultdict(lambda: defaultdict(list))
    for state in _states(_experiment(workspace, source.name), source):
        by_run[state.run_id][state.agent_id].append(state)
    for agents in by_run.values():
        lasts = {(own[-1].answer_kind, own[-1].answer_value) for own in agents.values()}
        for own in agents.values():
            for state in _taken(own, source, design):
                yield _answer(state, design, end=_end(state, own), differ=len(lasts) > 1)


def _taken(own: list[State], source: Source, design: QueueDesign) -> list[State]:
    """A transition has two ends; an agent that answered once has none."""
    if design.unit == "transition":
        return [own[0], own[-1]] if len(own) > 1 else []
    if source.answers == "all" or len(own) < 2:
        return own
    return [own[0], own[-1]]


def _end(state: State, own: list[State]) -> str:
    if state is own[-1]:
        return "last"
    return "first" if state is own[0] else "between"


def _answer(state: State, design: QueueDesign, *, end: str, differ: bool) -> NewItem:
    run, question = state.run, state.run.question
    item_id = f"{run.pk} {state.agent_id} {state.state_version}"
    model = state.attempt.model if state.attempt is not None else ""
    return NewItem(
        item_id=item_id,
        unit_id=_unit(design, item_id, f"{run.pk} {state.agent_id}", question.external_id),
        question_id=question.external_id,
        shown={**_asked(question, design), "answer": state.text or state.answer_raw},
        secret={
            "arm": run.arm.name,
            "agent": state.agent_id,
            "model": model,
            "names": [name for name in (state.agent_id, model) if name],
            "round": state.round,
            "end": end,
            "run": run.pk,
            "reference": list(question.reference),
        },
        stratum=question.stratum,
        flagged=differ,
    )


def _merges(workspace: Workspace, source: Source, design: QueueDesign) -> Iterator[NewItem]:
    """Yield pairs of differently worded answers to one question: taken for one, or nearly."""
    worded: dict[int, dict[str, State]] = defaultdict(dict)
    for state in _states(_experiment(workspace, source.name), source):
        if state.answer_raw.strip():
            worded[state.run.question_id].setdefault(state.answer_raw.strip(), state)
    for answers in worded.values():
        for one, other in combinations(sorted(answers), 2):
            first, second = answers[one], answers[other]
            is_one = _value(first) == _value(second)
            if is_one or _in_common(one, other) >= NEAR:
                yield _merge((first, second), design, is_one=is_one)


def _value(state: State) -> tuple[str, str]:
    return state.answer_kind, state.answer_value


def _in_common(one: str, other: str) -> float:
    """Return the share of words that stand in both."""
    left, right = set(one.casefold().split()), set(other.casefold().split())
    return len(left & right) / len(left | right)


def _merge(pair: tuple[State, State], design: QueueDesign, *, is_one: bool) -> NewItem:
    question = pair[0].run.question
    item_id = " ".join(str(state.pk) for state in pair)
    texts = zip(("one", "two"), pair, strict=True)
    return NewItem(
        item_id=item_id,
        unit_id=_unit(design, item_id, item_id, question.external_id),
        question_id=question.external_id,
        shown={
            **_asked(question, design),
            "candidates": [
                {"candidate_id": key, "text": state.answer_raw.strip()} for key, state in texts
            ],
        },
        secret={
            "taken_for": "one" if is_one else "two",
            "values": [state.answer_value for state in pair],
            "rules": [state.answer_rule for state in pair],
        },
        stratum="" if design.unit == "question" else ("merged" if is_one else "apart"),
        flagged=not is_one,
    )


def _judged(workspace: Workspace, name: str) -> tuple[list[JudgedItem], dict[int, list[Judgment]]]:
    found = JudgmentSet.objects.filter(workspace=workspace, name=name).first()
    if found is None:
        raise QueueDesignError(f"source: no judgments {name!r} in this workspace")
    by_item: dict[int, list[Judgment]] = defaultdict(list)
    stored = Judgment.objects.filter(item__judgment_set=found).select_related("judge")
    for judgment in stored.order_by("judge_id", "order_key", "repeat"):
        by_item[judgment.item_id].append(judgment)
    return list(found.items.order_by("position")), by_item


def _pairs(workspace: Workspace, source: Source, design: QueueDesign) -> Iterator[NewItem]:
    items, judgments = _judged(workspace, source.name)
    for item in items:
        yield _pair(item, judgments[item.pk], design)


def _decisions(workspace: Workspace, source: Source, design: QueueDesign) -> Iterator[NewItem]:
    """Yield what a judge was asked about, with its verdicts in the secret."""
    items, judgments = _judged(workspace, source.name)
    for item in items:
        if judgments[item.pk]:
            yield _pair(item, judgments[item.pk], design)


def _pair(item: JudgedItem, judgments: list[Judgment], design: QueueDesign) -> NewItem:
    """Only ids and texts of candidates are shown; ids stay on the server (``label_cards``)."""
    models = {c["candidate_id"]: c["model"] for c in item.candidates if c.get("model")}
    shown: dict[str, Any] = {
        "question": item.question,
        "candidates": [
            {"candidate_id": c["candidate_id"], "text": c["text"]} for c in item.candidates
        ],
    }
    if design.show_reference and item.metadata.get("reference"):
        shown["reference"] = str(item.metadata["reference"])
    return NewItem(
        item_id=item.item_id,
        unit_id=_unit(design, item.item_id, item.item_id, item.question_id),
        question_id=item.question_id,
        shown=shown,
        secret={
            "models": models,
            "names": sorted(set(models.values())),
            "known": item.gold,
            "verdicts": [_verdict(judgment) for judgment in judgments],
        },
        stratum=item.group,
        flagged=_is_flagged(judgments),
    )


def _verdict(judgment: Judgment) -> dict[str, Any]:
    return {
        "judge": judgment.judge.name,
        "order_shown": judgment.order_shown,
        "verdict": judgment.verdict,
        "status": judgment.status,
        "cause": judgment.cause,
        "rationale": judgment.rationale,
    }


def _is_flagged(judgments: Iterable[Judgment]) -> bool:
    """Whether a judge said different things across orders, or an order of it has no verdict."""
    said: dict[int, set[str]] = defaultdict(set)
    for judgment in judgments:
        said[judgment.judge_id].add(judgment.verdict)
    return any(len(verdicts) > 1 or "" in verdicts for verdicts in said.values())


def _debates_in(workspace: Workspace, source: Source) -> QuerySet[Debate]:
    found = DebateSet.objects.filter(workspace=workspace, name=source.name).first()
    if found is None:
        raise QueueDesignError(f"source: no debates {source.name!r} in this workspace")
    return found.debates.select_related("question").order_by("position")


def _transcripts(workspace: Workspace, source: Source, design: QueueDesign) -> Iterator[NewItem]:
    for debate in _debates_in(workspace, source):
        if debate.question.choices:
            yield _transcript(debate, design)


def _transcript(debate: Debate, design: QueueDesign) -> NewItem:
    """Options are named by number; whose side a speaker was given is secret."""
    question, agents = debate.question, debate.body.get("agents", [])
    speakers = {agent["agent_id"]: f"s{n}" for n, agent in enumerate(agents, 1)}
    options = {str(choice): f"o{n}" for n, choice in enumerate(question.choices, 1)}
    lettered = {letter: f"o{n}" for n, letter in enumerate(ascii_uppercase, 1)}
    by_name = lettered | options
    sides = {agent["agent_id"]: agent["side"] for agent in agents if agent.get("side")}
    given = {by_name[side] for side in sides.values() if side in by_name}
    right = {by_name[str(one)] for one in question.reference if str(one) in by_name}
    shown = {
        "question": question.text,
        "turns": [
            {"speaker": speakers.get(turn["agent_id"], "s0"), "text": _text_of(turn)}
            for turns in debate.body.get("rounds", [])
            for turn in turns
        ],
        "candidates": [{"candidate_id": key, "text": text} for text, key in options.items()],
    }
    secret = _secret_of(debate) | {"sides": sides}
    if len(right) == 1:
        secret["correct"] = min(right)
    if len(given) == 1:
        secret["assigned"] = min(given)
    return NewItem(
        item_id=debate.debate_id,
        unit_id=_unit(design, debate.debate_id, debate.debate_id, question.external_id),
        question_id=question.external_id,
        shown=_with_reference(shown, question, design),
        secret=secret,
        stratum=question.stratum,
    )


def _with_reference(
    shown: dict[str, Any], question: Question, design: QueueDesign
) -> dict[str, Any]:
    asked = _asked(question, design)
    return shown | {key: asked[key] for key in ("evidence", "reference") if key in asked}


def _secret_of(debate: Debate) -> dict[str, Any]:
    agents = debate.body.get("agents", [])
    names = {str(agent[key]) for agent in agents for key in ("agent_id", "model")}
    return {
        "debate": debate.debate_id,
        "protocol": debate.protocol,
        "names": sorted(names),
        "reference": list(debate.question.reference),
    }


def _text_of(turn: Mapping[str, Any]) -> str:
    return str(turn.get("text") or turn.get("answer") or "")


def _imported_answers(
    workspace: Workspace, source: Source, design: QueueDesign
) -> Iterator[NewItem]:
    for debate in _debates_in(workspace, source):
        if source.questions == "open" and debate.question.answer_type != "open":
            continue
        said: dict[str, list[tuple[int, Mapping[str, Any]]]] = defaultdict(list)
        for t, turns in enumerate(debate.body.get("rounds", [])):
            for turn in turns:
                if _text_of(turn):
                    said[turn["agent_id"]].append((t, turn))
        lasts = {own[-1][1].get("answer") for own in said.values()}
        for own in said.values():
            for t, turn in _ends(own, source, design):
                yield _imported_answer(debate, t, turn, design, differ=len(lasts) > 1)


def _ends(
    own: list[tuple[int, Mapping[str, Any]]], source: Source, design: QueueDesign
) -> list[tuple[int, Mapping[str, Any]]]:
    if design.unit == "transition":
        return [own[0], own[-1]] if len(own) > 1 else []
    return own if source.answers == "all" or len(own) < 2 else [own[0], own[-1]]


def _imported_answer(
    debate: Debate, t: int, turn: Mapping[str, Any], design: QueueDesign, *, differ: bool
) -> NewItem:
    question, agent = debate.question, str(turn["agent_id"])
    item_id = f"{debate.position} {agent} {t}"
    return NewItem(
        item_id=item_id,
        unit_id=_unit(design, item_id, f"{debate.position} {agent}", question.external_id),
        question_id=question.external_id,
        shown={**_asked(question, design), "answer": _text_of(turn)},
        secret=_secret_of(debate) | {"agent": agent, "round": t},
        stratum=question.stratum,
        flagged=differ,
    )


Reader = Callable[[Workspace, Source, QueueDesign], Iterable[NewItem]]
_READERS: Final[dict[tuple[str, QueueKind], Reader]] = {
    ("experiment", QueueKind.ANSWER): _answers,
    ("experiment", QueueKind.MERGE): _merges,
    ("judgments", QueueKind.PAIR): _pairs,
    ("judgments", QueueKind.JUDGE): _decisions,
    ("debates", QueueKind.DEBATE): _transcripts,
    ("debates", QueueKind.ANSWER): _imported_answers,
}
