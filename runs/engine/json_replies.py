"""
Replies in JSON: read strictly, by types, whatever they hold.

Numbers stay the text they were, so no float and no huge integer is ever made of one.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from runs.engine.choices import letters
from runs.engine.folding import visible
from runs.engine.hashing import claim_hash
from runs.engine.types import Claim, Question
from runs.protocols.spec import Protocol

MAX_DEPTH = 16
MAX_CLAIMS = 64
MAX_CLAIM_CHARS = 4_000
MAX_ID_CHARS = 64

CHANGE_KINDS = ("retain", "revise", "withdraw")

# The closing quote is optional so that an open string is one token and the scan stays linear.
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_CONFIDENCE = re.compile(r"\d{1,3}(?:\.\d{1,30})?(?:[eE]-?\d{1,2})?|\.\d{1,30}")


class ReplyError(ValueError):
    """The reply is not the object that was asked for. The message says where and what."""


class NumberText(str):
    """A JSON number as it was written."""

    __slots__ = ()


def read_object(text: str) -> dict[str, Any]:
    """
    Return the one JSON object that ``text`` is, bare or in one fenced block.

    Raises ReplyError for broken JSON, anything but an object, a repeated key, NaN or Infinity,
    and nesting deeper than MAX_DEPTH.
    """
    body = _unfenced(text.strip())
    _check_depth(body)
    try:
        value = json.loads(
            body,
            object_pairs_hook=_unique,
            parse_float=NumberText,
            parse_int=NumberText,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError as exc:
        raise ReplyError(f"broken JSON at line {exc.lineno}: {exc.msg}") from exc
    if not isinstance(value, dict):
        raise ReplyError("not a JSON object")
    return value


def _unfenced(text: str) -> str:
    """Return the content of the one fenced block, or the text where there is none."""
    if text.startswith("{") or text.count("```") != 2:
        return text
    block = text.split("```")[1]
    first, _, rest = block.partition("\n")
    return rest if first.strip().casefold() in ("", "json") else block


def _check_depth(text: str) -> None:
    depth = 0
    for token in _TOKENS.finditer(text):
        if token.group() in "[{":
            depth += 1
        elif token.group() in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise ReplyError(f"nested deeper than {MAX_DEPTH}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ReplyError("a key is given twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ReplyError(f"{name} is not JSON")


def answer_text(reply: dict[str, Any], question: Question) -> str:
    """Return the field ``answer`` as text; raises ReplyError when missing or of a wrong type."""
    if "answer" not in reply:
        raise ReplyError("answer: missing")
    value = reply["answer"]
    if isinstance(value, bool) and question.answer_type == "yesno":
        return "yes" if value else "no"
    return _text(value, "answer")


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise ReplyError(f"{field}: not a text")
    return visible(value)


def confidence_of(value: str) -> str:
    """Return a confidence as its decimal text; raises ReplyError unless it is within 0 … 1."""
    text = visible(value).strip()
    if not _CONFIDENCE.fullmatch(text) or Fraction(text) > 1:
        raise ReplyError("confidence: not a number between 0 and 1")
    return text


def confidence(reply: dict[str, Any]) -> str | None:
    """Return the field ``confidence``, None where it is missing or null."""
    value = reply.get("confidence")
    return None if value is None else confidence_of(_text(value, "confidence"))


def claims(reply: dict[str, Any]) -> tuple[Claim, ...]:
    """Return the field ``claims``: texts, or objects of claim_id and text. Ids default to c1, …"""
    given = reply.get("claims")
    if given is None:
        return ()
    if not isinstance(given, list):
        raise ReplyError("claims: not a list")
    return checked_claims([_claim(item, n) for n, item in enumerate(given, start=1)])


def _claim(item: Any, n: int) -> tuple[str, str]:
    if isinstance(item, dict):
        return _text(item.get("claim_id", f"c{n}"), f"claims[{n}].claim_id"), _text(
            item.get("text"), f"claims[{n}].text"
        )
    return f"c{n}", _text(item, f"claims[{n}]")


def checked_claims(given: list[tuple[str, str]]) -> tuple[Claim, ...]:
    """Return claims of (claim_id, text); raises ReplyError for too many, blank or doubled ones."""
    if len(given) > MAX_CLAIMS:
        raise ReplyError(f"claims: more than {MAX_CLAIMS}")
    for n, (claim_id, text) in enumerate(given, start=1):
        if not text.strip() or len(text) > MAX_CLAIM_CHARS:
            raise ReplyError(f"claims[{n}]: blank, or longer than {MAX_CLAIM_CHARS} characters")
        if not claim_id.strip() or len(claim_id) > MAX_ID_CHARS:
            raise ReplyError(f"claims[{n}]: claim_id blank or longer than {MAX_ID_CHARS}")
    if len({claim_id for claim_id, _ in given}) != len(given):
        raise ReplyError("claims: a claim_id is given twice")
    return tuple(Claim(i, text, claim_hash(text)) for i, text in given)


def change(reply: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the field ``change`` as pairs, in a fixed order: data, never evidence (S11)."""
    given = reply.get("change")
    if given is None:
        return ()
    if not isinstance(given, dict):
        raise ReplyError("change: not an object")
    pairs = tuple(
        (key, _text(given[key], f"change.{key}"))
        for key in ("kind", "claim_id", "text")
        if given.get(key) is not None
    )
    if dict(pairs).get("kind", "retain") not in CHANGE_KINDS:
        raise ReplyError(f"change.kind: not one of {', '.join(CHANGE_KINDS)}")
    return pairs


def response_schema(question: Question, protocol: Protocol) -> dict[str, Any] | None:
    """
    Return the JSON Schema that a reply is asked to follow, None for replies in plain text.

    Every property is required and no other is allowed, which is what providers' strict modes
    ask for; what a model leaves out all the same is handled by the parser.
    """
    output = protocol.output
    if output.format == "text":
        return None
    properties: dict[str, Any] = {
        "reasoning": {"type": "string"},
        "answer": _answer_schema(question, abstain=output.abstention_allowed),
    }
    if output.confidence:
        properties["confidence"] = {"type": "number", "minimum": 0, "maximum": 1}
    if output.claims:
        claim = _object({"claim_id": {"type": "string"}, "text": {"type": "string"}})
        properties["claims"] = {"type": "array", "items": claim}
    if output.change_reason:
        kind = {"type": "string", "enum": list(CHANGE_KINDS)}
        text = {"type": "string"}
        properties["change"] = _object({"kind": kind, "claim_id": text, "text": text})
    return _object(properties)


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _answer_schema(question: Question, *, abstain: bool) -> dict[str, Any]:
    if question.answer_type == "choice":
        values = list(letters(question.choices))
    elif question.answer_type == "yesno":
        values = ["yes", "no"]
    else:
        return {"type": "string"}
    return {"type": "string", "enum": [*values, "ABSTAIN"] if abstain else values}
