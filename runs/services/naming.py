"""Names of a workspace: taken once, across kinds."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from debateweb.errors import InputError, StateError
from debateweb.models import Workspace
from runs.models import Kind, Name

MAX_NAME_CHARS = 100


class NameTakenError(StateError):
    """The name stands for something else in this workspace."""

    code = "name_taken"


def take_name(*, workspace: Workspace, name: str, kind: Kind) -> None:
    """
    Take a name for a new thing. Raises NameTakenError where anything has it, InputError where it
    cannot stand in files, addresses and lines of output.
    """
    _check_writable(name)
    try:
        with transaction.atomic():  # A savepoint: the caller's transaction survives the refusal.
            Name.objects.create(workspace=workspace, name=name, kind=kind)
    except IntegrityError as exc:
        taken = kind_of(workspace=workspace, name=name)
        raise NameTakenError(
            f"the name {name!r} is taken by {taken.label.lower() if taken else 'something'}"
        ) from exc


def kind_of(*, workspace: Workspace, name: str) -> Kind | None:
    """Return what a name stands for, or None."""
    kind = (
        Name.objects.filter(workspace=workspace, name=name).values_list("kind", flat=True).first()
    )
    return Kind(kind) if kind is not None else None


def _check_writable(name: str) -> None:
    if not name or len(name) > MAX_NAME_CHARS:
        raise InputError(f"a name has 1 to {MAX_NAME_CHARS} characters, this one {len(name)}")
    if not name.isprintable() or name != name.strip() or "/" in name:
        raise InputError(
            f"the name {name!r} may hold no slash, no control character and no space at an end"
        )
