"""Answers that pick one of a question's options: a letter, an alias of it, or the option's text."""

from __future__ import annotations

import re
import string
from functools import partial

from runs.engine.folding import fold, plain
from runs.protocols.spec import Normaliser

MAX_CHARS = 2_000
#: Without listed options a question is read as having four, A to D.
UNLISTED_OPTIONS = 4

_LEAD = r"(?:(?:the\s+)?(?:correct\s+)?(?:option|choice|answer|letter)(?:\s+is|\s*:)?\s+)?"
_ALONE = re.compile(rf"{_LEAD}[(\[{{]?\s?[*_]*([A-Za-z])[*_]*\s?[)\]}}]?\s?[.:,;]?", re.IGNORECASE)
_WITH_TEXT = re.compile(
    rf"{_LEAD}(?:[(\[{{]\s?([A-Za-z])\s?[)\]}}]|([A-Za-z])\s?[).:,;]"
    r"|([A-Za-z])\s(?=-\s|because\b|since\b))"
    r"[\s.:,;*_-]*(?P<rest>.+)",
    re.IGNORECASE,
)
_BARE_WITH_TEXT = re.compile(r"([A-Z])[\s.:,;-]+(?P<rest>.+)")
_SECOND_LETTER = re.compile(r"[(\[]\s?([A-Za-z])\s?[)\]]|\b(?:or|and|/|&|,)\s*[(\[]?([A-Z])\b[).]?")
_LETTER_LIST = re.compile(
    r"[(\[]?[A-Z][)\].]?(?:\s*(?:or|and|/|&|,|;)\s*[(\[]?[A-Z][)\].]?){1,25}", re.IGNORECASE
)
_DENIAL = re.compile(r"(?:is|was|are)?\s*(?:not|n't|wrong|incorrect|false)\b", re.IGNORECASE)


class NoChoiceError(ValueError):
    """The text picks no option, or more than one. The message says why."""


def letters(choices: tuple[str, ...]) -> str:
    """Return the letters of the options: A to D where the question lists none."""
    return string.ascii_uppercase[: len(choices) or UNLISTED_OPTIONS]


def read_choice(text: str, choices: tuple[str, ...], settings: Normaliser) -> str:
    """
    Return the letter of the one option that ``text`` picks.

    Raises NoChoiceError for none, several, or a letter beyond the options.
    """
    if len(text) > MAX_CHARS:
        raise NoChoiceError(f"longer than {MAX_CHARS} characters")
    bare = plain(text)
    by_text = option_of(text, choices, settings) or option_of(bare, choices, settings)
    alone = _ALONE.fullmatch(bare)
    if alone is not None:
        return _letter_or_option(alone[1].upper(), by_text, choices)
    if by_text:
        return by_text
    if _LETTER_LIST.fullmatch(bare) or _several_options(bare, choices, settings):
        raise NoChoiceError("several options")
    return _letter_with_text(bare, choices, settings)


def _letter_or_option(letter: str, by_text: str, choices: tuple[str, ...]) -> str:
    """A single letter may also be the text of another option: then nobody can tell."""
    known = letter in letters(choices)
    if by_text and known and by_text != letter:
        raise NoChoiceError("a letter that is also another option's text")
    if by_text:
        return by_text
    if not known:
        raise NoChoiceError(f"the letter {letter} is beyond the options")
    return letter


def _letter_with_text(bare: str, choices: tuple[str, ...], settings: Normaliser) -> str:
    match = _WITH_TEXT.fullmatch(bare)
    if match is None:
        return _bare_letter_with_option(bare, choices, settings)
    letter = (match[1] or match[2] or match[3]).upper()
    rest = match["rest"].strip(" *_.:;,-")
    if letter not in letters(choices):
        raise NoChoiceError(f"the letter {letter} is beyond the options")
    named = option_of(rest, choices, settings)
    if named and named != letter:
        raise NoChoiceError("a letter with another option's text")
    if not named and (_DENIAL.match(rest) or _names_another(rest, letter, letters(choices))):
        raise NoChoiceError("more than one option, or a denied one")
    return letter


def _bare_letter_with_option(bare: str, choices: tuple[str, ...], settings: Normaliser) -> str:
    """``B Paris`` counts only with B's own text: ``A dog`` begins with an article."""
    match = _BARE_WITH_TEXT.fullmatch(bare)
    if match and option_of(match["rest"], choices, settings) == match[1]:
        return match[1]
    raise NoChoiceError("no option")


def _names_another(rest: str, letter: str, known: str) -> bool:
    """Whether what follows a letter names another one of the options: ``(A) or (B)``."""
    alone = _ALONE.fullmatch(rest)
    named = [alone[1]] if alone else [m[1] or m[2] for m in _SECOND_LETTER.finditer(rest)]
    return any(other.upper() in known and other.upper() != letter for other in named)


def _several_options(bare: str, choices: tuple[str, ...], settings: Normaliser) -> bool:
    """Whether ``bare`` lists options by ``or``, ``and``, ``,`` or ``/``: all of them by text."""
    parts = [p for p in re.split(r"\s+(?:or|and)\s+|[,/;]\s*", bare) if p.strip()]
    if not 2 <= len(parts) <= len(choices):
        return False
    return all(option_of(part, choices, settings) for part in parts)


def option_of(text: str, choices: tuple[str, ...], settings: Normaliser) -> str:
    """
    Return the letter of the option whose text this is, empty for none.

    Exact texts come first, then folded ones; a form that several options share names none.
    """
    for form in (str.strip, partial(folded_option, settings=settings), _loose):
        wanted = form(text)
        hits = [i for i, choice in enumerate(choices) if form(choice) == wanted]
        if len(hits) == 1 and wanted:
            return letters(choices)[hits[0] : hits[0] + 1]
        if hits:
            return ""
    return ""


def folded_option(text: str, *, settings: Normaliser) -> str:
    return fold(
        text,
        casefold=settings.casefold,
        punctuation=settings.strip_punctuation,
        articles=settings.strip_articles,
    )


def _loose(text: str) -> str:
    """Drop what only decorates an option: currency signs before a number."""
    return re.sub(r"[$€£¥]\s?(?=\d)", "", fold(text))
