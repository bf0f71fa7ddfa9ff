"""Text that would act if a page took it for more than text, and proof that it did not."""

from __future__ import annotations

from dataclasses import dataclass, field

from playwright.sync_api import Page

#: Every line asks for something that a watcher sees: a dialog, a request, another title.
ACTS = (
    "<img src=/hostile-image onerror=\"alert(1);document.title='acted'\">"
    "<iframe srcdoc='<script>alert(2)</script><img src=/hostile-frame>'></iframe>"
    '<div hx-get="/hostile-get" hx-trigger="load" hx-target="body">x</div>'
    '<a href="javascript:alert(3)">javascript link</a> [link](javascript:alert(4)) '
    "</pre></textarea></title><script>alert(5)</script>{{ 7|add:7 }}{% now 'Y' %}"
)
TURNS = "\u202eevil\u202c \u2066aside\u2069 \u200fright"
HOSTILE = f"{ACTS} {TURNS}"
#: Without the direction marks, for ids and names.
HOSTILE_NAME = "<img src=/hostile-id onerror=alert(6)>" + "i" * 90
MEGABYTE = f"{HOSTILE} " + "z" * 1_000_000 + " the-very-end"


@dataclass
class Watched:
    """What a page did since it was watched that only hostile text would make it do."""

    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def acted(self, page: Page) -> list[str]:
        """Return every sign that text of the page was taken for more than text."""
        found = page.locator(
            "main img, main iframe, main script, main [hx-get*=hostile], main [onerror],"
            " a[href^='javascript:' i]"
        )
        said = [f"the page has {found.count()} elements out of text"] if found.count() else []
        if "acted" in page.title().split():
            said.append("a script changed the title")
        body = page.locator("main").inner_text()
        if any(mark in body for mark in "\u202e\u2066\u200f"):
            said.append("a direction mark is not written out")
        return [*said, *self.dialogs, *self.requests]


def watched(page: Page) -> Watched:
    """Watch a page: dialogs are dismissed and kept, as are requests that the text asks for."""
    seen = Watched()

    def dismiss(dialog: object) -> None:
        seen.dialogs.append(f"dialog: {dialog.message}")  # type: ignore[attr-defined]
        dialog.dismiss()  # type: ignore[attr-defined]

    page.on("dialog", dismiss)
    page.on(
        "request",
        lambda sent: seen.requests.append(sent.url) if "hostile-" in sent.url else None,
    )
    return seen
