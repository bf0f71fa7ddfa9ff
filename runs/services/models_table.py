"""The workspace's model table: addresses, prices and limits, in versions. Never a key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction

from debateweb.audit import record
from debateweb.errors import InputError
from debateweb.models import User, Workspace
from runs import bindings
from runs.models import DebateSet, ModelEntry
from runs.providers.catalog import ModelConfig, resolve
from runs.providers.errors import ModelSpecError, UnknownModelError


@transaction.atomic
def import_models(
    *, workspace: Workspace, models: Mapping[str, ModelConfig], actor: User | None = None
) -> int:
    """
    Add a version for each model whose entry is new or has changed; returns how many.

    Arms that were made before keep the entry that they were made with.
    """
    known = table_of(workspace)
    changed = {name: config for name, config in models.items() if known.get(name) != config}
    versions = {e.name: e.version for e in _newest_last(workspace)}
    ModelEntry.objects.bulk_create(
        ModelEntry(
            workspace=workspace,
            name=name,
            version=versions.get(name, 0) + 1,
            body=bindings.to_json(config),
            created_by=actor,
        )
        for name, config in changed.items()
    )
    if changed:
        record(
            act="models.import",
            workspace=workspace,
            obj=workspace,
            actor=actor,
            detail={"models": sorted(changed)},
        )
    return len(changed)


def table_of(workspace: Workspace) -> dict[str, ModelConfig]:
    """Return the newest entry of every model of the table, by name."""
    newest = {entry.name: entry.body for entry in _newest_last(workspace)}
    return {name: bindings.from_json(newest[name]) for name in sorted(newest)}


def model_named(*, workspace: Workspace, name: str, environ: Mapping[str, str]) -> ModelConfig:
    """Return the model behind a name. Raises InputError where nothing is."""
    try:
        config = resolve(name, table_of(workspace), environ)
    except (UnknownModelError, ModelSpecError) as exc:
        raise InputError(f"model: {exc}") from exc
    logs = DebateSet.objects.filter(workspace=workspace, name=config.upstream_name)
    if config.path == "recorded" and not logs.exists():
        raise InputError(f"model: there is no imported debate set {config.upstream_name[:80]!r}")
    return config


def model_json(config: ModelConfig) -> dict[str, Any]:
    """Return what is told of a model. There is no key in it to tell."""
    price = config.price
    return {
        "name": config.name,
        "path": config.path,
        "base_url": config.base_url,
        "api_key_env": config.api_key_env,
        "input_microusd_per_mtok": price.input_microusd_per_mtok if price else None,
        "output_microusd_per_mtok": price.output_microusd_per_mtok if price else None,
        "max_concurrency": config.max_concurrency,
    }


def _newest_last(workspace: Workspace) -> list[ModelEntry]:
    return list(ModelEntry.objects.filter(workspace=workspace).order_by("version"))
