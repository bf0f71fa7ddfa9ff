"""
Published question sets, read as their authors publish them.

None of them numbers its questions, except StrategyQA: ids are the set's name and the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from runs.engine.hashing import digest
from runs.engine.types import Evidence
from runs.importers.faults import FaultLog
from runs.importers.fields import Fields
from runs.importers.records import QuestionRecord
from runs.importers.references import choices_problem, reference_problem
from runs.importers.rows import csv_rows, json_rows
from runs.importers.sources import Source

_GSM8K_GOLD = re.compile(r"####[ \t]*(\S[^\n]*)")


def read_gsm8k(source: Source, log: FaultLog) -> Iterator[tuple[int, QuestionRecord]]:
    """Yield GSM8K (Cobbe et al. 2021): the reference is the number after ``####``."""
    for number, row in enumerate(json_rows(source, log), 1):
        fields = Fields(row.data, row.line, log)
        solution = fields.text("answer")
        reference = gsm8k_gold(solution)
        if fields.clean and reference is None:
            fields.fault("answer", "has no number after ####")
        record = QuestionRecord(
            id=f"gsm8k-{number:04d}",
            question=fields.text("question"),
            reference=(reference or "",),
            answer_type="number",
            metadata={"solution": solution, **fields.metadata()},
        )
        if fields.clean:
            yield row.line, record


def gsm8k_gold(solution: str) -> str | None:
    """Return the number after the last ``####`` without thousands commas."""
    found = _GSM8K_GOLD.findall(solution)
    number = found[-1].strip().replace(",", "") if found else ""
    return None if reference_problem(number, "number") else number


def read_truthfulqa(source: Source, log: FaultLog) -> Iterator[tuple[int, QuestionRecord]]:
    """
    Yield TruthfulQA (Lin et al. 2022) as single-choice questions, its MC1 form.

    Choices are the best answer and every incorrect one. The file lists the right answer first,
    so they are put in the order of a hash: the same in every import, and no hint. All correct
    answers are kept in the metadata.
    """
    for row_line, fields, number in _truthfulqa_rows(source, log):
        best = fields.text("Best Answer").strip()
        wrong = _listed(fields.text("Incorrect Answers"))
        choices = _shuffled(fields.text("Question"), _different([best, *wrong]))
        record = _truthfulqa_record(fields, number, best, choices, wrong)
        if fields.clean:
            yield row_line, record


def read_truthfulqa_open(source: Source, log: FaultLog) -> Iterator[tuple[int, QuestionRecord]]:
    """Yield TruthfulQA as open questions whose references are all correct answers."""
    for row_line, fields, number in _truthfulqa_rows(source, log):
        record = QuestionRecord(
            id=f"truthfulqa-{number:04d}",
            question=fields.text("Question"),
            reference=tuple(_listed(fields.text("Correct Answers"))),
            answer_type="open",
            stratum=fields.text("Category"),
            metadata={
                "best_answer": fields.text("Best Answer"),
                "incorrect_answers": _listed(fields.text("Incorrect Answers")),
                **fields.metadata(),
            },
        )
        if fields.clean:
            yield row_line, record


def _truthfulqa_rows(source: Source, log: FaultLog) -> Iterator[tuple[int, Fields, int]]:
    for number, row in enumerate(csv_rows(source, log), 1):
        yield row.line, Fields(row.data, row.line, log), number


def _truthfulqa_record(
    fields: Fields, number: int, best: str, choices: tuple[str, ...], wrong: list[str]
) -> QuestionRecord:
    problem = choices_problem(choices) if fields.clean else None
    if problem:
        fields.fault("Incorrect Answers", f"with the best answer, {problem}")
    elif fields.clean and (problem := reference_problem(best, "choice", choices)):
        fields.fault("Best Answer", problem)
    return QuestionRecord(
        id=f"truthfulqa-{number:04d}",
        question=fields.text("Question"),
        reference=(best,),
        answer_type="choice",
        choices=choices,
        stratum=fields.text("Category"),
        metadata={
            "correct_answers": _listed(fields.text("Correct Answers")),
            "incorrect_answers": wrong,
            **fields.metadata(),
        },
    )


def _listed(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(";") if part.strip()]


def _different(texts: list[str]) -> list[str]:
    return list({text.casefold(): text for text in reversed(texts)}.values())


def _shuffled(question: str, choices: list[str]) -> tuple[str, ...]:
    return tuple(sorted(choices, key=lambda choice: digest([question, choice])))


def read_strategyqa(source: Source, log: FaultLog) -> Iterator[tuple[int, QuestionRecord]]:
    """
    Yield StrategyQA (Geva et al. 2021): yes/no questions with their facts as evidence.

    The facts nearly give the answer away; a protocol that does not name evidence in its prompts
    debates without them.
    """
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        record_id = fields.identifier("qid")
        question = fields.text("question")
        answer = fields.get("answer")
        if not isinstance(answer, bool):
            fields.fault("answer", "must be true or false")
        facts = fields.texts("facts")
        record = QuestionRecord(
            id=record_id,
            question=question,
            reference=("yes" if answer else "no",),
            answer_type="yesno",
            evidence=tuple(
                Evidence(id=f"fact-{place}", text=fact, source="StrategyQA")
                for place, fact in enumerate(facts, 1)
            ),
            metadata=fields.metadata(),
        )
        if fields.clean:
            yield row.line, record
