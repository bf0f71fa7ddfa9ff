"""What a labelled sample says about all that a verifier, judge or normaliser decided.

The sample is stratified by what was predicted (times any other stratum); every label stands for
N_h/n_h items. Three verdicts are kept apart: what is UNKNOWN is never a PASS.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from audits.metrics.errors import MetricsError
from audits.metrics.figures import FEW_QUESTIONS, Figure, Interval
from audits.metrics.intervals import normal_quantile
from audits.metrics.planning import audit_items_needed
from audits.metrics.ratio import Settings

POSITIVE = "PASS"
METHOD = "delta_fpc"
FEW_LABELS_NOTE = "few labels"


class BadSampleError(MetricsError):
    """A sample that cannot have been drawn from its population."""

    code = "bad_sample"

    def __init__(self, stratum: tuple[str, str], problem: str) -> None:
        super().__init__(f"predicted {stratum[0]}, stratum {stratum[1] or 'all'}: {problem}")


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One audited item: what was predicted of it, and whether people found it to hold.

    ``holds`` is None where people could not tell, which is not a PASS.
    """

    predicted: str
    holds: bool | None
    stratum: str = ""


@dataclass(frozen=True, slots=True)
class SampledStratum:
    """``n`` of ``size`` items labelled, of which ``true`` hold."""

    predicted: str
    size: int
    n: int
    true: int

    @property
    def share(self) -> float:
        return self.true / self.n

    @property
    def total(self) -> float:
        """Return the estimated number of items that hold."""
        return self.size * self.share

    @property
    def variance(self) -> float | None:
        """Return the variance of ``total``, finite correction included; None for one label."""
        if self.n == self.size:
            return 0.0
        if self.n < 2:
            return None
        p = self.share
        return self.size**2 * p * (1 - p) / (self.n - 1) * (1 - self.n / self.size)


def sampled_strata(
    rows: Sequence[AuditRow], sizes: Mapping[tuple[str, str], int]
) -> list[SampledStratum]:
    """Return the strata of a sample; ``sizes`` are the items of each (predicted, stratum).

    Raises BadSampleError for labels of an unknown stratum or more of them than items.
    """
    labelled: dict[tuple[str, str], list[AuditRow]] = {key: [] for key in sorted(sizes)}
    for row in rows:
        key = (row.predicted, row.stratum)
        if key not in labelled:
            raise BadSampleError(key, "labelled, but not in the population")
        labelled[key].append(row)
    found = []
    for key, own in labelled.items():
        if len(own) > sizes[key]:
            raise BadSampleError(key, f"{len(own)} labels of {sizes[key]} items")
        if sizes[key]:
            true = sum(row.holds is True for row in own)
            found.append(SampledStratum(key[0], sizes[key], len(own), true))
    return found


def audit_figures(
    strata: Sequence[SampledStratum], settings: Settings, *, positive: str = POSITIVE
) -> list[Figure]:
    """Return precision, recall and prevalence of the whole population, each with a delta interval.

    Recall and prevalence need labels on every stratum predicted otherwise: what was never looked
    at may hold anything. Without them they are null, and precision stays.
    """
    hits = [stratum for stratum in strata if stratum.predicted == positive]
    rest = [stratum for stratum in strata if stratum.predicted != positive]
    items = sum(stratum.size for stratum in strata)
    unseen = sum(stratum.size for stratum in rest if not stratum.n)
    base = Figure("precision", n_questions=sum(s.n for s in strata), source=settings.source,
                  reason="nothing to estimate it from")  # fmt: skip
    empty = f"no labels on {unseen} items not predicted {positive}"
    precision = replace(base, reason=f"no item predicted {positive} was labelled")
    recall, prevalence = (
        replace(base, metric=name, reason=empty if unseen else base.reason)
        for name in ("recall", "prevalence")
    )
    if not hits or any(not stratum.n for stratum in hits):
        return [precision, recall, prevalence]
    found, predicted = sum(s.total for s in hits), sum(s.size for s in hits)
    figures = [_delta(precision, found, predicted, [(s, 1 / predicted) for s in hits], settings)]
    true = sum(stratum.total for stratum in strata if stratum.n)
    if unseen:
        return [*figures, recall, prevalence]
    if true:
        slopes = [(s, (true - found) / true**2) for s in hits] + [
            (s, -found / true**2) for s in rest
        ]
        figures.append(_delta(recall, found, true, slopes, settings))
    else:
        figures.append(replace(recall, reason="no labelled item holds"))
    figures.append(_delta(prevalence, true, items, [(s, 1 / items) for s in strata], settings))
    return figures


def _delta(
    base: Figure,
    num: float,
    den: float,
    slopes: Sequence[tuple[SampledStratum, float]],
    settings: Settings,
) -> Figure:
    """Return num/den with the standard error of its linearisation in the strata's totals."""
    notes = (FEW_LABELS_NOTE,) if base.n_questions < FEW_QUESTIONS else ()
    variances = [(stratum.variance, slope) for stratum, slope in slopes]
    known = [slope**2 * variance for variance, slope in variances if variance is not None]
    se = math.sqrt(sum(known)) if len(known) == len(variances) else 0.0
    value = num / den
    ci: Interval | None = None
    if se > 0:
        half = normal_quantile(1 - settings.alpha / 2) * se
        ci = max(0.0, value - half), min(1.0, value + half)
    else:
        notes = (*notes, "no interval: no variation, or one label in a stratum")
    return replace(
        base, num=num, den=den, value=value, reason=None, ci=ci,
        ci_method=METHOD if ci else None, se_cluster=se or None, notes=notes,
    )  # fmt: skip


def labels_still_needed(
    labelled: int,
    half_width: float,
    *,
    share: float = 0.5,
    population: int | None = None,
    alpha: float = 0.05,
) -> int:
    """Return how many more labels bring a proportion to ± ``half_width``; 0 when there are enough.

    ``share`` is the proportion expected (½ is the safe choice), ``population`` the items there
    are. Raises ValueError for a half-width outside 0 to 1.
    """
    if not 0 < half_width < 1:
        raise ValueError(f"a half-width of {half_width} is not between 0 and 1")
    return max(0, audit_items_needed(half_width, share, population, alpha) - labelled)
