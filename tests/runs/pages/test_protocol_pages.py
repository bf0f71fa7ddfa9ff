"""Protocols by browser: the list, one protocol, and the editor as form and YAML at once."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from django.test import Client

from debateweb.models import AuditEvent, Role, Workspace
from runs.experiment_forms import to_yaml
from runs.experiment_starts import trying
from runs.models import ProtocolVersion
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.yaml_io import load_protocol
from runs.services.imports import import_questions
from runs.services.protocol_versions import save_version
from tests.debateweb.people import member, signed_in
from tests.runs import factories

pytestmark = pytest.mark.django_db
EDIT = "/w/home/protocols/edit"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def home() -> Workspace:
    return Workspace.objects.create(name="home")


@pytest.fixture
def client(home: Workspace) -> Client:
    return signed_in(member(home, Role.RESEARCHER))


def fields_of(page: str) -> dict[str, str]:
    """Return what a browser would send of the editor's form."""
    form = page[page.index('id="editor"') : page.rindex("</form>")]
    found: dict[str, str] = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and not ('type="checkbox"' in tag and "checked" not in tag):
            found[name[1]] = html.unescape(value[1]) if value else ""
    for tag, text in re.findall(r"<textarea ([^>]*)>\n?(.*?)</textarea>", form, re.DOTALL):
        found[re.search(r'name="([^"]*)"', tag)[1]] = html.unescape(text)  # type: ignore[index]
    for name, options in re.findall(r'<select name="([^"]*)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        found[name] = html.unescape(chosen[1]) if chosen else ""
    return found


def beginning(client: Client, name: str = "du_2023") -> dict[str, str]:
    return fields_of(client.get(f"{EDIT}?from={name}").content.decode())


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_shown_and_checks_into_itself(client: Client, name: str) -> None:
    assert client.get(f"/w/home/protocols/shipped/{name}/").status_code == 200
    fields = beginning(client, name)
    checked = client.post(EDIT, {**fields, "do": "check"})
    assert checked.status_code == 200
    text = fields_of(checked.content.decode())["yaml"]
    assert text == fields["yaml"]
    changed = load_protocol(text, "YAML").model_copy(update={"name": name})
    assert changed == load_preset(name)


def test_a_change_in_the_form_is_a_change_of_the_yaml(client: Client) -> None:
    fields = {**beginning(client), "revision_rounds": "4", "topology.kind": "ring"}
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    made = load_protocol(fields_of(page)["yaml"], "YAML")
    assert (made.revision_rounds, made.topology.kind) == (4, "ring")
    assert made.prompts == load_preset("du_2023").prompts


def test_a_change_in_the_yaml_is_a_change_of_the_form(client: Client) -> None:
    fields = beginning(client)
    fields["yaml"] = fields["yaml"].replace("revision_rounds: 1", "revision_rounds: 5")
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    assert fields_of(page)["revision_rounds"] == "5"


def test_both_can_be_edited_before_either_is_sent(client: Client) -> None:
    fields = beginning(client)
    fields["yaml"] = fields["yaml"].replace("revision_rounds: 1", "revision_rounds: 5")
    fields["aggregation.kind"] = "strict_majority"
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    made = load_protocol(fields_of(page)["yaml"], "YAML")
    assert (made.revision_rounds, made.aggregation.kind) == (5, "strict_majority")


def test_what_was_changed_differently_in_both_is_said_before_it_is_saved(client: Client) -> None:
    fields = beginning(client)
    fields["yaml"] = fields["yaml"].replace("revision_rounds: 1", "revision_rounds: 5")
    fields["revision_rounds"] = "3"
    answer = client.post(EDIT, {**fields, "do": "save"})
    assert "Changed in both" in answer.content.decode()
    assert not ProtocolVersion.objects.exists()


def test_more_agents_take_the_settings_of_those_there_are(client: Client) -> None:
    fields = {**beginning(client), "agents.count": "5", "agents[0].persona": "A careful one."}
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    made = load_protocol(fields_of(page)["yaml"], "YAML")
    assert made.agent_ids == ("a", "b", "c", "d", "e")
    assert made.agents[3].persona == "A careful one."
    assert 'name="agents[4].id"' in page


def test_a_checkbox_that_was_unchecked_is_a_change(client: Client) -> None:
    fields = beginning(client)
    assert fields.pop("agents[1].votes") == "on"
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    votes = [agent.votes for agent in load_protocol(fields_of(page)["yaml"], "YAML").agents]
    assert votes == [True, False, True]


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("revision_rounds", "many", "has to be a whole number"),
        ("agents[1].id", "a", ""),
        ("topology.kind", "k_regular", ""),
        ("name", "Not A Name", "has to match"),
        ("aggregation.tie", "coin", "has to be"),
    ],
)
def test_faults_stand_in_words_beside_the_field_and_nothing_typed_is_lost(
    client: Client, path: str, text: str, words: str
) -> None:
    fields = {**beginning(client), path: text}
    answer = client.post(EDIT, {**fields, "do": "save"})
    assert answer.status_code == 400
    page = answer.content.decode()
    assert 'class="field-error"' in page
    assert words in html.unescape(page)
    assert fields_of(page)[path] == text
    assert not ProtocolVersion.objects.exists()


