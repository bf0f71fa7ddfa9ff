"""
Readers by format, and the one way to use them: all or nothing.

Duplicate ids are faults. Judgments and labels have readers of their own (``judged_registry``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from runs.importers import debate_logs, debates, llmbar, nyu, question_sets, questions
from runs.importers.beside import Files
from runs.importers.faults import Fault, FaultLog, ImportFaults, shown
from runs.importers.mapping import FieldMapping
from runs.importers.passes import all_or_nothing
from runs.importers.records import DebateRecord, QuestionRecord, record_hash
from runs.importers.sources import Source, open_source

Record = TypeVar("Record", QuestionRecord, DebateRecord)
Reader = Callable[[Source, FaultLog], Iterator[tuple[int, Record]]]
Target = str | Path | IO[bytes] | IO[str]


def _llmbar_swap(source: Source, log: FaultLog) -> Iterator[tuple[int, DebateRecord]]:
    return llmbar.read_llmbar_swap(Files(source.name, source), log)


QUESTION_READERS: dict[str, Reader[QuestionRecord]] = {
    "jsonl": questions.read_jsonl,
    "csv": questions.read_csv,
    "gsm8k": question_sets.read_gsm8k,
    "truthfulqa": question_sets.read_truthfulqa,
    "truthfulqa_open": question_sets.read_truthfulqa_open,
    "strategyqa": question_sets.read_strategyqa,
}
DEBATE_READERS: dict[str, Reader[DebateRecord]] = {
    "jsonl": debates.read_jsonl,
    "du": debate_logs.read_du,
    "gsm8k_solutions": debate_logs.read_gsm8k_solutions,
    "gsm8k_steps": partial(
        debate_logs.read_gsm8k_solutions, steps={"175b_finetuning": "175b_verification"}
    ),
    "nyu": nyu.read_nyu,
    "llmbar_swap": _llmbar_swap,
}
#: Formats whose columns may have other names, with what reads them by a mapping.
MAPPED_READERS = {"jsonl": questions.read_jsonl, "csv": questions.read_csv}
_RULES = {
    "jsonl": "as_given",
    "nyu": "as_given",
    "llmbar_swap": "as_given",
    "du": debate_logs.DU_RULES,
    "gsm8k_solutions": debate_logs.GSM8K_SOLUTIONS_RULES,
    "gsm8k_steps": debate_logs.GSM8K_SOLUTIONS_RULES,
}


def score_rules(format_name: str) -> str:
    """
    Return the name of the rules by which replies of a debate format are read.

    ``as_given``: the log's own answers. ``du_replay``: the extraction of the preset of that
    name, each round's reply as it stands, unscorable counting as wrong. ``gsm8k_solutions``:
    what follows the last ``A:``, which the reader has already put in ``answer``.
    Raises KeyError for a format without a reader.
    """
    return _RULES[format_name]


def read_questions(
    target: Target,
    format_name: str | None = None,
    *,
    name: str | None = None,
    mapping: FieldMapping | None = None,
) -> Iterator[QuestionRecord]:
    """
    Yield the questions of a path, ``-`` or stream; the format is guessed where None.

    ``mapping`` says which columns hold what; formats with fixed names do without it.
    Raises ImportFaults, at the first ``next``, where anything in the file is wrong.
    """
    with open_source(target, name) as source:
        chosen = format_name or guess_format(source.name, source.head())
        reader = _reader(QUESTION_READERS, chosen, source, "questions")
        if mapping is not None and chosen in MAPPED_READERS:
            reader = partial(MAPPED_READERS[chosen], mapping=mapping)
        yield from _twice(reader, source, lambda record: record.id, "id")


def read_debates(
    target: Target, format_name: str | None = None, *, name: str | None = None
) -> Iterator[DebateRecord]:
    """Yield the debates of a path, ``-`` or stream; as ``read_questions``."""
    with open_source(target, name) as source:
        chosen = format_name or guess_format(source.name, source.head())
        reader = _reader(DEBATE_READERS, chosen, source, "debates")
        yield from _twice(reader, source, lambda record: record.debate_id, "debate_id")


def _reader(
    readers: dict[str, Reader[Record]], chosen: str, source: Source, kind: str
) -> Reader[Record]:
    if chosen not in readers:
        known = ", ".join(readers)
        message = f"there is no reader {shown(chosen)} for {kind}; there are {known}"
        raise ImportFaults((Fault(source.name, 0, "format", message),))
    return readers[chosen]


def _twice(
    reader: Reader[Record], source: Source, key: Callable[[Record], str], key_name: str
) -> Iterator[Record]:
    return all_or_nothing(partial(reader, source), source.name, _Once(key, key_name))


class _Once:
    """Whether every id stands once, and one question id for one question."""

    def __init__(self, key: Callable[[Any], str], key_name: str) -> None:
        self._key = key
        self._key_name = key_name
        self._lines: dict[str, int] = {}
        self._questions: dict[str, tuple[int, str]] = {}

    def __call__(self, line: int, record: QuestionRecord | DebateRecord, log: FaultLog) -> None:
        own = self._key(record)
        if own in self._lines:
            message = f"{shown(own)} stands on line {self._lines[own]} already"
            log.add(line, self._key_name, message)
        self._lines.setdefault(own, line)
        if isinstance(record, DebateRecord):
            _check_same_question(record.question, line, log, self._questions)


def _check_same_question(
    question: QuestionRecord, line: int, log: FaultLog, seen: dict[str, tuple[int, str]]
) -> None:
    """One question_id is one question: otherwise clusters and pairs would be wrong."""
    own_hash = record_hash(question)
    first_line, first_hash = seen.setdefault(question.id, (line, own_hash))
    if first_hash != own_hash:
        message = f"{shown(question.id)} is another question than on line {first_line}"
        log.add(line, "question_id", message)


def guess_format(path: str, head: bytes) -> str:
    """
    Return the likeliest format of a file from its name and its first bytes.

    Only names of formats are looked for, nothing is parsed: a wrong guess shows as faults.
    """
    text = head.decode("utf-8", "replace").lstrip()
    first_line = text.split("\n", 1)[0]
    if text.startswith("["):
        return "strategyqa" if '"qid"' in text and '"facts"' in text else "jsonl"
    if text.startswith("{"):
        return _guess_json(first_line)
    if first_line.startswith("subset,evaluator,item,"):
        return "llmbar_swap"
    if "Best Answer" in first_line and "Incorrect Answers" in first_line:
        return "truthfulqa"
    if Path(path).suffix.lower() in (".jsonl", ".json", ".ndjson"):
        return "jsonl"
    return "csv"


def _guess_json(line: str) -> str:
    if '"ground_truth"' in line and '"solution"' in line:
        return "gsm8k_solutions"
    if '[[[{"role"' in line.replace(" ", ""):
        return "du"
    if '"final_belief"' in line and '"correct_index"' in line:
        return "nyu"
    if line.startswith('{"question"') and '"answer"' in line and "####" in line:
        return "gsm8k"
    return "jsonl"
