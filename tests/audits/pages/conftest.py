"""Fixtures of report pages: an experiment that ran, and a worker that builds when told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from audits import services
from debateweb.models import Role, Workspace
from runs.models import Experiment
from tests.audits.reports.experiments import THREE_ARMS, Deaf, executed, made, questions_file
from tests.debateweb.people import member, signed_in


class Bell:
    """Stands for the queue: notes what was rung for."""

    def __init__(self) -> None:
        self.rung: list[int] = []

    def send_task(self, name: str, *, args: list[int], **kwargs: Any) -> None:
        assert name == "audits.reports.build" and kwargs["queue"] == "reports"
        self.rung += args

    def build_all(self) -> None:
        """Do what the worker would."""
        while self.rung:
            services.build_stored(self.rung.pop())


@pytest.fixture
def bell(monkeypatch: pytest.MonkeyPatch) -> Bell:
    made_bell = Bell()
    monkeypatch.setattr("audits.services.current_app", made_bell)
    monkeypatch.setattr("runs.dispatch.current_app", Deaf())
    return made_bell


@pytest.fixture
def ran(tmp_path: Path, bell: Bell) -> Experiment:
    """Return an experiment of three arms that ran on eight questions."""
    source = questions_file(tmp_path, 8)
    text = THREE_ARMS.replace("NAME", "sums").replace("QUESTIONS", source.name)
    return executed(made(text, tmp_path))


@pytest.fixture
def home(ran: Experiment) -> Workspace:
    return ran.workspace


@pytest.fixture
def reader(home: Workspace) -> Client:
    return signed_in(member(home, Role.READER))


Asked = Callable[[], None]


@pytest.fixture
def built(ran: Experiment, bell: Bell, django_capture_on_commit_callbacks: Any) -> Experiment:
    """Return the experiment after its report was asked for and built."""
    with django_capture_on_commit_callbacks(execute=True):
        services.ask_for_report(workspace=ran.workspace, name=ran.name, actor=None)
    bell.build_all()
    return ran