def test_yaml_that_cannot_be_read_stays_as_typed_with_the_form_beside_it(client: Client) -> None:
    fields = {**beginning(client), "yaml": "name: [oops", "title": "Typed meanwhile"}
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    kept = fields_of(page)
    assert (kept["yaml"], kept["title"]) == ("name: [oops", "Typed meanwhile")
    assert "YAML:1" in page


def test_saving_makes_a_version_and_the_same_again_does_not(
    client: Client, home: Workspace
) -> None:
    fields = {**beginning(client), "name": "mine", "do": "save"}
    first, again = client.post(EDIT, fields), client.post(EDIT, fields)
    assert first["location"] == again["location"]
    assert client.get(first["location"]).status_code == 200
    second = client.post(EDIT, {**fields, "revision_rounds": "3"})
    old, new = ProtocolVersion.objects.order_by("version")
    assert (old.version, new.version, new.workspace) == (1, 2, home)
    page = client.get(f"{second['location']}?against={old.pk}").content.decode()
    assert "revision_rounds" in page
    assert AuditEvent.objects.filter(act="protocol.save").count() == 2


def test_a_shipped_name_is_refused_beside_the_name(client: Client) -> None:
    answer = client.post(EDIT, {**beginning(client), "name": "single", "do": "save"})
    assert answer.status_code == 400
    assert "is a shipped protocol" in answer.content.decode()


def test_a_change_as_one_types_answers_with_parts_and_not_with_a_page(client: Client) -> None:
    fields = {**beginning(client), "revision_rounds": "3"}
    answer = client.post(EDIT, fields, headers={**HTMX, "HX-Trigger": "by-form"})
    text = answer.content.decode()
    assert "<html" not in text
    assert 'id="sketch"' in text
    assert "revision_rounds: 3" in text
    assert 'id="fields"' not in text  # What is being typed into is never replaced.
    by_yaml = client.post(EDIT, fields, headers={**HTMX, "HX-Trigger": "by-yaml"})
    assert 'id="fields"' in by_yaml.content.decode()
    assert 'name="yaml"' not in by_yaml.content.decode()


def test_the_bound_follows_the_price_that_is_typed(client: Client) -> None:
    fields = {**beginning(client), "price.in": "1", "price.out": "2"}
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    assert re.search(r"Cost</th><td class=\"num\">\$\d", page)
    wrong = client.post(EDIT, {**fields, "price.in": "cheap", "do": "check"}).content.decode()
    assert "A price is a number of US dollars" in wrong


def test_what_is_not_executed_is_said_and_can_be_saved(client: Client) -> None:
    fields = {**beginning(client), "name": "later", "selection.show": "transcript"}
    page = client.post(EDIT, {**fields, "do": "check"}).content.decode()
    assert "selection.show: transcript is not executed yet" in page
    assert client.post(EDIT, {**fields, "do": "save"}).status_code == 302


def test_a_protocol_says_who_ran_it(client: Client, home: Workspace, tmp_path: Path) -> None:
    made = factories.experiment(tmp_path, in_workspace=home)
    version = made.arms.get().protocol
    page = client.get(f"/w/home/protocols/{version.pk}/").content.decode()
    assert f"/w/home/experiments/{made.pk}/" in page
    assert "1 run " in page


@pytest.mark.parametrize("key", ["nothing", "0", "9" * 30])
def test_a_beginning_that_is_not_there_is_not_found(client: Client, key: str) -> None:
    assert client.get(f"{EDIT}?from={key}").status_code == 404


def test_versions_of_another_workspace_are_not_there(client: Client) -> None:
    other = Workspace.objects.create(name="other")
    named = load_preset("single").model_copy(update={"name": "theirs"})
    version, _ = save_version(workspace=other, protocol=named, actor=None)
    assert client.get(f"/w/home/protocols/{version.pk}/").status_code == 404
    assert client.get(f"{EDIT}?from={version.pk}").status_code == 404


@pytest.mark.parametrize("name", preset_names())
def test_a_protocol_leads_to_an_experiment_that_can_be_priced(
    client: Client, home: Workspace, name: str
) -> None:
    records = factories.questions(30)
    import_questions(workspace=home, name="sums", format_name="jsonl", records=records)
    page = client.get(f"/w/home/protocols/shipped/{name}/").content.decode()
    assert f'href="/w/home/experiments/new?protocol={name}"' in page
    begun = client.get(f"/w/home/experiments/new?protocol={name}").content.decode()
    assert f'value="try-{name}"' in begun
    yaml = to_yaml({**trying(name), "questions": "sums"})
    priced = client.post("/w/home/experiments/new", {"do": "check", "yaml": yaml, "written": ""})
    assert priced.status_code == 200 and "field-error" not in priced.content.decode()
