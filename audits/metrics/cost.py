"""What a debate costs beside cheaper ways to spend the same: expected tokens, matched samples.

The expected-token model is for planning; a report replaces it with the measured ledger.
"""

import math
from dataclasses import dataclass

import numpy as np

from audits.metrics.arrays import BoolArray, FloatArray, IntArray
from audits.metrics.bootstrap import weight_chunks


@dataclass(frozen=True, slots=True)
class Tokens:
    """Expected tokens of one question."""

    input: float
    output: float

    def cost(self, input_price: float, output_price: float) -> float:
        """Return the cost in the unit of the prices, which are per token."""
        return self.input * input_price + self.output * output_price


def debate_tokens(
    *, agents: int, rounds: int, prompt_tokens: float, answer_tokens: float
) -> Tokens:
    """Return the tokens of a debate in which everyone rereads every answer of the last round.

    ``rounds`` includes round zero. The input of a revision is the prompt and N answers.
    """
    return triggered_tokens(
        agents=agents,
        rounds=rounds,
        prompt_tokens=prompt_tokens,
        answer_tokens=answer_tokens,
        agreement=0.0,
    )


def triggered_tokens(
    *, agents: int, rounds: int, prompt_tokens: float, answer_tokens: float, agreement: float
) -> Tokens:
    """Return the tokens of a debate held only where round zero disagrees (share 1 - agreement)."""
    revision_rounds = (1 - agreement) * (rounds - 1)
    reread = prompt_tokens + agents * answer_tokens
    return Tokens(
        input=agents * prompt_tokens + revision_rounds * agents * reread,
        output=agents * answer_tokens * (1 + revision_rounds),
    )


def sampling_tokens(*, samples: int, prompt_tokens: float, answer_tokens: float) -> Tokens:
    """Return the tokens of independent samples of one prompt (self-consistency)."""
    return Tokens(samples * prompt_tokens, samples * answer_tokens)


def matched_samples(budget: float, cost_of_sample: float) -> int:
    """Return how many samples ``budget`` buys, both in one unit: output tokens, or money."""
    if cost_of_sample <= 0:
        raise ValueError("a free sample matches no budget")
    # The tolerance keeps 0.3/0.1 at three samples.
    return math.floor(budget / cost_of_sample + 1e-9)


def binary_majority_accuracy(pool: int, right: int, voters: int) -> float:
    """Return the expected accuracy of a majority of ``voters`` drawn from one pool of answers.

    Hypergeometric: without replacement, right or wrong only, a tied vote counts one half.
    Raises ValueError where more voters than answers are asked for.
    """
    if not 0 < voters <= pool or not 0 <= right <= pool:
        raise ValueError(f"cannot draw {voters} of {pool} answers with {right} right")
    total = 0.0
    for votes in range(max(0, voters - pool + right), min(right, voters) + 1):
        ways = math.comb(right, votes) * math.comb(pool - right, voters - votes)
        credit = 1.0 if 2 * votes > voters else 0.5 if 2 * votes == voters else 0.0
        total += credit * ways / math.comb(pool, voters)
    return total


def plurality_accuracy(
    answers: IntArray, is_right: BoolArray, voters: int, subsets: int, rng: np.random.Generator
) -> float:
    """Return the accuracy of a plurality of ``voters`` over random subsets of one pool.

    ``answers`` [pool] are codes of normalised answers, negative for no vote; ``is_right`` [pool]
    is their correctness. A tie is broken by an even lot, so the right answer counts 1/ties.
    """
    pool = len(answers)
    if not 0 < voters <= pool:
        raise ValueError(f"cannot draw {voters} of {pool} answers")
    codes = np.unique(answers[answers >= 0])
    if not len(codes):
        return 0.0
    right = np.array([bool(is_right[answers == code].any()) for code in codes])
    drawn = np.argsort(rng.random((subsets, pool)), axis=1)[:, :voters]
    votes = (answers[drawn][:, :, None] == codes).sum(axis=1)
    most = votes.max(axis=1, keepdims=True)
    winners = (votes == most) & (most > 0)
    ties = np.maximum(winners.sum(axis=1), 1)
    return float(np.mean((winners & right).sum(axis=1) / ties))


def pareto_front(cost: FloatArray, accuracy: FloatArray) -> BoolArray:
    """Return which points no other beats: at most the cost, at least the accuracy, one strictly.

    Arrays are [..., points]; equal points stand together.
    """
    cost_a, cost_b = cost[..., :, None], cost[..., None, :]
    gain_a, gain_b = accuracy[..., :, None], accuracy[..., None, :]
    no_worse = (cost_b <= cost_a) & (gain_b >= gain_a)
    better = (cost_b < cost_a) | (gain_b > gain_a)
    return np.asarray(~(no_worse & better).any(axis=-1))


def front_membership(
    cost: FloatArray, accuracy: FloatArray, resamples: int, seed: int
) -> FloatArray:
    """Return how often each arm is on the front when questions are resampled.

    ``cost`` and ``accuracy`` are [units, arms], sums over the questions of a unit that every arm
    answered.
    """
    hits = np.zeros(cost.shape[1])
    for weights in weight_chunks(len(cost), resamples, seed):
        # Rounded, or equal costs added in another order would beat each other.
        front = pareto_front(np.round(weights @ cost, 6), np.round(weights @ accuracy, 9))
        hits += front.sum(axis=0)
    return hits / resamples
