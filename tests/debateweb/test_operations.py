"""The table of variables in docs/operations.md names what the code reads, no more and no less."""

from __future__ import annotations

import re

from tests.debateweb.sites import PROJECT

NAME = r"(?:DEBATEWEB_[A-Z_]+|DATABASE_URL|REDIS_URL)"
#: Said by one of our processes to another, never by a person.
BETWEEN_PROCESSES = {"DEBATEWEB_DIE_WITH_PARENT", "DEBATEWEB_UP_FROM_MAKE"}


def documented() -> set[str]:
    text = (PROJECT / "docs/operations.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(NAME, row)}


def read_by_the_site() -> set[str]:
    apps = [PROJECT / name for name in ("debateweb", "runs", "audits")]
    texts = [path.read_text(encoding="utf-8") for app in apps for path in app.rglob("*.py")]
    return {name for text in texts for name in re.findall(f'"({NAME})"', text)}


def read_by_the_tests() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in (PROJECT / "tests").rglob("*.py")]
    return {name for text in texts for name in re.findall(f'environ[^"\n]*"({NAME})"', text)}


def test_the_table_names_each_variable_that_is_read() -> None:
    assert read_by_the_site() - BETWEEN_PROCESSES <= documented()


def test_the_table_names_no_variable_that_nobody_reads() -> None:
    everything = read_by_the_site() | read_by_the_tests()
    assert documented() <= everything
