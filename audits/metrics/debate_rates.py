"""The definitions of the debate figures: which agents, answers or questions each one counts.

Every function returns ratios per run; averaging, intervals and nulls are decided in ``ratio``.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, floats
from audits.metrics.panel import Outcomes, Panel, attempted
from audits.metrics.ratio import Ratio
from audits.metrics.records import AS_LOGGED, PLURALITY
from audits.metrics.revision import (
    changes_of_correctness,
    is_half,
    is_majority,
    is_minority,
    transitions,
)

INCLUDES_RESAMPLING = "includes resampling"
NO_WRONG = "no agent was wrong before"
NO_RIGHT = "no agent was right before"
NO_AGENTS = "no configured agents"
NO_RUNS = "no runs"
NO_AGGREGATE = "no run has an outcome of this aggregator"
NOT_RECORDED = "not recorded"
NO_REVISION = "no revision round was opened"
LOG_KEEPS_NOTHING = "an imported log is scored reply by reply: no earlier state stands"

_NEVER_RAN = "the aggregator gave no outcome at round 0"


def aggregate_correct(panel: Panel, aggregator: str, t: int) -> tuple[FloatArray, BoolArray]:
    """Return (z, defined), both [runs].

    At round 0 z is undefined where the aggregator was not run; at the end a run without an
    outcome counts as wrong. An aggregator that no run of the condition used is never defined.
    """
    outcome = panel.outcomes.get(aggregator)
    if outcome is None:
        runs = len(panel.runs)
        return np.zeros(runs), np.zeros(runs, dtype=np.bool_)
    defined = outcome.ran[:, t] if t == 0 else np.ones(len(panel.runs), dtype=np.bool_)
    return floats(outcome.correct[:, t]), defined


def accuracy(panel: Panel, aggregator: str) -> Iterator[Ratio]:
    """Yield accuracy at 0 and T, and the change between the same aggregator's two outcomes."""
    by = {"aggregator": aggregator}
    at_0, ran_at_0 = aggregate_correct(panel, aggregator, 0)
    at_end, ran = aggregate_correct(panel, aggregator, -1)
    started = floats(ran_at_0)
    yield Ratio("accuracy_0", at_0 * started, started, _NEVER_RAN, by, aggs=(None,))
    yield Ratio("accuracy_T", at_end, floats(ran), NO_AGGREGATE, by, aggs=(None,))
    change = (at_end - at_0) * started
    yield Ratio("accuracy_change", change, started, _NEVER_RAN, by, aggs=(None,), signed=True)


def agent_accuracy(panel: Panel) -> Iterator[Ratio]:
    """Yield the mean candidate at 0 and T over configured agents, then each agent's own."""
    for metric, t in (("agent_accuracy_0", 0), ("agent_accuracy_T", -1)):
        right = panel.correct[:, t] & panel.configured
        yield Ratio(metric, _count(right), panel.agents, NO_AGENTS)
        for slot, agent_id in enumerate(panel.roster or ()):
            own = floats(right[:, slot])
            by = {"agent": agent_id}
            yield Ratio(metric, own, np.ones(len(own)), NO_RUNS, by, aggs=(None,))


def repair_and_damage(panel: Panel, notes: tuple[str, ...]) -> Iterator[Ratio]:
    """Yield Repair_T and Damage_T, and both over the agents with a valid initial state.

    Null where no question opened a revision round: nothing could be repaired, which is not zero.
    """
    if panel.runs and panel.last_t == 0:
        nothing = np.zeros(len(panel.runs))
        for metric in ("repair_T", "damage_T"):
            yield Ratio(metric, nothing, nothing, NO_REVISION)
        return
    everyone, valid = panel.configured, panel.configured & panel.has_state[:, 0]
    for counted, by in ((everyone, {}), (valid, {"variant": "valid_initial"})):
        moved = transitions(panel.correct[:, 0], panel.correct[:, -1], counted)
        yield Ratio("repair_T", moved.fixed, moved.wrong, NO_WRONG, by, notes=notes)
        yield Ratio("damage_T", moved.broke, moved.right, NO_RIGHT, by, notes=notes)


