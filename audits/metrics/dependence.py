"""Correlated errors, and how many independent agents an ensemble is worth.

X = 1 - correctness, [questions, agents]. Everything but the share of equal wrong answers is a
function of three sums over questions (how many, ΣX_i, ΣX_i·X_j), so a resample of questions needs
only those. Not voting accuracy, and not a causal effect of communication.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, IntArray, sums_by

MIN_VARIANCE: Final = 1e-12  # below this an agent is constant: always right, or always wrong


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Sums over questions, for one sample or a stack of resamples.

    ``n`` is [...], ``first`` ΣX_i [..., agents], ``second`` ΣX_i·X_j [..., agents, agents].
    """

    n: FloatArray
    first: FloatArray
    second: FloatArray

    @property
    def agents(self) -> int:
        return int(self.first.shape[-1])

    @property
    def means(self) -> FloatArray:
        return _divide(self.first, self.n[..., None])

    @property
    def covariance(self) -> FloatArray:
        """Return S with the factor n/(n-1), [..., agents, agents]; NaN below two questions."""
        m = self.means
        spread = self.second - m[..., :, None] * self.first[..., None, :]
        return _divide(spread, self.n[..., None, None] - 1)


def moments(errors: FloatArray, weights: FloatArray | None = None) -> Moments:
    """Return the sums of ``errors`` [rows, agents]; ``weights`` split a question over its runs."""
    w = np.ones(len(errors)) if weights is None else weights
    weighted = errors * w[:, None]
    return Moments(np.asarray(w.sum()), weighted.sum(axis=0), weighted.T @ errors)


def moment_columns(
    errors: FloatArray, weights: FloatArray, unit: IntArray, units: int
) -> FloatArray:
    """Return the sums per unit of resampling, [units, 1 + agents + agents²], for the bootstrap."""
    products = (errors[:, :, None] * errors[:, None, :]).reshape(len(errors), -1)
    rows = np.concatenate([np.ones((len(errors), 1)), errors, products], axis=1) * weights[:, None]
    return np.stack([sums_by(unit, column, units) for column in rows.T], axis=1)


def unstacked(sums: FloatArray, agents: int) -> Moments:
    """Return the moments that rows of ``moment_columns`` sums hold."""
    second = sums[..., 1 + agents :].reshape(*sums.shape[:-1], agents, agents)
    return Moments(sums[..., 0], sums[..., 1 : 1 + agents], second)


def constant_agents(sample: Moments) -> BoolArray:
    """Return which agents never vary: their phi is undefined. [..., agents]."""
    return np.asarray(np.diagonal(sample.covariance, axis1=-2, axis2=-1) < MIN_VARIANCE)


def phi_matrix(sample: Moments) -> FloatArray:
    """Return the pairwise phi of errors, NaN where either agent is constant."""
    s = sample.covariance
    variance = np.diagonal(s, axis1=-2, axis2=-1)
    sd = np.sqrt(np.where(variance < MIN_VARIANCE, np.nan, variance))
    return np.asarray(s / (sd[..., :, None] * sd[..., None, :]))


def mean_phi(sample: Moments, left_out: BoolArray | None = None) -> FloatArray:
    """Return the mean phi over pairs of agents, [...], NaN where a pair is undefined.

    ``left_out`` [agents] names the constant agents of the sample itself, listed beside the
    figure; a resample in which a further agent turns constant has no mean.
    """
    keep = np.ones(sample.agents, dtype=np.bool_) if left_out is None else ~left_out
    phi = phi_matrix(sample)[..., keep, :][..., :, keep]
    return _mean_off_diagonal(phi)


def rho_cov(sample: Moments) -> FloatArray:
    """Return mean off-diagonal over mean diagonal of S: the rho under unequal error rates."""
    s = sample.covariance
    return _divide(_mean_off_diagonal(s), np.trace(s, axis1=-2, axis2=-1) / sample.agents)


def n_eff_cov(sample: Moments) -> FloatArray:
    """Return N·tr S / 1ᵀS1; NaN where the sum is not positive. Negative rho is not clipped."""
    s = sample.covariance
    total = s.sum(axis=(-2, -1))
    trace = np.trace(s, axis1=-2, axis2=-1)
    return _divide(sample.agents * trace, np.where(total > MIN_VARIANCE, total, 0.0))


