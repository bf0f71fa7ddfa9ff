"""Judge audits for tests, and stub judges that judge by a rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from audits.judging.collecting import collect_judgments
from audits.judging.creating import NewJudgeAudit, create_judge_audit
from audits.judging.design import JudgeDesign
from audits.judging.items import AuditItem, Candidate
from audits.judgment_models import JudgmentSet
from debateweb.models import Workspace
from runs.engine.draws import Draws
from runs.models import ModelEntry
from runs.providers.base import ProviderReply
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, replied

Judge = Callable[[Call, list[str]], str]
SCRIPTED = {
    "name": "scripted",
    "path": "openai_compatible",
    "base_url": "http://127.0.0.1:9/v1",
    "price": {
        "input_microusd_per_mtok": 1_000_000,
        "cached_input_microusd_per_mtok": 500_000,
        "output_microusd_per_mtok": 10_000_000,
    },
}
_BLOCK = re.compile(r"Answer [A-Z]:\n<candidate [0-9a-f]+>\n(.*?)\n</candidate", re.DOTALL)


def pairs(n: int, model: str = "") -> list[AuditItem]:
    """Return pairs of which the longer text stands first in every second item."""
    return [
        AuditItem(
            item_id=f"i{i}",
            question_id=f"q{i}",
            question=f"What is {i}?",
            candidates=(
                Candidate("one", f"It is {i}." + " And so on." * (i % 2), model),
                Candidate("two", f"It is {i}!" + " And so on." * (1 - i % 2), model),
            ),
            gold="one",
        )
        for i in range(n)
    ]


def home() -> Workspace:
    made, is_new = Workspace.objects.get_or_create(name="home")
    if is_new:
        ModelEntry.objects.create(workspace=made, name="scripted", version=1, body=SCRIPTED)
    return made


def audit(items: list[AuditItem], name: str = "audit", **fields: Any) -> JudgmentSet:
    fields.setdefault("candidates", len(items[0].candidates) if items else 2)
    new = NewJudgeAudit(
        name=name,
        items=items,
        design=JudgeDesign(**fields),
        model="scripted",
    )
    return create_judge_audit(workspace=home(), new=new, environ={})


def judged(made: JudgmentSet, judge: Judge) -> JudgmentSet:
    """Run the audit to its end with a stub judge, and collect what it said."""

    def script(call: Call) -> ProviderReply:
        prompt = "\n".join(message.content for message in call.request.prompt)
        answer = judge(call, _BLOCK.findall(prompt))
        return replied(f"I weigh both.\nFinal answer: {answer}")

    assert made.experiment is not None
    with patch("runs.dispatch.current_app"):
        factories.finish(made.experiment, ScriptedGateway(script))
    collect_judgments(made)
    return made


def first(call: Call, shown: list[str]) -> str:
    return "A"


def longer(call: Call, shown: list[str]) -> str:
    return "A" if len(shown[0]) > len(shown[1]) else "B"


def leaning(call: Call, shown: list[str]) -> str:
    """Prefer the candidate ``one`` (it ends in a point) with probability .7 at each call."""
    draws = Draws(9, call.request.origin.question_hash)
    picks_one = draws.uniform(agent=call.agent_id, purpose="test") < 0.7
    one_is_first = shown[0].split(" And")[0].endswith(".")
    return "A" if picks_one == one_is_first else "B"