def one_step_rates(panel: Panel, notes: tuple[str, ...]) -> Iterator[Ratio]:
    """Yield Repair_t and Damage_t from t-1 to t, over the runs that opened round t."""
    for t in range(1, panel.last_t + 1):
        moved = transitions(panel.correct[:, t - 1], panel.correct[:, t], panel.configured)
        opened = panel.opened(t)
        yield Ratio(
            "repair_t", moved.fixed, moved.wrong, NO_WRONG, round=t, applies=opened, notes=notes
        )
        yield Ratio(
            "damage_t", moved.broke, moved.right, NO_RIGHT, round=t, applies=opened, notes=notes
        )


def flips(panel: Panel) -> Iterator[Ratio]:
    """Yield the shares of all configured agents that were fixed, broken, or crossed twice."""
    moved = transitions(panel.correct[:, 0], panel.correct[:, -1], panel.configured)
    restless = panel.configured & (changes_of_correctness(panel.correct) >= 2)
    yield Ratio("fixed", moved.fixed, panel.agents, NO_AGENTS)
    yield Ratio("broke", moved.broke, panel.agents, NO_AGENTS)
    yield Ratio("oscillators", _count(restless), panel.agents, NO_AGENTS)


def revision_coverage(panel: Panel) -> Iterator[Ratio]:
    """Yield what became of the opportunities: active agents in opened revision rounds.

    ``retained`` are the calls made whose result was not admitted, so that the earlier state
    stands; ``answer_changed`` is over the admitted.
    """
    chances = revision_chances(panel)
    tried = chances & attempted(panel.status[:, 1:])
    admitted = tried & panel.admitted[:, 1:]
    changed = admitted & (panel.answer[:, 1:] != panel.answer[:, :-1])
    den, empty = _count(chances), "no active agent had a revision round"
    for metric, mask in (
        ("revision_attempted", tried),
        ("revision_admitted", admitted),
    ):
        yield Ratio(metric, _count(mask), den, empty, needs_check=False)
    kept, lets_stand = tried & ~admitted, floats(~_as_logged(panel))
    nothing_stands = LOG_KEEPS_NOTHING if len(lets_stand) and not lets_stand.any() else empty
    yield Ratio(
        "retained", _count(kept) * lets_stand, den * lets_stand, nothing_stands, needs_check=False
    )
    yield Ratio(
        "answer_changed", _count(changed), _count(admitted), "no admitted revision",
        needs_check=False,
    )  # fmt: skip
    inactive = panel.configured & ~panel.has_state[:, 0]
    yield Ratio("inactive", _count(inactive), panel.agents, NO_AGENTS, needs_check=False)


def _as_logged(panel: Panel) -> BoolArray:
    """Return [runs]: scored reply by reply, so that no earlier state could stand."""
    return np.array([run.stop_reason == AS_LOGGED for run in panel.runs], dtype=np.bool_)


def revision_chances(panel: Panel) -> BoolArray:
    """Return [runs, t-1, agents]: an active agent in an opened revision round."""
    times = np.arange(1, panel.last_t + 1)
    opened = panel.rounds_opened[:, None] > times
    active = panel.configured & panel.has_state[:, 0]
    return opened[:, :, None] & active[:, None, :]


def agreement_at(panel: Panel, t: int) -> tuple[BoolArray, BoolArray]:
    """Return (strict, among the admitted), both [runs].

    Strict: every configured agent holds an answer, none abstains, all are equal under g.
    Among the admitted: at least two hold a state, none of these abstains, all are equal.
    """
    held = panel.has_state[:, t] & panel.configured
    codes = panel.answer[:, t]
    low = np.where(held, codes, np.iinfo(np.int64).max).min(axis=1, initial=np.iinfo(np.int64).max)
    high = np.where(held, codes, -1).max(axis=1, initial=-1)
    abstaining = (held & panel.abstains[:, t]).any(axis=1)
    among = (held.sum(axis=1) >= 2) & (low == high) & ~abstaining
    return among & (held == panel.configured).all(axis=1), among


