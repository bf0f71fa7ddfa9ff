"""
A crawl over everything that people can ask for: what they may not know yet is in no response.

Every secret of a queue holds a marker, and so does all of another workspace. The crawl opens every
route with every name that it could know, follows links, sends forms, asks the API, and reads
bodies and headers. Planted leaks prove that it would find one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from itertools import product
from typing import Any
from urllib.parse import quote, urljoin

import pytest
from django.test import Client
from django.urls import reverse

from audits import label_pages, label_panel, queries_annotator
from audits.labelling.design import Ask, LabelSchema
from audits.queue_models import Annotator, Item, ItemNote, ItemSecret, Queue
from audits.queues.claiming import next_item
from audits.queues.creating import NewItem, add_annotator
from audits.queues.notes import add_note
from audits.queues.submitting import Said, submit
from debateweb.api import api
from debateweb.models import Role, Workspace
from debateweb.tokens import create_token
from tests.audits.pages.labelling import Labeller
from tests.audits.queues.making import claimed, queue_of
from tests.debateweb.people import member, signed_in
from tests.debateweb.test_routes import PATHS

pytestmark = pytest.mark.django_db

ITEMS = 6
MINE = 2
MARKER = re.compile(r"zqmark[a-z]+\d*")
#: Never sent by the crawl: it would end its own session, or take itself out.
LEFT_OUT = ("/logout", "/theme", "/account", "/tokens")
#: Links beyond the routes themselves that are followed.
MOST_FOLLOWED = 100
HEADERS: tuple[dict[str, str], ...] = ({}, {"HX-Request": "true"}, {"Accept": "application/json"})
#: What is filled into forms, beside what they hold.
CHOSEN = {"choice": "1", "note": "n", "way": "again", "why": "w"}


def secret_items(tag: str) -> list[NewItem]:
    """Return pairs in which all that is hidden has a marker; what is shown has none."""
    return [
        NewItem(
            item_id=f"zqmarkitem{tag}-{i}",
            unit_id=f"zqmarkunit{tag}-{i}",
            question_id=f"zqmarkquestion{tag}-{i}",
            stratum=f"zqmarkstratum{tag}",
            shown={
                "question": f"Which is better, {i}?",
                "candidates": [
                    {"candidate_id": f"zqmarkleft{tag}{i}", "text": f"Text one of {i}."},
                    {
                        "candidate_id": f"zqmarkright{tag}{i}",
                        "text": f"As zqmarkmodel{tag}{i}, I think.",
                    },
                ],
                "reference": f"zqmarkreference{tag}",
                "turns": [],
                "file": f"zqmarkfile{tag}",
            },
            secret={
                "models": {f"zqmarkleft{tag}{i}": f"zqmarkmodel{tag}{i}"},
                "arm": f"zqmarkarm{tag}",
                "round": f"zqmarkround{tag}",
                "verdicts": [
                    {
                        "judge": f"zqmarkjudge{tag}",
                        "verdict": f"zqmarkleft{tag}{i}",
                        "rationale": "zqmarkwhy",
                    }
                ],
            },
            gold=f"zqmarkgold{tag}" if i == ITEMS - 1 else None,
        )
        for i in range(ITEMS)
    ]


def make_queue(workspace: Workspace, tag: str, name: str) -> Queue:
    return queue_of(
        secret_items(tag),
        name=name,
        in_workspace=workspace,
        overlap=2,
        gold_share=0.1,
        mask_giveaways=True,
        label=LabelSchema(ask=Ask(kind="pairwise", title="Which is better?"), confidence=True),
    )


def label_all(annotator: Annotator, marker: str, most: int = ITEMS) -> None:
    """Let a peer label items with comments, and ask the lead about the first."""
    for number in range(most):
        mine = claimed(annotator)
        if number == 0:
            add_note(annotator=annotator, item=mine.item, kind="question", text=f"{marker}note")
        submit(
            annotator=annotator,
            slot_id=mine.slot.pk,
            fence=mine.slot.fence,
            said=Said(
                request_key=f"{marker}-{mine.item.key}",
                value={"label": mine.serving.shown_order[0], "reasons": []},
                comment=f"{marker}comment",
                confidence=0.4,
            ),
        )


@dataclass
class World:
    """Two workspaces with a queue each; in ours a person who is in the middle of their items."""

    home: Workspace
    queue: Queue
    foreign: Queue
    me: Annotator

    def names(self) -> list[str]:
        return [self.queue.name, self.foreign.name]


@pytest.fixture
def world() -> World:
    home, other = (
        Workspace.objects.create(name="home"),
        Workspace.objects.create(name="zqmarkother"),
    )
    queue, foreign = make_queue(home, "h", "blinded"), make_queue(other, "f", "zqmarkforeign")
    me = add_annotator(queue=queue, user=member(home, Role.ANNOTATOR, "me"), actor=None)
    for marker in ("zqmarkpeer", "zqmarkcolleague"):
        peer = member(home, Role.ANNOTATOR, f"{marker}name")
        joined = add_annotator(queue=queue, user=peer, actor=None)
        label_all(joined, marker, most=2)
    abroad = add_annotator(
        queue=foreign, user=member(other, Role.ANNOTATOR, "zqmarkabroadname"), actor=None
    )
    label_all(abroad, "zqmarkabroad")
    return World(home, queue, foreign, me)


@dataclass
class Crawl:
    """What one person was answered; ``seen`` holds markers by the request that showed them."""

    client: Client
    seen: dict[str, set[str]] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    sent: Counter[str] = field(default_factory=Counter)
    answered: int = 0

    def ask(
        self,
        method: str,
        url: str,
        data: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """Send one request, read all of its answer, and return the body of a page."""
        send = getattr(self.client, method)
        answer = send(url, dict(data or {}), headers=dict(headers or {}))
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        text = body.decode("utf-8", "replace")
        answered = [
            text,
            *answer.headers.values(),
            answer.cookies.output(),
            answer.get("Location", ""),
        ]
        found = {m for part in answered for m in MARKER.findall(str(part))}
        # What the request itself named may stand in its answer.
        found -= set(MARKER.findall(url)) | {
            m for v in (data or {}).values() for m in MARKER.findall(v)
        }
        if found:
            self.seen[f"{method} {url} {headers}"] = found
        self.answered += answer.status_code == 200
        is_page = answer.get("Content-Type", "").startswith("text/html")
        return text if is_page and answer.status_code in {200, 400, 409} else ""

    def open(self, urls: Iterator[str], *, until_seen: bool = False) -> None:
        """Open addresses as pages and fragments, follow what they link to, send their forms."""
        routes = list(urls)
        waiting = list(routes)
        while waiting and not (until_seen and self.seen):
            url = waiting.pop()
            is_far = url not in routes and len(self.asked) > len(routes) + MOST_FOLLOWED
            if url in self.asked or is_far or any(part in url for part in LEFT_OUT):
                continue
            self.asked.add(url)
            for headers in HEADERS:
                text = self.ask("get", url, headers=headers)
                waiting += links(text, url)
                self.send_forms(text, url)
                if not text and not headers:
                    break  # Not there, or no page: the same for every kind of request.

    def send_forms(self, text: str, url: str) -> None:
        """Send each form to each of its addresses, as it is and with choices made."""
        for form in re.findall(r"<form\b.*?</form>", text, re.DOTALL):
            hidden = dict(re.findall(r'name="([\w-]+)" value="([^"]*)"', form))
            actions = re.findall(r'(?:form)?action="([^"]+)"', form) or [url]
            for action in dict.fromkeys(actions):
                target = urljoin(url, unescape(action))
                self.sent[target] += 1
                if "/label/" not in target or "close-batch" in target or self.sent[target] > 4:
                    continue
                extra = CHOSEN if self.sent[target] % 2 else {}
                data = {k: unescape(v) for k, v in hidden.items()} | extra
                for headers in HEADERS:
                    self.ask("post", target, data, headers)


def markers_in(*texts: object) -> set[str]:
    return {marker for text in texts for marker in MARKER.findall(str(text))}


def links(text: str, url: str) -> list[str]:
    found = re.findall(r'(?:href|hx-get|src|data-from)="([^"]+)"', text)
    joined = (urljoin(url, unescape(one)) for one in found)
    return [one.split("#")[0] for one in joined if one.startswith(("/w/home/", "/w/zqmarkother/"))]


def addresses(world: World, only: str = "") -> Iterator[str]:
    """Yield every route of both workspaces with every name and key that there is."""
    for queue in (world.queue, world.foreign):
        item = Item.objects.filter(queue=queue).earliest("pk")
        values = {
            "int": [str(queue.pk), str(item.pk)],
            "str": [queue.name, item.key],
            "slug": [queue.name],
        }
        for name, path in PATHS.items():
            if "<slug:workspace>" not in path or only not in name:
                continue
            wanted = re.findall(r"<(\w+):(\w+)>", path)
            choices = [
                [queue.workspace.name] if key == "workspace" else values.get(kind, [item.key])
                for kind, key in wanted
            ]
            for chosen in product(*choices):
                given = dict(zip((key for _, key in wanted), chosen, strict=True))
                yield reverse(name, kwargs=given)
    for path in ("/", "/workspaces", "/health", "/health.json", "/design"):
        yield path


def api_requests(world: World) -> Iterator[tuple[str, str]]:
    """Yield method and address of every operation, with names of both workspaces."""
    for path, methods in api.get_openapi_schema()["paths"].items():
        for method, queue in product(methods, (world.queue, world.foreign)):
            url = path.replace("{workspace}", queue.workspace.name)
            yield method, re.sub(r"\{\w+\}", quote(queue.name), url)


def crawled(world: World, client: Client, only: str = "") -> Crawl:
    crawl = Crawl(client)
    crawl.open(addresses(world, only))
    for url in addresses(world, only):
        key = Item.objects.filter(queue=world.queue).earliest("pk").key
        crawl.ask("post", url, {"key": key, "fence": "1", "choice": "1"})
    return crawl


def of_the_queue(found: dict[str, set[str]]) -> set[str]:
    return {marker for markers in found.values() for marker in markers}


def test_an_annotator_finds_nothing_that_is_hidden(world: World) -> None:
    crawl = crawled(world, signed_in(world.me.user))  # type: ignore[arg-type]  # Has one.
    assert crawl.seen == {}
    assert crawl.answered > 20 and world.me.labels.exists()  # It was let in, and labelled.


def test_a_person_who_has_not_joined_finds_nothing_that_is_hidden(world: World) -> None:
    crawl = crawled(world, signed_in(member(world.home, Role.ANNOTATOR, "fresh")), "label")
    assert crawl.seen == {} and crawl.answered > 20


def test_a_reader_finds_nothing_of_the_pages_of_annotators_nor_abroad(world: World) -> None:
    crawl = crawled(world, signed_in(member(world.home, Role.READER, "reader")))
    assert not [url for url in crawl.seen if "/label/" in url]
    names = {"zqmarkpeername", "zqmarkcolleaguename", "zqmarkpeernote", "zqmarkcolleaguenote"}
    abroad = {
        m for m in of_the_queue(crawl.seen) if m.startswith(("zqmarkabroad", "zqmarkforeign"))
    }
    hidden_abroad = {m for m in of_the_queue(crawl.seen) if re.fullmatch(r"zqmark[a-z]+f\d*", m)}
    assert (of_the_queue(crawl.seen) & names, abroad, hidden_abroad) == (set(), set(), set())


def test_a_stranger_finds_nothing_at_all(world: World) -> None:
    elsewhere = Workspace.objects.create(name="elsewhere")
    crawl = crawled(world, signed_in(member(elsewhere, Role.OWNER, "stranger")))
    assert crawl.seen == {}


@pytest.mark.parametrize("role", ["annotator", "reader", "stranger"])
def test_the_api_tells_no_more_than_the_pages(world: World, role: str) -> None:
    if role == "stranger":
        user = member(Workspace.objects.create(name="elsewhere"), Role.OWNER, "stranger")
    elif role == "annotator":
        assert world.me.user is not None
        user = world.me.user
    else:
        user = member(world.home, Role.READER, "reader")
    token = create_token(user=user, name="crawl")
    crawl = Crawl(Client(headers={"Authorization": f"Bearer {token}"}))
    for method, url in api_requests(world):
        crawl.ask(method, url)
    found = of_the_queue(crawl.seen)
    if role == "reader":  # Reports on the workspace's own queues are theirs to read.
        found = {m for m in found if m.endswith(("name", "note")) or "foreign" in m}
    assert found == set()


def test_closing_a_batch_reveals_what_it_holds_and_no_more(world: World) -> None:
    me = Labeller(world.me)
    for _ in range(MINE):
        me.send(choice="1")
    me.post("release", me.hidden())
    me.post("close-batch", {})
    crawl = crawled(world, me.client, "label_revealed")
    labelled = [label.item for label in world.me.labels.filter(version=1)[:MINE]]
    allowed = {
        marker
        for item in labelled
        for marker in MARKER.findall(str(ItemSecret.objects.get(item=item).body))
    }
    assert {m for m in of_the_queue(crawl.seen) if m.startswith("zqmarkmodel")} != set()
    assert of_the_queue(crawl.seen) <= allowed


def leak_in_words(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(label_panel, "why_shown", lambda *_: ["Drawn since zqmarkmodelh0 wrote it."])


def leak_of_threads(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(queries_annotator, "thread", lambda *_: ItemNote.objects.all())


def leak_of_reveals(patch: pytest.MonkeyPatch) -> None:
    def all_of_it(annotator: Annotator) -> Any:
        return Item.objects.filter(queue=annotator.queue_id)

    patch.setattr("audits.queues.batches.revealed_items", all_of_it)


def leak_of_ids(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(label_pages, "in_words", lambda *said: str(said[1]))


def leak_without_masks(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(label_panel, "masked_item", lambda item: item.shown)


@pytest.mark.parametrize(
    "leak",
    [leak_in_words, leak_of_threads, leak_of_reveals, leak_of_ids, leak_without_masks],
)
def test_the_crawl_finds_a_planted_leak(
    world: World, monkeypatch: pytest.MonkeyPatch, leak: Callable[[pytest.MonkeyPatch], None]
) -> None:
    assert world.me.user is not None
    Labeller(world.me).send(choice="1")
    leak(monkeypatch)
    crawl = Crawl(signed_in(world.me.user))
    crawl.open(addresses(world, "label"), until_seen=True)
    assert crawl.seen != {}


def test_queries_of_annotators_touch_no_table_of_secrets(
    world: World, django_assert_max_num_queries: Any
) -> None:
    """The one module of their reads is run whole, and its statements are read."""
    assert world.me.user is not None
    items = list(Item.objects.filter(queue=world.queue).values_list("pk", flat=True))
    next_item(world.me)
    with django_assert_max_num_queries(40) as captured:
        queries_annotator.my_queues(world.me.user, world.home)
        queries_annotator.queue_named(world.home, "blinded")
        queries_annotator.annotator_in(world.me.user, world.home, "blinded")
        queries_annotator.served(world.me, Item.objects.get(pk=items[0]).key, 1)
        queries_annotator.servings_of(world.me, items)
        list(queries_annotator.thread(world.me, Item.objects.get(pk=items[0])))
        list(queries_annotator.guidelines(world.queue))
        list(queries_annotator.first_labels(world.me))
        queries_annotator.versions_of(world.me, items)
        queries_annotator.labelled(world.me, "x")
    ran = " ".join(query["sql"] for query in captured.captured_queries)
    for table in ("itemsecret", "judgment", "judgeditem", "adjudication", "runs_"):
        assert table not in ran
