"""
How long the hot pages take where the tables hold 100,000 attempts: medians of whole answers.

Run by ``make bench``. One experiment under way with 9 attempts a run, prompts and replies of real
sizes, some failures and retries; beside it a finished one, whose run page is asked for. Prints
one JSON line a page: milliseconds and queries. Exits with 1 where a median is over the limit.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "debateweb.settings")
django.setup()

from django.conf import settings  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import reverse  # noqa: E402

from debateweb.access import ensure_default_workspace  # noqa: E402
from debateweb.celery import heartbeat_key  # noqa: E402
from debateweb.models import Member, Role, User, Workspace  # noqa: E402
from runs.models import Experiment, ExperimentStatus  # noqa: E402
from tests.runs import factories  # noqa: E402

LIMIT_MS = 100.0
AGENTS, ROUNDS = 3, 3
UNDER_WAY = 40
EXPERIMENTS = 60

#: Every run but the last few is done; those have round 1 open and nobody's outcome yet.
RUNS = """
UPDATE runs_run SET started_at = now() - interval '1 hour', next_round = %(rounds)s,
    status = 'DONE', stop_reason = 'round_limit', active = '[]',
    ended_at = now() - interval '1 hour' * (1 - position::float / %(runs)s)
WHERE experiment_id = %(experiment)s AND position < %(runs)s - %(under_way)s;
UPDATE runs_run SET started_at = now(), status = 'RUNNING', next_round = 2, fence = 1,
    lease_owner = 'bench', lease_expires_at = now() + interval '1 hour'
WHERE experiment_id = %(experiment)s AND position >= %(runs)s - %(under_way)s;
"""
ATTEMPTS = """
INSERT INTO runs_attempt (run_id, t, agent_id, kind, ordinal, request_digest, model_slot, model,
    prompt, read_set, decoding, parent_version, reserved_microusd, reserved_output_tokens,
    retry_of_id, fence, worker)
SELECT r.id, t, a, 'PROPOSAL', 0, repeat('0', 64), 'default', 'bench',
    (SELECT string_agg(md5(r.id::text || t || a || i), ' ') FROM generate_series(1, 60) AS i),
    '[]', '{}', t, 100, 100, NULL, 1, 'bench'
FROM runs_run r, generate_series(0, %(rounds)s - 1) AS t, unnest(ARRAY['a', 'b', 'c']) AS a
WHERE r.experiment_id = %(experiment)s
"""
OUTCOMES = """
INSERT INTO runs_attemptoutcome (attempt_id, late, status, raw, finish_reason, error_class,
    error_detail, input_tokens, output_tokens, cost_microusd, model_version)
SELECT a.id, false, CASE WHEN a.id %% 20 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
    convert_to(repeat(md5(a.id::text), 40), 'UTF8'), 'stop',
    CASE WHEN a.id %% 20 <> 0 THEN '' WHEN a.id %% 40 = 0 THEN 'RateLimited' ELSE 'Overloaded' END,
    '', 500, 300, 100, 'bench'
FROM runs_attempt a JOIN runs_run r ON r.id = a.run_id
WHERE r.experiment_id = %(experiment)s AND (r.status = 'DONE' OR a.t < 2)
"""


@dataclass(frozen=True)
class Measured:
    page: str
    milliseconds: float
    queries: int


def fill(workspace: Workspace, folder: Path, attempts: int) -> Experiment:
    """Return an experiment under way with at least so many attempts."""
    runs = -(-attempts // (AGENTS * ROUNDS))
    made = factories.experiment(folder, in_workspace=workspace, question_count=runs)
    Experiment.objects.filter(pk=made.pk).update(status=ExperimentStatus.RUNNING)
    values = {
        "experiment": made.pk,
        "runs": runs,
        "rounds": ROUNDS,
        "under_way": UNDER_WAY,
    }
    with connection.cursor() as cursor:
        for statement in (*RUNS.strip().split(";\n"), ATTEMPTS, OUTCOMES):
            cursor.execute(statement.rstrip(";"), values)
        cursor.execute("VACUUM ANALYZE")
    return made


def measure(client: Client, page: str, url: str, *, repeats: int) -> Measured:
    headers = {"HX-Request": "true"} if "fragment" in page else {}
    times = []
    for _ in range(repeats + 3):
        if "anew" in page:
            cache.clear()
        cache.set(heartbeat_key("rounds"), time.time(), 60)
        started = time.perf_counter()
        reply = client.get(url, headers=headers)
        times.append(time.perf_counter() - started)
        if reply.status_code != 200:
            raise SystemExit(f"{page}: {url} answers {reply.status_code}")
    if "anew" in page:
        cache.clear()
    with CaptureQueriesContext(connection) as seen:
        client.get(url, headers=headers)
    return Measured(page, statistics.median(times[3:]) * 1000, len(seen))


def addresses(workspace: Workspace, watched: Experiment, finished: Experiment) -> dict[str, str]:
    """Return each page's address. A fragment is asked for as HTMX does."""
    watch = reverse("runs:experiment", args=[workspace.name, watched.pk])
    run = finished.runs.get()
    questions = reverse("runs:question_set", args=[workspace.name, watched.question_set_id])
    return {
        "experiments": reverse("runs:experiments", args=[workspace.name]),
        "watch, fragment": watch,
        "watch, fragment that counts all calls anew": watch,
        "watch, with the run list": watch,
        "run list, a late page": f"{watch}?after=10000",
        "run list, of one arm and stop reason": f"{watch}?status=DONE&stop=round_limit&arm=debate",
        "run list, the few under way": f"{watch}?status=RUNNING",
        "run": reverse("runs:run", args=[workspace.name, run.pk]),
        "turned answers": reverse("runs:experiment_turned", args=[workspace.name, watched.pk]),
        "questions": reverse("runs:questions", args=[workspace.name]),
        "questions, a late page of a set": f"{questions}?after=10000",
        "reports": reverse("audits:reports", args=[workspace.name]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--attempts", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    workspace = ensure_default_workspace()
    person = User.objects.create_user(username="bench")
    Member.objects.create(workspace=workspace, user=person, role=Role.RESEARCHER)
    client = Client(headers={"host": settings.ALLOWED_HOSTS[0]})
    client.force_login(person)
    with TemporaryDirectory() as name:
        for _ in range(EXPERIMENTS):
            factories.experiment(Path(name), in_workspace=workspace)
        finished = factories.finish(factories.experiment(Path(name), in_workspace=workspace))
        watched = fill(workspace, Path(name), options.attempts)
    slow = []
    for page, url in addresses(workspace, watched, finished).items():
        done = measure(client, page, url, repeats=options.repeats)
        said = {"page": page, "median_ms": round(done.milliseconds, 1), "queries": done.queries}
        print(json.dumps(said), flush=True)
        if done.milliseconds > LIMIT_MS:
            slow.append(page)
    if slow:
        raise SystemExit(f"over {LIMIT_MS:g} ms: {', '.join(slow)}")


if __name__ == "__main__":
    main()
