"""`report`: the figures of what has a name as one file, and two files compared."""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandParser

from audits.reports.build import Report, build_report, report_bytes
from audits.reports.diff import differences, load_report
from audits.reports.render import links_of, page_bytes
from audits.reports.table import table_bytes
from audits.services import collect
from debateweb.access import command_workspace
from debateweb.errors import InputError, NegativeAnswer
from debateweb.management.base import Command as DebatewebCommand
from debateweb.management.files import write_whole
from debateweb.trail import trail_head

WRITERS = {"json": report_bytes, "csv": table_bytes}
FORMATS = (*WRITERS, "html")
#: Formats that are known but not written.
LATER = ("pdf",)
STANDARD_OUTPUT = "-"
MAX_LINES = 200


class ReportsDifferError(NegativeAnswer):
    """Two reports do not say the same."""

    code = "reports_differ"


class Command(DebatewebCommand):
    help = (
        "Report on an experiment, imported debates, judgments or a queue: report NAME. "
        "Compare two report files: report diff A B."
    )
    example = "python manage.py report gsm8k-debate --format json -o report.json"

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "words", metavar="NAME", nargs="+", help="what to report on; or: diff A B"
        )
        formats = (*FORMATS, *LATER)
        parser.add_argument("--format", choices=formats, default="json", help="default: json")
        parser.add_argument(
            "-o", dest="output", metavar="F", default=STANDARD_OUTPUT,
            help="the file to write (default: -, standard output)",
        )  # fmt: skip
        parser.add_argument(
            "--as", dest="kind", choices=("experiment",),
            help="report on a judge audit as the experiment that it is",
        )  # fmt: skip
        parser.add_argument(
            "--site", metavar="URL", default=site_address(), type=_address,
            help="where the site is that html files lead to for the rows behind their figures "
            "(default: %(default)s)",
        )  # fmt: skip

    def execute(self, *args: Any, **options: Any) -> str | None:
        words = options["words"]
        # Two files are compared without a database; one word alone is always a name.
        self.needs_database = len(words) == 1 or words[0] != "diff"
        return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> None:
        match options["words"]:
            case [name]:
                self._report(name, options)
            case ["diff", a, b]:
                self._diff(a, b)
            case _:
                raise InputError("give one NAME, or: diff A B (see --help)")

    def _report(self, name: str, options: dict[str, Any]) -> None:
        format_name, output, site = options["format"], options["output"], options["site"]
        if format_name not in FORMATS:
            raise InputError(
                f"--format {format_name} is not there yet; print the html file instead"
            )
        folder = Path(output).resolve().parent
        if output != STANDARD_OUTPUT and not folder.is_dir():
            raise InputError(f"-o: there is no folder {str(folder)!r}")
        workspace = command_workspace(self.workspace_name)
        collect(workspace, name)
        report = build_report(workspace=workspace, name=name, kind=options["kind"])
        if format_name == "html":
            links = links_of(workspace.name, name, site=site)
            content = page_bytes(report, links, trail_head(workspace))
        else:
            content = WRITERS[format_name](report)
        if output == STANDARD_OUTPUT:
            self.stdout.write(content.decode(), ending="")
            return
        write_whole(Path(output), content)
        self.emit(_summary(report, output), _said(report, output))

    def _diff(self, a: str, b: str) -> None:
        lines = list(differences(load_report(_text(a), a), load_report(_text(b), b)))
        shown = lines[:MAX_LINES]
        if len(lines) > MAX_LINES:
            shown.append(f"… and {len(lines) - MAX_LINES} more")
        self.emit({"a": a, "b": b, "differences": lines}, "\n".join(shown) or "no difference")
        if lines:
            raise ReportsDifferError(f"{len(lines)} differences")


def site_address() -> str:
    """Return where people reach this site: its first host in production, else its own port."""
    if settings.IS_PRODUCTION:
        return f"https://{settings.ALLOWED_HOSTS[0].lstrip('.')}"
    return f"http://{settings.HOST}:{settings.PORT}"


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.netloc:
        raise ArgumentTypeError(f"{text!r} is no address such as https://debates.example.org")
    return text.rstrip("/")


def _text(path: str) -> str:
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except OSError as exc:
        raise InputError(f"{path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path}: is not UTF-8 text") from exc


def _summary(report: Report, output: str) -> dict[str, Any]:
    return {
        "name": report["name"],
        "kind": report["kind"],
        "file": output,
        "inputs": report["inputs"],
        "conditions": [
            {
                "name": condition["name"],
                "labels": condition["labels"],
                "figures": len(condition["figures"]),
            }
            for condition in report["conditions"]
        ],
        "comparisons": len(report["comparisons"]),
        "deviations": report["deviations"],
    }


def _said(report: Report, output: str) -> str:
    lines = [f"{report['name']}: report written to {output}"]
    for condition in report["conditions"]:
        labels = f" [{', '.join(condition['labels'])}]" if condition["labels"] else ""
        lines.append(f"  {condition['name']}{labels}: {_headline(condition['figures'])}")
    for one in report["deviations"]:
        where = f"{one['condition']}: " if one["condition"] else ""
        lines.append(f"  note: {where}{one['text']}")
    return "\n".join(lines)


#: What a condition's line says, the first of these that it has.
_HEADLINES = ("accuracy_T", "judge_accuracy", "position_consistency", "percent_agreement")


def _headline(figures: list[dict[str, Any]]) -> str:
    """Return the first of the headline figures, as the reader sees it first in the report."""
    first = {one["metric"]: one for one in reversed(figures)}
    named = [first[metric] for metric in _HEADLINES if metric in first]
    told = next((one for one in named if one["value"] is not None), None)
    if told is not None:
        return f"{told['metric']} {told['value']:.4f} on {told['n_questions']} questions"
    return f"{named[0]['metric']} null ({named[0]['reason']})" if named else "no accuracy"
