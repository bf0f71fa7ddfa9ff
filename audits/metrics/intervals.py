"""Analytic intervals. The question, or its family, is the unit; agents and runs never are.

SciPy is imported inside the functions that need it: reports need it, an import of the metrics by
a worker or a web process does not, and it costs a quarter of a second.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, floats, sums_by
from audits.metrics.figures import Interval

#: Sums of squared residuals below this are rounding of an exact zero.
_NO_VARIATION = 1e-24


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its standard error; ``se`` and ``ci`` are None where there is no variation.

    ``df`` is None where the reference distribution is normal.
    """

    value: float
    se: float | None
    df: int | None
    ci: Interval | None
    method: str


def normal_quantile(probability: float) -> float:
    return NormalDist().inv_cdf(probability)


def t_quantile(probability: float, df: int) -> float:
    from scipy.special import stdtrit  # at report time only

    return float(stdtrit(df, probability))


def t_upper_tail(statistic: float, df: int) -> float:
    from scipy.special import stdtr  # at report time only

    return float(stdtr(df, -statistic))


def normal_upper_tail(statistic: float) -> float:
    return 0.5 * math.erfc(statistic / math.sqrt(2))


def wilson(successes: float, n: int, alpha: float = 0.05) -> Interval | None:
    """Return the Wilson score interval of a proportion with one row per question."""
    if n == 0:
        return None
    z = normal_quantile(1 - alpha / 2)
    p = successes / n
    scale = 1 + z**2 / n
    centre = (p + z**2 / (2 * n)) / scale
    half = z / scale * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def clopper_pearson(successes: int, n: int, alpha: float = 0.05) -> Interval | None:
    """Return the exact interval of a proportion, for claims of the kind "no failure in n"."""
    from scipy.special import betaincinv  # at report time only

    if n == 0:
        return None
    low = betaincinv(successes, n - successes + 1, alpha / 2) if successes else 0.0
    high = betaincinv(successes + 1, n - successes, 1 - alpha / 2) if successes < n else 1.0
    return float(low), float(high)


def ratio_estimate(
    num: FloatArray, den: FloatArray, clusters: IntArray | None = None, alpha: float = 0.05
) -> Estimate | None:
    """Return Σnum/Σden with its cluster-robust (CR1) standard error and t interval.

    ``num`` and ``den`` are [questions]; ``clusters`` the family of each, itself by default.
    G counts the clusters with a positive denominator. Equal to least squares on the eligible
    pairs with clustered covariance. None where Σden = 0.
    """
    if not np.sum(den):
        return None
    value = float(np.sum(num) / np.sum(den))
    used = den > 0
    index = np.arange(len(num)) if clusters is None else clusters
    _, index = np.unique(index[used], return_inverse=True)
    count = int(index.max()) + 1
    residual = sums_by(index.astype(np.int64), (num - value * den)[used], count)
    scatter = float(residual @ residual)
    if count < 2 or scatter <= _NO_VARIATION:
        return Estimate(value, None, count - 1, None, "cr1_t")
    se = math.sqrt(count / (count - 1) * scatter) / float(np.sum(den))
    half = t_quantile(1 - alpha / 2, count - 1) * se
    return Estimate(value, se, count - 1, (value - half, value + half), "cr1_t")


def mean_estimate(
    values: FloatArray, clusters: IntArray | None = None, alpha: float = 0.05
) -> Estimate | None:
    """Return the mean of ``values`` [questions] with a t interval, clustered where asked.

    Without clusters the standard error is sd/√n; with them it carries the factor G/(G-1).
    """
    return ratio_estimate(values, np.ones(len(values)), clusters, alpha)


def bonett_price(gained: int, lost: int, n: int, alpha: float = 0.05) -> Estimate | None:
    """Return the difference of paired proportions with the Bonett-Price (+1 counts) interval.

    The value is the raw difference (gained - lost)/n; the interval is centred on the adjusted
    one, kept in [-1, 1]. Source: Bonett & Price 2012.
    """
    if n == 0:
        return None
    centre, se = bonett_price_centre(gained, lost, n)
    half = normal_quantile(1 - alpha / 2) * se
    ci = (max(-1.0, centre - half), min(1.0, centre + half))
    return Estimate((gained - lost) / n, se, None, ci, "bonett_price")


def bonett_price_centre(gained: int, lost: int, n: int) -> tuple[float, float]:
    """Return the adjusted difference and its standard error."""
    up, down = (gained + 1) / (n + 2), (lost + 1) / (n + 2)
    return up - down, math.sqrt((up + down - (up - down) ** 2) / (n + 2))


def bca_interval(
    values: FloatArray, resamples: int, seed: int, alpha: float = 0.05
) -> Interval | None:
    """Return the BCa bootstrap interval of a mean; None for constant data, where BCa is undefined.

    For statistics that every resample defines; ratios use the percentile bootstrap.
    """
    from scipy.stats import bootstrap  # at report time only

    if len(values) < 2 or np.ptp(values) == 0:
        return None
    found = bootstrap(
        (floats(values),),
        np.mean,
        n_resamples=resamples,
        confidence_level=1 - alpha,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)
