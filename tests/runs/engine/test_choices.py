"""Answers that pick an option (S26)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.choices import NoChoiceError, letters, read_choice
from runs.protocols.spec import Normaliser

CITIES = ("Paris", "London", "Rome", "New York")
G = Normaliser()

SECOND = [
    "B", "b", "(B)", "b)", "B.", "[B]", "(Ｂ)", "**B**", "Option B", "Choice (B)", "Answer: B",
    "the correct answer is B", "$\\text{B}$", "(B) London", "B. London", "B: London",
    "B - London", "B London", "Option (B): London", "London", "london.", "**London**", " LONDON ",
    "(B) because it is the largest", "B, since it rains there",
]  # fmt: skip

REFUSED = {
    "A or B": "several options",
    "A, B": "several options",
    "B/C": "several options",
    "Paris or London": "several options",
    "(A) and (B)": "several options",
    "B) or C)": "several options",
    "(A) is wrong": "denied",
    "(A), not (B)": "denied|more than one",
    "not (A)": "no option",
    "(B) Paris": "another option's text",
    "E": "beyond the options",
    "(E)": "beyond the options",
    "E. Berlin": "beyond the options",
    "A dog": "no option",
    "all of the above": "no option",
    "Berlin": "no option",
    "B" * 3_000: "longer than",
}


@pytest.mark.parametrize("text", SECOND)
def test_every_alias_of_an_option_is_its_letter(text: str) -> None:
    assert read_choice(text, CITIES, G) == "B"


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_none_several_or_unknown_options_are_refused(text: str, reason: str) -> None:
    with pytest.raises(NoChoiceError, match=reason):
        read_choice(text, CITIES, G)


def test_without_listed_options_the_letters_run_from_a_to_d() -> None:
    assert letters(()) == "ABCD"
    assert read_choice("(D) 45,X", (), G) == "D"
    with pytest.raises(NoChoiceError):
        read_choice("E", (), G)


def test_signs_and_decimals_tell_options_apart() -> None:
    assert read_choice("20", ("-20", "20"), G) == "B"
    assert read_choice("1.5", ("15", "1.5"), G) == "B"
    with pytest.raises(NoChoiceError):
        read_choice("20", ("-20", "30"), G)


def test_currency_on_only_one_side_is_no_difference() -> None:
    assert read_choice("20", ("$10", "$20"), G) == "B"


def test_a_letter_that_is_also_another_options_text_is_refused() -> None:
    with pytest.raises(NoChoiceError, match="also another option"):
        read_choice("A", ("B", "A"), G)


def test_options_that_read_alike_are_no_answer() -> None:
    with pytest.raises(NoChoiceError):
        read_choice("paris", ("Paris!", "Paris?"), G)
    assert read_choice("Paris?", ("Paris!", "Paris?"), G) == "B"


def test_case_counts_where_the_protocol_says_so() -> None:
    strict = Normaliser(casefold=False)
    assert read_choice("polish", ("Polish", "polish"), strict) == "B"


@given(st.lists(st.text("abcdefgh", min_size=2, max_size=8), min_size=2, max_size=8, unique=True))
def test_each_option_is_found_by_its_letter_and_by_its_text(options: list[str]) -> None:
    for letter, option in zip(letters(tuple(options)), options, strict=True):
        assert read_choice(f"({letter})", tuple(options), G) == letter
        assert read_choice(option.upper(), tuple(options), G) == letter


@given(st.text(max_size=40))
def test_any_text_is_one_of_the_options_or_refused(text: str) -> None:
    try:
        letter = read_choice(text, CITIES, G)
    except NoChoiceError:
        return
    assert letter in tuple("ABCD")
