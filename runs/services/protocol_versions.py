"""Versions of a workspace's own protocols: appended where the content is new, never changed."""

from __future__ import annotations

from django.db import transaction

from debateweb.audit import record
from debateweb.errors import InputError
from debateweb.models import User, Workspace
from runs.models import Kind, Name, ProtocolVersion
from runs.protocols.digest import canonical_text, protocol_hash
from runs.protocols.presets import preset_names
from runs.protocols.spec import Protocol
from runs.services.naming import NameTakenError, kind_of, take_name


@transaction.atomic
def save_version(
    *, workspace: Workspace, protocol: Protocol, actor: User | None
) -> tuple[ProtocolVersion, bool]:
    """
    Return the stored version of a protocol and whether it is new (S1).

    Raises InputError for a shipped protocol's name, which would hide the stored one, and
    NameTakenError where the name stands for something else.
    """
    if protocol.name in preset_names():
        raise InputError(f"name: {protocol.name!r} is a shipped protocol; choose another name")
    _take(workspace, protocol.name)
    # Two who save at once wait for each other here: versions are numbered without gaps.
    Name.objects.select_for_update().get(workspace=workspace, name=protocol.name)
    versions = ProtocolVersion.objects.filter(workspace=workspace, name=protocol.name)
    same = versions.filter(canonical=canonical_text(protocol)).first()
    if same is not None:
        return same, False
    last = versions.order_by("-version").values_list("version", flat=True).first()
    made = ProtocolVersion.objects.create(
        workspace=workspace,
        name=protocol.name,
        version=(last or 0) + 1,
        protocol_hash=protocol_hash(protocol),
        canonical=canonical_text(protocol),
        created_by=actor,
    )
    detail = {"version": made.version, "protocol_hash": made.protocol_hash}
    record(act="protocol.save", workspace=workspace, obj=made, actor=actor, detail=detail)
    return made, True


def _take(workspace: Workspace, name: str) -> None:
    if kind_of(workspace=workspace, name=name) == Kind.PROTOCOL:
        return
    try:
        take_name(workspace=workspace, name=name, kind=Kind.PROTOCOL)
    except NameTakenError:
        if kind_of(workspace=workspace, name=name) != Kind.PROTOCOL:
            raise
