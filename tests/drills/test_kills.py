"""
Workers killed at random moments: work goes on, nothing is lost, doubled or paid without need.

The short form kills five times; ``make stress`` fifty times, and prints what it measured.
"""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass, field

import pytest

from tests.drills import records
from tests.drills.arena import ROLES, Arena, Load, Say, wait_for

RESUME_LIMIT_SECONDS = 15.0
END_LIMIT_SECONDS = 180.0
LATENCY_SECONDS = 0.25
CALL_SECONDS = 5


@dataclass
class Figures:
    """What a drill of kills has measured."""

    kills: int = 0
    experiments: int = 0
    calls: int = 0
    in_flight: int = 0
    lost: int = 0
    paid_twice: int = 0
    resumed_seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kills} kills in {self.experiments} experiments of {self.calls} calls in all: "
            f"work resumed within {max(self.resumed_seconds, default=0.0):.1f} s of the worker's "
            f"return at most, {sum(self.resumed_seconds) / len(self.resumed_seconds):.1f} s on "
            f"average; {self.in_flight} calls were in flight, {self.paid_twice} were served twice"
        )


class Killer:
    """Kills at random moments of one experiment after another, and counts."""

    def __init__(
        self, arena: Arena, kills: int, questions: int, *, name: str = "kills", faults: float = 0.0
    ) -> None:
        self.name = name
        self.faults = faults
        self.arena = arena
        self.wanted = kills
        self.questions = questions
        self.dice = random.Random(20_260_101)
        self.figures = Figures()

    def drill(self) -> Figures:
        self.arena.staff()
        while self.figures.kills < self.wanted:
            self.figures.experiments += 1
            load = Load(
                f"{self.name}-{self.figures.experiments}", self.questions, call_seconds=CALL_SECONDS
            )
            self.arena.stub.configure(
                latency_seconds=LATENCY_SECONDS,
                late_seconds=CALL_SECONDS + 1.0,
                fault_share=self.faults,
            )
            self.arena.start(load)
            self._kill_until_it_ends(load)
            self.arena.wait_until(load.name, "FINISHED", END_LIMIT_SECONDS)
            self._check(load)
        return self.figures

    def _kill_until_it_ends(self, load: Load) -> None:
        wait_for(lambda: self.arena.succeeded(load.name), RESUME_LIMIT_SECONDS, "a first reply")
        while self.figures.kills < self.wanted:
            time.sleep(self.dice.uniform(0.0, 1.5))
            if self.arena.status(load.name) == "FINISHED":
                return
            self._kill_and_return(load)

    def _kill_and_return(self, load: Load) -> None:
        # Now and then all die at once, as when a machine loses its power.
        victims = ROLES if self.dice.random() < 0.2 else ("rounds",)
        self.arena.kill(*victims)
        self.figures.kills += 1
        self.figures.in_flight += records.open_attempts(self.arena, load)
        before = self.arena.succeeded(load.name)
        self.arena.hire(*victims)
        if self.dice.random() < 0.2:
            return  # The next kill comes before or while it recovers.
        seconds = wait_for(
            lambda: (
                self.arena.succeeded(load.name) > before
                or self.arena.status(load.name) == "FINISHED"
            ),
            RESUME_LIMIT_SECONDS,
            "work resumes",
        )
        self.figures.resumed_seconds.append(seconds)

    def _check(self, load: Load) -> None:
        records.assert_sound(self.arena, load)
        records.bill_is_covered(self.arena, load)
        repeated = records.repeated_attempts(self.arena, load)
        assert (repeated > 0) == (self.faults > 0)
        self.figures.calls += load.calls
        self.figures.lost += records.lost_attempts(self.arena, load)
        self.figures.paid_twice += max(0, records.paid_twice(self.arena, load) - repeated)
        assert self.figures.paid_twice <= self.figures.lost <= self.figures.in_flight


def test_five_kills_at_random_moments_lose_and_double_nothing(arena: Arena, say: Say) -> None:
    figures = Killer(arena, kills=5, questions=40).drill()
    say(str(figures))
    assert figures.kills == 5


@pytest.mark.stress
def test_fifty_kills_at_random_moments_lose_and_double_nothing(arena: Arena, say: Say) -> None:
    figures = Killer(arena, kills=50, questions=60).drill()
    say(str(figures))
    assert figures.kills == 50


@pytest.mark.stress
def test_kills_among_faults_of_every_kind_lose_and_double_nothing(arena: Arena, say: Say) -> None:
    figures = Killer(arena, kills=15, questions=60, name="faulty", faults=0.1).drill()
    say(f"with a tenth of the calls faulty: {figures}")
    assert figures.kills == 15


