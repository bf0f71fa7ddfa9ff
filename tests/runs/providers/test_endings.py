from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.engine.types import CallStatus
from runs.providers import endings
from runs.providers.base import ProviderReply, Usage
from runs.providers.litellm_provider import failed_by
from runs.providers.openai_compatible import parse_completion


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("Thu, 01 Jan 1970 00:02:00 GMT", 20.0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        ("soon", None),
        ("inf", None),
        ("nan", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float | None) -> None:
    assert endings.retry_after_seconds(value, now_seconds=100.0) == seconds


@given(st.text(max_size=80))
def test_any_retry_after_is_read_or_ignored(value: str) -> None:
    seconds = endings.retry_after_seconds(value, now_seconds=0.0)
    assert seconds is None or (seconds >= 0 and math.isfinite(seconds))


@pytest.mark.parametrize(
    ("status", "body", "error_class", "billed"),
    [
        (400, '{"error": {"code": "context_length_exceeded"}}', "context_overflow", "no"),
        (400, "the request exceeds the available context size", "context_overflow", "no"),
        (413, "prompt is too long: 9 tokens > 8 maximum", "context_overflow", "no"),
        (400, '{"error": {"code": "content_filter"}}', "content_filter", "maybe"),
        (400, "bad", "bad_request", "no"),
        (422, "bad", "bad_request", "no"),
        (402, "pay", "payment_required", "no"),
        (408, "slow", "timeout", "maybe"),
        (418, "tea", "bad_request", "no"),
        (307, "", "redirected", "no"),
        (502, "<html>", "server_error", "maybe"),
        (529, "overloaded", "server_error", "maybe"),
    ],
)
def test_an_http_status_is_sorted_by_what_it_means(
    status: int, body: str, error_class: str, billed: str
) -> None:
    ending = endings.http_ending(status, body)
    assert (ending.error_class, ending.billed) == (error_class, billed)


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefGHIJ123.",
        "Authorization: Bearer abcdefGHIJ123",
        '{"api_key": "abcdefGHIJ123"}',
        "token=abcdefGHIJ123",
        "your key abcdefGHIJ123 is old",
    ],
)
def test_keys_are_redacted(text: str) -> None:
    line = endings.one_line(text, secrets=["abcdefGHIJ123"])
    assert "abcdefGHIJ123" not in line
    assert "[redacted]" in line


@given(st.text(st.characters(exclude_categories=[]), max_size=2000))
def test_a_detail_is_one_short_printable_line(text: str) -> None:
    line = endings.one_line(text)
    assert len(line) <= endings.MAX_DETAIL_CHARS
    assert line.isprintable()
    assert line.encode().decode() == line  # No lone surrogate is left.


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
completions = st.fixed_dictionaries(
    {},
    optional={
        "model": json_values,
        "system_fingerprint": json_values,
        "usage": json_values
        | st.fixed_dictionaries(
            {"prompt_tokens": json_values, "completion_tokens": json_values},
            optional={"prompt_tokens_details": json_values},
        ),
        "choices": json_values
        | st.lists(
            json_values
            | st.fixed_dictionaries(
                {"message": json_values | st.fixed_dictionaries({"content": json_values})},
                optional={"finish_reason": json_values},
            ),
            max_size=2,
        ),
    },
)


def assert_storable(reply: ProviderReply) -> None:
    for text in (reply.error_detail, reply.finish_reason, reply.model_version, reply.error_class):
        assert text.isprintable()
        assert text.encode() is not None
    assert reply.status in {CallStatus.SUCCEEDED, CallStatus.FAILED}


@given(completions)
def test_any_json_body_gives_a_reply(body: object) -> None:
    assert_storable(parse_completion(json.dumps(body).encode(), 0.1))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_reply(body: bytes) -> None:
    assert_storable(parse_completion(body, 0.1))


def test_hostile_counts_are_not_believed() -> None:
    usage = {"prompt_tokens": -1, "completion_tokens": 2**60}
    body = {"choices": [{"message": {"content": "x"}}], "usage": usage}
    assert parse_completion(json.dumps(body).encode(), 0.1).usage == Usage()


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "Final "}, {"type": "image"}, {"type": "text", "text": "1"}]
    body = {"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]}
    assert parse_completion(json.dumps(body).encode(), 0.1).raw == b"Final 1"


class MidStreamFallbackError(Exception):
    """Named as LiteLLM's own."""


class ContextWindowExceededError(Exception):
    """Named as LiteLLM's own."""


class StatusError(Exception):
    status_code = 529


@pytest.mark.parametrize(
    ("exc", "error_class"),
    [
        (MidStreamFallbackError("cut"), "connection_lost"),
        (ContextWindowExceededError("long"), "context_overflow"),
        (StatusError("overloaded"), "server_error"),
        (KeyError("x"), "internal_error"),
        (TimeoutError(), "timeout"),
    ],
)
def test_a_litellm_exception_without_a_response_is_sorted_by_cause(
    exc: Exception, error_class: str
) -> None:
    assert failed_by(exc, 0.1).error_class == error_class
