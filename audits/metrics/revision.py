"""Repair, damage and the fate of minorities, counted on 0/1 correctness.

Arrays are [questions or runs, agents] unless said otherwise; ``configured`` masks the padding of
questions with fewer agents. Configured agents never leave a denominator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, floats


@dataclass(frozen=True, slots=True, eq=False)
class Transitions:
    """Counts per question between two times; each field is [questions].

    ``wrong`` and ``right`` are the agents so at the first time, ``fixed`` those of the wrong
    that are right at the second, ``broke`` those of the right that are wrong.
    """

    wrong: FloatArray
    right: FloatArray
    fixed: FloatArray
    broke: FloatArray

    @property
    def agents(self) -> FloatArray:
        return self.wrong + self.right


def transitions(before: BoolArray, after: BoolArray, counted: BoolArray) -> Transitions:
    """Count right and wrong at the first time and who crossed, over the agents ``counted``."""

    def per_question(mask: BoolArray) -> FloatArray:
        return floats(np.count_nonzero(mask & counted, axis=1))

    return Transitions(
        wrong=per_question(~before),
        right=per_question(before),
        fixed=per_question(~before & after),
        broke=per_question(before & ~after),
    )


def ragged(rows: Sequence[Sequence[int]]) -> tuple[BoolArray, BoolArray]:
    """Return (values, configured), both [questions, most agents], of rows of unequal length."""
    widest = max((len(row) for row in rows), default=0)
    values = np.zeros((len(rows), widest), dtype=np.bool_)
    configured = np.zeros_like(values)
    for index, row in enumerate(rows):
        values[index, : len(row)] = row
        configured[index, : len(row)] = True
    return values, configured


def changes_of_correctness(correct: BoolArray) -> FloatArray:
    """Return how often each agent crossed, [runs, agents]; ``correct`` is [runs, t, agents]."""
    return floats(np.count_nonzero(correct[:, 1:] != correct[:, :-1], axis=1))


def is_minority(right: FloatArray, agents: FloatArray) -> BoolArray:
    """Return where some, but fewer than half, were right. Of two agents none can be a minority."""
    return np.asarray((right >= 1) & (2 * right < agents))


def is_majority(right: FloatArray, agents: FloatArray) -> BoolArray:
    return np.asarray(2 * right > agents)


def is_half(right: FloatArray, agents: FloatArray) -> BoolArray:
    return np.asarray((agents > 0) & (2 * right == agents), dtype=np.bool_)
