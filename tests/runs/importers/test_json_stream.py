"""The outline of large JSON files: where members begin and end, on which lines."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.importers import json_stream
from runs.importers.faults import FaultLog
from runs.importers.json_stream import members
from runs.importers.sources import Source

unhurried = settings(deadline=None)  # Machines are busy; time is no property here.


def split(text: str | bytes) -> tuple[list[tuple[int, str]], list[str]]:
    raw = text if isinstance(text, bytes) else text.encode()
    log = FaultLog("f")
    found = [
        (m.line, m.text.strip()) for m in members(Source(io.BytesIO(raw), "f", owned=True), log)
    ]
    return found, [str(fault) for fault in log.kept]


def test_members_are_found_with_their_lines() -> None:
    assert split('[\n1, "a,]\\"",\n\n{"b": [2,\n3]}\n]') == (
        [(2, "1"), (2, '"a,]\\""'), (4, '{"b": [2,\n3]}')],
        [],
    )


def test_objects_written_one_after_the_other_are_one_stream() -> None:
    assert split('{"a": 1, "b": 2}{"c": 3}\n{"d": 4}\n') == (
        [(1, '"a": 1'), (1, '"b": 2'), (1, '"c": 3'), (2, '"d": 4')],
        [],
    )


@pytest.mark.parametrize("empty", ["", " \n", "[]", "{ }", "[\n]"])
def test_nothing_yields_nothing(empty: str) -> None:
    assert split(empty) == ([], [])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[1,\n2", "f:2: json: the file ends inside an array or object"),
        ('["a', "f:1: json: the file ends inside an array or object"),
        ("[1}", 'f:1: json: a "}" stands where none can'),
        ("[1],[2]", 'f:1: json: a "," stands where none can'),
        ("]", 'f:1: json: a "]" stands where none can'),
        ("x [1]", "f:1: json: text stands outside of any array or object"),
        ("[1]\nx", "f:2: json: text stands outside of any array or object"),
        (b"[1,\n\xff]", "f:2: encoding: 0xff is not UTF-8; the file looks like Windows-1252"),
    ],
)
def test_a_broken_outline_is_one_fault(text: str | bytes, fault: str) -> None:
    _, faults = split(text)
    assert len(faults) == 1
    assert faults[0].startswith(fault)


def test_a_trailing_comma_leaves_an_empty_member_to_be_refused() -> None:
    assert split("[1,]")[0] == [(1, "1"), (1, "")]


@unhurried
@given(
    st.lists(
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=8,
        )
    ),
    st.sampled_from([None, 2]),
    st.integers(1, 7),
)
def test_members_are_the_same_whatever_the_layout_and_chunks(
    values: list[object], indent: int | None, chunk_bytes: int
) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raw = json.dumps(values, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "_CHUNK_BYTES", chunk_bytes)
        found, faults = split(raw)
    assert faults == []
    assert [json.loads(member) for _, member in found] == values
