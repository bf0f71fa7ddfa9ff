"""The workspace's model table: addresses, prices and limits, in versions. Never a key."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from debateweb.audit import record
from debateweb.models import User, Workspace
from runs import bindings
from runs.models import ModelEntry
from runs.providers.catalog import ModelConfig


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


def _newest_last(workspace: Workspace) -> list[ModelEntry]:
    return list(ModelEntry.objects.filter(workspace=workspace).order_by("version"))
