"""Coefficients of agreement, each from sums over items, so that a resample needs only sums.

Every function takes a stack of tables [..., K, K] (or its parts) and returns (numerator,
denominator) of the coefficient: what was observed beyond chance over what there was to gain. A
denominator of zero means that nothing varied; then there is no coefficient, however often people
agreed.

Krippendorff's alpha is computed here and not by the library of that name: as a function of the
summed coincidence table, ten thousand resamples of it are one matrix product.
"""

from typing import Literal

import numpy as np

from audits.metrics.arrays import FloatArray, IntArray, floats
from audits.metrics.labels import MISSING

Level = Literal["nominal", "ordinal", "interval"]
Parts = tuple[FloatArray, FloatArray]


def confusion(a: IntArray, b: IntArray, weights: FloatArray, k: int) -> FloatArray:
    """Return each item's table of two raters, [items, K, K]; zero where one is missing."""
    both = (a != MISSING) & (b != MISSING)
    rows = (a[:, None] == np.arange(k))[:, :, None] & (b[:, None] == np.arange(k))[:, None, :]
    return floats(rows * (weights * both)[:, None, None])


def coincidences(counts: IntArray, weights: FloatArray) -> FloatArray:
    """Return each item's coincidence table, [items, K, K], from its ``counts`` [items, K].

    Every label meets every other of its item; an item of m labels weighs m. Items with fewer
    than two are zero. Source: Krippendorff 2011.
    """
    n = floats(counts)
    own = np.zeros((*n.shape, n.shape[1]))
    diagonal = np.arange(n.shape[1])
    own[:, diagonal, diagonal] = n
    labels = n.sum(axis=1)
    share = np.where(labels >= 2, weights / np.maximum(labels - 1, 1), 0.0)
    return floats((n[:, :, None] * n[:, None, :] - own) * share[:, None, None])


def observed_agreement(counts: IntArray) -> FloatArray:
    """Return the share of equal pairs of labels of each item; zero below two labels."""
    n = floats(counts)
    labels = n.sum(axis=1)
    pairs = labels * (labels - 1)
    equal = (n * (n - 1)).sum(axis=1)
    return floats(np.divide(equal, pairs, out=np.zeros(len(n)), where=pairs > 0))


def kappa(table: FloatArray) -> Parts:
    """Cohen's kappa of two raters."""
    total = table.sum(axis=(-2, -1))
    observed = _over(np.trace(table, axis1=-2, axis2=-1), total)
    chance = _over((table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1), total**2)
    return observed - chance, 1 - chance


def fleiss(agreement: FloatArray, shares: FloatArray, items: FloatArray) -> Parts:
    """Fleiss' kappa from Σ agreement, Σ category shares [..., K] and the weight of the items."""
    chance = (_over(shares, items[..., None]) ** 2).sum(axis=-1)
    return _over(agreement, items) - chance, 1 - chance


def gwet(
    agreement: FloatArray, several: FloatArray, shares: FloatArray, items: FloatArray, k: int
) -> Parts:
    """Gwet's AC1: chance is Σπ(1-π)/(K-1), with K the rubric's categories.

    ``agreement`` is summed over the ``several`` items with two labels or more, ``shares``
    [..., K] over all ``items``. Source: Gwet 2008.
    """
    pi = _over(shares, items[..., None])
    chance = (pi * (1 - pi)).sum(axis=-1) / max(k - 1, 1)
    return _over(agreement, several) - chance, 1 - chance


def alpha(table: FloatArray, level: Level, values: FloatArray | None = None) -> Parts:
    """Krippendorff's alpha from a coincidence table; ``values`` [K] for the interval level."""
    marginal = table.sum(axis=-1)
    n = marginal.sum(axis=-1)
    distance = _distances(marginal, level, values)
    observed = _over((table * distance).sum(axis=(-2, -1)), n)
    products = marginal[..., :, None] * marginal[..., None, :]
    expected = _over((products * distance).sum(axis=(-2, -1)), n * (n - 1))
    return expected - observed, expected


def _distances(marginal: FloatArray, level: Level, values: FloatArray | None) -> FloatArray:
    """Return the squared distances of categories, [..., K, K]."""
    k = marginal.shape[-1]
    if level == "nominal":
        return 1.0 - np.eye(k)
    if level == "interval":
        at = np.arange(k) if values is None else values
        return floats((at[:, None] - at[None, :]) ** 2)
    upto = np.cumsum(marginal, axis=-1) - marginal / 2  # the middle of each category's ranks
    return floats((upto[..., :, None] - upto[..., None, :]) ** 2)


def _over(num: FloatArray, den: FloatArray) -> FloatArray:
    shape = np.broadcast_shapes(np.shape(num), np.shape(den))
    out = np.full(shape, np.nan)
    np.divide(num, den, out=out, where=np.broadcast_to(den, shape) > 0)
    return out
