"""The list of experiments and setting one up: form, YAML, faults, cost; without any script."""

from __future__ import annotations

import html
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from debateweb.models import Role, Workspace
from runs.experiment_file import parse
from runs.importers.records import QuestionRecord
from runs.models import Experiment, ExperimentStatus
from runs.services.imports import import_questions
from tests.debateweb.people import member, signed_in
from tests.runs import factories

pytestmark = pytest.mark.django_db
NEW = "/w/home/experiments/new"


@pytest.fixture
def home() -> Workspace:
    made = Workspace.objects.create(name="home")
    import_questions(
        workspace=made, name="sums", format_name="jsonl", records=factories.questions(12)
    )
    return made


@pytest.fixture
def client(home: Workspace) -> Client:
    return signed_in(member(home, Role.RESEARCHER))


def fields_of(page: str) -> dict[str, str]:
    """Return what a browser would send: every input, area and list of the set-up form."""
    form = page[page.index('id="set-up"') :]
    found: dict[str, str] = {}
    for tag in re.findall(r"<input [^>]*>", form):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and 'type="file"' not in tag:
            found[name[1]] = html.unescape(value[1]) if value else ""
    for tag, text in re.findall(r"<textarea ([^>]*)>\r?\n?(.*?)</textarea>", form, re.DOTALL):
        found[re.search(r'name="([^"]*)"', tag)[1]] = html.unescape(text)  # type: ignore[index]
    for name, options in re.findall(r'<select name="([^"]*)".*?>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected', options)
        found[name] = html.unescape(chosen[1]) if chosen else ""
    return found


def beginning(client: Client, kind: str = "peers") -> dict[str, str]:
    return fields_of(client.get(f"{NEW}?kind={kind}").content.decode())


@pytest.mark.parametrize(("kind", "arms"), [("peers", 3), ("budget", 4), ("single", 1)])
def test_every_starting_point_can_be_priced_and_made_as_it_stands(
    client: Client, kind: str, arms: int
) -> None:
    fields = beginning(client, kind)
    priced = client.post(NEW, {**fields, "do": "check"})
    assert priced.status_code == 200
    page = priced.content.decode()
    assert f"All {12 * arms} runs" in page
    assert "on 12 questions" in page
    assert "Smallest difference between two arms that 12 questions find" in page
    assert not Experiment.objects.exists()
    made = client.post(NEW, {**fields_of(page), "do": "create-priced"})
    assert made.status_code == 302
    experiment = Experiment.objects.get()
    assert (experiment.status, experiment.arms.count()) == (ExperimentStatus.READY, arms)
    assert made["location"] == f"/w/home/experiments/{experiment.pk}/"


def test_the_acts_stand_in_their_order_and_creating_comes_after_the_price(client: Client) -> None:
    steps = ("1. Say what", "2. Check and price", "3. What it may cost", "4. Create it")
    for page in (
        client.get(NEW).content.decode(),
        client.post(NEW, {**beginning(client), "do": "check"}).content.decode(),
    ):
        places = [page.index(step) for step in steps]
        assert places == sorted(places)
        assert page.index('value="create') > places[-1]
        assert page.count('class="primary"') == 1  # The one act that comes next.


def test_what_was_changed_since_it_was_priced_is_priced_again_before_it_is_made(
    client: Client,
) -> None:
    priced = fields_of(client.post(NEW, {**beginning(client), "do": "check"}).content.decode())
    again = client.post(NEW, {**priced, "seeds": "1-3", "do": "create-priced"})
    page = again.content.decode()
    assert again.status_code == 200
    assert "It was changed since it was priced" in page
    assert "All 108 runs" in page
    assert not Experiment.objects.exists()
    assert client.post(NEW, {**fields_of(page), "do": "create-priced"}).status_code == 302
    assert Experiment.objects.get().runs.count() == 108


def test_the_hours_of_people_are_said_with_what_is_assumed(client: Client, home: Workspace) -> None:
    closed = client.post(NEW, {**beginning(client), "do": "check"}).content.decode()
    assert "rules score every answer" in closed
    mixed = [
        *factories.questions(2),
        QuestionRecord(id="why", question="Why?", reference=(), answer_type="open"),
    ]
    import_questions(workspace=home, name="mixed", format_name="jsonl", records=mixed)
    fields = {**beginning(client, "single"), "questions": "mixed", "seeds": "1-90"}
    page = client.post(NEW, {**fields, "do": "check"}).content.decode()
    assert "at most 90 answers to 1 open question, which no rule scores" in page
    assert "At 60 seconds each, which is assumed and not measured" in page
    assert "1.5 hours" in page


