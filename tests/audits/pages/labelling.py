"""Queues of every kind as their sources make them, and people who send the forms of a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

from django.http import HttpResponse
from django.test import Client

from audits.labelling.design import Ask, LabelSchema, Option, Reasons
from audits.queue_models import Annotator, Queue, QueueKind
from audits.queues.creating import NewItem
from tests.audits.queues.making import annotators, answers, pairs, queue_of
from tests.debateweb.people import signed_in

SAME = LabelSchema(
    ask=Ask(
        kind="judge_decision",
        title="Do both say the same?",
        options=(
            Option(value="same", title="The same"),
            Option(value="other", title="Not the same"),
        ),
    )
)
CLAIMS = LabelSchema(
    ask=Ask(
        kind="claim",
        title="Is the claim right?",
        options=(Option(value="pass", title="Right"), Option(value="fail", title="Wrong")),
    )
)
SCALE = LabelSchema(
    ask=Ask(
        kind="scale", title="How good is it?", anchors={"1": "useless", "5": "as good as can be"}
    )
)
BELIEF = LabelSchema(ask=Ask(kind="turn", title="Which answer is right?"))
REASONED = LabelSchema(
    ask=Ask(kind="pairwise", title="Which is better?"),
    reasons=Reasons(options=(Option(value="wrong-fact", title="Wrong fact"),)),
)


def debates(n: int, turns: int = 3) -> list[NewItem]:
    return [
        NewItem(
            item_id=f"d{i}",
            unit_id=f"d{i}",
            question_id=f"q{i}",
            shown={
                "question": f"Who is right in story {i}?",
                "candidates": [
                    {"candidate_id": "yes-side", "text": "The first"},
                    {"candidate_id": "no-side", "text": "The second"},
                ],
                "turns": [
                    {"speaker": f"role-{t % 2}", "text": f"Speech {t} of story {i}."}
                    for t in range(turns)
                ],
            },
        )
        for i in range(n)
    ]


def claimed_answers(n: int) -> list[NewItem]:
    return [
        NewItem(
            item_id=f"c{i}",
            unit_id=f"c{i}",
            question_id=f"q{i}",
            shown={
                "question": f"What follows from {i}?",
                "answer": "Two things.",
                "claims": [
                    {"claim_id": "c-one", "text": "The first thing."},
                    {"claim_id": "c-two", "text": "The second thing."},
                ],
            },
        )
        for i in range(n)
    ]


def every_kind(n: int) -> dict[str, Queue]:
    """Return a queue of ``n`` items of each kind, by kind."""
    return {
        "correctness": queue_of(answers(n), name="correctness"),
        "scale": queue_of(answers(n), name="scale", label=SCALE),
        "claims": queue_of(claimed_answers(n), name="claims", label=CLAIMS),
        "pair": queue_of(pairs(n), name="pair"),
        "judge": queue_of(pairs(n), name="judge", label=REASONED, kind=QueueKind.JUDGE),
        "debate": queue_of(debates(n), name="debate", label=BELIEF, kind=QueueKind.DEBATE),
        "merge": queue_of(pairs(n), name="merge", label=SAME, kind=QueueKind.MERGE),
    }


#: What is sent as the decision of each kind.
DECISIONS: Mapping[str, dict[str, str]] = {
    "correctness": {"choice": "1"},
    "scale": {"choice": "4"},
    "claims": {"claim-1": "1", "claim-2": "2"},
    "pair": {"choice": "1"},
    "judge": {"choice": "2", "reason": "wrong-fact"},
    "debate": {"belief-1": "70", "belief-2": "30"},
    "merge": {"choice": "2"},
}


class Labeller:
    """A person in a browser without scripts: sends what the last page's form holds."""

    def __init__(self, annotator: Annotator) -> None:
        assert annotator.user is not None
        self.annotator = annotator
        self.base = f"/w/{annotator.queue.workspace.name}/label/{annotator.queue.name}/"
        self.client: Client = signed_in(annotator.user)
        self.text = ""

    def get(self, path: str = "", **headers: str) -> HttpResponse:
        answer: Any = self.client.get(f"{self.base}{path}", headers=headers)
        self.text = answer.content.decode()
        return answer  # type: ignore[no-any-return]

    def hidden(self) -> dict[str, str]:
        """Return the hidden fields of the form on the page."""
        found = re.findall(r'<input type="hidden" name="([\w-]+)" value="([^"]*)"', self.text)
        return {name: unescape(value) for name, value in found}

    def post(
        self, path: str, fields: Mapping[str, str], *, follow: bool = True, **headers: str
    ) -> HttpResponse:
        answer: Any = self.client.post(f"{self.base}{path}", fields, follow=follow, headers=headers)
        self.text = answer.content.decode()
        return answer  # type: ignore[no-any-return]

    def send(self, path: str = "submit", /, **fields: str) -> HttpResponse:
        """Open the page if none is open, and send its form with these fields."""
        if 'name="fence"' not in self.text:
            self.get()
        names = {name.replace("__", "-"): value for name, value in fields.items()}
        return self.post(path, {**self.hidden(), **names})


def labeller(queue: Queue, **fields: Any) -> Labeller:
    return Labeller(annotators(queue, 1, **fields)[0])
