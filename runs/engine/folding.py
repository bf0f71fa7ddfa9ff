"""
Folding of answer texts before they are compared (S26). Pure text work, linear in its input.

Hashes take text as given (S35); only g folds.
"""

from __future__ import annotations

import re
import unicodedata

#: Embeddings, overrides and isolates: what a person sees is then not what is counted.
BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+")
_VULGAR = re.compile("[¼-¾⅐-⅞]")
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"))
_SLASHES = str.maketrans({"\u2044": "/", "\u2215": "/", "\u00f7": "/"})

#: (what it looks like in LaTeX, what it says), applied in order.
_LATEX = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\\(?:displaystyle|left|right|big|Big)(?![A-Za-z])", ""),
        (r"\\!|\{,\}(?=\d{3})", ""),  # 1{,}234 and 1,\!234 are one number.
        (
            r"(?<=\d)\s*\\[dtc]?frac\s*\{\s*([^{}]{1,40}?)\s*\}\s*\{\s*([^{}]{1,40}?)\s*\}",
            r" \1/\2",
        ),
        (r"\\[dtc]?frac\s*\{\s*([^{}]{1,40}?)\s*\}\s*\{\s*([^{}]{1,40}?)\s*\}", r"\1/\2"),
        (r"\\[dtc]?frac\s?(\d)\s?(\d)(?!\d)", r"\1/\2"),
        (r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox|boxed|fbox)\s*\{([^{}]*)\}", r" \1 "),
        (r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![A-Za-z])", "°"),
        (r"\\(?:times|cdot)(?![A-Za-z])", "×"),
        (r"\\(?:approx|sim)(?![A-Za-z])", "≈"),
        (r"\\pounds(?![A-Za-z])", "£"),
        (r"\\(?:euro|EUR)(?![A-Za-z])", "€"),
        (r"\\q?quad(?![A-Za-z])|\\[,;: ]|~(?=\S)", " "),
        (r"\\[()\[\]]", " "),
        (r"\\([$%#&_{}])", r"\1"),
        (r"\^\{\s*([-+]?\d+)\s*\}", r"^\1"),
    )
)

_PAIRS = {"(": ")", "[": "]", "{": "}", "“": "”", "‘": "’", "«": "»"}
#: Longer texts are no wrapped answers; the bound keeps nested brackets cheap.
_MAX_WRAPPED_CHARS = 2_000
_MARKS = "*_`\"' \t\r\n"

#: Punctuation that is meaning, not decoration: signs, decimals, fractions, percent, C#.
_MEANT = re.compile(
    r"(?<![\w)])[-+](?=[.,]?\d)|(?<=\d)[.,/:](?=\d)|(?<!\w)[.](?=\d)|(?<=\d)[%]|(?<=\w)#|[+$€£¥]"
)
_ARTICLE = re.compile(r"(?:^|(?<=\s))(?:an?|the)\s+")
#: Stands for a dropped character while positions still count; folded texts hold no NUL.
_DROPPED = "\0"

_PLACEHOLDER_WORDS = frozenset(
    {"answer", "the answer", "your answer", "final answer", "your final answer", "answer here"}
    | {"your answer here", "insert answer", "number", "a number", "letter", "option", "value"}
    | {"result", "text", "x"}
)
_ELLIPSIS = re.compile(r"[.…_?\-\s]+")
_TAG = re.compile(r"<[^<>\d]{1,60}>|\{\{[^{}]{0,60}\}\}|\[[^\[\]\d]{0,40}answer[^\[\]\d]{0,40}\]")


def has_bidi_controls(text: str) -> bool:
    return not BIDI_CONTROLS.isdisjoint(text)


def visible(text: str) -> str:
    """
    Return text that PostgreSQL and canonical JSON can hold (S35).

    NUL and lone surrogates, which neither can, become visible escapes such as ``\\x00``.
    """
    text = text.replace("\x00", "\\x00")
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(text: str) -> str:
    """Return ``text`` with every run of white space made one space, trimmed."""
    return " ".join(text.split())


