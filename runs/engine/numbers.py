"""
Numbers as people and models write them, read exactly (S26). No float anywhere.

The table of forms is in docs/normaliser.md. Whatever holds a second number, an alternative or an
expression that is not one number is refused rather than guessed at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from runs.engine.folding import plain

MAX_CHARS = 1_000
MAX_DIGITS = 200
MAX_EXPONENT = 300

_CURRENCY = "$€£¥₹₩₽"
_CODES = "USD|EUR|GBP|JPY|CHF|CNY|INR|CAD|AUD|NZD|HKD|SGD|SEK|NOK|DKK|KRW|BRL|MXN|Rs"
_TOKEN = r"(?:\d{1,3}(?:[ ]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,'_]\d+)*|[.]\d+)"
_SCALES = {
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "mn": 6,
    "billion": 9,
    "bn": 9,
    "trillion": 12,
    "k": 3,
    "m": 6,
    "b": 9,
}

_QUANTITY = re.compile(
    rf"""
    (?P<sign>[-+])?[ ]?(?:(?P<money>[{_CURRENCY}])|(?:US|C|A|NZ|HK|S)\$|(?:{_CODES})\b[.]?)?[ ]?
    (?P<sign2>(?<![-+\d])[-+])?
    (?P<whole>{_TOKEN})
    (?:
        [eE](?P<exp>[-+]?\d+)
      | [ ]?[×x*][ ]?10[ ]?\^[ ]?\(?(?P<power>[-+]?\d+)\)?
      | \^\(?(?P<ten>[-+]?\d+)\)?
      | [ ](?P<num>\d+)[ ]?/[ ]?(?P<den>\d+)
      | [ ]?/[ ]?(?P<over>{_TOKEN})
    )?
    (?:[ ]?(?P<scale>hundred|thousand|million|billion|trillion|bn|mn)\b|(?P<letter>[kKMB])\b(?!/))?
    (?:[ ]?(?P<percent>%|percent\b|per[ ]cent\b|pct\b))?
    """,
    re.VERBOSE,
)
_LEADING_WORDS = re.compile(
    r"(?:(?:exactly|about|approximately|approx[.]?|around|roughly|nearly|only|just|is|a total of|"
    r"≈|~|=)[ ]?){1,3}",
    re.IGNORECASE,
)
_ARITHMETIC = re.compile(rf"[\d\s+\-*/×x.,%^(){_CURRENCY}]*")
_LABEL = re.compile(r"[^\d,;=]{1,60}")
_REMARK = re.compile(r"[ ]\((?![^()]*\bor\b)[^()]{0,200}\)$")
_UNIT = re.compile(rf"(?:per |[-/]?[^\W\d_]|[°µ{_CURRENCY}\"'])[^\d=+*^<>|\\√!?]{{0,60}}")
_UNIT_POWERS = re.compile(r"(?<=[A-Za-z])(?:[ ]?\^-?[123]|[23])(?![\d.,])")
_NO_UNIT = re.compile(
    r"(?:[xyzijn]|pi|π|e)\b|.*\b(?:or|plus|minus|times|squared|cubed|factorial|half|halves|"
    r"a (?:third|quarter)|maybe|not|wrong|incorrect)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"\s*(?:[+*×x^√!:=<>|\\/]|-\s*[\d$(]|\s(?:or|to|and|plus|minus|times)\b.{0,40}?\d|or\b.{0,40}?\d"
    r"|[xyzijnπ]\b|pi\b|,\s*\d|\(?\s*(?:or|not|wrong)\b)",
    re.IGNORECASE,
)

_THOUSANDS = {
    ",": re.compile(r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3}"),
    ".": re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+"),
}
_OTHER_GROUPS = re.compile(r"\d{1,3}(?:[ '_]\d{3})+(?:[.,]\d+)?")


class NotANumberError(ValueError):
    """The text is not one number. The message says why."""


@dataclass(frozen=True, slots=True)
class Number:
    """An exact number. ``percent`` says that it was written as one: ``50%`` is value 50."""

    value: Fraction
    percent: bool = False


def canonical(value: Fraction) -> str:
    """
    Return the one text of a number: equal numbers have equal texts.

    An integer, else a terminating decimal, else a reduced fraction ``p/q``.
    """
    if value.denominator == 1:
        return str(value.numerator)
    places = _decimal_places(value.denominator)
    if places is None:
        return f"{value.numerator}/{value.denominator}"
    digits = str(abs(value.numerator) * 10**places // value.denominator).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def _decimal_places(denominator: int) -> int | None:
    """Return how many decimals 1/denominator needs, None where they never end."""
    counts = {2: 0, 5: 0}
    for prime in counts:
        while denominator % prime == 0:
            denominator //= prime
            counts[prime] += 1
    return max(counts.values()) if denominator == 1 else None


def read_number(text: str, *, strip_units: bool = True) -> Number:
    """
    Return the one number that ``text`` is.

    Units, currency and a remark in parentheses are dropped where ``strip_units``; a percent sign
    is kept as ``percent``. Raises NotANumberError for anything else, with the reason.
    """
    if len(text) > MAX_CHARS:
        raise NotANumberError(f"longer than {MAX_CHARS} characters")
    bare = _right_hand_side(plain(text).rstrip(".,;: "))
    match = _QUANTITY.match(bare, _prefix_end(bare))
    if match is None:
        reason = "text before the number" if any(c.isdigit() for c in bare) else "no number"
        raise NotANumberError(reason)
    _check_rest(bare[match.end() :], match, strip_units=strip_units)
    return _number(match)


def leading_quantity(text: str) -> str | None:
    """
    Return the number at the start of running text, as written, or None.

    ``18 dollars because 9 * 2 = 18`` gives ``18``. None where the text goes on as an expression,
    a range or an alternative: ``18 or 20``.
    """
    bare = plain(text[:MAX_CHARS]).rstrip(".,;: ")
    match = _QUANTITY.match(bare, _prefix_end(bare))
    if match is None or _GOES_ON.match(bare, match.end()):
        return None
    tail = re.match(r"[^.;\n]*", bare[match.end() :])
    if tail is not None and re.search(r"\bor\b[^.;]*\d", tail.group()):
        return None
    return match.group().strip()


def _prefix_end(text: str) -> int:
    prefix = _LEADING_WORDS.match(text)
    return prefix.end() if prefix else 0


def _right_hand_side(text: str) -> str:
    """Return what follows the last ``=`` after a label or arithmetic: ``x = 18``, ``9*2 = 18``."""
    left, sign, right = text.replace("≈", "=").rpartition("=")
    if not sign or not right.strip():
        return text
    whole = left.replace("=", " ")
    if _ARITHMETIC.fullmatch(whole) or _LABEL.fullmatch(left):
        return right.strip()
    raise NotANumberError("an equation with several parts")


def _check_rest(rest: str, match: re.Match[str], *, strip_units: bool) -> None:
    rest = _REMARK.sub("", " " + rest).strip().rstrip(".,;: ") if strip_units else rest.strip()
    if not rest:
        if not strip_units and (match["money"] or re.search("[A-Za-z]", match.group())):
            raise NotANumberError("a unit")
        return
    if not strip_units:
        raise NotANumberError("a unit")
    unit = _UNIT_POWERS.sub("", rest)
    if any(c.isdigit() for c in unit):
        raise NotANumberError("more than one number")
    if not _UNIT.fullmatch(unit) or _NO_UNIT.match(unit):
        raise NotANumberError("an expression or an alternative")


def _number(match: re.Match[str]) -> Number:
    if match["sign"] and match["sign2"]:
        raise NotANumberError("two signs")
    value = _decimal(match["whole"])
    value = _with_tail(value, match)
    value *= Fraction(10) ** _scale(match)
    if "-" in (match["sign"], match["sign2"]):
        value = -value
    return Number(value, percent=match["percent"] is not None)


def _with_tail(value: Fraction, match: re.Match[str]) -> Fraction:
    for group in ("exp", "power"):
        if match[group]:
            return value * Fraction(10) ** _exponent(match[group])
    if match["ten"]:
        if match["whole"] != "10":
            raise NotANumberError("a power")
        return Fraction(10) ** _exponent(match["ten"])
    if match["num"]:
        return value + _divided(_decimal(match["num"]), _decimal(match["den"]))
    if match["over"]:
        return _divided(value, _decimal(match["over"]))
    return value


def _divided(above: Fraction, below: Fraction) -> Fraction:
    if below == 0:
        raise NotANumberError("a division by zero")
    return above / below


def _scale(match: re.Match[str]) -> int:
    letter = match["letter"]
    if letter:
        # 5M may be five metres or a model's size; only money makes it millions. 5k is 5,000.
        if letter in "MB" and not match["money"]:
            raise NotANumberError("a unit that may be a scale")
        return _SCALES[letter.lower()]
    return _SCALES[match["scale"]] if match["scale"] else 0


def _exponent(text: str) -> int:
    if len(text) > 5 or abs(int(text)) > MAX_EXPONENT:
        raise NotANumberError(f"an exponent beyond {MAX_EXPONENT}")
    return int(text)


def _decimal(token: str) -> Fraction:
    """Return the number of one token, its separators resolved. See docs/normaliser.md."""
    if sum(c.isdigit() for c in token) > MAX_DIGITS:
        raise NotANumberError(f"more than {MAX_DIGITS} digits")
    if any(c in token for c in " '_"):
        if not _OTHER_GROUPS.fullmatch(token):
            raise NotANumberError("misplaced separators")
        token = re.sub("[ '_]", "", token).replace(",", ".")
    return Fraction(_resolved(token))


def _resolved(token: str) -> str:
    """Return ``token`` with at most one separator, the decimal point."""
    commas, points = token.count(","), token.count(".")
    if commas and points:
        decimal = max(",.", key=token.rindex)
        group = "." if decimal == "," else ","
        whole, _, part = token.rpartition(decimal)
        if not _THOUSANDS[group].fullmatch(whole):
            raise NotANumberError("misplaced separators")
        return whole.replace(group, "") + "." + part
    if commas:
        if _THOUSANDS[","].fullmatch(token):
            return token.replace(",", "")
        if commas == 1:
            return token.replace(",", ".")
    elif points > 1 and _THOUSANDS["."].fullmatch(token):
        return token.replace(".", "")
    if commas + points > 1:
        raise NotANumberError("misplaced separators")
    return token
