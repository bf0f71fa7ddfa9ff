"""
Debates and consultancies of Michael et al. (2023): AI debaters, human judges with beliefs.

Debater A argues for the first of the two answers, Debater B for the second; a consultant argues
for one of them. Speeches between two turns of the judge are one round. A speech made in sequence
has read all before it, a simultaneous one nothing of its own round: reads are ``assumed``.

Every session is a question of its own, and the story its family: some questions were debated
several times. Their answers stood in either place, so that the choices stand in the order of a
hash; what an agent argued for is its answer. Beliefs are
shares by the text of the answer, as the judge gave them, with their rounding noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from runs.engine.hashing import digest
from runs.importers.faults import FaultLog, shown
from runs.importers.fields import Fields
from runs.importers.judged_records import (
    TIE,
    CandidateRecord,
    ItemRecord,
    JudgeRecord,
    JudgmentRecord,
    LabelRecord,
)
from runs.importers.judgments import signed
from runs.importers.records import (
    AgentRecord,
    BeliefRecord,
    DebateRecord,
    FinalRecord,
    QuestionRecord,
    TurnRecord,
)
from runs.importers.references import choices_problem
from runs.importers.rows import json_rows
from runs.importers.sources import Source

DEBATERS = ("Debater A", "Debater B")
CANDIDATES = ("answer_a", "answer_b")
AGGREGATOR = "judge"
HUMAN = "human judges"
_TOLERANCE = 1e-6
_LAST_MILLISECOND = 253_402_300_799_999  # The end of the year 9999.


def read_nyu(source: Source, log: FaultLog) -> Iterator[tuple[int, DebateRecord]]:
    """Yield the sessions of ``ai_sessions.jsonl``; the protocol is the setting."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        record = _session(fields)
        if record is not None and fields.clean:
            yield row.line, record


def read_nyu_labels(source: Source, log: FaultLog) -> Iterator[tuple[int, LabelRecord]]:
    """Yield the judges' final beliefs as labels of the items of ``read_nyu_judgments``."""
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        answers = _answers(fields)
        belief = _belief(fields, "final_belief", answers)
        label = LabelRecord(
            fields.identifier("id"),
            fields.identifier("judge"),
            "belief",
            dict(zip(CANDIDATES, belief.values(), strict=False)),
            unit="item",
            shown_order=CANDIDATES,
            at=_moment(fields),
            metadata={"setting": fields.text("setting")},
        )
        if fields.clean:
            yield row.line, label


def read_nyu_judgments(source: Source, log: FaultLog) -> Iterator[tuple[int, JudgmentRecord]]:
    """
    Yield the sessions as verdicts on their two answers, with the final belief as scores.

    All people are one judge, as in the publication; who it was, and which side a consultant had
    been assigned, is in the metadata. ``group`` is the setting.
    """
    for row in json_rows(source, log):
        fields = Fields(row.data, row.line, log)
        session = _session(fields)
        if session is not None and fields.clean:
            yield row.line, _judgment(session, _answers(fields), fields.identifier("judge"))


def _judgment(session: DebateRecord, answers: Sequence[str], judge: str) -> JudgmentRecord:
    question, final = session.question, session.metadata["final_belief"]
    by_text = dict(zip(answers, CANDIDATES, strict=True))
    said = session.final.answer if session.final is not None else None
    consultant = [agent for agent in session.agents if agent.role == "consultant"]
    return JudgmentRecord(
        item=ItemRecord(
            item_id=session.debate_id,
            question_id=question.family or session.debate_id,
            question=question.question,
            candidates=tuple(CandidateRecord(own, text) for text, own in by_text.items()),
            gold=by_text[question.reference[0]],
            group=session.protocol,
            metadata={"assigned": consultant[0].side} if consultant else {},
        ),
        judge=JudgeRecord(HUMAN),
        order=CANDIDATES,
        repeat=0,
        verdict=TIE if said is None else by_text[said],
        scores={by_text[text]: share for text, share in final.items()},
        metadata={"judge": judge},
    )


def _moment(fields: Fields) -> str | None:
    milliseconds = fields.whole("completed_ms")
    if milliseconds is None:
        return None
    if milliseconds > _LAST_MILLISECOND:
        fields.fault("completed_ms", f"{milliseconds} is after the year 9999")
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds")


def _answers(fields: Fields) -> list[str]:
    answers = [answer.strip() for answer in fields.texts("answers")]
    if len(answers) != 2:
        fields.fault("answers", f"must list two answers, not {len(answers)}")
        return ["", ""]
    if problem := choices_problem(tuple(answers)):
        fields.fault("answers", problem)
    return answers


