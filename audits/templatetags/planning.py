"""What an experiment can show, for the pages that set it up and watch it."""

from __future__ import annotations

from typing import Any

from django import template

from audits.metrics.planning import detectable_effect
from audits.stage import stage_of
from runs.models import Experiment

register = template.Library()

#: Shares of questions on which two arms differ that are assumed before anything is known.
ASSUMED_DISCORDANCE = (0.1, 0.2, 0.3)


@register.inclusion_tag("audits/_detectable.html")
def detectable(questions: int, alpha: float) -> dict[str, Any]:
    """Show the smallest difference that so many questions find, under what is assumed."""
    rows = [(share, detectable_effect(share, questions, alpha)) for share in ASSUMED_DISCORDANCE]
    return {"questions": questions, "alpha": alpha, "rows": rows}


@register.inclusion_tag("audits/_stage.html")
def stage_panel(experiment: Experiment) -> dict[str, Any]:
    """Show what a pilot stage has shown. Reads every row of the stage."""
    return {"stage": stage_of(experiment)}
