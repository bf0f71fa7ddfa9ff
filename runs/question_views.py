"""Question sets and debate sets: the lists, one set, one question, one debate."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from debateweb.guards import READERS, RUNNERS, WorkspaceRequest, require_role
from debateweb.paging import page_of
from debateweb.workspace_views import confirm
from runs.models import Debate, DebateSet, Question, QuestionSet
from runs.queries_questions import (
    FIELD_CHARACTERS,
    FILTERS,
    MOST_CHARACTERS,
    MOST_CHOICES,
    debate_sets_in,
    debates_in,
    described,
    experiments_with,
    facets,
    logged,
    question_sets_in,
    questions_after,
    shortened,
)
from runs.services.archiving import archive_set

SETS_A_PAGE = 25
QUESTIONS_A_PAGE = 50
EXPERIMENTS_NAMED = 20
#: Characters of the question above a debate.
QUESTION_CHARACTERS = 2_000


@dataclass(frozen=True)
class Choice:
    """One value of a filter with how many questions have it."""

    value: str
    count: int
    is_chosen: bool


@require_role(*READERS)
@require_safe
def questions(request: WorkspaceRequest) -> HttpResponse:
    """List the question sets, newest first, with what is in them."""
    page = page_of(request, question_sets_in(request.workspace), size=SETS_A_PAGE)
    context = {"page": page, "sets": described(page.rows), "may_import": request.role in RUNNERS}
    return render(request, "runs/questions.html", context)


@require_role(*READERS)
@require_safe
def debates(request: WorkspaceRequest) -> HttpResponse:
    """List the debate sets, newest first."""
    rows = debate_sets_in(request.workspace).select_related("question_set")
    page = page_of(request, rows, size=SETS_A_PAGE)
    context = {"page": page, "may_import": request.role in RUNNERS}
    return render(request, "runs/debates.html", context)


@require_role(*READERS)
@require_safe
def question_set(request: WorkspaceRequest, set_id: int) -> HttpResponse:
    """Show a set: what is in it, and its questions by key, filtered."""
    found = _question_set(request, set_id)
    counted = facets(found)
    chosen = {name: value for name in FILTERS if (value := request.GET.get(name, ""))}
    after = request.GET.get("after", "")
    key = int(after) if after.isascii() and after.isdigit() and len(after) < 10 else -1
    rows, has_more = questions_after(found, chosen, key, QUESTIONS_A_PAGE)
    context = {
        "set": found,
        "counted": counted,
        "rows": rows,
        "filters": [
            ("type", "Answer type", _choices(counted.types, chosen.get("type"))),
            ("stratum", "Stratum", _choices(counted.strata, chosen.get("stratum"))),
            ("split", "Split", _choices(counted.splits, chosen.get("split"))),
        ],
        "chosen": chosen,
        "next_query": urlencode({**chosen, "after": rows[-1].position}) if has_more else "",
        "first_query": urlencode(chosen) if key >= 0 else None,
        "experiments": experiments_with(found)[:EXPERIMENTS_NAMED],
        "may_import": request.role in RUNNERS,
    }
    return render(request, "runs/question_set.html", context)


@require_role(*READERS)
@require_safe
def question(request: WorkspaceRequest, set_id: int, question_id: int) -> HttpResponse:
    """Show one question with everything that its file said of it."""
    found = _question_set(request, set_id)
    row = Question.objects.filter(question_set=found, pk=question_id).first()
    if row is None:
        raise Http404
    near = Question.objects.filter(question_set=found)
    shows_all = "all" in request.GET
    most, field = (None, None) if shows_all else (MOST_CHARACTERS, FIELD_CHARACTERS)
    context = {
        "set": found,
        "question": row,
        "text": shortened(row.text, most),
        "choices": [shortened(choice, field) for choice in row.choices],
        "reference": [shortened(reference, field) for reference in row.reference],
        "evidence": [
            (item, shortened(item["text"], most), f"Evidence {number}")
            for number, item in enumerate(row.evidence, start=1)
        ],
        "metadata": shortened(_pretty(row.metadata), most) if row.metadata else None,
        "previous": near.filter(position=row.position - 1).first() if row.position else None,
        "next": near.filter(position=row.position + 1).first(),
    }
    return render(request, "runs/question.html", context)


@require_role(*READERS)
@require_safe
def debate_set(request: WorkspaceRequest, set_id: int) -> HttpResponse:
    """Show a set of debates that ran elsewhere."""
    found = _debate_set(request, set_id)
    page = page_of(request, debates_in(found))
    context = {"set": found, "page": page, "may_import": request.role in RUNNERS}
    return render(request, "runs/debate_set.html", context)


@require_role(*READERS)
@require_safe
def debate(request: WorkspaceRequest, set_id: int, debate_id: int) -> HttpResponse:
    """Show one imported debate as its log has it, round by round."""
    found = _debate_set(request, set_id)
    row = Debate.objects.filter(debate_set=found, pk=debate_id).select_related("question").first()
    if row is None:
        raise Http404
    shows_all = "all" in request.GET
    context = {
        "set": found,
        "debate": row,
        "question": shortened(row.question.text, None if shows_all else QUESTION_CHARACTERS),
        "log": logged(row, shows_all=shows_all),
    }
    return render(request, "runs/debate.html", context)


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def question_set_archive(request: WorkspaceRequest, set_id: int) -> HttpResponse:
    return _archive(request, _question_set(request, set_id), "runs:questions")


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def debate_set_archive(request: WorkspaceRequest, set_id: int) -> HttpResponse:
    return _archive(request, _debate_set(request, set_id), "runs:debates")


def _archive(
    request: WorkspaceRequest, found: QuestionSet | DebateSet, list_route: str
) -> HttpResponse:
    list_url = reverse(list_route, args=[request.workspace.name])
    if request.method != "POST":
        return confirm(
            request,
            heading=f"Archive “{found.name}”?",
            says=[
                "It leaves the lists and no new experiment can use it.",
                "Nothing is deleted: experiments that used it stay whole, its name stays taken.",
            ],
            button="Archive it",
            cancel_url=list_url,
        )
    archive_set(workspace=request.workspace, archived=found, actor=request.user)
    messages.success(request, f"“{found.name}” is archived.")
    return redirect(list_url)


def _question_set(request: WorkspaceRequest, set_id: int) -> QuestionSet:
    found = question_sets_in(request.workspace).filter(pk=set_id).first()
    if found is None:
        raise Http404
    return found


def _debate_set(request: WorkspaceRequest, set_id: int) -> DebateSet:
    rows = debate_sets_in(request.workspace).select_related("question_set")
    found = rows.filter(pk=set_id).first()
    if found is None:
        raise Http404
    return found


def _choices(counted: dict[str, int], chosen: str | None) -> list[Choice]:
    """Return the values of a filter, most frequent first; a chosen one is always among them."""
    named = sorted((item for item in counted.items() if item[0]), key=lambda item: -item[1])
    kept = named[:MOST_CHOICES]
    if chosen and all(value != chosen for value, _ in kept):
        kept.append((chosen, counted.get(chosen, 0)))
    return [Choice(value, count, value == chosen) for value, count in kept]


def _pretty(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
