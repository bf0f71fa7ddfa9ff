"""What a label may be: fitting values pass as stored, all else is refused with its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.labelling.design import CORRECTNESS, Ask, LabelSchema, Option, Reasons
from audits.labelling.values import LabelFaultError, checked_value

WHY = Reasons(
    options=(Option(value="fact", title="A wrong fact"), Option(value="style", title="Style")),
    needed_for=("incorrect",),
)
CORRECT = LabelSchema(ask=Ask(kind="correctness", title="?", options=CORRECTNESS), reasons=WHY)
PAIR = LabelSchema(ask=Ask(kind="pairwise", title="?", abstain=False))
SCALE = LabelSchema(ask=Ask(kind="scale", title="?", scale_max=7), comment="required")
CLAIM = LabelSchema(ask=Ask(kind="claim", title="?", options=CORRECTNESS))
BELIEF = LabelSchema(ask=Ask(kind="belief", title="?"))
ITEM: dict[str, Any] = {"candidates": ("a", "b"), "claims": ("c1", "c2"), "comment": "why"}


@pytest.mark.parametrize(
    ("schema", "label", "stored"),
    [
        (CORRECT, "correct", "correct"),
        (PAIR, "b", "b"),
        (PAIR, "tie", "tie"),
        (SCALE, 7, 7),
        (CLAIM, {"c2": "correct", "c1": "incorrect"}, {"c1": "incorrect", "c2": "correct"}),
        (BELIEF, {"b": 33.3, "a": 66.7}, {"a": 66.7, "b": 33.3}),
    ],
)
def test_what_fits_is_stored(schema: LabelSchema, label: object, stored: object) -> None:
    assert checked_value(schema, {"label": label}, **ITEM) == {"label": stored, "reasons": []}


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        (CORRECT, {"label": None}, "label: nothing was chosen"),
        (CORRECT, {"label": "maybe"}, "label: has to be one of correct, incorrect, cannot_tell"),
        (CORRECT, {"label": "incorrect"}, "reasons: incorrect has to come with one"),
        (CORRECT, {"label": "correct", "reasons": ["nope"]}, "reasons: has to be one of"),
        (CORRECT, {"label": "correct", "why": 1}, "why: no such field"),
        (PAIR, {"label": "abstain"}, "label: has to be one of a, b, tie"),
        (PAIR, {"label": "a", "reasons": ["fact"]}, "reasons: this queue asks for none"),
        (SCALE, {"label": 8}, "label: has to be a whole number from 1 to 7"),
        (SCALE, {"label": True}, "label: has to be a whole number from 1 to 7"),
        (CLAIM, {"label": {"c1": "correct"}}, "has to give a verdict for each of c1, c2"),
        (CLAIM, {"label": {"c1": "correct", "c2": "?"}}, "label.c2: has to be one of"),
        (BELIEF, {"label": {"a": 50, "b": 40}}, "have to sum to 100, they sum to 90"),
        (BELIEF, {"label": {"a": float("nan"), "b": 40}}, "label.a: has to be a number"),
        (BELIEF, {"label": {"a": 150, "b": -50}}, "label.a: has to be from 0 to 100"),
        (BELIEF, [], "label: has to be an object"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    schema: LabelSchema, value: object, said: str
) -> None:
    with pytest.raises(LabelFaultError) as caught:
        checked_value(schema, value, **ITEM)
    assert said in str(caught.value)


def test_a_required_comment_is_required() -> None:
    with pytest.raises(LabelFaultError, match="comment: this queue asks for one"):
        checked_value(SCALE, {"label": 3}, comment="  ")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.sampled_from([CORRECT, PAIR, SCALE, CLAIM, BELIEF]), JSON, JSON)
def test_any_json_is_stored_or_refused_and_nothing_else_happens(
    schema: LabelSchema, label: object, reasons: object
) -> None:
    for value in (label, {"label": label, "reasons": reasons}):
        try:
            stored = checked_value(schema, value, **ITEM)
        except LabelFaultError:
            continue
        assert checked_value(schema, stored, **ITEM) == stored
