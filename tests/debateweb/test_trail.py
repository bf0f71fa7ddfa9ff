"""The trail is one chain a workspace: it cannot fork, and what was changed is found."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase as DatabaseCase

from debateweb.audit import record
from debateweb.errors import NegativeAnswer
from debateweb.models import AuditEvent, TrailLink, Workspace
from debateweb.trail import FIRST_PREVIOUS, trail_head, verify_trail
from tests.races import in_own_session, wait_for_blocked_session

CHAINING = import_module("debateweb.migrations.0011_chained_trail")


def home(name: str = "home") -> Workspace:
    return Workspace.objects.get_or_create(name=name)[0]


def acts(n: int, workspace: Workspace | None, **detail: Any) -> None:
    for i in range(n):
        record(act="thing.do", workspace=workspace, obj=home(), detail={"i": i} | detail)


def link_now() -> None:
    """Do what a commit does."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def tamper(sql: str) -> None:
    """Change rows as only the database's superuser could."""
    link_now()
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = 'replica'")
        cursor.execute(sql)
        assert cursor.rowcount >= 1
        cursor.execute("SET LOCAL session_replication_role = 'origin'")


def event(position: int) -> int:
    return TrailLink.objects.get(workspace=home(), position=position).event_id


@pytest.mark.django_db
def test_every_row_follows_the_one_before_it_in_its_own_workspace() -> None:
    acts(3, home())
    acts(2, home("other"))
    acts(2, None)
    link_now()
    for workspace, rows in ((home(), 3), (home("other"), 2), (None, 2)):
        links = list(TrailLink.objects.filter(workspace=workspace).order_by("position"))
        assert [link.position for link in links] == list(range(1, rows + 1))
        assert links[0].previous_hash == FIRST_PREVIOUS
        for before, link in pairwise(links):
            assert link.previous_hash == before.row_hash
        assert verify_trail(workspace).broken is None
        head = trail_head(workspace)
        assert head is not None
        assert (head.position, head.row_hash) == (rows, links[-1].row_hash)


@pytest.mark.django_db
def test_a_workspace_without_acts_has_no_head_and_holds() -> None:
    assert trail_head(home()) is None
    assert verify_trail(home()).broken is None


TAMPERINGS = {
    "the act": "UPDATE debateweb_auditevent SET act = 'thing.undo' WHERE id = {e2}",
    "who did it": "UPDATE debateweb_auditevent SET actor_name = 'mallory' WHERE id = {e2}",
    "when": "UPDATE debateweb_auditevent SET at = at + interval '1 microsecond' WHERE id = {e2}",
    "a detail": "UPDATE debateweb_auditevent SET detail = '{{\"i\": 7}}' WHERE id = {e2}",
    "the object": "UPDATE debateweb_auditevent SET object_id = 77 WHERE id = {e2}",
    "the stored hash": "UPDATE debateweb_traillink SET row_hash = repeat('a', 64)"
    " WHERE event_id = {e2}",
    "the order": "UPDATE debateweb_traillink SET previous_hash = repeat('a', 64)"
    " WHERE event_id = {e2}",
    "the link": "DELETE FROM debateweb_traillink WHERE event_id = {e2}",
    "the event": "DELETE FROM debateweb_auditevent WHERE id = {e2}",
}


@pytest.mark.django_db
@pytest.mark.parametrize("what", sorted(TAMPERINGS))
def test_what_a_superuser_changed_is_found_at_its_row(what: str) -> None:
    acts(4, home())
    link_now()
    with transaction.atomic():  # What was broken is put back: nothing may stay to trip over.
        tamper(TAMPERINGS[what].format(e2=event(2)))
        found = verify_trail(home())
        transaction.set_rollback(True)
    assert found.broken is not None
    assert found.broken.position == 2
    assert found.rows == 1


@pytest.mark.django_db
def test_an_event_that_was_slipped_in_beside_the_chain_is_found() -> None:
    acts(2, home())
    tamper(
        "INSERT INTO debateweb_auditevent (workspace_id, actor_name, act, object_kind, object_name,"
        f" detail) VALUES ({home().pk}, 'mallory', 'x.y', 'x', 'x', '{{}}')"
    )
    found = verify_trail(home()).broken
    assert found is not None
    assert "outside the chain" in found.why


