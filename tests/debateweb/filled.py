"""
A workspace in which every list has rows, and the address of every page in it.

Few or many: ``filled`` makes what a page needs by the services, and the rest by copying rows
within the database, so that 10,000 runs take seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection
from django.test import Client
from django.urls import reverse

from audits.models import Report, ReportRow
from audits.services import ask_for_report, build_stored
from debateweb import membership
from debateweb.models import ApiToken, Role, User, Workspace
from runs.importers.records import AgentRecord, DebateRecord
from runs.models import DebateSet, Experiment, ProtocolVersion
from runs.protocols.digest import canonical_text, protocol_hash
from runs.protocols.presets import load_preset
from runs.services import uploads
from runs.services.imports import import_debates
from tests.debateweb.people import member
from tests.debateweb.routes import OWNER, ROUTES
from tests.debateweb.test_routes import PATHS
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, said

AGENTS = [{"id": "a"}, {"id": "b"}]
WAITING = 3
ANSWERS = {"a": "23", "b": "52"}  # The first question's answer is 2: a goes wrong, b goes right.

#: The first run's records become every other run's.
COPIES = """
UPDATE runs_run r SET status = s.status, started_at = s.started_at, next_round = s.next_round,
    active = s.active, ended_at = s.ended_at, stop_reason = s.stop_reason
FROM runs_run s WHERE s.id = %(source)s AND r.experiment_id = s.experiment_id AND r.id <> s.id
    AND r.position < %(copied)s;
INSERT INTO runs_attempt (run_id, t, agent_id, kind, ordinal, request_digest, model_slot, model,
    prompt, read_set, decoding, parent_version, reserved_microusd, reserved_output_tokens, fence,
    worker)
SELECT r.id, t, agent_id, kind, ordinal, request_digest, model_slot, model, prompt, read_set,
    decoding, parent_version, reserved_microusd, reserved_output_tokens, a.fence, worker
FROM runs_attempt a, runs_run r WHERE a.run_id = %(source)s AND r.experiment_id = %(experiment)s
    AND r.id <> a.run_id AND r.position < %(copied)s;
INSERT INTO runs_attemptoutcome (attempt_id, late, status, raw, finish_reason, error_class,
    error_detail, model_version)
SELECT c.id, late, o.status, raw, finish_reason, error_class, error_detail, model_version
FROM runs_attemptoutcome o JOIN runs_attempt a ON a.id = o.attempt_id
    JOIN runs_attempt c ON (c.t, c.agent_id, c.ordinal) = (a.t, a.agent_id, a.ordinal)
    JOIN runs_run r ON r.id = c.run_id
WHERE a.run_id = %(source)s AND r.experiment_id = %(experiment)s AND r.id <> a.run_id;
INSERT INTO runs_state (run_id, agent_id, state_version, parent_version, round, text, answer_raw,
    answer_kind, answer_value, answer_rule, raw_hash, content_hash, claims, evidence_refs,
    unresolved, change)
SELECT r.id, agent_id, state_version, parent_version, round, text, answer_raw, answer_kind,
    answer_value, answer_rule, raw_hash, content_hash, claims, evidence_refs, unresolved, change
FROM runs_state s, runs_run r WHERE s.run_id = %(source)s AND r.experiment_id = %(experiment)s
    AND r.id <> s.run_id AND r.position < %(copied)s
"""


@dataclass(frozen=True)
class Filled:
    """A workspace, its owner, and what the addresses of its pages name."""

    workspace: Workspace
    owner: User
    experiment: Experiment
    debates: DebateSet
    version: ProtocolVersion
    upload: str

    def arguments(self, name: str) -> dict[str, Any]:
        """Return what the route's address needs; a route unknown here makes its own."""
        path = PATHS[name]
        needed = set(re.findall(r"<\w+:(\w+)>", path)) - {"workspace"}
        questions = self.experiment.question_set
        known: dict[str, Any] = {
            "content_hash": self.upload,
            "debate_id": self.debates.debates.earliest("pk").pk,
            "experiment_id": self.experiment.pk,
            "member_id": self.workspace.members.filter(role=Role.READER).earliest("pk").pk,
            "name": load_preset("du_2023").name if "/shipped/" in path else self.experiment.name,
            "question_id": questions.questions.earliest("pk").pk,
            "run_id": self.experiment.runs.earliest("position").pk,
            "set_id": self.debates.pk if "/debates/" in path else questions.pk,
            "t": 1,
            "agent_id": "a",
            "version_id": self.version.pk,
        }
        # A queue's name is another one.
        is_of_queue = any(part in path for part in ("/label/", "/desk/", "/queues/"))
        if needed <= set(known) and not is_of_queue:
            return {key: known[key] for key in needed}
        return dict(ROUTES[name].arguments(self.workspace))


