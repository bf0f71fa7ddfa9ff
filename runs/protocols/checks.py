"""
Rules across fields: whether the parts of a protocol fit together.

Each rule yields ``field.path: what is wrong``. What this version of the engine can't run yet is
another matter: ``unsupported``, from ``runs.protocols.support``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from runs.protocols.spec import Aggregation, Calibration, Protocol, Selection, Topology
from runs.protocols.support import unsupported
from runs.protocols.yaml12 import Path, dotted

__all__ = ["COMMON_SLOTS", "PEER_SLOTS", "REVISION_SLOTS", "SLOT", "problems", "unsupported"]

SLOT = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)

COMMON_SLOTS = frozenset(
    (
        "question",
        "choices",
        "evidence",
        "candidates",
        "persona",
        "side",
        "answer_format",
        "agreement_intensity",
    )
)
REVISION_SLOTS = COMMON_SLOTS | {"own_answer", "own_text", "peers", "majority", "summary"}
PEER_SLOTS = frozenset(("label", "text", "answer", "count"))

Faults = Iterator[str]


def problems(protocol: Protocol) -> list[str]:
    """Return what does not fit together, one ``field.path: what is wrong`` each."""
    return [fault for rule in _RULES for fault in rule(protocol)]


def _unknown(path: str, named: Iterable[str], protocol: Protocol) -> Faults:
    for agent_id in named:
        if agent_id not in protocol.agent_ids:
            yield f"{path}: there is no agent {agent_id!r}"


def _doubled(path: str, named: Iterable[str], what: str = "agent") -> Faults:
    for name, times in Counter(named).items():
        if times > 1:
            yield f"{path}: {what} {name!r} stands {times} times"


def _whole_order(path: str, order: tuple[str, ...], protocol: Protocol) -> Faults:
    yield from _unknown(path, order, protocol)
    yield from _doubled(path, order)
    missing = [a for a in protocol.agent_ids if a not in order]
    if missing:
        yield f"{path}: every agent has to be named; missing {', '.join(missing)}"


def _agents(protocol: Protocol) -> Faults:
    yield from _doubled("agents", protocol.agent_ids, "id")
    if not any(agent.votes for agent in protocol.agents):
        yield "agents: at least one agent has to have votes: true"
    if protocol.limits.min_agents > len(protocol.agents):
        yield "limits.min_agents: more than there are agents"


def _operator(protocol: Protocol) -> Faults:
    operator = protocol.operator
    if protocol.initialisation == "sequential" and operator.kind != "sequential":
        yield "initialisation: sequential needs operator.kind sequential"
    if operator.kind != "sequential":
        if operator.permutation is not None:
            yield "operator.permutation: only a sequential operator has an order"
        if operator.this_round_only:
            yield "operator.this_round_only: only a sequential operator reads its own round"
    elif isinstance(operator.permutation, tuple):
        yield from _whole_order("operator.permutation", operator.permutation, protocol)
    yield from _asynchronous(protocol)


def _asynchronous(protocol: Protocol) -> Faults:
    operator = protocol.operator
    if operator.kind == "asynchronous":
        if operator.update_budget is None:
            yield "operator.update_budget: an asynchronous operator needs one, or it may never end"
        if operator.staleness_limit is None:
            yield "operator.staleness_limit: an asynchronous operator needs one"
        return
    if operator.update_budget is not None:
        yield "operator.update_budget: only an asynchronous operator has one"
    if operator.staleness_limit is not None:
        yield "operator.staleness_limit: only an asynchronous operator has one"
    if operator.on_conflict != "reject":
        yield "operator.on_conflict: only an asynchronous operator meets conflicts"


def _topology(protocol: Protocol) -> Faults:
    topology = protocol.topology
    yield from _stray_topology_arguments(topology)
    if topology.kind == "k_regular":
        yield from _k_regular(topology.k, len(protocol.agents))
    elif topology.kind == "star" and topology.hub is not None:
        yield from _unknown("topology.hub", [topology.hub], protocol)
    elif topology.kind == "custom":
        yield from _edges(protocol)
    elif topology.kind == "groups":
        yield from _groups(protocol)


def _stray_topology_arguments(topology: Topology) -> Faults:
    owners = {"k": "k_regular", "hub": "star", "edges": "custom", "groups": "groups"}
    for argument, kind in owners.items():
        if getattr(topology, argument) and topology.kind != kind:
            yield f"topology.{argument}: only kind {kind} has it"
    if not topology.bidirectional and topology.kind != "ring":
        yield "topology.bidirectional: only kind ring has it"


def _k_regular(k: int | None, agents: int) -> Faults:
    # Reading is directed, so that any k below N exists; N × k need not be even.
    if k is None:
        yield "topology.k: kind k_regular needs it"
    elif k >= agents:
        yield f"topology.k: has to be less than the number of agents, {agents}"


def _edges(protocol: Protocol) -> Faults:
    edges = protocol.topology.edges
    for index, edge in enumerate(edges):
        path = f"topology.edges[{index}]"
        yield from _unknown(f"{path}.source", [edge.source], protocol)
        yield from _unknown(f"{path}.reader", [edge.reader], protocol)
        if edge.source == edge.reader:
            yield f"{path}: an agent can't be its own peer; see selection.include_self"
    pairs = (f"{edge.source} to {edge.reader}" for edge in edges)
    yield from _doubled("topology.edges", pairs, "edge")
    if not edges:
        yield "topology.edges: kind custom needs at least one; kind none has none"


def _groups(protocol: Protocol) -> Faults:
    groups = protocol.topology.groups
    members = tuple(member for group in groups for member in group)
    yield from _whole_order("topology.groups", members, protocol)
    if not all(groups):
        yield "topology.groups: a group is empty"


def _selection(protocol: Protocol) -> Faults:
    selection = protocol.selection
    if selection.order == "fixed":
        yield from _whole_order("selection.fixed_order", selection.fixed_order, protocol)
    elif selection.fixed_order:
        yield "selection.fixed_order: only order fixed has it"
    yield from _unknown("selection.against_majority", selection.against_majority, protocol)
    yield from _doubled("selection.against_majority", selection.against_majority)
    yield from _shown(selection)
    yield from _dynamic(protocol)


def _shown(selection: Selection) -> Faults:
    if selection.show == "summary" and selection.summary is None:
        yield "selection.summary: show summary needs it"
    if selection.largest_groups is not None and selection.show != "answer_groups":
        yield "selection.largest_groups: only show answer_groups has it"
    if selection.last_turns is not None and selection.rounds != "all":
        yield "selection.last_turns: needs rounds all, from which the last turns are taken"
    if selection.message_cap_chars > selection.total_cap_chars:
        yield "selection.message_cap_chars: more than total_cap_chars"


def _dynamic(protocol: Protocol) -> Faults:
    dynamic = protocol.selection.dynamic
    if dynamic is None:
        return
    if dynamic.silenced >= len(protocol.agents):
        yield "selection.dynamic.silenced: would silence every agent"
    if dynamic.kind == "keep_top" and dynamic.kept is None:
        yield "selection.dynamic.kept: kind keep_top needs it"
    if dynamic.kept is not None and dynamic.kept > len(protocol.agents):
        yield "selection.dynamic.kept: more than there are agents"


def _prompts(protocol: Protocol) -> Faults:
    for path, text, known in _templates(protocol):
        yield from _slots(path, text, known)
    if "{{question}}" not in protocol.prompts.initial:
        yield "prompts.initial: the slot {{question}} is missing"
    for role, texts in protocol.prompts.by_role.items():
        path = f"prompts.by_role.{role}"
        if role not in {agent.role for agent in protocol.agents}:
            yield f"{path}: no agent has this role"
        if texts.initial is not None and "{{question}}" not in texts.initial:
            yield f"{path}.initial: the slot {{{{question}}}} is missing"
    if protocol.revision_rounds > 0:
        yield from _revision_prompts(protocol)


def _templates(protocol: Protocol) -> Iterator[tuple[str, str, frozenset[str]]]:
    prompts = protocol.prompts
    # Where initialisation is sequential, an agent reads peers before it has said anything.
    initial = REVISION_SLOTS if protocol.initialisation == "sequential" else COMMON_SLOTS
    yield "prompts.system", prompts.system, COMMON_SLOTS
    yield "prompts.initial", prompts.initial, initial
    yield "prompts.revision", prompts.revision, REVISION_SLOTS
    yield "prompts.peer", prompts.peer, PEER_SLOTS
    for name in type(prompts.answer_format).model_fields:
        yield f"prompts.answer_format.{name}", getattr(prompts.answer_format, name), frozenset()
    for role, texts in prompts.by_role.items():
        yield f"prompts.by_role.{role}.system", texts.system or "", COMMON_SLOTS
        yield f"prompts.by_role.{role}.initial", texts.initial or "", initial
        yield f"prompts.by_role.{role}.revision", texts.revision or "", REVISION_SLOTS


def _slots(path: str, text: str, known: frozenset[str]) -> Faults:
    for name in sorted(set(SLOT.findall(text)) - known):
        here = ", ".join(sorted(known)) or "none"
        yield f"{path}: unknown slot {{{{{name[:40]}}}}}; known here: {here}"
    # With whole slots gone, what is left of a pair of braces is a slot that lost its end.
    if "{{" in SLOT.sub("", text):
        yield f"{path}: {{{{ without }}}}"


def _revision_prompts(protocol: Protocol) -> Faults:
    reads_peers = protocol.topology.kind != "none" and len(protocol.agents) > 1
    carriers = ("{{peers}}", "{{summary}}")
    for path, text in _revision_texts(protocol):
        if not text.strip():
            yield f"{path}: is needed where revision_rounds is more than 0"
        elif reads_peers and not any(slot in text for slot in carriers):
            yield f"{path}: no {{{{peers}}}} or {{{{summary}}}}: agents would not read their peers"


def _revision_texts(protocol: Protocol) -> Iterator[tuple[str, str]]:
    """Yield the revision prompts that some agent will be sent, each once."""
    texts = {}
    for role in dict.fromkeys(agent.role for agent in protocol.agents):
        own = protocol.prompts.by_role.get(role)
        if own is not None and own.revision is not None:
            texts[f"prompts.by_role.{role}.revision"] = own.revision
        else:
            texts["prompts.revision"] = protocol.prompts.revision
    yield from texts.items()


def _aggregation(protocol: Protocol) -> Faults:
    aggregation = protocol.aggregation
    voters = sum(agent.votes for agent in protocol.agents)
    if aggregation.kind == "single" and voters != 1:
        yield f"aggregation.kind: single needs exactly one voting agent, there are {voters}"
    if aggregation.judge is None and (aggregation.kind == "judge" or "judge" in aggregation.tie):
        yield "aggregation.judge: is needed where a judge decides"
    yield from _aggregation_arguments(aggregation)
    yield from _tie(protocol)
    if aggregation.calibration is not None:
        yield from _calibration(aggregation.calibration)


def _aggregation_arguments(aggregation: Aggregation) -> Faults:
    kind = aggregation.kind
    if kind == "supermajority" and aggregation.threshold is None:
        yield "aggregation.threshold: kind supermajority needs it"
    if aggregation.threshold is not None and kind != "supermajority":
        yield "aggregation.threshold: only kind supermajority has it"
    if kind in ("cumulative", "ranked") and aggregation.points is None:
        yield f"aggregation.points: kind {kind} needs it"
    if aggregation.points is not None and kind not in ("cumulative", "ranked"):
        yield "aggregation.points: only kinds cumulative and ranked have it"
    if kind == "weighted" and aggregation.calibration is None:
        yield "aggregation.calibration: kind weighted needs a calibrator or published buckets"
    if aggregation.calibration is not None and kind != "weighted":
        yield "aggregation.calibration: only kind weighted has it"
    if aggregation.candidate_orders != "given" and kind != "summed_scores":
        yield "aggregation.candidate_orders: only kind summed_scores has it"


def _tie(protocol: Protocol) -> Faults:
    aggregation = protocol.aggregation
    yield from _doubled("aggregation.tie", aggregation.tie, "policy")
    if not aggregation.tie:
        yield "aggregation.tie: at least one policy, so that every tie ends"
    # These always end a tie, so that nothing behind them could ever be asked.
    final = [p for p in aggregation.tie[:-1] if p in ("abstain", "seeded_lot", "agent_order")]
    if final:
        yield f"aggregation.tie: {final[0]} always decides; nothing may follow it"
    if "track_record" in aggregation.tie and not aggregation.track_record:
        yield "aggregation.track_record: the tie policy track_record needs it"
    yield from _unknown("aggregation.track_record", aggregation.track_record, protocol)


def _calibration(calibration: Calibration) -> Faults:
    path = "aggregation.calibration"
    if (calibration.calibrator is None) == (not calibration.buckets):
        yield f"{path}: either a calibrator or buckets"
    bounds = [bound for bound, _ in calibration.buckets]
    if bounds != sorted(set(bounds)):
        yield f"{path}.buckets: upper bounds have to ascend"


def _stopping(protocol: Protocol) -> Faults:
    stopping = protocol.stopping
    named = {name: getattr(stopping, name) for name in type(stopping).model_fields}
    for name, value in named.items():
        if value and protocol.revision_rounds == 0:
            yield f"stopping.{name}: means nothing without revision rounds"
    if stopping.agreement_threshold is not None and stopping.agreement_steps:
        yield "stopping.agreement_steps: either this or agreement_threshold"
    steps = [step.from_round for step in stopping.agreement_steps]
    if steps != sorted(set(steps)):
        yield "stopping.agreement_steps: from_round has to ascend"
    if stopping.no_open_challenges and protocol.challenges is None:
        yield "stopping.no_open_challenges: needs challenges"
    if stopping.decisive_checks_passed and not any(v.decisive for v in protocol.verifiers):
        yield "stopping.decisive_checks_passed: no verifier is decisive"


def _components(protocol: Protocol) -> Faults:
    yield from _doubled("verifiers", (v.id for v in protocol.verifiers), "id")
    for index, verifier in enumerate(protocol.verifiers):
        if verifier.kind == "model" and (verifier.model is None or not verifier.prompt):
            yield f"verifiers[{index}]: kind model needs model and prompt"
        if verifier.kind != "model" and (verifier.model is not None or verifier.prompt):
            yield f"verifiers[{index}]: only kind model has model and prompt"
    if protocol.challenges is not None:
        named = protocol.challenges.challengers
        yield from _unknown("challenges.challengers", named, protocol)
        yield from _doubled("challenges.challengers", named)
        if not protocol.output.claims:
            yield "output.claims: challenges need claims to aim at"
    if protocol.drafts.count > 1 and protocol.drafts.judge is None:
        yield "drafts.judge: is needed to choose among several drafts"
    if protocol.drafts.count == 1 and protocol.drafts.judge is not None:
        yield "drafts.judge: with one draft there is nothing to choose"


def _output(protocol: Protocol) -> Faults:
    output = protocol.output
    for name in type(output.extraction).model_fields:
        rules = getattr(output.extraction, name)
        yield from _doubled(f"output.extraction.{name}", rules, "rule")
        if not rules:
            yield f"output.extraction.{name}: at least one rule"
    low, high = output.min_words, output.max_words
    if low is not None and high is not None and low > high:
        yield "output.min_words: more than max_words"


def _text(protocol: Protocol) -> Faults:
    for path, text in _strings((), protocol.model_dump()):
        if "\0" in text:
            yield f"{dotted(path)}: NUL is not text"


def _strings(path: Path, value: object) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings((*path, key), key)
            yield from _strings((*path, key), inner)
    elif isinstance(value, (tuple, list)):
        for index, inner in enumerate(value):
            yield from _strings((*path, index), inner)


def _limits(protocol: Protocol) -> Faults:
    limits = protocol.limits
    if limits.call_timeout_seconds > limits.round_timeout_seconds:
        yield "limits.call_timeout_seconds: more than round_timeout_seconds"
    if limits.final_time_cap_seconds >= limits.round_timeout_seconds * _rounds(protocol):
        yield "limits.final_time_cap_seconds: leaves no time for the rounds before it"


def _rounds(protocol: Protocol) -> int:
    return (1 + protocol.revision_rounds) * protocol.turns_per_round


_RULES: tuple[Callable[[Protocol], Faults], ...] = (
    _agents,
    _operator,
    _topology,
    _selection,
    _prompts,
    _aggregation,
    _stopping,
    _components,
    _output,
    _text,
    _limits,
)
