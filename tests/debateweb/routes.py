"""
The table of roles and routes: who gets which answer where. Every route needs an entry.

``ROUTES`` maps a route's name to a ``Route``: the method that is tried, what the address needs, and
the status for each kind of person. ``ANONYMOUS`` has no session, a ``STRANGER`` is signed in and
belongs to another workspace. A view whose objects do not exist in the test answers 404 to all who
may see it as well: give ``arguments`` that make one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from audits.queue_models import Item, Queue
from audits.queues.creating import add_annotator
from audits.services import ask_for_report, build_stored
from debateweb.models import Workspace
from debateweb.webhooks import LABEL_SUBMIT, add_endpoint
from runs.importers.records import AgentRecord, DebateRecord
from runs.models import DebateSet, Experiment, ProtocolVersion, QuestionSet
from runs.protocols.digest import canonical_text, protocol_hash
from runs.protocols.presets import load_preset
from runs.services.imports import import_debates, import_questions
from tests.audits.queues.making import answers, queue_of
from tests.runs.factories import experiment, finish, questions

ANONYMOUS, STRANGER = "anonymous", "stranger"
OWNER, RESEARCHER, ANNOTATOR, READER = "owner", "researcher", "annotator", "reader"
KINDS = (ANONYMOUS, STRANGER, OWNER, RESEARCHER, ANNOTATOR, READER)

Answers = Mapping[str, int]
Arguments = Callable[[Workspace], dict[str, Any]]


def no_arguments(workspace: Workspace) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Route:
    """What is tried on a route, and the expected status by kind of person."""

    answers: Answers
    method: str = "GET"
    arguments: Arguments = no_arguments  # Beside ``workspace``, which is filled in by itself.
    data: dict[str, str] = field(default_factory=dict)


def everybody(status: int, *, anonymous: int | None = None) -> Answers:
    """Return ``status`` for all; people without a session get ``anonymous``."""
    answers = dict.fromkeys(KINDS, status)
    return answers | {ANONYMOUS: status if anonymous is None else anonymous}


def only(*roles: str, status: int = 200) -> Answers:
    """Return ``status`` for ``roles``, 302 to the sign-in without a session, 404 for the rest."""
    answers = dict.fromkeys(KINDS, 404) | {ANONYMOUS: 302}
    return answers | dict.fromkeys(roles, status)


MEMBERS = (OWNER, RESEARCHER, ANNOTATOR, READER)


def _member_id(workspace: Workspace) -> dict[str, Any]:
    return {"member_id": workspace.members.get(role=READER).pk}


def fixed(**arguments: Any) -> Arguments:
    """Return arguments that need nothing to be made."""
    return lambda _workspace: arguments


def _experiment_id(workspace: Workspace) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        return {"experiment_id": experiment(Path(folder), in_workspace=workspace).pk}


def _run_id(workspace: Workspace, *, ended: bool = False) -> dict[str, Any]:
    made = Experiment.objects.get(pk=_experiment_id(workspace)["experiment_id"])
    return {"run_id": (finish(made) if ended else made).runs.get().pk}


def _question_set(workspace: Workspace) -> QuestionSet:
    import_questions(workspace=workspace, name="q", format_name="jsonl", records=questions())
    return QuestionSet.objects.get(workspace=workspace, name="q")


def _question(workspace: Workspace) -> dict[str, Any]:
    found = _question_set(workspace)
    return {"set_id": found.pk, "question_id": found.questions.get().pk}


def _debate(workspace: Workspace) -> dict[str, Any]:
    question = questions()[0]
    record = DebateRecord("d", question, "p", agents=(AgentRecord("a", "m"),), rounds=())
    import_debates(workspace=workspace, name="d", format_name="jsonl", records=[record])
    found = DebateSet.objects.get(workspace=workspace, name="d")
    return {"set_id": found.pk, "debate_id": found.debates.get().pk}


def _debate_set_id(workspace: Workspace) -> dict[str, Any]:
    return {"set_id": _debate(workspace)["set_id"]}


def _report_name(workspace: Workspace) -> dict[str, Any]:
    """Return the name of an experiment whose report is built."""
    pk = _experiment_id(workspace)["experiment_id"]
    name = Experiment.objects.get(pk=pk).name
    asked = ask_for_report(workspace=workspace, name=name, actor=None)
    assert asked is not None
    build_stored(asked.pk)
    return {"name": name}


def labelling(workspace: Workspace) -> dict[str, Any]:
    """Return a queue in which everybody labels who may."""
    name = f"labels-of-{workspace.name}"
    queue = Queue.objects.filter(workspace=workspace, name=name).first()
    queue = queue or queue_of(answers(6), in_workspace=workspace, name=name)
    for person in workspace.members.exclude(role=READER).select_related("user"):
        add_annotator(queue=queue, user=person.user, actor=None)
    return {"name": queue.name}


def _desk_item(workspace: Workspace) -> dict[str, Any]:
    where = labelling(workspace)
    item = Item.objects.filter(queue__workspace=workspace, queue__name=where["name"]).first()
    assert item is not None
    return {**where, "key": item.key}


def _desk_person(workspace: Workspace) -> dict[str, Any]:
    where = labelling(workspace)
    queue = Queue.objects.get(workspace=workspace, name=where["name"])
    return {**where, "pseudonym": queue.annotators.earliest("pk").pseudonym}


def _webhook(workspace: Workspace) -> dict[str, Any]:
    actor = workspace.members.filter(role=OWNER)[0].user
    url, events = "https://hooks.example.org/", [LABEL_SUBMIT]
    made, _ = add_endpoint(workspace=workspace, url=url, events=events, actor=actor)
    return {"endpoint_id": made.pk}


def _version_id(workspace: Workspace) -> dict[str, Any]:
    version = ProtocolVersion.objects.create(
        workspace=workspace,
        name="p",
        version=1,
        protocol_hash=protocol_hash(load_preset("du_2023")),
        canonical=canonical_text(load_preset("du_2023")),
    )
    return {"version_id": version.pk}


ROUTES: dict[str, Route] = {
    "home": Route(everybody(302)),
    "health": Route(everybody(200)),
    "health_json": Route(everybody(200)),
    "login": Route(everybody(302, anonymous=200)),
    "logout": Route(everybody(302), method="POST"),
    "welcome": Route(everybody(200), arguments=fixed(token="x")),
    "join": Route(everybody(404), arguments=fixed(token="x")),
    "theme": Route(everybody(302), method="POST"),
    "draft": Route(everybody(404, anonymous=302), arguments=fixed(key="x")),
    "design": Route(everybody(200, anonymous=302)),
    "account": Route(everybody(200, anonymous=302)),
    "change_password": Route(everybody(400, anonymous=302), method="POST"),
    "token_create": Route(everybody(400, anonymous=302), method="POST"),
    "token_revoke": Route(
        everybody(404, anonymous=302), method="POST", arguments=fixed(token_id=0)
    ),
    "workspaces": Route(everybody(200, anonymous=302)),
    "workspace": Route(only(*MEMBERS)),
    "workspace_settings": Route(only(OWNER, RESEARCHER)),
    "workspace_rename": Route(only(OWNER, status=400), method="POST"),
    "workspace_archive": Route(only(OWNER)),
    "member_role": Route(
        only(OWNER, status=302), method="POST", arguments=_member_id, data={"role": READER}
    ),
    "member_archive": Route(only(OWNER), arguments=_member_id),
    "invite": Route(only(OWNER, status=400), method="POST"),
    "invitation_revoke": Route(only(), method="POST", arguments=fixed(invitation_id=0)),
    "trail": Route(only(OWNER, RESEARCHER)),
    "trail_verify": Route(only(OWNER, RESEARCHER), method="POST"),
    "webhooks": Route(only(OWNER)),
    "webhook_ping": Route(only(OWNER, status=302), method="POST", arguments=_webhook),
    "webhook_revoke": Route(only(OWNER), arguments=_webhook),
    "webhook_again": Route(only(), method="POST", arguments=fixed(delivery_id=0)),
    "runs:questions": Route(only(OWNER, RESEARCHER, READER)),
    "runs:question_import": Route(only(OWNER, RESEARCHER)),
    "runs:question_upload": Route(
        only(OWNER, RESEARCHER, status=302), arguments=fixed(content_hash="0" * 64)
    ),
    "runs:debates": Route(only(OWNER, RESEARCHER, READER)),
    "runs:debate_set": Route(only(OWNER, RESEARCHER, READER), arguments=_debate_set_id),
    "runs:debate_set_archive": Route(only(OWNER, RESEARCHER), arguments=_debate_set_id),
    "runs:debate": Route(only(OWNER, RESEARCHER, READER), arguments=_debate),
    "runs:question_set": Route(
        only(OWNER, RESEARCHER, READER), arguments=lambda w: {"set_id": _question_set(w).pk}
    ),
    "runs:question_set_archive": Route(
        only(OWNER, RESEARCHER), arguments=lambda w: {"set_id": _question_set(w).pk}
    ),
    "runs:question": Route(only(OWNER, RESEARCHER, READER), arguments=_question),
    "runs:protocols": Route(only(OWNER, RESEARCHER, READER)),
    "runs:protocol_edit": Route(only(OWNER, RESEARCHER)),
    "runs:preset": Route(only(OWNER, RESEARCHER, READER), arguments=fixed(name="du_2023")),
    "runs:protocol": Route(only(OWNER, RESEARCHER, READER), arguments=_version_id),
    "runs:experiments": Route(only(OWNER, RESEARCHER, READER)),
    "runs:experiment_new": Route(only(OWNER, RESEARCHER)),
    "runs:experiment": Route(only(OWNER, RESEARCHER, READER), arguments=_experiment_id),
    "runs:experiment_cancel": Route(only(OWNER, RESEARCHER), arguments=_experiment_id),
    **{
        f"runs:experiment_{act}": Route(
            only(OWNER, RESEARCHER, status=302), method="POST", arguments=_experiment_id
        )
        for act in ("start", "pause", "resume", "confirm")
    },
    "runs:experiment_turned": Route(only(OWNER, RESEARCHER, READER), arguments=_experiment_id),
    "runs:run": Route(only(OWNER, RESEARCHER, READER), arguments=_run_id),
    "runs:run_verify": Route(only(OWNER, RESEARCHER, READER), method="POST", arguments=_run_id),
    "runs:run_cell": Route(
        only(OWNER, RESEARCHER, READER),
        arguments=lambda workspace: {**_run_id(workspace, ended=True), "t": 0, "agent_id": "a"},
    ),
    "audits:reports": Route(only(OWNER, RESEARCHER, READER)),
    **{
        f"audits:{page}": Route(only(OWNER, RESEARCHER, READER), arguments=_report_name)
        for page in ("report", "report_html", "report_json", "report_csv")
    },
    "audits:report_build": Route(
        only(OWNER, RESEARCHER, READER, status=302), method="POST", arguments=_report_name
    ),
    **{
        f"audits:{page}": Route(
            only(OWNER, RESEARCHER, READER),
            arguments=_report_name,
            data={"metric": "repair_T", "condition": "debate"},
        )
        for page in ("rows", "rows_csv")
    },
    "audits:label_queues": Route(only(OWNER, RESEARCHER, ANNOTATOR)),
    **{
        f"audits:label{page}": Route(only(OWNER, RESEARCHER, ANNOTATOR), arguments=labelling)
        for page in ("", "_guideline", "_keys", "_history", "_revealed")
    },
    **{
        f"audits:label_{act}": Route(
            only(OWNER, RESEARCHER, ANNOTATOR, status=302), method="POST", arguments=labelling
        )
        for act in ("join", "undo", "close_batch")
    },
    # Acts on an item: to who was never served it, it does not exist.
    **{
        f"audits:label_{act}": Route(only(), method="POST", arguments=labelling)
        for act in ("submit", "draft", "beat", "skip", "release", "flag", "ask", "kept")
    },
    "audits:label_correct": Route(
        only(), arguments=lambda workspace: {**labelling(workspace), "key": "0" * 24}
    ),
    **{
        f"audits:desk{page}": Route(only(OWNER, RESEARCHER), arguments=labelling)
        for page in ("", "_people", "_plan")
    },
    "audits:queues": Route(only(OWNER, RESEARCHER)),
    "audits:queue_new": Route(only(OWNER, RESEARCHER)),
    "audits:queue": Route(only(OWNER, RESEARCHER), arguments=labelling),
    "audits:queue_add": Route(only(OWNER, RESEARCHER, status=302), "POST", labelling),
    "audits:queue_admit": Route(only(OWNER, RESEARCHER, status=302), "POST", _desk_person),
    "audits:queue_pause": Route(only(OWNER, RESEARCHER, status=302), "POST", labelling),
    "audits:queue_close": Route(only(OWNER, RESEARCHER), arguments=labelling),
    "audits:desk_item": Route(only(OWNER, RESEARCHER), arguments=_desk_item),
    "audits:desk_person": Route(only(OWNER, RESEARCHER), arguments=_desk_person),
    "audits:desk_key": Route(only(OWNER), arguments=labelling),
    "audits:desk_key_file": Route(only(OWNER), method="POST", arguments=labelling),
    "audits:table": Route(
        only(OWNER, RESEARCHER, READER),
        arguments=_report_name,
        data={"table": "counts", "condition": "debate"},
    ),
}
