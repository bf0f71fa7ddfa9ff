"""Protocols: the list, one protocol, and the editor in which form and YAML are the same thing."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from debateweb.errors import InputError, StateError
from debateweb.guards import READERS, RUNNERS, WorkspaceRequest, require_role
from debateweb.paging import page_of
from runs.engine.ledger import Price
from runs.models import ProtocolVersion
from runs.protocol_draft import Draft, draft_of_post, draft_of_yaml
from runs.protocol_sketch import Question, sketch
from runs.protocols.diff import ABSENT, Change, diff
from runs.protocols.presets import load_preset, preset_names, preset_text
from runs.protocols.spec import Protocol
from runs.protocols.yaml_io import dump_protocol
from runs.queries_protocols import (
    ARMS_NAMED,
    arms_with,
    described_versions,
    other_versions,
    presets_in,
    protocol_of,
    versions_in,
)
from runs.services.models_table import table_of
from runs.services.protocol_versions import save_version

VERSIONS_A_PAGE = 25
VERSIONS_LISTED = 100
FIRST_PRESET = "du_2023"
MOST_CHARACTERS = 1_000_000
#: Containers of the editor that ask for a new sketch.
BY_YAML = "by-yaml"


@dataclass(frozen=True)
class Pricing:
    """For which question and at which price costs are shown; the texts are as typed."""

    question: Question
    price: Price | None
    typed: dict[str, str]
    models: list[str]
    fault: str = ""


@require_role(*READERS)
@require_safe
def protocols(request: WorkspaceRequest) -> HttpResponse:
    """List the shipped protocols and the workspace's versions, newest first."""
    page = page_of(request, versions_in(request.workspace), size=VERSIONS_A_PAGE)
    context = {
        "presets": presets_in(request.workspace),
        "page": page,
        "versions": described_versions(page.rows),
        "may_edit": request.role in RUNNERS,
    }
    return render(request, "runs/protocols.html", context)


@require_role(*READERS)
@require_safe
def preset(request: WorkspaceRequest, name: str) -> HttpResponse:
    """Show a shipped protocol with its YAML as it is written, comments and all."""
    if name not in preset_names():
        raise Http404
    return _protocol_page(request, load_preset(name), preset_text(name), None)


@require_role(*READERS)
@require_safe
def protocol(request: WorkspaceRequest, version_id: int) -> HttpResponse:
    """Show a stored version; ``?against=`` compares it with another version or a preset."""
    version = versions_in(request.workspace).filter(pk=version_id).first()
    if version is None:
        raise Http404
    shown = protocol_of(version)
    return _protocol_page(request, shown, dump_protocol(shown), version)


def _protocol_page(
    request: WorkspaceRequest, shown: Protocol, yaml: str, version: ProtocolVersion | None
) -> HttpResponse:
    pricing = _pricing(request)
    drawn = sketch(shown, pricing.question, pricing.price)
    against = request.GET.get("against", "")
    other = _other(request, against) if against else None
    context = {
        "protocol": shown,
        "version": version,
        "sketch": drawn,
        "pricing": pricing,
        "yaml": yaml,
        "versions": other_versions(version)[:VERSIONS_LISTED] if version else [],
        "presets": preset_names(),
        "against": against,
        "changes": None if other is None else [_change(one) for one in diff(other, shown)],
        "arms": arms_with(request.workspace, drawn.protocol_hash)[:ARMS_NAMED],
        "may_edit": request.role in RUNNERS,
    }
    return render(request, "runs/protocol.html", context)


@dataclass(frozen=True)
class ShownChange:
    """A field that differs; values as the YAML would say them."""

    path: str
    is_descriptive: bool
    before: str
    after: str


def _change(change: Change) -> ShownChange:
    before, after = (_value(value) for value in (change.before, change.after))
    return ShownChange(change.path, change.is_descriptive, before, after)


def _value(value: Any) -> str:
    if value is ABSENT:
        return "(not there)"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _other(request: WorkspaceRequest, key: str) -> Protocol:
    """Return the protocol that ``?against=`` or ``?from=`` names. Raises Http404."""
    if key in preset_names():
        return load_preset(key)
    if not (key.isascii() and key.isdigit() and len(key) < 19):
        raise Http404
    version = versions_in(request.workspace).filter(pk=int(key)).first()
    if version is None:
        raise Http404
    return protocol_of(version)


