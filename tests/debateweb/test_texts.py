"""Differences of texts, harmless text, pages by key, and the tags that show them."""

from __future__ import annotations

import time
import unicodedata

import pytest
from django.template import Context, Template
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from debateweb.models import Workspace
from debateweb.paging import page_of
from debateweb.texts import diff_words, printable

TEXTS = st.text(alphabet=st.sampled_from("ab \n.é1"), max_size=60)


def render(source: str, **context: object) -> str:
    return Template("{% load ui %}" + source).render(Context(context))


@given(TEXTS, TEXTS)
def test_a_diff_holds_both_texts_whole(old: str, new: str) -> None:
    parts = diff_words(old, new)
    assert "".join(part.text for part in parts if part.change != "added") == old
    assert "".join(part.text for part in parts if part.change != "removed") == new


@given(TEXTS)
def test_a_text_does_not_differ_from_itself(text: str) -> None:
    assert {part.change for part in diff_words(text, text)} <= {"same"}


def test_a_diff_names_the_words_that_changed() -> None:
    found = [
        (part.change, part.text) for part in diff_words("earns 24 dollars", "earns 18 dollars")
    ]
    assert found == [("same", "earns "), ("removed", "24"), ("added", "18"), ("same", " dollars")]


@pytest.mark.parametrize("unit", ["x ", "line\n", "x"])
def test_huge_texts_are_compared_in_time(unit: str) -> None:
    old, new = unit * 200_000, "other\n" + unit * 200_000
    started = time.monotonic()
    parts = diff_words(old, new)
    assert time.monotonic() - started < 5
    assert "".join(part.text for part in parts if part.change != "removed") == new


@given(st.text(max_size=80))
def test_no_control_or_direction_character_gets_through(text: str) -> None:
    left = {unicodedata.category(c) for c in printable(text) if c not in "\n\t"}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_ordinary_text_is_shown_as_it_is() -> None:
    text = "Grüße, 你好, مرحبا – 😀\n\tx ≤ 3"
    assert printable(text) == text
    assert printable("a\u202eb\x00") == "a⟨U+202E⟩b⟨U+0000⟩"


def test_hostile_text_is_escaped_in_every_component() -> None:
    bad = "<img src=x onerror=alert(1)>\u202e"
    for source in (
        '{% include "components/_code.html" with text=bad label=bad %}',
        "{% diff bad bad bad %}",
        "{% badge bad %}",
        "{% badge 'ok' bad %}",
        "{% bar 1 2 bad %}",
        "{% table bad %}{{ bad }}{% endtable %}",
        "{% callout 'warn' bad %}{{ bad }}{% endcallout %}",
        "{% definition bad %}{{ bad }}{% enddefinition %}",
        '{% include "components/_empty.html" with title=bad text=bad url=bad button=bad %}',
        '{% include "components/_stat.html" with label=bad value=bad note=bad %}',
        '{% include "components/_progress.html" with id="p" label=bad value=1 max=2 text=bad %}',
    ):
        assert "<img" not in render(source, bad=bad), source


@pytest.mark.parametrize(
    ("status", "kind", "symbol"),
    [
        ("DONE", "ok", "✓"),
        ("FAIL", "bad", "✗"),
        ("UNKNOWN", "unknown", "?"),
        ("AWAITING_CONFIRMATION", "wait", "○"),
        ("stalled", "warn", "!"),
        ("whatever", "plain", "·"),
    ],
)
def test_a_badge_has_a_symbol_and_a_word(status: str, kind: str, symbol: str) -> None:
    shown = render("{% badge status %}", status=status)
    assert f"badge-{kind}" in shown and symbol in shown
    assert status.lower().replace("_", " ") in shown


def test_figures_have_their_units_and_dashes() -> None:
    source = (
        "{{ a|usd }} {{ b|usd }} {{ none|usd }} {{ n|number }} {{ n|number:2 }} {{ s|percent }}"
    )
    shown = render(source, a=1_250, b=12_345_678, none=None, n=1234.5, s=0.125)
    assert shown == "$0.0013 $12.35 – 1\u202f234 1\u202f234.50 12.5 %"


@pytest.mark.django_db
def test_pages_by_key_show_every_row_once_and_keep_the_filter() -> None:
    for i in range(7):
        Workspace.objects.create(name=f"w{i}")
    seen: list[str] = []
    url: str | None = "/list?kind=a"
    while url is not None:
        page = page_of(RequestFactory().get(url), Workspace.objects.all(), size=3)
        assert (page.first_url is None) == (not seen)
        assert "kind=a" in (page.next_url or page.first_url or "")
        seen += [row.name for row in page.rows]
        url = page.next_url
    assert seen == [f"w{i}" for i in range(6, -1, -1)]


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["", "x", "-1", "9" * 40, "١٢"])
def test_a_key_that_is_none_is_the_first_page(key: str) -> None:
    Workspace.objects.create(name="w")
    page = page_of(RequestFactory().get("/", {"before": key}), Workspace.objects.all())
    assert [row.name for row in page.rows] == ["w"]