def unmarked(text: str) -> str:
    """Return ``text`` without the Markdown, quotes and brackets that wrap all of it."""
    while True:
        bare = text.strip(_MARKS)
        if (
            2 <= len(bare) <= _MAX_WRAPPED_CHARS
            and _PAIRS.get(bare[0]) == bare[-1]
            and _wraps(bare)
        ):
            bare = bare[1:-1]
        if bare == text:
            return bare
        text = bare


def _wraps(text: str) -> bool:
    """Whether the first bracket is closed by the last one and not before: not ``(a) (b)``."""
    depth = 0
    for i, char in enumerate(text):
        depth += (char == text[0]) - (char == text[-1])
        if depth == 0:
            return i == len(text) - 1
    return False


def _ascii_digit(char: str) -> str:
    value = unicodedata.decimal(char, None)
    return char if value is None else str(value)


def _without_format(text: str) -> str:
    """Drop invisible format characters: zero-width ones, direction marks, soft hyphens."""
    return text.translate({ord(c): None for c in set(text) if unicodedata.category(c) == "Cf"})


def _plain_characters(text: str) -> str:
    text = _SUPERSCRIPT_RUN.sub(lambda m: "^" + m.group().translate(_SUPERSCRIPTS), text)
    # NFKC would glue the digits of 1½ into 11/2, so vulgar fractions get a space first.
    text = _VULGAR.sub(lambda m: " " + m.group(), text)
    text = unicodedata.normalize("NFKC", text)
    text = _without_format(text)
    return "".join(map(_ascii_digit, text)).translate(_DASHES).translate(_SLASHES)


def plain(text: str) -> str:
    """
    Return a short answer in plain characters: one line, no LaTeX, no wrapping marks.

    Full-width and other decimal digits become ASCII, dashes before digits a minus.
    """
    text = _without_math(one_line(_plain_characters(text)))
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    return unmarked(one_line(text))


def _without_math(text: str) -> str:
    """Drop LaTeX's ``$…$`` and ``$$…$$``; a single ``$`` is the currency."""
    text = unmarked(text)
    if len(text) >= 2 and text[0] == text[-1] == "$" and text[-2] != "\\":
        return unmarked(text.removeprefix("$").removeprefix("$").rstrip("$"))
    return text


def fold(
    text: str, *, casefold: bool = True, punctuation: bool = True, articles: bool = False
) -> str:
    """
    Return the form in which two texts are compared.

    ``punctuation`` drops punctuation except where it carries meaning (a sign, a decimal point);
    ``articles`` drops English articles. Folding never empties a text that had characters.
    """
    text = unicodedata.normalize("NFKC", text)
    text = _without_format(text).translate(_DASHES)
    if casefold:
        text = text.casefold()
    folded = one_line(text)
    if punctuation:
        folded = one_line(_without_punctuation(folded)) or folded
    if articles:
        folded = _ARTICLE.sub("", folded).strip() or folded
    return folded


def _without_punctuation(text: str) -> str:
    kept = [(m.start(), m.group()) for m in _MEANT.finditer(text)]
    marks = (c for c in set(text) if unicodedata.category(c).startswith("P"))
    # Apostrophes and points close up (don't, U.S.); any other punctuation separates words.
    out = list(text.translate({ord(c): _DROPPED if c in "'’." else " " for c in marks}))
    for at, mark in kept:
        out[at] = mark
    return "".join(out).replace(_DROPPED, "")


def is_placeholder(text: str) -> bool:
    """Whether ``text`` is what a prompt shows in place of an answer: ``<answer>``, ``(X)``."""
    line = one_line(text)[:200]
    text = unmarked(line)
    if _ELLIPSIS.fullmatch(line) or _TAG.fullmatch(text) or _ELLIPSIS.fullmatch(text):
        return True
    return text.strip("()[]{}<>$.:\\ ").casefold() in _PLACEHOLDER_WORDS
