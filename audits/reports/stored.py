"""Reads of stored reports for pages: what there is, the newest, and the rows behind a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from audits.judgment_models import JudgmentSet
from audits.metrics.records import PLURALITY
from audits.models import Report, ReportRow, ReportStatus
from audits.queue_models import Queue
from audits.reports.definitions import definition_of
from audits.reports.wording import Definition
from debateweb.models import Workspace
from runs.models import DebateSet, Experiment, ExperimentStatus, Kind, Name, Run, RunStatus

MOST_ROUND_DIGITS = 4
REPORTED = (Kind.EXPERIMENT, Kind.DEBATES, Kind.JUDGMENTS, Kind.QUEUE)
AGGREGATOR = "aggregator"

#: Figures whose rows are agents in runs: what is right before and after says whether one counts
#: (docs/metrics.md). Before: which agents stand in the denominator. Rows of all others are runs.
_BEFORE: dict[str, bool | None] = {
    "agent_accuracy_0": None,
    "agent_accuracy_T": None,
    "repair_T": False,
    "damage_T": True,
    "fixed": None,
    "broke": None,
    "repair_t": False,
    "damage_t": True,
}
_COUNTS: dict[str, tuple[bool | None, bool | None]] = {
    "agent_accuracy_0": (True, None),
    "agent_accuracy_T": (None, True),
    "repair_T": (None, True),
    "damage_T": (None, False),
    "fixed": (False, True),
    "broke": (True, False),
    "repair_t": (False, True),
    "damage_t": (True, False),
}
_ONE_STEP = {"repair_t", "damage_t"}


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
        named = (asked[key] for key in ("condition", "a", "b") if asked.get(key))
        conditions = tuple(dict.fromkeys(named))
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
        return self.metric in _COUNTS

    @property
    def is_one_step(self) -> bool:
        return self.metric in _ONE_STEP and bool(self.round)

    def place_in(self, rates: Sequence[Mapping[str, Any]]) -> int | None:
        """Return where a run's ``counts`` have this figure; None where no rate is it."""
        wanted = {key: value for key, value in self.by.items() if key != "stratum"}
        named = [
            (place, rate["by"])
            for place, rate in enumerate(rates)
            if (rate["metric"], rate["round"]) == (self.metric, self.round)
            and wanted.items() <= rate["by"].items()
        ]
        # A difference names no aggregator: the condition's own comes first.
        exact = [place for place, by in named if by == wanted]
        near = [place for place, by in named if by.keys() - wanted.keys() <= {AGGREGATOR}]
        return next(iter([*exact, *near]), None)


def listed(workspace: Workspace) -> QuerySet[Name]:
    """Return the names of a workspace that can be reported on."""
    place = {"workspace": workspace, "name": OuterRef("name"), "archived_at__isnull": False}
    names = Name.objects.filter(workspace=workspace, kind__in=REPORTED)
    for rows in (Experiment.objects, DebateSet.objects, JudgmentSet.objects, Queue.objects):
        names = names.exclude(Exists(rows.filter(**place)))
    return names


@dataclass(frozen=True, slots=True)
class Standing:
    """How far an experiment is: what a report on it could be made of."""

    key: int
    status: str
    done: int
    designed: int

    @property
    def is_unstarted(self) -> bool:
        return self.status == ExperimentStatus.READY

    @property
    def is_under_way(self) -> bool:
        ended = (ExperimentStatus.FINISHED, ExperimentStatus.CANCELLED)
        return not self.is_unstarted and self.status not in ended

    @property
    def word(self) -> str:
        return self.status.lower().replace("_", " ")


def standing_of(workspace: Workspace, name: str) -> Standing | None:
    """Return how far the experiment of that name is; None where it is none. Two queries."""
    found = Experiment.objects.filter(workspace=workspace, name=name).only("status").first()
    if found is None:
        return None
    runs = Run.objects.filter(experiment=found).aggregate(
        designed=Count("pk"), done=Count("pk", filter=Q(status=RunStatus.DONE))
    )
    return Standing(found.pk, found.status, runs["done"], runs["designed"])


