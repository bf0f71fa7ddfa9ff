"""`models`: the workspace's table of models, with addresses, prices and limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from debateweb.access import command_workspace
from debateweb.errors import InputError, NegativeAnswer
from debateweb.management.actions import Actions
from debateweb.management.base import Command as DebatewebCommand
from debateweb.models import Workspace
from runs.protocols.yaml12 import FileFaultError
from runs.providers.catalog import ModelConfig, missing
from runs.providers.models_yaml import load_models_yaml
from runs.services.models_table import import_models, model_json, model_named, table_of


class ModelNotReadyError(NegativeAnswer):
    """No call to the model could start."""

    code = "model_not_ready"


class Command(DebatewebCommand):
    help = "The workspace's models: addresses, prices, limits. Keys stay in the environment."
    example = "python manage.py models check openai/gpt-4.1-mini"

    def add_arguments(self, parser: CommandParser) -> None:
        actions = Actions(parser, "models")
        one = actions.add("import", "take over a models.yaml into the table", "models.yaml")
        one.add_argument("file", metavar="F")
        actions.add("list", "list the table", "")
        check = actions.add(
            "check", "say what a model is and what it lacks; exit 1 if anything", "openai/gpt-4.1"
        )
        check.add_argument("model", metavar="MODEL")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = command_workspace(self.workspace_name)
        if options["action"] == "import":
            self._import(workspace, options["file"])
        elif options["action"] == "list":
            table = table_of(workspace)
            rows = [model_json(config) for config in table.values()]
            self.emit(rows, "\n".join(_line(config) for config in table.values()) or "none yet")
        else:
            self._check(workspace, options["model"])

    def _import(self, workspace: Workspace, path: str) -> None:
        try:
            models = load_models_yaml(Path(path).read_text(encoding="utf-8"), path, os.environ)
        except FileFaultError as exc:
            raise InputError("\n".join(exc.lines)) from exc
        except (OSError, UnicodeDecodeError) as exc:
            raise InputError(f"{path}: cannot be read: {exc}") from exc
        changed = import_models(workspace=workspace, models=models)
        self.emit(
            {"models": sorted(models), "changed": changed},
            f"{len(models)} models, {changed} of them new or changed",
        )

    def _check(self, workspace: Workspace, name: str) -> None:
        config = model_named(workspace=workspace, name=name, environ=os.environ)
        lacks = missing(config, os.environ)
        self.emit({**model_json(config), "lacks": lacks}, _line(config))
        if lacks:
            raise ModelNotReadyError("; ".join(lacks))


def _line(config: ModelConfig) -> str:
    price = "no price"
    if config.price is not None:
        price = (
            f"{config.price.input_microusd_per_mtok:,} in, "
            f"{config.price.output_microusd_per_mtok:,} out (micro-USD a million tokens)"
        )
    where = f" at {config.base_url}" if config.base_url else ""
    return f"{config.name}  {config.path}{where}  {price}"
