"""Environment variables are read once, typed, and wrong ones are named."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from debateweb import env

NAME = "DEBATEWEB_TEST_VALUE"


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NAME, raising=False)
    monkeypatch.delenv(f"{NAME}_FILE", raising=False)


def test_a_value_may_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("42\n")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    assert env.env_int(NAME, 1) == 42


def test_a_file_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"{NAME}_FILE", "/nowhere/secret")
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE='/nowhere/secret'"):
        env.env_optional(NAME)


@pytest.mark.parametrize(
    ("content", "words"), [(b" \n", "is empty"), (b"\xff\xfe", "is no text in UTF-8")]
)
def test_a_file_that_gives_no_value_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "secret").write_bytes(content)
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "secret"))
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE='.*' {words}"):
        env.env_optional(NAME)


def test_both_ways_at_once_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(NAME, "a")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "b"))
    with pytest.raises(ImproperlyConfigured, match="set one"):
        env.env_optional(NAME)


@pytest.mark.parametrize("raw", ["", "x", "1.5", "1e3"])
def test_what_is_no_integer_is_said(monkeypatch: pytest.MonkeyPatch, raw: str) -> None:
    monkeypatch.setenv(NAME, raw)
    with pytest.raises(ImproperlyConfigured, match="is not an integer"):
        env.env_int(NAME, 1)


def test_an_integer_out_of_range_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "70000")
    with pytest.raises(ImproperlyConfigured, match="not between 1 and 65535"):
        env.env_int(NAME, 8000, low=1, high=65535)


@pytest.mark.parametrize(("raw", "value"), [("1", True), ("Yes", True), ("off", False)])
def test_truth_has_several_words(monkeypatch: pytest.MonkeyPatch, raw: str, value: bool) -> None:
    monkeypatch.setenv(NAME, raw)
    assert env.env_bool(NAME, default=not value) is value


def test_neither_true_nor_false_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "maybe")
    with pytest.raises(ImproperlyConfigured, match="neither true nor false"):
        env.env_bool(NAME, default=True)


def test_lists_lose_blanks_and_empty_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, " a, ,b,")
    assert env.env_list(NAME, []) == ["a", "b"]


def test_a_choice_outside_the_choices_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "prod")
    with pytest.raises(ImproperlyConfigured, match="none of development, production"):
        env.env_choice(NAME, "development", ("development", "production"))


def test_a_database_url_gives_every_part() -> None:
    found = env.database_from_url(
        "postgresql://me:p%40ss@db.example:5433/de%62ates?sslmode=require"
    )
    assert found == {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "debates",
        "USER": "me",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": "5433",
        "OPTIONS": {"sslmode": "require"},
    }


def test_a_database_url_may_name_a_socket_folder() -> None:
    found = env.database_from_url("postgres://me@/debates?host=/run/pg")
    assert (found["HOST"], found["OPTIONS"]) == ("/run/pg", {})


@pytest.mark.parametrize(
    "url",
    ["sqlite:///x", "mysql://u:hush@h/n", "postgresql://u:hush@h", "postgresql://u:hush@h:x/n"],
)
def test_a_wrong_database_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        env.database_from_url(url)
    assert "hush" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_as_database_url_is_taken_or_refused(url: str) -> None:
    try:
        found = env.database_from_url(url)
    except ImproperlyConfigured:
        return
    assert found["NAME"]
