"""
Every tenth call fails, in every way that the stub knows in turn, on both HTTP paths.

Nothing may be lost or doubled, and the ledger has to agree with what the server counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.drills import records
from tests.drills.arena import Arena, Load, Say
from tests.stub_server import FAULTS

END_LIMIT_SECONDS = 240.0
SHARE = 0.1
CALL_SECONDS = 3
TOKENS_A_REPLY = 40  # What the stub bills for each.
#: The stub has billed these, and its word of what was used got lost on the way.
LOST_ON_THE_WAY = {"never", "truncated", "malformed", "late", "reset"}
#: Nobody can tell whether these did any work.
DOUBTFUL = LOST_ON_THE_WAY | {"http_500", "http_503", "html"}
SURELY_FREE = {"http_429"}

LOADS = [
    Load("thin-faults", 40, rounds=2, call_seconds=CALL_SECONDS),
    Load("litellm-faults", 40, rounds=2, model="stub/litellm", call_seconds=CALL_SECONDS),
]
LONG = [replace(load, name=f"long-{load.name}", questions=200, rounds=3, cap=64) for load in LOADS]


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.model)
def test_faults_of_every_kind_lose_and_double_nothing(arena: Arena, load: Load, say: Say) -> None:
    say(drill(arena, load))


@pytest.mark.stress
@pytest.mark.parametrize("load", LONG, ids=lambda load: load.model)
def test_many_faults_of_every_kind_lose_and_double_nothing(
    arena: Arena, load: Load, say: Say
) -> None:
    say(drill(arena, load))


def drill(arena: Arena, load: Load) -> str:
    """Run an experiment under faults, check its records, and return what was measured."""
    arena.stub.configure(
        latency_seconds=0.1,
        late_seconds=CALL_SECONDS + 1.0,
        fault_share=SHARE,
        retry_after_seconds=0.5,
    )
    arena.staff()
    arena.start(load)
    seconds = arena.wait_until(load.name, "FINISHED", END_LIMIT_SECONDS)
    records.assert_sound(arena, load)
    stats = arena.stub.stats()
    every_kind_took_its_turn(stats["faults"], stats["received"])
    # Each call that came in is one attempt, and each attempt is one call.
    assert Counter(stats["prompts"]) == records.attempts_by_prompt(arena, load)
    every_fault_is_on_the_ledger(arena, load, Counter(stats["faults"]), stats)
    return (
        f"{load.model}: {stats['received']} calls, {sum(stats['faults'].values())} of them "
        f"faulty in {len(stats['faults'])} ways, {stats['received'] - load.calls} more than "
        f"without faults, in {seconds:.1f} s; nothing lost or doubled"
    )


def every_kind_took_its_turn(faults: dict[str, int], received: int) -> None:
    assert set(faults) == set(FAULTS)
    assert max(faults.values()) - min(faults.values()) <= 1
    assert sum(faults.values()) == int(received * SHARE)


def every_fault_is_on_the_ledger(
    arena: Arena, load: Load, faults: Counter[str], stats: dict[str, int]
) -> None:
    """Known use is settled to the token, doubtful use held, use that was none released."""
    held = _attempts_with(arena, load, "hold")
    assert held == sum(faults[kind] for kind in DOUBTFUL)
    settled = _attempts_with(arena, load, "settle")
    assert settled == stats["received"] - held - sum(faults[kind] for kind in SURELY_FREE)
    tokens = arena.one(
        "SELECT a.settled_output_tokens FROM runs_account a JOIN runs_experiment e"
        " ON e.account_id = a.id AND e.name = %s",
        load.name,
    )
    unheard = sum(faults[kind] for kind in LOST_ON_THE_WAY)
    assert tokens == stats["output_tokens"] - TOKENS_A_REPLY * unheard


def _attempts_with(arena: Arena, load: Load, kind: str) -> int:
    return int(
        arena.one(
            "SELECT count(DISTINCT l.attempt_id) FROM runs_ledgerentry l"
            " JOIN runs_attempt a ON a.id = l.attempt_id"
            + records.OF_EXPERIMENT
            + "WHERE l.kind = %s",
            load.name,
            kind,
        )
    )
