"""
Importing by browser: a file or pasted rows, a preview, and only then rows in the database.

The upload lies on the server under its hash, and everything chosen stands in the address: going
back, reloading and signing in again lose nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import get_args

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from debateweb.errors import InputError, StateError
from debateweb.guards import RUNNERS, WorkspaceRequest, require_role
from runs.engine.types import AnswerType
from runs.importers.faults import ImportFaults
from runs.importers.mapping import MAPPED_FIELDS, FieldMapping, guess_answer_type
from runs.importers.records import DebateRecord, QuestionRecord
from runs.importers.registry import DEBATE_READERS, MAPPED_READERS, QUESTION_READERS
from runs.models import DebateSet, QuestionSet
from runs.services.imports import import_debates, import_questions
from runs.services.uploads import (
    MAX_BYTES,
    PREVIEW_ROWS,
    Preview,
    debates_of,
    look_at,
    questions_of,
    store_upload,
    upload_path,
)

QUESTIONS, DEBATES = "questions", "debates"
KINDS = ((QUESTIONS, "Questions"), (DEBATES, "Debates that ran elsewhere"))
#: Names of formats in words.
FORMATS = {
    "jsonl": "JSON Lines or a JSON array",
    "csv": "CSV with a header",
    "gsm8k": "GSM8K (question, answer with ####)",
    "truthfulqa": "TruthfulQA, multiple choice",
    "truthfulqa_open": "TruthfulQA, open answers",
    "strategyqa": "StrategyQA",
    "du": "Multi-agent debate logs (Du et al. 2023)",
    "gsm8k_solutions": "GSM8K model solutions",
    "gsm8k_steps": "GSM8K model solutions, fine-tuned then verified",
}
FIELD_WORDS = {
    "question": "Question text",
    "reference": "Reference answer",
    "id": "Id",
    "answer_type": "Answer type",
    "choices": "Choices",
    "stratum": "Stratum",
    "family": "Family",
    "split": "Split",
}
TYPE_WORDS = {
    "number": "a number",
    "choice": "a choice",
    "yesno": "yes or no",
    "text": "a short text",
    "open": "open, judged by people",
}
NO_COLUMN = "-"


class UploadForm(forms.Form):
    """A file, or rows that are pasted."""

    kind = forms.ChoiceField(label="What it holds", choices=KINDS, initial=QUESTIONS)
    file = forms.FileField(
        label="File",
        required=False,
        help_text=f"CSV, JSON Lines or JSON in UTF-8, at most {MAX_BYTES // 1024**2} MB.",
    )
    text = forms.CharField(
        label="Or paste rows",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"class": "mono", "rows": "8", "spellcheck": "false"}),
        help_text="As they stand in the file, with a CSV’s header. Beyond 2 MB send a file.",
    )

    def clean(self) -> dict[str, object]:
        data: dict[str, object] = super().clean() or {}
        has_text = bool(str(data.get("text") or "").strip())
        if not data.get("file") and not has_text and "file" not in self.errors:
            self.add_error("file", "Choose a file or paste rows below.")
        if data.get("file") and has_text:
            self.add_error("text", "There is a file as well. Send one of the two.")
        return data


class NameForm(forms.Form):
    """The name of the new set."""

    name = forms.CharField(
        label="Name of the set",
        max_length=100,
        help_text="Experiments name it. It stays taken, and what is in a set never changes.",
    )


@dataclass(frozen=True)
class MappedField:
    """One field of ours with the columns that it can be read from."""

    name: str
    label: str
    column: str


@dataclass
class _Upload:
    """An upload with all that the address says of it."""

    content_hash: str
    path: Path
    kind: str
    file_name: str
    look: Preview
    mapping: FieldMapping | None

    @property
    def format_name(self) -> str:
        return self.look.format_name

    def records(self) -> list[QuestionRecord] | list[DebateRecord]:
        """Return everything in the file. Raises ImportFaults."""
        if self.kind == DEBATES:
            return list(debates_of(self.path, self.file_name, self.format_name))
        return list(questions_of(self.path, self.file_name, self.format_name, self.mapping))


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def question_import(request: WorkspaceRequest) -> HttpResponse:
    """Take a file or pasted rows and go to the preview."""
    if request.method != "POST":
        kind = DEBATES if request.GET.get("kind") == DEBATES else QUESTIONS
        return _import_page(request, UploadForm(initial={"kind": kind}))
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _import_page(request, form)
    sent = form.cleaned_data["file"]
    pasted = form.cleaned_data["text"].replace("\r\n", "\n")
    try:
        chunks = sent.chunks() if sent else [pasted.encode("utf-8", "surrogatepass")]
        content_hash = store_upload(request.workspace, chunks)
    except InputError as exc:
        form.add_error("file" if sent else "text", exc.message)
        return _import_page(request, form)
    query = QueryDict(mutable=True)
    query["kind"] = form.cleaned_data["kind"]
    query["file"] = Path(sent.name).name[:100] if sent else "pasted rows"
    url = reverse("runs:question_upload", args=[request.workspace.name, content_hash])
    return redirect(f"{url}?{query.urlencode()}")


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def question_upload(request: WorkspaceRequest, content_hash: str) -> HttpResponse:
    """Preview an upload under the chosen format and columns; POST imports it as shown."""
    path = upload_path(request.workspace, content_hash)
    if path is None:
        messages.warning(request, "That upload is not here any more. Please send the file again.")
        return redirect("runs:question_import", request.workspace.name)
    upload = _upload(request, content_hash, path)
    form = NameForm(request.POST or None, initial={"name": _likely_name(upload.file_name)})
    try:
        records = upload.records()
    except ImportFaults as exc:
        return _preview_page(request, upload, form, faults=exc)
    if request.method != "POST" or not form.is_valid():
        return _preview_page(request, upload, form, records=records)
    try:
        url = _store(request, upload, form.cleaned_data["name"], records)
    except (InputError, StateError) as exc:
        form.add_error("name", exc.message)
        return _preview_page(request, upload, form, records=records)
    messages.success(request, f"{len(records):,} imported as “{form.cleaned_data['name']}”.")
    return redirect(url)


def _store(
    request: WorkspaceRequest,
    upload: _Upload,
    name: str,
    records: list[QuestionRecord] | list[DebateRecord],
) -> str:
    """Write the rows and return the address of their set. Importing twice imports once."""
    workspace, actor = request.workspace, request.user
    if upload.kind == DEBATES:
        import_debates(
            workspace=workspace,
            name=name,
            format_name=upload.format_name,
            records=[r for r in records if isinstance(r, DebateRecord)],
            actor=actor,
        )
        made = DebateSet.objects.get(workspace=workspace, name=name)
        return reverse("runs:debate_set", args=[workspace.name, made.pk])
    import_questions(
        workspace=workspace,
        name=name,
        format_name=upload.format_name,
        records=[r for r in records if isinstance(r, QuestionRecord)],
        actor=actor,
    )
    stored = QuestionSet.objects.get(workspace=workspace, name=name)
    return reverse("runs:question_set", args=[workspace.name, stored.pk])


def _upload(request: WorkspaceRequest, content_hash: str, path: Path) -> _Upload:
    kind = DEBATES if request.GET.get("kind") == DEBATES else QUESTIONS
    file_name = request.GET.get("file", "")[:100] or "upload"
    known = DEBATE_READERS if kind == DEBATES else QUESTION_READERS
    asked = request.GET.get("format", "")
    look = look_at(path, file_name, asked if asked in known else "")
    if look.format_name not in known:
        look = look_at(path, file_name, "jsonl")
    mapping = _mapping(request, look) if kind == QUESTIONS else None
    return _Upload(content_hash, path, kind, file_name, look, mapping)


def _mapping(request: WorkspaceRequest, look: Preview) -> FieldMapping | None:
    """Return what the address says about columns, or the guess where it says nothing."""
    if look.format_name not in MAPPED_READERS:
        return None
    said = {
        name: request.GET[f"map.{name}"] for name in MAPPED_FIELDS if f"map.{name}" in request.GET
    }
    if said and request.GET.get("mapped") == look.format_name:
        columns = {name: column for name, column in said.items() if column in look.columns}
        asked = request.GET.get("answer_type", "")
    else:
        columns = look.guessed_columns
        asked = guess_answer_type(columns, look.raw) or ""
    answer_type = next((word for word in get_args(AnswerType) if word == asked), None)
    mapping = FieldMapping(columns, answer_type)
    is_ours = mapping.changes_nothing and {"id", "question"} <= columns.keys()
    return None if is_ours and "reference" in columns else mapping


def _import_page(request: WorkspaceRequest, form: UploadForm) -> HttpResponse:
    status = HTTPStatus.BAD_REQUEST if form.errors else HTTPStatus.OK
    return render(request, "runs/question_import.html", {"form": form}, status=status)


def _preview_page(
    request: WorkspaceRequest,
    upload: _Upload,
    form: NameForm,
    *,
    records: list[QuestionRecord] | list[DebateRecord] | None = None,
    faults: ImportFaults | None = None,
) -> HttpResponse:
    known = DEBATE_READERS if upload.kind == DEBATES else QUESTION_READERS
    columns = upload.mapping.columns if upload.mapping else upload.look.guessed_columns
    context = {
        "upload": upload,
        "form": form,
        "formats": [(name, FORMATS.get(name, name)) for name in known],
        "guessed": FORMATS.get(upload.look.guessed_format, upload.look.guessed_format),
        "maps": [MappedField(n, FIELD_WORDS[n], columns.get(n, "")) for n in MAPPED_FIELDS],
        "no_column": NO_COLUMN,
        "has_columns": upload.kind == QUESTIONS and bool(upload.look.columns),
        "types": list(TYPE_WORDS.items()),
        "answer_type": upload.mapping.answer_type if upload.mapping else None,
        "faults": faults,
        "total": len(records) if records is not None else None,
        "first": list(islice(records or (), PREVIEW_ROWS)),
        "referenced": _referenced(records or []),
        "query": request.GET.urlencode(),
        "raw": [[row.get(name) for name in upload.look.columns] for row in upload.look.raw],
    }
    refused = faults is not None and request.method == "POST"
    status = HTTPStatus.BAD_REQUEST if refused or form.errors else HTTPStatus.OK
    return render(request, "runs/question_upload.html", context, status=status)


def _referenced(records: list[QuestionRecord] | list[DebateRecord]) -> int:
    asked = (r if isinstance(r, QuestionRecord) else r.question for r in records)
    return sum(bool(question.reference) for question in asked)


def _likely_name(file_name: str) -> str:
    stem = Path(file_name).stem.strip().replace("/", "-")
    return "" if file_name == "pasted rows" else stem[:100]
