"""
From the bytes of a reply to what it says (S4, S11, S26). Nothing here raises on any bytes.

A reply is hostile text. What cannot be read is an INVALID answer with its reason, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from runs.engine.echoes import without_echoes
from runs.engine.extraction import NO_ANSWER, extract
from runs.engine.folding import visible
from runs.engine.json_replies import (
    ReplyError,
    answer_text,
    change,
    checked_claims,
    claims,
    confidence,
    confidence_of,
    read_object,
    response_schema,
)
from runs.engine.normalise import normalise
from runs.engine.refusals import abstention_or_refusal
from runs.engine.types import Answer, AnswerKind, Claim, PromptMessage, Question, Status
from runs.protocols.spec import Output, Protocol

__all__ = ["ParsedReply", "cut_status", "display_text", "parse_reply", "response_schema"]

T = TypeVar("T")

ECHO = "an echo of the instructions"

#: Finish reasons by which providers say that a reply is not whole (S4).
_CUT = {
    "length": Status.TRUNCATED,
    "max_tokens": Status.TRUNCATED,
    "max_output_tokens": Status.TRUNCATED,
    "content_filter": Status.FILTERED,
    "content_filtered": Status.FILTERED,
    "safety": Status.FILTERED,
    "refusal": Status.FILTERED,
}


def _line(label: str) -> re.Pattern[str]:
    """Match a line ``Label: …``, Markdown around the label tolerated."""
    return re.compile(rf"^[ \t>*_-]*{label}[ \t*_]*:([^\n]*)", re.IGNORECASE | re.MULTILINE)


_CONFIDENCE_LINE = _line("confidence")
_CLAIM_LINE = _line(r"claim(?:[ \t](\w{1,16}))?")
_CHANGE_LINE = _line("change")


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """
    What a reply says.

    ``text`` is its display text; ``problems`` are faults beside the answer: what they concern
    is left out of the value, the answer stands.
    """

    text: str
    answer: Answer
    claims: tuple[Claim, ...] = ()
    confidence: str | None = None
    change: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()


def display_text(raw: bytes) -> str:
    """
    Return a reply's text as it is shown, stored and hashed beside its raw bytes (S35).

    UTF-8; NUL, lone surrogates and bytes that are no UTF-8 stand as visible escapes, so that
    PostgreSQL and canonical JSON can hold the text. The raw bytes are kept elsewhere.
    """
    try:
        return visible(raw.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return visible(raw.decode("utf-8", "backslashreplace"))


def cut_status(finish_reason: str) -> Status | None:
    """Return TRUNCATED or FILTERED where the provider says that the reply is not whole."""
    return _CUT.get(finish_reason.strip().casefold())


def parse_reply(
    raw: bytes,
    *,
    question: Question,
    protocol: Protocol,
    prompt: tuple[PromptMessage, ...],
    finish_reason: str,
) -> ParsedReply:
    """
    Return what a reply to ``prompt`` says under the protocol's output rules.

    A reply that is cut, too long, an echo of its instructions or not of the asked form has an
    INVALID answer with the reason. Nothing is raised whatever ``raw`` holds.
    """
    text = display_text(raw)
    output = protocol.output
    problem = _unparsed(text, output, finish_reason)
    if problem:
        return _invalid(text, problem)
    if output.format == "json":
        return _from_json(text, question=question, protocol=protocol)
    return _from_text(text, question=question, protocol=protocol, prompt=prompt)


def _invalid(text: str, reason: str) -> ParsedReply:
    return ParsedReply(text=text, answer=_invalid_answer(reason))


def _invalid_answer(reason: str) -> Answer:
    return Answer(raw="", kind=AnswerKind.INVALID, reason=reason)


def _unparsed(text: str, output: Output, finish_reason: str) -> str:
    """Return why a reply is not parsed at all; empty where it is."""
    cut = cut_status(finish_reason)
    if cut is Status.TRUNCATED and output.truncated == "fail":
        return "cut by the length limit"
    if cut is Status.FILTERED and output.filtered == "fail":
        return "stopped by a content filter"
    if len(text) > output.max_reply_chars:
        return f"longer than {output.max_reply_chars} characters"
    return "" if text.strip() else "empty"


def _from_json(text: str, *, question: Question, protocol: Protocol) -> ParsedReply:
    output = protocol.output
    try:
        reply = read_object(text)
        answer = normalise(answer_text(reply, question), question, protocol.normaliser)
        return ParsedReply(
            text=text,
            answer=replace(answer, rule="json"),
            claims=claims(reply) if output.claims else (),
            confidence=confidence(reply) if output.confidence else None,
            change=change(reply) if output.change_reason else (),
            problems=_missing(reply, output),
        )
    except ReplyError as exc:
        kind = abstention_or_refusal(text)
        if kind is not None:
            return ParsedReply(text=text, answer=Answer(raw=text, kind=kind))
        return _invalid(text, str(exc))


def _missing(reply: dict[str, Any], output: Output) -> tuple[str, ...]:
    asked = {
        "confidence": output.confidence,
        "claims": output.claims,
        "change": output.change_reason,
    }
    return tuple(f"{key}: missing" for key, on in asked.items() if on and key not in reply)


def _from_text(
    text: str, *, question: Question, protocol: Protocol, prompt: tuple[PromptMessage, ...]
) -> ParsedReply:
    output = protocol.output
    said = without_echoes(text, protocol=protocol, question=question, prompt=prompt)
    problems: list[str] = []
    return ParsedReply(
        text=text,
        answer=_answer_in(text, said, question, protocol),
        claims=_tried(_claims_in, said, problems) or () if output.claims else (),
        confidence=_tried(_confidence_in, said, problems) if output.confidence else None,
        change=_change_in(said) if output.change_reason else (),
        problems=tuple(problems),
    )


def _answer_in(text: str, said: str, question: Question, protocol: Protocol) -> Answer:
    """Return the answer in what the reply says of its own, once its echoes are blanked."""
    if not said.strip():
        return _invalid_answer(ECHO)
    answer = extract(said, question, protocol.output.extraction, protocol.normaliser)
    if answer.reason != NO_ANSWER:
        return answer
    kind = abstention_or_refusal(said)
    if kind is not None:
        return Answer(raw=said.strip(), kind=kind)
    if said != text:
        echoed = extract(text, question, protocol.output.extraction, protocol.normaliser)
        if echoed.reason != NO_ANSWER:
            return _invalid_answer(ECHO)
    return answer


def _tried(reader: Callable[[str], T], text: str, problems: list[str]) -> T | None:
    try:
        return reader(text)
    except ReplyError as exc:
        problems.append(str(exc))
        return None


def _confidence_in(text: str) -> str | None:
    """Return the confidence of the last line ``Confidence: 0.8``, None without such a line."""
    lines = [m[1].strip(" \t*_") for m in _CONFIDENCE_LINE.finditer(text)]
    return confidence_of(lines[-1]) if lines else None


def _claims_in(text: str) -> tuple[Claim, ...]:
    """Return the claims of lines ``Claim: …`` or ``Claim c2: …``; ids default to c1, …"""
    lines = [(m[1], m[2].strip(" \t*_")) for m in _CLAIM_LINE.finditer(text)]
    return checked_claims([(name or f"c{n}", said) for n, (name, said) in enumerate(lines, 1)])


def _change_in(text: str) -> tuple[tuple[str, str], ...]:
    """Return what the last line ``Change: …`` says."""
    lines = [m[1].strip(" \t*_") for m in _CHANGE_LINE.finditer(text)]
    return (("text", lines[-1]),) if lines and lines[-1] else ()
