"""What every command promises: one line for an error, exit codes, an example, JSON."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import load_command_class
from django.core.management.base import CommandError
from django.db import OperationalError

from debateweb.errors import InputError, NegativeAnswer
from debateweb.management.base import Command


class Sample(Command):
    help = "A command for these tests."
    example = "manage.py sample --json"
    needs_database = False
    what: Exception | None = None

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--count", type=int, default=1)

    def handle(self, *args: Any, **options: Any) -> None:
        if self.what is not None:
            raise self.what
        self.progress(1, 2, "things")
        self.emit({"count": options["count"]}, f"count is {options['count']}")


def run(*words: str, what: Exception | None = None) -> tuple[int, Sample]:
    command = Sample(stdout=io.StringIO())
    command.what = what
    try:
        command.run_from_argv(["manage.py", "sample", *words])
    except SystemExit as exit_:
        return int(exit_.code or 0), command
    return 0, command


@pytest.mark.parametrize(
    ("what", "code", "said"),
    [
        (NegativeAnswer("they differ at line 3"), 1, "they differ at line 3"),
        (InputError("f.jsonl:3: answer: missing"), 2, "f.jsonl:3: answer: missing"),
        (CommandError("wrong"), 2, "wrong"),
        (OperationalError("server closed\nsecond line"), 2, "cannot be used: server closed"),
        (InputError("no key sk-abcdefgh12345678 here"), 2, "no key [secret] here"),
        (OSError(errno.ENOSPC, "No space left", "r.json"), 2, "cannot write to r.json: No space"),
        (OSError(errno.ENOSPC, "No space left"), 2, "cannot write to the output: No space"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_way_out_is_one_line_and_a_code(
    capsys: pytest.CaptureFixture[str], what: Exception, code: int, said: str
) -> None:
    assert run(what=what)[0] == code
    errors = capsys.readouterr().err
    assert said in errors
    assert len(errors.splitlines()) == 1


def test_an_unexpected_error_is_one_line_and_its_traceback_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(what=ZeroDivisionError("by zero"))[0] == 2
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 1
    log = Path(settings.DATA_DIR.logs / "commands.log")
    assert str(log) in errors
    assert "ZeroDivisionError: by zero" in log.read_text()


def test_wrong_arguments_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--count", "many")[0] == 2
    errors = capsys.readouterr().err
    assert "invalid int value" in errors
    assert len(errors.splitlines()) == 1


def test_json_is_for_machines_and_text_for_people() -> None:
    _, as_json = run("--json", "--count", "3")
    _, as_text = run("--count", "3")
    assert json.loads(as_json.stdout.getvalue()) == {"count": 3}
    assert as_text.stdout.getvalue() == "count is 3\n"


def test_progress_is_silent_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    run()
    assert capsys.readouterr().err == ""


def test_the_workspace_is_remembered() -> None:
    assert run("--workspace", "lab")[1].workspace_name == "lab"
    assert run()[1].workspace_name is None


def test_help_shows_the_example_and_only_our_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--help")[0] == 0
    shown = capsys.readouterr().out
    assert "example: manage.py sample --json" in shown
    assert "--pythonpath" not in shown


def our_commands() -> list[tuple[str, str]]:
    project = Path(__file__).resolve().parents[2]
    return [
        (app, path.stem)
        for app in ("debateweb", "runs", "audits")
        for path in sorted((project / app / "management" / "commands").glob("[a-z]*.py"))
    ]


@pytest.mark.parametrize(("app", "name"), our_commands())
def test_each_of_our_commands_has_an_example_and_the_common_options(app: str, name: str) -> None:
    command = load_command_class(app, name)
    assert isinstance(command, Command)
    assert "manage.py" in command.example
    shown = command.create_parser("manage.py", name).format_help()
    assert "--json" in shown
    assert "--workspace" in shown
