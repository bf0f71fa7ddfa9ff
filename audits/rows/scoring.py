"""From answers to scored rows: the one place where a report asks whether an answer is right."""

from __future__ import annotations

from audits.metrics.records import OutcomeRow, StateRow
from runs.engine.normalise import is_correct
from runs.engine.types import Answer, AnswerKind, Question
from runs.protocols.spec import Normaliser

#: Kinds of answers that say that no answer is given: answers all the same (S11).
_ABSTAINS = frozenset({AnswerKind.ABSTAIN, AnswerKind.REFUSAL})
_NOTHING = Answer(raw="", kind=AnswerKind.INVALID)


class Scorer:
    """Scores the answers to one question under one normaliser; equal values are judged once."""

    def __init__(self, question: Question, settings: Normaliser) -> None:
        self._question = question
        self._settings = settings
        self._judged: dict[str, bool | None] = {}
        #: What counts where there is no answer: wrong, or None where nothing can be checked.
        self.nothing = is_correct(_NOTHING, question, settings)

    def correct(self, answer: Answer | None) -> bool | None:
        """Return whether ``answer`` is right; None without an objective check."""
        if answer is None or not answer.is_vote or self.nothing is None:
            return self.nothing
        if answer.value not in self._judged:
            self._judged[answer.value] = is_correct(answer, self._question, self._settings)
        return self._judged[answer.value]

    def state(
        self, agent_id: str, t: int, answer: Answer | None, *, status: str, admitted: bool
    ) -> StateRow:
        """Return the row of the state that an agent holds at ``t``; ``answer`` None for none."""
        return StateRow(
            agent_id=agent_id,
            t=t,
            answer=answer.value if answer is not None and answer.is_vote else None,
            is_abstention=answer is not None and answer.kind in _ABSTAINS,
            correct=self.correct(answer),
            status=status,
            admitted=admitted,
        )

    def outcome(
        self,
        t: int,
        aggregator: str,
        answer: Answer | None,
        *,
        tied: bool = False,
        unresolved: bool = False,
    ) -> OutcomeRow:
        """Return the row of what an aggregator made of the states at ``t``."""
        return OutcomeRow(
            t=t,
            aggregator=aggregator,
            answer=answer.value if answer is not None and answer.is_vote else None,
            correct=self.correct(answer) is True,
            tied=tied,
            abstained=not unresolved and answer is not None and answer.kind in _ABSTAINS,
            unresolved=unresolved,
        )
