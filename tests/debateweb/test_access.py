"""Who sees what, one-time links, and the trail (S37)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now

from debateweb import access
from debateweb.access import AccessError, LinkError
from debateweb.audit import record
from debateweb.errors import InputError
from debateweb.models import AuditEvent, Member, OneTimeLink, Role, User, Workspace
from runs import queries
from runs.services.imports import import_debates
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories
from tests.runs.services.test_frozen_rows import a_debate

GOOD_PASSWORD = "a long and quite unlikely pass phrase"


def person(name: str) -> User:
    return User.objects.create_user(username=name)


def member(user: User, workspace: Workspace, role: Role = Role.READER) -> Member:
    return Member.objects.create(workspace=workspace, user=user, role=role)


def archive(row: Member | Workspace) -> None:
    type(row).objects.filter(pk=row.pk).update(archived_at=Now())


def seen_by(user: User) -> list[int]:
    """Return how many workspaces, experiments, runs, question sets and debate sets are visible."""
    return [
        access.workspaces_of(user).count(),
        queries.experiments_visible_to(user).count(),
        queries.runs_visible_to(user).count(),
        queries.question_sets_visible_to(user).count(),
        queries.debate_sets_visible_to(user).count(),
    ]


@pytest.mark.django_db
def test_members_see_what_their_workspace_holds_and_nobody_else_does(tmp_path: Path) -> None:
    mine, theirs = factories.workspace(), factories.workspace()
    for workspace in (mine, theirs):
        factories.experiment(tmp_path, in_workspace=workspace, question_count=2)
        import_debates(workspace=workspace, name="log", format_name="jsonl", records=[a_debate()])
    alice, stranger, former = person("alice"), person("stranger"), person("former")
    member(alice, mine)
    archive(member(former, mine))
    assert seen_by(alice) == [1, 1, 2, 2, 1]
    assert seen_by(stranger) == [0, 0, 0, 0, 0]
    assert seen_by(former) == [0, 0, 0, 0, 0]
    archive(mine)
    assert seen_by(alice) == [0, 0, 0, 0, 0]


@pytest.mark.django_db
def test_what_is_archived_is_not_listed(tmp_path: Path) -> None:
    home = factories.workspace()
    made = factories.experiment(tmp_path, in_workspace=home)
    alice = person("alice")
    member(alice, home)
    type(made).objects.filter(pk=made.pk).update(archived_at=Now())
    assert not queries.experiments_visible_to(alice).exists()


@pytest.mark.django_db
def test_two_memberships_do_not_show_a_thing_twice(tmp_path: Path) -> None:
    home, other = factories.workspace(), factories.workspace()
    factories.experiment(tmp_path, in_workspace=home)
    alice, bob = person("alice"), person("bob")
    for user in (alice, bob):
        member(user, home)
        member(user, other)
    assert seen_by(alice) == [2, 1, 1, 1, 0]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("role", "may_run"),
    [
        (Role.OWNER, True),
        (Role.RESEARCHER, True),
        (Role.ANNOTATOR, False),
        (Role.READER, False),
        (None, False),
    ],
)
def test_a_role_decides_what_a_member_may_do(role: Role | None, may_run: bool) -> None:
    home, alice = Workspace.objects.create(name="home"), person("alice")
    if role is not None:
        member(alice, home, role)
    assert access.role_in(alice, home) == role
    if may_run:
        assert access.access_workspace(alice, "home", roles=access.RUNNERS) == home
    else:
        with pytest.raises(AccessError, match="no workspace 'home'"):
            access.access_workspace(alice, "home", roles=access.RUNNERS)


@pytest.mark.django_db
def test_a_workspace_that_one_may_not_see_is_answered_like_one_that_is_not() -> None:
    Workspace.objects.create(name="theirs")
    alice, former = person("alice"), person("former")
    gone = Workspace.objects.create(name="gone")
    archive(member(former, gone, Role.OWNER))
    answers = set()
    for user, name in ((alice, "theirs"), (alice, "nonesuch"), (former, "gone")):
        with pytest.raises(AccessError) as raised:
            access.access_workspace(user, name)
        answers.add((raised.value.code, str(raised.value).replace(name, "…")))
    assert len(answers) == 1
    assert access.role_in(former, gone) is None


@pytest.mark.django_db
def test_a_command_acts_in_the_named_or_the_only_workspace() -> None:
    assert access.command_workspace(None).name == "main", "made where there is none"
    assert access.command_workspace(None).name == "main"
    Workspace.objects.create(name="second")
    with pytest.raises(InputError, match="there are several; name one"):
        access.command_workspace(None)
    assert access.command_workspace("second").name == "second"
    archive(Workspace.objects.get(name="second"))
    with pytest.raises(InputError, match="no workspace 'second'"):
        access.command_workspace("second")
    assert access.command_workspace(None).name == "main"


@pytest.mark.django_db
def test_the_first_owner_gets_a_link_until_it_was_used() -> None:
    first = access.ensure_first_owner()
    second = access.ensure_first_owner()
    assert first and second and first != second
    assert User.objects.count() == 1
    with pytest.raises(LinkError):
        access.redeem_link(first.removeprefix("/welcome/"), GOOD_PASSWORD)
    owner = access.redeem_link(second.removeprefix("/welcome/"), GOOD_PASSWORD)
    assert owner.check_password(GOOD_PASSWORD)
    assert access.role_in(owner, Workspace.objects.get()) == Role.OWNER
    assert access.ensure_first_owner() is None


@pytest.mark.django_db
def test_a_link_works_once() -> None:
    token = access.make_link(user=person("alice"))
    assert access.redeem_link(token, GOOD_PASSWORD).username == "alice"
    with pytest.raises(LinkError, match="used before"):
        access.redeem_link(token, GOOD_PASSWORD)


@pytest.mark.django_db
@pytest.mark.parametrize("token", ["", "nonesuch", "x" * 10_000, "\x00", "\ud800"])
def test_a_link_that_never_was_is_refused_in_one_line(token: str) -> None:
    with pytest.raises(LinkError) as raised:
        access.redeem_link(token, GOOD_PASSWORD)
    assert "\n" not in str(raised.value)


@pytest.mark.django_db
def test_a_link_expires() -> None:
    token = access.make_link(user=person("alice"))
    OneTimeLink.objects.update(expires_at=Now() - timedelta(seconds=1))
    with pytest.raises(LinkError, match="expired"):
        access.redeem_link(token, GOOD_PASSWORD)


@pytest.mark.django_db
def test_a_weak_password_leaves_the_link_usable() -> None:
    token = access.make_link(user=person("alice"))
    with pytest.raises(InputError, match="password: "):
        access.redeem_link(token, "alice")
    assert access.redeem_link(token, GOOD_PASSWORD).username == "alice"


@pytest.mark.django_db
def test_a_person_who_was_switched_off_cannot_come_back_by_a_link() -> None:
    alice = person("alice")
    token = access.make_link(user=alice)
    User.objects.update(is_active=False)
    with pytest.raises(LinkError):
        access.redeem_link(token, GOOD_PASSWORD)


@pytest.mark.django_db
def test_only_the_hash_of_a_token_is_stored() -> None:
    token = access.make_link(user=person("alice"))
    row = OneTimeLink.objects.get()
    assert token not in str(row.__dict__)
    assert len(row.token_sha256) == 64


@pytest.mark.django_db(transaction=True)
def test_of_two_who_use_one_link_at_once_one_wins() -> None:
    token = access.make_link(user=person("alice"))

    def redeem(password: str) -> str:
        try:
            access.redeem_link(token, password)
        except LinkError:
            return "refused"
        return "won"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert redeem(GOOD_PASSWORD) == "won"
            second = pool.submit(in_own_session(lambda: redeem(GOOD_PASSWORD + "2")))
            wait_for_blocked_session()
        assert second.result(timeout=10) == "refused"
    assert User.objects.get().check_password(GOOD_PASSWORD)


@pytest.mark.django_db(transaction=True)
def test_two_first_starts_at_once_make_one_owner() -> None:
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            first = access.ensure_first_owner()
            waiting = pool.submit(in_own_session(access.ensure_first_owner))
            wait_for_blocked_session()
        second = waiting.result(timeout=10)
    assert first and second and first != second
    assert User.objects.count() == Member.objects.count() == Workspace.objects.count() == 1
    assert OneTimeLink.objects.filter(used_at=None).count() == 1


@pytest.mark.django_db
def test_every_act_of_the_first_minutes_is_on_the_trail() -> None:
    link = access.ensure_first_owner()
    assert link is not None
    access.redeem_link(link.removeprefix("/welcome/"), GOOD_PASSWORD)
    acts = list(AuditEvent.objects.order_by("pk").values_list("act", "actor_name"))
    assert acts == [
        ("workspace.create", "machine"),
        ("member.add", "machine"),
        ("link.make", "machine"),
        ("link.redeem", "owner"),
    ]


@pytest.mark.django_db
def test_the_trail_tells_who_did_what_to_which_thing() -> None:
    home, alice = Workspace.objects.create(name="home"), person("alice")
    record(act="thing.do", workspace=home, obj=home, actor=alice, detail={"why": "because"})
    row = AuditEvent.objects.get()
    assert (row.workspace, row.actor, row.actor_name) == (home, alice, "alice")
    assert (row.object_kind, row.object_id, row.object_name) == ("workspace", home.pk, "home")
    assert row.detail == {"why": "because"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    "sql", ["UPDATE debateweb_auditevent SET act = 'x'", "DELETE FROM debateweb_auditevent"]
)
def test_the_trail_cannot_be_changed(sql: str) -> None:
    access.ensure_first_owner()
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.mark.django_db
def test_an_act_that_is_rolled_back_is_not_on_the_trail() -> None:
    with transaction.atomic():
        access.ensure_first_owner()
        transaction.set_rollback(True)
    assert not AuditEvent.objects.exists()