def _session(fields: Fields) -> DebateRecord | None:
    answers = _answers(fields)
    fields.require("correct_index")
    correct = fields.whole("correct_index") or 0
    if correct > 1:
        fields.fault("correct_index", f"must be 0 or 1, not {correct}")
        return None
    judge = fields.identifier("judge")
    debaters = fields.object("debaters")
    if debaters is None:
        fields.fault("debaters", "is missing")
        return None
    agents = tuple(_agent(debaters, name, answers, correct) for name in debaters.data)
    talk = _Talk(fields, answers, judge, {agent.agent_id for agent in agents})
    final = _belief(fields, "final_belief", answers)
    if not fields.clean:
        return None
    return DebateRecord(
        debate_id=fields.identifier("id"),
        question=_question(fields, answers, correct),
        protocol=fields.identifier("setting"),
        agents=agents,
        rounds=tuple(tuple(turns) for turns in talk.rounds),
        beliefs=tuple(talk.beliefs),
        final=FinalRecord(_believed(final), AGGREGATOR),
        reads_known="assumed",
        metadata={
            "final_belief": final,
            "judge_turns": talk.judge_turns,
            **({"offline_judgments": talk.other} if talk.other else {}),
            **{key: fields.get(key) for key in _KEPT},
            **fields.metadata(),
        },
    )


_KEPT = ("story_title", "consultant_honest", "num_continues", "judge_reward", "completed_ms")


def _agent(debaters: Fields, name: str, answers: Sequence[str], correct: int) -> AgentRecord:
    model = debaters.identifier(name)
    if name not in DEBATERS:
        debaters.fault(name, f"must be one of {', '.join(DEBATERS)}")
        return AgentRecord(name, model)
    place = DEBATERS.index(name)
    return AgentRecord(
        agent_id=name,
        model=model,
        role="debater" if len(debaters.data) > 1 else "consultant",
        side="correct" if place == correct else "incorrect",
        metadata={"argues_for": answers[place]},
    )


def _question(fields: Fields, answers: Sequence[str], correct: int) -> QuestionRecord:
    text, story = fields.text("question").strip(), fields.identifier("story_id")
    choices = tuple(sorted(answers, key=digest))
    return QuestionRecord(
        id=fields.identifier("id"),  # A session is one trial, as in the publication.
        question=text,
        reference=(answers[correct],),
        answer_type="choice",
        choices=choices,
        family=story,  # Sessions on one story are not independent of each other.
    )


def _belief(fields: Fields, key: str, answers: Sequence[str]) -> dict[str, float]:
    given = fields.items(key)
    if len(given) != len(answers):
        fields.fault(key, "must be a list of two shares")
        return {}
    named = {str(place): share for place, share in enumerate(given)}
    item = fields.inner(named, key)
    shares = [signed(item, place) for place in named]
    if item.clean and (min(shares) < 0 or abs(sum(shares) - 1) > _TOLERANCE):
        fields.fault(key, f"{shown(str(given))} are no shares that add up to 1")
    return dict(zip(answers, shares, strict=True))


def _believed(belief: dict[str, float]) -> str | None:
    """Return the answer that the judge holds likelier, None where neither is."""
    (one, first), (other, second) = belief.items()
    if first == second:
        return None
    return one if first > second else other


class _Talk:
    """The turns of a session, sorted into rounds of speeches and the judge's beliefs."""

    def __init__(
        self, fields: Fields, answers: Sequence[str], judge: str, agent_ids: set[str]
    ) -> None:
        self.rounds: list[list[TurnRecord]] = []
        self.beliefs: list[BeliefRecord] = []
        self.judge_turns: list[dict[str, Any]] = []
        self.other: list[dict[str, Any]] = []
        self._judge = judge
        self._answers = answers
        self._between = True
        for item in fields.objects("turns"):
            role = item.identifier("role")
            if role == "Judge":
                self._judged(item)
            elif role in DEBATERS:
                if role not in agent_ids:
                    item.fault("role", f"{shown(role)} is none of the debaters")
                self._spoke(item, role)
            else:
                self.other.append(item.data)
        if not self.rounds:
            fields.fault("turns", "hold no speech")

    def _judged(self, item: Fields) -> None:
        after = len(self.rounds)
        self._between = True
        if item.get("belief") is not None:
            belief = _belief(item, "belief", self._answers)
            self.beliefs.append(BeliefRecord(self._judge, after, belief))
        self.judge_turns.append(
            {"after": after, "text": item.optional_text("text"), "end": item.get("end")}
        )

    def _spoke(self, item: Fields, role: str) -> None:
        if self._between or any(turn.agent_id == role for turn in self.rounds[-1]):
            self.rounds.append([])
        self._between = False
        place = DEBATERS.index(role)
        turn = TurnRecord(
            agent_id=role,
            answer=self._answers[place],
            text=item.optional_text("text"),
            order=len(self.rounds[-1]),
            metadata={"mode": item.optional_text("mode"), **item.metadata()},
        )
        self.rounds[-1].append(turn)
