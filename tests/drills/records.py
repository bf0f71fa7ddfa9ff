"""What must hold of the records of an ended experiment, whatever happened while it ran."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from tests.drills.arena import Arena, Load

OF_EXPERIMENT = (
    " JOIN runs_run r ON r.id = a.run_id JOIN runs_experiment e ON e.id = r.experiment_id"
    " AND e.name = %s "
)


def assert_sound(arena: Arena, load: Load) -> None:
    """Every run ended with an answer, nothing is doubled or lost, sums agree, replay agrees."""
    every_run_ended(arena, load)
    nothing_is_admitted_twice(arena, load)
    every_agent_has_a_verdict_in_every_round(arena, load)
    every_attempt_ended_once(arena, load)
    nothing_that_came_back_is_asked_again(arena, load)
    lost_calls_are_held(arena, load)
    accounts_balance(arena, load)
    replay_agrees(arena, load)


def every_run_ended(arena: Arena, load: Load) -> None:
    rows = arena.rows(
        "SELECT r.status, r.stop_reason, (SELECT count(*) FROM runs_aggregate g WHERE g.run_id ="
        " r.id AND g.ordinal = 0) FROM runs_run r JOIN runs_experiment e"
        " ON e.id = r.experiment_id WHERE e.name = %s",
        load.name,
    )
    assert len(rows) == load.questions
    assert all(status == "DONE" and reason and count == 1 for status, reason, count in rows), rows
    assert arena.status(load.name) in {"FINISHED", "CANCELLED"}


def nothing_is_admitted_twice(arena: Arena, load: Load) -> None:
    """Rounds 0, 1, … are closed once each under growing fences; versions are 1, 2, … an agent."""
    fences: dict[int, list[tuple[int, int]]] = {}
    for run_id, t, fence in arena.rows(
        "SELECT a.run_id, a.t, a.fence FROM runs_commit a" + OF_EXPERIMENT + "ORDER BY a.t",
        load.name,
    ):
        fences.setdefault(run_id, []).append((t, fence))
    for run_id, closed in fences.items():
        assert [t for t, _ in closed] == list(range(len(closed))), (run_id, closed)
        assert len({fence for _, fence in closed}) == len(closed), (run_id, closed)
        assert sorted(closed) == closed, (run_id, closed)
    versions: dict[tuple[int, str], list[int]] = {}
    for run_id, agent_id, version in arena.rows(
        "SELECT a.run_id, a.agent_id, a.state_version FROM runs_state a"
        + OF_EXPERIMENT
        + "ORDER BY a.id",
        load.name,
    ):
        versions.setdefault((run_id, agent_id), []).append(version)
    assert all(found == list(range(1, len(found) + 1)) for found in versions.values())


def every_agent_has_a_verdict_in_every_round(arena: Arena, load: Load) -> None:
    found = Counter(
        arena.rows("SELECT a.run_id, a.t FROM runs_verdict a" + OF_EXPERIMENT, load.name)
    )
    closed = arena.rows("SELECT a.run_id, a.t FROM runs_commit a" + OF_EXPERIMENT, load.name)
    assert found == Counter(dict.fromkeys(closed, 3))


def every_attempt_ended_once(arena: Arena, load: Load) -> None:
    wrong = arena.rows(
        "SELECT a.id, count(o.id) FILTER (WHERE NOT o.late), count(o.id) FILTER (WHERE o.late)"
        " FROM runs_attempt a"
        + OF_EXPERIMENT
        + "LEFT JOIN runs_attemptoutcome o ON o.attempt_id = a.id GROUP BY a.id"
        " HAVING count(o.id) FILTER (WHERE NOT o.late) <> 1"
        " OR count(o.id) FILTER (WHERE o.late) > 1",
        load.name,
    )
    assert wrong == []


def nothing_that_came_back_is_asked_again(arena: Arena, load: Load) -> None:
    """A stored reply is never paid for again (S33)."""
    again = arena.rows(
        "SELECT a.id, later.id FROM runs_attempt a"
        + OF_EXPERIMENT
        + "JOIN runs_attemptoutcome o ON o.attempt_id = a.id AND NOT o.late"
        " AND o.status = 'SUCCEEDED' JOIN runs_attempt later ON later.run_id = a.run_id"
        " AND later.t = a.t AND later.agent_id = a.agent_id AND later.ordinal > a.ordinal",
        load.name,
    )
    assert again == []


def lost_calls_are_held(arena: Arena, load: Load) -> None:
    """Nobody knows what a lost call has used: all that it reserved stays held (S31)."""
    wrong = arena.rows(
        "SELECT a.id FROM runs_attempt a"
        + OF_EXPERIMENT
        + "JOIN runs_attemptoutcome o ON o.attempt_id = a.id AND NOT o.late"
        " AND o.error_class = 'lost_worker' WHERE NOT EXISTS (SELECT 1 FROM runs_ledgerentry l"
        " WHERE l.attempt_id = a.id AND l.kind = 'hold' AND l.source = 'reserved'"
        " AND l.microusd = a.reserved_microusd AND l.output_tokens = a.reserved_output_tokens)",
        load.name,
    )
    assert wrong == []


_BALANCES = """
SELECT a.id, a.cap_microusd,
    a.settled_microusd, a.held_microusd, a.reserved_microusd, a.overrun_microusd,
    a.settled_output_tokens, a.held_output_tokens, a.reserved_output_tokens,
    a.overrun_output_tokens, {entries}
