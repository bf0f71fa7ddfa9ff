"""Order by order as small tables: who flipped where to, and which place won how often."""

from collections import Counter
from collections.abc import Iterable, Sequence

from audits.metrics.judgments import ABSTAIN, CONFLICT, TIE, JudgedItem, modal_verdict

#: The candidates by their place in the file; repeats of one order that are split evenly.
FIRST, LAST, SPLIT, NONE = "first", "second", "split", "no verdict"
#: What a pair can come to under one order, in the order in which it is shown.
CELLS = (FIRST, LAST, TIE, SPLIT, ABSTAIN, NONE)


def order_flips(items: Iterable[JudgedItem]) -> list[dict[str, object]]:
    """Return how often each verdict in the given order met each one in the swapped order.

    Over pairs shown in both orders; within an order the most frequent verdict speaks.
    """
    found = Counter(
        (_came_to(item, item.given), _came_to(item, item.swapped))
        for item in items
        if len(item.given) == 2 and {item.given, item.swapped} <= item.by_order.keys()
    )
    return [
        {"given": given, "swapped": swapped, "n": found[given, swapped]}
        for given in CELLS
        for swapped in CELLS
        if found[given, swapped]
    ]


def _came_to(item: JudgedItem, order: tuple[str, ...]) -> str:
    verdicts = item.verdicts.get(order)
    if not verdicts:
        silent = any(row.verdict == ABSTAIN for row in item.by_order[order])
        return ABSTAIN if silent else NONE
    said = modal_verdict(verdicts)
    if said == CONFLICT:
        return SPLIT
    return said if said == TIE else (FIRST, LAST)[item.given.index(said)]


def winners_by_place(items: Sequence[JudgedItem]) -> list[dict[str, object]]:
    """Return for each candidate how often it won at each place, and how often it stood there.

    Items of three candidates or more. Candidates are named by their model or id where all items
    have the same ones, else by their place in the file.
    """
    many = [item for item in items if len(item.given) > 2]
    named = _shared_names(many)
    wins: Counter[tuple[str, int]] = Counter()
    shown: Counter[tuple[str, int]] = Counter()
    for item in many:
        for row in item.rows:
            for place, candidate in enumerate(row.order, 1):
                name = named(item, candidate)
                shown[name, place] += row.decided
                wins[name, place] += row.verdict == candidate
    return [
        {"candidate": name, "place": place, "won": wins[name, place], "shown": n}
        for (name, place), n in sorted(shown.items())
    ]


class _Names:
    """How candidates are called: alike in all items, or by their place in the file."""

    def __init__(self, by: str) -> None:
        self._by = by

    def __call__(self, item: JudgedItem, candidate: str) -> str:
        if self._by == "model":
            return item.facts.models[candidate]
        if self._by == "id":
            return candidate
        return f"number {item.given.index(candidate) + 1} in the file"


def _shared_names(items: Sequence[JudgedItem]) -> _Names:
    if items and all(item.facts.models.keys() >= set(item.given) for item in items):
        models = {tuple(sorted(item.facts.models[c] for c in item.given)) for item in items}
        if len(models) == 1 and len(set(models.pop())) == len(items[0].given):
            return _Names("model")
    shared = len({frozenset(item.given) for item in items}) == 1
    return _Names("id" if shared else "place")
