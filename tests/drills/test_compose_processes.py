"""
The very processes of docker-compose.yml, in production, against servers of their own.

No container engine is needed: the commands stand in the file, and are started from it with our
interpreter and free ports. What only a container shows (users, mounts, networks) is not tried.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from ruamel.yaml import YAML

from tests.debateweb.sites import free_port, wait_for

PROJECT = Path(__file__).resolve().parents[2]
HOST = "debates.example"
DATABASE = "compose_drill"
BROKER_NUMBER = 7  # The tests of this process use 0.
START_SECONDS, END_SECONDS, GRACE_SECONDS = 120.0, 180.0, 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Composed:
    """Services by name as the file has them, and the environment that they share here."""

    services: dict[str, Any]
    env: dict[str, str]
    folder: Path

    def start(self, name: str, container: str, port: int = 8000) -> subprocess.Popen[bytes]:
        text = self.services[name]["command"].replace("$$", "$")
        text = re.sub(r"--host \S+ --port 8000", f"--host 127.0.0.1 --port {port}", text)
        words = [
            word.replace("exec python", f"exec {sys.executable}") for word in shlex.split(text)
        ]
        words[0] = sys.executable if words[0] == "python" else words[0]
        given = self.services[name].get("environment") or {}
        own = {key: str(value) for key, value in given.items() if key == "DEBATEWEB_DB_CONNECTIONS"}
        with (self.folder / f"{name}-{container}.log").open("wb") as log:
            return subprocess.Popen(
                words,
                cwd=PROJECT,
                env={**self.env, **own, "HOSTNAME": container},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=PROJECT,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout


@pytest.fixture
def composed(tmp_path: Path) -> Iterator[Composed]:
    with _database() as url:
        (tmp_path / "key").write_text("k" * 60)
        kept = {name: value for name, value in os.environ.items() if name != "DEBATEWEB_SECRET_KEY"}
        env = kept | {
            "DATABASE_URL": url,
            "REDIS_URL": os.environ["REDIS_URL"].rpartition("/")[0] + f"/{BROKER_NUMBER}",
            "DEBATEWEB_DATA_DIR": str(tmp_path / "data"),
            "DEBATEWEB_ENV": "production",
            "DEBATEWEB_SECRET_KEY_FILE": str(tmp_path / "key"),
            "DEBATEWEB_ALLOWED_HOSTS": HOST,
            "DEBATEWEB_TRUSTED_PROXIES": "127.0.0.1",
            "DJANGO_SETTINGS_MODULE": "debateweb.settings",
        }
        document = YAML(typ="safe").load(PROJECT / "docker-compose.yml")
        yield Composed(document["services"], env, tmp_path)


@contextmanager
def _database() -> Iterator[str]:
    url = os.environ["DATABASE_URL"]
    place, _, options = url.partition("?")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
        try:
            yield f"{place.rpartition('/')[0]}/{DATABASE}?{options}"
        finally:
            connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def get(port: int, path: str, **headers: str) -> Answer:
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Host": HOST} | headers
    )
    try:
        with urllib.request.urlopen(asked, timeout=10) as reply:  # noqa: S310  # Our own loopback.
            return Answer(reply.status, _lower(reply.headers), reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, _lower(error.headers), error.read())
    except OSError:  # Not listening yet.
        return Answer(0, {}, b"")


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def is_healthy(port: int) -> bool:
    answer = get(port, "/health.json")
    return answer.status == 200 and json.loads(answer.body)["status"] == "ok"


def test_two_webs_and_two_workers_run_an_experiment_and_end_when_told(composed: Composed) -> None:
    migrated = composed.start("migrate", "once")
    assert migrated.wait(START_SECONDS) == 0
    ports = [free_port(), free_port()]
    with ExitStack() as stack:
        started = [
            composed.start("web", "web-1", ports[0]),
            composed.start("web", "web-2", ports[1]),
            composed.start("worker", "worker-1"),
            composed.start("worker", "worker-2"),
            composed.start("worker-small", "small-1"),
            composed.start("beat", "beat-1"),
        ]
        for child in started:
            stack.callback(child.kill)
        wait_for(lambda: all(map(is_healthy, ports)), START_SECONDS, "both webs are well")
        _assert_served_as_promised(*ports)
        composed.run("demo")
        composed.run("experiment", "run", "demo-debate")
        wait_for(lambda: _is_finished(composed), END_SECONDS, "the experiment is finished")
        for child in started:
            child.send_signal(signal.SIGTERM)
        assert [child.wait(GRACE_SECONDS) for child in started] == [0] * len(started)


def _assert_served_as_promised(one: int, other: int) -> None:
    style = get(one, "/static/app.css")
    assert style.headers["content-type"].startswith("text/css")
    assert style.headers["x-content-type-options"] == "nosniff"
    page = get(other, "/login/", **{"X-Forwarded-Proto": "https"})
    assert page.status == 200 and "default-src" in page.headers["content-security-policy"]
    assert "max-age" in page.headers["strict-transport-security"]
    assert "Secure" in page.headers["set-cookie"]
    assert get(one, "/login/", Host="evil.example").status == 400


def _is_finished(composed: Composed) -> bool:
    with psycopg.connect(composed.env["DATABASE_URL"]) as connection:
        return connection.execute("SELECT status FROM runs_experiment").fetchall() == [
            ("FINISHED",)
        ]
