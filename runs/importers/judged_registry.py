"""
Readers and writers of judgments and labels by format, and the one way to use them: all or nothing.

As ``registry`` does for questions and debates. A published set of several files may be named by
its folder or by one of its files (``beside``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from runs.importers import (
    argilla,
    chateval,
    judgments,
    label_studio,
    labels,
    langfuse,
    llmbar,
    nyu,
    pandalm,
    vicuna_blog,
)
from runs.importers.beside import Files, open_files
from runs.importers.faults import Fault, FaultLog, ImportFaults, shown
from runs.importers.judged_records import (
    ItemRecord,
    JudgmentRecord,
    LabelRecord,
    fingerprint,
    item_json,
    judgment_json,
)
from runs.importers.passes import all_or_nothing
from runs.importers.sources import Source

Judged = TypeVar("Judged", JudgmentRecord, LabelRecord, ItemRecord)
FileReader = Callable[[Source, FaultLog], Iterator[tuple[int, Judged]]]
SetReader = Callable[[Files, FaultLog], Iterator[tuple[int, Judged]]]
LabelWriter = Callable[[Iterable[LabelRecord], Iterable[ItemRecord], IO[str]], int]
Target = str | Path | IO[bytes] | IO[str]


def _one_file(reader: FileReader[Judged]) -> SetReader[Judged]:
    """Return a reader for formats that are one file."""

    def read(files: Files, log: FaultLog) -> Iterator[tuple[int, Judged]]:
        if files.main is None:
            log.add(0, "file", "cannot be read: Is a directory")
            return
        yield from reader(files.main, log)

    return read


JUDGMENT_READERS: dict[str, SetReader[JudgmentRecord]] = {
    "jsonl": _one_file(judgments.read_jsonl),
    "llmbar": llmbar.read_llmbar,
    "pandalm": pandalm.read_pandalm,
    "vicuna_blog": vicuna_blog.read_vicuna_blog,
    "chateval": chateval.read_chateval,
    "nyu": _one_file(nyu.read_nyu_judgments),
}
LABEL_READERS: dict[str, SetReader[LabelRecord]] = {
    "jsonl": _one_file(labels.read_jsonl),
    "csv": _one_file(labels.read_csv),
    "label_studio": _one_file(label_studio.read_labels),
    "argilla": _one_file(argilla.read_labels),
    "langfuse": _one_file(langfuse.read_labels),
    "pandalm": pandalm.read_pandalm_labels,
    "chateval": chateval.read_chateval_labels,
    "nyu": _one_file(nyu.read_nyu_labels),
}
#: Annotation tasks: what is to be labelled, out of the same files as the labels.
TASK_READERS: dict[str, SetReader[ItemRecord]] = {
    "label_studio": _one_file(label_studio.read_tasks),
    "argilla": _one_file(argilla.read_tasks),
    "langfuse": _one_file(langfuse.read_tasks),
}
LABEL_WRITERS: dict[str, LabelWriter] = {
    "jsonl": labels.write_jsonl,
    "csv": labels.write_csv,
    "label_studio": label_studio.write_tasks,
    "argilla": argilla.write_records,
    "langfuse": langfuse.write_scores,
}
#: What is to be labelled, without labels, for a tool to import.
TASK_WRITERS: dict[str, Callable[[Iterable[ItemRecord], IO[str]], int]] = {
    "label_studio": partial(label_studio.write_tasks, ()),
    "argilla": partial(argilla.write_records, ()),
    "langfuse": langfuse.write_traces,
}
#: Judgment formats whose files also hold what people said of the same items.
PEOPLE_IN_JUDGMENT_FORMATS = ("pandalm", "chateval", "nyu")


def read_judgments(
    target: Target, format_name: str | None = None, *, name: str | None = None
) -> Iterator[JudgmentRecord]:
    """
    Yield the judgments of a folder, path, ``-`` or stream; the format is guessed where None.

    Raises ImportFaults, at the first ``next``, where anything in the files is wrong.
    """
    with open_files(target, name) as files:
        chosen = format_name or guess_judgments(files)
        reader = _reader(JUDGMENT_READERS, chosen, files, "judgments")
        yield from all_or_nothing(partial(reader, files), files.name, _Judgments())


def read_labels(
    target: Target, format_name: str | None = None, *, name: str | None = None
) -> Iterator[LabelRecord]:
    """Yield the labels of a folder, path, ``-`` or stream; as ``read_judgments``."""
    with open_files(target, name) as files:
        chosen = format_name or guess_labels(files)
        reader = _reader(LABEL_READERS, chosen, files, "labels")
        yield from all_or_nothing(partial(reader, files), files.name, _Labels())


def read_tasks(
    target: Target, format_name: str, *, name: str | None = None
) -> Iterator[ItemRecord]:
    """Yield the items of an annotation tool's file, labelled or not; as ``read_judgments``."""
    with open_files(target, name) as files:
        reader = _reader(TASK_READERS, format_name, files, "tasks")
        yield from all_or_nothing(partial(reader, files), files.name, _Tasks())


