"""What people and operators do while work is under way: pause, cancel, restart a server."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.drills import records
from tests.drills.arena import Arena, Load, Say, wait_for

END_LIMIT_SECONDS = 120.0
#: A round under way when a person pauses ends with its slowest call.
QUIET_LIMIT_SECONDS = 10.0
RESUME_LIMIT_SECONDS = 15.0
LATENCY_SECONDS = 0.3
SOME_CALLS = 30


def under_way(arena: Arena, load: Load) -> None:
    """Start an experiment and return when some of its calls have come back."""
    arena.stub.configure(latency_seconds=LATENCY_SECONDS)
    arena.staff()
    arena.start(load)
    wait_for(lambda: arena.succeeded(load.name) >= SOME_CALLS, 30, "some calls")


def assert_finished_and_sound(arena: Arena, load: Load, *, paid_twice: int) -> None:
    arena.wait_until(load.name, "FINISHED", END_LIMIT_SECONDS)
    records.assert_sound(arena, load)
    records.bill_is_covered(arena, load)
    assert records.paid_twice(arena, load) <= paid_twice


def quiet(arena: Arena, load: Load) -> int:
    """Return the number of calls made when the rounds under way at a pause have ended."""
    wait_for(lambda: not records.open_attempts(arena, load), QUIET_LIMIT_SECONDS, "quiet")
    time.sleep(0.5)  # A commit that was under way has ended by now.
    calls = made(arena, load)
    assert SOME_CALLS <= calls < load.calls
    time.sleep(1.0)
    assert made(arena, load) == calls
    return calls


def made(arena: Arena, load: Load) -> int:
    return records.attempts_by_prompt(arena, load).total()


@pytest.mark.parametrize("with_workers", [False, True], ids=["alone", "beside workers"])
def test_a_command_that_waits_has_its_work_done_by_workers_there_or_its_own(
    arena: Arena, with_workers: bool
) -> None:
    load = Load(f"wait-{with_workers}".lower(), 5, rounds=2)
    arena.stub.configure()
    if with_workers:
        arena.staff()
    else:
        arena.dismiss()
    seen = arena.experiment("run", str(arena.written(load)), "--wait")
    assert (seen["status"], seen["done"]) == ("FINISHED", load.questions)
    records.assert_sound(arena, load)
    pids = {
        int(worker.rpartition(":")[2])
        for (worker,) in arena.rows(
            "SELECT DISTINCT a.worker FROM runs_attempt a" + records.OF_EXPERIMENT, load.name
        )
    }
    if with_workers:
        assert pids == {arena.workers["rounds"].pid}
    assert arena.strangers() == {}


@pytest.mark.stress
def test_a_pause_opens_no_further_round_and_what_was_paid_is_there_after_it(
    arena: Arena,
) -> None:
    load = Load("pause", 20)
    under_way(arena, load)
    assert arena.experiment("pause", load.name)["status"] == "PAUSED"
    calls = quiet(arena, load)
    time.sleep(10.0)  # Longer than the sweep waits before it rings again.
    assert made(arena, load) == calls
    arena.experiment("resume", load.name)
    assert_finished_and_sound(arena, load, paid_twice=0)


@pytest.mark.stress
def test_a_worker_that_dies_in_a_pause_is_made_up_for_after_it(arena: Arena) -> None:
    load = Load("pause-and-kill", 20)
    under_way(arena, load)
    arena.experiment("pause", load.name)
    arena.kill("rounds")
    in_flight = records.open_attempts(arena, load)
    arena.hire("rounds")
    arena.experiment("resume", load.name)
    assert_finished_and_sound(arena, load, paid_twice=in_flight)


def test_paused_then_resumed_then_cancelled_every_run_is_accounted_for(arena: Arena) -> None:
    load = Load("cancel", 150)
    under_way(arena, load)
    assert arena.experiment("pause", load.name)["status"] == "PAUSED"
    calls = quiet(arena, load)
    assert arena.experiment("resume", load.name)["status"] == "RUNNING"
    wait_for(lambda: made(arena, load) > calls, RESUME_LIMIT_SECONDS, "it goes on")
    assert arena.experiment("cancel", load.name)["status"] == "CANCELLED"
    wait_for(
        lambda: arena.experiment("status", load.name)["running"] == 0,
        QUIET_LIMIT_SECONDS,
        "all runs end",
    )
    records.assert_sound(arena, load)
    records.bill_is_covered(arena, load)
    seen = arena.experiment("status", load.name)
    assert seen["done"] == load.questions
    assert seen["arms"]["debate"]["stops"]["cancelled"] > 0
    assert records.paid_twice(arena, load) == 0
    assert made(arena, load) < load.calls


@pytest.mark.stress
def test_a_broker_that_dies_and_returns_empty_loses_nothing(arena: Arena) -> None:
    load = Load("broker", 30)
    under_way(arena, load)
    arena.kill_broker()
    time.sleep(2.0)
    before = arena.succeeded(load.name)
    arena.start_broker()
    wait_for(lambda: arena.succeeded(load.name) > before, RESUME_LIMIT_SECONDS, "work goes on")
    # The worker lived on: it lost no call.
    assert_finished_and_sound(arena, load, paid_twice=0)


@pytest.mark.stress
def test_a_restart_of_the_database_costs_at_most_the_calls_in_flight(
    arena: Arena, say: Say
) -> None:
    load = Load("database", 30)
    under_way(arena, load)
    arena.stop_database()
    time.sleep(2.0)
    arena.start_database()
    before, in_flight = arena.succeeded(load.name), records.open_attempts(arena, load)
    seconds = wait_for(
        lambda: arena.succeeded(load.name) > before, RESUME_LIMIT_SECONDS, "work goes on"
    )
    assert_finished_and_sound(arena, load, paid_twice=in_flight)
    say(
        f"work went on {seconds:.1f} s after the database's return; of {in_flight} calls in "
        f"flight {records.paid_twice(arena, load)} were served twice"
    )


@pytest.mark.stress
def test_a_command_that_waits_starts_its_worker_again_when_that_is_killed(arena: Arena) -> None:
    load = Load("wait-and-kill", 20)
    arena.stub.configure(latency_seconds=LATENCY_SECONDS)
    arena.dismiss()  # Killed: their last signs of life are still there.
    with arena.start_command("experiment", "run", str(arena.written(load)), "--wait") as child:
        wait_for(lambda: arena.has_experiment(load.name), 30, "the experiment")
        wait_for(lambda: arena.succeeded(load.name) >= load.calls // 3, 60, "a third of the calls")
        (worker,) = (pid for pid, words in arena.strangers().items() if "--queues rounds" in words)
        os.kill(worker, signal.SIGKILL)
        out, errors = child.communicate(timeout=END_LIMIT_SECONDS)
    assert child.returncode == 0, errors
    assert f"{load.questions} of {load.questions} runs done" in out
    records.assert_sound(arena, load)
    assert arena.strangers() == {}
