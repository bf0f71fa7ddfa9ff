"""
LLMBar (Zeng et al. 2024): verdicts of evaluators on pairs under both orders.

Reads the table ``verdicts.csv`` (one row an item and evaluator) or a result file of upstream
(items with ``results``). Winners are already turned back to the output that won, so that
``order`` says what was shown first. Evaluators of the Swap kind speak twice; the first verdict is
a judge of its own, and ``read_llmbar_swap`` reads both as an answer and its revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from runs.importers.beside import Files, speaking_of
from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import CandidateRecord, ItemRecord, JudgeRecord, JudgmentRecord
from runs.importers.records import AgentRecord, DebateRecord, QuestionRecord, TurnRecord
from runs.importers.rows import csv_rows, json_rows
from runs.importers.sources import Source

OUTPUTS = ("output_1", "output_2")
FIRST_STAGE = "first stage"
_ORDERS = {"ab": OUTPUTS, "ba": OUTPUTS[::-1]}
_SHOWN_SWAPPED = {"swap = False": OUTPUTS, "swap = True": OUTPUTS[::-1]}
_WINNERS = ("1", "2")

Texts = Mapping[str, Any]


def read_llmbar(files: Files, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    """
    Yield the judgments of ``verdicts.csv`` or of upstream's result files.

    Item texts of the table stand in ``items/SUBSET.json`` beside it; where they are missing the
    candidates are empty and the metadata say so.
    """
    with files.opened(log, "verdicts.csv", "*__*__*.json") as sources:
        for source in sources:
            with speaking_of(log, source):
                if source.head().lstrip().startswith(b"["):
                    yield from _results(source, log)
                else:
                    yield from _table(source, log, _Items(files, log))


class _Items:
    """The texts of items by subset, each file read once."""

    def __init__(self, files: Files, log: FaultLog) -> None:
        self._files = files
        self._log = log
        self._known: dict[str, list[Texts]] = {}

    def texts(self, subset: str, number: int) -> Texts | None:
        if subset not in self._known:
            name = subset.replace("/", "__")
            safe = name.replace("_", "").replace("-", "").isalnum()  # No pattern, no path.
            rows = self._files.rows(f"items/{name}.json", self._log) if safe else iter(())
            self._known[subset] = [row.data for row in rows if isinstance(row.data, dict)]
        known = self._known[subset]
        return known[number] if number < len(known) else None


def _item(subset: str, number: int, gold: str | None, texts: Texts | None) -> ItemRecord:
    item_id = f"{subset}/{number}"
    said = texts or {}
    candidates = tuple(CandidateRecord(name, str(said.get(name) or "")) for name in OUTPUTS)
    return ItemRecord(
        item_id=item_id,
        question_id=item_id,
        question=str(said.get("input") or "").strip() or item_id,
        candidates=candidates,
        gold=_output(gold),
        group=subset,
        metadata={} if texts else {"texts": "not in the file"},
    )


def _output(winner: str | None) -> str | None:
    return None if winner is None else f"output_{winner}"


def _judge(evaluator: str, stage: str = "") -> JudgeRecord:
    model, _, prompt = evaluator.partition("/")
    return JudgeRecord(
        name=f"{evaluator} ({stage})" if stage else evaluator,
        model=model,
        rubric_version=prompt or None,
    )


def _table(source: Source, log: FaultLog, items: _Items) -> Iterator[tuple[int, JudgmentRecord]]:
    for row in csv_rows(source, log):
        fields = Fields(row.data, row.line, log)
        found = list(_row_judgments(fields, items))
        if fields.clean:
            yield from ((row.line, record) for record in found)


def _row_judgments(fields: Fields, items: _Items) -> Iterator[JudgmentRecord]:
    subset, evaluator = fields.identifier("subset"), fields.identifier("evaluator")
    number = _place(fields)
    gold = fields.one_of("gold", _WINNERS)
    if not fields.clean:
        return
    item = _item(subset, number, gold, items.texts(subset, number))
    stages = [("winner_order_", _judge(evaluator))]
    if _has_first_stage(fields):
        stages.append(("stage1_", _judge(evaluator, FIRST_STAGE)))
    for prefix, judge in stages:
        for key, order in _ORDERS.items():
            fields.require(prefix + key)
            yield _judgment(item, judge, order, fields.one_of(prefix + key, _WINNERS))


def _place(fields: Fields) -> int:
    text = fields.text("item")
    if text.isdecimal() and text.isascii() and len(text) < 10:
        return int(text)
    fields.fault("item", f"must be a whole number from 0, not {shown(text)}")
    return 0


def _has_first_stage(fields: Fields) -> bool:
    return any(fields.data.get(f"stage1_{key}") is not None for key in _ORDERS)


def _judgment(
    item: ItemRecord,
    judge: JudgeRecord,
    order: tuple[str, ...],
    winner: str | None,
    repeat: int = 0,
    rationale: str | None = None,
) -> JudgmentRecord:
    return JudgmentRecord(
        item=item,
        judge=judge,
        order=order,
        repeat=repeat,
        verdict=_output(winner),
        status="INVALID" if winner is None else "SUCCEEDED",
        rationale=rationale,
    )


def _results(source: Source, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    """A result file: its name says subset and evaluator, ``SUBSET__MODEL__PROMPT.json``."""
    *subset_parts, model, prompt = ["", "", *PurePath(source.name).stem.split("__")]
    subset, judge = "/".join(filter(None, subset_parts)), _judge(f"{model}/{prompt}")
    if not subset or not model:
        log.add(0, "file", "must be named SUBSET__MODEL__PROMPT.json, for it says so nowhere else")
        return
    for number, row in enumerate(json_rows(source, log)):
        fields = Fields(row.data, row.line, log)
        for key in ("input", *OUTPUTS):
            fields.require(key)
            fields.optional_text(key)
        gold = fields.whole("label", least=1)
        if gold not in (None, 1, 2):
            fields.fault("label", f"must be 1 or 2, not {gold}")
        item = _item(subset, number, None if gold is None else str(gold), fields.data)
        found = list(_result_judgments(fields, item, judge))
        if fields.clean:
            yield from ((row.line, record) for record in found)


def _result_judgments(
    fields: Fields, item: ItemRecord, judge: JudgeRecord
) -> Iterator[JudgmentRecord]:
    for repeat, result in enumerate(fields.objects("results")):
        for key, order in _SHOWN_SWAPPED.items():
            one = result.object(key)
            if one is None:
                continue
            winner = one.optional_text("winner")
            said = one.texts("completion")
            known = winner if winner in _WINNERS else None
            yield _judgment(item, judge, order, known, repeat, said[0] if said else None)


def read_llmbar_swap(files: Files, log: FaultLog) -> Iterator[tuple[int, DebateRecord]]:
    """
    Yield the two-stage evaluators of ``verdicts.csv`` as debates of two rounds.

    One debate an item and evaluator, one agent an order; round 0 is the first verdict, round 1
    the final one, which the evaluator gave after reading both of its first verdicts.
    """
    with files.opened(log, "verdicts.csv") as sources:
        for source in sources:
            with speaking_of(log, source):
                for row in csv_rows(source, log):
                    fields = Fields(row.data, row.line, log)
                    record = _two_stages(fields)
                    if record is not None and fields.clean:
                        yield row.line, record


def _two_stages(fields: Fields) -> DebateRecord | None:
    if not _has_first_stage(fields):
        return None
    subset, evaluator = fields.identifier("subset"), fields.identifier("evaluator")
    number = _place(fields)
    gold = fields.one_of("gold", _WINNERS)
    rounds = tuple(
        tuple(_turn(key, fields.one_of(prefix + key, _WINNERS)) for key in _ORDERS)
        for prefix in ("stage1_", "winner_order_")
    )
    item_id = f"{subset}/{number}"
    question = QuestionRecord(
        id=item_id,
        question=f"Which output of {item_id} is better?",
        reference=tuple(filter(None, [_output(gold)])),
        answer_type="choice",
        choices=OUTPUTS,
        stratum=subset,
    )
    return DebateRecord(
        debate_id=f"{evaluator}:{item_id}",
        question=question,
        protocol=evaluator,
        agents=tuple(AgentRecord(key, evaluator.partition("/")[0], "judge") for key in _ORDERS),
        rounds=rounds,
        reads_known="assumed",
    )


def _turn(agent_id: str, winner: str | None) -> TurnRecord:
    status = "INVALID" if winner is None else "SUCCEEDED"
    return TurnRecord(agent_id, _output(winner), status=status)
