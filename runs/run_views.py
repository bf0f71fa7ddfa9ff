"""Pages of one run: the matrix, one cell of it, and the run's replay."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_POST, require_safe

from debateweb.context import Link
from debateweb.guards import READERS, WorkspaceRequest, require_role
from runs.engine.normalise import is_correct
from runs.engine.types import Answer, AnswerKind, Question
from runs.models import Aggregate, Run, RunStatus
from runs.queries import ArmContext, arm_context, engine_question
from runs.run_pages import reads
from runs.run_pages.cell import cell_of
from runs.run_pages.matrix import CORRECT_BADGES, SHOWS, Matrix, Went, matrix_of
from runs.run_pages.texts import Cut, cut
from runs.run_pages.turned import turned_runs
from runs.services.verify import first_disagreement

#: Characters of the question, of one piece of evidence and of the whole list, without ``?all=1``.
QUESTION_CHARS = 4_000
EVIDENCE_CHARS = 1_000
LISTED = 50
VALUE_CHARS = 300
#: The entry of the navigation under which runs stand: their address does not begin with its.
SECTION = "Experiments"


@dataclass(frozen=True)
class AskedQuestion:
    """The question as the page shows it."""

    text: Cut
    choices: list[Cut]
    reference: list[Cut]
    evidence: list[tuple[str, str, Cut]]
    evidence_count: int


@dataclass(frozen=True)
class Final:
    """A stored aggregate with what it is worth."""

    row: Aggregate
    correct_badge: tuple[str, str]
    answer: Cut
    counts: list[tuple[Cut, int]]
    candidates: list[tuple[str, Cut]]
    open_issues: list[Cut]


@require_role(*READERS)
@require_safe
def run(request: WorkspaceRequest, run_id: int) -> HttpResponse:
    """One debate as a matrix of agents and rounds."""
    found = _run_or_404(request, run_id)
    return render(request, "runs/run.html", _page(request, found))


@require_role(*READERS)
@require_POST
def run_verify(request: WorkspaceRequest, run_id: int) -> HttpResponse:
    """Replay the run from its records (S34). Nothing is stored."""
    found = _run_or_404(request, run_id)
    ended = found.status == RunStatus.DONE
    verification = {
        "ended": ended,
        "disagreement": first_disagreement(found.pk) if ended else None,
    }
    if request.htmx:
        context = {"run": found, "verification": verification}
        return render(request, "runs/_verification.html", context)
    return render(request, "runs/run.html", _page(request, found, verification=verification))


@require_role(*READERS)
@require_safe
def run_cell(request: WorkspaceRequest, run_id: int, t: int, agent_id: str) -> HttpResponse:
    """One agent in one round: prompt, read set, attempts, ledger, what was admitted."""
    found = _run_or_404(request, run_id)
    shows_all = request.GET.get("all") == "1"
    cell = cell_of(found, t, agent_id, limit=None if shows_all else reads.CELL_TEXT_CHARS)
    if cell is None:
        raise Http404
    values = {
        "run": found,
        "cell": cell,
        "shows_all": shows_all,
        "correct_badge": CORRECT_BADGES[cell.scoring.correct if cell.scoring else None],
        "went_words": SHOWS.get(cell.went, ""),
        "held_badge": CORRECT_BADGES[cell.held_before.correct if cell.held_before else None],
        "section": SECTION,
        "experiment_url": _experiment_url(request, found),
    }
    template = "runs/_cell.html" if request.htmx else "runs/run_cell.html"
    return render(request, template, values)


@require_role(*READERS)
@require_safe
def turned(request: WorkspaceRequest, experiment_id: int) -> HttpResponse:
    """The runs of an experiment in which an agent's answer turned right or wrong."""
    experiment = request.workspace.experiments.filter(pk=experiment_id).first()
    if experiment is None:
        raise Http404
    went: Went = "fixed" if request.GET.get("went") == "fixed" else "broke"
    raw = request.GET.get("after", "")
    after = int(raw) if raw.isascii() and raw.isdigit() and len(raw) < 10 else -1
    values = {
        "experiment": experiment,
        "experiment_url": _url("runs:experiment", request.workspace.name, experiment.pk),
        "page": turned_runs(experiment, went, after=after),
        "went": went,
        "words": SHOWS[went],
        "tabs": [
            Link(SHOWS[name], f"{request.path}?went={name}", name == went)
            for name in ("broke", "fixed")
        ],
        "is_later": after >= 0,
    }
    return render(request, "runs/turned.html", values)