def round_zero_agreement(panel: Panel) -> Iterator[Ratio]:
    several = floats(panel.agents >= 2)
    empty = "fewer than two agents are configured"
    for name, agreed in zip(("strict", "admitted"), agreement_at(panel, 0), strict=True):
        metric = f"round_zero_agreement_{name}"
        num = floats(agreed) * several
        yield Ratio(metric, num, several, empty, aggs=(None,), needs_check=False)


def accuracy_by_agreement(panel: Panel, aggregator: str) -> Iterator[Ratio]:
    """Yield accuracy at T, at 0 and its change, split by agreement at round 0."""
    at_0, ran_at_0 = aggregate_correct(panel, aggregator, 0)
    at_end, always = aggregate_correct(panel, aggregator, -1)
    for name, agreed in zip(("strict", "admitted"), agreement_at(panel, 0), strict=True):
        for metric, within in (
            ("accuracy_given_agreement", agreed),
            ("accuracy_given_disagreement", ~agreed),
        ):
            for at, z, ran in (
                ("T", at_end, always),
                ("0", at_0, ran_at_0),
                ("change", at_end - at_0, ran_at_0),
            ):
                den = floats(within & ran)
                yield Ratio(
                    metric, z * den, den, "no such question",
                    {"aggregator": aggregator, "agreement": name, "at": at},
                    signed=at == "change",
                )  # fmt: skip


def unanimous_accuracy(panel: Panel, aggregator: str) -> Iterator[Ratio]:
    for metric, t in (("unanimous_accuracy_0", 0), ("unanimous_accuracy_T", -1)):
        z, ran = aggregate_correct(panel, aggregator, t)
        den = floats(agreement_at(panel, t)[0] & ran)
        yield Ratio(metric, z * den, den, "no unanimous question", {"aggregator": aggregator})


def minority_fates(panel: Panel, aggregator: str) -> Iterator[Ratio]:
    """Yield what became of the questions by how many agents were right at the start."""
    right = _count(panel.correct[:, 0] & panel.configured)
    z, ran = aggregate_correct(panel, aggregator, -1)
    won = np.asarray(z == 1)
    minority = is_minority(right, panel.agents)
    judged = minority & ran
    by = {"aggregator": aggregator}
    none_right = np.asarray((panel.agents > 0) & (right == 0) & ran)
    no_minority = "no question with a right minority"
    yield _share("all_wrong_rescued", won, none_right, "every question had a right agent", by)
    yield _share("correct_minority_lost", ~won, judged, no_minority, by)
    yield _share("minority_won", won, judged, no_minority, by)
    majority = is_majority(right, panel.agents) & ran
    yield _share("majority_lost", ~won, majority, "no question with a right majority", by)
    half = is_half(right, panel.agents) & ran
    no_half = "no question with exactly half right"
    yield _share("correct_minority_lost", ~won, half, no_half, by | {"variant": "half"})
    gone = np.asarray(~(panel.correct[:, -1] & panel.configured).any(axis=1))
    variant = {"variant": "no_final_candidate"}
    yield _share("correct_minority_lost", gone, minority, no_minority, variant)
    yield from _lost_by_plurality(panel, ~won, judged, by)


def _lost_by_plurality(
    panel: Panel, lost: BoolArray, minority: BoolArray, by: Mapping[str, str]
) -> Iterator[Ratio]:
    """Split the lost minorities by whether plurality had already lost them at round 0."""
    z, ran = aggregate_correct(panel, PLURALITY, 0)
    right = np.asarray(z == 1)
    for label, hit in (("wrong", ~right), ("right", right)):
        yield _share(
            "correct_minority_lost", lost, minority & ran & hit,
            f"no right minority with plurality {label} at round 0",
            {**by, "plurality_0": label},
        )  # fmt: skip