FROM runs_account a JOIN mine ON mine.account_id = a.id
LEFT JOIN runs_ledgerentry l ON l.account_id = a.id GROUP BY a.id ORDER BY a.id
"""
_MINE = """
WITH mine AS (
    SELECT e.account_id FROM runs_experiment e WHERE e.name = %s
    UNION ALL
    SELECT r.account_id FROM runs_run r JOIN runs_experiment e ON e.id = r.experiment_id
    WHERE e.name = %s
)
"""


def _sums(unit: str) -> str:
    """Return SQL for settled, held, reserved and overrun as the entries add up to them."""

    def total(condition: str) -> str:
        return f"coalesce(sum(l.{unit}) FILTER (WHERE {condition}), 0)"

    spent = total("l.kind IN ('settle', 'release') AND l.source = 'held'")
    left = total("l.kind IN ('settle', 'hold', 'release') AND l.source = 'reserved'")
    held = total("l.kind = 'hold'") + " - " + spent
    reserved = total("l.kind = 'reserve'") + " - " + left
    return ", ".join((total("l.kind = 'settle'"), held, reserved, total("l.kind = 'overrun'")))


def accounts_balance(arena: Arena, load: Load) -> None:
    """Entries add up to balances, balances are within caps, runs add up to the experiment."""
    entries = f"{_sums('microusd')}, {_sums('output_tokens')}"
    rows = arena.rows(_MINE + _BALANCES.format(entries=entries), load.name, load.name)
    assert len(rows) == load.questions + 1
    for _, cap, *balances in rows:
        assert balances[:8] == balances[8:]
        settled, held, reserved, *_ = balances
        assert settled + held + reserved <= cap
        assert reserved == balances[6] == 0  # It has ended: nothing is reserved any more.
    whole, *runs = (row[2:10] for row in rows)
    assert list(whole) == [sum(column) for column in zip(*runs, strict=True)]


def replay_agrees(arena: Arena, load: Load) -> None:
    found = arena.experiment("verify", load.name)
    assert found == {"runs": load.questions, "disagreements": []}


def attempts_by_prompt(arena: Arena, load: Load) -> Counter[str]:
    """Count attempts by the digest of their prompt, as the stub computes it."""
    rows = arena.rows("SELECT a.prompt FROM runs_attempt a" + OF_EXPERIMENT, load.name)
    return Counter(_digest(json.loads(prompt)) for (prompt,) in rows)


def _digest(messages: list[dict[str, Any]]) -> str:
    text = "\n".join(str(message["content"]) for message in messages)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def lost_attempts(arena: Arena, load: Load) -> int:
    return int(
        arena.one(
            "SELECT count(*) FROM runs_attempt a"
            + OF_EXPERIMENT
            + "JOIN runs_attemptoutcome o ON o.attempt_id = a.id"
            " AND o.error_class = 'lost_worker'",
            load.name,
        )
    )


def open_attempts(arena: Arena, load: Load) -> int:
    """Return how many calls are in flight, or were when their worker died."""
    return int(
        arena.one(
            "SELECT count(*) FROM runs_attempt a"
            + OF_EXPERIMENT
            + "LEFT JOIN runs_attemptoutcome o ON o.attempt_id = a.id WHERE o.id IS NULL",
            load.name,
        )
    )


def paid_twice(arena: Arena, load: Load) -> int:
    """
    Return how many calls the stub served for nothing new: the same prompt once more.

    Asserts that each call that it received has an attempt of its own.
    """
    written = attempts_by_prompt(arena, load)
    received = Counter(arena.stub.stats()["prompts"])
    assert received <= written, received - written
    return sum(count - 1 for count in received.values())


def repeated_attempts(arena: Arena, load: Load) -> int:
    """Return how many calls the protocol had made again, because the one before had failed."""
    return int(
        arena.one(
            "SELECT count(*) FROM runs_attempt a"
            + OF_EXPERIMENT
            + "JOIN runs_attemptoutcome o ON o.attempt_id = a.retry_of_id AND NOT o.late"
            " AND o.error_class <> 'lost_worker'",
            load.name,
        )
    )


def bill_is_covered(arena: Arena, load: Load) -> None:
    """What the stub bills is what is settled, and of what is held no more than all."""
    ((settled, held),) = arena.rows(
        "SELECT a.settled_output_tokens, a.held_output_tokens FROM runs_account a"
        " JOIN runs_experiment e ON e.account_id = a.id AND e.name = %s",
        load.name,
    )
    billed = arena.stub.stats()["output_tokens"]
    assert settled <= billed <= settled + held, (settled, billed, held)
