"""Numbers as written, read exactly (S26)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.numbers import NotANumberError, canonical, leading_quantity, read_number

READ = {
    # separators
    "1,234": "1234",
    "1,234.5": "1234.5",
    "1.234,5": "1234.5",
    "1.234": "1.234",
    "1,5": "1.5",
    "0,125": "0.125",
    "1.234.567": "1234567",
    "1 234 567": "1234567",
    "1'234": "1234",
    "1_000": "1000",
    "1,00,000": "100000",
    "22{,}500": "22500",
    "1\\,234": "1234",
    # decimals
    "5.": "5",
    "1.0": "1",
    "1.000": "1",
    ".5": "0.5",
    "-.5": "-0.5",
    # signs
    "+7": "7",
    "−5": "-5",
    "–5": "-5",
    "-$5": "-5",
    "$-5": "-5",
    # fractions
    "3/4": "0.75",
    "-3/4": "-0.75",
    "1/3": "1/3",
    "1 1/2": "1.5",
    "½": "0.5",
    "1½": "1.5",
    "\\frac{1}{2}": "0.5",
    "1\\frac{1}{2}": "1.5",
    "\\dfrac{3}{4}": "0.75",
    # powers of ten
    "1.2e3": "1200",
    "1.2E+3": "1200",
    "1.2 × 10^3": "1200",
    "1.2 \\times 10^{3}": "1200",
    "1.2 × 10⁻¹": "0.12",
    "10^6": "1000000",
    # money and units
    "$18": "18",
    "18€": "18",
    "USD 18": "18",
    "18 USD": "18",
    "US$18": "18",
    "$1,234.50 per month": "1234.5",
    "18 dollars": "18",
    "5 km/h": "5",
    "5 m^2": "5",
    "5 m²": "5",
    "72^\\circ": "72",
    "52\\,\\text{WPM}": "52",
    "5-mile": "5",
    "18 (9 eggs x 2)": "18",
    "$5M": "5000000",
    "5k": "5000",
    "-9.9 billion": "-9900000000",
    # percent
    "50%": "50",
    "50\\%": "50",
    "50 percent": "50",
    # what surrounds an answer
    "$52$": "52",
    "$\\$52$": "52",
    "**18**": "18",
    "(18)": "18",
    "x = 18": "18",
    "9*2 = $18": "18",
    "≈ 18": "18",
    "about 18": "18",
    "18.": "18",
    # other digits
    "１２": "12",
    "٣": "3",
    "4\u200b2": "42",
}

REFUSED = {
    "": "no number",
    "three": "no number",
    "NaN": "no number",
    "infinity": "no number",
    "18 or 20": "more than one number",
    "18-20": "more than one number",
    "12 - 3": "more than one number",
    "5 feet 3 inches": "more than one number",
    "5:30": "more than one number",
    "3/4/5": "more than one number",
    "0x10": "more than one number",
    "2π": "an expression or an alternative",
    "2 and a half": "an expression or an alternative",
    "18!": "an expression or an alternative",
    "9+John's age": "an expression or an alternative",
    "18 is wrong": "an expression or an alternative",
    "2^10": "a power",
    "1/0": "a division by zero",
    "1 1/0": "a division by zero",
    "1,2,3": "misplaced separators",
    "1,234,56": "misplaced separators",
    "1.2.3": "misplaced separators",
    "5M": "a unit that may be a scale",
    "y=3, x=4": "an equation with several parts",
    "--5": "text before the number",
    "call 911": "text before the number",
    "1e999999": "an exponent beyond 300",
    "1e" + "9" * 500: "an exponent beyond 300",
    "9" * 201: "more than 200 digits",
    "9" * 100_000: "longer than 1000 characters",
}


@pytest.mark.parametrize(("text", "value"), READ.items())
def test_a_number_has_one_value_however_it_is_written(text: str, value: str) -> None:
    assert canonical(read_number(text).value) == value


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_what_is_not_one_number_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(NotANumberError, match=reason.replace("(", r"\(")):
        read_number(text)


def test_a_percent_sign_is_kept_apart_from_the_value() -> None:
    assert read_number("50%").percent
    assert read_number("50 per cent of the eggs").percent
    assert not read_number("50").percent


@pytest.mark.parametrize("text", ["18 dollars", "$18", "18 km"])
def test_a_unit_is_refused_where_the_protocol_keeps_units(text: str) -> None:
    with pytest.raises(NotANumberError, match="a unit"):
        read_number(text, strip_units=False)
    assert read_number("1,234.0", strip_units=False).value == 1234


@given(st.fractions(max_denominator=10_000))
def test_equal_numbers_have_equal_texts_and_others_have_not(value: Fraction) -> None:
    text = canonical(value)
    assert Fraction(text) == value
    assert canonical(Fraction(text)) == text


@given(st.integers(-(10**30), 10**30), st.integers(0, 12))
def test_a_decimal_is_read_back_exactly_with_and_without_thousands(units: int, places: int) -> None:
    value = Fraction(units, 10**places)
    whole, _, part = f"{abs(units):0{places + 1}d}", "", ""
    if places:
        whole, part = whole[:-places], whole[-places:]
    sign = "-" if units < 0 else ""
    point = f".{part}" if part else ""
    assert read_number(f"{sign}{whole}{point}").value == value
    assert read_number(f"{sign}{int(whole):,}{point}").value == value


@given(st.text(max_size=60))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    try:
        value = read_number(text).value
    except NotANumberError:
        return
    assert any(c.isnumeric() for c in text)
    assert Fraction(canonical(value)) == value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("18 dollars because 9 * 2 = 18", "18"),
        ("$18, which is what she makes in 2 days", "$18"),
        ("18 or 20", None),
        ("18 - 20", None),
        ("9 * 2", None),
        ("not 18", None),
        ("2\\pi", None),
    ],
)
def test_running_text_gives_its_leading_number_unless_it_goes_on(
    text: str, found: str | None
) -> None:
    assert leading_quantity(text) == found
