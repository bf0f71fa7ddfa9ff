"""What says a metric in words; the entries are in ``definitions`` and ``judge_definitions``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: How a value is written: a share as per cent, a difference of shares as signed points.
Form = Literal["share", "points", "number", "usd", "seconds"]
#: What a row behind the figure is: an agent in a run, a run, or an item with all said of it.
Unit = Literal["agent", "run", "item"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric in words. ``over`` is its denominator; ``section`` where a report shows it."""

    words: str
    sentence: str
    over: str
    section: str
    form: Form = "share"
    unit: Unit = "run"
