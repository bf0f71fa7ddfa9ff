"""
The normaliser g (S26): from an answer as given to the value that is counted.

g is fixed before counting. It never guesses: a text that holds no single answer is INVALID with
its reason, which is no vote. The rules with examples are in docs/normaliser.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from runs.engine.choices import MAX_CHARS, NoChoiceError, letters, option_of, read_choice
from runs.engine.folding import fold, has_bidi_controls, is_placeholder, visible
from runs.engine.numbers import NotANumberError, Number, canonical, read_number
from runs.engine.refusals import abstention_or_refusal
from runs.engine.types import Answer, AnswerKind, Question
from runs.engine.yesno import NoStanceError, read_yesno
from runs.protocols.spec import Normaliser

#: A text answer longer than this is prose, which no two agents share.
MAX_TEXT_CHARS = 20_000

EMPTY = "empty"
PLACEHOLDER = "the prompt's placeholder"

Reader = Callable[[str, Question, Normaliser], str]


def normalise(raw: str, question: Question, settings: Normaliser) -> Answer:
    """
    Return g(raw): a value, an abstention, a refusal, or INVALID with the reason.

    ``settings`` are the protocol's. Nothing is raised whatever ``raw`` holds.
    """
    raw = visible(raw)
    kind, detail = _read(raw, question, settings)
    if kind is AnswerKind.VALUE:
        return Answer(raw=raw, kind=kind, value=visible(detail))
    return Answer(raw=raw, kind=kind, reason=detail)


def _read(raw: str, question: Question, settings: Normaliser) -> tuple[AnswerKind, str]:
    problem = _problem(raw, question)
    if problem:
        return AnswerKind.INVALID, problem
    if not _is_listed(raw, question, settings):
        kind = abstention_or_refusal(raw)
        if kind is not None:
            return kind, ""
    try:
        return AnswerKind.VALUE, _READERS[question.answer_type](raw, question, settings)
    except (NotANumberError, NoChoiceError, NoStanceError, _NoTextError) as exc:
        return AnswerKind.INVALID, str(exc)


def _is_listed(raw: str, question: Question, settings: Normaliser) -> bool:
    """Whether an option reads so: ``Unknown`` may be an option and is then no abstention."""
    if question.answer_type != "choice" or len(raw) > MAX_CHARS:
        return False
    return option_of(raw, question.choices, settings) != ""


def _problem(raw: str, question: Question) -> str:
    if not raw.strip():
        return EMPTY
    if has_bidi_controls(raw) and question.answer_type != "open":
        return "bidirectional control characters"
    if is_placeholder(raw) and not _is_option(raw, question):
        return PLACEHOLDER
    return ""


def _is_option(raw: str, question: Question) -> bool:
    """An option called ``X`` or ``…`` is an option, not a placeholder."""
    bare = raw.strip().strip("()[]{}.").upper()
    known = letters(question.choices) if question.answer_type == "choice" else ""
    return raw.strip() in question.choices or (len(bare) == 1 and bare in known)


class _NoTextError(ValueError):
    """The text is no answer. The message says why."""


def _number(raw: str, question: Question, settings: Normaliser) -> str:
    number = read_number(raw, strip_units=settings.strip_units)
    return canonical(_counted(number, as_ratio=_in_percent(question)))


def _counted(number: Number, *, as_ratio: bool) -> Fraction:
    """``50%`` counts as 50, unless the reference carries %: then it is the ratio 0.5."""
    return number.value / 100 if number.percent and as_ratio else number.value


def _in_percent(question: Question) -> bool:
    """Whether a reference carries %, so that a percent has to be told from a plain number."""
    return any(number.percent for number in _reference_numbers(question))


def _reference_numbers(question: Question) -> list[Number]:
    found = []
    for text in question.reference:
        try:
            found.append(read_number(text))
        except NotANumberError:
            continue  # An unreadable reference is the importer's to report; it matches nothing.
    return found


def _choice(raw: str, question: Question, settings: Normaliser) -> str:
    return read_choice(raw, question.choices, settings)


def _yesno(raw: str, question: Question, settings: Normaliser) -> str:
    return read_yesno(raw)


def _text(raw: str, question: Question, settings: Normaliser) -> str:
    if len(raw) > MAX_TEXT_CHARS:
        raise _NoTextError(f"longer than {MAX_TEXT_CHARS} characters")
    value = fold(
        raw,
        casefold=settings.casefold,
        punctuation=settings.strip_punctuation,
        articles=settings.strip_articles,
    )
    if not value:
        raise _NoTextError(EMPTY)
    return value


def _open(raw: str, question: Question, settings: Normaliser) -> str:
    """Open answers are counted by their exact text."""
    return raw.strip()


_READERS: dict[str, Reader] = {
    "number": _number,
    "choice": _choice,
    "yesno": _yesno,
    "text": _text,
    "open": _open,
}


def reference_values(question: Question, settings: Normaliser) -> tuple[str, ...]:
    """Return g of every readable reference, each once, in the order given."""
    values = (normalise(text, question, settings) for text in question.reference)
    return tuple(dict.fromkeys(a.value for a in values if a.is_vote))


def is_correct(answer: Answer, question: Question, settings: Normaliser) -> bool | None:
    """
    Return whether ``answer`` is right; None where nothing can say so.

    None without a readable reference and for open questions. A number is right within
    ``settings.number_tolerance`` of a reference, in the reference's unit (percentage points where
    it carries %). The tolerance is used here only: counting is by exact value.
    """
    if question.answer_type == "open":
        return None
    references = reference_values(question, settings)
    if not references:
        return None
    if not answer.is_vote:
        return False
    if question.answer_type != "number":
        return answer.value in references
    tolerance = Fraction(settings.number_tolerance) / (100 if _in_percent(question) else 1)
    value = Fraction(answer.value)
    return any(abs(value - Fraction(reference)) <= tolerance for reference in references)
