"""`demo`: a small question set, an experiment ready to start and a log to audit, all marked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import runs.demo
from debateweb.access import command_workspace
from debateweb.management.base import Command as DebatewebCommand
from runs.experiment_file import parse
from runs.importers.registry import read_debates, read_questions
from runs.services.experiments import create_experiment
from runs.services.imports import import_debates, import_questions

FOLDER = Path(runs.demo.__file__).parent


class Command(DebatewebCommand):
    help = "Fill in a small example: twenty questions, an experiment, a log. Nothing is called."
    example = "python manage.py demo"

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = command_workspace(self.workspace_name)
        questions = import_questions(
            workspace=workspace,
            name="demo-questions",
            format_name="jsonl",
            records=read_questions(FOLDER / "questions.jsonl", "jsonl"),
        )
        log = import_debates(
            workspace=workspace,
            name="demo-log",
            format_name="jsonl",
            records=read_debates(FOLDER / "log.jsonl", "jsonl"),
        )
        path = FOLDER / "experiment.yaml"
        experiment = create_experiment(
            workspace=workspace,
            spec=parse(path.read_text(encoding="utf-8"), path.name),
            folder=FOLDER,
            environ=os.environ,
        )
        self.emit(
            {
                "questions": {"name": questions.name, "size": questions.size},
                "debates": {"name": log.name, "size": log.size},
                "experiment": {"name": experiment.name, "status": experiment.status},
            },
            f"{questions.name}: {questions.size} questions\n"
            f"{log.name}: {log.size} simulated debates\n"
            f"{experiment.name}: {experiment.status}; its agents are simulated\n"
            f"start it with: python manage.py experiment run {experiment.name} --wait\n"
            f"then read it: python manage.py report {experiment.name} --format json -o -",
        )
