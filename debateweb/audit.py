"""The trail: every act is one appended row, in the transaction of the act itself."""

from __future__ import annotations

from typing import Any

from django.db.models import Model

from debateweb.models import AuditEvent, User, Workspace

MACHINE = "machine"


def record(
    *,
    act: str,
    workspace: Workspace | None,
    obj: Model,
    actor: User | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Append one act. ``act`` is ``kind.verb``; ``actor`` None is a command or the machine."""
    AuditEvent.objects.create(
        act=act,
        workspace=workspace,
        actor=actor,
        actor_name=actor.get_username() if actor is not None else MACHINE,
        object_kind=obj._meta.model_name or "",
        object_id=obj.pk,
        object_name=str(obj)[:200],
        detail=detail or {},
    )
