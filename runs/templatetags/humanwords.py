"""Filters of the pages about running."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from debateweb.texts import printable

register = template.Library()


@register.filter
def duration(seconds: float) -> str:
    """Return seconds as a person says them: ``45 s``, ``3 h 20 min``, ``2 days 3 h``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = round(whole / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} day{'s' if days > 1 else ''} {hours} h"


@register.filter
def breakable(name: object) -> SafeString:
    """Return a long name that a narrow column breaks after its marks, not within its words."""
    parts = re.split(r"(?<=[,:/;])", printable(str(name)))
    return format_html_join("", "{}<wbr>", ((part,) for part in parts if part))
