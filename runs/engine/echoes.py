"""
Echoes of the prompt in a reply (S26): what a model repeats of its instructions is no answer.

An echo is told from an adopted peer answer by its source: only the protocol's own texts, the
question and whole messages count, never what a peer said. Work is linear in the reply.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import get_args

from runs.engine.folding import one_line
from runs.engine.types import AnswerType, PromptMessage, Question
from runs.protocols.checks import SLOT
from runs.protocols.spec import Prompts, Protocol

#: Shorter texts occur in replies by chance: "Answer:", "Question 2".
MIN_SENTENCE_CHARS = 12
MIN_FRAGMENT_CHARS = 40
MIN_CONTAINED_CHARS = 24

_WORD = re.compile(r"\S+")
_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?!\s)[^\n.!?]*)*[.!?]*")
#: A line that is nothing but an answer cannot be told from an honest one.
_BARE_ANSWER = re.compile(
    r"\W*(?:(?:final )?answer(?: is)?\s?:|a:|####|\\boxed|\(?[A-Z]\)?$)", re.IGNORECASE
)


def without_echoes(
    text: str, *, protocol: Protocol, question: Question, prompt: tuple[PromptMessage, ...]
) -> str:
    """Return ``text`` with every repeated instruction made a line break; blank if all of it is."""
    joined = one_line(text)
    segments = tuple(_segments(_instructions(protocol)))
    if len(joined) >= MIN_CONTAINED_CHARS and any(joined in one_line(s) for s in segments):
        return ""
    fragments = {*_whole_texts(question, prompt), *_fragments(segments)}
    spans = [span for f in fragments for span in _occurrences(joined, f)]
    return _blanked(text, spans) if spans else text


def _instructions(protocol: Protocol) -> Iterator[str]:
    yield from _texts(protocol.prompts)
    yield from (agent.persona for agent in protocol.agents)
    yield from (protocol.answer_format(answer_type) for answer_type in get_args(AnswerType))


def _texts(prompts: Prompts) -> Iterator[str]:
    yield from (prompts.system, prompts.initial, prompts.revision)
    for role in prompts.by_role.values():
        yield from (text for text in (role.system, role.initial, role.revision) if text)


def _segments(templates: Iterable[str]) -> Iterator[str]:
    """Return what a template says between its slots, the only part that is the same in prompts."""
    for template in templates:
        parts = SLOT.split(template)
        # A pattern with a group leaves the slots' names at the odd places.
        yield from parts[:: SLOT.groups + 1]


def _whole_texts(question: Question, prompt: tuple[PromptMessage, ...]) -> Iterator[str]:
    for message in prompt:
        if message.role != "assistant":
            whole = one_line(message.content)
            if len(whole) >= MIN_SENTENCE_CHARS:
                yield whole
    asked = one_line(question.text)
    if len(asked) >= MIN_CONTAINED_CHARS:
        yield asked


def _fragments(segments: Iterable[str]) -> Iterator[str]:
    for segment in segments:
        whole = one_line(segment)
        if len(whole) >= MIN_FRAGMENT_CHARS:
            yield whole
        for sentence in _SENTENCE.findall(segment):
            said = one_line(sentence)
            if len(said) >= MIN_SENTENCE_CHARS and " " in said and not _ends_open(said):
                yield said


def _ends_open(sentence: str) -> bool:
    """Whether a sentence may be half of one, or is an answer: neither may be blanked."""
    if _BARE_ANSWER.match(sentence):
        return True
    return len(sentence) < MIN_FRAGMENT_CHARS and sentence[-1] not in ".!?"


def _occurrences(joined: str, fragment: str) -> Iterator[tuple[int, int]]:
    at = joined.find(fragment)
    while at >= 0:
        yield at, at + len(fragment)
        at = joined.find(fragment, at + len(fragment))


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    """Blank ``spans``, which count in the text's words joined by single spaces."""
    words = [(m.start(), m.end()) for m in _WORD.finditer(text)]
    starts = []
    at = 0
    for start, end in words:
        starts.append(at)
        at += end - start + 1
    out = []
    done = 0
    for begin, stop in sorted(spans):
        first, last = bisect_right(starts, begin) - 1, bisect_right(starts, stop - 1) - 1
        begin_at = words[first][0] + begin - starts[first]
        stop_at = words[last][0] + stop - starts[last]
        out.append(text[done : max(done, begin_at)])
        done = max(done, stop_at)
        out.append("\n")
    out.append(text[done:])
    return "".join(out)
