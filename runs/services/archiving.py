"""Sets put away: they leave the lists, what was run on them stays, and their names stay taken."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from debateweb.audit import record
from debateweb.models import User, Workspace
from runs.models import DebateSet, QuestionSet


@transaction.atomic
def archive_set(
    *, workspace: Workspace, archived: QuestionSet | DebateSet, actor: User | None
) -> None:
    """Archive a set. Archiving twice is archiving once."""
    manager = type(archived).objects
    changed = manager.filter(pk=archived.pk, archived_at=None).update(archived_at=Now())
    if changed:
        kind = "questions" if isinstance(archived, QuestionSet) else "debates"
        record(act=f"{kind}.archive", workspace=workspace, obj=archived, actor=actor)
