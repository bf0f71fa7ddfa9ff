"""Every table of audits is held by triggers, or is named here with the reason (S37)."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.models import Model

from audits.queue_models import Annotator, Queue, QueueStatus, Slot
from tests.audits.queues.making import annotators, answers, claimed, queue_of

#: What is being typed is no record: the label is.
FREE = {"audits_labeldraft"}


@pytest.mark.django_db
def test_every_table_refuses_changes_or_is_guarded() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, t.tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid"
            " WHERE NOT t.tgisinternal AND c.relname LIKE 'audits_%%'"
        )
        triggers = set(cursor.fetchall())
    for model in apps.get_app_config("audits").get_models():
        table = model._meta.db_table
        if table in FREE:
            continue
        is_frozen = (table, f"{table}_frozen") in triggers
        is_guarded = {(table, f"{table}_guarded"), (table, f"{table}_kept")} <= triggers
        assert is_frozen or is_guarded, table


@pytest.mark.django_db
def test_progress_moves_and_nothing_else_does() -> None:
    queue = queue_of(answers(2))
    (person,) = annotators(queue, 1)
    slot = claimed(person).slot
    Annotator.objects.filter(pk=person.pk).update(capacity=3)
    Annotator.objects.filter(pk=person.pk).update(user=None, name="severed")
    Queue.objects.filter(pk=queue.pk).update(status=QueueStatus.CLOSED)
    refused: list[tuple[type[Model], int, dict[str, Any]]] = [
        (Annotator, person.pk, {"user": 1}),
        (Annotator, person.pk, {"pseudonym": "x"}),
        (Queue, queue.pk, {"status": QueueStatus.OPEN}),
        (Queue, queue.pk, {"design": {}}),
        (Slot, slot.pk, {"fence": 0}),
        (Slot, slot.pk, {"ordinal": 9}),
    ]
    for model, pk, change in refused:
        with pytest.raises(DatabaseError, match=r"refused|frozen"), transaction.atomic():
            model._default_manager.filter(pk=pk).update(**change)
