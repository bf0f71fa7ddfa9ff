"""Prediction-powered inference: many judge verdicts corrected by few labels (PPI++).

The estimand is the people's label. The labelled items are a random sample, disjoint from the
others, one row a question; their labels were sealed before any reveal. Void when judge, prompt or
guideline change. Source: Angelopoulos, Duchi & Zrnic 2023, with the tuned lambda.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from audits.metrics.arrays import FloatArray
from audits.metrics.figures import Figure
from audits.metrics.intervals import normal_quantile, wilson
from audits.metrics.ratio import Settings

METHOD = "ppi_plus_plus"
METRIC = "people_would_say"
MIN_LABELS = 200
MIN_PER_CLASS = 20
NOT_POWERED = "too few labels for PPI++ (200, with 20 of each class): labels alone"


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """One stratum: ``y`` and ``f`` [n] of the labelled, ``f_rest`` [N] of the others, as shares.

    Strata are weighed by their items. ``weights`` [n], 1/inclusion probability, where the
    labelled were drawn unequally.
    """

    y: FloatArray
    f: FloatArray
    f_rest: FloatArray
    weights: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class PowerEstimate:
    value: float
    variance: float
    power: float  # lambda, 0 to 1: how far the judge is trusted


def ppi_mean(sample: Predicted) -> PowerEstimate:
    """Return θ = λ·mean(f_rest) + mean(y - λ·f), with its variance.

    λ = cov(y, f) / ((1 + n/N)·var(f)), var over all f, clipped to [0, 1].
    Raises ValueError without labels or without unlabelled items.
    """
    y, f, rest = sample.y, sample.f, sample.f_rest
    n, others = len(y), len(rest)
    if not n or not others:
        raise ValueError("PPI++ needs labelled and unlabelled items")
    w = np.ones(n) if sample.weights is None else sample.weights * n / sample.weights.sum()
    centred = w * (y - np.average(y, weights=w)) * (f - np.average(f, weights=w))
    spread = float(np.var(np.concatenate([f, rest]), ddof=1))
    power = float(np.mean(centred)) / ((1 + n / others) * spread) if spread > 0 else 0.0
    power = min(1.0, max(0.0, power))
    corrected = y - power * f
    mean = float(np.mean(w * corrected))
    residual = float(np.mean((w * (corrected - mean)) ** 2))
    variance = power**2 * float(np.var(rest)) / others + residual / n
    return PowerEstimate(power * float(rest.mean()) + mean, variance, power)


def ppi_figure(strata: Sequence[Predicted], settings: Settings) -> Figure:
    """Return the share that people would call right over all items, Σ(N_h/N)·θ_h.

    With too few labels the interval of this method is too short; then the labels stand alone:
    Wilson for one unweighted stratum, otherwise null with the reason.
    """
    labels = np.concatenate([s.y for s in strata]) if strata else np.zeros(0)
    base = Figure(METRIC, n_questions=len(labels), reason="no labels", source="human")
    if not len(labels):
        return base
    classes = min(int((labels > 0.5).sum()), int((labels <= 0.5).sum()))
    if (
        len(labels) < MIN_LABELS
        or classes < MIN_PER_CLASS
        or not all(len(s.f_rest) for s in strata)
    ):
        return _labels_alone(base, strata, settings)
    if any(not len(s.y) for s in strata):
        return replace(base, reason="a stratum has no labels")
    sizes = np.array([len(s.y) + len(s.f_rest) for s in strata], dtype=np.float64)
    found = [ppi_mean(s) for s in strata]
    shares = sizes / sizes.sum()
    value = float(sum(share * each.value for share, each in zip(shares, found, strict=True)))
    variance = sum(share**2 * each.variance for share, each in zip(shares, found, strict=True))
    se = math.sqrt(variance)
    half = normal_quantile(1 - settings.alpha / 2) * se
    powers = ", ".join(f"{each.power:.3f}" for each in found)
    return replace(
        base, value=value, reason=None, ci=(max(0.0, value - half), min(1.0, value + half)),
        ci_method=METHOD, se_cluster=se,
        notes=(f"lambda {powers}; {int(sizes.sum()) - len(labels)} items without a label",),
    )  # fmt: skip


def _labels_alone(base: Figure, strata: Sequence[Predicted], settings: Settings) -> Figure:
    if len(strata) > 1 or strata[0].weights is not None:
        return replace(base, reason=NOT_POWERED.split(":", maxsplit=1)[0])
    y = strata[0].y
    return replace(
        base, num=float(y.sum()), den=float(len(y)), value=float(y.mean()), reason=None,
        ci=wilson(float(y.sum()), len(y), settings.alpha), ci_method="wilson",
        notes=(NOT_POWERED,),
    )  # fmt: skip
