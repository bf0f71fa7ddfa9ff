"""The question bootstrap: whole questions (or families) are drawn, with all that hangs on them.

One weight matrix, drawn from a seed, serves every figure of a condition. It is made in chunks:
whole it would be 800 MB at 10,000 questions and as many resamples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from audits.metrics.arrays import FloatArray
from audits.metrics.figures import Interval

REPORT_RESAMPLES = 10_000
MAX_UNDEFINED_SHARE = 0.05
METHOD = "qboot_percentile"

_CHUNK_WEIGHTS = 4_000_000  # weights held at once: 32 MB of float64


@dataclass(frozen=True, slots=True)
class Bootstrapped:
    """A percentile interval, the replicates' SD, and the share of replicates without a value."""

    ci: Interval | None
    se: float | None
    undefined_share: float
    reason: str | None = None


def weight_chunks(units: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield multinomial weights, [chunk, units], ``resamples`` rows in all, fixed by the seed."""
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK_WEIGHTS // max(1, units))
    for start in range(0, resamples, step):
        rows = min(step, resamples - start)
        # Drawing units and counting them is the multinomial, four times faster.
        drawn = rng.integers(0, units, size=(rows, units)) + units * np.arange(rows)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=rows * units)
        yield counts.reshape(rows, units).astype(np.float64)


def resampled_sums(columns: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Return the weighted column sums, [resamples, columns], of ``columns`` [units, columns]."""
    return np.concatenate([w @ columns for w in weight_chunks(len(columns), resamples, seed)])


def ratio_replicates(num: FloatArray, den: FloatArray) -> FloatArray:
    """Return num/den, NaN where a resample left the denominator empty."""
    out = np.full(num.shape, np.nan)
    # Fractional denominators of unlike sums leave rounding where an exact zero belongs.
    np.divide(num, den, out=out, where=den > 1e-12)
    return out


def percentile_interval(replicates: FloatArray, alpha: float = 0.05) -> Bootstrapped:
    """Return the percentile interval of ``replicates`` (NaN = undefined, dropped and counted).

    No interval above 5 % undefined, nor for a constant, where its width of zero would claim
    a certainty that the data do not give.
    """
    defined = replicates[~np.isnan(replicates)]
    share = 1 - len(defined) / len(replicates)
    if not len(defined) or share > MAX_UNDEFINED_SHARE:
        return Bootstrapped(None, None, share, f"undefined in {share:.1%} of resamples")
    if np.ptp(defined) < 1e-12:
        return Bootstrapped(None, None, share, "constant in every resample")
    low, high = np.quantile(defined, [alpha / 2, 1 - alpha / 2], method="linear")
    return Bootstrapped((float(low), float(high)), float(np.std(defined)), share)
