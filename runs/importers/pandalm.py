"""
PandaLM (Wang et al. 2024): pairs of answers with three people's labels and two judges' verdicts.

``testset-v1.json`` holds pairs and people; ``JUDGE-testset-v1.json`` a judge's verdicts by
``idx``. The candidates were shown in the order of the file, once. Gold is the people's majority.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath

from runs.engine.hashing import digest
from runs.importers.beside import Files, speaking_of
from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import (
    TIE,
    CandidateRecord,
    ItemRecord,
    JudgeRecord,
    JudgmentRecord,
    LabelRecord,
)
from runs.importers.rows import json_rows
from runs.importers.sources import Source

RESPONSES = ("response1", "response2")
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
_TEST_SET = "testset-v1.json"
_JUDGES = f"*-{_TEST_SET}"
_PEOPLE = (TIE, *RESPONSES)  # 0, 1, 2.
_VERDICTS = {"0": TIE, "tie": TIE, "1": RESPONSES[0], "2": RESPONSES[1]}


def read_pandalm(files: Files, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    """
    Yield the verdicts of a judge's file, or of all judges beside the named test set.

    What is neither 1, 2 nor a tie ("garbage") is INVALID and kept in the metadata.
    """
    items = _items(files, log)
    if log.total:
        return
    if files.main is not None and not _holds_people(files.main):
        with speaking_of(log, files.main):
            yield from _verdicts(files.main, items, log)
        return
    judges = files.find(_JUDGES)
    if not judges:
        log.add(0, "file", f"there is no judge's file {_JUDGES} beside; people's labels are labels")
    for path in judges:
        with files.open(path) as source, speaking_of(log, source):
            yield from _verdicts(source, items, log)


def read_pandalm_labels(files: Files, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the labels of the three people, pairwise, in the file's order."""
    with files.opened(log, _TEST_SET) as sources:
        for source in sources:
            with speaking_of(log, source):
                for row in json_rows(source, log):
                    fields = Fields(row.data, row.line, log)
                    item_id, votes = _item_id(fields), _votes(fields)
                    if fields.clean:
                        for annotator, vote in zip(ANNOTATORS, votes, strict=True):
                            yield row.line, _label(item_id, annotator, vote)


def _label(item_id: str, annotator: str, vote: str) -> LabelRecord:
    return LabelRecord(item_id, annotator, "pairwise", vote, shown_order=RESPONSES)


def _holds_people(source: Source) -> bool:
    return f'"{ANNOTATORS[0]}"'.encode() in source.head()


def _items(files: Files, log: FaultLog) -> dict[str, ItemRecord]:
    items: dict[str, ItemRecord] = {}
    if files.main is not None and _holds_people(files.main):
        _read_items(files.main, log, items)
    else:
        for path in files.find(_TEST_SET):
            with files.open(path) as source, speaking_of(log, source):
                _read_items(source, log, items)
    if not items and not log.total:
        log.add(0, "file", f"there is no {_TEST_SET} beside, which holds the pairs")
    return items


def _read_items(source: Source, log: FaultLog, items: dict[str, ItemRecord]) -> None:
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        item = _pair(fields)
        if item.item_id in items:
            fields.fault("idx", f"{shown(fields.get('idx'))} stands twice")
        items[item.item_id] = item


def _item_id(fields: Fields) -> str:
    fields.require("idx")
    return f"pandalm-{fields.whole('idx') or 0:04d}"


def _pair(fields: Fields) -> ItemRecord:
    item_id, votes = _item_id(fields), _votes(fields)
    models = fields.text("cmp_key").split("_")
    if fields.clean and len(models) != 2:
        fields.fault("cmp_key", "must name two models with one underscore between them")
        models = ["", ""]
    asked = [part for key in ("instruction", "input") if (part := fields.optional_text(key))]
    return ItemRecord(
        item_id=item_id,
        # One instruction is compared for several pairs of models: it is the cluster.
        question_id=f"pandalm-q-{digest(asked)[:12]}",
        question="\n\n".join(asked) or item_id,
        candidates=tuple(
            CandidateRecord(name, _response(fields, name), model)
            for name, model in zip(RESPONSES, models, strict=False)
        ),
        gold=_majority(votes),
        metadata={"motivation_app": fields.optional_text("motivation_app")},
    )


def _response(fields: Fields, name: str) -> str:
    fields.require(name)
    if isinstance(fields.get(name), bool):  # Answers of one word became booleans upstream.
        return str(fields.get(name)).lower()
    return fields.optional_text(name) or ""


def _votes(fields: Fields) -> list[str]:
    votes = []
    for name in ANNOTATORS:
        fields.require(name)
        vote = fields.whole(name) or 0
        if vote > 2:
            fields.fault(name, f"must be 0 (tie), 1 or 2, not {vote}")
        votes.append(_PEOPLE[min(vote, 2)])
    return votes


def _majority(votes: list[str]) -> str | None:
    ((winner, count),) = Counter(votes).most_common(1)
    return winner if 2 * count > len(votes) else None


def _verdicts(
    source: Source, items: dict[str, ItemRecord], log: FaultLog
) -> Iterator[tuple[int, JudgmentRecord]]:
    judge = JudgeRecord(PurePath(source.name).name.removesuffix(f"-{_TEST_SET}"))
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        record = _verdict(fields, items, judge)
        if record is not None and fields.clean:
            yield row.line, record


def _verdict(
    fields: Fields, items: dict[str, ItemRecord], judge: JudgeRecord
) -> JudgmentRecord | None:
    item = items.get(_item_id(fields))
    prefix = next((key[: -len("_result")] for key in fields.data if key.endswith("_result")), None)
    if prefix is None:
        fields.fault("row", "has no key that ends in _result")
        return None
    if item is None:
        fields.fault("idx", f"{shown(fields.get('idx'))} is no pair of the test set")
        return None
    said = fields.get(f"{prefix}_result")
    verdict = _VERDICTS.get(str(said).lower())
    return JudgmentRecord(
        item=item,
        judge=judge,
        order=RESPONSES,
        repeat=0,
        verdict=verdict,
        status="INVALID" if verdict is None else "SUCCEEDED",
        rationale=fields.optional_text(f"{prefix}_reason"),
        metadata={"said": said, **fields.metadata()} if verdict is None else fields.metadata(),
    )
