"""
Published debate logs, read as their authors publish them.

Replies stay whole in ``text``. By which rules their answers are read is named in ``rules`` and
printed by every report: another rule is another result.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from typing import Any

from runs.engine.hashing import digest
from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.question_sets import gsm8k_gold
from runs.importers.records import AgentRecord, DebateRecord, QuestionRecord, TurnRecord
from runs.importers.references import choices_problem, letter_index, reference_problem
from runs.importers.rows import json_rows, parsed_members
from runs.importers.sources import Source

DU_RULES = "du_replay"
GSM8K_SOLUTIONS_RULES = "gsm8k_solutions"

_OPTION = re.compile(r"(?:^|[\s:,])([A-Z])\) ")
_AFTER_OPTIONS = re.compile(
    r"\s+(?:Answer in English only\.|Explain your answer, putting the answer in the form).*\Z",
    re.DOTALL,
)
_MARKED_ANSWER = re.compile(r"^A:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_GROUND_TRUTH_KEYS = ("question", "ground_truth")


def read_du(source: Source, log: FaultLog) -> Iterator[tuple[int, DebateRecord]]:
    """
    Yield logs of Du et al. (2023): ``{question: [[messages of each agent], gold]}``.

    One object over the file or several one after the other. Agents are a, b, c … by position;
    every assistant message is one round. Each agent is taken to have read all others (the
    protocol says so), hence reads are ``assumed``.
    """
    for row in parsed_members(source, log):
        if not isinstance(row.data, dict) or len(row.data) != 1:
            log.add(row.line, "row", "must be a question with its messages and gold answer")
            continue
        ((key, value),) = row.data.items()
        fields = Fields({"question": key, "value": value}, row.line, log)
        record = _du_debate(fields, key, value)
        if record is not None and fields.clean:
            yield row.line, record


def _du_debate(fields: Fields, key: str, value: Any) -> DebateRecord | None:
    fields.text("question")
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], list):
        fields.fault("value", "must be a list of the agents' messages and the gold answer")
        return None
    conversations, gold = value
    if not 1 <= len(conversations) <= len(string.ascii_lowercase):
        fields.fault("value[0]", f"holds {len(conversations)} agents; 1 to 26 can be")
        return None
    turns = [
        _du_turns(fields, agent, f"value[0][{place}]", messages)
        for place, (agent, messages) in enumerate(
            zip(string.ascii_lowercase, conversations, strict=False)
        )
    ]
    question = _du_question(fields, key, gold)
    if question is None:
        return None
    rounds = max(len(own) for own in turns)
    if rounds == 0:
        fields.fault("value[0]", "holds no reply of an assistant")
    return DebateRecord(
        debate_id=question.id,
        question=question,
        protocol="du",
        agents=tuple(AgentRecord(own, "unknown") for own in string.ascii_lowercase[: len(turns)]),
        rounds=tuple(tuple(own[t] for own in turns if t < len(own)) for t in range(rounds)),
        reads_known="assumed",
        rules=DU_RULES,
        metadata={"gold": gold},
    )


def _du_turns(fields: Fields, agent: str, path: str, messages: Any) -> list[TurnRecord]:
    if not isinstance(messages, list):
        fields.fault(path, f"must be a list of messages, not {shown(messages)}")
        return []
    turns: list[TurnRecord] = []
    prompt: str | None = None
    for place, message in enumerate(messages):
        item = fields.inner(message, f"{path}[{place}]")
        role = item.one_of("role", ("system", "user", "assistant"))
        item.require("role")
        item.require("content")
        content = item.optional_text("content") or ""
        if role == "assistant":
            turns.append(TurnRecord(agent, None, text=content, prompt=prompt))
        prompt = content if role == "user" else None
    return turns


def _du_question(fields: Fields, key: str, gold: Any) -> QuestionRecord | None:
    if not isinstance(gold, str):
        fields.fault("value[1]", f"the gold answer must be text, not {shown(gold)}")
        return None
    record_id = f"du-{digest(key)[:12]}"
    number = gsm8k_gold(gold)
    if number is not None:
        return QuestionRecord(record_id, key, (number,), "number")
    choices = choices_in(key)
    if letter_index(gold, len(choices)) is None:
        fields.fault("value[1]", "is neither a solution with #### n nor the letter of a choice")
        return None
    if problem := choices_problem(choices):
        fields.fault("question", f"as a choice {problem}")
    return QuestionRecord(record_id, key, (gold.strip(),), "choice", choices=choices)


def choices_in(prompt: str) -> tuple[str, ...]:
    """Return the texts of the choices that a prompt lists as ``A) …, B) …``."""
    listed = _AFTER_OPTIONS.sub("", prompt)
    marks = _consecutive_marks(listed)
    ends = [start for start, _ in marks][1:]
    # A comma parts one option from the next; after the last it is the option's own.
    inner = [
        listed[begin:end].rstrip().removesuffix(",").strip()
        for (_, begin), end in zip(marks, ends, strict=False)
    ]
    last = [listed[begin:].strip() for _, begin in marks[-1:]]
    return (*inner, *last)


def _consecutive_marks(text: str) -> list[tuple[int, int]]:
    """Return (start, end) of the marks A), B), C) … as they follow each other from the last A)."""
    found = [(m.group(1), m.start(1), m.end()) for m in _OPTION.finditer(text)]
    first = max((i for i, (letter, _, _) in enumerate(found) if letter == "A"), default=None)
    if first is None:
        return []
    marks: list[tuple[int, int]] = []
    for letter, start, end in found[first:]:
        if len(marks) < 26 and letter == string.ascii_uppercase[len(marks)]:
            marks.append((start, end))
    return marks


def read_gsm8k_solutions(
    source: Source, log: FaultLog, *, steps: Mapping[str, str] | None = None
) -> Iterator[tuple[int, DebateRecord]]:
    """
    Yield the sampled solutions that GSM8K ships: one debate a question, one round, one agent a
    model, nobody reading anybody.

    ``steps`` maps an initial to a revising model: with ``{"175b_finetuning":
    "175b_verification"}`` there is one agent, whose second model's solution is its revision.
    The answer is what follows the last ``A:`` at the start of a line; a solution without it is
    INVALID.
    """
    for number, row in enumerate(json_rows(source, log), 1):
        fields = Fields(row.data, row.line, log)
        record = _gsm8k_debate(fields, number, steps or {})
        if record is not None and fields.clean:
            yield row.line, record


def _gsm8k_debate(fields: Fields, number: int, steps: Mapping[str, str]) -> DebateRecord | None:
    question = fields.text("question")
    reference = marked_answer(fields.text("ground_truth"))
    if fields.clean and reference_problem(reference or "", "number"):
        fields.fault("ground_truth", 'has no number after "A:"')
    models = [key for key in fields.data if key not in _GROUND_TRUTH_KEYS]
    if not models:
        fields.fault("row", "holds no model's solution")
    firsts = list(steps) if steps else models
    seconds = list(steps.values())
    rounds = [tuple(_solution(fields, model, model) for model in firsts)]
    if seconds:
        rounds.append(tuple(_solution(fields, first, steps[first]) for first in firsts))
    if not fields.clean:
        return None
    record_id = f"gsm8k-{number:04d}"
    return DebateRecord(
        debate_id=record_id,
        question=QuestionRecord(record_id, question, (reference or "",), "number"),
        protocol="gsm8k_steps" if steps else "gsm8k_solutions",
        agents=tuple(AgentRecord(model, model) for model in firsts),
        rounds=tuple(rounds),
        reads_known="assumed" if steps else "recorded",
        rules=GSM8K_SOLUTIONS_RULES,
    )


def _solution(fields: Fields, agent_id: str, model: str) -> TurnRecord:
    fields.require(model)
    item = fields.object(model)
    if item is None:
        return TurnRecord(agent_id, None, status="FAILED")
    text = item.text("solution")
    answer = marked_answer(text)
    return TurnRecord(
        agent_id,
        answer,
        text=text,
        status="INVALID" if answer is None else "SUCCEEDED",
        reads=(),
        metadata={**({"model": model} if model != agent_id else {}), **item.metadata()},
    )


def marked_answer(solution: str) -> str | None:
    """Return what follows the last ``A:`` at a line's start, ``$`` and commas dropped."""
    found = _MARKED_ANSWER.findall(solution)
    return str(found[-1]).replace(",", "").lstrip("$") if found else None