def newest(workspace: Workspace, names: Sequence[str]) -> dict[str, Report]:
    """Return the newest report of each name, without its body. One query."""
    found = Report.objects.filter(workspace=workspace, name__in=names)
    latest = found.order_by("name", "-pk").distinct("name").defer("body")
    return {report.name: report for report in latest}


def newest_built(workspace: Workspace, name: str, key: int | None = None) -> Report | None:
    """Return the newest report that is built, or the one with that key; its body comes later."""
    built = Report.objects.filter(workspace=workspace, name=name, status=ReportStatus.BUILT)
    if key is not None:
        built = built.filter(pk=key)
    return built.order_by("-pk").defer("body").first()


def rows_of(report: Report, asked: RowsAsked) -> QuerySet[ReportRow]:
    """
    Return the rows of a figure's denominator: agents in runs, or runs. Ordered by the caller.

    Where the figure is no rate of runs (a correlation, say), every run of its conditions.
    """
    rows = ReportRow.objects.filter(report=report)
    if "stratum" in asked.by:
        rows = rows.filter(stratum=asked.by["stratum"])
    counted = Q(pk__in=[])
    for condition, place in _places(report, asked).items():
        own = Q(condition=condition)
        counted |= own if place is None else own & Q(**{f"counts__{place}__1__gt": 0})
    runs = rows.filter(counted, agent_id="")
    return _agents(rows, runs, asked) if asked.is_of_agents else runs


def _agents(
    rows: QuerySet[ReportRow], runs: QuerySet[ReportRow], asked: RowsAsked
) -> QuerySet[ReportRow]:
    """Return the agents of ``runs`` that stood in the denominator before."""
    first = asked.round - 1 if asked.is_one_step and asked.round is not None else 0
    before = _BEFORE[asked.metric]
    known = {f"correct__{first}__in": [True, False] if before is None else [before]}
    rows = rows.exclude(agent_id="").filter(
        condition__in=asked.conditions, run_key__in=runs.values("run_key"), **known
    )
    if asked.by.get("variant") == "valid_initial":
        rows = rows.exclude(answers__0=None)
    return rows.filter(agent_id=asked.by["agent"]) if "agent" in asked.by else rows


def _places(report: Report, asked: RowsAsked) -> dict[str, int | None]:
    return {name: asked.place_in(report.counted.get(name, ())) for name in asked.conditions}


@dataclass(frozen=True, slots=True)
class Counted:
    """A row with what it adds to the figure; None where the figure adds nothing up."""

    row: ReportRow
    start: bool | None
    end: bool | None
    before: str | None
    after: str | None
    num: float | None
    den: float | None


def counted_rows(report: Report, asked: RowsAsked, rows: Sequence[ReportRow]) -> Iterator[Counted]:
    """Yield rows of ``rows_of`` with what each adds to numerator and denominator."""
    places = _places(report, asked)
    for row in rows:
        start, end, answers = _ends(row, asked)
        if asked.is_of_agents:
            ends = zip(_COUNTS[asked.metric], (start, end), strict=True)
            adds: Sequence[float] = int(all(w is None or have is w for w, have in ends)), 1
        else:
            place = places[row.condition]
            adds = (row.counts[place] or ()) if place is not None else ()
        num, den = adds or (None, None)
        yield Counted(row, start, end, answers[0], answers[1], num, den)


def _ends(row: ReportRow, asked: RowsAsked) -> tuple[bool | None, bool | None, list[str | None]]:
    """Return right or wrong before and after, and the answers at both times."""
    if row.agent_id:
        last = asked.round if asked.is_one_step and asked.round is not None else -1
        first = last - 1 if last > 0 else 0
        return row.correct[first], row.correct[last], [row.answers[first], row.answers[last]]
    name = asked.by.get(AGGREGATOR) or _headline(sorted(row.correct))
    start, end = row.correct.get(name, [None, None])
    return start, end, row.answers.get(name, [None, None])


def _headline(names: Sequence[str]) -> str:
    """Return the aggregator of the headline figures, as the panel chooses it."""
    others = [name for name in names if name != PLURALITY]
    if PLURALITY in names and len(others) != 1:
        return PLURALITY
    return others[0] if others else PLURALITY
