"""
What the language can say and this version of the engine does not run yet.

The schema has room for more protocols than the engine executes. Such a protocol can be written,
hashed, compared and stored; an experiment with it is refused before anything starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from runs.protocols.spec import Output, Protocol, Selection

#: What is executed, by field; every other value of the field is not.
EXECUTED: dict[str, frozenset[str]] = {
    "topology.kind": frozenset(("full", "none", "ring", "star", "k_regular", "groups", "custom")),
    "selection.show": frozenset(("full_answer", "final_answer", "final_and_justification")),
    "aggregation.kind": frozenset(("plurality", "strict_majority", "single", "judge")),
    "aggregation.tie": frozenset(
        ("abstain", "round_zero_plurality", "judge", "seeded_lot", "agent_order")
    ),
}

#: What a judge's prompt may show, and what it has to: without them it could not decide.
JUDGE_SLOTS = frozenset(
    ("question", "choices", "candidates", "transcript", "evidence", "answer_format")
)
#: The alphabet holds so many candidates beside a judge's two other options.
MOST_JUDGED_AT_ONCE = 24

_SLOT = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)


def unsupported(protocol: Protocol) -> list[str]:
    """Return what an experiment with this protocol is refused for; empty: it can run."""
    return [fault for rule in _RULES for fault in rule(protocol)]


def _not_yet(path: str, what: str = "") -> str:
    return f"{path}: {what + ' ' if what else ''}is not executed yet"


def _update_rule(protocol: Protocol) -> Iterator[str]:
    if protocol.operator.kind != "synchronous":
        yield _not_yet("operator.kind", protocol.operator.kind)
    if protocol.initialisation != "blind":
        yield _not_yet("initialisation", protocol.initialisation)
    if protocol.turns_per_round > 1:
        yield _not_yet("turns_per_round", "more than 1")
    if protocol.topology.kind not in EXECUTED["topology.kind"]:
        yield _not_yet("topology.kind", protocol.topology.kind)


def _selected(protocol: Protocol) -> Iterator[str]:
    selection = protocol.selection
    if selection.show not in EXECUTED["selection.show"]:
        yield _not_yet("selection.show", selection.show)
    for name in (
        "last_turns",
        "summary",
        "dynamic",
        "agreement_intensity_percent",
        "against_majority",
        "targeted_challenges",
        "quotes_verified",
        "randomised_read_probability",
    ):
        if getattr(selection, name) != Selection.model_fields[name].default:
            yield _not_yet(f"selection.{name}")


def _replies(protocol: Protocol) -> Iterator[str]:
    for name in ("candidate_scores", "peer_rating_max", "min_words", "max_words"):
        if getattr(protocol.output, name) != Output.model_fields[name].default:
            yield _not_yet(f"output.{name}")


def _tools(protocol: Protocol) -> Iterator[str]:
    for index, agent in enumerate(protocol.agents):
        if agent.tools:
            yield _not_yet(f"agents[{index}].tools", ", ".join(agent.tools))


def _decisions(protocol: Protocol) -> Iterator[str]:
    aggregation = protocol.aggregation
    if aggregation.kind not in EXECUTED["aggregation.kind"]:
        yield _not_yet("aggregation.kind", aggregation.kind)
    for policy in aggregation.tie:
        if policy not in EXECUTED["aggregation.tie"]:
            yield _not_yet("aggregation.tie", policy)
    for name in ("agreement_threshold", "agreement_steps", "moderator"):
        if getattr(protocol.stopping, name):
            yield _not_yet(f"stopping.{name}")


def _judge(protocol: Protocol) -> Iterator[str]:
    aggregation = protocol.aggregation
    judge = aggregation.judge
    if judge is None or (aggregation.kind != "judge" and "judge" not in aggregation.tie):
        return
    path = "aggregation.judge"
    if judge.by != "model":
        yield _not_yet(f"{path}.by", judge.by)
    for name in ("may_ask", "synthesise"):
        if getattr(judge, name):
            yield _not_yet(f"{path}.{name}")
    slots = set(_SLOT.findall(judge.prompt))
    for name in sorted(slots - JUDGE_SLOTS):
        yield _not_yet(f"{path}.prompt", f"the slot {{{{{name[:40]}}}}}")
    needed = {"candidates", "answer_format"} | ({"transcript"} & {judge.mode})
    for name in sorted(needed - slots):
        yield _not_yet(f"{path}.prompt", f"without {{{{{name}}}}}")
    voters = sum(agent.votes for agent in protocol.agents)
    if judge.mode in ("listwise", "transcript") and voters > MOST_JUDGED_AT_ONCE:
        yield _not_yet(
            f"{path}.mode", f"{judge.mode} of more than {MOST_JUDGED_AT_ONCE} candidates"
        )


def _components(protocol: Protocol) -> Iterator[str]:
    present = {
        "generated_experts": protocol.generated_experts is not None,
        "drafts": protocol.drafts.count > 1,
        "challenges": protocol.challenges is not None,
        "normaliser.model": protocol.normaliser.model is not None,
        "verifiers": bool(protocol.verifiers),
        "limits.min_agents": protocol.limits.min_agents > 1,
    }
    yield from (_not_yet(path) for path, is_present in present.items() if is_present)


_RULES: tuple[Callable[[Protocol], Iterator[str]], ...] = (
    _update_rule,
    _selected,
    _replies,
    _tools,
    _decisions,
    _judge,
    _components,
)
