"""A report as one file that opens anywhere: no script, nothing to load, the page's own parts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe

from audits.reports.screen import screen

STYLE = "app.css"
TEMPLATE = "audits/report_file.html"


def page_bytes(report: Mapping[str, Any]) -> bytes:
    """Return the report as one HTML file in UTF-8; it holds all that it shows."""
    context = screen(report) | {"style": _style()}
    return render_to_string(TEMPLATE, context).encode()


def _style() -> str:
    path = finders.find(STYLE)
    if path is None:
        raise FileNotFoundError(STYLE)
    text = Path(str(path)).read_text(encoding="utf-8")
    if "</" in text:
        raise RuntimeError(f"{STYLE} would end the element that holds it")
    return mark_safe(text)  # noqa: S308  # Our own style sheet, which closes no element.
