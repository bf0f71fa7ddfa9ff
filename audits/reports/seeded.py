"""How the figures of a report are resampled: seeded from what went in, so that equal is equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from audits.metrics import Settings
from runs.engine.hashing import digest

#: Inputs that only name an experiment: another name is no other result, so they seed nothing.
_NAMING = frozenset({"spec"})
_SEED_BITS = 52  # Exact in every JSON reader.


def seeded(inputs: Mapping[str, Any], resamples: int, alpha: float = 0.05) -> Settings:
    """Return the settings of a report made from ``inputs``, by their hashes."""
    counted = {key: value for key, value in inputs.items() if key not in _NAMING}
    seed = int(digest(counted), 16) >> (256 - _SEED_BITS)
    return Settings(alpha=alpha, resamples=resamples, seed=seed)
