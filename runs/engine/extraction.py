"""
Extraction rules: where in a reply the answer stands (S26).

A rule returns its candidates, the last of the reply first, and is linear in the reply. Rules are
tried in the protocol's order. A candidate that says nothing (a placeholder, an empty box, a box
without a number) is passed over; one that says something unreadable decides: it is INVALID, and
no later rule may find a more convenient answer elsewhere.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from runs.engine.choices import letters
from runs.engine.folding import fold
from runs.engine.normalise import EMPTY, PLACEHOLDER, normalise
from runs.engine.numbers import NotANumberError, leading_quantity, read_number
from runs.engine.types import Answer, AnswerKind, Question
from runs.protocols.spec import Extraction, Normaliser

T = TypeVar("T")

#: Candidates of one rule that are looked at, from the end: bounds the work on hostile replies.
MAX_CANDIDATES = 50
MAX_SEGMENT_CHARS = 600
#: How much of a reply's end is searched for the options' texts.
MAX_MENTION_CHARS = 20_000

NO_ANSWER = "no answer found"

_SAYS_NOTHING = frozenset({EMPTY, PLACEHOLDER, "no number"})
_NOT_AFTER_IS = frozenset({"text before the number", "neither yes nor no", "no option"})

_MARKUP = r"[ \t>*_#`-]*"
_FINAL_LINE = re.compile(
    rf"^{_MARKUP}final[ \t]{{1,4}}answer[ \t*_`]*(?:is[ \t*_`]*)?(?:[:\uff1a]([^\n]*)|$)",
    re.IGNORECASE | re.MULTILINE,
)
_NEXT_LINE = re.compile(r"\s*([^\n]*)")
_HASH_MARKS = re.compile(r"(?<!#)####[ \t]*(?=[-+$€£¥(.\d\\−])([^\n]*)")
_A_MARKER = re.compile(r"^A:[ \t]*([^\n]*)$", re.MULTILINE)
_BRACES = re.compile(r"\\f?box(?:ed)?\s{0,3}\{|\\.|[{}]", re.DOTALL)
_ANSWER_IS = re.compile(r"answer\s{0,8}(?:is\s{0,4}:?|:)\s{0,8}", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.;](?=\s{1,8}[A-Z]|\s{0,8}$)|\n|[.;][ \t]*$")
_NUMBER = re.compile(
    r"(?:(?<![\w)\]}.,])[-−–+][ ]?)?\\?[$€£¥]?(?<![\w.,])(?:\d+(?:[.,]\d+)*|[.]\d+)"
    r"(?:[eE][-+]?\d{1,4}(?!\w))?(?:[ ]?/[ ]?\d+(?![\d/]))?(?:[ ]?\\?%)?"
)
_FIRST_WORD = re.compile(r"[^\w]*([^\W\d_]+)")
#: After "answer is", a capital A before a word is the article, unless the word gives a reason.
_ARTICLE_A = re.compile(
    r"A\s+(?!(?:because|since|as|and|or|which|with|due|for|given|but|based|so|from)\b)[a-z]"
)


def extract(text: str, question: Question, extraction: Extraction, settings: Normaliser) -> Answer:
    """Return the answer that the protocol's rules find in ``text``; INVALID when none does."""
    rules: tuple[str, ...] = getattr(extraction, question.answer_type)
    for rule in rules:
        for candidate in _RULES[rule](text, question):
            answer = normalise(candidate, question, settings)
            if not _passed_over(answer, rule):
                return replace(answer, rule=rule)
    return Answer(raw="", kind=AnswerKind.INVALID, reason=NO_ANSWER)


def _passed_over(answer: Answer, rule: str) -> bool:
    if answer.kind is not AnswerKind.INVALID:
        return False
    if answer.reason in _SAYS_NOTHING:
        return True
    return rule == "answer_is" and answer.reason in _NOT_AFTER_IS


def _last_first(candidates: Iterable[T]) -> list[T]:
    return list(deque(candidates, maxlen=MAX_CANDIDATES))[::-1]


def _final_line(text: str, question: Question) -> list[str]:
    """``Final answer: …``, or the line under a bare ``Final answer:``."""
    lines = []
    for match in _last_first(_FINAL_LINE.finditer(text)):
        line = (match[1] or "").strip(" \t*_`")
        under = None if line else _NEXT_LINE.match(text, match.end())
        lines.append(under[1].strip(" \t*_`") if under else line)
    return [_narrowed(line, question) for line in lines]


