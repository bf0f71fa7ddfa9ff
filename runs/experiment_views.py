"""Experiments: the list, and setting one up by form or YAML."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from debateweb.errors import InputError
from debateweb.guards import READERS, RUNNERS, WorkspaceRequest, require_role
from debateweb.paging import page_of
from runs.engine.hashing import digest
from runs.experiment_file import ExperimentSpec, frozen_analysis, parse, unsupported
from runs.experiment_forms import Document, SetUp, document_of_spec, to_yaml
from runs.experiment_starts import STARTS, trying
from runs.models import Experiment
from runs.protocols.presets import preset_names
from runs.protocols.yaml12 import FileFaultError
from runs.queries_experiments import experiments_in, protocol_names
from runs.services.browser_specs import (
    create_from_browser,
    plan_from_browser,
    question_set_names,
)
from runs.services.design import TYPICAL_ANSWER_TOKENS
from runs.services.naming import NameTakenError
from runs.services.plan import LENGTH_RANGE, ExperimentPlan

EXPERIMENTS_A_PAGE = 25
MOST_YAML_BYTES = 1_000_000
BOTH_CHANGED = (
    "The form and the YAML were both changed, and they differ. Say which one counts: “Read the "
    "YAML into the form” or “Write the YAML from the form”."
)


@require_role(*READERS)
@require_safe
def experiments(request: WorkspaceRequest) -> HttpResponse:
    """List the experiments, newest first, with how far each is."""
    page = page_of(request, experiments_in(request.workspace), size=EXPERIMENTS_A_PAGE)
    context = {"page": page, "may_run": request.role in RUNNERS}
    return render(request, "runs/experiments.html", context)


@dataclass
class _Posted:
    """What the set-up page sent, read: the form, and the specification where it has no faults."""

    setup: SetUp
    yaml: str
    spec: ExperimentSpec | None = None
    yaml_faults: list[str] = field(default_factory=list)

    @property
    def has_faults(self) -> bool:
        return bool(self.yaml_faults) or self.setup.has_faults


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def set_up(request: WorkspaceRequest) -> HttpResponse:
    """
    Show the form; change, price or make what was sent. Making the same twice makes it once.

    What was priced and changed since is priced again before it is made.
    """
    if request.method != "POST":
        return _page(request, _Posted(SetUp.of_document(_beginning(request)), ""))
    act = request.POST.get("do", "check")
    posted = _read(request, act)
    if act == "add-arm" or act.startswith("remove-arm-"):
        return _page(request, _with_other_arms(posted, act))
    if posted.spec is None or act in {"read-yaml", "write-yaml"}:
        return _page(request, posted)
    is_repriced = act == "create-priced" and _is_changed(request, posted)
    try:
        if act in {"create", "create-priced"} and not is_repriced:
            made = create_from_browser(
                workspace=request.workspace, spec=posted.spec, actor=request.user
            )
            return redirect("runs:experiment", request.workspace.name, made.pk)
        plan = plan_from_browser(workspace=request.workspace, spec=posted.spec)
    except NameTakenError as exc:
        posted.setup.note([f"name: {exc.message}"])
    except InputError as exc:
        posted.setup.note(exc.message.splitlines())
    else:
        return _page(request, posted, plan, is_repriced=is_repriced)
    return _page(request, posted)


def _is_changed(request: WorkspaceRequest, posted: _Posted) -> bool:
    """Whether what is to be made is something else than what the page showed with its price."""
    return digest(to_yaml(posted.setup.document())) != request.POST.get("written", "")


def _beginning(request: WorkspaceRequest) -> Document:
    """Return a starting point, one with a protocol to try, or what an experiment was made from."""
    copied = request.GET.get("from", "")
    if copied:
        found = _experiment_to_copy(request, copied)
        return {**document_of_spec(found.spec), "name": f"{found.name}-2"}
    _, document = STARTS.get(request.GET.get("kind", ""), STARTS["peers"])
    tried = request.GET.get("protocol", "")
    if tried in {*preset_names(), *protocol_names(request.workspace)}:
        document = trying(tried)
    return {**document, "questions": next(iter(question_set_names(request.workspace)), "")}


def _experiment_to_copy(request: WorkspaceRequest, key: str) -> Experiment:
    if not (key.isascii() and key.isdigit() and len(key) < 19):
        raise Http404
    found = Experiment.objects.filter(workspace=request.workspace, archived_at=None, pk=int(key))
    if not found:
        raise Http404
    return found[0]


def _read(request: WorkspaceRequest, act: str) -> _Posted:
    """Take the form, or the YAML where that was changed, uploaded or asked for."""
    setup = SetUp.of_post(request.POST)
    typed, faults = _typed_yaml(request)
    if faults:
        return _Posted(setup, typed, yaml_faults=faults)
    written = request.POST.get("written", "")
    is_changed = bool(typed.strip()) and digest(typed) != written
    if act == "write-yaml":
        return _of_form(setup)
    if act == "read-yaml" or "file" in request.FILES or "name" not in request.POST:
        return _of_yaml(setup, typed)
    if not is_changed:
        return _of_form(setup)
    if digest(to_yaml(setup.document())) != written:
        return _Posted(setup, typed, yaml_faults=[BOTH_CHANGED])
    return _of_yaml(setup, typed)


def _typed_yaml(request: WorkspaceRequest) -> tuple[str, list[str]]:
    upload = request.FILES.get("file")
    if upload is None:
        return request.POST.get("yaml", "").replace("\r\n", "\n"), []
    if (upload.size or 0) > MOST_YAML_BYTES:
        return "", [f"The file is larger than {MOST_YAML_BYTES:,} bytes. Nothing was read."]
    try:
        return upload.read().decode("utf-8").replace("\r\n", "\n"), []
    except UnicodeDecodeError:
        return "", ["The file is not UTF-8 text. Nothing was read."]


def _of_form(setup: SetUp) -> _Posted:
    text = to_yaml(setup.document())
    posted = _Posted(setup, text)
    try:
        posted.spec = parse(text, "form")
    except FileFaultError as exc:
        setup.note(exc.lines)
    return posted


def _of_yaml(setup: SetUp, text: str) -> _Posted:
    try:
        spec = parse(text, "YAML")
    except FileFaultError as exc:
        return _Posted(setup, text, yaml_faults=list(exc.lines))
    faults = unsupported(spec)
    if faults:
        return _Posted(setup, text, yaml_faults=faults)
    return _Posted(SetUp.of_document(document_of_spec(asdict(spec))), "", spec)


def _with_other_arms(posted: _Posted, act: str) -> _Posted:
    """Return the form with one arm more or less; what was typed stays, right or wrong."""
    if posted.yaml_faults:
        return posted
    document = posted.setup.document()
    arms = document["arms"]
    if act == "add-arm":
        arms.append({})
    else:
        place = act.removeprefix("remove-arm-")
        document["arms"] = [arm for i, arm in enumerate(arms) if str(i) != place]
    return _Posted(SetUp.of_document(document), "")


def _page(
    request: WorkspaceRequest,
    posted: _Posted,
    plan: ExperimentPlan | None = None,
    *,
    is_repriced: bool = False,
) -> HttpResponse:
    setup = posted.setup
    question_sets = question_set_names(request.workspace)
    setup.offer(
        questions=question_sets,
        protocols=[*preset_names(), *protocol_names(request.workspace)],
    )
    written = to_yaml(setup.document())
    kept = posted.yaml if posted.yaml_faults else written
    context: dict[str, Any] = {
        "setup": setup,
        "has_questions": bool(question_sets),
        "yaml": kept,
        "written": request.POST.get("written", "") if posted.yaml_faults else digest(written),
        "yaml_faults": posted.yaml_faults,
        "has_faults": posted.has_faults,
        "starts": [(word, start[0]) for word, start in STARTS.items()],
        "plan": plan,
        "is_repriced": is_repriced,
        "analysis": frozen_analysis(posted.spec)["analysis"] if plan and posted.spec else None,
        "answer_tokens": TYPICAL_ANSWER_TOKENS,
        "length_range": LENGTH_RANGE,
    }
    status = HTTPStatus.BAD_REQUEST if posted.has_faults else HTTPStatus.OK
    return render(request, "runs/experiment_setup.html", context, status=status)
