"""How many questions or audit items a claim needs, before anything is run."""

import math

from audits.metrics.intervals import normal_quantile


def _power_factor(alpha: float, power: float) -> float:
    return normal_quantile(1 - alpha / 2) + normal_quantile(power)


def questions_needed(
    effect: float,
    between_variance: float,
    *,
    run_variance_a: float = 0.0,
    runs_a: int = 1,
    run_variance_b: float = 0.0,
    runs_b: int = 1,
    alpha: float = 0.05,
    power: float = 0.8,
) -> int:
    """Return the questions needed to find a paired ``effect``.

    ``between_variance`` is the variance of the per-question difference; the run variances are of
    one run around its question's mean and shrink with the number of runs. Source: Miller 2024.
    Raises ValueError for an effect of zero, which no number of questions finds.
    """
    if effect == 0:
        raise ValueError("an effect of zero needs no plan")
    variance = between_variance + run_variance_a / runs_a + run_variance_b / runs_b
    return math.ceil(_power_factor(alpha, power) ** 2 * variance / effect**2)


def binary_difference_variance(effect: float, discordance: float) -> float:
    """Return the variance of a paired difference of right/wrong answers."""
    return discordance - effect**2


def detectable_effect(
    variance: float, questions: int, alpha: float = 0.05, power: float = 0.8
) -> float | None:
    """Return the smallest paired effect found with ``power``; None without questions or variance.

    For right/wrong answers the conservative ``variance`` is the share of discordant questions.
    """
    if questions == 0 or variance <= 0:
        return None
    return _power_factor(alpha, power) * math.sqrt(variance / questions)


def design_effect(family_size: float, correlation: float) -> float:
    """Return the factor by which families of questions multiply the number needed."""
    return 1 + (family_size - 1) * correlation


def audit_items_needed(
    half_width: float, share: float = 0.5, population: int | None = None, alpha: float = 0.05
) -> int:
    """Return the items to label for a proportion to ± ``half_width``, with finite correction."""
    needed = normal_quantile(1 - alpha / 2) ** 2 * share * (1 - share) / half_width**2
    if population is not None:
        needed /= 1 + (needed - 1) / population
    return math.ceil(needed)


def zero_defect_items(defect_share: float, alpha: float = 0.05) -> int:
    """Return the items that must all be sound to exclude a share of defects this large."""
    return math.ceil(math.log(alpha) / math.log(1 - defect_share))


def neyman_allocation(sizes: list[int], shares: list[float], total: int) -> list[int]:
    """Split ``total`` labels over strata in proportion to size times standard deviation.

    No stratum gets more labels than it has items. Every stratum with an item gets at least one.
    """
    spread = [n * math.sqrt(p * (1 - p)) for n, p in zip(sizes, shares, strict=True)]
    whole = sum(spread)
    if whole == 0:
        spread, whole = [float(n) for n in sizes], float(sum(sizes))
    return [
        min(n, max(1, round(total * s / whole))) if n else 0
        for n, s in zip(sizes, spread, strict=True)
    ]
