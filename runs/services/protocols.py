"""Protocols by name: stored versions, presets, files."""

from __future__ import annotations

from pathlib import Path

from debateweb.errors import InputError
from debateweb.models import Workspace
from runs.models import ProtocolVersion
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import Protocol
from runs.protocols.yaml_io import load_protocol
from runs.services.naming import NameTakenError
from runs.services.protocol_versions import refuse_name


def find_protocol(*, workspace: Workspace, name: str, folder: Path) -> Protocol:
    """
    Return a protocol: a file beside the experiment, a preset, or the newest stored version.

    Raises InputError where there is none, and for a file whose protocol is called what something
    else is called; ProtocolError for a file with faults.
    """
    path = folder / name
    if path.suffix in {".yaml", ".yml", ".json"}:
        if not path.is_file():
            raise InputError(f"there is no file {name!r}")
        return _of_file(workspace, path, name)
    if name in preset_names():
        return load_preset(name)
    stored = (
        ProtocolVersion.objects.filter(workspace=workspace, name=name).order_by("-version").first()
    )
    if stored is None:
        raise InputError(f"there is no preset, stored protocol or file {name!r}")
    return Protocol.model_validate_json(stored.canonical)


def _of_file(workspace: Workspace, path: Path, name: str) -> Protocol:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(f"{name}: cannot be read: {exc}") from exc
    protocol = load_protocol(text, name)
    try:
        refuse_name(workspace=workspace, protocol=protocol)
    except (InputError, NameTakenError) as exc:
        raise InputError(f"{name}: {exc}") from exc
    return protocol
