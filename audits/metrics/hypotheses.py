"""Exact and resampled tests, and the correction for a family of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, sums_by

EXHAUSTIVE_UP_TO = 16  # clusters: 65,536 sign patterns
SIGN_FLIPS = 9_999


@dataclass(frozen=True, slots=True)
class McNemar:
    """Two-sided exact p, its mid-p, and whether no pair was discordant: then p = 1 is empty."""

    p: float
    p_mid: float
    no_discordant: bool


def mcnemar_exact(gained: int, lost: int) -> McNemar:
    """Test whether changes in either direction are equally likely, on the discordant pairs."""
    from scipy.special import bdtr  # at report time only

    n, fewer = gained + lost, min(gained, lost)
    if n == 0:
        return McNemar(1.0, 1.0, no_discordant=True)
    at_most = float(bdtr(fewer, n, 0.5))
    below = float(bdtr(fewer - 1, n, 0.5)) if fewer else 0.0
    return McNemar(min(1.0, 2 * at_most), min(1.0, at_most + below), no_discordant=False)


def sign_flip(
    values: FloatArray,
    seed: int,
    clusters: IntArray | None = None,
    flips: int = SIGN_FLIPS,
) -> float:
    """Return the two-sided p of mean zero when each cluster's sign is arbitrary.

    Exhaustive up to 16 clusters; above that ``flips`` random patterns with the observed one
    counted in, so that p is never zero.
    """
    if clusters is None:
        sums = values
    else:
        _, index = np.unique(clusters, return_inverse=True)
        sums = sums_by(index.astype(np.int64), values, int(index.max()) + 1)
    sums = sums[sums != 0]  # a cluster at zero is zero under either sign
    observed = abs(float(np.sum(sums))) - 1e-12
    if len(sums) <= EXHAUSTIVE_UP_TO:
        patterns = np.arange(2 ** len(sums))[:, None] >> np.arange(len(sums)) & 1
        return float(np.mean(np.abs((2.0 * patterns - 1) @ sums) >= observed))
    rng = np.random.default_rng(seed)
    signs = 2.0 * rng.integers(0, 2, size=(flips, len(sums))) - 1
    return float((1 + np.count_nonzero(np.abs(signs @ sums) >= observed)) / (1 + flips))


def holm(p_values: Sequence[float | None]) -> list[float]:
    """Return Holm's adjusted p values; an undefined one enters as 1, for it was declared."""
    p = np.array([1.0 if value is None else value for value in p_values], dtype=np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return [float(value) for value in np.minimum(adjusted, 1.0)]


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float]:
    """Return false-discovery-adjusted p values, for tables labelled exploratory."""
    p = np.array([1.0 if value is None else value for value in p_values], dtype=np.float64)
    order = np.argsort(-p, kind="stable")
    ranks = np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum.accumulate(p[order] * len(p) / ranks)
    return [float(value) for value in np.minimum(adjusted, 1.0)]