@pytest.mark.stress
def test_one_kill_half_way_pays_only_for_calls_in_flight_again(arena: Arena, say: Say) -> None:
    load = Load("half-way", questions=100, cap=64)
    arena.stub.configure(latency_seconds=0.3)
    arena.staff()
    arena.start(load)
    wait_for(lambda: arena.succeeded(load.name) >= load.calls // 2, 60, "half of the calls")
    arena.kill("rounds")
    in_flight = records.open_attempts(arena, load)
    before = arena.succeeded(load.name)
    arena.hire("rounds")
    resumed = wait_for(
        lambda: arena.succeeded(load.name) > before, RESUME_LIMIT_SECONDS, "work resumes"
    )
    arena.wait_until(load.name, "FINISHED", END_LIMIT_SECONDS)
    records.assert_sound(arena, load)
    records.bill_is_covered(arena, load)
    twice = records.paid_twice(arena, load)
    assert twice <= in_flight
    say(
        f"one kill after {before} of {load.calls} calls: {in_flight} in flight, {twice} served "
        f"twice, work resumed {resumed:.1f} s after the worker's return"
    )


def test_a_worker_paused_past_its_lease_commits_nothing_and_its_receipts_are_settled(
    arena: Arena,
) -> None:
    load = Load("paused", questions=8, rounds=2)
    arena.stub.configure(latency_seconds=1.0)
    arena.staff()
    arena.start(load)
    wait_for(lambda: records.open_attempts(arena, load) >= 24, 15, "all calls are on their way")
    paused = arena.pause("rounds")
    calls_of_paused = records.open_attempts(arena, load)
    arena.hire("rounds")
    arena.wait_until(load.name, "FINISHED", END_LIMIT_SECONDS)
    assert records.lost_attempts(arena, load) == calls_of_paused
    decided = _what_was_decided(arena, load)
    paused.send_signal(signal.SIGCONT)
    wait_for(lambda: _late(arena, load) == calls_of_paused, 15, "late receipts")
    records.assert_sound(arena, load)
    assert _what_was_decided(arena, load) == decided
    held = arena.experiment("status", load.name)["held_microusd"]
    assert held == 0  # Each receipt said what its call had used.


@pytest.mark.stress
def test_workers_paused_at_random_moments_and_woken_among_others_double_nothing(
    arena: Arena, say: Say
) -> None:
    load = Load("pauses", questions=60)
    dice = random.Random(7)
    arena.stub.configure(latency_seconds=LATENCY_SECONDS)
    arena.staff()
    arena.start(load)
    wait_for(lambda: arena.succeeded(load.name), RESUME_LIMIT_SECONDS, "a first reply")
    pauses = 0
    while pauses < 5 and arena.status(load.name) == "RUNNING":
        time.sleep(dice.uniform(0.0, 0.5))
        paused = arena.pause("rounds")
        pauses += 1
        before = arena.succeeded(load.name)
        arena.hire("rounds")
        wait_for(
            lambda before=before: arena.succeeded(load.name) > before,  # type: ignore[misc]
            RESUME_LIMIT_SECONDS,
            "work resumes",
        )
        paused.send_signal(signal.SIGCONT)
    arena.wait_until(load.name, "FINISHED", END_LIMIT_SECONDS)
    assert pauses >= 3
    wait_for(lambda: not records.open_attempts(arena, load), 15, "late receipts")
    time.sleep(3.0)  # A woken worker listens for receipts for 2 s.
    records.assert_sound(arena, load)
    records.bill_is_covered(arena, load)
    twice, lost = records.paid_twice(arena, load), records.lost_attempts(arena, load)
    assert twice <= lost
    say(
        f"{pauses} pauses past the lease: {lost} calls taken over, {twice} served twice, "
        f"{_late(arena, load)} receipts came late and were settled"
    )


def _what_was_decided(arena: Arena, load: Load) -> list[list[tuple[object, ...]]]:
    tables = ("runs_commit", "runs_state", "runs_verdict", "runs_aggregate", "runs_message")
    return [
        arena.rows(f"SELECT a.* FROM {table} a{records.OF_EXPERIMENT}ORDER BY a.id", load.name)
        for table in tables
    ]


def _late(arena: Arena, load: Load) -> int:
    return int(
        arena.one(
            "SELECT count(*) FROM runs_attempt a"
            + records.OF_EXPERIMENT
            + "JOIN runs_attemptoutcome o ON o.attempt_id = a.id AND o.late",
            load.name,
        )
    )
