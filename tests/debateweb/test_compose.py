"""The compose file can only be parsed here: it must say what ``up`` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from debateweb.services import supervisor

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    document = YAML(typ="safe").load(PROJECT / "docker-compose.yml")
    return dict(document["services"])


def queues(words: list[str]) -> set[str]:
    return set(words[words.index("--queues") + 1].split(","))


def test_it_has_the_parts_of_a_site(services: dict[str, Any]) -> None:
    assert {"web", "worker", "worker-small", "beat", "postgres", "valkey"} <= set(services)


def test_its_workers_serve_the_queues_that_up_serves(services: dict[str, Any]) -> None:
    ours = {role.name: list(role.command) for role in supervisor.worker_roles("1")}
    assert queues(services["worker"]["command"].split()) == queues(ours["rounds"])
    assert queues(services["worker-small"]["command"].split()) == queues(ours["small"])


def test_no_secret_stands_in_it(services: dict[str, Any]) -> None:
    for service in services.values():
        for name, value in (service.get("environment") or {}).items():
            if name.endswith(("PASSWORD", "KEY", "DATABASE_URL")):
                pytest.fail(f"{name} = {value} stands in the file")
    assert services["web"]["environment"]["DATABASE_URL_FILE"].startswith("/run/secrets/")
