"""Reads of stored reports for pages: what there is, the newest, and the rows behind a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from audits.metrics.records import PLURALITY
from audits.models import Report, ReportRow, ReportStatus
from audits.reports.definitions import Definition, definition_of
from debateweb.models import Workspace
from debateweb.texts import printable
from runs.models import DebateSet, Experiment, Kind, Name

MOST_ROUND_DIGITS = 4

_WRONG_AT_START = Q(correct__0=False)
_RIGHT_AT_START = Q(correct__0=True)
_MINORITY = Q(right_at_start__gte=1, right_at_start__lt=F("agents") - F("right_at_start"))
_MAJORITY = Q(right_at_start__gt=F("agents") - F("right_at_start"))
_HALF = Q(right_at_start__gte=1, right_at_start=F("agents") - F("right_at_start"))
#: Which rows stand in the denominator; a metric without an entry counts all of its unit.
_DENOMINATORS = {
    "repair_T": _WRONG_AT_START,
    "excess_repair_T": _WRONG_AT_START,
    "damage_T": _RIGHT_AT_START,
    "excess_damage_T": _RIGHT_AT_START,
    "all_wrong_rescued": Q(right_at_start=0),
    "correct_minority_lost": _MINORITY,
    "minority_won": _MINORITY,
    "majority_lost": _MAJORITY,
}
#: Which of them stand in the numerator, by what was right at the start and at the end.
_NUMERATORS: dict[str, tuple[bool | None, bool | None]] = {
    "accuracy_0": (True, None),
    "accuracy_T": (None, True),
    "agent_accuracy_0": (True, None),
    "agent_accuracy_T": (None, True),
    "repair_T": (None, True),
    "damage_T": (None, False),
    "fixed": (False, True),
    "broke": (True, False),
    "repair_t": (False, True),
    "damage_t": (True, False),
    "all_wrong_rescued": (None, True),
    "minority_won": (None, True),
    "correct_minority_lost": (None, False),
    "majority_lost": (None, False),
}


@dataclass(frozen=True)
class RowsAsked:
    """Which figure's rows are asked for: the query of the figure's address."""

    metric: str
    conditions: tuple[str, ...]
    agg: str = ""
    round: int | None = None
    by: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, query: Mapping[str, Any]) -> RowsAsked | None:
        """Read an address; None where it names no figure. NUL stands in no row."""
        asked = {key: str(value).replace("\0", "") for key, value in query.items()}
        conditions = tuple(asked[key] for key in ("condition", "a", "b") if asked.get(key))
        by = {key[3:]: value for key, value in asked.items() if key.startswith("by.")}
        metric = by.pop("metric", "") or asked.get("metric", "")
        raw = asked.get("round", "")
        is_round = raw.isascii() and raw.isdigit() and len(raw) <= MOST_ROUND_DIGITS
        if not metric or not conditions:
            return None
        return cls(metric, conditions, asked.get("agg", ""), int(raw) if is_round else None, by)

    @property
    def definition(self) -> Definition:
        return definition_of(self.metric)

    @property
    def is_of_agents(self) -> bool:
        return self.definition.unit == "agent"

    @property
    def is_one_step(self) -> bool:
        return self.metric in {"repair_t", "damage_t"} and bool(self.round)


def listed(workspace: Workspace) -> QuerySet[Name]:
    """Return the names of a workspace that can be reported on."""
    place = {"workspace": workspace, "name": OuterRef("name"), "archived_at__isnull": False}
    names = Name.objects.filter(workspace=workspace, kind__in=[Kind.EXPERIMENT, Kind.DEBATES])
    return names.exclude(Exists(Experiment.objects.filter(**place))).exclude(
        Exists(DebateSet.objects.filter(**place))
    )


def newest(workspace: Workspace, names: Sequence[str]) -> dict[str, Report]:
    """Return the newest report of each name, without its body. One query."""
    found = Report.objects.filter(workspace=workspace, name__in=names)
    latest = found.order_by("name", "-pk").distinct("name").defer("body")
    return {report.name: report for report in latest}


def newest_built(workspace: Workspace, name: str) -> Report | None:
    built = Report.objects.filter(workspace=workspace, name=name, status=ReportStatus.BUILT)
    return built.order_by("-pk").first()


def rows_of(report: Report, asked: RowsAsked) -> QuerySet[ReportRow]:
    """Return the rows that a figure is over: agents in runs, or runs. Ordered by the caller."""
    rows = ReportRow.objects.filter(report=report, condition__in=asked.conditions)
    rows = rows.exclude(agent_id="") if asked.is_of_agents else rows.filter(agent_id="")
    if asked.by.get("variant") == "half":
        rows = rows.filter(_HALF)
    elif asked.metric in _DENOMINATORS:
        rows = rows.filter(_DENOMINATORS[asked.metric])
    if asked.by.get("variant") == "valid_initial":
        rows = rows.exclude(answers__0=None)
    if asked.is_of_agents and "agent" in asked.by:
        rows = rows.filter(agent_id=asked.by["agent"])
    if "stratum" in asked.by:
        rows = rows.filter(stratum=asked.by["stratum"])
    return _of_one_step(rows, asked)


def _of_one_step(rows: QuerySet[ReportRow], asked: RowsAsked) -> QuerySet[ReportRow]:
    if not asked.is_one_step or asked.round is None:
        return rows
    was_right = asked.metric == "damage_t"
    return rows.filter(
        **{"rounds_opened__gt": asked.round, f"correct__{asked.round - 1}": was_right}
    )


def shown_row(row: ReportRow, asked: RowsAsked) -> dict[str, Any]:
    """Return a row in words; ``counted`` is None where no row is counted by itself."""
    start, end, answers = _ends(row, asked)
    wanted = _NUMERATORS.get(asked.metric)
    counted = None
    if wanted is not None:
        ends = zip(wanted, (start, end), strict=True)
        counted = all(want is None or have is want for want, have in ends)
    return {
        "row": row,
        "start": start,
        "end": end,
        "before": _answer(answers[0]),
        "after": _answer(answers[1]),
        "statuses": row.statuses,
        "counted": counted,
    }


def _ends(row: ReportRow, asked: RowsAsked) -> tuple[bool | None, bool | None, list[str | None]]:
    """Return right or wrong before and after, and the answers at both times."""
    if asked.is_of_agents:
        last = asked.round if asked.is_one_step and asked.round is not None else -1
        first = last - 1 if last > 0 else 0
        return row.correct[first], row.correct[last], [row.answers[first], row.answers[last]]
    name = asked.by.get("aggregator") or _headline(sorted(row.correct))
    start, end = row.correct.get(name, [None, None])
    return start, end, row.answers.get(name, [None, None])


def _headline(names: Sequence[str]) -> str:
    """Return the aggregator of the headline figures, as the panel chooses it."""
    others = [name for name in names if name != PLURALITY]
    if PLURALITY in names and len(others) != 1:
        return PLURALITY
    return others[0] if others else PLURALITY


def _answer(answer: str | None) -> str:
    return "–" if answer is None else printable(answer)