@require_role(*RUNNERS)
@require_http_methods(["GET", "HEAD", "POST"])
def protocol_edit(request: WorkspaceRequest) -> HttpResponse:
    """Edit a protocol; check it on every change, or make a version of it."""
    if request.method != "POST":
        return _editor(request, draft_of_yaml(_beginning(request)))
    draft = draft_of_post({key: request.POST.get(key, "") for key in request.POST})
    if request.htmx:
        return _swapped(request, draft)
    if request.POST.get("do") != "save" or draft.protocol is None:
        return _editor(request, draft)
    if draft.conflicts:
        return _editor(request, draft)
    try:
        made, is_new = save_version(
            workspace=request.workspace, protocol=draft.protocol, actor=request.user
        )
    except (InputError, StateError) as exc:
        draft.by_path.setdefault("name", []).append(exc.message.removeprefix("name: "))
        return _editor(request, draft)
    words = "is saved" if is_new else "was there already, word for word"
    messages.success(request, f"{made.name}, version {made.version}, {words}.")
    return redirect("runs:protocol", request.workspace.name, made.pk)


def _beginning(request: WorkspaceRequest) -> str:
    """Return the YAML to begin with: a preset under a name of one's own, or a version."""
    key = request.GET.get("from", FIRST_PRESET)
    if key in preset_names():
        return re.sub(
            rf"(?m)^name: {re.escape(key)}$", f"name: my-{key}", preset_text(key), count=1
        )
    return dump_protocol(_other(request, key))


def _editor(request: WorkspaceRequest, draft: Draft) -> HttpResponse:
    wrong = bool(draft.faults or draft.by_path or draft.conflicts) and request.method == "POST"
    status = HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return render(request, "runs/protocol_edit.html", _context(request, draft), status=status)


def _swapped(request: WorkspaceRequest, draft: Draft) -> HttpResponse:
    """Return the new sketch with everything that follows from what was typed, but not that."""
    context = _context(request, draft)
    by_yaml = request.htmx.trigger == BY_YAML
    rows = sum(f"agents[{place}].id" in request.POST for place in range(draft.agent_count + 64))
    context |= {
        "by_yaml": by_yaml,
        "swaps_fields": by_yaml and not draft.typed,
        "swaps_yaml": not by_yaml and not draft.typed,
        "swaps_agents": not by_yaml and rows != draft.agent_count,
    }
    return render(request, "runs/_protocol_swapped.html", context)


def _context(request: WorkspaceRequest, draft: Draft) -> dict[str, Any]:
    pricing = _pricing(request)
    drawn = None
    if draft.protocol is not None:
        drawn = sketch(draft.protocol, pricing.question, pricing.price)
    return {
        "draft": draft,
        "groups": draft.groups(),
        "agents": draft.agents(),
        "count": draft.count(),
        "sketch": drawn,
        "pricing": pricing,
        "presets": preset_names(),
        "from": request.GET.get("from", FIRST_PRESET),
    }


def _pricing(request: WorkspaceRequest) -> Pricing:
    """Return the price chosen from the model table or typed, in dollars a million tokens."""
    sent = request.POST if request.method == "POST" else request.GET
    typed = {
        name: sent.get(f"price.{name}", "").strip()[:40]
        for name in ("in", "out", "chars", "tokens")
    }
    typed["model"] = sent.get("price.model", "")[:200]
    table = {name: config.price for name, config in table_of(request.workspace).items()}
    question = Question(
        _whole(typed["chars"], Question.characters), _whole(typed["tokens"], Question.answer_tokens)
    )
    priced = [name for name, price in table.items() if price is not None]
    fault, price = "", table.get(typed["model"])
    if price is None and (typed["in"] or typed["out"]):
        each = [_microusd(typed["in"] or "0"), _microusd(typed["out"] or "0")]
        if each[0] is None or each[1] is None:
            fault = "A price is a number of US dollars a million tokens, such as 0.15."
        else:
            price = Price(each[0], each[0], each[1])
    return Pricing(question, price, typed, priced, fault)


def _whole(text: str, default: int) -> int:
    is_whole = text.isascii() and text.isdigit() and 0 < len(text) < 8
    return min(max(1, int(text)), MOST_CHARACTERS) if is_whole else default


def _microusd(text: str) -> int | None:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return None
    return int(amount * 1_000_000) if amount.is_finite() and 0 <= amount <= 1_000_000 else None