def abstention(panel: Panel, aggregator: str) -> Iterator[Ratio]:
    """Yield coverage, error among the answered, and the shares of each way not to answer."""
    by = {"aggregator": aggregator}
    outcome = panel.outcomes.get(aggregator) or _nothing(panel)
    every = np.full(len(panel.runs), float(aggregator in panel.outcomes))
    answered, wrong = outcome.answered[:, -1], ~outcome.correct[:, -1]
    abstained = outcome.abstained[:, -1] & ~answered
    unresolved = outcome.unresolved[:, -1] & ~abstained
    yield Ratio(
        "coverage", floats(answered), every, NO_AGGREGATE, by, aggs=(None,), needs_check=False
    )
    yield _share("error_given_answered", wrong, answered, "nobody answered", by)
    for metric, mask in (
        ("abstained", abstained),
        ("failed", ~answered & ~abstained & ~unresolved),
        ("unresolved", unresolved),
    ):
        num = floats(mask) * every
        yield Ratio(metric, num, every, NO_AGGREGATE, by, aggs=(None,), needs_check=False)


def candidates_and_loss(panel: Panel) -> Iterator[Ratio]:
    """Yield oracle-any at T and 0, and what each aggregator loses against it at T."""
    every = np.ones(len(panel.runs))
    for at, t in (("T", -1), ("0", 0)):
        any_right = floats((panel.correct[:, t] & panel.configured).any(axis=1))
        yield Ratio("oracle_any", any_right, every, NO_RUNS, {"at": at}, aggs=(None,))
    oracle = floats((panel.correct[:, -1] & panel.configured).any(axis=1))
    for aggregator in panel.outcomes:
        z, _ = aggregate_correct(panel, aggregator, -1)
        yield Ratio(
            "aggregation_loss", oracle - z, every, NO_RUNS, {"aggregator": aggregator},
            aggs=(None,), signed=True,
        )  # fmt: skip


def plurality_by_round(panel: Panel) -> Iterator[Ratio]:
    """Yield plurality's accuracy and ties by round, states carried forward over all questions."""
    outcome = panel.outcomes.get(PLURALITY) or _nothing(panel)
    empty = "plurality was not run in this round"
    for t in range(panel.last_t + 1):
        ran = floats(outcome.ran[:, t])
        right, tied = floats(outcome.correct[:, t]), floats(outcome.tied[:, t])
        yield Ratio("plurality_accuracy", right, ran, empty, round=t, aggs=(None,))
        yield Ratio("plurality_tied", tied, ran, empty, round=t, aggs=(None,), needs_check=False)


def usage(panel: Panel) -> Iterator[Ratio]:
    """Yield what a question cost on average, over the runs that recorded it."""
    for metric, name, by in USAGE_METRICS:
        values = recorded(panel, name)
        known = ~np.isnan(values)
        yield Ratio(
            metric, np.where(known, values, 0.0), floats(known), NOT_RECORDED, by,
            aggs=("macro",), bounded=False, needs_check=False,
        )  # fmt: skip


def recorded(panel: Panel, name: str) -> FloatArray:
    """Return a field of the usage per run, NaN where the run did not record it."""
    return floats([getattr(run.usage, name) for run in panel.runs])


USAGE_METRICS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("calls", "calls", {}),
    ("tokens_in", "input_tokens", {}),
    ("tokens_in", "cached_input_tokens", {"part": "cached"}),
    ("tokens_out", "output_tokens", {}),
    ("tokens_out", "reasoning_tokens", {"part": "reasoning"}),
    ("cost_microusd", "cost_microusd", {}),
    ("held_microusd", "held_microusd", {}),
    ("overrun_microusd", "overrun_microusd", {}),
    ("wall_seconds", "wall_seconds", {}),
)


def _share(
    metric: str, hit: BoolArray, among: BoolArray, empty: str, by: Mapping[str, str]
) -> Ratio:
    return Ratio(metric, floats(hit & among), floats(among), empty, by)


def _count(mask: BoolArray) -> FloatArray:
    """Return how many are set per run."""
    return floats(np.count_nonzero(mask, axis=tuple(range(1, mask.ndim))))


def _nothing(panel: Panel) -> Outcomes:
    """Return the outcomes of an aggregator that never ran."""
    none = np.zeros((len(panel.runs), panel.last_t + 1), dtype=np.bool_)
    return Outcomes(none, none, none, none, none, none)
