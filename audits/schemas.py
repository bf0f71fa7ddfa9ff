"""What the API tells of reports and of the rows behind their figures."""

from __future__ import annotations

from datetime import datetime
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


class RowOut(Schema):
    """
    An agent in a run, or a run (``agent_id`` empty), as it was stored with the report.

    ``num`` and ``den`` are what it adds to the figure, null where the figure is no rate.
    ``correct`` and ``answers`` are lists by round of an agent; of a run ``[at the start, at the
    end]`` by aggregator. ``correct`` is null where nothing was scored.
    """

    condition: str
    run_id: int | None
    run_key: str
    question_id: str
    stratum: str
    seed: int
    agent_id: str
    rounds_opened: int
    right_at_start: int
    agents: int
    correct: list[bool | None] | dict[str, list[bool | None]]
    answers: list[str | None] | dict[str, list[str | None]]
    statuses: list[str]
    num: float | None
    den: float | None


class RowsOut(Schema):
    """Rows of the report built at ``built_at``; ``next`` is the next page's ``after``."""

    built_at: datetime
    total: int
    items: list[RowOut]
    next: int | None


class SaidOut(Schema):
    """A verdict under one order. ``verdict`` is null exactly where ``status`` is not SUCCEEDED."""

    order: list[str]
    repeat: int
    status: str
    cause: str
    verdict: str | None


class LabelOut(Schema):
    """A person's label; ``serving`` is 0 for the first time that they were given the item."""

    person: str
    label: str | float | dict[str, float]
    serving: int
    shown_order: list[str]
    weight: float
    sealed: bool


class ItemOut(Schema):
    """
    An item with all that judges and people said of it, as it was stored with the report.

    ``num`` and ``den`` are what it adds to the figure, null where the figure is no rate.
    ``decided`` is the lead's decision. People of a queue stand under their pseudonyms.
    """

    condition: str
    item_id: str
    question_id: str
    stratum: str
    gold: str
    decided: str
    judgments: list[SaidOut]
    labels: list[LabelOut]
    num: float | None
    den: float | None


class ItemsOut(Schema):
    """Items of the report built at ``built_at``; ``next`` is the next page's ``after``."""

    built_at: datetime
    total: int
    items: list[ItemOut]
    next: int | None


class StageOut(Schema):
    """What the ended runs say about the rest of an experiment."""

    runs_done: int
    runs: int
    projected_microusd: int
    truncated_share: float | None
    invalid_share: float | None
    contrasts: list[dict[str, Any]]