def _run_or_404(request: WorkspaceRequest, run_id: int) -> Run:
    found = reads.run_in(request.workspace, run_id)
    if found is None:
        raise Http404
    return found


def _page(
    request: WorkspaceRequest, found: Run, *, verification: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return what the run page shows: eight queries behind the guard's and the run's own."""
    context = arm_context(found.arm_id)
    question = engine_question(found.question)
    show = request.GET.get("show", "")
    matrix = matrix_of(
        reads.rows_of(found),
        agent_ids=context.protocol.agent_ids,
        models={agent: model.name for agent, model in context.models.items()},
        question=question,
        settings=context.protocol.normaliser,
        show=show,
    )
    before, after = reads.neighbours_of(found)
    shows_all = request.GET.get("all") == "1"
    return {
        "run": found,
        "section": SECTION,
        "question": _asked(question, shows_all=shows_all),
        "matrix": matrix,
        "show": show if show in SHOWS else "",
        "filters": _filters(request, found.pk, matrix, show),
        "finals": [_final(row, question, context) for row in reads.aggregates_of(found)],
        "observables": [(key, _value(value)) for key, value in found.stop_observables.items()],
        "before_id": before,
        "after_id": after,
        "protocol_url": _protocol_url(request, found),
        "experiment_url": _experiment_url(request, found),
        "verification": verification,
    }


def _filters(request: WorkspaceRequest, run_id: int, matrix: Matrix, show: str) -> list[Link]:
    base = reverse("runs:run", args=[request.workspace.name, run_id])
    links = [Link(f"All agents ({matrix.agents})", base, show not in SHOWS)]
    for name, words in SHOWS.items():
        links.append(Link(f"{words} ({matrix.counts[name]})", f"{base}?show={name}", show == name))
    return links


def _asked(question: Question, *, shows_all: bool) -> AskedQuestion:
    most = None if shows_all else LISTED

    def limit(chars: int) -> int | None:
        return None if shows_all else chars

    return AskedQuestion(
        text=cut(question.text, limit(QUESTION_CHARS)),
        choices=[cut(text, limit(VALUE_CHARS)) for text in question.choices[:most]],
        reference=[cut(text, limit(VALUE_CHARS)) for text in question.reference[:most]],
        evidence=[
            (item.id, item.source, cut(item.text, limit(EVIDENCE_CHARS)))
            for item in question.evidence[:most]
        ],
        evidence_count=len(question.evidence),
    )


def _final(row: Aggregate, question: Question, context: ArmContext) -> Final:
    answer = Answer(row.answer_raw, AnswerKind(row.answer_kind), row.answer_value)
    correct = is_correct(answer, question, context.protocol.normaliser)
    return Final(
        row=row,
        correct_badge=CORRECT_BADGES[correct],
        answer=cut(row.answer_value or row.answer_raw, VALUE_CHARS),
        counts=[(cut(value, VALUE_CHARS), count) for value, count in row.counts[:LISTED]],
        candidates=[(agent, cut(value, VALUE_CHARS)) for agent, value in row.candidates[:LISTED]],
        open_issues=[cut(issue, VALUE_CHARS) for issue in row.open_issues[:LISTED]],
    )


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _protocol_url(request: WorkspaceRequest, found: Run) -> str:
    return _url("runs:protocol", request.workspace.name, found.arm.protocol_id)


def _experiment_url(request: WorkspaceRequest, found: Run) -> str:
    return _url("runs:experiment", request.workspace.name, found.experiment_id)


def _url(route: str, *arguments: object) -> str:
    """Return the address of another family's page, "" where there is none."""
    try:
        return reverse(route, args=arguments)
    except NoReverseMatch:
        return ""
