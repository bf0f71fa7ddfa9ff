"""Protocols: shipped ones, stored versions, checked texts, and two compared."""

from __future__ import annotations

from typing import Annotated, Any

from django.http import HttpRequest
from ninja import Query, Router, Status

from debateweb.access import AccessError
from debateweb.api_access import (
    REFUSALS,
    In,
    PageKey,
    PageSize,
    body_text,
    page,
    person_of,
    text_body,
    workspace_to_read,
    workspace_to_run,
)
from debateweb.models import Workspace
from runs.engine.errors import UnsupportedProtocolError
from runs.engine.types import Question
from runs.models import ProtocolVersion
from runs.protocols.cost import Sizes, bound
from runs.protocols.diff import as_json, diff
from runs.protocols.digest import protocol_hash
from runs.protocols.presets import load_preset, preset_names, preset_text
from runs.protocols.spec import Protocol
from runs.protocols.support import unsupported
from runs.protocols.yaml_io import dump_protocol, load_protocol
from runs.schemas import (
    CheckedProtocolOut,
    DiffOut,
    PresetsOut,
    ProtocolOut,
    SavedProtocolOut,
    VersionsOut,
)
from runs.services.protocol_versions import save_version

MAX_QUESTION_BYTES = 1_000_000
MAX_VERSION = 2**31 - 1
PROTOCOL_BODY = text_body("schema_version: 1\nname: my-debate\nagents: [{id: a}, {id: b}]\n")
Reference = Annotated[str, Query(description="a shipped or stored protocol: NAME or NAME@VERSION")]

router = Router(tags=["protocols"])


@router.get("/presets", response={200: PresetsOut, **REFUSALS})
def list_presets(request: HttpRequest, workspace: In) -> dict[str, Any]:
    """List the protocols that are shipped."""
    workspace_to_read(request, workspace)
    return {"items": [_preset_json(load_preset(name)) for name in preset_names()]}


@router.get("/presets/{name}", response={200: ProtocolOut, **REFUSALS})
def get_preset(request: HttpRequest, workspace: In, name: str) -> dict[str, Any]:
    """Show a shipped protocol with its YAML and the comments in it."""
    workspace_to_read(request, workspace)
    if name not in preset_names():
        raise AccessError(f"there is no preset {name!r}")
    return _protocol_json(load_preset(name), None, preset_text(name))


@router.get("/protocols", response={200: VersionsOut, **REFUSALS})
def list_versions(
    request: HttpRequest,
    workspace: In,
    name: Annotated[str | None, Query(description="versions of this one alone")] = None,
    before: PageKey = None,
    limit: PageSize = 50,
) -> dict[str, Any]:
    """List stored versions, newest first."""
    rows = ProtocolVersion.objects.filter(workspace=workspace_to_read(request, workspace))
    if name is not None:
        rows = rows.filter(name=name)
    if before is not None:
        rows = rows.filter(pk__lt=before)
    return page(list(rows.order_by("-pk")[: limit + 1]), limit)


@router.post(
    "/protocols",
    response={200: SavedProtocolOut, 201: SavedProtocolOut, **REFUSALS},
    openapi_extra=PROTOCOL_BODY,
)
def save_protocol(request: HttpRequest, workspace: In) -> Status[dict[str, Any]]:
    """Store a protocol, YAML or JSON, under the name that it gives itself, as a new version."""
    place = workspace_to_run(request, workspace)
    protocol = load_protocol(body_text(request), "body")
    row, is_new = save_version(workspace=place, protocol=protocol, actor=person_of(request))
    told = {
        "id": row.pk,
        "name": row.name,
        "version": row.version,
        "protocol_hash": row.protocol_hash,
        "created_at": row.created_at,
        "added": is_new,
    }
    return Status(201 if is_new else 200, told)


@router.get("/protocols/{name}", response={200: ProtocolOut, **REFUSALS})
def get_protocol(
    request: HttpRequest,
    workspace: In,
    name: str,
    version: Annotated[int | None, Query(ge=1, le=MAX_VERSION)] = None,
) -> dict[str, Any]:
    """Show a stored protocol: its newest version, or the one that is asked for."""
    row = _stored(workspace_to_read(request, workspace), name, version)
    protocol = Protocol.model_validate_json(row.canonical)
    return _protocol_json(protocol, row.version, dump_protocol(protocol))


@router.post(
    "/check-protocol",
    response={200: CheckedProtocolOut, **REFUSALS},
    openapi_extra=PROTOCOL_BODY,
)
def check_protocol(
    request: HttpRequest,
    workspace: In,
    question_bytes: Annotated[int, Query(ge=1, le=MAX_QUESTION_BYTES)] = 1000,
) -> dict[str, Any]:
    """Check a protocol, YAML or JSON: its hash, its bound for such a question; faults by line."""
    workspace_to_read(request, workspace)
    protocol = load_protocol(body_text(request), "body")
    return {
        "name": protocol.name,
        "protocol_hash": protocol_hash(protocol),
        "unsupported": unsupported(protocol),
        "bound": _bound_json(protocol, question_bytes),
        "protocol": protocol.model_dump(mode="json"),
    }


@router.get("/compare-protocols", response={200: DiffOut, **REFUSALS})
def compare_protocols(
    request: HttpRequest, workspace: In, a: Reference, b: Reference
) -> dict[str, Any]:
    """Compare two protocols field by field."""
    place = workspace_to_read(request, workspace)
    left, right = _referred(place, a), _referred(place, b)
    hashes = [protocol_hash(left), protocol_hash(right)]
    return {
        "hashes": hashes,
        "same_algorithm": hashes[0] == hashes[1],
        "changes": [as_json(change) for change in diff(left, right)],
    }


def _stored(workspace: Workspace, name: str, version: int | None) -> ProtocolVersion:
    rows = ProtocolVersion.objects.filter(workspace=workspace, name=name)
    if version is not None:
        rows = rows.filter(version=version)
    found = rows.order_by("-version").first()
    if found is None:
        raise AccessError(f"there is no stored protocol {name!r} of that version")
    return found


def _referred(workspace: Workspace, reference: str) -> Protocol:
    name, _, version = reference.partition("@")
    if name in preset_names() and not version:
        return load_preset(name)
    is_number = version.isascii() and version.isdigit() and len(version) < 10
    if version and not is_number:
        raise AccessError(f"{reference!r} names no version")
    row = _stored(workspace, name, int(version) if version else None)
    return Protocol.model_validate_json(row.canonical)


def _preset_json(protocol: Protocol) -> dict[str, Any]:
    return {
        "name": protocol.name,
        "title": protocol.title,
        "agents": len(protocol.agents),
        "revision_rounds": protocol.revision_rounds,
        "protocol_hash": protocol_hash(protocol),
        "unsupported": unsupported(protocol),
    }


def _protocol_json(protocol: Protocol, version: int | None, yaml: str) -> dict[str, Any]:
    return {
        "name": protocol.name,
        "version": version,
        "protocol_hash": protocol_hash(protocol),
        "unsupported": unsupported(protocol),
        "protocol": protocol.model_dump(mode="json"),
        "yaml": yaml,
    }


def _bound_json(protocol: Protocol, question_bytes: int) -> dict[str, int] | None:
    question = Question(id="q", text="x" * question_bytes, answer_type="text")
    try:
        most = bound(protocol, Sizes.of(protocol, question, ()))
    except UnsupportedProtocolError:
        return None
    return {
        "calls": most.calls,
        "input_tokens": most.input_tokens,
        "output_tokens": most.output_tokens,
    }
