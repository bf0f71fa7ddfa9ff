"""No container engine is asked here: the compose file is held against the code that it starts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from debateweb.services import supervisor

PROJECT = Path(__file__).resolve().parents[2]
OURS = ("web", "worker", "worker-small", "beat", "migrate")
#: Read by the images of others.
THEIRS = {"POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD_FILE"}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return dict(YAML(typ="safe").load(PROJECT / "docker-compose.yml"))


@pytest.fixture(scope="module")
def services(document: dict[str, Any]) -> dict[str, Any]:
    return dict(document["services"])


def queues(words: list[str]) -> set[str]:
    return set(words[words.index("--queues") + 1].split(","))


def variables_read() -> set[str]:
    """Return the names that the settings hand to a reader of the environment."""
    sources = [PROJECT / "debateweb" / name for name in ("settings.py", "proxies.py")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    named = re.findall(r'"(DEBATEWEB_[A-Z_]+|DATABASE_URL|REDIS_URL)"', text)
    return set(named)


def test_it_has_the_parts_of_a_site(services: dict[str, Any]) -> None:
    assert {*OURS, "postgres", "valkey"} == set(services)


def test_its_workers_serve_the_queues_that_up_serves(services: dict[str, Any]) -> None:
    ours = {role.name: list(role.command) for role in supervisor.worker_roles("1")}
    assert queues(services["worker"]["command"].split()) == queues(ours["rounds"])
    assert queues(services["worker-small"]["command"].split()) == queues(ours["small"])


def test_each_worker_names_itself_after_its_container(services: dict[str, Any]) -> None:
    for name, role in (("worker", "rounds"), ("worker-small", "small")):
        node = f'"{role}-$$HOSTNAME@debateweb"'
        assert f"--hostname {node}" in services[name]["command"]
        assert node in services[name]["healthcheck"]["test"][1]


def test_each_variable_is_one_that_the_site_reads(services: dict[str, Any]) -> None:
    named = {name for service in services.values() for name in service.get("environment", {})}
    assert {name.removesuffix("_FILE") for name in named - THEIRS} <= variables_read()


def test_no_secret_stands_in_it(services: dict[str, Any]) -> None:
    for service in services.values():
        for name, value in (service.get("environment") or {}).items():
            if name.endswith(("PASSWORD", "KEY", "DATABASE_URL")):
                pytest.fail(f"{name} = {value} stands in the file")
    assert services["web"]["environment"]["DATABASE_URL_FILE"].startswith("/run/secrets/")


def test_each_secret_and_volume_is_declared_and_used(
    document: dict[str, Any], services: dict[str, Any]
) -> None:
    used = {name for service in services.values() for name in service.get("secrets", [])}
    assert used == set(document["secrets"])
    mounts = [m.split(":")[0] for s in services.values() for m in s.get("volumes", [])]
    assert {name for name in mounts if "/" not in name} == set(document["volumes"])
    assert all((PROJECT / name).is_file() for name in mounts if "/" in name)


def test_only_the_migration_gets_the_owner_and_all_wait_for_it(services: dict[str, Any]) -> None:
    has_owner = {n for n, s in services.items() if "database_owner_url" in s.get("secrets", [])}
    assert has_owner == {"migrate"}
    for name in set(OURS) - {"migrate"}:
        waits = services[name]["depends_on"]["migrate"]
        assert waits == {"condition": "service_completed_successfully"}


def test_each_lasting_service_has_a_health_check(services: dict[str, Any]) -> None:
    assert {n for n, s in services.items() if "healthcheck" not in s} == {"migrate"}


def test_ours_share_their_files_and_can_write_nothing_else(services: dict[str, Any]) -> None:
    for name in OURS:
        assert services[name]["read_only"] is True
        assert services[name]["volumes"] == ["files:/data"]
        assert services[name]["cap_drop"] == ["ALL"]
    image = (PROJECT / "Dockerfile").read_text(encoding="utf-8")
    assert "DEBATEWEB_DATA_DIR=/data/" in image
    assert re.search(r"^USER \d+$", image, re.MULTILINE), "a number that volumes keep"
