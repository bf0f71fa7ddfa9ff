"""
Argilla: records with responses in the JSON form of ``Dataset.records.to_json``, in and out.

A kind of label is a question, a person's answer to it a response. Argilla knows people by UUID:
ours are made from their names, which stand with the whole labels in the record's metadata. One
person answers a question once there, so that a second serving goes along in the metadata only.

Of records made there, every response is a label, a text question named ``comment`` the comment.
Drafts and discarded responses say nothing and are left out; suggestions are no people's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from runs.importers import json_text
from runs.importers.faults import FaultLog
from runs.importers.fields import Fields
from runs.importers.judged_records import ItemRecord, LabelRecord, label_json
from runs.importers.rows import json_rows
from runs.importers.sources import Source
from runs.importers.tool_labels import (
    KEY,
    blind_item,
    candidates_of,
    foreign,
    heard,
    item_of,
    kind_of,
    restored,
    shown_item,
    spoken,
    with_labels,
    write_array,
)

TOOL = "argilla"
_COMMENT = "comment"
_SUBMITTED = (None, "submitted")
_PEOPLE = uuid.UUID("7f8c4a56-0f0b-5d0e-9d55-2f1f5f0a3c11")  # Namespace of our people's names.

Responses = list[tuple[str, str, dict[str, Any]]]  # Question, user and response.


def read_labels(source: Source, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the labels of an export with the lines on which their records begin."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        found = list(_record_labels(fields))
        if fields.clean:
            yield from ((row.line, record) for record in found)


def read_tasks(source: Source, log: FaultLog) -> Iterator[tuple[int, ItemRecord]]:
    """Yield the records of an export as items, labelled or not."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        shown = fields.object("fields")
        if shown is None:
            fields.fault("fields", "is missing")
            continue
        named = _ours(fields).get("item")
        item = item_of(shown, _item_id(fields), shown.data, named)
        if fields.clean:
            yield row.line, item


def user_id(annotator: str) -> str:
    """Return the UUID under which a person of ours is known in Argilla."""
    return str(uuid.uuid5(_PEOPLE, annotator))


def _item_id(fields: Fields) -> str:
    if fields.data.get("id") is not None:
        return fields.identifier("id")
    return fields.identifier("_server_id")


def _ours(fields: Fields) -> dict[str, Any]:
    """Return what we put into the metadata; Argilla holds it as text."""
    metadata = fields.data.get("metadata")
    kept = metadata.get(KEY) if isinstance(metadata, dict) else None
    if not isinstance(kept, str):
        return {}
    try:
        whole = json_text.parse(kept)
    except json_text.JsonFault as exc:
        fields.fault(f"metadata.{KEY}", str(exc))
        return {}
    return whole if isinstance(whole, dict) else {}


def _record_labels(fields: Fields) -> Iterator[LabelRecord]:
    item_id, own = _item_id(fields), _ours(fields)
    responses = list(_responses(fields))
    given = {(question, user) for question, user, _ in responses}
    wholes = own.get("labels")
    known: set[tuple[str, str]] = set()
    last: dict[tuple[str, str], int] = {}
    ours = [one for one in (wholes if isinstance(wholes, list) else []) if isinstance(one, dict)]
    for place, whole in enumerate(ours):
        last[_asked(whole)] = place
    for place, whole in enumerate(ours):
        asked = _asked(whole)
        if asked not in given:
            continue  # The response was deleted there.
        known.add(asked)
        said = _said(responses, asked) if last[asked] == place else None
        record = restored(
            {"item_id": item_id, **whole}, heard(str(whole.get("kind")), said), fields
        )
        if record is not None:
            yield record
    yield from _foreign_labels(fields, item_id, responses, known)


def _asked(whole: dict[str, Any]) -> tuple[str, str]:
    return str(whole.get("kind")), user_id(str(whole.get("annotator")))


def _said(responses: Responses, asked: tuple[str, str]) -> Any:
    return next(one.get("value") for question, user, one in responses if (question, user) == asked)


def _responses(fields: Fields) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (question, user, response) of every response that was submitted."""
    questions = fields.object("responses")
    if questions is None:
        return
    for question in questions.data:
        for response in questions.objects(question):
            if response.data.get("status") in _SUBMITTED:
                response.require("value")
                yield question, response.identifier("user_id"), response.data


def _foreign_labels(
    fields: Fields, item_id: str, responses: Responses, known: set[tuple[str, str]]
) -> Iterator[LabelRecord]:
    shown = fields.object("fields")
    order = [one.candidate_id for one in candidates_of(shown.data if shown else {}, None)]
    comments = {user: one.get("value") for question, user, one in responses if question == _COMMENT}
    kept = {name: value for name, value in fields.data.items() if name != "responses"}
    for question, user, response in responses:
        if question == _COMMENT or (question, user) in known:
            continue
        value = response.get("value")
        kind = kind_of(question, value, order)
        record = foreign(
            fields,
            f"responses.{question}",
            item_id=item_id,
            annotator=user,
            kind=kind,
            label=heard(kind, value),
            comment=comments.get(user),
            metadata={TOOL: {"question": question, "response": response, "record": kept}},
        )
        if record is not None:
            yield record


def write_records(
    records: Iterable[LabelRecord], items: Iterable[ItemRecord], stream: IO[str]
) -> int:
    """Write a JSON array of records that Argilla's ``from_json`` reads; return how many labels."""
    count = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal count
        for item, labels in with_labels(records, items):
            count += len(labels)
            yield _record(item, labels)

    write_array(rows(), stream)
    return count


def _record(item: ItemRecord, labels: Sequence[LabelRecord]) -> dict[str, Any]:
    made_there = [record for record in labels if TOOL in record.metadata]
    ours = [record for record in labels if TOOL not in record.metadata]
    kept = made_there[0].metadata[TOOL]["record"] if made_there else {}
    metadata = dict(kept.get("metadata") or {})
    if ours or not made_there:
        whole = {"item": blind_item(item), "labels": [label_json(record) for record in ours]}
        metadata[KEY] = json.dumps(whole, ensure_ascii=False)
    return {
        "id": item.item_id,
        "fields": shown_item(item),
        "suggestions": {},
        "vectors": {},
        "status": "completed" if labels else "pending",
        "_server_id": None,
        **kept,
        "metadata": metadata,
        "responses": _told(made_there, ours),
    }


def _told(
    made_there: Sequence[LabelRecord], ours: Sequence[LabelRecord]
) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for record in made_there:
        kept = record.metadata[TOOL]
        response = dict(kept["response"])
        if heard(record.kind, response.get("value")) != record.label:
            response["value"] = record.label
        found.setdefault(kept["question"], {})[record.annotator] = response
        if record.comment is not None:
            said = {"value": record.comment, "user_id": record.annotator}
            found.setdefault(_COMMENT, {})[record.annotator] = said
    for record in ours:
        user = user_id(record.annotator)
        # A later serving replaces an earlier one, as one person answers once there.
        found.setdefault(record.kind, {})[user] = {"value": spoken(record.label), "user_id": user}
        if record.comment is not None:
            found.setdefault(_COMMENT, {})[user] = {"value": record.comment, "user_id": user}
    return {question: list(by_user.values()) for question, by_user in found.items()}
