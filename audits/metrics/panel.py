"""The rows of one condition as arrays, with every state carried forward to the last round."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, IntArray, floats, sums_by
from audits.metrics.errors import BadRowError, DuplicateRunError, MixedConditionsError
from audits.metrics.records import NOT_ATTEMPTED, PLURALITY, STATUSES, OutcomeRow, RunRow

NO_ANSWER = -1
_STATUS_CODE = {status: code for code, status in enumerate(STATUSES)}
_INACTIVE, _NOT_SCHEDULED = _STATUS_CODE["INACTIVE"], _STATUS_CODE["NOT_SCHEDULED"]


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """One aggregator at every time, [runs, t]. ``ran`` is False where it gave no outcome."""

    ran: BoolArray
    correct: BoolArray
    answered: BoolArray
    tied: BoolArray
    abstained: BoolArray
    unresolved: BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """One condition. Arrays are [runs], [runs, agents] or [runs, t, agents].

    Runs are ordered by question, seed and key, whatever order they came in. ``answer`` holds a
    code per distinct normalised answer, -1 for none. ``scored`` marks the runs whose question
    has an objective check. Agents stand in the order of their ids.
    """

    runs: tuple[RunRow, ...]
    question_ids: tuple[str, ...]
    question: IntArray
    runs_of_question: FloatArray
    family: IntArray
    configured: BoolArray
    correct: BoolArray
    unscored: BoolArray
    answer: IntArray
    abstains: BoolArray
    admitted: BoolArray
    status: IntArray
    rounds_opened: IntArray
    scored: BoolArray
    outcomes: Mapping[str, Outcomes]

    @property
    def last_t(self) -> int:
        return int(self.correct.shape[1]) - 1

    @property
    def agents(self) -> FloatArray:
        return floats(np.count_nonzero(self.configured, axis=1))

    @property
    def has_state(self) -> BoolArray:
        """[runs, t, agents]: a valid state is held, an abstention being one."""
        return np.asarray((self.answer != NO_ANSWER) | self.abstains)

    @property
    def roster(self) -> tuple[str, ...] | None:
        """The agents of every run, or None where runs have different ones."""
        rosters = {tuple(sorted(run.agent_ids)) for run in self.runs}
        return rosters.pop() if len(rosters) == 1 else None

    def opened(self, t: int) -> BoolArray:
        return self.rounds_opened > t

    def by_question(self, values: FloatArray) -> FloatArray:
        """Average per-run ``values`` within each question: runs never enlarge n."""
        return sums_by(self.question, values, len(self.question_ids)) / self.runs_of_question

    def aggregator(self, wanted: str | None) -> str:
        """Return the aggregator the headline figures use: the wanted, the only other, plurality."""
        others = sorted(set(self.outcomes) - {PLURALITY})
        if wanted is not None:
            return wanted
        if PLURALITY in self.outcomes and len(others) != 1:
            return PLURALITY
        return others[0] if others else PLURALITY


def build_panel(runs: Iterable[RunRow]) -> Panel:
    """Arrange the runs of one condition.

    Raises MixedConditionsError, DuplicateRunError, and BadRowError for a row of an unknown agent
    or status, for two rows of one agent and time, or for a question in two families.
    """
    ordered = tuple(sorted(runs, key=lambda run: (run.question_id, run.seed, run.run_key)))
    _refuse_unfit(ordered)
    question_ids = tuple(dict.fromkeys(run.question_id for run in ordered))
    position = {name: index for index, name in enumerate(question_ids)}
    question = np.array([position[run.question_id] for run in ordered], dtype=np.int64)
    states = _States(ordered)
    return Panel(
        runs=ordered,
        question_ids=question_ids,
        question=question,
        runs_of_question=sums_by(question, np.ones(len(ordered)), len(question_ids)),
        family=_families(ordered, position),
        configured=states.configured,
        correct=states.correct,
        unscored=states.unscored,
        answer=states.answer,
        abstains=states.abstains,
        admitted=states.admitted,
        status=states.status,
        rounds_opened=np.array([run.rounds_opened for run in ordered], dtype=np.int64),
        scored=states.scored,
        outcomes={name: _outcomes(ordered, name, states.times) for name in _aggregators(ordered)},
    )


def _refuse_unfit(runs: Sequence[RunRow]) -> None:
    conditions = {run.condition for run in runs}
    if len(conditions) > 1:
        raise MixedConditionsError(conditions)
    seen: set[str] = set()
    for run in runs:
        if run.run_key in seen:
            raise DuplicateRunError(run.run_key)
        seen.add(run.run_key)
        if len(set(run.agent_ids)) != len(run.agent_ids):
            raise BadRowError(run.run_key, "an agent is configured twice")


def _families(runs: Sequence[RunRow], position: Mapping[str, int]) -> IntArray:
    """Return the family index of every question."""
    family_of: dict[str, str] = {}
    for run in runs:
        if family_of.setdefault(run.question_id, run.family) != run.family:
            raise BadRowError(run.run_key, f"question {run.question_id} is in two families")
    index = {name: code for code, name in enumerate(sorted(set(family_of.values())))}
    return np.array([index[family_of[question]] for question in position], dtype=np.int64)


class _States:
    """Fills the state arrays row by row, then carries them forward."""

    def __init__(self, runs: Sequence[RunRow]) -> None:
        self.times = max((run.rounds_opened for run in runs), default=1) or 1
        agents = max((len(run.agent_ids) for run in runs), default=0)
        shape = (len(runs), self.times, agents)
        self.configured = np.zeros((len(runs), agents), dtype=np.bool_)
        self.correct, self.unscored, self.abstains, self.admitted, self._seen = (
            np.zeros(shape, dtype=np.bool_) for _ in range(5)
        )
        self.answer = np.full(shape, NO_ANSWER, dtype=np.int64)
        self.status = np.full(shape, _NOT_SCHEDULED, dtype=np.int64)
        self.scored = np.zeros(len(runs), dtype=np.bool_)
        self._codes: dict[str, int] = {}
        for index, run in enumerate(runs):
            self._fill(index, run)
        self._carry_forward()

    def _fill(self, r: int, run: RunRow) -> None:
        slots = {agent_id: slot for slot, agent_id in enumerate(sorted(run.agent_ids))}
        self.configured[r, : len(slots)] = True
        # A run that died before any row is a failure, not a question without a check.
        self.scored[r] = not run.states
        for state in run.states:
            if state.agent_id not in slots:
                raise BadRowError(run.run_key, f"agent {state.agent_id} is not configured")
            if state.status not in _STATUS_CODE:
                raise BadRowError(run.run_key, f"{state.status} is not a status")
            self.scored[r] |= state.correct is not None
            if not 0 <= state.t < max(run.rounds_opened, 1):
                continue  # a row of a round that was never opened says nothing new
            cell = (r, state.t, slots[state.agent_id])
            if self._seen[cell]:
                raise BadRowError(run.run_key, f"two rows of {state.agent_id} at t={state.t}")
            self._seen[cell] = True
            valid = state.answer is not None or state.is_abstention
            if state.answer is not None:
                self.answer[cell] = self._codes.setdefault(state.answer, len(self._codes))
            self.abstains[cell] = state.is_abstention
            # An agent without a valid state is wrong, whatever the row says.
            self.correct[cell] = valid and bool(state.correct)
            self.unscored[cell] = valid and state.correct is None
            self.admitted[cell] = state.admitted
            self.status[cell] = _STATUS_CODE[state.status]

    def _carry_forward(self) -> None:
        held = (self.correct, self.unscored, self.abstains, self.answer)
        missing_start = self.configured & ~self._seen[:, 0]
        self.status[:, 0][missing_start] = _INACTIVE
        for t in range(1, self.times):
            missing = ~self._seen[:, t]
            for array in held:
                array[:, t][missing] = array[:, t - 1][missing]


def _aggregators(runs: Sequence[RunRow]) -> list[str]:
    return sorted({outcome.aggregator for run in runs for outcome in run.outcomes})


def _outcomes(runs: Sequence[RunRow], aggregator: str, times: int) -> Outcomes:
    shape = (len(runs), times)
    flags = {name: np.zeros(shape, dtype=np.bool_) for name in Outcomes.__slots__}
    for r, run in enumerate(runs):
        rows = [row for row in run.outcomes if row.aggregator == aggregator]
        _refuse_misplaced(run, rows)
        for row in sorted(rows, key=lambda row: row.t):
            # The last outcome stands for the rounds this question did not need.
            until = times if row.t == max(other.t for other in rows) else row.t + 1
            for name, value in _outcome_flags(row).items():
                flags[name][r, row.t : until] = value
    return Outcomes(**flags)


def _refuse_misplaced(run: RunRow, rows: Sequence[OutcomeRow]) -> None:
    """An outcome of a round that was not opened, or a second one, would silently win or vanish."""
    for t, count in Counter(row.t for row in rows).items():
        if not 0 <= t < max(run.rounds_opened, 1):
            raise BadRowError(run.run_key, f"an outcome at t={t} of {run.rounds_opened} rounds")
        if count > 1:
            raise BadRowError(run.run_key, f"two outcomes of {rows[0].aggregator} at t={t}")


def _outcome_flags(row: OutcomeRow) -> dict[str, bool]:
    answered = row.answer is not None and not row.abstained and not row.unresolved
    return {
        "ran": True,
        "answered": answered,
        "correct": row.correct and answered,
        "tied": row.tied,
        "unresolved": row.unresolved,
        # A tie that the policy left without an answer is an abstention of the aggregate.
        "abstained": row.abstained or (row.tied and not answered and not row.unresolved),
    }


def attempted(status: IntArray) -> BoolArray:
    """Return where a call was made, whatever came of it."""
    return ~np.isin(status, [_STATUS_CODE[name] for name in NOT_ATTEMPTED])
