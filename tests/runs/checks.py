"""What must hold of any records, whatever happened to them."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db.models import Q, Sum

from runs.models import Account, Aggregate, Attempt, Commit, Experiment, LedgerEntry, Run, State
from runs.services.verify import verify_experiment

#: How each movement changes (settled, held, reserved, overrun), by kind and source.
_MOVES = {
    ("reserve", ""): (0, 0, 1, 0),
    ("settle", "reserved"): (1, 0, -1, 0),
    ("hold", "reserved"): (0, 1, -1, 0),
    ("release", "reserved"): (0, 0, -1, 0),
    ("settle", "held"): (1, -1, 0, 0),
    ("release", "held"): (0, -1, 0, 0),
    ("overrun", ""): (0, 0, 0, 1),
}
_PARTS = ("settled", "held", "reserved", "overrun")


def assert_verified(made: Experiment) -> None:
    """Every run of the experiment is over and follows from its records."""
    count, found = verify_experiment(made, tell=lambda _done, _total: None)
    assert count == made.runs.count()
    assert not found, str(found[0])


def assert_balanced() -> None:
    """
    The entries of every account add up to its balance, within its cap.

    Of runs that are over nothing is reserved, every attempt has ended, and the experiment's
    account holds what its runs' hold, beside the caps of runs under way.
    """
    for account in Account.objects.all():
        for unit in ("microusd", "output_tokens"):
            totals = _totals(account, unit)
            assert totals == [getattr(account, f"{part}_{unit}") for part in _PARTS], account
            cap = getattr(account, f"cap_{unit}")
            assert min(totals) >= 0
            assert cap is None or sum(totals[:3]) <= cap
    over = Run.objects.filter(status="DONE")
    assert not over.filter(~Q(account__reserved_microusd=0)).exists()
    assert not over.filter(~Q(account__reserved_output_tokens=0)).exists()
    assert not Attempt.objects.filter(run__status="DONE", outcomes=None).exists()
    assert over.count() == Aggregate.objects.filter(run__in=over, ordinal=0).count()
    for made in Experiment.objects.all():
        _assert_summed_up(made)


def _totals(account: Account, unit: str) -> list[int]:
    totals = [0, 0, 0, 0]
    rows = account.entries.values_list("kind", "source").annotate(total=Sum(unit))
    for kind, source, total in rows:
        for place, sign in enumerate(_MOVES[kind, source]):
            totals[place] += sign * total
    return totals


def _assert_summed_up(made: Experiment) -> None:
    for unit in ("microusd", "output_tokens"):
        for part in ("settled", "held", "overrun"):
            field = f"account__{part}_{unit}"
            done = made.runs.filter(status="DONE").aggregate(total=Sum(field))["total"] or 0
            assert getattr(made.account, f"{part}_{unit}") == done, (made.name, part, unit)
        under_way = made.runs.filter(status="RUNNING")
        caps = under_way.aggregate(total=Sum(f"account__cap_{unit}"))["total"] or 0
        assert getattr(made.account, f"reserved_{unit}") == caps


def content_of(run: Run) -> dict[str, Any]:
    """Return what of a run must not depend on times, ids and the order of work."""
    states = State.objects.filter(run=run).order_by("round", "agent_id")
    aggregate = Aggregate.objects.filter(run=run).order_by("ordinal")
    hidden = {"id", "run_id", "at"}
    return {
        "commits": list(
            Commit.objects.filter(run=run)
            .order_by("t")
            .values_list("t", "snapshot_hash", "active", "scheduled")
        ),
        "states": [(s.round, s.agent_id, s.content_hash, s.raw_hash, s.text) for s in states],
        "attempts": sorted(
            (a.t, a.agent_id, a.ordinal, a.request_digest, _digest(a.prompt), str(a.read_set))
            for a in Attempt.objects.filter(run=run)
        ),
        "verdicts": sorted(run.verdicts.values_list("t", "agent_id", "status", "reason")),
        "aggregates": [
            {key: value for key, value in row.items() if key not in hidden}
            for row in aggregate.values()
        ],
        "stop": (run.stop_reason, run.stop_observables),
        "entries": sorted(
            LedgerEntry.objects.filter(account=run.account).values_list(
                "kind", "source", "microusd", "output_tokens"
            )
        ),
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
