"""
Debates of our own format, one JSON object a line (docs/formats.md).

What was shown to whom is ``recorded`` when every answered revision says so, ``unknown`` when
none or only some do; a log may declare ``reads_known: assumed`` where its protocol fixes it.
"""

from __future__ import annotations

from collections.abc import Iterator

from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.questions import question_from
from runs.importers.records import (
    READS_KNOWN,
    STATUSES,
    AgentRecord,
    BeliefRecord,
    ClaimRecord,
    DebateRecord,
    FinalRecord,
    ReadRecord,
    ReadsKnown,
    TurnRecord,
    UsageRecord,
)
from runs.importers.rows import json_rows
from runs.importers.sources import Source

MAX_AGENTS = 64
MAX_ROUNDS = 65
_BELIEF_TOLERANCE = 1e-6  # Shares are often written with rounding noise.


def read_jsonl(source: Source, log: FaultLog) -> Iterator[tuple[int, DebateRecord]]:
    """Yield the good debates of a JSON Lines file or JSON array with their lines."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        record = debate_from(fields)
        if fields.clean:
            yield row.line, record


def debate_from(fields: Fields) -> DebateRecord:
    """Read a debate out of the keys of a row; faults are in the log."""
    debate_id = fields.identifier("debate_id")
    question = question_from(fields, id_key="question_id", keep_metadata=False)
    agents = _agents(fields)
    rounds = _rounds(fields, tuple(agent.agent_id for agent in agents))
    return DebateRecord(
        debate_id=debate_id,
        question=question,
        protocol=fields.identifier("protocol"),
        agents=agents,
        rounds=rounds,
        seed=fields.whole("seed"),
        beliefs=_beliefs(fields, len(rounds)),
        final=_final(fields.object("final")),
        usage=_usage(fields.object("usage")),
        reads_known=_reads_known(fields, rounds),
        rules=fields.optional_text("rules"),
        metadata=fields.row_metadata(),
    )


def _agents(fields: Fields) -> tuple[AgentRecord, ...]:
    found: list[AgentRecord] = []
    for item in fields.objects("agents"):
        agent = AgentRecord(
            agent_id=item.identifier("agent_id"),
            model=item.identifier("model"),
            role=item.optional_text("role"),
            side=item.optional_text("side"),
            metadata=item.metadata(),
        )
        if any(agent.agent_id == other.agent_id for other in found):
            item.fault("agent_id", f"{shown(agent.agent_id)} stands twice")
        found.append(agent)
    if not found and not fields.get("agents"):
        fields.fault("agents", "must list at least one agent")
    if len(found) > MAX_AGENTS:
        fields.fault("agents", f"lists {len(found)} agents; the most is {MAX_AGENTS}")
    return tuple(found)


def _rounds(fields: Fields, agent_ids: tuple[str, ...]) -> tuple[tuple[TurnRecord, ...], ...]:
    given = fields.items("rounds")
    if not given and not fields.get("rounds"):
        fields.fault("rounds", "must list at least one round")
    if len(given) > MAX_ROUNDS:
        fields.fault("rounds", f"lists {len(given)} rounds; the most is {MAX_ROUNDS}")
        return ()
    spoken: set[tuple[str, int]] = set()
    return tuple(_round(fields, t, turns, agent_ids, spoken) for t, turns in enumerate(given))


def _round(
    fields: Fields, t: int, given: object, agent_ids: tuple[str, ...], spoken: set[tuple[str, int]]
) -> tuple[TurnRecord, ...]:
    if not isinstance(given, list):
        fields.fault(f"rounds[{t}]", f"must be a list of turns, not {shown(given)}")
        return ()
    rows = [fields.inner(item, f"rounds[{t}][{place}]") for place, item in enumerate(given)]
    turns = [_turn(row) for row in rows]
    for row, turn in zip(rows, turns, strict=True):
        _check_speaker(row, turn, t, agent_ids, spoken)
    orders = [turn.order for turn in turns if turn.order is not None]
    if len(set(orders)) < len(orders):
        fields.fault(f"rounds[{t}]", "two turns have the same order")
    # Reads are judged once the whole round is known: a sequential turn may read its own round.
    for row, turn in zip(rows, turns, strict=True):
        _check_reads(row, turn, t, spoken)
    return tuple(turns)


def _check_speaker(
    row: Fields,
    turn: TurnRecord,
    t: int,
    agent_ids: tuple[str, ...],
    spoken: set[tuple[str, int]],
) -> None:
    if not turn.agent_id:
        return
    if turn.agent_id not in agent_ids:
        row.fault("agent_id", f"{shown(turn.agent_id)} is none of the agents")
    elif (turn.agent_id, t) in spoken:
        row.fault("agent_id", f"{shown(turn.agent_id)} has two turns in this round")
    spoken.add((turn.agent_id, t))


def _turn(row: Fields) -> TurnRecord:
    row.require("answer")
    agent_id = row.identifier("agent_id")
    answer = row.optional_text("answer")
    text = row.optional_text("text")
    return TurnRecord(
        agent_id=agent_id,
        answer=answer,
        text=text,
        prompt=row.optional_text("prompt"),
        claims=_claims(row),
        status=_status(row, said=answer is not None or text is not None),
        finish_reason=row.optional_text("finish_reason"),
        confidence=row.real("confidence", most=1),
        reads=_reads(row),
        order=row.whole("order"),
        metadata=row.metadata(),
    )


def _status(row: Fields, *, said: bool) -> str:
    status = row.one_of("status", STATUSES)
    if status == "SUCCEEDED" and not said:
        row.fault("status", "is SUCCEEDED, but the turn has neither answer nor text")
    return status or ("SUCCEEDED" if said else "INVALID")


def _claims(row: Fields) -> tuple[ClaimRecord, ...]:
    found: list[ClaimRecord] = []
    for item in row.objects("claims"):
        claim = ClaimRecord(claim_id=item.identifier("claim_id"), text=item.text("text"))
        item.leave()
        if any(claim.claim_id == other.claim_id for other in found):
            item.fault("claim_id", f"{shown(claim.claim_id)} stands twice")
        found.append(claim)
    return tuple(found)


def _reads(row: Fields) -> tuple[ReadRecord, ...] | None:
    if row.get("reads") is None:
        return None
    found = []
    for item in row.objects("reads"):
        for key in ("round", "position"):
            item.require(key)
        found.append(
            ReadRecord(
                agent_id=item.identifier("agent_id"),
                round=item.whole("round") or 0,
                position=item.whole("position") or 0,
            )
        )
        item.leave()
    return tuple(found)


def _check_reads(row: Fields, turn: TurnRecord, t: int, spoken: set[tuple[str, int]]) -> None:
    positions = [read.position for read in turn.reads or ()]
    if len(set(positions)) < len(positions):
        row.fault("reads", "two reads have the same position")
    for place, read in enumerate(turn.reads or ()):
        if read.round > t:
            row.fault(f"reads[{place}].round", f"{read.round} is later than the turn's round {t}")
        elif (read.agent_id, read.round) not in spoken:
            who = f"{shown(read.agent_id)} in round {read.round}"
            row.fault(f"reads[{place}]", f"there is no turn of {who}")
        elif (read.agent_id, read.round) == (turn.agent_id, t):
            row.fault(f"reads[{place}]", "a turn cannot read itself")


def _reads_known(fields: Fields, rounds: tuple[tuple[TurnRecord, ...], ...]) -> ReadsKnown:
    answered = [turn for turns in rounds[1:] for turn in turns if turn.status == "SUCCEEDED"]
    recorded = all(turn.reads is not None for turn in answered)
    declared = fields.one_of("reads_known", READS_KNOWN)
    if declared == "recorded" and not recorded:
        fields.fault("reads_known", "is recorded, but some revisions do not say what they read")
    return declared or ("recorded" if recorded else "unknown")


def _beliefs(fields: Fields, round_count: int) -> tuple[BeliefRecord, ...]:
    found = []
    for item in fields.objects("beliefs"):
        item.require("after")
        after = item.whole("after") or 0
        if item.clean and after > round_count:
            item.fault("after", f"{after} is more than the {round_count} rounds")
        judge = item.identifier("judge")
        item.require("belief")
        found.append(BeliefRecord(judge=judge, after=after, belief=_belief(item)))
        item.leave()
    return tuple(found)


def _belief(item: Fields) -> dict[str, float]:
    options = item.object("belief")
    if options is None:
        return {}
    shares = {key: options.real(key, most=1 + _BELIEF_TOLERANCE) for key in options.data}
    if any(share is None for share in shares.values()) and options.clean:
        options.fault("", "has an option without a share")
    found = {key: share for key, share in shares.items() if share is not None}
    if options.clean and sum(found.values()) > 1 + _BELIEF_TOLERANCE:
        options.fault("", f"adds up to {sum(found.values()):g}, more than 1")
    return found


def _final(item: Fields | None) -> FinalRecord | None:
    if item is None:
        return None
    item.require("answer")
    final = FinalRecord(item.optional_text("answer"), item.identifier("aggregator"))
    item.leave()
    return final


def _usage(item: Fields | None) -> UsageRecord | None:
    if item is None:
        return None
    usage = UsageRecord(
        input_tokens=item.whole("input_tokens"),
        output_tokens=item.whole("output_tokens"),
        cost_usd=item.real("cost_usd"),
    )
    item.leave()
    return usage
