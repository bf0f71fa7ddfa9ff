"""What a report is computed from: one row a state, an outcome, a run.

Experiments and imported debates are brought into the same rows, so that a figure means the same
for both. The rows carry what was recorded; every rule of counting lives in the other modules.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

STATUSES: Final = (
    "SUCCEEDED",
    "INVALID",
    "TRUNCATED",
    "FILTERED",
    "FAILED",
    "TIMEOUT",
    "CANCELLED",
    "SKIPPED_BUDGET",
    "INACTIVE",
    "NOT_SCHEDULED",
)

#: Statuses of an agent that got no call in a round: nothing was attempted.
NOT_ATTEMPTED: Final = frozenset({"SKIPPED_BUDGET", "INACTIVE", "NOT_SCHEDULED"})

PLURALITY: Final = "plurality"
#: Why a run ended that was scored as its log has it, each reply by itself.
AS_LOGGED: Final = "as_logged"


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state a configured agent holds at time ``t``, carried forward where nothing was admitted.

    ``correct`` is None where no objective check exists or the instrument gave nothing. An agent
    that never answered has its rows too: False where the question has a check, None where not.
    """

    agent_id: str
    t: int
    answer: str | None
    is_abstention: bool
    correct: bool | None
    status: str
    admitted: bool


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """What one aggregator made of the states at time ``t``."""

    t: int
    aggregator: str
    answer: str | None
    correct: bool
    tied: bool
    abstained: bool
    unresolved: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What one run consumed, from the ledger.

    ``input_tokens`` includes the cached ones, ``output_tokens`` the reasoning ones.
    ``cost_microusd`` is settled; ``held_microusd`` is of unknown outcome and gives the upper end.
    ``by_kind`` breaks the same counts down by kind of attempt. None is what a debate that ran
    elsewhere did not record: unknown, not nothing.
    """

    calls: int | None = 0
    input_tokens: int | None = 0
    cached_input_tokens: int | None = 0
    output_tokens: int | None = 0
    reasoning_tokens: int | None = 0
    cost_microusd: int | None = 0
    held_microusd: int | None = 0
    overrun_microusd: int | None = 0
    wall_seconds: float | None = 0.0
    by_kind: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of one condition on one question.

    Rounds ``t = 0 … rounds_opened - 1`` were opened. ``branch_of`` is the run whose initial
    answers this one started from. ``family`` groups questions that are not independent; it is
    the question's own id where there is no such group.
    """

    run_key: str
    condition: str
    question_id: str
    family: str
    stratum: str | None
    seed: int
    agent_ids: tuple[str, ...]
    rounds_opened: int
    states: tuple[StateRow, ...]
    outcomes: tuple[OutcomeRow, ...]
    stop_reason: str
    usage: Usage
    branch_of: str | None = None
