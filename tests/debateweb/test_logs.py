"""Logs are JSON lines without secrets."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured

from debateweb import logs


def formatted(message: str, **extra: object) -> dict[str, object]:
    record = logging.makeLogRecord({"name": "t", "levelname": "INFO", "msg": message, **extra})
    body: dict[str, object] = json.loads(logs.JsonFormatter().format(record))
    return body


def test_a_line_holds_time_level_logger_message_and_extras() -> None:
    body = formatted("round done", run_id=7)
    assert (body["level"], body["logger"], body["message"]) == ("INFO", "t", "round done")
    assert body["run_id"] == 7
    assert str(body["at"]).endswith("+00:00")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hush-hush@db/x",
        "Authorization: Bearer hush-hush",
        "key sk-hush-hush-hush",
        "GET /welcome/hush-hush",
    ],
)
def test_known_forms_of_secrets_are_taken_out(text: str) -> None:
    assert "hush-hush" not in str(formatted(text)["message"])


def test_values_of_secret_variables_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abc-def-0123456789")
    assert formatted("it was abc-def-0123456789 !")["message"] == "it was [secret] !"


def test_a_traceback_is_one_field() -> None:
    try:
        int("no")
    except ValueError:
        body = formatted("failed", exc_info=sys.exc_info())
    assert "ValueError: invalid literal" in str(body["traceback"])


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="DEBATEWEB_LOG_LEVEL"):
        logs.configuration("LOUD")
