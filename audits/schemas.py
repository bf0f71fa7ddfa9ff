"""What the API tells of reports and of the rows behind their figures."""

from __future__ import annotations

from typing import Any

from ninja import Schema


class ReportOut(Schema):
    """The report JSON (docs/formats.md): one for page, file and table."""

    schema_version: int
    kind: str
    name: str
    inputs: dict[str, Any]
    conditions: list[dict[str, Any]]
    comparisons: list[dict[str, Any]]


class BuildingOut(Schema):
    """The report is being built by a worker; ask again."""

    status: str
    name: str


class StateRowOut(Schema):
    """What an agent held at time ``t``; ``correct`` is null where nothing was scored."""

    agent_id: str
    t: int
    answer: str | None
    is_abstention: bool
    correct: bool | None
    status: str
    admitted: bool


class OutcomeRowOut(Schema):
    """What an aggregator made of the states at time ``t``."""

    t: int
    aggregator: str
    answer: str | None
    correct: bool
    tied: bool
    abstained: bool
    unresolved: bool


class RowOut(Schema):
    """One run. ``num`` and ``den`` are null where the figure is no rate or does not ask it."""

    condition: str
    run_key: str
    question_id: str
    family: str
    stratum: str | None
    seed: int
    rounds_opened: int
    stop_reason: str
    num: float | None
    den: float | None
    states: list[StateRowOut]
    outcomes: list[OutcomeRowOut]


class RowsOut(Schema):
    """Rows from ``after`` on; ``next`` is the next page's ``after``."""

    total: int
    items: list[RowOut]
    next: int | None


class StageOut(Schema):
    """What the ended runs say about the rest of an experiment."""

    runs_done: int
    runs: int
    projected_microusd: int
    truncated_share: float | None
    invalid_share: float | None
    contrasts: list[dict[str, Any]]