def _boxed(text: str, question: Question) -> list[str]:
    """The content of ``\\boxed{…}`` with balanced braces, in one pass over the reply."""
    if "box" not in text:
        return []
    boxes: list[tuple[int, int]] = []
    open_braces: list[int | None] = []
    for token in _BRACES.finditer(text):
        brace = token.group()
        if brace.startswith("\\") and brace.endswith("{") and len(brace) > 2:
            open_braces.append(token.end())
        elif brace == "{":
            open_braces.append(None)
        elif brace == "}" and open_braces:
            start = open_braces.pop()
            if start is not None:
                boxes.append((start, token.start()))
    boxes.sort()
    return [
        _narrowed(text[start:end].strip(), question)
        for start, end in boxes[: -MAX_CANDIDATES - 1 : -1]
    ]


def _hash_marks(text: str, question: Question) -> list[str]:
    return _last_first(m[1].strip() for m in _HASH_MARKS.finditer(text))


def _a_marker(text: str, question: Question) -> list[str]:
    return _last_first(m[1].strip() for m in _A_MARKER.finditer(text))


def _answer_is(text: str, question: Question) -> list[str]:
    """What follows ``answer is`` or ``answer:`` up to the end of the sentence."""
    ends = _last_first(m.end() for m in _ANSWER_IS.finditer(text))
    segments = (_sentence(text[end : end + MAX_SEGMENT_CHARS]) for end in ends)
    if question.answer_type == "choice":
        return [found for s in segments if (found := _chosen(s, question))]
    return [_narrowed(s, question) for s in segments]


def _sentence(segment: str) -> str:
    end = _SENTENCE_END.search(segment)
    return (segment[: end.start()] if end else segment).strip()


def _chosen(segment: str, question: Question) -> str:
    """The option letter that a segment begins with, with its rival if it names one."""
    bare = segment.lstrip(" *_\"'$\\")
    known = letters(question.choices)
    letter = re.match(
        rf"[(\[]?\s?([{known}])(?!\w)(?!['’]\w)\s?[)\]]?"
        rf"(?:\s*(?:or|and|/|,)\s*[(\[]?[A-Z](?!\w)[)\]]?)*",
        bare,
    )
    if letter is not None and not _ARTICLE_A.match(bare):
        return letter.group().strip()
    return segment if question.choices and not _shows_x(bare, known) else ""


def _shows_x(segment: str, known: str) -> bool:
    """Whether a segment begins with the prompt's ``(X)`` where X is no option."""
    return "X" not in known and segment.startswith(("(X)", "[X]", "X)", "<X>"))


def _parenthesised_letter(text: str, question: Question) -> list[str]:
    known = letters(question.choices)
    return _last_first(m[1] for m in re.finditer(rf"\(\s?([{known}])\s?\)", text))


def _last_number(text: str, question: Question) -> list[str]:
    return _last_first(m.group().strip() for m in _NUMBER.finditer(text))


def _whole(text: str, question: Question) -> list[str]:
    return [text.strip()]


def _first_word(text: str, question: Question) -> list[str]:
    match = _FIRST_WORD.match(text)
    return [match[1]] if match else []


def _option_text(text: str, question: Question) -> list[str]:
    """The one option whose text the reply's end mentions; none where it mentions several."""
    rest = f" {fold(text[-MAX_MENTION_CHARS:])} "
    mentioned = []
    for choice in sorted(question.choices, key=len, reverse=True):
        wanted = f" {fold(choice)} "
        if wanted.strip() and wanted in rest:
            mentioned.append(choice)
            # The longest first: "New York City" is no mention of "New York".
            rest = rest.replace(wanted, " \0 ")
    return mentioned if len(mentioned) == 1 else []


def _narrowed(segment: str, question: Question) -> str:
    """For a number that prose follows, the number alone; any other segment as it is."""
    if question.answer_type != "number":
        return segment
    try:
        read_number(segment)
    except NotANumberError:
        return leading_quantity(segment) or segment
    return segment


_RULES: dict[str, Callable[[str, Question], list[str]]] = {
    "final_line": _final_line,
    "boxed": _boxed,
    "hash_marks": _hash_marks,
    "a_marker": _a_marker,
    "answer_is": _answer_is,
    "parenthesised_letter": _parenthesised_letter,
    "last_number": _last_number,
    "whole": _whole,
    "first_word": _first_word,
    "option_text": _option_text,
}
