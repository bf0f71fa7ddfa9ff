"""
What a drill plays in: a database, a broker, a stub of a model server and workers of its own.

All of them are real processes and can be killed, stopped and started again one by one. Work is
given by command, as people give it; what came of it is read by SQL, past our own code.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis

from debateweb.services import binaries, postgres, process, valkey
from debateweb.services.supervisor import Role, worker_roles
from tests.run import FAST
from tests.stub_server import StubServer

Say = Callable[[str], None]
PROJECT = Path(__file__).resolve().parents[2]
ROLES = ("rounds", "small", "beat")
START_TIMEOUT_SECONDS = 60.0
COMMAND_TIMEOUT_SECONDS = 120.0

# A token costs a micro-USD or two, so that every call moves money.
MODELS = """
models:
  stub/thin: {{path: openai_compatible, base_url: "{base_url}", upstream_name: stub,
    max_concurrency: {cap}, price: {{input_microusd_per_mtok: 1000000,
    output_microusd_per_mtok: 2000000}}}}
  stub/litellm: {{path: litellm, base_url: "{base_url}", upstream_name: openai/stub,
    max_concurrency: {cap}, price: {{input_microusd_per_mtok: 1000000,
    output_microusd_per_mtok: 2000000}}}}
"""
# Each agent has a persona: no two calls of a drill have the same prompt, unless one is repeated.
PROTOCOL = """
name: drill
agents: [{{id: a, persona: You are agent a., decoding: {{max_output_tokens: 64}}}},
  {{id: b, persona: You are agent b., decoding: {{max_output_tokens: 64}}}},
  {{id: c, persona: You are agent c., decoding: {{max_output_tokens: 64}}}}]
revision_rounds: {revision_rounds}
prompts:
  system: "{{{{persona}}}}"
  initial: "{{{{question}}}}\\n{{{{answer_format}}}}"
  revision: "{{{{question}}}}\\nYours: {{{{own_answer}}}}\\n{{{{peers}}}}\\n{{{{answer_format}}}}"