def icc1(sample: Moments) -> FloatArray:
    """Return the one-way ICC(1) = (MSB - MSW)/(MSB + (N-1)·MSW)."""
    n, agents = sample.n, sample.agents
    squared_sums = sample.second.sum(axis=(-2, -1))
    squares = np.trace(sample.second, axis1=-2, axis2=-1)
    total = sample.first.sum(axis=-1)
    between = _divide(squared_sums / agents - _divide(total**2, n * agents), n - 1)
    within = _divide(squares - squared_sums / agents, n * (agents - 1))
    return _divide(between - within, between + (agents - 1) * within)


def effective_agents(agents: int, rho: float) -> float | None:
    """Return N/(1+(N-1)rho) of equicorrelated agents; None where the variance is not positive."""
    inflation = 1 + (agents - 1) * rho
    return agents / inflation if inflation > 0 else None


def n_eff_phi(phi: FloatArray, agents: int) -> FloatArray:
    """Return the equicorrelated formula at the mean phi, NaN where it is not positive."""
    inflation = 1 + (agents - 1) * phi
    return _divide(np.full_like(phi, agents), np.where(inflation > MIN_VARIANCE, inflation, 0.0))


def mean_error_variance(error_rate: float, agents: int, rho: float) -> float:
    """Return Var(X̄) of equicorrelated agents with one error rate."""
    return error_rate * (1 - error_rate) / agents * (1 + (agents - 1) * rho)


def within_strata_rho(errors: FloatArray, strata: IntArray) -> float | None:
    """Return Σw·cov/Σw·var over strata, w their share of rows: rho without mixed difficulty.

    Strata must come from outside these answers: sliced on the same answers rho is biased downward.
    Strata of one row have no covariance and drop out.
    """
    cov = var = 0.0
    for stratum in np.unique(strata):
        rows = errors[strata == stratum]
        if len(rows) > 1:
            s = moments(rows).covariance
            cov += len(rows) * float(_mean_off_diagonal(s))
            var += len(rows) * float(np.trace(s)) / s.shape[0]
    return cov / var if var > MIN_VARIANCE else None


def same_wrong_counts(
    correct: BoolArray, answer: IntArray, votes: BoolArray, configured: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return per row the pairs of agents both wrong, and those of them with one wrong answer.

    Arrays are [rows, agents]; ``votes`` marks answers that count as votes. A missing or
    abstaining agent is wrong but shares no answer. Returns (same, both wrong), each [rows].
    """
    wrong = configured & ~correct
    both = wrong[:, :, None] & wrong[:, None, :]
    shared = (answer[:, :, None] == answer[:, None, :]) & votes[:, :, None] & votes[:, None, :]
    upper = np.triu(np.ones(both.shape[1:], dtype=np.bool_), k=1)
    same = np.count_nonzero(both & shared & upper, axis=(1, 2))
    return same.astype(np.float64), np.count_nonzero(both & upper, axis=(1, 2)).astype(np.float64)


def within_run_difference(errors: FloatArray, question: IntArray, questions: int) -> FloatArray:
    """Return per question E[X_i·X_j] of agents i≠j in one run minus across runs.

    ``errors`` is [runs, agents]. NaN for questions with one run. Near zero at a blind start, for
    difficulty moves both alike; a hint, since seeds, retrieval and drift move it as well.
    """
    agents = errors.shape[1]
    runs = sums_by(question, np.ones(len(errors)), questions)
    column_sums = np.stack([sums_by(question, x, questions) for x in errors.T], axis=1)
    own = errors.sum(axis=1)
    same_run = sums_by(question, own**2 - (errors**2).sum(axis=1), questions)
    all_runs = column_sums.sum(axis=1) ** 2 - (column_sums**2).sum(axis=1)
    pairs = agents * (agents - 1)
    across = _divide(all_runs - same_run, runs * (runs - 1) * pairs)
    return np.asarray(_divide(same_run, runs * pairs) - across)


def _mean_off_diagonal(matrix: FloatArray) -> FloatArray:
    size = matrix.shape[-1]
    if size < 2:
        return np.full(matrix.shape[:-2], np.nan)
    off = ~np.eye(size, dtype=np.bool_)
    return np.asarray(matrix[..., off].mean(axis=-1))


def _divide(num: FloatArray, den: FloatArray) -> FloatArray:
    """Divide, NaN where the denominator is zero."""
    num, den = np.broadcast_arrays(np.asarray(num, np.float64), np.asarray(den, np.float64))
    out = np.full(num.shape, np.nan)
    np.divide(num, den, out=out, where=np.abs(den) > 1e-14)
    return out
