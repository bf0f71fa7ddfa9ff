from __future__ import annotations

import asyncio

import pytest

from runs.engine.types import CallStatus
from runs.providers.base import Origin, ProviderReply, ProviderRequest, Usage
from runs.providers.recorded import RecordedProvider, RecordedReply, RecordKey

REPLIES = {
    ("q", "a", 0): RecordedReply("It is \ud800 4.", usage=Usage(10, 0, 5, 0)),
    ("q", "a", 1): RecordedReply(None),
    ("q", "b", 0): RecordedReply(None, status=CallStatus.TIMEOUT, error_class="timeout"),
    ("q", "b", 1): RecordedReply("It would", finish_reason="length"),
}


def reply(agent: str, t: int) -> ProviderReply:
    return given(agent, t, REPLIES)


def given(agent: str, t: int, replies: dict[RecordKey, RecordedReply]) -> ProviderReply:
    origin = Origin(question_hash="q", question_id="gsm-1", agent_id=agent, t=t)
    request = ProviderRequest("recorded:log", (), 10, 1.0, origin=origin)
    return asyncio.run(RecordedProvider(replies).complete(request))


def test_a_recorded_reply_is_given_as_it_was() -> None:
    got = reply("a", 0)
    assert got.status is CallStatus.SUCCEEDED
    assert got.raw == b"It is \xed\xa0\x80 4."
    assert (got.finish_reason, got.billed) == ("stop", "no")
    assert got.usage == Usage(10, 0, 5, 0)
    assert reply("a", 0) == got


def test_how_a_recorded_call_ended_is_kept() -> None:
    assert reply("b", 1).finish_reason == "length"
    assert (reply("b", 0).status, reply("b", 0).error_class) == (CallStatus.TIMEOUT, "timeout")
    assert (reply("a", 1).status, reply("a", 1).raw) == (CallStatus.SUCCEEDED, b"")


@pytest.mark.parametrize(
    ("status", "call", "finish_reason"),
    [
        ("INVALID", CallStatus.SUCCEEDED, "stop"),
        ("TRUNCATED", CallStatus.SUCCEEDED, "length"),
        ("FILTERED", CallStatus.SUCCEEDED, "content_filter"),
        ("FAILED", CallStatus.FAILED, ""),
        ("CANCELLED", CallStatus.CANCELLED, ""),
        ("strange", CallStatus.FAILED, ""),
    ],
)
def test_a_status_of_a_file_becomes_the_end_of_a_call(
    status: str, call: CallStatus, finish_reason: str
) -> None:
    got = given("a", 0, {("q", "a", 0): RecordedReply("It is", status=status)})
    assert (got.status, got.finish_reason) == (call, finish_reason)
    assert got.raw == (b"It is" if call is CallStatus.SUCCEEDED else b"")


@pytest.mark.parametrize("status", ["INACTIVE", "SKIPPED_BUDGET", "NOT_SCHEDULED"])
def test_where_no_call_was_made_there_is_no_reply(status: str) -> None:
    got = given("a", 0, {("q", "a", 0): RecordedReply(None, status=status)})
    assert got.error_class == "not_recorded"


def test_what_is_not_in_the_log_is_never_made_up() -> None:
    got = reply("c", 0)
    assert (got.status, got.error_class, got.billed) == (CallStatus.FAILED, "not_recorded", "no")
    assert got.error_detail == "the log has no reply of agent c at t = 0 on question gsm-1"
    assert not got.transient


def test_recorded_output_is_marked() -> None:
    assert RecordedProvider.marked == "recorded"
