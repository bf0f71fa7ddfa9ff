"""Whether stated probabilities mean what they say. A probability of what must be said with it:
being right is not being preferred.

``r`` [rows] are probabilities of an event, ``y`` [rows] 1 where it happened.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, floats, sums_by
from audits.metrics.figures import Interval
from audits.metrics.intervals import wilson

BINS: Final = 10
#: A probability of 0 that was wrong would cost infinitely much; it is counted as this.
LOG_FLOOR: Final = 1e-3
_DECIMALS = 9  # 0.6000000000000001 is 0.6


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of the reliability table, [low, high); the last includes 1. Empty ones are kept."""

    low: float
    high: float
    n: int
    mean_r: float | None
    mean_y: float | None
    ci: Interval | None


@dataclass(frozen=True, slots=True)
class BrierParts:
    """brier = reliability - resolution + uncertainty + within.

    ``within`` is what bins of unequal probabilities leave over: zero where each bin holds one
    value. ``skill`` is 1 - brier/uncertainty, None where nothing is uncertain.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float
    skill: float | None


def bin_of(r: FloatArray, bins: int = BINS) -> IntArray:
    """Return the bin of each probability: equal widths, left-closed, after rounding to 1e-9."""
    scaled = np.round(np.round(r, _DECIMALS) * bins, _DECIMALS)
    return np.minimum(np.floor(scaled), bins - 1).astype(np.int64)


def brier(r: FloatArray, y: FloatArray) -> FloatArray:
    """Return each row's squared error, 0 to 1."""
    return floats((r - y) ** 2)


def log_score(r: FloatArray, y: FloatArray) -> FloatArray:
    """Return each row's -ln of the probability given to what happened, in nats."""
    return floats(-np.log(np.maximum(np.where(y > 0, r, 1 - r), LOG_FLOOR)))


def reliability_table(r: FloatArray, y: FloatArray, bins: int = BINS) -> list[Bin]:
    at = bin_of(r, bins)
    table = []
    for index in range(bins):
        own = at == index
        n, hits = int(own.sum()), float(y[own].sum())
        mean_r = float(r[own].mean()) if n else None
        mean_y = hits / n if n else None
        table.append(Bin(index / bins, (index + 1) / bins, n, mean_r, mean_y, wilson(hits, n)))
    return table


def calibration_columns(r: FloatArray, y: FloatArray, bins: int = BINS) -> FloatArray:
    """Return [rows, 1 + bins]: 1, and y - r in the row's bin. Their sums are all that ECE needs."""
    at = bin_of(r, bins)[:, None] == np.arange(bins)
    return np.column_stack([np.ones(len(r)), at * (y - r)[:, None]])


def ece_of_sums(sums: FloatArray) -> FloatArray:
    """Return the expected calibration error from summed columns [..., 1 + bins].

    Biased upward and dependent on the bins: never alone, never a gate.
    """
    out = np.full(sums.shape[:-1], np.nan)
    np.divide(np.abs(sums[..., 1:]).sum(axis=-1), sums[..., 0], out=out, where=sums[..., 0] > 0)
    return out


def brier_parts(r: FloatArray, y: FloatArray, bins: int = BINS) -> BrierParts:
    """Return Murphy's decomposition over bins. Raises ValueError without rows."""
    if not len(r):
        raise ValueError("no probabilities")
    at, n = bin_of(r, bins), len(r)
    count = sums_by(at, np.ones(n), bins)
    used = count > 0
    mean_r, mean_y = (sums_by(at, v, bins)[used] / count[used] for v in (r, y))
    share, base = count[used] / n, float(y.mean())
    whole = float(brier(r, y).mean())
    reliability = float(share @ (mean_r - mean_y) ** 2)
    resolution = float(share @ (mean_y - base) ** 2)
    uncertainty = base * (1 - base)
    within = whole - (reliability - resolution + uncertainty)
    skill = None if uncertainty == 0 else 1 - whole / uncertainty
    return BrierParts(whole, reliability, resolution, uncertainty, within, skill)