def test_creating_twice_makes_one_experiment(client: Client) -> None:
    fields = {**beginning(client), "do": "create"}
    first, second = client.post(NEW, fields), client.post(NEW, fields)
    assert first["location"] == second["location"]
    assert Experiment.objects.count() == 1


def test_the_form_writes_the_yaml_and_reads_it_back_unchanged(client: Client) -> None:
    fields = beginning(client)
    fields |= {"seeds": "1-3", "budget.stage.questions": "4", "analysis.margin": "0.02"}
    written = client.post(NEW, {**fields, "do": "write-yaml"}).content.decode()
    yaml = fields_of(written)["yaml"]
    assert "questions: sums" in yaml
    assert "microusd_total: 5000000" in yaml
    assert "seeds: [1, 2, 3]" in yaml
    read = fields_of(client.post(NEW, {"yaml": yaml, "do": "read-yaml"}).content.decode())
    assert parse(read["yaml"], "read") == parse(yaml, "written")
    again = fields_of(client.post(NEW, {**read, "do": "write-yaml"}).content.decode())
    assert again["yaml"] == read["yaml"]
    assert (read["budget.stage.questions"], read["analysis.margin"]) == ("4", "0.02")


def test_yaml_that_was_changed_counts_where_the_form_was_not(client: Client) -> None:
    fields = beginning(client)
    fields["yaml"] = fields["yaml"].replace("name: peers", "name: typed").replace("\n", "\r\n")
    assert client.post(NEW, {**fields, "do": "create"}).status_code == 302
    assert Experiment.objects.get().name == "typed"


def test_form_and_yaml_that_were_both_changed_are_never_guessed_about(client: Client) -> None:
    fields = {**beginning(client), "name": "by-form"}
    fields["yaml"] = fields["yaml"].replace("name: peers", "name: by-yaml")
    refused = client.post(NEW, {**fields, "do": "create"})
    assert refused.status_code == 400
    assert "were both changed" in refused.content.decode()
    kept = fields_of(refused.content.decode())
    assert kept["name"] == "by-form"
    assert "name: by-yaml" in kept["yaml"]
    assert not Experiment.objects.exists()


def test_arms_are_added_and_removed_by_buttons_and_nothing_typed_is_lost(client: Client) -> None:
    fields = {**beginning(client, "single"), "limit": "many", "arms[0].name": "only"}
    more = fields_of(client.post(NEW, {**fields, "do": "add-arm"}).content.decode())
    assert (more["arms[0].name"], more["arms[1].name"], more["limit"]) == ("only", "", "many")
    more["arms[1].name"] = "second"
    fewer = fields_of(client.post(NEW, {**more, "do": "remove-arm-0"}).content.decode())
    assert fewer["arms[0].name"] == "second"
    assert "arms[1].name" not in fewer


