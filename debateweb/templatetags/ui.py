"""The design system's tags: what needs a body or a little arithmetic. The rest are includes."""

from __future__ import annotations

from django import template
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from debateweb.texts import DiffPart, diff_words, printable

register = template.Library()

#: Kind of a badge by the word that a row holds. A word without an entry is neutral.
BADGE_KINDS = {
    "ok": "ok done finished pass right correct success active yes committed settled succeeded",
    "bad": "bad fail failed wrong incorrect error refused expired no away revoked",
    "unknown": "unknown unparsed undecided unclear",
    "busy": "busy running in_flight stage",
    "wait": "wait pending ready queued awaiting_confirmation open",
    "warn": "warn stalled late truncated held ambiguous timeout",
    "stop": "stop paused cancelled archived used dropped",
}
_KIND_OF = {word: kind for kind, words in BADGE_KINDS.items() for word in words.split()}
SYMBOLS = {
    "ok": "✓",
    "bad": "✗",
    "unknown": "?",
    "busy": "◐",
    "wait": "○",
    "warn": "!",
    "stop": "■",
}


@register.simple_tag
def badge(status: object, word: str = "") -> SafeString:
    """Show a status as symbol and word: ``{% badge run.status %}``, ``{% badge "ok" "kept" %}``."""
    key = str(status).lower().replace(" ", "_").replace("-", "_")
    kind = _KIND_OF.get(key, "plain")
    shown = word or str(status).replace("_", " ").lower()
    return format_html(
        '<span class="badge badge-{}"><span aria-hidden="true">{}</span> {}</span>',
        kind,
        SYMBOLS.get(kind, "·"),
        shown,
    )


@register.simple_block_tag
def table(content: str, label: str) -> SafeString:
    """Wrap a ``<table class="data">`` so that it scrolls by itself: ``{% table "Members" %}``."""
    return format_html(
        '<div class="scroll" role="region" aria-label="{}" tabindex="0">{}</div>', label, content
    )


@register.simple_block_tag
def callout(content: str, kind: str = "info", title: str = "") -> SafeString:
    """Set a remark apart: ``{% callout "warn" "Title" %}…{% endcallout %}``; info, warn, error."""
    words = {"info": "Note", "warn": "Mind", "error": "Error", "ok": "Done"}
    return mark_safe(  # noqa: S308  # The body is a rendered template.
        render_to_string(
            "components/_callout.html",
            {"kind": kind, "title": title or words[kind], "content": content},
        )
    )


@register.simple_block_tag
def definition(content: str, term: str) -> SafeString:
    """Show ``term`` with what it means one click away: ``{% definition "κ" %}…``."""
    return format_html(
        '<details class="definition"><summary>{}</summary><div>{}</div></details>', term, content
    )


@register.filter
def shown(text: object) -> str:
    """Return text with every control and direction mark written out, so that it cannot act."""
    return printable(str(text))


@register.filter
def usd(microusd: int | None) -> str:
    """Return micro-USD as dollars: as many decimals as a small amount needs."""
    if microusd is None:
        return "–"
    dollars = microusd / 1_000_000
    whole_cents = microusd % 10_000 == 0
    return f"${dollars:,.2f}" if whole_cents or abs(dollars) >= 10 else f"${dollars:,.4f}"


@register.filter
def number(value: int | float | None, decimals: int = 0) -> str:
    """Return a number with thin spaces between thousands, or a dash for None."""
    return "–" if value is None else f"{value:,.{decimals}f}".replace(",", "\u202f")


@register.filter
def percent(share: float | None) -> str:
    """Return a share between 0 and 1 as per cent with one decimal, or a dash for None."""
    return "–" if share is None else f"{share * 100:.1f} %"


@register.inclusion_tag("components/_diff.html")
def diff(old: str, new: str, label: str = "Changes") -> dict[str, list[DiffPart] | str]:
    """Show what changed from ``old`` to ``new``, word by word: ``{% diff a b "Answer" %}``."""
    return {"parts": diff_words(printable(old), printable(new)), "label": label}


@register.simple_tag
def bar(value: float, total: float, label: str, kind: str = "plain") -> SafeString:
    """Draw a share as a quiet bar with its words: the number stays in the text."""
    width = 0.0 if total <= 0 else max(0.0, min(100.0, 100 * value / total))
    return format_html(
        '<svg class="bar-svg bar-{}" role="img" aria-label="{}" width="100%" height="8">'
        '<rect class="bar-back" width="100%" height="8"></rect>'
        '<rect class="bar-fill" width="{}%" height="8"></rect></svg>',
        kind,
        label,
        f"{width:.2f}",
    )
