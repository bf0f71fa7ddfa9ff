"""Whether an imported log can stand for the models of an arm, said before anything starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from django.db.models import Func, IntegerField, Max
from django.db.models.fields.json import KeyTransform

from runs.models import Debate, Question
from runs.protocols.spec import Protocol


def recorded_faults(
    *, debate_set_id: int, protocol: Protocol, questions: Sequence[Question], seeds: Sequence[int]
) -> Iterator[str]:
    """
    Yield why a log's replies would be left out or could not be told apart.

    A run takes one debate of its question, agent by agent in order. A log with more agents than
    the protocol, or with several debates of a question that the run's seed does not choose
    between, would be read in part and look whole.
    """
    debates = Debate.objects.filter(debate_set_id=debate_set_id)
    count = Func(
        KeyTransform("agents", "body"),
        function="jsonb_array_length",
        output_field=IntegerField(),
    )
    most = debates.annotate(agents=count).aggregate(most=Max("agents"))["most"] or 0
    if most > len(protocol.agents):
        yield (
            f"the log has debates of {most} agents and the protocol {len(protocol.agents)}; "
            f"give the arm agents: {most}"
        )
    wanted = {question.pk for question in questions}
    found: dict[int, list[int | None]] = defaultdict(list)
    for question_id, seed in debates.values_list("question_id", "seed"):
        if question_id in wanted:
            found[question_id].append(seed)
    unclear = [k for k, have in found.items() if len(have) > 1 and not set(seeds) <= set(have)]
    if unclear:
        yield (
            f"the log holds several debates of {len(unclear)} of the questions, and their seeds "
            "are not those of the experiment, so that none can be chosen"
        )
