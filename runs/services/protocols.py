"""Protocols by name: stored versions, presets, files."""

from __future__ import annotations

from pathlib import Path

from debateweb.errors import InputError
from debateweb.models import Workspace
from runs.models import ProtocolVersion
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import Protocol
from runs.protocols.yaml_io import load_protocol


def find_protocol(*, workspace: Workspace, name: str, folder: Path) -> Protocol:
    """
    Return a protocol: a file beside the experiment, a preset, or the newest stored version.

    Raises InputError where there is none; ProtocolError for a file with faults.
    """
    path = folder / name
    if path.suffix in {".yaml", ".yml", ".json"}:
        if not path.is_file():
            raise InputError(f"there is no file {name!r}")
        return load_protocol(path.read_text(encoding="utf-8"), name)
    if name in preset_names():
        return load_preset(name)
    stored = (
        ProtocolVersion.objects.filter(workspace=workspace, name=name).order_by("-version").first()
    )
    if stored is None:
        raise InputError(f"there is no preset, stored protocol or file {name!r}")
    return Protocol.model_validate_json(stored.canonical)
