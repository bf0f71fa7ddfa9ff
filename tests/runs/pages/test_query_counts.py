"""Every page asks the database as often for 10,000 runs as for 10, and shows a page of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urljoin

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.debateweb.filled import Filled, filled, pages
from tests.debateweb.people import signed_in

pytestmark = pytest.mark.django_db

FEW_RUNS, MANY_RUNS = 10, 10_000
FEW_ROWS, MANY_ROWS = 3, 60  # Of what workspaces have fewer of: a page shows 50.
MOST_MORE = 200  # Rows and list items that a page of many may have beyond a page of few.
MOST_QUERIES = 16
#: To show an item is to lease it: locks, the lease and what was displayed are statements too.
LEASES = {"audits:label": 20}
LISTS = {
    "audits:reports",
    "audits:rows",
    "runs:debate_set",
    "runs:debates",
    "runs:experiment",
    "runs:experiment_turned",
    "runs:experiments",
    "runs:protocols",
    "runs:question_set",
    "runs:questions",
    "workspace_settings",
    "workspaces",
}
NEXT = re.compile(r'<a(?=[^>]* rel="next")[^>]* href="([^"]*)"')


@pytest.fixture(autouse=True)
def _no_broker_and_no_files(tmp_path: Path) -> Iterator[None]:
    with (
        patch("runs.dispatch.current_app"),
        patch("audits.services.current_app"),
        patch("runs.services.uploads._folder", lambda workspace: tmp_path / str(workspace.pk)),
    ):
        yield


def test_a_page_asks_as_often_for_ten_thousand_runs_as_for_ten(tmp_path: Path) -> None:
    few = filled(tmp_path, name="few", rows=FEW_ROWS, runs=FEW_RUNS)
    many = filled(tmp_path, name="many", rows=MANY_ROWS, runs=MANY_RUNS)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    of_few, of_many = seen_pages(few), seen_pages(many)
    queries = {name: (of_few[name].queries, page.queries) for name, page in of_many.items()}
    assert {name: counts for name, counts in queries.items() if counts[0] != counts[1]} == {}
    over = {n: c for n, c in queries.items() if max(c[1]) > LEASES.get(n, MOST_QUERIES)}
    assert over == {}
    long = {name for name, page in of_many.items() if page.rows > of_few[name].rows + MOST_MORE}
    assert long == set()
    assert of_many.keys() >= LISTS
    lead_on = {name for name, page in of_many.items() if name in LISTS and page.following}
    assert lead_on == LISTS


@dataclass(frozen=True)
class Seen:
    """
    What a page took, as a whole and as HTMX asks for it.

    ``following`` is the address of the next page of its list, None where it leads to none.
    """

    queries: tuple[int, int]
    rows: int
    following: str | None


def seen_pages(made: Filled) -> dict[str, Seen]:
    """Open every page, and of lists the next one: it has other rows and takes as many queries."""
    client = signed_in(made.owner)
    found = {}
    for name, url in pages(made):
        found[name] = seen = _seen(client, url)
        if seen.following is not None and name in LISTS:
            assert re.search(r"[?&](before|after)=\d+", seen.following), "pages follow by key"
            assert _seen(client, seen.following).queries == seen.queries, seen.following
    return found


def _seen(client: Client, url: str) -> Seen:
    client.get(url)  # Protocols are read once in a process, calls counted once in a while.
    with CaptureQueriesContext(connection) as whole:
        html = client.get(url).content.decode()
    with CaptureQueriesContext(connection) as fragment:
        client.get(url, headers={"HX-Request": "true"})
    following = NEXT.search(html)
    return Seen(
        queries=(len(whole), len(fragment)),
        rows=html.count("<tr") + html.count("<li"),
        following=urljoin(url, unescape(following[1])) if following else None,
    )
