"""Yes and no (S26)."""

from __future__ import annotations

import pytest

from runs.engine.yesno import NoStanceError, read_yesno

YES = ["yes", "Yes.", "TRUE", "y", "Correct", "**Yes**", "Yes because it is",
       "\\text{Yes}", "it is true", "Yes, it is",
       "The statement is true."]  # fmt: skip
NO = ["no", "No!", "False", "n", "incorrect", "Not true", "it's false", "the claim is wrong",
      "No, the claim is false", "No - it was Rome"]  # fmt: skip
NEITHER = ["maybe", "No one knows", "Yes or no", "yes/no", "True or False", "Yes and no",
           "42", "nonsense", "Yes, but also no", "No: it is true", "not wrong",
           "yes" * 2_000]  # fmt: skip


@pytest.mark.parametrize("text", YES)
def test_yes(text: str) -> None:
    assert read_yesno(text) == "yes"


@pytest.mark.parametrize("text", NO)
def test_no(text: str) -> None:
    assert read_yesno(text) == "no"


@pytest.mark.parametrize("text", NEITHER)
def test_neither_or_both_is_refused(text: str) -> None:
    with pytest.raises(NoStanceError):
        read_yesno(text)