output: {{extraction: {{number: [final_line, last_number]}}}}
retries: {{transport: 2, timeout: 1}}
limits: {{call_timeout_seconds: {call_seconds}, round_timeout_seconds: {round_seconds}}}
"""
SPEC = """
name: {name}
questions: {name}-questions.jsonl
arms: [{{name: debate, protocol: {name}-protocol.yaml, models: {{default: {model}}}}}]
budget: {{microusd_per_run: 1000000, output_tokens_per_run: 100000, microusd_total: 100000000}}
concurrency: {cap}
"""


def wait_for(holds: Callable[[], object], timeout_seconds: float, what: str) -> float:
    """Return how many seconds it took until ``holds()``; fail if it never did."""
    started = time.monotonic()
    while not holds():
        waited = time.monotonic() - started
        assert waited < timeout_seconds, f"not within {timeout_seconds:g} s: {what}"
        time.sleep(0.05)
    return time.monotonic() - started


@dataclass(frozen=True)
class Load:
    """An experiment of a drill: questions × three agents × rounds on one model."""

    name: str
    questions: int
    rounds: int = 3
    cap: int = 24
    model: str = "stub/thin"
    call_seconds: int = 60
    round_seconds: int = 300

    @property
    def calls(self) -> int:
        return self.questions * 3 * self.rounds


@dataclass
class Arena:
    """Use ``Arena.opened()``."""

    folder: Path
    stub: StubServer
    database: postgres.Postgres
    broker: valkey.Valkey
    env: dict[str, str]
    servers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    paused: list[subprocess.Popen[bytes]] = field(default_factory=list)
    hired: int = 0

    # Services ------------------------------------------------------------------------------

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator[Arena]:
        """Yield an arena with an empty, migrated database and no worker; end all with the block."""
        folder = Path(tempfile.mkdtemp(prefix="dwdrill-"))
        folder.chmod(0o711)  # The services' account has to get through.
        with StubServer.running() as stub:
            arena = cls._made(folder, stub)
            try:
                arena.start_database()
                arena.start_broker()
                arena.command("migrate")
                yield arena
            finally:
                arena.close()

    @classmethod
    def _made(cls, folder: Path, stub: StubServer) -> Arena:
        account = process.service_account()
        password, port = secrets.token_urlsafe(16), _free_port()
        sockets = folder / "pg"
        database = postgres.Postgres(
            binaries.postgres_programs(folder, account),
            folder / "cluster",
            sockets,
            folder / "pg.log",
            account,
            trust=True,
            tuning=FAST,
        )
        broker = valkey.Valkey(
            binaries.valkey_program(folder, account),
            folder / "vk" / "s",
            folder / "vk.log",
            account,
            port=port,
            password=password,
        )
        env = {
            **os.environ,
            "DEBATEWEB_DATA_DIR": str(folder / "data"),
            "DEBATEWEB_SECRET_KEY": secrets.token_urlsafe(48),
            "DATABASE_URL": f"postgresql://{postgres.ADMIN}@/{postgres.DATABASE}?host={sockets}",
            "REDIS_URL": f"redis://:{password}@127.0.0.1:{port}/0",
            "DJANGO_SETTINGS_MODULE": "debateweb.settings",
            "PYTHONUNBUFFERED": "1",
        }
        return cls(folder, stub, database, broker, env)

    def start_database(self) -> None:
        self.servers["database"] = self.database.start()

    def stop_database(self) -> None:
        """Stop PostgreSQL as an operator's restart does: fast, connections are cut."""
        self.database.stop(self.servers.pop("database"))

    def start_broker(self) -> None:
        self.servers["broker"] = self.broker.start()

    def kill_broker(self) -> None:
        """Kill the broker: it keeps nothing on disk, so every doorbell in it is lost."""
        _kill(self.servers.pop("broker"))

    def close(self) -> None:
        self.dismiss()
        if "broker" in self.servers:
            self.broker.stop(self.servers["broker"])
        if "database" in self.servers:
            self.database.stop(self.servers["database"])
        shutil.rmtree(self.folder, ignore_errors=True)

    # Workers -------------------------------------------------------------------------------

    def staff(self) -> None:
        """Have a worker of each role that none has."""
        self.hire(*(role for role in ROLES if role not in self.workers))

    def hire(self, *roles: str) -> None:
        """Start workers of these roles and wait until they are ready."""
        self.hired += 1
        suffix = f"drill{self.hired}"
        for role in worker_roles(suffix):
            if role.name in roles:
                self.workers[role.name] = self._spawned(role)
        for role_name in set(roles) - {"beat"}:
            key = f"debateweb:1:heartbeat:{role_name}-{suffix}"
            wait_for(
                lambda key=key: self._broker_has(key),  # type: ignore[misc]
                START_TIMEOUT_SECONDS,
                f"{role_name} is ready: {self.log(role_name)}",
            )

    def kill(self, *roles: str) -> None:
        """SIGKILL; returns when the database has seen the end of their connections."""
        dead = [self.workers.pop(role) for role in roles]
        for worker in dead:
            worker.kill()
        for worker in dead:
            worker.wait()
        # A statement that was under way is finished by the server: let it.
        wait_for(lambda: not self._busy_backends(), 10, "the dead worker's statements end")

    def pause(self, role: str) -> subprocess.Popen[bytes]:
        """SIGSTOP a worker and let it go from the list: another may take its role."""
        worker = self.workers.pop(role)
        worker.send_signal(signal.SIGSTOP)
        self.paused.append(worker)
        return worker

    def dismiss(self) -> None:
        """Kill every worker."""
        for worker in (*self.workers.values(), *self.paused):
            _kill(worker)
        self.workers.clear()
        self.paused.clear()

    def strangers(self) -> dict[int, str]:
        """Return processes of our code that work here and were not hired, by process number."""
        mark = self.env["DEBATEWEB_DATA_DIR"].encode()
        hired = {worker.pid for worker in self.workers.values()}
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes() and int(entry.name) not in hired:
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = words.decode(errors="replace")
        return found

    def tidy(self) -> None:
        """Leave no paused worker and no stopped server to the next drill."""
        for worker in self.paused:
            _kill(worker)
        self.paused.clear()
        if "database" not in self.servers:
            self.start_database()
        if "broker" not in self.servers:
            self.start_broker()

    def log(self, role: str) -> str:
        """Return the end of a worker's log."""
        return (self.folder / f"{role}.log").read_text(errors="replace")[-2000:]

    def _spawned(self, role: Role) -> subprocess.Popen[bytes]:
        env = dict(self.env)
        if role.db_connections:
            env["DEBATEWEB_DB_CONNECTIONS"] = str(role.db_connections)
        with (self.folder / f"{role.name}.log").open("ab") as output:
            return process.spawn(
                role.command, on_parent_death=signal.SIGKILL, env=env, cwd=PROJECT, output=output
            )

    def _broker_has(self, key: str) -> bool:
        with redis.Redis.from_url(self.env["REDIS_URL"]) as client:
            return bool(client.exists(key))

    def _busy_backends(self) -> int:
        return int(
            self.one(
                "SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle' "
                "AND pid <> pg_backend_pid() AND datname = current_database()"
            )
        )

    # Commands and records ------------------------------------------------------------------

    def command(self, *words: str, code: int = 0) -> str:
        """Run a command to its end and return its output; fail on any other exit code."""
        child = self.start_command(*words)
        out, errors = child.communicate(timeout=COMMAND_TIMEOUT_SECONDS)
        assert child.returncode == code, f"{words}: {child.returncode}\n{out}\n{errors}"
        return out

    def start_command(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", *words],
            env=self.env,
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def experiment(self, *words: str) -> dict[str, Any]:
        """Run an ``experiment`` command and return what it says as JSON."""
        found: dict[str, Any] = json.loads(self.command("experiment", *words, "--json"))
        return found

    def written(self, load: Load) -> Path:
        """Write the files of an experiment; return the specification's path."""
        specs = self.folder / "specs"
        specs.mkdir(exist_ok=True)
        models = MODELS.format(base_url=self.stub.base_url, cap=load.cap)
        (specs / "models.yaml").write_text(models)
        (specs / f"{load.name}-questions.jsonl").write_text(
            "".join(_question(load.name, k) for k in range(load.questions))
        )
        (specs / f"{load.name}-protocol.yaml").write_text(
            PROTOCOL.format(
                revision_rounds=load.rounds - 1,
                call_seconds=load.call_seconds,
                round_seconds=load.round_seconds,
            )
        )
        spec = specs / f"{load.name}.yaml"
        spec.write_text(SPEC.format(name=load.name, model=load.model, cap=load.cap))
        return spec

    def start(self, load: Load) -> None:
        """Make an experiment by command and start it."""
        self.experiment("run", str(self.written(load)))

    def rows(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.env["DATABASE_URL"], autocommit=True) as connection:
            return connection.execute(sql.encode(), params).fetchall()

    def one(self, sql: str, *params: object) -> Any:
        return self.rows(sql, *params)[0][0]

    def has_experiment(self, name: str) -> bool:
        return bool(self.rows("SELECT 1 FROM runs_experiment WHERE name = %s", name))

    def status(self, name: str) -> str:
        return str(self.one("SELECT status FROM runs_experiment WHERE name = %s", name))

    def wait_until(self, name: str, status: str, timeout_seconds: float) -> float:
        return wait_for(lambda: self.status(name) == status, timeout_seconds, f"{name} is {status}")

    def succeeded(self, name: str) -> int:
        """Return how many calls of an experiment have come back with a reply so far."""
        return int(
            self.one(
                "SELECT count(*) FROM runs_attemptoutcome o JOIN runs_attempt a "
                "ON a.id = o.attempt_id JOIN runs_run r ON r.id = a.run_id "
                "JOIN runs_experiment e ON e.id = r.experiment_id "
                "WHERE e.name = %s AND o.status = 'SUCCEEDED' AND NOT o.late",
                name,
            )
        )


def _question(name: str, k: int) -> str:
    record = {
        "id": f"q{k}",
        "question": f"In the drill {name}, what is {k} × 7?",
        "reference": str(k * 7),
        "answer_type": "number",
    }
    return json.dumps(record) + "\n"


def _kill(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