def error_beside(page: str, name: str) -> str:
    found = re.search(
        rf'id="id_{re.escape(name)}_error">(.*?)</div>', page.replace("\n", " "), re.DOTALL
    )
    return "" if found is None else html.unescape(re.sub("<[^>]*>", "", found[1]))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "no spaces", "may hold letters"),
        ("limit", "many", "must be a whole number"),
        ("seeds", "1, 1", "stands twice"),
        ("budget.microusd_total", "a lot", "must be an amount in US dollars"),
        ("arms[0].protocol", "nonesuch", "there is no preset"),
        ("arms[0].models", "default: nonesuch/model", "default: "),
        ("arms[0].models", "default: openai/gpt-4o-mini", "OPENAI_API_KEY"),
        ("arms[0].agents", "900", "must be from 1 to 64"),
        ("analysis.primary", "accuraty_T", "did you mean accuracy_T?"),
        ("analysis.contrasts", "debate, nobody", "is not an arm"),
        ("questions", "elsewhere", "there is no question set"),
        ("limit", "13", "13 questions are wanted, 12 are there"),
        ("budget.stage.questions", "13", "13 questions are wanted, 12 are there"),
        ("budget.output_tokens_per_run", "9", "every run would end without an answer"),
    ],
)
def test_a_fault_stands_beside_its_field(
    client: Client, monkeypatch: pytest.MonkeyPatch, field: str, value: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    reply = client.post(NEW, {**beginning(client), field: value, "do": "check"})
    page = reply.content.decode()
    assert reply.status_code == 400
    assert said in error_beside(page, field) + page[page.index('id="faults"') :][:1500]
    assert fields_of(page)[field] == value
    # What stands beside a field further down is said at the top as well, with a way to it.
    beside = re.findall(r'<a href="#(id_[^"]*)">', page[page.index('id="faults"') :])
    assert all(f'id="{unquote(found)}"' in page for found in beside)
    assert beside or not error_beside(page, field)


def test_no_file_of_the_host_is_read(client: Client, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(factories.protocol_text())
    questions = tmp_path / "q.jsonl"
    questions.write_text('{"id": "1", "question": "Secret?", "answer": "1"}\n')
    for field, value in (
        ("arms[0].protocol", str(tmp_path / "p.json")),
        ("questions", str(questions)),
    ):
        reply = client.post(NEW, {**beginning(client), field: value, "do": "create"})
        assert reply.status_code == 400
    assert not Experiment.objects.exists()


def test_more_runs_than_a_browser_waits_for_are_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.services.browser_specs.MOST_RUNS", 35)
    refused = client.post(NEW, {**beginning(client), "do": "create"})
    assert "36 runs are too many" in refused.content.decode()
    fewer = client.post(NEW, {**beginning(client), "limit": "11", "do": "create"})
    assert fewer.status_code == 302


def test_an_uploaded_file_is_read_into_the_form(client: Client) -> None:
    yaml = fields_of(client.get(NEW).content.decode())["yaml"].replace("name: peers", "name: up")
    file = SimpleUploadedFile("x.yaml", yaml.encode())
    page = client.post(NEW, {"file": file, "do": "read-yaml"}).content.decode()
    assert fields_of(page)["name"] == "up"
    broken = client.post(NEW, {"file": SimpleUploadedFile("x", b"\xff"), "do": "read-yaml"})
    assert (broken.status_code, b"not UTF-8" in broken.content) == (400, True)


def test_faults_of_yaml_name_its_lines_and_keep_it(client: Client) -> None:
    reply = client.post(NEW, {"yaml": "name: x\nnonsense: 1\n", "do": "read-yaml"})
    page = reply.content.decode()
    assert reply.status_code == 400
    assert "YAML:2: nonsense: is no key" in html.unescape(page)
    assert fields_of(page)["yaml"] == "name: x\nnonsense: 1\n"


def test_a_missing_key_is_said_before_anything_is_made(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    fields = {**beginning(client, "single"), "arms[0].models": "default: openai/gpt-4o-mini"}
    page = client.post(NEW, {**fields, "do": "create"}).content.decode()
    assert "set OPENAI_API_KEY" in page
    assert not Experiment.objects.exists()


def test_hostile_text_in_the_form_stays_text(client: Client) -> None:
    evil = "</textarea><img src=x onerror=alert(1)>"
    fields = {**beginning(client), "arms[0].models": evil, "arms[0].name": evil, "yaml": evil}
    page = client.post(NEW, {**fields, "do": "check"}).content.decode()
    assert "<img" not in page


def test_experiments_of_others_cannot_be_copied_or_seen(client: Client, tmp_path: Path) -> None:
    other = factories.experiment(tmp_path)
    assert client.get(f"{NEW}?from={other.pk}").status_code == 404
    assert client.get(f"/w/home/experiments/{other.pk}/").status_code == 404
    assert client.post(f"/w/home/experiments/{other.pk}/start").status_code == 404


def test_another_like_it_starts_from_its_specification(client: Client) -> None:
    client.post(NEW, {**beginning(client), "do": "create"})
    made = Experiment.objects.get()
    fields = fields_of(client.get(f"{NEW}?from={made.pk}").content.decode())
    assert (fields["name"], fields["arms[1].branch_from.arm"]) == ("peers-2", "debate")
    assert client.post(NEW, {**fields, "do": "create"}).status_code == 302
