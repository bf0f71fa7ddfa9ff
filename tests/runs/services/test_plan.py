"""What an experiment asks of people: answers that no rule scores, and hours that are assumed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runs.services.plan import SECONDS_AN_ANSWER, PersonWork, person_work

CLOSED = st.sampled_from(["number", "choice", "yesno", "text"])


def test_each_open_question_is_answered_once_a_version_an_agent_an_arm_and_a_seed() -> None:
    work = person_work(["open", "number", "open"], seeds=3, answers_a_run=[6, 3])
    assert work == PersonWork(open_questions=2, answers=2 * 3 * 9)
    assert work.hours == 54 * SECONDS_AN_ANSWER / 3600


@given(st.lists(CLOSED), st.integers(1, 9), st.lists(st.integers(1, 9)))
def test_rules_score_closed_questions_so_that_people_have_nothing_to_do(
    kinds: list[str], seeds: int, answers: list[int]
) -> None:
    assert person_work(kinds, seeds=seeds, answers_a_run=answers) == PersonWork(0, 0)
