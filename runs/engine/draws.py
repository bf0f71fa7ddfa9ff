"""
Counter-based randomness (S36): a draw depends on its key and on nothing else.

The same key gives the same draw in every process, in any order of work. There is no generator
to share, so nothing can be out of step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from runs.engine.hashing import canonical_bytes

T = TypeVar("T")

#: 53 bits: the most that a float in [0, 1) holds exactly.
_BITS = 53


@dataclass(frozen=True, slots=True)
class Draws:
    """
    Draws of one run on one question.

    ``agent`` may be empty: the draw is then common to all agents (shared errors, lots).
    """

    run_seed: int
    question_hash: str

    def integer(self, *, agent: str = "", t: int = 0, purpose: str, index: int = 0) -> int:
        """Return 256 uniform bits as an integer."""
        key = [self.run_seed, self.question_hash, agent, t, purpose, index]
        return int.from_bytes(hashlib.sha256(canonical_bytes(key)).digest(), "big")

    def uniform(self, *, agent: str = "", t: int = 0, purpose: str, index: int = 0) -> float:
        """Return a uniform draw in [0, 1)."""
        bits = self.integer(agent=agent, t=t, purpose=purpose, index=index) >> (256 - _BITS)
        return float(bits) / float(1 << _BITS)

    def below(
        self, bound: int, *, agent: str = "", t: int = 0, purpose: str, index: int = 0
    ) -> int:
        """Return a uniform draw in 0 … bound − 1; the bias of 256 bits is below 2^-190."""
        return self.integer(agent=agent, t=t, purpose=purpose, index=index) % bound

    def shuffled(
        self, items: Sequence[T], *, agent: str = "", t: int = 0, purpose: str
    ) -> tuple[T, ...]:
        """Return a seeded Fisher-Yates permutation of ``items``."""
        out = list(items)
        for i in range(len(out) - 1, 0, -1):
            j = self.below(i + 1, agent=agent, t=t, purpose=purpose, index=i)
            out[i], out[j] = out[j], out[i]
        return tuple(out)
