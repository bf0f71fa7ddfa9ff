"""Workspaces, members and invitations: who can change what, and what can never be lost."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now
from django.test import Client

from debateweb import access, membership
from debateweb.access import LinkError
from debateweb.errors import InputError
from debateweb.membership import LastOwnerError, NameTakenError
from debateweb.models import AuditEvent, Invitation, Member, Role, User, Workspace
from tests.debateweb.people import PASSWORD, member, signed_in
from tests.races import in_own_session, wait_for_blocked_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def home() -> Workspace:
    return Workspace.objects.create(name="home")


@pytest.fixture
def owner(home: Workspace) -> User:
    return member(home, Role.OWNER)


def membership_of(user: User) -> Member:
    return Member.objects.get(user=user)


def link_from(page: bytes) -> str:
    found = re.search(r'value="http://testserver(/join/[\w-]+)"', page.decode())
    assert found is not None
    return found[1]


def acts() -> list[str]:
    return list(AuditEvent.objects.order_by("pk").values_list("act", flat=True))


def test_an_invited_person_makes_an_account_and_is_in(owner: User, client: Client) -> None:
    made = signed_in(owner).post("/w/home/invitations", {"role": "annotator", "note": "Ada"})
    assert made.status_code == 201
    assert "no-store" in made["Cache-Control"]
    link = link_from(made.content)
    assert client.get(link).status_code == client.get(link).status_code == 200
    assert b"Ada" not in client.get(link).content, "the note is the owner's"
    data = {"username": "ada", "password": PASSWORD, "again": PASSWORD}
    assert client.post(link, data)["location"] == "/w/home/"
    assert client.get("/w/home/").status_code == 200
    assert membership_of(User.objects.get(username="ada")).role == Role.ANNOTATOR
    assert Client().get(link).status_code == 404
    assert acts() == ["invitation.make", "member.add", "session.start"]


def test_the_link_of_an_invitation_is_shown_once(owner: User) -> None:
    client = signed_in(owner)
    link = link_from(client.post("/w/home/invitations", {"role": "reader"}).content)
    assert link not in client.get("/w/home/settings").content.decode()
    assert link.rpartition("/")[2] not in str(Invitation.objects.values().get())


def test_a_person_with_an_account_joins_as_themselves(home: Workspace, owner: User) -> None:
    token = membership.invite(workspace=home, role=Role.READER, note="", actor=owner)
    guest = member(Workspace.objects.create(name="other"), Role.OWNER, "guest")
    client = signed_in(guest)
    assert b"Join as guest" in client.get(f"/join/{token}").content
    assert client.post(f"/join/{token}")["location"] == "/w/home/"
    assert access.role_in(guest, home) == Role.READER


def test_an_invitation_never_lowers_a_role_and_brings_former_members_back(
    home: Workspace, owner: User
) -> None:
    former = member(home, Role.RESEARCHER)
    Member.objects.filter(user=former).update(archived_at=Now())
    for user in (owner, former):
        token = membership.invite(workspace=home, role=Role.READER, note="", actor=owner)
        membership.join(token=token, user=user)
    assert access.role_in(owner, home) == Role.OWNER
    assert access.role_in(former, home) == Role.READER


@pytest.mark.parametrize(
    "end",
    [
        lambda: Invitation.objects.update(revoked_at=Now()),
        lambda: Invitation.objects.update(used_at=Now()),
        lambda: Workspace.objects.update(archived_at=Now()),
    ],
    ids=["revoked", "used", "archived"],
)
def test_an_invitation_that_is_over_makes_nobody(home: Workspace, owner: User, end: object) -> None:
    token = membership.invite(workspace=home, role=Role.READER, note="", actor=owner)
    assert callable(end)
    end()
    data = {"username": "eve", "password": PASSWORD, "again": PASSWORD}
    assert Client().post(f"/join/{token}", data).status_code == 404
    with pytest.raises(LinkError):
        membership.join_as_new_person(token=token, username="eve", password=PASSWORD)
    assert not User.objects.filter(username="eve").exists()


def test_an_invitation_expires(home: Workspace, owner: User) -> None:
    Invitation.objects.create(
        workspace=home,
        role=Role.OWNER,
        token_sha256=access.token_hash("old"),
        created_by=owner,
        expires_at=Now() - timedelta(seconds=1),
    )
    assert membership.open_invitation("old") is None


@pytest.mark.parametrize("token", ["nonesuch", "x" * 5000, "%00", "%ED%A0%80"])
def test_an_invitation_that_never_was_is_refused_in_words(client: Client, token: str) -> None:
    reply = client.get(f"/join/{token}")
    assert reply.status_code == 404
    assert b"Ask the person who sent it for a new one" in reply.content


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"username": "Owner"}, "is taken"),
        ({"password": "short", "again": "short"}, "too short"),
        ({"again": "another"}, "differ"),
        ({"username": "a b"}, "valid username"),
    ],
)
def test_what_is_wrong_with_a_new_account_leaves_the_invitation_usable(
    home: Workspace, owner: User, data: dict[str, str], said: str
) -> None:
    token = membership.invite(workspace=home, role=Role.READER, note="", actor=owner)
    good = {"username": "ada", "password": PASSWORD, "again": PASSWORD}
    reply = Client().post(f"/join/{token}", good | data)
    assert reply.status_code == 400
    assert said in reply.content.decode()
    assert Client().post(f"/join/{token}", good).status_code == 302


def test_a_revoked_invitation_says_so(home: Workspace, owner: User) -> None:
    membership.invite(workspace=home, role=Role.READER, note="Ada", actor=owner)
    row = Invitation.objects.get()
    client = signed_in(owner)
    assert client.post(f"/w/home/invitations/{row.pk}/revoke").status_code == 302
    assert client.post(f"/w/home/invitations/{row.pk}/revoke").status_code == 302
    assert b"revoked" in client.get("/w/home/settings").content
    assert acts() == ["invitation.make", "invitation.revoke"]


def test_an_owner_of_one_workspace_cannot_touch_another(home: Workspace, owner: User) -> None:
    victim = member(home, Role.READER)
    membership.invite(workspace=home, role=Role.READER, note="", actor=owner)
    other = Workspace.objects.create(name="other")
    client = signed_in(member(other, Role.OWNER, "intruder"))
    for url in (
        f"/w/other/members/{membership_of(victim).pk}/role",
        f"/w/other/members/{membership_of(victim).pk}/remove",
        f"/w/other/invitations/{Invitation.objects.get().pk}/revoke",
    ):
        assert client.post(url, {"role": "owner"}).status_code == 404
    assert access.role_in(victim, home) == Role.READER
    assert Invitation.objects.get().revoked_at is None


def test_the_last_owner_can_neither_leave_nor_step_down(home: Workspace, owner: User) -> None:
    client, pk = signed_in(owner), membership_of(owner).pk
    for url in (f"/w/home/members/{pk}/role", f"/w/home/members/{pk}/remove"):
        reply = client.post(url, {"role": "reader"})
        assert reply.status_code == 409
        assert b"only owner" in reply.content
    assert access.role_in(owner, home) == Role.OWNER
    second = member(home, Role.OWNER, "second")
    assert client.post(f"/w/home/members/{pk}/role", {"role": "reader"})["location"] == "/"
    assert access.role_in(owner, home) == Role.READER
    assert access.role_in(second, home) == Role.OWNER


def test_an_owner_who_cannot_sign_in_does_not_count(home: Workspace, owner: User) -> None:
    member(home, Role.OWNER, "gone")
    User.objects.filter(username="gone").update(is_active=False)
    with pytest.raises(LastOwnerError):
        membership.archive_member(workspace=home, member_id=membership_of(owner).pk, actor=owner)


@pytest.mark.django_db(transaction=True)
def test_of_two_owners_who_remove_each_other_at_once_one_stays(home: Workspace) -> None:
    first, second = member(home, Role.OWNER, "first"), member(home, Role.OWNER, "second")

    def remove(user: User) -> str:
        try:
            membership.archive_member(workspace=home, member_id=membership_of(user).pk, actor=user)
        except LastOwnerError:
            return "refused"
        return "gone"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert remove(first) == "gone"
            other = pool.submit(in_own_session(lambda: remove(second)))
            wait_for_blocked_session()
        assert other.result(timeout=10) == "refused"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_use_one_invitation_at_once_one_gets_in(home: Workspace) -> None:
    owner = member(home, Role.OWNER)
    token = membership.invite(workspace=home, role=Role.READER, note="", actor=owner)

    def take(name: str) -> str:
        try:
            membership.join_as_new_person(token=token, username=name, password=PASSWORD)
        except LinkError:
            return "refused"
        return "in"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert take("ada") == "in"
            other = pool.submit(in_own_session(lambda: take("bob")))
            wait_for_blocked_session()
        assert other.result(timeout=10) == "refused"
    assert set(User.objects.values_list("username", flat=True)) == {"owner", "ada"}


def test_removing_a_member_asks_first_and_keeps_what_was(home: Workspace, owner: User) -> None:
    reader = member(home, Role.READER)
    client, url = signed_in(owner), f"/w/home/members/{membership_of(reader).pk}/remove"
    assert b"Remove reader from home?" in client.get(url).content
    assert access.role_in(reader, home) == Role.READER, "asking changes nothing"
    assert client.post(url).status_code == 302
    assert access.role_in(reader, home) is None
    assert b"left" in client.get("/w/home/settings").content
    assert client.get(url).status_code == 404


def test_a_workspace_is_made_renamed_and_archived(owner: User) -> None:
    client = signed_in(owner)
    assert client.post("/workspaces", {"name": "lab"})["location"] == "/w/lab/"
    assert client.post("/w/lab/settings/rename", {"name": "lab-2"})["location"] == (
        "/w/lab-2/settings"
    )
    assert client.get("/w/lab/").status_code == 404
    assert b"Archive the workspace lab-2?" in client.get("/w/lab-2/settings/archive").content
    assert client.post("/w/lab-2/settings/archive").status_code == 302
    assert client.get("/w/lab-2/").status_code == 404
    assert b"lab-2</a>" not in client.get("/workspaces").content
    assert Workspace.objects.filter(name="lab-2").exists()
    assert acts() == ["workspace.create", "workspace.rename", "workspace.archive"]


@pytest.mark.parametrize("name", ["home", "", "a b", "ü", "x" * 65])
def test_a_name_that_will_not_do_is_said_beside_the_field(owner: User, name: str) -> None:
    client = signed_in(owner)
    for url in ("/workspaces", "/w/home/settings/rename"):
        if (url, name) == ("/w/home/settings/rename", "home"):
            continue
        reply = client.post(url, {"name": name})
        assert reply.status_code == 400
        assert b'id="id_name_error"' in reply.content
    assert Workspace.objects.count() == 1


def test_a_name_of_an_archived_workspace_stays_taken(owner: User) -> None:
    Workspace.objects.create(name="old", archived_at=Now())
    with pytest.raises(NameTakenError):
        membership.create_workspace(name="old", owner=owner)


def test_an_unknown_role_changes_nothing(home: Workspace, owner: User) -> None:
    reader = member(home, Role.READER)
    client = signed_in(owner)
    client.post(f"/w/home/members/{membership_of(reader).pk}/role", {"role": "emperor"})
    assert access.role_in(reader, home) == Role.READER
    with pytest.raises(InputError):
        membership.join_as_new_person(
            token=membership.invite(workspace=home, role=Role.READER, note="", actor=owner),
            username="OWNER",
            password=PASSWORD,
        )
