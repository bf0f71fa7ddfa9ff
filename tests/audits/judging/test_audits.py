"""Judge audits as runs: every order asked, stub judges found out, failures told by their cause."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import pytest

from audits.judging.collecting import collect_judgments
from audits.judging.creating import JudgeAuditError
from audits.judgment_models import Judgment, JudgmentSet
from audits.metrics.judge_orders import pair_shares
from audits.metrics.judgments import JudgedItem, judged_items
from audits.rows.judgments import judgment_rows
from debateweb.errors import DebatewebError
from runs.models import Attempt, LedgerEntry
from runs.providers.base import ProviderReply
from runs.providers.endings import BAD_REQUEST, TIMEOUT, failed
from runs.services.verify import verify_experiment
from tests.audits.judging.making import audit, first, judged, leaning, longer, pairs
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, replied

pytestmark = pytest.mark.django_db


def items_of(made: JudgmentSet) -> list[JudgedItem]:
    (rows,) = judgment_rows(made).values()
    return judged_items(rows)


def test_every_item_is_asked_in_both_orders_as_often_as_said_on_the_ledger() -> None:
    made = judged(audit(pairs(4), repeats=3), first)
    assert Judgment.objects.count() == Attempt.objects.count() == 4 * 2 * 3
    assert LedgerEntry.objects.filter(kind="settle", attempt__isnull=False).count() == 24
    orders = Counter(
        tuple(order) for order in Judgment.objects.values_list("order_shown", flat=True)
    )
    assert orders == {("one", "two"): 12, ("two", "one"): 12}
    assert collect_judgments(made) == 0
    assert made.experiment is not None
    assert verify_experiment(made.experiment, tell=lambda *_: None)[1] == []


def test_a_judge_who_takes_the_first_is_found_out() -> None:
    shares = pair_shares(items_of(judged(audit(pairs(10)), first)))
    assert {(s.consistent, s.primacy, s.recency) for s in shares} == {(0.0, 1.0, 0.0)}


def test_a_judge_who_takes_the_longer_never_flips() -> None:
    made = judged(audit(pairs(10)), longer)
    assert all(s.consistent == 1 for s in pair_shares(items_of(made)))
    verdicts = Counter(row.verdict for item in items_of(made) for row in item.rows)
    assert verdicts == {"one": 20, "two": 20}


def test_a_judge_who_only_leans_differs_across_orders_as_often_as_within() -> None:
    items = items_of(judged(audit(pairs(60)), leaning))
    flips = sum(1 - s.consistent for s in pair_shares(items)) / len(items)
    assert 0.25 < flips < 0.6


@pytest.mark.parametrize(
    ("reply", "status", "cause"),
    [
        (failed(BAD_REQUEST, "who are you"), "FAILED", "bad_request"),
        (failed(TIMEOUT, "too slow"), "TIMEOUT", "timeout"),
        (replied("Colourless green ideas."), "INVALID", "no answer found"),
        (replied("Final answer: Q"), "INVALID", "the letter Q is beyond the options"),
    ],
)
def test_what_fails_in_one_order_is_a_failure_with_its_cause_and_never_a_tie(
    reply: ProviderReply, status: str, cause: str
) -> None:
    made = audit(pairs(3), repeats=1)

    def script(call: Call) -> ProviderReply:
        return reply if call.agent_id == "o2-1r1" else replied("Final answer: A")

    assert made.experiment is not None
    with patch("runs.dispatch.current_app"):
        factories.finish(made.experiment, ScriptedGateway(script))
    collect_judgments(made)
    failures = Judgment.objects.exclude(status="SUCCEEDED")
    assert {(j.status, j.verdict, tuple(j.order_shown)) for j in failures} == {
        (status, "", ("two", "one"))
    }
    assert failures.count() == 3 and {j.cause for j in failures} == {cause}


def test_ties_and_abstentions_are_verdicts_of_their_own() -> None:
    made = audit(pairs(2), repeats=1)
    judged(made, lambda call, _shown: "C" if call.agent_id == "o1-2r1" else "D")
    assert Counter(Judgment.objects.values_list("verdict", flat=True)) == {"tie": 2, "abstain": 2}


def test_pointwise_scores_each_candidate_alone() -> None:
    made = judged(
        audit(pairs(2), mode="pointwise", repeats=1),
        lambda call, shown: "11" if call.agent_id == "o2r1" else str(len(shown)),
    )
    rows = [row for item in items_of(made) for row in item.rows]
    assert [(row.order, row.scores, row.status) for row in rows][:2] == [
        (("one",), {"one": 1.0}, "SUCCEEDED"),
        (("two",), {}, "INVALID"),
    ]


def test_no_prompt_says_who_wrote_what() -> None:
    made = judged(audit(pairs(2, model="quux/author"), same_family=False), first)
    prompts = "\n".join(Attempt.objects.values_list("prompt", flat=True))
    assert "quux" not in prompts and "c1" not in prompts and made.size == 2


@pytest.mark.parametrize(
    ("items", "fields", "said"),
    [
        ([], {"candidates": 2}, "nothing to judge"),
        (pairs(1) * 2, {}, "'i0' stands twice"),
        (pairs(1), {"mode": "listwise", "candidates": 3}, "has 2 candidates"),
        (pairs(1, model="scripted"), {}, "of one family"),
    ],
)
def test_an_audit_that_cannot_be_is_refused_in_words(
    items: list[object], fields: dict[str, object], said: str
) -> None:
    with pytest.raises((JudgeAuditError, DebatewebError), match=said):
        audit(items, **fields)  # type: ignore[arg-type]
    assert not JudgmentSet.objects.exists()
