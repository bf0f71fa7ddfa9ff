"""
A report as its page and as one file that opens anywhere: no script, nothing to load.

Both show the same body. That of a stored report is rendered once a release and kept in the cache:
a report never changes, but templates do.
"""

from __future__ import annotations

import hashlib
import json
import logging
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import django
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.cache import cache
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from redis.exceptions import RedisError

from audits.models import Report
from audits.reports.screen import Links, screen
from debateweb.trail import Head

logger = logging.getLogger(__name__)

STYLE = "app.css"
TEMPLATE = "audits/report_file.html"
BODY = "audits/_report_body.html"
KEPT_SECONDS = 24 * 60 * 60
#: All that the bytes of a body depend on beside the report itself.
_SOURCES = (
    "templates/audits/*.html",
    "templates/components/*.html",
    "audits/reports/*.py",
    "debateweb/templatetags/*.py",
    "debateweb/texts.py",
)


def links_of(workspace: str, name: str, *, site: str = "", report: int | None = None) -> Links:
    """Return where a report's rows and tables are; ``site`` makes the addresses whole."""
    place = f"{site.rstrip('/')}/w/{quote(workspace, safe='')}/reports/{quote(name, safe='')}"
    return Links(f"{place}/rows", f"{place}/table.csv", report)


def page_bytes(
    report: Mapping[str, Any], links: Links | None = None, head: Head | None = None
) -> bytes:
    """
    Return the report as one HTML file in UTF-8; it holds all that it shows.

    ``head`` is that of the workspace's trail: who has the file can hold the trail against it.
    """
    site = links.rows.partition("/w/")[0] if links is not None else ""
    context = screen(report, links) | {
        "style": _style(),
        "site": site,
        "is_file": True,
        "trail": head,
    }
    return render_to_string(TEMPLATE, context).encode()


def body_of(report: Report, links: Links) -> SafeString:
    """Return the body of a stored report's page: from the cache, or rendered now and kept."""
    key = _key(report, links)
    try:
        kept = None if settings.DEBUG else cache.get(key)
        if kept is None:
            kept = zlib.compress(_rendered(report, links).encode())
            cache.set(key, kept, KEPT_SECONDS)
    except RedisError:
        logger.warning("the cache does not answer: a report is rendered anew")
        return _rendered(report, links)
    return mark_safe(zlib.decompress(kept).decode())  # noqa: S308  # Our own templates made it.


def _rendered(report: Report, links: Links) -> SafeString:
    return render_to_string(BODY, screen(json.loads(report.body), links))


def _key(report: Report, links: Links) -> str:
    parts = (release(), report.pk, report.inputs_hash, report.ended_at, links)
    return f"report-body:{hashlib.sha256(repr(parts).encode()).hexdigest()}"


@lru_cache(maxsize=1)
def release() -> str:
    """Return a hash of the templates and the code that make a body: other ones, other bytes."""
    whole = hashlib.sha256(django.__version__.encode())
    for path in _sources():
        whole.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def _sources() -> Iterator[Path]:
    for pattern in _SOURCES:
        yield from sorted(Path(settings.BASE_DIR).glob(pattern))


def _style() -> str:
    path = finders.find(STYLE)
    if path is None:
        raise FileNotFoundError(STYLE)
    text = Path(str(path)).read_text(encoding="utf-8")
    if "</" in text:
        raise RuntimeError(f"{STYLE} would end the element that holds it")
    return mark_safe(text)  # noqa: S308  # Our own style sheet, which closes no element.
