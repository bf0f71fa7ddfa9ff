"""As judged beside as audited: whom the judge chose, and whom people chose on the same items."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from audits.metrics.judge_accuracy import combined_verdict
from audits.metrics.judgments import CONFLICT, TIE, JudgedItem
from audits.metrics.labels import MISSING, LabelRow, label_table, majority_labels
from audits.metrics.question_table import Cell, QuestionTable
from audits.metrics.ratio import Ratio

METRIC = "chosen_share"
NOTHING = "no item has a verdict in every order and a label that is not tied"
JUDGE, PEOPLE = "judge", "people"


@dataclass(frozen=True, slots=True)
class Audited:
    """One item with what the judge said over its orders and what people said, as names."""

    item_id: str
    question_id: str
    names: tuple[str, ...]
    judge: str
    people: str
    weight: float

    @property
    def differs(self) -> bool:
        return self.judge != self.people


def audited_items(
    items: Iterable[JudgedItem],
    labels: Sequence[LabelRow],
    decided: Mapping[str, str] | None = None,
) -> list[Audited]:
    """Return the items that have both: people's majority, or the lead's decision where given.

    Candidates are named by the model that wrote them where all are known, else by their id.
    """
    people = majorities(labels) | dict(decided or {})
    weights = {row.item_id: row.weight for row in labels}
    listed = list(items)
    by_model = all(_has_models(item) for item in listed)
    found = []
    for item in listed:
        verdict, label = combined_verdict(item), people.get(item.facts.item_id)
        if verdict is None or label is None:
            continue
        names = {c: item.facts.models[c] if by_model else c for c in item.given}
        found.append(
            Audited(
                item.facts.item_id,
                item.question_id,
                tuple(names.values()),
                names.get(verdict, verdict),
                names.get(label, label),
                weights.get(item.facts.item_id, 1.0),
            )
        )
    return found


def _has_models(item: JudgedItem) -> bool:
    named = [item.facts.models.get(name, "") for name in item.given]
    return all(named) and len(set(named)) == len(named)


def majorities(labels: Sequence[LabelRow]) -> dict[str, str]:
    """Return each item's most frequent first sealed label; items where two lead have none."""
    if not labels:
        return {}
    table = label_table(labels)
    codes = zip(table.item_ids, majority_labels(table).tolist(), strict=True)
    return {item_id: table.categories[code] for item_id, code in codes if code != MISSING}


def chosen_ratios(audited: Sequence[Audited], table: QuestionTable) -> Iterator[Ratio]:
    """Yield chosen_share ``by.chosen`` and ``by.said_by``, over the items a name stands in."""
    names = sorted({name for one in audited for name in one.names})
    for chosen in (*names, TIE, CONFLICT):
        own = [one for one in audited if chosen in {TIE, CONFLICT, *one.names}]
        for said_by in (JUDGE, PEOPLE):
            cells: list[Cell] = [
                (one.question_id, one.weight * (_said(one, said_by) == chosen), one.weight)
                for one in own
            ]
            by = {"chosen": chosen, "said_by": said_by}
            if chosen != CONFLICT or said_by == JUDGE:
                yield table.ratio(METRIC, cells, NOTHING, by=by)


def _said(one: Audited, said_by: str) -> str:
    return one.judge if said_by == JUDGE else one.people


def audited_table(audited: Sequence[Audited]) -> list[dict[str, object]]:
    """Return how often each verdict met each label, the differing ones marked."""
    found = Counter((one.judge, one.people) for one in audited)
    return [
        {"as_judged": judge, "as_audited": people, "n": n, "differs": judge != people}
        for (judge, people), n in sorted(found.items())
    ]