def write_labels(
    records: Iterable[LabelRecord],
    stream: IO[str],
    format_name: str = "jsonl",
    *,
    items: Iterable[ItemRecord] = (),
) -> int:
    """
    Write labels, and the items that they are of where the format holds items too.

    Returns how many labels were written; raises KeyError for a format without a writer.
    """
    return LABEL_WRITERS[format_name](records, items, stream)


def write_tasks(items: Iterable[ItemRecord], stream: IO[str], format_name: str) -> None:
    """Write what is to be labelled, blind; raises KeyError for a format without a writer."""
    TASK_WRITERS[format_name](items, stream)


def write_judgments(records: Iterable[JudgmentRecord], stream: IO[str]) -> int:
    """Write one judgment a line; return how many."""
    count = 0
    for record in records:
        stream.write(json.dumps(judgment_json(record), ensure_ascii=False) + "\n")
        count += 1
    return count


def _reader(
    readers: Mapping[str, SetReader[Judged]], chosen: str, files: Files, kind: str
) -> SetReader[Judged]:
    if chosen not in readers:
        known = ", ".join(readers)
        message = f"there is no reader {shown(chosen)} for {kind}; there are {known}"
        raise ImportFaults((Fault(files.name, 0, "format", message),))
    return readers[chosen]


class _Judgments:
    """Whether every judgment stands once and every item is the same wherever it stands."""

    def __init__(self) -> None:
        self._lines: dict[bytes, int] = {}
        self._items: dict[str, tuple[int, bytes]] = {}

    def __call__(self, line: int, record: JudgmentRecord, log: FaultLog) -> None:
        key = record.key
        if key in self._lines:
            what = f"{shown(record.item.item_id)} by {shown(record.judge.name)}"
            place = f"in this order with repeat {record.repeat}"
            message = f"{what} {place} stands on line {self._lines[key]} already"
            log.add(line, "item_id", message)
        self._lines.setdefault(key, line)
        own = fingerprint(item_json(record.item))
        item_line, item_own = self._items.setdefault(record.item.item_id, (line, own))
        if own != item_own:
            message = f"{shown(record.item.item_id)} is another item than on line {item_line}"
            log.add(line, "item_id", message)


class _Labels:
    """Whether nobody says two things of one item as if at one time."""

    def __init__(self) -> None:
        self._lines: dict[bytes, int] = {}

    def __call__(self, line: int, record: LabelRecord, log: FaultLog) -> None:
        key = record.key
        if key in self._lines:
            what = f"{record.kind} of {shown(record.item_id)} by {shown(record.annotator)}"
            message = f"{what} stands on line {self._lines[key]} already"
            log.add(line, "item_id", message)
        self._lines.setdefault(key, line)


class _Tasks:
    """Whether every item stands once."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def __call__(self, line: int, record: ItemRecord, log: FaultLog) -> None:
        if record.item_id in self._lines:
            first = self._lines[record.item_id]
            log.add(line, "item_id", f"{shown(record.item_id)} stands on line {first} already")
        self._lines.setdefault(record.item_id, line)


_JUDGMENT_MARKS = (
    ("llmbar", ('"swap = False"',)),
    ("pandalm", ('"annotator1"',)),
    ("pandalm", ('"idx"', '_result"')),
    ("vicuna_blog", ('"answer1_id"', '"score"')),
    ("chateval", ('"evaluation"', '"response"')),
    ("nyu", ('"final_belief"', '"correct_index"')),
)


def guess_judgments(files: Files) -> str:
    """Return the likeliest format of judgments; a wrong guess shows as faults."""
    if files.main is None:
        return _guess_folder(files)
    head = files.main.head().decode("utf-8", "replace").lstrip()
    if head.startswith("subset,evaluator,item,"):
        return "llmbar"
    found = (name for name, keys in _JUDGMENT_MARKS if all(key in head for key in keys))
    return next(found, "jsonl")


def _guess_folder(files: Files) -> str:
    marks = {
        "llmbar": "verdicts.csv",
        "pandalm": "testset-v1.json",
        "vicuna_blog": "review/*.jsonl",
        "chateval": "*comparison.json",
    }
    return next((name for name, pattern in marks.items() if files.find(pattern)), "jsonl")


def guess_labels(files: Files) -> str:
    """Return the likeliest format of labels; a wrong guess shows as faults."""
    if files.main is None:
        return _guess_folder(files)
    head = files.main.head().decode("utf-8", "replace").lstrip()
    if not head.startswith(("[", "{")):
        return "csv"
    marks = {
        "pandalm": ('"annotator1"',),
        "chateval": ('"evaluation"', '"response"'),
        "nyu": ('"final_belief"', '"correct_index"'),
        "argilla": ('"fields"', '"responses"'),
        "langfuse": ('"dataType"',),
        "label_studio": ('"annotations"', '"data"'),
    }
    if langfuse.PAGE.match(head):
        return "langfuse"
    # A line of ours may hold, in its metadata, what a tool said.
    if head.startswith("{") and all(key in head for key in ('"item_id"', '"annotator"', '"kind"')):
        return "jsonl"
    found = (name for name, keys in marks.items() if all(key in head for key in keys))
    return next(found, "jsonl")
