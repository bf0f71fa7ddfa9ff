"""
What the language can say and this version of the engine does not run yet.

The schema has room for more protocols than the engine executes. Such a protocol can be written,
hashed, compared and stored; an experiment with it is refused before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from runs.protocols.spec import Output, Protocol, Selection

#: What is executed, by field; every other value of the field is not.
EXECUTED: dict[str, frozenset[str]] = {
    "topology.kind": frozenset(("full", "none", "ring", "star", "k_regular", "groups", "custom")),
    "selection.show": frozenset(("full_answer", "final_answer", "final_and_justification")),
    "aggregation.kind": frozenset(("plurality", "strict_majority", "single")),
    "aggregation.tie": frozenset(("abstain", "round_zero_plurality", "seeded_lot", "agent_order")),
}


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
    _components,
)
