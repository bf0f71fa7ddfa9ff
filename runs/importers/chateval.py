"""
ChatEval (Chan et al. 2024): referees who talk, then each name the better of two answers.

A result file holds the last turn of every referee; the first answer of ``response`` was shown
first, always. ``review_*_human.txt`` beside it has one person's word a line, which is gold.

The panel's verdict is the plurality of its referees, a tie where two lead; a referee who said
nothing that can be read is taken in two ways, each a judge of its own name: upstream counts it
as a tie, or it is left out of the vote.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath

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
from runs.importers.sources import Source, text_lines

ANNOTATOR = "chateval"
UNREADABLE_AS_TIE = "majority, unparsable as tie"
UNREADABLE_DROPPED = "majority, unparsable dropped"
_HUMAN = "review_*_human.txt"
_RESULTS = "*comparison.json"
_WORDS = {"CHATGPT": 0, "VICUNA13B": 1}  # Places of the answers that the people's words name.
_LAST_ANSWER = re.compile(r"(?:^|Answer:)\s*(Assistant 1|Assistant 2|Same)\s*\Z")


def read_chateval(files: Files, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    """Yield every referee's judgment and the panel's two, of one result file or a folder's."""
    gold = _people(files, log)
    if log.total:
        return
    with files.opened(log, _RESULTS) as sources:
        for source in sources:
            with speaking_of(log, source):
                yield from _judgments(source, gold, log)


def read_chateval_labels(files: Files, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the people's words as pairwise labels; needs the words beside the named file."""
    people = _people(files, log)
    if not people and not log.total:
        log.add(0, "file", f"there is no {_HUMAN} beside it, which holds the people's words")
    if log.total:
        return
    with files.opened(log, _RESULTS) as sources:
        source = sources[0]  # Every result file has the same items.
        with speaking_of(log, source):
            for number, row in enumerate(json_rows(source, log), 1):
                fields = Fields(row.data, row.line, log)
                item = _item(fields, number, people)
                if fields.clean and item.gold is not None:
                    order = tuple(candidate.candidate_id for candidate in item.candidates)
                    yield (
                        row.line,
                        LabelRecord(
                            item.item_id, ANNOTATOR, "pairwise", item.gold, shown_order=order
                        ),
                    )


def _people(files: Files, log: FaultLog) -> list[int | None]:
    """Return for each item the place of the better answer, None for a tie."""
    found: list[int | None] = []
    for path in files.find(_HUMAN)[:1]:
        with files.open(path) as source, speaking_of(log, source):
            for line in text_lines(source, log):
                word = line.text.strip()
                if word and word not in (*_WORDS, "TIE"):
                    log.add(line.number, "word", f"{shown(word)} is none of the known words")
                elif word:
                    found.append(_WORDS.get(word))
    return found


def _judgments(
    source: Source, gold: Sequence[int | None], log: FaultLog
) -> Iterator[tuple[int, JudgmentRecord]]:
    condition = PurePath(source.name).stem.removesuffix("_pair_comparison")
    roles = _roles(source)
    count = 0
    for number, row in enumerate(json_rows(source, log), 1):
        fields = Fields(row.data, row.line, log)
        item = _item(fields, number, gold)
        found = list(_row_judgments(fields, item, condition, roles))
        count += 1
        if fields.clean:
            yield from ((row.line, record) for record in found)
    if gold and count != len(gold):
        log.add(0, "file", f"has {count} items where {len(gold)} people's words stand beside it")


def _roles(source: Source) -> list[str]:
    """Return each referee's name; a silent one has none in its row, so all rows are looked at."""
    found: dict[int, str] = {}
    for row in json_rows(source, FaultLog(source.name)):
        turns = row.data.get("evaluation") if isinstance(row.data, dict) else None
        for place, turn in enumerate(turns if isinstance(turns, list) else []):
            role = turn.get("role") if isinstance(turn, dict) else None
            if isinstance(role, str) and role.strip():
                found.setdefault(place, role)
    return [found.get(place, f"referee {place + 1}") for place in range(max(found, default=-1) + 1)]


def _item(fields: Fields, number: int, gold: Sequence[int | None]) -> ItemRecord:
    answers = fields.object("response")
    names = list(answers.data) if answers is not None else []
    if len(names) != 2:
        fields.fault("response", "must hold two answers by name")
        names = []
    candidates = tuple(_candidate(answers, name) for name in names if answers is not None)
    item_id = f"chateval-{number:03d}"
    return ItemRecord(
        item_id=item_id,
        question_id=item_id,
        question=fields.text("question"),
        candidates=candidates,
        gold=_gold(candidates, number, gold),
    )


def _candidate(answers: Fields, name: str) -> CandidateRecord:
    return CandidateRecord(name, answers.optional_text(name) or "", name)


def _gold(
    candidates: Sequence[CandidateRecord], number: int, gold: Sequence[int | None]
) -> str | None:
    if number > len(gold) or not candidates:
        return None
    place = gold[number - 1]
    return TIE if place is None else candidates[place].candidate_id


def _row_judgments(
    fields: Fields, item: ItemRecord, condition: str, roles: Sequence[str]
) -> Iterator[JudgmentRecord]:
    order = tuple(candidate.candidate_id for candidate in item.candidates)
    turns = [turn.text("evaluation") for turn in fields.objects("evaluation")]
    verdicts = [_verdict(text, order) for text in turns]
    for role, text, verdict in zip(roles, turns, verdicts, strict=False):
        yield _judgment(item, f"{condition}/{role}", order, verdict, text)
    if len(turns) < 2:
        return
    as_tie = [verdict or TIE for verdict in verdicts]
    voted = [verdict for verdict in verdicts if verdict is not None]
    yield _judgment(item, f"{condition}/{UNREADABLE_AS_TIE}", order, _plurality(as_tie))
    yield _judgment(item, f"{condition}/{UNREADABLE_DROPPED}", order, _plurality(voted))


def _judgment(
    item: ItemRecord, judge: str, order: tuple[str, ...], verdict: str | None, text: str = ""
) -> JudgmentRecord:
    return JudgmentRecord(
        item=item,
        judge=JudgeRecord(judge),
        order=order,
        repeat=0,
        verdict=verdict,
        status="INVALID" if verdict is None else "SUCCEEDED",
        rationale=text or None,
        metadata={} if text else {"derived_from": "the referees' verdicts"},
    )


def _verdict(text: str, order: Sequence[str]) -> str | None:
    found = _LAST_ANSWER.search(text.strip())
    if found is None or len(order) != 2:
        return None
    return {"Assistant 1": order[0], "Assistant 2": order[1], "Same": TIE}[found.group(1)]


def _plurality(votes: Sequence[str]) -> str | None:
    """Return who has most votes, a tie where two lead, None where nobody voted."""
    leading = Counter(votes).most_common(2)
    if not leading:
        return None
    if len(leading) > 1 and leading[0][1] == leading[1][1]:
        return TIE
    return leading[0][0]
