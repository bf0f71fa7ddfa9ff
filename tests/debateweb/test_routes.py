"""Every route has an entry in the table of roles, and every person gets the answer it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from debateweb.models import Role, User, Workspace
from tests.debateweb.people import member, signed_in
from tests.debateweb.routes import ANONYMOUS, KINDS, ROUTES, STRANGER, Route

#: The API's own table is in the API's tests.
OTHERS = ("api",)


def found_routes(resolver: URLResolver, names: str = "", path: str = "") -> Iterator[list[str]]:
    """Yield full name and path of every route below ``resolver``."""
    for pattern in resolver.url_patterns:
        below = path + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            inner = f"{names}{pattern.namespace}:" if pattern.namespace else names
            yield from found_routes(pattern, inner, below)
        elif isinstance(pattern, URLPattern):
            yield [f"{names}{pattern.name}", below]


PATHS = {name: path for name, path in found_routes(get_resolver()) if not name.startswith(OTHERS)}


def address(name: str, route: Route, workspace: Workspace) -> str:
    arguments = dict(route.arguments(workspace))
    if "<slug:workspace>" in PATHS[name]:
        arguments["workspace"] = workspace.name
    return reverse(name, kwargs=arguments)


def test_every_route_is_in_the_table_and_the_table_names_no_other() -> None:
    assert set(PATHS) == set(ROUTES), "tests/debateweb/routes.py must name every route"


@pytest.mark.parametrize("name", sorted(ROUTES))
def test_every_entry_says_what_each_kind_of_person_gets(name: str) -> None:
    assert set(ROUTES[name].answers) == set(KINDS)


@pytest.mark.django_db
@pytest.mark.parametrize("name", sorted(ROUTES))
def test_everybody_gets_the_answer_that_the_table_names(name: str) -> None:
    route = ROUTES[name]
    home, other = Workspace.objects.create(name="home"), Workspace.objects.create(name="other")
    people: dict[str, User] = {role.value: member(home, role) for role in Role}
    people[STRANGER] = member(other, Role.OWNER, STRANGER)
    url = address(name, route, home)
    got = {}
    for kind in KINDS:
        client = Client() if kind == ANONYMOUS else signed_in(people[kind])
        send = client.post if route.method == "POST" else client.get
        got[kind] = send(url, route.data).status_code
    assert got == dict(route.answers)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "name", sorted(name for name, path in PATHS.items() if "<slug:workspace>" in path)
)
def test_a_foreign_workspace_is_answered_like_one_that_is_not(name: str) -> None:
    route = ROUTES[name]
    home, other = Workspace.objects.create(name="home"), Workspace.objects.create(name="other")
    for role in Role:
        member(home, role)
    client = signed_in(member(other, Role.OWNER, STRANGER))
    url = address(name, route, home)
    for send in (client.get, client.post, client.put, client.delete, client.options):
        foreign, missing = send(url), send(url.replace("/w/home/", "/w/nonesuch/"))
        assert foreign.status_code == missing.status_code == 404
        assert neutral(foreign.content, "home") == neutral(missing.content, "nonesuch")


def neutral(page: bytes, workspace: str) -> str:
    """Return a page without what differs each time: masked tokens, and the name that was asked."""
    return re.sub("[A-Za-z0-9]{64}", "", page.decode()).replace(f"/w/{workspace}/", "")
