"""What is said about a data folder that cannot be used. Nothing in it may be changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from debateweb.services import datadir, postgres
from debateweb.services.datadir import DataDirError, open_data_dir, secret_key
from tests.debateweb.sites import Site
from tests.debateweb.test_up import one_line

IS_ROOT = os.geteuid() == 0


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_with_other_things_in_it_is_refused_and_left_alone(site: Site) -> None:
    site.data.mkdir()
    (site.data / "thesis.tex").write_text("mine")
    before = snapshot(site.data)
    line = one_line(site.run("up"))
    assert "is not a debateweb data folder" in line
    assert str(site.data) in line
    assert snapshot(site.data) == before


def test_a_file_in_place_of_the_folder_is_refused(site: Site) -> None:
    site.data.write_text("a file")
    assert "cannot be used" in one_line(site.run("up"))


@pytest.mark.parametrize(
    ("body", "said"),
    [("", "is damaged"), ("[]", "is damaged"), ('{"format": 9, "state": "/x"}', "format 9")],
)
def test_a_damaged_or_newer_marker_is_refused(tmp_path: Path, body: str, said: str) -> None:
    open_data_dir(tmp_path / "var")
    (tmp_path / "var" / datadir.MARKER).write_text(body)
    with pytest.raises(DataDirError, match=said):
        open_data_dir(tmp_path / "var")


def break_control_file(cluster: Path) -> None:
    (cluster / "global" / "pg_control").write_bytes(b"\0" * 8192)


def remove_version(cluster: Path) -> None:
    (cluster / "PG_VERSION").unlink()


def set_other_version(cluster: Path) -> None:
    (cluster / "PG_VERSION").write_text("15\n")


def remove_marker(cluster: Path) -> None:
    (cluster / postgres.MARKER).unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (break_control_file, "does not start"),
        (remove_version, "is damaged"),
        (set_other_version, "holds data of PostgreSQL 15"),
        (remove_marker, "debateweb did not make"),
    ],
)
def test_a_database_that_cannot_be_trusted_gives_one_line(
    site: Site, damage: Callable[[Path], None], said: str
) -> None:
    assert site.run("showmigrations", "sessions").returncode == 0
    damage(site.data / "postgres")
    assert said in one_line(site.run("up"))
    assert said in one_line(site.run("showmigrations", "sessions"))
    site.settles()


@pytest.mark.skipif(not IS_ROOT, reason="only root can give a file away")
def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    opened = open_data_dir(tmp_path / "var")
    os.chown(opened.root / datadir.MARKER, 65534, 65534)
    with pytest.raises(DataDirError, match="belongs to nobody"):
        open_data_dir(tmp_path / "var")


@pytest.mark.skipif(not IS_ROOT, reason="only root runs the services as another account")
def test_root_under_a_closed_folder_keeps_the_state_where_the_services_can_go(
    tmp_path: Path,
) -> None:
    tmp_path.chmod(0o700)
    site = Site(tmp_path)
    state = open_data_dir(site.data).state
    try:
        assert state.parent == datadir.SYSTEM_STATE
        assert site.run("showmigrations", "sessions").returncode == 0
        assert (state / "postgres" / "PG_VERSION").exists()
        assert not (site.data / "postgres").exists()
        # The choice is remembered: opening the folder later must not lose the database.
        tmp_path.chmod(0o711)
        assert open_data_dir(site.data).state == state
    finally:
        site.clean_up()
    assert not state.exists()


def test_a_folder_with_blanks_and_signs_and_a_tight_umask_works_like_any_other(site: Site) -> None:
    odd = Site(site.folder / "my debates, 50% #1?")
    before = os.umask(0o077)
    try:
        odd.folder.mkdir()
        odd.folder.chmod(0o711)
        child, _ = odd.up()
        assert odd.health()[1]["status"] == "ok"
        child.terminate()
        child.communicate(timeout=5)
        odd.settles()
    finally:
        os.umask(before)
        odd.clean_up()


def test_a_socket_folder_that_another_account_made_first_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "sockets").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataDirError, match="is not a folder of"):
        datadir.make_private(tmp_path / "sockets", None)


def test_the_secret_is_drawn_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    opened = open_data_dir(tmp_path / "var")
    first = secret_key(opened)
    path = opened.root / "secret_key"
    assert len(first) >= 50
    assert secret_key(opened) == first
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(DataDirError, match="chmod 600"):
        secret_key(opened)


def test_sockets_get_a_short_path_however_deep_the_folder_is(tmp_path: Path) -> None:
    deep = tmp_path / ("a" * 60) / ("b" * 60)
    opened = datadir.DataDir(deep, deep)
    assert len(os.fsencode(opened.postgres_sockets / ".s.PGSQL.5432")) < 107
    assert len(os.fsencode(opened.valkey_socket)) < 107
    assert opened.postgres_sockets != opened.valkey_socket.parent


def test_the_marker_names_its_format_and_the_state(tmp_path: Path) -> None:
    opened = open_data_dir(tmp_path / "var")
    body = json.loads((opened.root / datadir.MARKER).read_text())
    assert body == {"format": datadir.FORMAT, "state": str(opened.state)}
