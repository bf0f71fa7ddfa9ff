"""What each figure of judges and of people says, in words: the wording of docs/metrics.md."""

from __future__ import annotations

from typing import Final

from audits.reports.wording import Definition, Form

RIGHT: Final = "Is the judge right"
ORDER: Final = "What the order does"
REPLIES: Final = "Judgments without a verdict"
LEANINGS: Final = "Length and self-preference (association, not cause)"
MANY: Final = "Three candidates or more"
SYSTEMS: Final = "Who wins"
PEOPLE: Final = "Agreement with and between people"
BELIEFS: Final = "Beliefs"
JUDGE_SECTIONS: Final = (RIGHT, ORDER, REPLIES, SYSTEMS, PEOPLE, LEANINGS, MANY, BELIEFS)

_PAIRS = "pairs with a verdict in both orders"
_MANY = "items of three candidates or more with verdicts in two orders"
_ITEMS = "items with two labels or more"
_ALL = "all judgments"


def _said(words: str, sentence: str, over: str, section: str, form: Form = "share") -> Definition:
    return Definition(words, sentence, over, section, form, "item")


JUDGE_DEFINITIONS: Final[dict[str, Definition]] = {
    "judge_accuracy": _said(
        "Judge right",
        "The verdict is the gold label. A tie is a class of its own, left out (decisive) or worth "
        "one half, as it says.",
        "presentations of items with a gold label and a verdict",
        RIGHT,
    ),
    "position_consistency": _said(
        "Position consistency",
        "Both orders chose the same content, or a tie twice.",
        _PAIRS,
        ORDER,
    ),
    "position_consistency_all": _said(
        "Position consistency, failures against it",
        "Both orders chose the same content, or a tie twice; a missing verdict counts against.",
        "pairs shown in both orders",
        ORDER,
    ),
    "conflict_rate": _said(
        "Conflict",
        "Both orders chose the same place, so that the content chosen differs. Without repeats "
        "this is differing, not yet an order effect.",
        _PAIRS,
        ORDER,
    ),
    "half_conflict_rate": _said("Half conflict", "Exactly one order is a tie.", _PAIRS, ORDER),
    "hard_flip_rate": _said(
        "Hard flips",
        "Both orders chose the same place.",
        "pairs decided, without a tie, in both orders",
        ORDER,
    ),
    "excess_flip": _said(
        "Order effect beyond noise",
        "Differing across orders minus differing within one order when asked again.",
        "items with two orders, one of them asked twice",
        ORDER,
        "points",
    ),
    "preference_fairness": _said(
        "Preference fairness",
        "Pairs that lean to the last shown minus those that lean to the first: below zero the "
        "first place is preferred, above it the last.",
        _PAIRS,
        ORDER,
        "number",
    ),
    "primacy": _said("Leans to the first", "Pairs that lean to the first shown.", _PAIRS, ORDER),
    "recency": _said("Leans to the last", "Pairs that lean to the last shown.", _PAIRS, ORDER),
    "repetition_stability": _said(
        "Agreement with itself",
        "Share of the most frequent verdict when one order is asked again.",
        "orders asked twice or more",
        ORDER,
    ),
    "invalid_rate": _said(
        "No verdict",
        "Failed, timed out or could not be read. These leave the rates; none becomes a tie.",
        _ALL,
        REPLIES,
    ),
    "abstain_rate": _said("Abstained", "The judge chose not to decide.", _ALL, REPLIES),
    "length_coefficient": _said(
        "Association with length",
        "Log odds of winning for a longer answer, the place held constant. An association: a "
        "longer answer may be better.",
        "pairs with a verdict and known lengths",
        LEANINGS,
        "number",
    ),
    "length_excess": _said(
        "Association with length beyond people's",
        "The judge's coefficient minus the people's on the same pairs.",
        "pairs with a verdict and a label",
        LEANINGS,
        "number",
    ),
    "length_controlled_rate": _said(
        "Wins at equal length",
        "Modelled rate of wins of one of two systems at equal length, average over places.",
        "pairs of the same two systems",
        LEANINGS,
    ),
    "self_preference": _said(
        "Self-preference",
        "Picks its own answer where people prefer it, minus picks another's where people prefer "
        "that. An association.",
        "verdicts on pairs of which the judge's model wrote one",
        LEANINGS,
        "points",
    ),
    "score_total": _said(
        "Sum of scores",
        "Scores added over items; repeats and orders of an item are averaged first.",
        "items with scores from every judgment",
        SYSTEMS,
        "number",
    ),
    "bradley_terry": _said(
        "Strength",
        "Log strength in a Bradley–Terry model of all pairs, mean zero, a tie one half.",
        "pairs of systems with a verdict",
        SYSTEMS,
        "number",
    ),
    "chosen_share": _said(
        "Chosen",
        "As the judge judged and as people labelled the same items: the lead's decision where "
        "there is one, else the people's majority.",
        "items with a verdict in every order and a label that is not tied",
        SYSTEMS,
    ),
    "modal_winner_share": _said(
        "Share of the usual winner", "Orders that name the most frequent winner.", _MANY, MANY
    ),
    "winner_entropy": _said(
        "Spread of winners",
        "Entropy of the winner over the orders: 0 always one, 1 all alike.",
        _MANY,
        MANY,
        "number",
    ),
    "winner_differs": _said(
        "Winner differs", "Pairs of orders with different winners.", _MANY, MANY
    ),
    "kendall_tau_b": _said(
        "Rank correlation between orders",
        "Mean Kendall's tau-b of the scores under two orders.",
        "items of three candidates or more with scores in two orders",
        MANY,
        "number",
    ),
    "kendall_w": _said(
        "Concordance of orders",
        "Kendall's W of the rankings under all orders.",
        "items of three candidates or more with scores in two orders",
        MANY,
        "number",
    ),
    "winner_position_chi2": _said(
        "Winners by place",
        "Chi square of the winners' places against all places alike; balanced designs only.",
        "items shown with every candidate in every place equally often",
        MANY,
        "number",
    ),
    "percent_agreement": _said(
        "Agreement", "Equal pairs of labels of an item, every item weighing one.", _ITEMS, PEOPLE
    ),
    "cohen_kappa": _said(
        "Cohen's kappa",
        "Agreement of two beyond chance, over what chance left to gain.",
        "items that both labelled",
        PEOPLE,
        "number",
    ),
    "krippendorff_alpha": _said(
        "Krippendorff's alpha",
        "Agreement beyond chance of any number of people; labels may be missing.",
        _ITEMS,
        PEOPLE,
        "number",
    ),
    "gwet_ac1": _said(
        "Gwet's AC1",
        "Agreement beyond a chance that prevalence does not inflate.",
        _ITEMS,
        PEOPLE,
        "number",
    ),
    "fleiss_kappa": _said(
        "Fleiss' kappa",
        "Agreement beyond chance where every item has equally many labels.",
        _ITEMS,
        PEOPLE,
        "number",
    ),
    "alt_test_winning_rate": _said(
        "May stand for people",
        "People whom the judge may replace by the alternative annotator test; from one half on "
        "it passes.",
        "people with enough items",
        PEOPLE,
    ),
    "prevalence": _said(
        "Share of a label", "Labels of an item that are this one.", "labelled items", PEOPLE
    ),
    "human_flip_rate": _said(
        "People differ when turned",
        "The same person differs on a pair served again with its candidates turned.",
        "pairs that a person saw again, turned",
        PEOPLE,
    ),
    "human_order_effect": _said(
        "People's order effect",
        "Differing when served again turned minus differing when served again as before.",
        "pairs that a person saw twice",
        PEOPLE,
        "points",
    ),
    "gold_accuracy": _said(
        "Right on gold items",
        "A person's first label of an item whose label is known is that label.",
        "first labels of gold items",
        PEOPLE,
    ),
    "labelled_right": _said(
        "Right by people's labels",
        "Labels that count as right by the queue's rule, every item weighing one; the lead's "
        "decision where there is one.",
        "items with a label that counts as right or wrong",
        PEOPLE,
    ),
    "brier": _said(
        "Brier score",
        "Mean squared error of the last belief, 0 to 1: lower is better.",
        "sessions with a belief",
        BELIEFS,
        "number",
    ),
    "log_score": _said(
        "Log score",
        "Negative log of the probability of the right option, in nats: lower is better.",
        "sessions with a belief",
        BELIEFS,
        "number",
    ),
    "ece": _said(
        "Calibration error",
        "Expected gap between the highest probability and being right, 10 bins, left-closed; "
        "biased upward.",
        "sessions with a belief",
        BELIEFS,
        "number",
    ),
}  # fmt: skip
