"""What a report has to say before its figures."""

from __future__ import annotations

from audits.reports.deviations import failed_replies
from tests.audits.metrics.builders import run, state


def test_answers_that_the_budget_kept_from_being_asked_for_are_told() -> None:
    asked = state("a", 0, correct=True)
    unasked = [state(a, 0, correct=False, answer=None, status="SKIPPED_BUDGET") for a in "bc"]
    inactive = [state(a, 1, correct=False, answer=None, status="INACTIVE") for a in "bc"]
    (said,) = failed_replies("debate", [run("q", [asked, *unasked, *inactive])])
    assert (said["code"], said["condition"], said["count"]) == ("skipped_budget", "debate", 2)
    assert "2 answers were not asked for" in said["text"]


def test_nothing_is_told_where_all_was_asked_and_answered() -> None:
    assert list(failed_replies("debate", [run("q", [state("a", 0, correct=False)])])) == []
