"""Whom a judge prefers: itself, and by how many points whom."""

from collections.abc import Mapping, Sequence

import numpy as np

from audits.metrics.figures import Figure
from audits.metrics.judge_accuracy import mean_scores
from audits.metrics.judgments import TIE, JudgedItem
from audits.metrics.question_table import Cell, QuestionTable
from audits.metrics.ratio import Settings
from audits.metrics.two_rates import RateDifference, rate_difference

NO_OWN = "no pairs on which people prefer the judge's own answer, or none on which another's"
NO_SCORES = "no item has scores from every judgment"
NO_SYSTEMS = "the candidates of different items are not the same systems"


def self_preference(
    items: Sequence[JudgedItem],
    table: QuestionTable,
    settings: Settings,
    *,
    own_of: Mapping[str, str] | None = None,
    by: Mapping[str, str] | None = None,
) -> Figure:
    """Return P(picks own | people prefer own) - P(picks other | people prefer other).

    The people's preference is ``gold``. ``own_of`` names the candidate by item id and takes the
    place of the rows' ``own``: with it the same gap is found for other judges, who wrote none of
    them (``by`` then says whose). A tie picks nobody.
    """
    own: list[Cell] = []
    other: list[Cell] = []
    for item in items:
        mine = own_of.get(item.facts.item_id) if own_of is not None else item.facts.own
        gold = item.facts.gold
        if mine is None or gold is None or gold == TIE:
            continue
        cells = own if gold == mine else other
        for verdicts in item.verdicts.values():
            picked = float(np.mean([verdict == gold for verdict in verdicts]))
            cells.append((item.question_id, picked, 1.0))
    wanted = RateDifference("self_preference", own, other, NO_OWN, by or {})
    return rate_difference(table, wanted, settings)


def score_totals(items: Sequence[JudgedItem], settings: Settings) -> list[Figure]:
    """Return the sum of scores over items, by model or, without models, by candidate.

    Repeats and orders of an item are averaged first. ``num`` is the total, ``den`` None: it is
    a sum and no rate.
    """
    totals: dict[str, float] = {}
    questions: set[str] = set()
    for item in items:
        scores = mean_scores(item)
        if scores is None:
            continue
        questions.add(item.question_id)
        for name, score in scores.items():
            system = item.facts.models.get(name, name)
            totals[system] = totals.get(system, 0.0) + score
    reason = _why_no_totals(items, totals)
    if reason:
        return [Figure("score_total", reason=reason, source=settings.source)]
    return [
        Figure(
            "score_total", by={"model": system}, num=total, value=total,
            n_questions=len(questions), source=settings.source,
        )
        for system, total in sorted(totals.items())
    ]  # fmt: skip


def _why_no_totals(items: Sequence[JudgedItem], totals: Mapping[str, float]) -> str | None:
    if not totals:
        return NO_SCORES
    named = all(item.facts.models.keys() >= set(item.given) for item in items)
    shared = len({frozenset(item.given) for item in items}) == 1
    return None if named or shared else NO_SYSTEMS