def filled(folder: Path, *, name: str, rows: int, runs: int) -> Filled:
    """Return a workspace with ``runs`` runs of one experiment, and ``rows`` rows in other lists."""
    home = Workspace.objects.create(name=name)
    owner = member(home, Role.OWNER, f"owner-of-{name}")
    ran = _experiment(folder, home, runs)
    for number in range(rows):
        factories.experiment(folder, in_workspace=home)
        _people(home, owner, number)
    return Filled(
        workspace=home,
        owner=owner,
        experiment=ran,
        debates=_debates(home, rows),
        version=_versions(home, rows),
        upload=uploads.store_upload(home, [b"question,answer\nWhat is 1+1?,2\n"]),
    )


def _turning(call: Call) -> str:
    return ANSWERS[call.agent_id][call.t]


def _experiment(folder: Path, home: Workspace, runs: int) -> Experiment:
    """Return an experiment under way: one run in truth, others like it, the last ones waiting."""
    made = factories.experiment(
        folder,
        in_workspace=home,
        question_count=runs,
        protocol={"agents": AGENTS, "revision_rounds": 1},
    )
    first = factories.begin(made)[0]
    gateway = ScriptedGateway(lambda call: said(_turning(call)), round_size=len(AGENTS))
    for _ in range(2):
        factories.execute(first, gateway)
    _report(made, runs)
    values = {"source": first.pk, "experiment": made.pk, "copied": runs - WAITING}
    with connection.cursor() as cursor:
        for statement in COPIES.split(";\n"):
            cursor.execute(statement, values)
    return made


def _report(ran: Experiment, runs: int) -> None:
    """Build the report on the run that has ended; its rows stand for those of all runs."""
    asked = ask_for_report(workspace=ran.workspace, name=ran.name, actor=None)
    assert asked is not None
    build_stored(asked.pk)
    for row in Report.objects.get(pk=asked.pk).rows.all():
        fields = {f.attname: getattr(row, f.attname) for f in row._meta.fields if not f.primary_key}
        ReportRow.objects.bulk_create((ReportRow(**fields) for _ in range(runs)), batch_size=5_000)


def _people(home: Workspace, owner: User, number: int) -> None:
    member(home, Role.READER, f"reader-{number}-of-{home.name}")
    membership.invite(workspace=home, role=Role.READER, note=f"Reader {number}", actor=owner)
    membership.create_workspace(name=f"lab-{number}-of-{home.name}", owner=owner)
    ApiToken.objects.create(user=owner, name="t", token_sha256=f"{home.name}-{number}")


def _debates(home: Workspace, rows: int) -> DebateSet:
    question = factories.questions()[0]
    records = [
        DebateRecord(f"d{number}", question, "p", agents=(AgentRecord("a", "m"),), rounds=())
        for number in range(rows)
    ]
    for number in range(rows):
        some = records if number == 0 else records[:1]
        import_debates(workspace=home, name=f"log{number}", format_name="jsonl", records=some)
    return DebateSet.objects.get(workspace=home, name="log0")


def _versions(home: Workspace, rows: int) -> ProtocolVersion:
    preset = load_preset("du_2023")
    made = ProtocolVersion.objects.bulk_create(
        ProtocolVersion(
            workspace=home,
            name="mine",
            version=number + 1,
            protocol_hash=protocol_hash(preset),
            canonical=canonical_text(preset),
        )
        for number in range(rows)
    )
    return made[0]


def pages(made: Filled) -> Iterator[tuple[str, str]]:
    """Yield name and address of every page that the owner can open: no file, no redirect."""
    client = Client()
    client.force_login(made.owner)
    for name, route in ROUTES.items():
        if route.method != "GET" or route.answers[OWNER] not in (200, 302):
            continue
        arguments = made.arguments(name)
        if "<slug:workspace>" in PATHS[name]:
            arguments["workspace"] = made.workspace.name
        url = reverse(name, kwargs=arguments, query=route.data or None)
        answer = client.get(url)
        assert answer.status_code == 200 or route.answers[OWNER] != 200, f"{name}: no page at {url}"
        is_page = answer.get("Content-Type", "").startswith("text/html")
        if answer.status_code == 200 and is_page and "Content-Disposition" not in answer:
            yield name, url
