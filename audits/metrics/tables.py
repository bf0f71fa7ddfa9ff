"""The tables of one condition: the counts behind its figures, ready for JSON."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from audits.metrics import dependence
from audits.metrics.arrays import FloatArray
from audits.metrics.debate_rates import aggregate_correct, recorded
from audits.metrics.dependence_figures import errors_at, moments_at
from audits.metrics.figures import plain
from audits.metrics.panel import Panel, build_panel
from audits.metrics.records import STATUSES, RunRow
from audits.metrics.revision import transitions

Table = list[dict[str, object]]


def debate_tables(runs: Sequence[RunRow], *, aggregator: str | None = None) -> dict[str, object]:
    """Return the tables of one condition, by name. Counts are over runs, never averaged."""
    panel = build_panel(runs)
    chosen = panel.aggregator(aggregator)
    return {
        "counts": _counts(panel, chosen),
        "rounds": _rounds(panel),
        "stop_reasons": dict(sorted(Counter(run.stop_reason for run in panel.runs).items())),
        "status_by_round": _status_by_round(panel),
        "transitions": _transitions(panel),
        "right_at_start": _right_at_start(panel),
        "fate_by_right_at_start": _fates(panel, chosen),
        "aggregators": _aggregators(panel),
        "instrument": _instrument(panel),
        "dependence": [_dependence(panel, at, t) for at, t in (("0", 0), ("T", -1))],
        "rho_by_stratum": _rho_by_stratum(panel),
        "usage_by_kind": _usage_by_kind(panel),
        "cost_range_microusd": _cost_range(panel),
    }


def _counts(panel: Panel, aggregator: str) -> dict[str, object]:
    return {
        "runs": len(panel.runs),
        "questions": len(panel.question_ids),
        "families": len(set(panel.family.tolist())),
        "seeds": len({run.seed for run in panel.runs}),
        "configured_agents": int(panel.configured.sum()),
        "runs_without_objective_check": int((~panel.scored).sum()),
        "aggregator": aggregator,
    }


def _rounds(panel: Panel) -> Table:
    return [{"round": t, "opened": int(panel.opened(t).sum())} for t in range(panel.last_t + 1)]


def _status_by_round(panel: Panel) -> Table:
    """Count statuses over the configured agents of the runs that opened the round."""
    table: Table = []
    for t in range(panel.last_t + 1):
        asked = panel.configured & panel.opened(t)[:, None]
        counts = np.bincount(panel.status[:, t][asked], minlength=len(STATUSES))
        total = int(counts.sum())
        table += [
            {"round": t, "status": name, "n": int(n), "share": float(n / total)}
            for name, n in zip(STATUSES, counts, strict=True)
            if n
        ]
    return table


def _transitions(panel: Panel) -> Table:
    """Initial-to-final first; then one-step counts over the runs that opened each round."""
    rows: Table = [{"step": "0→T", **_moves(panel, 0, panel.last_t, step=None)}]
    for t in range(1, panel.last_t + 1):
        rows.append({"step": f"{t - 1}→{t}", **_moves(panel, t - 1, t, step=t)})
    return rows


def _moves(panel: Panel, start: int, end: int, step: int | None) -> dict[str, object]:
    opened = panel.opened(step)[:, None] if step else True
    counted = panel.configured & panel.scored[:, None] & opened
    before, after = panel.correct[:, start], panel.correct[:, end]
    moved = transitions(before, after, counted)
    changed = panel.answer[:, start] != panel.answer[:, end]
    fixed, broke = int(moved.fixed.sum()), int(moved.broke.sum())
    other_wrong = int((counted & ~before & ~after & changed).sum())
    return {
        "wrong_before": int(moved.wrong.sum()),
        "right_before": int(moved.right.sum()),
        "fixed": fixed,
        "broke": broke,
        "to_another_wrong": other_wrong,
        "stayed": int(counted.sum()) - fixed - broke - other_wrong,
        "valid_initial": int((counted & panel.has_state[:, 0]).sum()),
    }


def _right_at_start(panel: Panel) -> Table:
    """Count runs by configured agents and by how many of them were right at round 0."""
    right = (panel.correct[:, 0] & panel.configured).sum(axis=1)
    pairs = Counter(
        (int(n), int(k))
        for n, k, scored in zip(panel.agents, right, panel.scored, strict=True)
        if scored
    )
    return [
        {"agents": n, "right": k, "n": pairs[n, k]}
        for n in sorted({n for n, _ in pairs})
        for k in range(n + 1)
    ]


def _fates(panel: Panel, aggregator: str) -> Table:
    """Count runs by agents, number right at the start, and the aggregate before and after."""
    right = (panel.correct[:, 0] & panel.configured).sum(axis=1)
    z_0, ran = aggregate_correct(panel, aggregator, 0)
    z_end, ran_to_end = aggregate_correct(panel, aggregator, -1)
    cells = Counter(
        (int(n), int(k), int(z) if known else None, int(end))
        for n, k, z, known, end, use in zip(
            panel.agents, right, z_0, ran, z_end, panel.scored & ran_to_end, strict=True
        )
        if use
    )
    return [
        {"agents": n, "right": k, "z_0": z, "z_T": end, "n": count}
        for (n, k, z, end), count in sorted(cells.items(), key=lambda cell: str(cell[0]))
    ]


def _aggregators(panel: Panel) -> Table:
    """Count what every aggregator made of the same candidates, at round 0 and at T."""
    return [
        {
            "aggregator": name,
            "at": at,
            **{
                field: int(getattr(outcome, field)[:, t].sum())
                for field in ("ran", "correct", "answered", "tied", "abstained", "unresolved")
            },
        }
        for name, outcome in panel.outcomes.items()
        for at, t in (("0", 0), ("T", -1))
    ]


def _instrument(panel: Panel) -> dict[str, object]:
    """Bound the agents' final accuracy over what the instrument left unscored.

    Only in runs that have a check at all: a valid state there without a verdict counts 0.
    """
    counted = panel.configured & panel.scored[:, None]
    missing = counted & panel.unscored[:, -1]
    right = int((counted & panel.correct[:, -1]).sum())
    total, unscored = int(counted.sum()), int(missing.sum())
    scored_only = total - unscored
    return {
        "unscored_states": unscored,
        "agent_accuracy_T_low": right / total if total else None,
        "agent_accuracy_T_high": (right + unscored) / total if total else None,
        "agent_accuracy_T_scored_only": right / scored_only if scored_only else None,
        "n_scored": scored_only,
    }


def _dependence(panel: Panel, at: str, t: int) -> dict[str, object]:
    """Print S, phi and the error rate of each agent, where all questions have the same agents."""
    if panel.roster is None or not panel.scored.any():
        return {"at": at, "reason": "agents differ between questions, or nothing is scored"}
    sample = moments_at(panel, t)
    flat = dependence.constant_agents(sample)
    return {
        "at": at,
        "agents": list(panel.roster),
        "error_rate": _cells(sample.means),
        "covariance": _cells(sample.covariance),
        "phi": _cells(dependence.phi_matrix(sample)),
        "constant_agents": [
            name for name, is_flat in zip(panel.roster, flat, strict=True) if is_flat
        ],
    }


def _cells(values: FloatArray) -> list[object]:
    """Return nested lists with None for NaN."""
    if values.ndim == 1:
        return [plain(float(value)) for value in values]
    return [_cells(row) for row in values]


def _rho_by_stratum(panel: Panel) -> dict[str, object]:
    """Print rho at round 0 within each stratum, and the weighted rho without their mixing."""
    names = sorted({run.stratum for run in panel.runs if run.stratum is not None})
    if panel.roster is None or len(panel.roster) < 2 or not names or not panel.scored.any():
        return {"strata": [], "rho_within": None, "reason": "no strata with common agents"}
    errors, _ = errors_at(panel, 0)
    scored = [run for run, use in zip(panel.runs, panel.scored, strict=True) if use]
    code = np.array(
        [names.index(run.stratum) if run.stratum is not None else -1 for run in scored], np.int64
    )
    rows = [
        {"stratum": name, "n": int((code == i).sum()), "rho_cov": plain(_rho(errors[code == i]))}
        for i, name in enumerate(names)
    ]
    within = dependence.within_strata_rho(errors[code >= 0], code[code >= 0])
    return {"strata": rows, "rho_within": plain(within), "reason": None}


def _rho(errors: FloatArray) -> float | None:
    return float(dependence.rho_cov(dependence.moments(errors))) if len(errors) > 1 else None


def _usage_by_kind(panel: Panel) -> dict[str, dict[str, int]]:
    totals: dict[str, Counter[str]] = {}
    for run in panel.runs:
        for kind, counts in run.usage.by_kind.items():
            totals.setdefault(kind, Counter()).update(counts)
    return {kind: dict(sorted(counts.items())) for kind, counts in sorted(totals.items())}


def _cost_range(panel: Panel) -> dict[str, object]:
    """Return what was settled, and that plus all that is held and may still be charged."""
    low = float(recorded(panel, "cost_microusd").sum())
    return {"low": plain(low), "high": plain(low + recorded(panel, "held_microusd").sum())}
