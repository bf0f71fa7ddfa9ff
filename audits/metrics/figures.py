"""The Figure: one number of a report with its counts, interval and reason.

Three rules are enforced here so that no caller can break them: a zero denominator gives null and
a reason, a null always has a reason, and nothing that leaves for JSON is NaN or infinite.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Agg = Literal["pooled", "macro"] | None
Source = Literal["objective", "human", "judge"]
Interval = tuple[float, float]

FEW_QUESTIONS = 20
FEW_QUESTIONS_NOTE = "few questions"
#: Thirds and tenths of averaged runs add up to within this; a reader compares them by eye.
COUNT_DECIMALS = 9


@dataclass(frozen=True, slots=True)
class Check:
    """A second interval beside the first, by another method."""

    ci: Interval | None
    ci_method: str
    undefined_share: float

    def to_json(self) -> dict[str, object]:
        return {
            "ci": plain_interval(self.ci),
            "ci_method": self.ci_method,
            "undefined_share": plain(self.undefined_share),
        }


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The test that stands beside a paired difference.

    ``mde_80`` is the smallest difference found with 80 % power; ``p_non_inferior`` is one-sided
    against ``-margin``; ``flags`` say what limits the test (for example ``no_discordant``).
    """

    p: float | None
    test: str
    mde_80: float | None
    margin: float | None = None
    p_non_inferior: float | None = None
    p_holm: float | None = None
    holm_m: int | None = None
    p_mid: float | None = None
    flags: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        return {
            "p": plain(self.p),
            "p_mid": plain(self.p_mid),
            "p_holm": plain(self.p_holm),
            "holm_m": self.holm_m,
            "test": self.test,
            "mde_80": plain(self.mde_80),
            "margin": plain(self.margin),
            "p_non_inferior": plain(self.p_non_inferior),
            "flags": list(self.flags),
        }


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the report JSON; field names are the outside contract (``B`` = resamples).

    ``n_questions`` counts the questions that have the figure, ``n_undefined`` those that were
    asked but whose own denominator is zero.
    """

    metric: str
    agg: Agg = None
    round: int | None = None
    by: Mapping[str, str] = field(default_factory=dict)
    num: float | None = None
    den: float | None = None
    value: float | None = None
    ci: Interval | None = None
    ci_method: str | None = None
    resamples: int | None = None
    seed: int | None = None
    n_questions: int = 0
    n_undefined: int = 0
    reason: str | None = None
    source: Source = "objective"
    rows: str | None = None
    se_cluster: float | None = None
    n_clusters: int | None = None
    between_run_sd: float | None = None
    check: Check | None = None
    paired: PairedTest | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a null without a reason, a zero denominator with a value, NaN."""
        if self.value is None and not self.reason:
            raise ValueError(f"{self.metric}: a null figure needs a reason")
        if self.value is not None and self.den == 0:
            raise ValueError(f"{self.metric}: a zero denominator has no value")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.metric}: {self.value} is not a figure")

    def to_json(self) -> dict[str, object]:
        """Return the object of the report JSON, free of NaN and infinity."""
        body: dict[str, object] = {
            "metric": self.metric,
            "agg": self.agg,
            "round": self.round,
            "by": dict(self.by),
            "num": counted(self.num),
            "den": counted(self.den),
            "value": plain(self.value),
            "ci": plain_interval(self.ci),
            "ci_method": self.ci_method,
            "B": self.resamples,
            "seed": self.seed,
            "n_questions": self.n_questions,
            "n_undefined": self.n_undefined,
            "reason": self.reason,
            "source": self.source,
            "rows": self.rows,
            "se_cluster": plain(self.se_cluster),
            "n_clusters": self.n_clusters,
            "between_run_sd": plain(self.between_run_sd),
            "check": self.check.to_json() if self.check else None,
            "notes": list(self.notes),
        }
        if self.paired:
            body |= self.paired.to_json()
        return body


def counted(number: float | None) -> int | float | None:
    """Return a sum of averaged counts without the dust of adding binary fractions."""
    return plain(None if number is None else round(float(number), COUNT_DECIMALS))


def plain(number: float | None) -> int | float | None:
    """Return ``number`` as JSON can hold it: whole counts as integers, nothing non-finite."""
    if number is None or not math.isfinite(number):
        return None
    value = float(number)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def plain_interval(interval: Interval | None) -> list[float] | None:
    """Return ``[low, high]``, or None where an end is missing or not finite."""
    if interval is None or not all(math.isfinite(end) for end in interval):
        return None
    return [float(interval[0]), float(interval[1])]
