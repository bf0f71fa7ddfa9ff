"""Fixtures of reports: experiments that ran here, and nobody to hear the doorbell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runs.models import Experiment
from tests.audits.reports.experiments import THREE_ARMS, Deaf, executed, made, questions_file

Ran = Callable[..., Experiment]


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the broker out of the test: it executes what is due itself."""
    monkeypatch.setattr("runs.dispatch.current_app", Deaf())


@pytest.fixture
def ran(tmp_path: Path, deaf: None) -> Ran:
    """Return a function that makes an experiment of three arms and executes it."""

    def run(name: str, *, questions: int = 8, most_rounds: int | None = None) -> Experiment:
        source = questions_file(tmp_path, questions)
        text = THREE_ARMS.replace("NAME", name).replace("QUESTIONS", source.name)
        return executed(made(text, tmp_path), most_rounds=most_rounds)

    return run
