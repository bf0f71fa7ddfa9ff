"""
What each figure of a report says, in words: the wording of docs/metrics.md, one entry a metric.

Page and file show these beside every number; a test holds the metrics that figures use to it.
"""

from __future__ import annotations

from audits.reports.judge_definitions import JUDGE_DEFINITIONS, JUDGE_SECTIONS
from audits.reports.wording import Definition

ACCURACY = "Accuracy"
REVISION = "Repair, damage and revision"
STEPS = "Round by round"
AGREEMENT = "Agreement and minorities"
ANSWERING = "Answering at all"
DEPENDENCE = "Correlated errors"
COST = "Cost"
PAIRED = "Paired differences"
SECTIONS = (
    ACCURACY,
    REVISION,
    STEPS,
    AGREEMENT,
    ANSWERING,
    DEPENDENCE,
    COST,
    *JUDGE_SECTIONS,
)

_QUESTIONS = "all questions with an objective check"
_AGENTS = "configured agents of questions with an objective check"
_WRONG = "agents wrong at the start"
_RIGHT = "agents right at the start"
_OPPORTUNITIES = "active agents in opened revision rounds"
_MINORITY = "questions on which fewer than half of the agents, but at least one, start right"
_RUNS = "all runs; as mean, per question"

DEFINITIONS: dict[str, Definition] = {
    **JUDGE_DEFINITIONS,
    "accuracy_0": Definition(
        "Accuracy at the start",
        "The aggregate of the initial answers is right.",
        _QUESTIONS,
        ACCURACY,
    ),
    "accuracy_T": Definition(
        "Accuracy at the end",
        "The aggregate of the last committed round is right; a missing outcome is wrong.",
        _QUESTIONS,
        ACCURACY,
    ),
    "accuracy_change": Definition(
        "Change of accuracy",
        "Right at the end minus right at the start, by the same aggregator at both times.",
        _QUESTIONS,
        ACCURACY,
        "points",
    ),
    "agent_accuracy_0": Definition(
        "Agents right at the start",
        "Agents whose initial answer is right; one that never answered is wrong.",
        _AGENTS,
        ACCURACY,
        unit="agent",
    ),
    "agent_accuracy_T": Definition(
        "Agents right at the end",
        "Agents whose state at the end is right; a failed revision keeps the earlier state.",
        _AGENTS,
        ACCURACY,
        unit="agent",
    ),
    "oracle_any": Definition(
        "Any agent right",
        "At least one agent is right: the best that picking among the answers could do.",
        _QUESTIONS,
        ACCURACY,
    ),
    "aggregation_loss": Definition(
        "Lost by aggregating",
        "Any agent right minus the aggregate right, at the end.",
        _QUESTIONS,
        ACCURACY,
        "points",
    ),
    "plurality_accuracy": Definition(
        "Plurality right, by round",
        "The plurality of the states after that round is right; states are carried forward.",
        _QUESTIONS,
        STEPS,
    ),
    "plurality_tied": Definition(
        "Plurality tied, by round",
        "The plurality of the states after that round is a tie.",
        "all questions",
        STEPS,
    ),
    "repair_T": Definition(
        "Repair",
        "Agents wrong at the start and right at the end.",
        _WRONG,
        REVISION,
        unit="agent",
    ),
    "damage_T": Definition(
        "Damage",
        "Agents right at the start and wrong at the end.",
        _RIGHT,
        REVISION,
        unit="agent",
    ),
    "repair_t": Definition(
        "Repair in one round",
        "Agents wrong before the round and right after it. Not comparable with repair from start "
        "to end.",
        "agents wrong before it, of the questions that opened the round",
        STEPS,
        unit="agent",
    ),
    "damage_t": Definition(
        "Damage in one round",
        "Agents right before the round and wrong after it. Not comparable with damage from start "
        "to end.",
        "agents right before it, of the questions that opened the round",
        STEPS,
        unit="agent",
    ),
    "excess_repair_T": Definition(
        "Excess repair",
        "Repair beyond what the same initial answers came to when revised alone.",
        _WRONG,
        REVISION,
        "points",
        "agent",
    ),
    "excess_damage_T": Definition(
        "Excess damage",
        "Damage beyond what the same initial answers came to when revised alone.",
        _RIGHT,
        REVISION,
        "points",
        "agent",
    ),
    "fixed": Definition(
        "Wrong to right", "Agents that went from wrong to right.", _AGENTS, REVISION, unit="agent"
    ),
    "broke": Definition(
        "Right to wrong", "Agents that went from right to wrong.", _AGENTS, REVISION, unit="agent"
    ),
    "oscillators": Definition(
        "Oscillators",
        "Agents whose correctness changed at least twice.",
        _AGENTS,
        REVISION,
        unit="agent",
    ),
    "revision_attempted": Definition(
        "Revisions attempted", "Revision calls made.", _OPPORTUNITIES, REVISION, unit="agent"
    ),
    "revision_admitted": Definition(
        "Revisions admitted",
        "Revision calls whose result was admitted.",
        _OPPORTUNITIES,
        REVISION,
        unit="agent",
    ),
    "retained": Definition(
        "State retained",
        "Revision calls whose result was not admitted, so that the earlier state stands.",
        _OPPORTUNITIES,
        REVISION,
        unit="agent",
    ),
    "answer_changed": Definition(
        "Answer changed",
        "Admitted revisions with another normalised answer.",
        "admitted revisions",
        REVISION,
        unit="agent",
    ),
    "inactive": Definition(
        "Never answered",
        "Agents without a valid initial state; they stay in every denominator.",
        "configured agents",
        REVISION,
        unit="agent",
    ),
    "round_zero_agreement_strict": Definition(
        "Agreement at the start, strict",
        "Every configured agent answered, none abstained, and all answers are equal.",
        "questions with two agents or more",
        AGREEMENT,
    ),
    "round_zero_agreement_admitted": Definition(
        "Agreement at the start, among answers",
        "At least two agents have a state, and their answers are equal.",
        "questions with two agents or more",
        AGREEMENT,
    ),
    "accuracy_given_agreement": Definition(
        "Accuracy where agents agreed",
        "The aggregate is right.",
        "questions whose agents agreed at the start",
        AGREEMENT,
    ),
    "accuracy_given_disagreement": Definition(
        "Accuracy where agents disagreed",
        "The aggregate is right.",
        "questions whose agents disagreed at the start",
        AGREEMENT,
    ),
    "unanimous_accuracy_0": Definition(
        "Accuracy of unanimous starts",
        "The aggregate is right at the start.",
        "questions unanimous at the start",
        AGREEMENT,
    ),
    "unanimous_accuracy_T": Definition(
        "Accuracy of unanimous ends",
        "The aggregate is right at the end.",
        "questions unanimous at the end",
        AGREEMENT,
    ),
    "all_wrong_rescued": Definition(
        "All wrong, rescued",
        "The aggregate is right at the end.",
        "questions on which every agent starts wrong",
        AGREEMENT,
    ),
    "correct_minority_lost": Definition(
        "Right minority lost", "The aggregate is wrong at the end.", _MINORITY, AGREEMENT
    ),
    "minority_won": Definition(
        "Right minority won", "The aggregate is right at the end.", _MINORITY, AGREEMENT
    ),
    "majority_lost": Definition(
        "Right majority lost",
        "The aggregate is wrong at the end.",
        "questions on which more than half of the agents start right",
        AGREEMENT,
    ),
    "coverage": Definition("Coverage", "The aggregate has an answer.", "all questions", ANSWERING),
    "error_given_answered": Definition(
        "Error where answered",
        "The aggregate's answer is wrong.",
        "questions that the aggregate answered",
        ANSWERING,
    ),
    "abstained": Definition("Abstained", "The aggregate abstained.", "all questions", ANSWERING),
    "failed": Definition(
        "Failed",
        "There is no aggregate, for nothing came that could be counted.",
        "all questions",
        ANSWERING,
    ),
    "unresolved": Definition(
        "Unresolved",
        "The aggregate waits for something that is not decided.",
        "all questions",
        ANSWERING,
    ),
    "mean_phi": Definition(
        "Mean pairwise correlation of errors",
        "Mean phi over pairs of agents; agents that never vary are left out.",
        "pairs of agents",
        DEPENDENCE,
        "number",
    ),
    "rho_cov": Definition(
        "Correlation of errors",
        "Mean covariance of two agents' errors over the mean variance of one.",
        "pairs of agents",
        DEPENDENCE,
        "number",
    ),
    "icc1": Definition(
        "Intraclass correlation of errors",
        "Share of the variance of errors that lies between questions.",
        "questions",
        DEPENDENCE,
        "number",
    ),
    "n_eff_cov": Definition(
        "Effective number of agents",
        "As many independent agents would have this variance of the mean error.",
        "questions",
        DEPENDENCE,
        "number",
    ),
    "n_eff_phi": Definition(
        "Effective number of agents, as if alike",
        "The same from the mean pairwise correlation, as if all agents were alike.",
        "questions",
        DEPENDENCE,
        "number",
    ),
    "same_wrong_given_both_wrong": Definition(
        "Same wrong answer",
        "Pairs of agents with one wrong answer.",
        "pairs of agents that are both wrong",
        DEPENDENCE,
    ),
    "within_run_dependence": Definition(
        "Dependence within runs",
        "Joint errors of different agents within a run minus across runs; about zero after a "
        "blind start.",
        "questions with two runs or more",
        DEPENDENCE,
        "number",
    ),
    "calls": Definition("Calls", "Attempts in the ledger.", _RUNS, COST, "number"),
    "tokens_in": Definition(
        "Input tokens", "Tokens read, the cached ones among them.", _RUNS, COST, "number"
    ),
    "tokens_out": Definition(
        "Output tokens", "Tokens written, the reasoning ones among them.", _RUNS, COST, "number"
    ),
    "cost_microusd": Definition("Cost", "Settled in the ledger.", _RUNS, COST, "usd"),
    "held_microusd": Definition(
        "Held",
        "Reserved by calls of unknown outcome: cost may rise by this much.",
        _RUNS,
        COST,
        "usd",
    ),
    "overrun_microusd": Definition("Overrun", "Used beyond reservations.", _RUNS, COST, "usd"),
    "wall_seconds": Definition(
        "Time", "From the start of a run to its end, waiting included.", _RUNS, COST, "seconds"
    ),
    "difference": Definition(
        "Difference",
        "Mean over questions of the first minus the second, each averaged over its runs.",
        "questions that both answered",
        PAIRED,
        "points",
    ),
}


def definition_of(metric: str) -> Definition:
    """Return the entry of a metric; one that has none is shown by its name."""
    return DEFINITIONS.get(metric) or Definition(
        metric, "See docs/metrics.md.", "see docs/metrics.md", ACCURACY, "number"
    )
