"""Files that are damaged or meant to harm: one line each, no traceback, nothing imported."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.importers import sources
from runs.importers.faults import MAX_FAULTS_SHOWN, Fault, ImportFaults
from runs.importers.registry import DEBATE_READERS, QUESTION_READERS, read_debates, read_questions
from tests.runs.importers.helpers import (
    a_debate,
    a_question,
    lines,
    question_faults,
    questions,
)

unhurried = settings(deadline=None)  # Machines are busy; time is no property here.
GOOD = lines(a_question(id="good")).encode()
OBJECT = '{"id":"q","question":"?","answer_type":"open","x":%s}'


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{", "json: not valid JSON at column 2: "),
        (b"3", "row: must be an object, not 3"),
        (b'{"id":"a","id":"b"}', 'json: the key "id" stands twice in one object'),
        ((OBJECT % '{"k":1,"k":1}').encode(), 'json: the key "k" stands twice in one object'),
        ((OBJECT % "9007199254740992").encode(), "json: the integer 9007199254740992 is beyond"),
        ((OBJECT % ("9" * 5000)).encode(), "json: the integer 9999"),
        ((OBJECT % "1e999").encode(), "json: the number 1e999 is too large"),
        ((OBJECT % "NaN").encode(), "json: NaN is not a JSON number"),
        ((OBJECT % ("[" * 100_000)).encode(), "json: nested deeper than 64 levels"),
        ((OBJECT % ('{"a":' * 65 + "1" + "}" * 65)).encode(), "json: nested deeper than 64"),
        ((OBJECT % r'"a\u0000b"').encode(), "x: holds a NUL character"),
        ((OBJECT % r'["\ud800"]').encode(), "x[0]: holds a lone surrogate"),
        ((OBJECT % r'{"\udc00":1}').encode(), "x: holds a lone surrogate"),
        ((OBJECT % '"a\0b"').encode(), "encoding: holds a NUL character at column 53"),
        (
            b'{"id":"caf\xe9"}',
            "encoding: at byte 11 0xe9 is not UTF-8; the file looks like Windows",
        ),
        (b'{"id":"\xed\xa0\x80"}', "encoding: at byte 8 stands a lone surrogate"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_line(line: bytes, fault: str) -> None:
    found = question_faults(GOOD + line + b"\n")
    assert len(found) == 1
    assert found[0].startswith(f"q.jsonl:2: {fault}")


def test_a_surrogate_pair_and_a_largest_integer_are_kept() -> None:
    text = OBJECT % r'["\ud83d\ude00", 9007199254740991]'
    (record,) = questions(text)
    assert record.metadata == {"x": ["😀", 9007199254740991]}


def test_brackets_inside_of_texts_are_no_depth() -> None:
    (record,) = questions(OBJECT % json.dumps("[{" * 500))
    assert record.metadata["x"].startswith("[{")


def test_a_line_that_is_too_long_is_refused_and_the_next_one_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1000)
    text = GOOD + b"x" * 5000 + b"\n{\n"
    found = question_faults(text)
    assert found[0].startswith("q.jsonl:2: line: longer than")
    assert found[1].startswith("q.jsonl:3: json: ")


def test_a_utf_16_file_is_named_as_such() -> None:
    text = GOOD.decode().encode("utf-16")
    assert question_faults(text) == ["q.jsonl:1: encoding: the file is UTF-16; save it as UTF-8"]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert questions(b"\xef\xbb\xbf" + GOOD) == questions(GOOD)


def test_the_first_twenty_faults_are_shown_and_all_are_counted() -> None:
    with pytest.raises(ImportFaults) as caught:
        questions("{\n" * 50)
    assert (len(caught.value.faults), caught.value.total) == (MAX_FAULTS_SHOWN, 50)
    assert str(caught.value).endswith("… and 30 more")


def test_a_message_stays_one_harmless_line() -> None:
    evil = "a\u202e\u2028\x1b[31m" + "x" * 500
    (fault,) = question_faults(lines(a_question(answer_type=evil)))
    assert fault.isprintable()
    assert len(fault) < 250


def test_files_that_are_not_there_are_one_clear_line(tmp_path: Path) -> None:
    missing = tmp_path / "none.jsonl"
    with pytest.raises(ImportFaults, match="file: cannot be read: No such file"):
        list(read_questions(missing))
    with pytest.raises(ImportFaults, match="file: cannot be read: Is a directory"):
        list(read_questions(tmp_path))


def test_an_empty_file_is_refused() -> None:
    assert question_faults("") == ["q.jsonl: file: holds no record"]
    assert question_faults("[]") == ["q.jsonl: file: holds no record"]


def test_a_format_without_a_reader_is_named() -> None:
    (fault,) = question_faults(GOOD, "mmlu")
    assert fault.startswith('q.jsonl: format: there is no reader "mmlu" for questions; there are')


class _Pipe(io.RawIOBase):
    """A stream that cannot be rewound, as standard input often is."""

    def __init__(self, content: bytes) -> None:
        self._rest = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        return self._rest.readinto(buffer)


def test_standard_input_is_read_through_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(_Pipe(GOOD))

    monkeypatch.setattr("sys.stdin", Stdin)
    (record,) = read_questions("-")
    assert record.id == "good"


def test_faults_of_standard_input_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(_Pipe(b"{\n"))

    monkeypatch.setattr("sys.stdin", Stdin)
    with pytest.raises(ImportFaults, match=r"^<stdin>:1: json: "):
        list(read_questions("-", "jsonl"))


def test_a_text_stream_is_read_and_its_surrogates_are_refused() -> None:
    assert len(list(read_questions(io.StringIO(GOOD.decode()), "jsonl"))) == 1
    with pytest.raises(ImportFaults, match="lone surrogate"):
        list(read_questions(io.StringIO('{"id":"\ud800"}'), "jsonl"))


def test_records_are_yielded_one_by_one_and_not_held() -> None:
    many = "".join(lines(a_question(id=f"q{n}")) for n in range(3_000)).encode()
    stream = _Counting(many)
    found: Iterator[object] = read_questions(stream, "jsonl")
    next(found)
    after_validation = stream.bytes_read
    assert after_validation < len(many) * 1.5
    assert sum(1 for _ in found) == 2_999


class _Counting(io.BytesIO):
    """A file that counts what is read of it."""

    bytes_read = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self.bytes_read += len(line)
        return line


def _reads_or_faults(content: bytes, name: str, *, debates: bool) -> None:
    """Read the file; where it is refused, hold every fault to its form."""
    faults = _faults_of(io.BytesIO(content), name, debates=debates)
    for fault in faults:
        assert re.match(r"f(:\d+)?: [^\n]+: [^\n]+", str(fault))
        assert "\n" not in str(fault)


def _faults_of(stream: IO[bytes], name: str, *, debates: bool) -> tuple[Fault, ...]:
    reader = read_debates if debates else read_questions
    try:
        for _ in reader(stream, name, name="f"):
            pass
    except ImportFaults as exc:
        return exc.faults
    return ()


GSM8K_ROW = {
    "question": "2 + 2?",
    "ground_truth": "So\nA: 4",
    "m1": {"is_correct": True, "solution": "2+2=4\nA: 4"},
}
DU_FILE = {
    "2 + 2?": [
        [[{"role": "user", "content": "?"}, {"role": "assistant", "content": "4"}]],
        "#### 4",
    ]
}
SAMPLES = [
    lines(a_question(id="a"), a_question(id="b", metadata={"k": [1, {"x": None}]})),
    lines(a_debate()),
    lines({"question": "2 + 2?", "answer": "It is 4\n#### 4"}),
    lines(GSM8K_ROW),
    json.dumps(DU_FILE),
    '[{"qid":"q","question":"?","answer":true,"facts":["f"]}]',
    "Type,Category,Question,Best Answer,Correct Answers,Incorrect Answers,Source\n"
    "A,C,Q?,yes,yes; yep,no; nope,s\n",
    'id,question,reference,answer_type,choices\na,"Which?",B,choice,x|y\n',
]


@unhurried
@given(
    sample=st.sampled_from(SAMPLES),
    cuts=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 12), st.binary(max_size=8))),
    reader=st.sampled_from(
        [(name, False) for name in QUESTION_READERS] + [(name, True) for name in DEBATE_READERS]
    ),
)
def test_random_damage_gives_records_or_faults_but_never_a_traceback(
    sample: str, cuts: list[tuple[int, int, bytes]], reader: tuple[str, bool]
) -> None:
    content = sample.encode()
    for start, length, junk in cuts:
        content = content[:start] + junk + content[start + length :]
    _reads_or_faults(content, reader[0], debates=reader[1])


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*sorted(a_debate()), "agent_id", "x"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@unhurried
@given(key=st.sampled_from([*sorted(a_debate()), "beliefs", "final", "usage"]), value=JSON_VALUES)
def test_any_value_in_any_place_of_a_debate_is_read_or_refused(key: str, value: object) -> None:
    _reads_or_faults(lines(a_debate(**{key: value})).encode(), "jsonl", debates=True)


@unhurried
@given(value=JSON_VALUES, place=st.sampled_from(["whole", "messages", "gold", "agent"]))
def test_any_value_in_any_place_of_a_du_log_is_read_or_refused(value: object, place: str) -> None:
    wrapped = {
        "whole": value,
        "messages": [value, "#### 4"],
        "agent": [[value], "#### 4"],
        "gold": [[[{"role": "assistant", "content": "4"}]], value],
    }[place]
    _reads_or_faults(json.dumps({"2 + 2?": wrapped}).encode(), "du", debates=True)
