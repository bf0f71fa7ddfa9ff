"""
Versions of a workspace's protocols: appended where the content is new, never changed.

A name is the workspace's, taken across kinds, or a shipped protocol's, which nobody takes: under
it stand the shipped protocols that arms ran (docs/decisions/0024).
"""

from __future__ import annotations

from django.db import transaction

from debateweb.audit import record
from debateweb.errors import InputError
from debateweb.models import User, Workspace
from runs.models import Kind, ProtocolVersion
from runs.protocols.digest import canonical_text, protocol_hash
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import Protocol
from runs.services.naming import NameTakenError, kind_of, take_name


def save_version(
    *, workspace: Workspace, protocol: Protocol, actor: User | None
) -> tuple[ProtocolVersion, bool]:
    """
    Return the stored version of a person's protocol and whether it is new (S1).

    Raises InputError for a shipped protocol's name, which would hide the stored one, and
    NameTakenError where the name stands for something else.
    """
    if protocol.name in preset_names():
        raise _shipped(protocol.name)
    return _stored(workspace, protocol, actor)


def version_of_arm(
    *, workspace: Workspace, protocol: Protocol, actor: User | None
) -> ProtocolVersion:
    """
    Return the stored version of what an arm runs, a new one where its content is new (S1).

    Raises as ``refuse_name`` does.
    """
    refuse_name(workspace=workspace, protocol=protocol)
    return _stored(workspace, protocol, actor)[0]


def refuse_name(*, workspace: Workspace, protocol: Protocol) -> None:
    """
    Refuse an arm's protocol whose name stands for something else; nothing is taken yet.

    Raises NameTakenError for the name of another kind of thing, InputError for a shipped
    protocol's name on another protocol: reports would show the one under the name of the other.
    """
    if protocol.name not in preset_names():
        kind = kind_of(workspace=workspace, name=protocol.name)
        if kind not in (None, Kind.PROTOCOL):
            raise _taken(protocol.name, kind)
    elif not _is_shipped(protocol):
        raise _shipped(protocol.name)


def lock_protocols(workspace: Workspace) -> None:
    """
    Let the others of this workspace who store a protocol wait until this transaction ends.

    Taken before any name, so that two who take names in another order cannot wait in a circle.
    """
    # NO KEY: rows that refer to the workspace can be written meanwhile.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace.pk)


@transaction.atomic
def _stored(
    workspace: Workspace, protocol: Protocol, actor: User | None
) -> tuple[ProtocolVersion, bool]:
    lock_protocols(workspace)
    if protocol.name not in preset_names():
        _take(workspace, protocol.name)
    versions = ProtocolVersion.objects.filter(workspace=workspace, name=protocol.name)
    canonical = canonical_text(protocol)
    same = versions.filter(canonical=canonical).first()
    if same is not None:
        return same, False
    last = versions.order_by("-version").values_list("version", flat=True).first()
    made = ProtocolVersion.objects.create(
        workspace=workspace,
        name=protocol.name,
        version=(last or 0) + 1,
        protocol_hash=protocol_hash(protocol),
        canonical=canonical,
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
    except NameTakenError as exc:
        raise _taken(name, kind_of(workspace=workspace, name=name)) from exc


def _is_shipped(protocol: Protocol) -> bool:
    """Whether it is the shipped protocol of its name, with any number of the agents it has."""
    shipped = load_preset(protocol.name)
    kinds = [agent.model_copy(update={"id": ""}) for agent in shipped.agents]
    alike = all(agent.model_copy(update={"id": ""}) in kinds for agent in protocol.agents)
    same_count = protocol.model_copy(update={"agents": shipped.agents})
    return alike and protocol_hash(same_count) == protocol_hash(shipped)


def _shipped(name: str) -> InputError:
    return InputError(f"name: {name!r} is a shipped protocol; choose another name")


def _taken(name: str, kind: Kind | None) -> NameTakenError:
    by = kind.label.lower() if kind else "something else"
    return NameTakenError(f"name: {name!r} is taken by {by}; give the protocol another name")
