"""
Label Studio: tasks with annotations in its JSON form, in and out.

Every annotation of ours is one label: its first result says the label in the tool's words
(``pairwise`` where two candidates were shown, ``number`` for numbers, ``choices`` else) and holds
the whole label under ``meta``. Comment and confidence are results of their own.

Of annotations made there, ``choices``, ``rating``, ``number`` and ``pairwise`` are labels, a
``textarea`` is the comment; several controls make several labels. Who did it is
``completed_by`` (its e-mail address, else its id), ``lead_time`` is the active time. Cancelled
and empty annotations say nothing and are left out; predictions are no people's.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any
from xml.sax.saxutils import quoteattr

from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import (
    ABSTAIN,
    TIE,
    ItemRecord,
    LabelRecord,
    LabelValue,
    label_json,
)
from runs.importers.rows import json_rows
from runs.importers.sources import Source
from runs.importers.tool_labels import (
    CHOICE_SUFFIX,
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

TOOL = "label_studio"
_SIDES = ("left", "right")
_NUMBERS = ("rating", "number")
_LABELS = ("choices", "pairwise", *_NUMBERS)


def read_labels(source: Source, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the labels of an export with the lines on which their tasks begin."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        found = list(_task_labels(fields))
        if fields.clean:
            yield from ((row.line, record) for record in found)


def read_tasks(source: Source, log: FaultLog) -> Iterator[tuple[int, ItemRecord]]:
    """Yield the tasks of an export as items, labelled or not."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        data = fields.object("data")
        if data is None:
            fields.fault("data", "is missing")
            continue
        item = item_of(data, _item_id(fields, data), data.data, data.data.get(KEY))
        if fields.clean:
            yield row.line, item


def _item_id(fields: Fields, data: Fields) -> str:
    own = data.data.get(KEY)
    if isinstance(own, dict) and isinstance(own.get("item_id"), str):
        return data.inner(own, KEY).identifier("item_id")
    for given, key in ((data, "item_id"), (data, "id"), (fields, "id")):
        value = given.data.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if isinstance(value, str):
            return given.identifier(key)
    fields.fault("id", "is missing")
    return ""


def _task_labels(fields: Fields) -> Iterator[LabelRecord]:
    data = fields.object("data")
    if data is None:
        fields.fault("data", "is missing")
        return
    item_id, order = _item_id(fields, data), _order(data.data)
    kept: dict[str, Any] = {"data": data.data, "task": _others(fields.data, "data", "annotations")}
    annotations = list(fields.objects("annotations"))
    if silent := [one.data for one in annotations if _says_nothing(one)]:
        kept["silent"] = silent
    for annotation in annotations:
        result = annotation.items("result")
        if _says_nothing(annotation):
            continue
        if not all(isinstance(one, dict) for one in result):
            annotation.fault("result", "must be a list of objects")
        if not result or not isinstance(result[0], dict) or not annotation.clean:
            continue
        whole = _whole(result)
        if whole is None:
            yield from _foreign_labels(annotation, item_id, order, result, kept)
            continue
        said = _said(result[0], whole, order)
        record = restored({"item_id": item_id, **whole}, said, annotation)
        if record is not None:
            yield record


def _says_nothing(annotation: Fields) -> bool:
    return annotation.data.get("was_cancelled") is True or not annotation.data.get("result")


def _order(data: dict[str, Any]) -> list[str]:
    """Return the ids of the candidates as the tool shows them."""
    return [one.candidate_id for one in candidates_of(data, data.get(KEY))]


