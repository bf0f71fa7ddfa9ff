"""Logistic regression with a clustered covariance, and the detection of separation.

Where some combination of the columns predicts every win, the likelihood has no maximum: software
then reports a large coefficient as if it had converged. Here that is found first, exactly, by a
linear programme, and no coefficient is given.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, IntArray, floats, sums_by

SEPARATED: Final = "separated"
COLLINEAR: Final = "collinear"
ONE_CLUSTER: Final = "fewer than two questions"

_MAX_STEPS = 100
_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Coefficients [columns] with their CR1 covariance over ``clusters`` questions."""

    beta: FloatArray
    covariance: FloatArray
    clusters: int

    def se(self, contrast: FloatArray) -> float:
        return math.sqrt(max(0.0, float(contrast @ self.covariance @ contrast)))


Unfit = Literal["separated", "collinear", "fewer than two questions"]


def clustered_logistic(
    x: FloatArray, wins: FloatArray, weights: FloatArray, clusters: IntArray
) -> Fit | Unfit:
    """Fit wins [rows], shares in [0, 1] (a tie is ½), on ``x`` [rows, columns]; say why not.

    The sandwich covariance sums scores within ``clusters`` and carries G/(G-1).
    """
    groups, index = np.unique(clusters, return_inverse=True)
    if len(groups) < 2:
        return ONE_CLUSTER
    if np.linalg.matrix_rank(x) < x.shape[1]:
        return COLLINEAR
    if is_separated(x, wins):
        return SEPARATED
    beta = _maximum(x, wins, weights)
    p = sigmoid(x @ beta)
    bread = np.linalg.inv((x * (weights * p * (1 - p))[:, None]).T @ x)
    scores = x * (weights * (wins - p))[:, None]
    summed = np.stack(
        [sums_by(index.astype(np.int64), column, len(groups)) for column in scores.T], axis=1
    )
    meat = len(groups) / (len(groups) - 1) * summed.T @ summed
    return Fit(beta, floats(bread @ meat @ bread), len(groups))


def _maximum(x: FloatArray, wins: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the maximum of the likelihood by Newton's method with halved steps."""
    beta = np.zeros(x.shape[1])
    for _ in range(_MAX_STEPS):
        p = sigmoid(x @ beta)
        gradient = x.T @ (weights * (wins - p))
        hessian = (x * (weights * p * (1 - p))[:, None]).T @ x
        step = np.linalg.solve(hessian, gradient)
        now = _log_likelihood(x, wins, weights, beta)
        while _log_likelihood(x, wins, weights, beta + step) < now - 1e-12:
            step = step / 2
        beta = beta + step
        if np.abs(step).max() < _TOLERANCE:
            break
    return beta


def _log_likelihood(
    x: FloatArray, wins: FloatArray, weights: FloatArray, beta: FloatArray
) -> float:
    eta = x @ beta
    return float(weights @ (wins * eta - np.logaddexp(0.0, eta)))


def sigmoid(eta: FloatArray) -> FloatArray:
    return floats(np.exp(-np.logaddexp(0.0, -eta)))


def is_separated(x: FloatArray, wins: FloatArray) -> bool:
    """Return whether a combination of columns never errs and is right somewhere, strictly.

    A share strictly between 0 and 1 is both a win and a loss, and lets no combination pass
    unless it is zero there. Source: Albert & Anderson 1984; the programme after Konis 2007.
    """
    from scipy.optimize import linprog  # at report time only

    won: BoolArray = wins > 0
    lost: BoolArray = wins < 1
    signed = np.unique(np.concatenate([x[won], -x[lost]]), axis=0)
    found = linprog(
        -signed.sum(axis=0), A_ub=-signed, b_ub=np.zeros(len(signed)), bounds=(-1.0, 1.0)
    )
    return bool(found.status == 0 and -found.fun > 1e-7)