@pytest.mark.django_db
def test_an_end_that_was_cut_off_is_found_by_a_head_that_was_printed() -> None:
    acts(3, home())
    link_now()
    printed = trail_head(home())
    assert printed is not None
    with transaction.atomic():
        last = event(3)
        tamper(f"DELETE FROM debateweb_traillink WHERE event_id = {last}")
        tamper(f"DELETE FROM debateweb_auditevent WHERE id = {last}")
        alone, against = verify_trail(home()), verify_trail(home(), printed.row_hash)
        transaction.set_rollback(True)
    assert alone.broken is None  # Nothing in the chain itself can tell.
    assert against.broken is not None
    assert verify_trail(home(), printed.row_hash).broken is None


@pytest.mark.django_db
def test_rows_of_before_are_chained_by_the_migration() -> None:
    acts(3, home())
    acts(2, None)
    link_now()
    before = list(TrailLink.objects.order_by("event").values_list("event", "row_hash"))
    tamper("DELETE FROM debateweb_traillink")
    with connection.cursor() as cursor:
        cursor.execute(CHAINING.CHAIN_WHAT_IS_THERE)
    assert list(TrailLink.objects.order_by("event").values_list("event", "row_hash")) == before
    assert verify_trail(home()).broken is None


@pytest.mark.django_db(transaction=True)
def test_two_acts_that_commit_at_once_follow_each_other() -> None:
    workspace = home()

    def act() -> None:
        with transaction.atomic():
            acts(1, workspace)

    with ThreadPoolExecutor(3) as pool:
        with transaction.atomic():
            acts(1, workspace)
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")  # In the middle of its commit.
            others = [pool.submit(in_own_session(act)) for _ in range(3)]
            wait_for_blocked_session(3)
        for other in others:
            other.result(timeout=30)
    found = verify_trail(workspace)
    assert (found.rows, found.broken) == (4, None)


@pytest.mark.django_db(transaction=True)
def test_an_act_under_way_holds_up_nobody() -> None:
    workspace = home()
    with ThreadPoolExecutor(1) as pool, transaction.atomic():
        acts(1, workspace)  # Recorded first, committed last.
        pool.submit(in_own_session(partial(acts, 2, workspace))).result(timeout=30)
    found = verify_trail(workspace)
    assert (found.rows, found.broken) == (3, None)
    order = list(TrailLink.objects.order_by("position").values_list("event_id", flat=True))
    assert order[-1] == min(order)


class AnyContent(DatabaseCase):
    """Whatever an act says, its hash can be made again from the columns."""

    @settings(max_examples=25, deadline=None)
    @given(
        st.dictionaries(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            st.one_of(
                st.floats(allow_nan=False, allow_infinity=False),
                st.integers(-(2**70), 2**70),
                st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
                st.none(),
            ),
        )
    )
    def test_holds(self, detail: dict[str, Any]) -> None:
        record(act="thing.do", workspace=home(), obj=home(), detail=detail)
        link_now()
        assert verify_trail(home()).broken is None


@pytest.mark.django_db
def test_the_command_says_where_the_trail_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    acts(2, home())
    link_now()
    call_command("trail", "verify")
    assert "home: 2 rows hold" in capsys.readouterr().out
    head = trail_head(home())
    assert head is not None
    call_command("trail", "verify", "--head", head.row_hash)
    with pytest.raises(NegativeAnswer, match="rows are gone"):
        call_command("trail", "verify", "--head", "0" * 64)
    with transaction.atomic():
        tamper(f"UPDATE debateweb_auditevent SET act = 'x.y' WHERE id = {event(1)}")
        with pytest.raises(NegativeAnswer, match=r"home: broken at row 1 \(event \d+\)"):
            call_command("trail", "verify")
        transaction.set_rollback(True)


@pytest.mark.django_db
def test_the_command_prints_the_head(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NegativeAnswer, match="empty"):
        call_command("trail", "head", "--workspace", home().name)
    acts(1, home())
    link_now()
    call_command("trail", "head")
    head = trail_head(home())
    assert head is not None
    assert head.row_hash in capsys.readouterr().out
    assert AuditEvent.objects.filter(link=None).count() == 0
