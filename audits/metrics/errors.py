"""Inputs on which no figure may be computed. Each says what is wrong in one line."""

from collections.abc import Collection


class MetricsError(ValueError):
    """The rows given cannot carry the figure asked for."""

    code = "metrics_refused"


class MixedConditionsError(MetricsError):
    """Runs of several conditions were given where one is described."""

    code = "mixed_conditions"

    def __init__(self, conditions: Collection[str]) -> None:
        super().__init__(f"runs of several conditions: {', '.join(sorted(conditions))}")


class DuplicateRunError(MetricsError):
    """One run was given twice and would be counted twice."""

    code = "duplicate_run"

    def __init__(self, run_key: str) -> None:
        super().__init__(f"run {run_key} is given more than once")


class BadRowError(MetricsError):
    """A row contradicts the run it belongs to."""

    code = "bad_row"

    def __init__(self, run_key: str, problem: str) -> None:
        super().__init__(f"run {run_key}: {problem}")


class QuestionSetsDifferError(MetricsError):
    """A paired effect needs the same questions on both sides."""

    code = "question_sets_differ"

    def __init__(self, only_a: Collection[str], only_b: Collection[str]) -> None:
        parts = [
            f"{len(only)} only in {side} (first: {min(only)})"
            for side, only in (("the first", only_a), ("the second", only_b))
            if only
        ]
        super().__init__(f"question sets differ: {'; '.join(parts)}")


class DifferentStartError(MetricsError):
    """Two runs said to share their initial answers do not."""

    code = "different_start"

    def __init__(self, run_key: str, problem: str) -> None:
        super().__init__(f"run {run_key} does not share its start: {problem}")


class UnpairedMetricError(MetricsError):
    """The metric has no value for every question, so it has no paired difference."""

    code = "unpaired_metric"

    def __init__(self, metric: str, known: Collection[str]) -> None:
        super().__init__(
            f"no paired difference is defined for {metric}; defined for: {', '.join(sorted(known))}"
        )
