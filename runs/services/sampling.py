"""Which questions an experiment is about: a set by name or file, its split, a limit or a sample."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from debateweb.models import User, Workspace
from runs.engine.draws import Draws
from runs.experiment_file import ExperimentSpec, SampleSpec
from runs.importers.registry import guess_format, read_questions
from runs.models import DebateSet, Question, QuestionSet
from runs.services.faults import DesignError
from runs.services.imports import import_questions


def question_set_for(
    *, workspace: Workspace, spec: ExperimentSpec, folder: Path, actor: User | None
) -> QuestionSet:
    """
    Return the question set that the specification names: a set, a debate set's, or a file's.

    A file is imported under its own name without the ending. Raises DesignError.
    """
    name = spec.questions
    found = QuestionSet.objects.filter(workspace=workspace, name=name, archived_at=None).first()
    if found is not None:
        return found
    debates = DebateSet.objects.filter(workspace=workspace, name=name, archived_at=None).first()
    if debates is not None:
        return debates.question_set
    path = folder / name
    if not path.is_file():
        raise DesignError([f"questions: there is no set and no file {name!r}"])
    with path.open("rb") as stream:
        format_name = guess_format(str(path), stream.read(4096))
    done = import_questions(
        workspace=workspace,
        name=path.stem,
        format_name=format_name,
        records=read_questions(path, format_name),
        actor=actor,
    )
    return QuestionSet.objects.get(workspace=workspace, name=done.name)


def chosen_questions(spec: ExperimentSpec, question_set: QuestionSet) -> list[Question]:
    """Return the questions to run, in the order of the set. Raises DesignError for too few."""
    questions = list(question_set.questions.order_by("position"))
    chosen = _of_split(questions, spec.analysis.split)
    if not chosen:
        raise DesignError(
            [f"questions: {question_set.name!r} holds none of split {spec.analysis.split!r}"]
        )
    if spec.limit is not None and spec.limit > len(chosen):
        raise DesignError([_too_many("limit", spec.limit, len(chosen))])
    if spec.sample is not None:
        chosen = sampled(chosen, spec.sample)
    chosen = chosen[: spec.limit]
    stage = spec.budget.stage
    if stage is not None and stage.questions > len(chosen):
        raise DesignError([_too_many("budget.stage.questions", stage.questions, len(chosen))])
    return chosen


def _too_many(field: str, wanted: int, there: int) -> str:
    return f"{field}: {wanted} questions are wanted, {there} are there"


def _of_split(questions: Sequence[Question], split: str | None) -> list[Question]:
    """A set that knows no splits is all of whatever split was asked for."""
    if split is None or not any(q.split for q in questions):
        return list(questions)
    return [q for q in questions if q.split == split]


def sampled(questions: Sequence[Question], sample: SampleSpec) -> list[Question]:
    """
    Return ``n`` questions drawn by their hashes (S36), in the order of the set.

    With ``by`` the groups share n equally, as far as their sizes allow; what is left over goes
    to groups in the order of their names.
    """
    if sample.n > len(questions):
        raise DesignError([_too_many("sample.n", sample.n, len(questions))])
    groups: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        groups[getattr(question, sample.by) if sample.by else ""].append(question)
    taken: set[int] = set()
    for key, size in _shares({k: len(v) for k, v in groups.items()}, sample.n).items():
        taken.update(q.pk for q in _first(groups[key], sample.seed, size))
    return [q for q in questions if q.pk in taken]


def _first(questions: Iterable[Question], seed: int, size: int) -> list[Question]:
    def key(question: Question) -> tuple[float, int]:
        draw = Draws(seed, question.question_hash).uniform(purpose="sample")
        return draw, question.position

    return sorted(questions, key=key)[:size]


def _shares(sizes: dict[str, int], n: int) -> dict[str, int]:
    shares = dict.fromkeys(sorted(sizes), 0)
    while n:
        open_groups = [key for key in shares if shares[key] < sizes[key]]
        for key in open_groups[:n]:
            shares[key] += 1
        n -= min(n, len(open_groups))
    return shares
