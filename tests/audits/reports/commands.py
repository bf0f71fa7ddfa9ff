"""Commands as a person gives them: words in, exit code and output back."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from django.core.management import load_command_class
from django.core.management.base import OutputWrapper


def command(app: str, name: str, *words: str) -> tuple[int, str]:
    """Run a command from its words; return its exit code and what it printed."""
    found = load_command_class(app, name)
    out = io.StringIO()
    found.stdout = OutputWrapper(out)
    try:
        found.run_from_argv(["manage.py", name, *words])
    except SystemExit as exit_:
        return int(exit_.code or 0), out.getvalue()
    return 0, out.getvalue()


def report_json(name: str, folder: Path) -> dict[str, Any]:
    """Return the report that the command writes into a file."""
    target = folder / f"{name}.json"
    assert command("audits", "report", name, "-o", str(target))[0] == 0
    found: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return found


def figure(condition: dict[str, Any], metric: str, **asked: Any) -> dict[str, Any]:
    """Return the one figure of a condition with that metric; ``by`` defaults to nothing."""
    wanted = {"metric": metric, **asked}
    found = [
        one
        for one in condition["figures"]
        if all(one[key] == value for key, value in wanted.items())
    ]
    assert len(found) == 1, f"{wanted}: {len(found)} figures"
    return dict(found[0])
