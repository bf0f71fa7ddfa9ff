"""
Plots of a report as SVG: with a title and words, readable without colour, never without a table.

Colours come from the style sheet by class. All numbers stand as text in the drawing as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH = 720
ROW = 36
LABEL_WIDTH = 320
VALUE_WIDTH = 120
MOST_LABEL = 46
FLOW_HEIGHT = 192
FLOW_WIDTH = 300
BAR = 12


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of a forest plot: a difference in shares with its interval."""

    label: str
    value: float
    interval: Sequence[float] | None
    said: str


@dataclass(frozen=True, slots=True)
class Step:
    """What became of agents in one step, as counts."""

    name: str
    right_before: int
    wrong_before: int
    fixed: int
    broke: int


def cut(text: str, most: int = MOST_LABEL) -> str:
    """Return a label that fits; the table beneath has it whole."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def forest(title: str, effects: Sequence[Effect]) -> SafeString:
    """Draw differences with their intervals around the line of no difference."""
    if not effects:
        return SafeString("")
    reach = max(abs(end) for e in effects for end in (e.value, *(e.interval or ())))
    reach = reach * 1.1 or 1.0
    left, right = LABEL_WIDTH, WIDTH - VALUE_WIDTH
    middle, scale = (left + right) / 2, (right - left) / 2 / reach
    rows = format_html_join(
        "", "{}", ((_effect(e, i, middle, scale),) for i, e in enumerate(effects))
    )
    height = ROW * len(effects) + 40
    axis = format_html(
        '<line class="plot-zero" x1="{0}" x2="{0}" y1="4" y2="{1}"></line>'
        '<text class="plot-quiet" x="{0}" y="{2}" text-anchor="middle">0</text>'
        '<text class="plot-quiet" x="{3}" y="{2}">−{5}</text>'
        '<text class="plot-quiet" x="{4}" y="{2}" text-anchor="end">+{5}</text>',
        f"{middle:.1f}", height - 28, height - 10, left, right, f"{reach * 100:.0f} points",
    )  # fmt: skip
    said = "; ".join(f"{e.label}: {e.said}" for e in effects)
    return svg(title, said, WIDTH, height, axis + rows)


def _effect(effect: Effect, index: int, middle: float, scale: float) -> SafeString:
    y = ROW * index + 20
    line = SafeString("")
    if effect.interval:
        low, high = effect.interval
        line = format_html(
            '<line class="plot-line" x1="{0}" x2="{1}" y1="{2}" y2="{2}"></line>'
            '<line class="plot-line" x1="{0}" x2="{0}" y1="{3}" y2="{4}"></line>'
            '<line class="plot-line" x1="{1}" x2="{1}" y1="{3}" y2="{4}"></line>',
            f"{middle + low * scale:.1f}", f"{middle + high * scale:.1f}",
            y, y - 4, y + 4,
        )  # fmt: skip
    return format_html(
        '<text x="0" y="{y4}">{label}</text>{line}'
        '<circle class="plot-point" cx="{x}" cy="{y}" r="4"></circle>'
        '<text x="{end}" y="{y4}" text-anchor="end">{value}</text>',
        y=y, y4=y + 4, label=cut(effect.label), line=line, end=WIDTH,
        x=f"{middle + effect.value * scale:.1f}", value=effect.said,
    )  # fmt: skip


def flow(step: Step) -> SafeString:
    """Draw how agents moved between right and wrong in one step: bands as thick as counts."""
    total = step.right_before + step.wrong_before
    if not total:
        return SafeString("")
    unit = (FLOW_HEIGHT - 64) / total
    kept, lost = step.right_before - step.broke, step.wrong_before - step.fixed
    right_after = kept + step.fixed
    top, gap = 24.0, 16.0
    wrong_left = top + step.right_before * unit + gap
    wrong_right = top + right_after * unit + gap
    # Each band: count, where it begins on the left and on the right, class.
    bands = (
        (kept, top, top, "plot-kept"),
        (step.broke, top + kept * unit, wrong_right, "plot-broke"),
        (step.fixed, wrong_left, top + kept * unit, "plot-fixed"),
        (lost, wrong_left + step.fixed * unit, wrong_right + step.broke * unit, "plot-still"),
    )
    drawn = format_html_join("", "{}", ((_band(*band, unit),) for band in bands if band[0]))
    ends = format_html_join(
        "",
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}"></rect>'
        '<text x="{}" y="{}" text-anchor="{}">{}</text>',
        (
            _end("✓", "plot-right", step.right_before, 72, top, unit, left=True),
            _end("✗", "plot-wrong", step.wrong_before, 72, wrong_left, unit, left=True),
            _end("✓", "plot-right", right_after, FLOW_WIDTH - 72, top, unit, left=False),
            _end("✗", "plot-wrong", total - right_after, FLOW_WIDTH - 72, wrong_right, unit,
                 left=False),
        ),
    )  # fmt: skip
    words = format_html(
        '<text x="{0}" y="14" text-anchor="middle">{4}</text>'
        '<text class="plot-quiet" x="{0}" y="{1}" text-anchor="middle">'
        "repaired {2} · damaged {3}</text>",
        FLOW_WIDTH / 2, FLOW_HEIGHT - 6, step.fixed, step.broke, step.name,
    )  # fmt: skip
    said = (
        f"Of {step.wrong_before} wrong agents {step.fixed} became right; "
        f"of {step.right_before} right agents {step.broke} became wrong."
    )
    return svg(f"Step {step.name}", said, FLOW_WIDTH, FLOW_HEIGHT, drawn + ends + words)


def _band(count: int, left: float, right: float, kind: str, unit: float) -> SafeString:
    x1, x2, middle = 72 + BAR, FLOW_WIDTH - 72, FLOW_WIDTH / 2
    thick = count * unit
    path = (
        f"M{x1} {left:.1f}C{middle} {left:.1f} {middle} {right:.1f} {x2} {right:.1f}"
        f"V{right + thick:.1f}C{middle} {right + thick:.1f} {middle} {left + thick:.1f} "
        f"{x1} {left + thick:.1f}Z"
    )
    return format_html('<path class="plot-band {}" d="{}"></path>', kind, path)


def _end(
    mark: str, kind: str, count: int, x: int, y: float, unit: float, *, left: bool
) -> tuple[str, str, str, int, str, str, str, str, str]:
    height = max(count * unit, 1.0)
    text_x, anchor = (x - 8, "end") if left else (x + BAR + 8, "start")
    return (
        kind, f"{x}", f"{y:.1f}", BAR, f"{height:.1f}",
        f"{text_x}", f"{y + height / 2 + 4:.1f}", anchor, f"{mark} {count}",
    )  # fmt: skip


def svg(title: str, said: str, width: int, height: int, body: SafeString) -> SafeString:
    """Return a drawing with its title and its content in words."""
    return format_html(
        '<svg class="plot plot-{0}" role="img" viewBox="0 0 {0} {1}" aria-label="{2}: {3}">'
        "<title>{2}</title><desc>{3}</desc>{4}</svg>",
        width, height, title, said, body,
    )  # fmt: skip
