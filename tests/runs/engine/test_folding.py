"""Folding of texts before they are compared (S26)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.folding import fold, is_placeholder, plain, unmarked, visible


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("**`x`**", "x"),
        ("((x))", "x"),
        ("(a) (b)", "(a) (b)"),
        ("“x”", "x"),
        ("\\text{ x } \\, y", "x y"),
        ("$$x$$", "x"),
        ("\\(x\\)", "x"),
        ("10⁶ m²", "10^6 m^2"),
        ("2½", "2 1/2"),
    ],
)
def test_marks_around_an_answer_are_dropped(text: str, bare: str) -> None:
    assert plain(text) == bare


@given(st.text(max_size=60), st.booleans(), st.booleans())
def test_a_folded_text_is_one_trimmed_line_and_never_emptied(
    text: str, casefold: bool, punctuation: bool
) -> None:
    once = fold(text, casefold=casefold, punctuation=punctuation)
    assert once == " ".join(once.split())
    assert bool(once) == bool(fold(text, casefold=False, punctuation=False))


@given(st.text(st.characters(), max_size=60))
def test_visible_text_is_stable_and_holds_neither_nul_nor_surrogates(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    shown.encode("utf-8")
    assert "\x00" not in shown


@pytest.mark.parametrize("text", ["xylophone", "the answer is 4", "<b>4</b>", "answer 4", "[4]"])
def test_a_real_answer_is_no_placeholder(text: str) -> None:
    assert not is_placeholder(text)


def test_deep_brackets_are_no_burden() -> None:
    assert len(unmarked("(" * 100_000 + ")" * 100_000)) > 0
