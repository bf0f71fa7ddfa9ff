"""
What a queue draws from its source: which units, in which order, with which weight.

Sampling is of units (an item, a transition, a question). A drawn unit's weight is 1 over its
inclusion probability, so that weights of the drawn units sum to the size of the source whatever
the design. Randomness is a hash of the queue's seed and the unit (S36): the order of the source
cannot matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from audits.labelling.design import QueueDesign, Sampling
from runs.engine.hashing import digest

ServedAs = Literal["first", "swapped", "unswapped"]
Phase = Literal["calibration", "main"]


@dataclass(frozen=True, slots=True)
class SourceItem:
    """
    One item that may be drawn. ``unit_id`` is what is sampled: items of one unit come together.

    ``flagged`` marks what flip-first and disagreement-first sampling take for certain. A gold
    item has a known label and is no part of the sample.
    """

    item_id: str
    unit_id: str
    stratum: str = ""
    flagged: bool = False
    is_gold: bool = False


@dataclass(frozen=True, slots=True)
class Drawn:
    """One item of the queue, in serving order. Gold has no use for its ``weight``."""

    item_id: str
    weight: float = 1.0
    phase: Phase = "main"
    served_as: ServedAs = "first"
    is_gold: bool = False


class SamplingError(ValueError):
    """The source cannot give what the design asks for; the message says what is missing."""


def plan(source: Sequence[SourceItem], design: QueueDesign, seed: int) -> tuple[Drawn, ...]:
    """
    Return the items of a queue in the order in which they are served.

    Calibration items first, then the sample with hidden gold spread through it, then the second
    servings, each far from its first. Raises SamplingError where gold is missing, where a unit
    stands in two strata, or where an item stands twice.
    """
    _refuse_doubles(source)
    weights = _unit_weights([item for item in source if not item.is_gold], design.sampling, seed)
    sample = [
        Drawn(item.item_id, weight=weights[item.unit_id])
        for item in source
        if not item.is_gold and item.unit_id in weights
    ]
    units = {item.item_id: item.unit_id for item in source}
    ordered = _far_apart(sample, units, seed)
    calibration, gold = _gold(source, design, len(ordered), seed)
    return (*calibration, *_with_second_servings(_spread(ordered, gold, seed), design, seed))


def _refuse_doubles(source: Sequence[SourceItem]) -> None:
    seen: set[str] = set()
    strata: dict[str, str] = {}
    for item in source:
        if item.item_id in seen:
            raise SamplingError(f"item {item.item_id!r} stands twice in the source")
        seen.add(item.item_id)
        if strata.setdefault(item.unit_id, item.stratum) != item.stratum:
            raise SamplingError(f"unit {item.unit_id!r} stands in two strata")


def _unit_weights(items: Sequence[SourceItem], how: Sampling, seed: int) -> dict[str, float]:
    """Return the weight of each drawn unit."""
    units: dict[str, list[SourceItem]] = defaultdict(list)
    for item in items:
        units[item.unit_id].append(item)
    if how.kind in {"flip_first", "disagreement_first"}:
        certain = [unit for unit, its in units.items() if any(item.flagged for item in its)]
        others = [unit for unit in units if unit not in set(certain)]
        return dict.fromkeys(certain, 1.0) | _drawn(
            others, ceil(how.random_share * len(others)), seed
        )
    if how.kind == "random":
        return _drawn(list(units), how.n or 0, seed)
    if how.kind == "stratified":
        return _stratified({unit: its[0].stratum for unit, its in units.items()}, how, seed)
    return dict.fromkeys(units, 1.0)


def _drawn(units: Iterable[str], n: int, seed: int) -> dict[str, float]:
    ranked = _ranked(units, seed, "sample")
    taken = ranked[:n]
    return dict.fromkeys(taken, len(ranked) / len(taken)) if taken else {}


def _stratified(strata: dict[str, str], how: Sampling, seed: int) -> dict[str, float]:
    members: dict[str, list[str]] = defaultdict(list)
    for unit, stratum in strata.items():
        members[stratum].append(unit)
    sizes = {stratum: len(units) for stratum, units in sorted(members.items())}
    if how.per_stratum is not None:
        wanted = {stratum: min(how.per_stratum, size) for stratum, size in sizes.items()}
    else:
        wanted = proportional(sizes, min(how.n or 0, len(strata)))
    found: dict[str, float] = {}
    for stratum, units in members.items():
        found |= _drawn(units, wanted[stratum], seed)
    return found


def proportional(sizes: dict[str, int], n: int) -> dict[str, int]:
    """
    Share ``n`` out in proportion to sizes by largest remainders, at least one for each stratum.

    At least one, since a stratum without a label has no estimate; ``n`` below the number of
    strata is then exceeded.
    """
    total = sum(sizes.values())
    exact = {stratum: n * size / total for stratum, size in sizes.items()} if total else {}
    given = {stratum: max(1, int(share)) for stratum, share in exact.items()}
    by_remainder = sorted(
        exact, key=lambda stratum: (int(exact[stratum]) - exact[stratum], stratum)
    )
    for stratum in by_remainder:
        if sum(given.values()) < n and given[stratum] < sizes[stratum]:
            given[stratum] += 1
    return given


def _ranked(keys: Iterable[str], seed: int, purpose: str) -> list[str]:
    return sorted(keys, key=lambda key: (digest([seed, purpose, key]), key))


def _far_apart(sample: Sequence[Drawn], units: dict[str, str], seed: int) -> list[Drawn]:
    """
    Shuffle, with items of one unit as far from one another as can be.

    The k-th items of all units come in one block, each block in the same order of units: two
    items of a unit are then as many places apart as there are units with that many items.
    """
    of_unit: dict[str, list[str]] = defaultdict(list)
    for item_id in _ranked((drawn.item_id for drawn in sample), seed, "within unit"):
        of_unit[units[item_id]].append(item_id)
    by_id = {drawn.item_id: drawn for drawn in sample}
    order = _ranked(of_unit, seed, "serving")
    longest = max((len(items) for items in of_unit.values()), default=0)
    return [
        by_id[of_unit[unit][k]] for k in range(longest) for unit in order if k < len(of_unit[unit])
    ]


def _gold(
    source: Sequence[SourceItem], design: QueueDesign, sampled: int, seed: int
) -> tuple[list[Drawn], list[Drawn]]:
    ranked = _ranked((item.item_id for item in source if item.is_gold), seed, "gold")
    first = design.calibration.items if design.calibration is not None else 0
    hidden = (
        ceil(design.gold_share * sampled / (1 - design.gold_share)) if design.gold_share < 1 else 0
    )
    if design.gold_share == 1:
        raise SamplingError("gold_share: 1 would leave nothing to label")
    if first + hidden > len(ranked):
        raise SamplingError(
            f"{first + hidden} gold items are needed ({first} for calibration, {hidden} hidden), "
            f"the source has {len(ranked)}"
        )
    made = [Drawn(item_id, is_gold=True) for item_id in ranked[: first + hidden]]
    return [replace(drawn, phase="calibration") for drawn in made[:first]], made[first:]


def _spread(items: Sequence[Drawn], extra: Sequence[Drawn], seed: int) -> list[Drawn]:
    """Return ``items`` with ``extra`` in it: one in each equal stretch, at a drawn place."""
    if not extra:
        return list(items)
    found: list[Drawn] = []
    bounds = [round(i * len(items) / len(extra)) for i in range(len(extra) + 1)]
    for index, drawn in enumerate(extra):
        stretch = items[bounds[index] : bounds[index + 1]]
        place = int(digest([seed, "place", drawn.item_id, drawn.served_as]), 16) % (
            len(stretch) + 1
        )
        found += [*stretch[:place], drawn, *stretch[place:]]
    return found


def _with_second_servings(items: list[Drawn], design: QueueDesign, seed: int) -> list[Drawn]:
    """Serve shares of the first half again, in the second half, swapped or as before."""
    half = [drawn for drawn in items[: (len(items) + 1) // 2] if not drawn.is_gold]
    ids = _ranked((drawn.item_id for drawn in half), seed, "again")
    sample_size = sum(not drawn.is_gold for drawn in items)
    swapped = min(round(design.swapped_share * sample_size), len(ids))
    unswapped = min(round(design.unswapped_share * sample_size), len(ids) - swapped)
    weights = {drawn.item_id: drawn.weight for drawn in half}
    again = [
        Drawn(item_id, weight=weights[item_id], served_as="swapped" if i < swapped else "unswapped")
        for i, item_id in enumerate(ids[: swapped + unswapped])
    ]
    places = {drawn.item_id: place for place, drawn in enumerate(items)}
    again.sort(key=lambda drawn: places[drawn.item_id])  # The earlier first: equal distances.
    middle = (len(items) + 1) // 2
    return [*items[:middle], *_spread(items[middle:], again, seed)]
