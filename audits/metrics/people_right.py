"""What people's labels say is right: options and scales become right or wrong by a frozen rule."""

from collections.abc import Mapping, Sequence

from audits.metrics.labels import SEALED, LabelRow, first_labels
from audits.metrics.question_table import Cell, QuestionTable
from audits.metrics.ratio import Ratio

METRIC = "labelled_right"
NOTHING = "no label that counts as right or wrong"


def right_ratio(
    rows: Sequence[LabelRow],
    right: Mapping[str, bool],
    decided: Mapping[str, str] | None = None,
) -> tuple[QuestionTable, Ratio]:
    """Return the share of items that people call right, and the questions that it is over.

    ``right`` says of each category whether it counts as right or wrong; others count as neither.
    Every item weighs its weight: the share of its labels that say right, or the lead's decision
    (``decided``, a category by item) in their place.
    """
    first = first_labels([row for row in rows if row.reveal_state == SEALED])
    table = QuestionTable({row.question_id: row.family or row.question_id for row in first})
    votes: dict[str, list[bool]] = {}
    facts: dict[str, LabelRow] = {}
    for row in first:
        facts.setdefault(row.item_id, row)
        if row.category in right:
            votes.setdefault(row.item_id, []).append(right[row.category])
    for item_id, category in (decided or {}).items():
        if item_id in facts and category in right:
            votes[item_id] = [right[category]]
    cells: list[Cell] = [
        (facts[item].question_id, facts[item].weight * sum(said) / len(said), facts[item].weight)
        for item, said in votes.items()
    ]
    return table, table.ratio(METRIC, cells, NOTHING)
