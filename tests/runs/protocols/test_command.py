"""``manage.py protocol``: what it prints, and its exit codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runs.management.commands.protocol import Command
from runs.protocols.digest import protocol_hash
from runs.protocols.presets import load_preset, preset_names, preset_text
from runs.protocols.schema import json_schema
from tests.runs.protocols.published import LATER


class Ended(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command as from the command line."""

    def call(*words: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = 0
        try:
            Command().run_from_argv(["manage.py", "protocol", *words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        return Ended(code, *capsys.readouterr())

    return call


def test_list_names_every_shipped_protocol_with_its_size_and_hash(run: Run) -> None:
    ended = run("list")
    assert ended.code == 0
    for line, name in zip(ended.out.splitlines(), preset_names(), strict=True):
        assert line.startswith(name)
        assert protocol_hash(load_preset(name))[:12] in line
    rows = run("list", "--json").data
    assert [row["protocol_hash"] for row in rows] == [
        protocol_hash(load_preset(name)) for name in preset_names()
    ]
    assert not any(row["unsupported"] for row in rows)


def test_show_prints_yaml_with_its_comments_and_json_with_every_default(run: Run) -> None:
    assert run("show", "du_2023").out == preset_text("du_2023")
    data = run("show", "du_2023", "--json").data
    assert data["protocol"] == load_preset("du_2023").model_dump(mode="json")
    assert data["protocol_hash"] == protocol_hash(load_preset("du_2023"))


@pytest.mark.parametrize("words", [("--json", "hash", "single"), ("hash", "single", "--json")])
def test_options_may_stand_before_or_after_the_action(run: Run, words: tuple[str, ...]) -> None:
    assert run(*words).data == {
        "name": "single",
        "protocol_hash": protocol_hash(load_preset("single")),
    }


def test_a_file_and_standard_input_are_protocols_too(run: Run, tmp_path: Path) -> None:
    text = preset_text("du_2023")
    file = tmp_path / "mine.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())  # Editors on Windows write this mark.
    digest = protocol_hash(load_preset("du_2023"))
    assert run("hash", str(file)).out.strip() == digest
    assert run("hash", "-", stdin=text.encode()).out.strip() == digest


def test_diff_of_equal_algorithms_exits_0_though_they_are_called_otherwise(
    run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(preset_text("single").replace("name: single", "name: mine"), "utf-8")
    ended = run("diff", "single", str(file))
    assert ended.code == 0
    assert ended.out.splitlines() == [
        'name: "single" → "mine"',
        f"same algorithm {protocol_hash(load_preset('single'))}",
    ]


def test_diff_of_different_algorithms_exits_1_and_lists_the_fields(run: Run) -> None:
    ended = run("diff", "du_2023", "du_2023_corrected")
    assert ended.code == 1
    assert 'aggregation.tie: ["agent_order"] → ["abstain"]' in ended.out.splitlines()
    assert ended.err == (
        "protocol: du_2023 and du_2023_corrected differ in 1 field of the algorithm\n"
    )
    data = run("diff", "du_2023", "du_2023_corrected", "--json").data
    assert data["same_algorithm"] is False
    assert [c["path"] for c in data["changes"] if not c["descriptive"]] == ["aggregation.tie"]


def test_schema_prints_the_published_schema(run: Run) -> None:
    assert json.loads(run("schema").out) == json_schema()
    assert run("schema", "--json").data == json_schema()


def test_show_says_what_is_not_executed_yet(run: Run) -> None:
    wr = LATER["wr"].model_dump_json().encode()
    data = run("show", "-", "--json", stdin=wr).data
    assert "operator.kind: sequential is not executed yet" in data["unsupported"]


BAD: list[tuple[tuple[str, ...], bytes, str]] = [
    (("hash", "nope"), b"", "nope: no such file, and no shipped protocol (disagreement"),
    (("hash", "."), b"", ".: cannot be read: Is a directory"),
    (("hash", "a\0b"), b"", "cannot be read: embedded null byte"),
    (("hash", "-"), b"a: \xff", "standard input: not UTF-8 at byte 3"),
    (("hash", "-"), b"x" * 1_000_002, "standard input:1: larger than 1000000 bytes"),
    (("hash", "-"), b"name: x\nname: y", "standard input:2: duplicate key 'name'"),
    (("hash", "-"), b"name: x\n", "standard input:1: agents: is missing (and 2 more)"),
    (("diff", "-", "-"), b"", "standard input can be read once"),
    (("frobnicate",), b"", "invalid choice: 'frobnicate'"),
    (("hash",), b"", "the following arguments are required: P"),
    ((), b"", "the following arguments are required: ACTION"),
]


@pytest.mark.parametrize(("words", "stdin", "says"), BAD, ids=[says for _, _, says in BAD])
def test_bad_input_exits_2_with_one_line(
    run: Run, words: tuple[str, ...], stdin: bytes, says: str
) -> None:
    ended = run(*words, stdin=stdin)
    assert ended.code == 2
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert ended.out == ""


@pytest.mark.parametrize("action", ["list", "show", "hash", "diff", "schema"])
def test_help_has_an_example(run: Run, action: str) -> None:
    ended = run(action, "--help")
    assert ended.code == 0
    assert f"example: python manage.py protocol {action}" in ended.out