def _whole(result: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    meta = result[0].get("meta")
    whole = meta.get(KEY) if isinstance(meta, dict) else None
    return whole if isinstance(whole, dict) else None


def _said(one: dict[str, Any], whole: dict[str, Any], order: Sequence[str]) -> Any:
    value = _value(one, order)
    if value is None and one.get("type") == "textarea":
        value = _texts(one)
    return heard(str(whole.get("kind")), value)


def _value(one: dict[str, Any], order: Sequence[str]) -> Any:
    """Return what one result says, None where it is no label or says nothing."""
    kind, value = one.get("type"), one.get("value")
    if kind not in _LABELS or not isinstance(value, dict):
        return None
    said = value.get("selected" if kind == "pairwise" else kind)
    if kind == "pairwise" and said in _SIDES:
        return order[_SIDES.index(said)] if len(order) == len(_SIDES) else said
    if kind == "choices" and isinstance(said, list) and len(said) == 1:
        return said[0]
    return said


def _texts(one: dict[str, Any]) -> str | None:
    value = one.get("value")
    said = value.get("text") if isinstance(value, dict) else None
    lines = said if isinstance(said, list) else [said]
    return "\n".join(line for line in lines if isinstance(line, str)) or None


def _foreign_labels(
    annotation: Fields,
    item_id: str,
    order: Sequence[str],
    result: list[dict[str, Any]],
    kept: dict[str, Any],
) -> Iterator[LabelRecord]:
    controls = [one for one in result if _value(one, order) is not None and not _is_confidence(one)]
    if not controls:
        annotation.fault("result", "holds no choices, rating, number or pairwise comparison")
    comments = [text for one in result if one.get("type") == "textarea" and (text := _texts(one))]
    confidence = next((_value(one, order) for one in result if _is_confidence(one)), None)
    parts = {
        "item_id": item_id,
        "annotator": _annotator(annotation),
        "active_seconds": annotation.data.get("lead_time"),
        "confidence": confidence,
        "comment": "\n".join(comments) or None,
        "at": annotation.data.get("created_at"),
    }
    beside = {"annotation": _others(annotation.data, "result"), "result": result, **kept}
    for place, one in enumerate(controls):
        said, name = _value(one, order), str(one.get("from_name"))
        compared = one.get("type") == "pairwise"
        kind = "pairwise" if compared else kind_of(name, said, order)
        of = {"control": name, "of": annotation.data.get("id")}
        record = foreign(
            annotation,
            f"result[{result.index(one)}]",
            kind=kind,
            label=heard(kind, said),
            shown_order=(list(order) or list(_SIDES)) if compared else None,
            metadata={TOOL: {**of, **(beside if place == 0 else {})}},
            **parts,
        )
        if record is not None:
            yield record


def _is_confidence(one: dict[str, Any]) -> bool:
    return one.get("from_name") == "confidence" and one.get("type") in _NUMBERS


def _others(given: dict[str, Any], *known: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in known}


def _annotator(annotation: Fields) -> Any:
    """Return who did it, for ``foreign`` to judge."""
    who = annotation.data.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if isinstance(who, int) and not isinstance(who, bool):
        return str(who)
    if not isinstance(who, str):
        annotation.fault("completed_by", f"must name a person, not {shown(who)}")
    return who


def write_tasks(
    records: Iterable[LabelRecord], items: Iterable[ItemRecord], stream: IO[str]
) -> int:
    """Write a JSON array of tasks, as Label Studio imports and exports; return how many labels."""
    count = 0

    def tasks() -> Iterator[dict[str, Any]]:
        nonlocal count
        for number, (item, labels) in enumerate(with_labels(records, items), 1):
            count += len(labels)
            yield _task(number, item, labels)

    write_array(tasks(), stream)
    return count


def _task(number: int, item: ItemRecord, labels: Sequence[LabelRecord]) -> dict[str, Any]:
    made_there = [record for record in labels if TOOL in record.metadata]
    ours = [record for record in labels if TOOL not in record.metadata]
    tools = [record.metadata[TOOL] for record in made_there]
    first: dict[str, Any] = next((kept for kept in tools if "data" in kept), {})
    data = first.get("data") or {**shown_item(item), KEY: blind_item(item)}
    return {
        "id": number,
        **first.get("task", {"predictions": []}),
        "data": data,
        "annotations": [
            *_given_back(made_there),
            *first.get("silent", []),
            *(_annotation(record, _order(data)) for record in ours),
        ],
    }


def _given_back(labels: Sequence[LabelRecord]) -> Iterator[dict[str, Any]]:
    """Yield annotations made there as they came, with labels that were changed here."""
    for record in labels:
        kept = record.metadata[TOOL]
        if "annotation" not in kept:
            continue
        result = copy.deepcopy(kept["result"])
        for one in labels:
            if one.metadata[TOOL].get("of") == kept.get("of") and one.annotator == record.annotator:
                _say(result, one)
        yield {**kept["annotation"], "result": result}


def _say(result: list[dict[str, Any]], record: LabelRecord) -> None:
    for one in result:
        if str(one.get("from_name")) != record.metadata[TOOL]["control"]:
            continue
        order = list(record.shown_order)
        if heard(record.kind, _value(one, order)) != record.label:
            one["value"] = _told(record.label, order, one["type"])
        return


def _annotation(record: LabelRecord, order: Sequence[str]) -> dict[str, Any]:
    kind = _type(record, order)
    value = _told(record.label, order, kind)
    suffix = CHOICE_SUFFIX if (record.kind, kind) == ("pairwise", "choices") else ""
    named = _result(record.kind + suffix, kind, value)
    result = [{**named, "meta": {KEY: label_json(record)}}]
    if record.confidence is not None:
        result.append(_result("confidence", "number", {"number": record.confidence}))
    if record.comment is not None:
        result.append(_result("comment", "textarea", {"text": [record.comment]}))
    return {
        "completed_by": {"email": record.annotator},
        "result": result,
        "was_cancelled": False,
        "ground_truth": False,
        **({} if record.at is None else {"created_at": record.at}),
        "lead_time": record.active_seconds,
    }


def _result(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    to_name = "candidate_1,candidate_2" if kind == "pairwise" else "question"
    return {"from_name": name, "to_name": to_name, "type": kind, "value": value}


def _type(record: LabelRecord, order: Sequence[str]) -> str:
    if isinstance(record.label, dict):
        return "textarea"
    if isinstance(record.label, float):
        return "number"
    # The tool's comparison knows two sides only: a tie is a choice.
    compared = record.kind == "pairwise" and len(order) == len(_SIDES)
    return "pairwise" if compared and record.label in order else "choices"


def _told(label: LabelValue, order: Sequence[str], kind: str) -> dict[str, Any]:
    if kind == "pairwise" and label in (*order, *_SIDES):
        side = _SIDES[order.index(label)] if label in order else label
        return {"selected": side}
    if kind in _NUMBERS:
        return {kind: label}
    if kind == "textarea":
        return {"text": [spoken(label)]}
    return {"choices": [label]}


def label_config(kind: str, candidates: int, options: Sequence[str] = ()) -> str:
    """
    Return the labelling interface in which exported labels of one kind open in Label Studio.

    ``options`` are the choices of kinds that have some; a pairwise label offers the sides, and a
    tie or an abstention as a choice beside them.
    """
    names = ["question", *(f"candidate_{n}" for n in range(1, candidates + 1))]
    parts = [f'<Text name="{name}" value="${name}"/>' for name in names]
    chosen = list(options)
    if kind == "pairwise" and candidates == len(_SIDES):
        parts.append('<Pairwise name="pairwise" toName="candidate_1,candidate_2"/>')
        chosen = chosen or [TIE, ABSTAIN]
    if kind == "scale":
        parts.append('<Number name="scale" toName="question"/>')
    elif kind == "belief":
        parts.append('<TextArea name="belief" toName="question"/>')
    else:
        name = kind + CHOICE_SUFFIX if kind == "pairwise" else kind
        choices = "".join(f"<Choice value={quoteattr(option)}/>" for option in chosen)
        parts.append(f'<Choices name="{name}" toName="question">{choices}</Choices>')
    parts.append('<Number name="confidence" toName="question" min="0" max="1"/>')
    parts.append('<TextArea name="comment" toName="question"/>')
    return "<View>\n" + "\n".join(f"  {part}" for part in parts) + "\n</View>\n"
