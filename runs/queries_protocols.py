"""What the pages of protocols read: presets, versions, and who ran them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from debateweb.models import Workspace
from runs.models import Arm, ProtocolVersion
from runs.protocols.digest import protocol_hash
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import Protocol

ARMS_NAMED = 50


@dataclass(frozen=True)
class PresetRow:
    """A shipped protocol of the list; ``arms`` counts those of the workspace that run it."""

    name: str
    title: str
    agents: int
    revision_rounds: int
    protocol_hash: str
    arms: int


@dataclass(frozen=True)
class VersionRow:
    """A stored version of the list."""

    row: ProtocolVersion
    title: str
    agents: int
    revision_rounds: int
    arms: int


def versions_in(workspace: Workspace) -> QuerySet[ProtocolVersion]:
    return ProtocolVersion.objects.filter(workspace=workspace)


def presets_in(workspace: Workspace) -> list[PresetRow]:
    """Return the shipped protocols with how many arms of the workspace run each: one query."""
    loaded = [load_preset(name) for name in preset_names()]
    hashes = [protocol_hash(preset) for preset in loaded]
    used = dict(
        Arm.objects.filter(experiment__workspace=workspace, protocol__protocol_hash__in=hashes)
        .values_list("protocol__protocol_hash")
        .annotate(count=Count("pk"))
    )
    return [
        PresetRow(
            preset.name,
            preset.title,
            len(preset.agents),
            preset.revision_rounds,
            hash_,
            used.get(hash_, 0),
        )
        for preset, hash_ in zip(loaded, hashes, strict=True)
    ]


def described_versions(rows: Iterable[ProtocolVersion]) -> list[VersionRow]:
    """Return versions with their sizes and how many arms run each: one query for all."""
    found = list(rows)
    used = dict(
        Arm.objects.filter(protocol__in=found).values_list("protocol").annotate(count=Count("pk"))
    )
    return [_version_row(row, used.get(row.pk, 0)) for row in found]


def _version_row(row: ProtocolVersion, arms: int) -> VersionRow:
    content = json.loads(row.canonical)  # Its own form, checked when it was stored.
    title, rounds = content.get("title", ""), content["revision_rounds"]
    return VersionRow(row, title, len(content["agents"]), rounds, arms)


def protocol_of(version: ProtocolVersion) -> Protocol:
    return Protocol.model_validate_json(version.canonical)


def arms_with(workspace: Workspace, hash_: str) -> QuerySet[Arm]:
    """Return the arms that run this algorithm under whatever name, newest first."""
    arms = Arm.objects.filter(experiment__workspace=workspace, protocol__protocol_hash=hash_)
    named = arms.select_related("experiment", "protocol").annotate(run_count=Count("runs"))
    return named.order_by("-pk")


def other_versions(version: ProtocolVersion) -> QuerySet[ProtocolVersion]:
    return versions_in(version.workspace).filter(name=version.name).order_by("-version")
