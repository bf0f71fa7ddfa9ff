"""A page that renews itself for long leaves nothing behind: at the server, nor in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.browser.conftest import PATIENCE_SECONDS, only_loopback
from tests.debateweb.sites import Site, new_site, wait_for

pytestmark = pytest.mark.browser

SWAPS = 50
#: Runs for longer than the test, one at a time.
SLOW = """
name: slow
questions: demo-questions
seeds: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]
concurrency: 1
arms:
  - {name: debate, protocol: du_2023, models: {default: "simulated:accuracy=0.6,seed=7"}}
"""
SWAP = """async () => {
  const settled = new Promise((done) =>
    document.addEventListener("htmx:afterSettle", done, { once: true }));
  const source = document.getElementById("moving");
  const how = { source, target: source, swap: "outerHTML" };
  await htmx.ajax("GET", source.getAttribute("hx-get"), how);
  await settled;
}"""
COUNT = (
    "from django.db import connection; c = connection.cursor(); "
    "c.execute('SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()'); "
    "print(c.fetchone()[0])"
)


@dataclass(frozen=True)
class Held:
    """What the site and the page hold: connections, open files, and what the page is made of."""

    connections: int
    files: int
    listeners: int
    nodes: int


@pytest.fixture
def site() -> Iterator[Site]:
    with new_site() as made:
        yield made


def test_fifty_swaps_of_the_watch_page_leave_nothing_behind(
    site: Site, browser: Browser, tmp_path: Path
) -> None:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    context.route("**/*", only_loopback)
    page = context.new_page()
    watch_slow_experiment(site, page, tmp_path)
    inspector = context.new_cdp_session(page)
    swap(page, 5)  # Pools fill, caches warm.
    before = held(site, inspector)
    swap(page, SWAPS)
    expect(page.locator("#moving")).to_have_count(1)
    assert_no_more(site, inspector, before)
    context.close()


def watch_slow_experiment(site: Site, page: Page, folder: Path) -> None:
    """Sign in as a newcomer and open an experiment under way that a worker executes."""
    _, announced = site.up()
    path = folder / "slow.yaml"
    path.write_text(SLOW, encoding="utf-8")
    for words in (("demo",), ("experiment", "run", str(path))):
        ended = site.run(*words)
        assert ended.returncode == 0, ended.stderr
    page.goto(announced["first_owner"] or "")
    for label in ("New password", "The same again"):
        page.get_by_label(label).fill("a horse that counts to nine")
    page.get_by_role("button", name="Set the password and sign in").click()
    page.get_by_role("link", name="Experiments", exact=True).first.click()
    page.get_by_role("link", name="slow", exact=True).click()
    expect(page.locator("#moving[hx-get]")).to_be_visible()


def swap(page: Page, times: int) -> None:
    for _ in range(times):
        page.evaluate(SWAP)


def held(site: Site, inspector: CDPSession) -> Held:
    counted = site.run("shell", "-v", "0", "-c", COUNT)
    web = [pid for pid, command in site.processes().items() if "granian" in command]
    assert web, site.processes()
    inspector.send("HeapProfiler.collectGarbage")
    inspector.send("Performance.enable")
    metrics = {m["name"]: m["value"] for m in inspector.send("Performance.getMetrics")["metrics"]}
    return Held(
        connections=int(counted.stdout),
        files=sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in web),
        listeners=int(metrics["JSEventListeners"]),
        nodes=int(metrics["Nodes"]),
    )


def assert_no_more(site: Site, inspector: CDPSession, before: Held) -> None:
    """
    Wait until no more is held than before, but for what pools of a busy site grow by themselves.

    A leak of one a swap would be SWAPS; what is let go may take a moment to close.
    """
    most = Held(
        connections=before.connections + SWAPS // 5,
        files=before.files + SWAPS // 5,
        listeners=before.listeners + SWAPS // 2,
        nodes=before.nodes * 2,
    )
    seen: list[Held] = []

    def is_within() -> bool:
        seen.append(held(site, inspector))
        return all(
            now <= limit for now, limit in zip(astuple(seen[-1]), astuple(most), strict=True)
        )

    try:
        wait_for(is_within, PATIENCE_SECONDS, "more is held")
    except AssertionError as exc:
        pytest.fail(f"{exc}: {seen[-1]}, before {before}")
