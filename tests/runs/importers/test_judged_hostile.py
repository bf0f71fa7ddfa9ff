"""Judgments and labels that are damaged or meant to harm: one line each, no traceback."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.importers import sources
from runs.importers.faults import Fault, ImportFaults
from runs.importers.judged_registry import (
    JUDGMENT_READERS,
    LABEL_READERS,
    TASK_READERS,
    read_judgments,
    read_labels,
    read_tasks,
)
from runs.importers.registry import read_debates
from tests.runs.importers.helpers import lines
from tests.runs.importers.judged import (
    a_judgment,
    a_label,
    judgment_faults,
    judgments,
    label_faults,
    labels,
)
from tests.runs.importers.test_hostile_files import JSON_VALUES
from tests.runs.importers.test_judged_sets import HEADER, PAIR, a_pair, a_session

SAMPLES = Path(__file__).with_name("samples")
Reader = Callable[..., Iterator[object]]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b"{", "json: not valid JSON at column 2: "),
        (b'{"item_id":"a","item_id":"b"}', 'json: the key "item_id" stands twice'),
        (b'{"comment":"a\0"}', "encoding: holds a NUL character at column 14"),
        (rb'{"comment":"\u0000"}', "comment: holds a NUL character"),
        (rb'{"label":{"\ud800":1}}', "label: holds a lone surrogate"),
        (b'{"comment":"\xed\xa0\x80"}', "encoding: at byte 13 stands a lone surrogate"),
        (b'{"weight":NaN}', "json: NaN is not a JSON number"),
        (b'{"weight":1e999}', "json: the number 1e999 is too large"),
        (b'{"metadata":' + b"[" * 100_000, "json: nested deeper than 64 levels"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_line(line: bytes, fault: str) -> None:
    for faults, good in ((judgment_faults, a_judgment()), (label_faults, a_label())):
        found = faults(lines(good).encode() + line + b"\n")
        assert len(found) == 1
        assert re.match(rf"[jl]\.jsonl:2: {re.escape(fault)}", found[0])


def test_a_line_of_a_megabyte_is_read() -> None:
    long = "x" * 1_000_000
    (judged,) = judgments(lines(a_judgment(rationale=long)))
    (label,) = labels(lines(a_label(comment=long)))
    assert judged.rationale == label.comment == long


def test_a_line_that_is_too_long_is_one_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1000)
    text = lines(a_label(), a_label(comment="x" * 2000), a_label(weight=0))
    found = label_faults(text)
    assert [fault.split(": ")[0] for fault in found] == ["l.jsonl:2", "l.jsonl:3"]


def test_a_fault_quotes_what_a_file_says_as_one_harmless_line() -> None:
    evil = "b\u202e\u2028\x1b[2J" + "x" * 300
    for found in (
        judgment_faults(lines(a_judgment(verdict=evil))),
        label_faults(lines(a_label(annotator=evil))),
    ):
        assert all(fault.isprintable() and len(fault) < 250 for fault in found)


def test_a_bidirectional_comment_is_data() -> None:
    (label,) = labels(lines(a_label(comment="\u202eevil")))
    assert label.comment == "\u202eevil"


def test_an_empty_file_is_refused() -> None:
    assert judgment_faults("") == ["j.jsonl: file: holds no record"]
    assert label_faults("[]", "label_studio") == ["l.jsonl: file: holds no record"]


def test_a_format_without_a_reader_is_named() -> None:
    (fault,) = judgment_faults(lines(a_judgment()), "mt_bench")
    known = 'there is no reader "mt_bench" for judgments; there are jsonl, llmbar, pandalm'
    assert fault.startswith(f"j.jsonl: format: {known}")


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(ImportFaults, match="file: cannot be read: No such file"):
        list(read_judgments(tmp_path / "none.jsonl"))


def test_records_are_yielded_one_by_one_and_not_held() -> None:
    text = lines(*(a_label(item_id=f"i{n}") for n in range(2_000)))
    found = read_labels(io.BytesIO(text.encode()), "jsonl")
    next(found)
    assert sum(1 for _ in found) == 1_999


def test_an_upload_has_no_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "testset-v1.json").write_text(json.dumps([a_pair()]))
    path = tmp_path / "gpt-testset-v1.json"
    path.write_text('[{"idx": 0, "gpt_result": 1}]')
    assert len(list(read_judgments(path, "pandalm"))) == 1
    with path.open("rb") as stream, pytest.raises(ImportFaults, match=r"no testset-v1\.json"):
        list(read_judgments(stream, "pandalm", name=str(path)))


READERS: list[tuple[Reader, str]] = [
    *((read_judgments, name) for name in JUDGMENT_READERS),
    *((read_labels, name) for name in LABEL_READERS),
    *((read_tasks, name) for name in TASK_READERS),
    (read_debates, "nyu"),
    (read_debates, "llmbar_swap"),
]
TEXTS = [
    lines(a_judgment(), a_judgment(repeat=1, judge={"name": "n", "decoding": {}})),
    lines(a_label(), a_label(kind="belief", label={"a": 0.5, "b": 0.5})),
    "item_id,annotator,kind,label,metadata\ni,ann,scale,3,{}\n",
    HEADER + "S/1,GPT-4/Swap,0,1,1,2,1,1\n",
    json.dumps([{**PAIR, "results": [{"swap = True": {"completion": ["a"], "winner": "1"}}]}]),
    json.dumps([a_pair()]),
    lines(a_session()),
    json.dumps([{"question": "?", "response": {"gpt35": "a", "vicuna": "b"},
                 "evaluation": [{"role": "A", "evaluation": "Same"}] * 2}]),
    *(path.read_text() for path in sorted(SAMPLES.glob("*.json"))),
]  # fmt: skip


def _read_or_refused(reader: Reader, name: str, content: bytes) -> None:
    for fault in _faults(reader, name, content):
        assert re.fullmatch(r"f(:\d+)?: [^\n]+: [^\n]+", str(fault))


def _faults(reader: Reader, name: str, content: bytes) -> tuple[Fault, ...]:
    try:
        for _ in reader(io.BytesIO(content), name, name="f"):
            pass
    except ImportFaults as exc:
        return exc.faults
    return ()


@given(
    text=st.sampled_from(TEXTS),
    cuts=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 12), st.binary(max_size=8))),
    reader=st.sampled_from(READERS),
)
def test_random_damage_gives_records_or_faults_but_never_a_traceback(
    text: str, cuts: list[tuple[int, int, bytes]], reader: tuple[Reader, str]
) -> None:
    content = text.encode()
    for start, length, junk in cuts:
        content = content[:start] + junk + content[start + length :]
    _read_or_refused(*reader, content)


def _an_archive() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("set/testset-v1.json", json.dumps([a_pair()]))
        archive.writestr("set/gpt-testset-v1.json", '[{"idx": 0, "gpt_result": 1}]')
    return stream.getvalue()


@given(
    cuts=st.lists(
        st.tuples(st.integers(4, 900), st.integers(0, 8), st.binary(max_size=8)), min_size=1
    )
)
def test_a_damaged_archive_is_read_or_refused(cuts: list[tuple[int, int, bytes]]) -> None:
    content = _an_archive()
    for start, length, junk in cuts:
        content = content[:start] + junk + content[start + length :]
    for fault in _faults(read_judgments, "pandalm", content):
        assert re.fullmatch(r"f[^\n]*: [^\n]+: [^\n]+", str(fault))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    inner: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = enumerate(value[:2])
    for key, one in inner:
        yield from _places(one, (*path, key))


def _changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _changed(copy[path[0]], path[1:], new)
    return copy


#: Every text as a value, so that any place of it can be changed; lines become an array.
WHOLES = [json.loads(text) for text in TEXTS if text.startswith(("[", "{\n"))] + [
    [json.loads(line) for line in text.splitlines()] for text in TEXTS if text.startswith('{"')
]


@given(st.data())
def test_any_value_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    whole = WHOLES[data.draw(st.integers(0, len(WHOLES) - 1))]
    place = data.draw(st.sampled_from(list(_places(whole))))
    new = data.draw(JSON_VALUES)
    content = json.dumps(_changed(whole, place, new)).encode()
    for reader, name in READERS:
        if name != "csv":
            _read_or_refused(reader, name, content)
