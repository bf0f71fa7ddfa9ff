"""Pages of reports: asked for, waited for, read, opened row by row, taken away as files."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test import Client
from django.test.utils import CaptureQueriesContext
from redis.exceptions import RedisError

from audits.models import Report, ReportRow
from audits.reports import render
from audits.reports.build import build_report, report_bytes
from audits.reports.definitions import DEFINITIONS
from audits.reports.render import links_of, page_bytes
from audits.reports.screen import screen
from audits.reports.table import table_bytes
from audits.reports.tabulate import Table, table_csv
from debateweb.models import Role, Workspace
from runs.experiment_file import parse
from runs.models import Experiment, Run
from runs.services import experiments
from tests.audits.pages.conftest import Bell
from tests.audits.reports.experiments import THREE_ARMS, executed, questions_file
from tests.debateweb.people import member, signed_in

pytestmark = pytest.mark.django_db
URL = "/w/{}/reports/sums/"


def text_of(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200, url
    return answer.content.decode()


def url_of(ran: Experiment) -> str:
    return URL.format(ran.workspace.name)


def test_a_report_is_asked_for_waited_for_and_read(
    ran: Experiment, reader: Client, bell: Bell, django_capture_on_commit_callbacks: Any
) -> None:
    url = url_of(ran)
    assert "Nobody has asked for this report yet" in text_of(reader, url)

    with django_capture_on_commit_callbacks(execute=True):
        assert reader.post(f"{url}build").status_code == 302
    waiting = text_of(reader, url)
    assert 'hx-trigger="every 2s"' in waiting and bell.rung

    bell.build_all()
    panel = reader.get(url, headers={"HX-Request": "true"})
    assert panel["HX-Redirect"] == url
    page = text_of(reader, url)
    assert "every 2s" not in page and "which exchanges repaired which initial answers" in page


def test_no_page_computes_a_report(
    ran: Experiment, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("a page computed statistics")

    monkeypatch.setattr("audits.reports.build.experiment_rows", refused)

    assert reader.post(f"{url_of(ran)}build").status_code == 302
    assert 'id="building"' in text_of(reader, url_of(ran))
    assert not ReportRow.objects.exists()


def test_the_first_screen_leads_with_excess_rates_where_an_arm_revised_alone(
    built: Experiment, reader: Client
) -> None:
    page = text_of(reader, url_of(built))
    leads = page[page.index('<table class="data leads"') : page.index("What was not scored")]
    heads = re.findall(r'role="columnheader">(.*?)</th>', leads)
    debate, alone, vote = leads.split("<tr role")[2:]

    assert heads[1:5] == [
        "Excess repair",
        "Excess damage",
        "Repair<br>includes resampling",
        "Damage<br>includes resampling",
    ]
    assert "Accuracy at the end" in heads and "simulated" in debate
    assert debate.count(" points</strong>") + debate.count(" points<span") == 3
    assert [row.count('lead-reason">–') for row in (debate, alone, vote)] == [0, 2, 2]
    assert vote.count("undefined: no revision round was opened") == 2


def test_every_lead_figure_has_interval_n_definition_and_rows(
    built: Experiment, reader: Client
) -> None:
    page = text_of(reader, url_of(built))
    cells = re.findall(r'<td role="cell".*?</td>', page, re.DOTALL)
    shown = [cell for cell in cells if 'lead-reason">–' not in cell]

    assert len(shown) == 14
    for cell in shown:
        assert re.search(r"<summary>n = \d+<", cell) and "Out of: " in cell
        assert "/rows?" in cell
        assert "lead-interval" in cell or "undefined: " in cell


def test_all_but_the_answer_is_folded_and_every_entry_of_the_contents_leads_into_a_fold(
    built: Experiment, reader: Client
) -> None:
    page = text_of(reader, url_of(built))
    contents = page[page.index('<nav class="contents"') :]
    targets = re.findall(r'href="#([^"]+)"', contents[: contents.index("</nav>")])

    assert targets[0] == "comparisons" and targets[-2:] == ["definitions", "inputs"]
    assert len(targets) == len(set(targets)) > 6
    for target in targets:
        before = page[: page.index(f'id="{target}"')]
        assert before.count("<details") > before.count("</details"), target
    assert 'class="fold" open' not in page
    folds = contents[contents.index("</nav>") :]
    outside = re.sub(r"<details.*</details>", "", folds, flags=re.DOTALL)
    assert "<table" not in outside


def test_a_page_is_rendered_once_a_release_and_equals_what_is_rendered_anew(
    built: Experiment, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = Report.objects.get()
    links = links_of(built.workspace.name, built.name, report=report.pk)
    anew = render_to_string(render.BODY, screen(json.loads(report.body), links))
    first = text_of(reader, url_of(built))
    assert anew in first

    def refused(*_: Any) -> None:
        raise AssertionError("rendered again")

    with monkeypatch.context() as patch:
        patch.setattr(render, "screen", refused)
        assert anew in text_of(reader, url_of(built))
        with CaptureQueriesContext(connection) as queries:
            reader.get(url_of(built))
        assert not any('"body"' in query["sql"] for query in queries)

        patch.setattr(render, "release", lambda: "another release")
        with pytest.raises(AssertionError, match="rendered again"):
            reader.get(url_of(built))


def test_a_page_is_shown_where_the_cache_does_not_answer(
    built: Experiment, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Away:
        def get(self, key: str) -> None:
            raise RedisError

    monkeypatch.setattr(render, "cache", Away())

    assert "In short" in text_of(reader, url_of(built))


def test_every_link_to_rows_opens_and_every_table_can_be_taken_away(
    built: Experiment, reader: Client
) -> None:
    page = text_of(reader, url_of(built))
    rows = set(re.findall(r'href="([^"]*/rows\?[^"]*)"', page))
    tables = set(re.findall(r'href="([^"]*/table\.csv\?[^"]*)"', page))

    assert len(rows) > 50 and len(tables) > 20
    for address in sorted(rows)[::7]:
        text_of(reader, address.replace("&amp;", "&"))
    for address in sorted(tables)[::4]:
        sheet = list(csv.reader(io.StringIO(text_of(reader, address.replace("&amp;", "&")))))
        assert len(sheet) > 1


def test_the_rows_of_damage_are_the_agents_that_were_right_and_lead_to_their_runs(
    built: Experiment, reader: Client
) -> None:
    report = build_report(workspace=built.workspace, name="sums")
    damage = next(
        f for f in report["conditions"][0]["figures"] if f["metric"] == "damage_T" and not f["by"]
    )

    page = text_of(reader, f"{url_of(built)}rows?{damage['rows'].partition('?')[2]}")

    body = page[page.index("<tbody>") : page.index("</tbody>")]
    lines = re.findall(r"<tr>.*?</tr>", body, re.DOTALL)
    assert len(lines) == damage["den"]
    assert sum(line.endswith("<td>yes</td></tr>") for line in lines) == damage["num"]
    assert all("/runs/" in line for line in lines)


@pytest.mark.parametrize(
    "query",
    ["", "metric=repair_T", "condition=debate", "metric=&condition=debate"],
)
def test_rows_of_no_figure_are_not_there(built: Experiment, reader: Client, query: str) -> None:
    assert reader.get(f"{url_of(built)}rows?{query}").status_code == 404


def test_odd_addresses_of_rows_are_answered(built: Experiment, reader: Client) -> None:
    for query in (
        "metric=%00&condition=%00x",
        "metric=repair_t&condition=debate&round=0",
        "metric=repair_t&condition=debate&round=99999999999999",
        "metric=%3Cscript%3E&condition=debate&by.agent=%E2%80%AE",
        "metric=repair_T&condition=debate&report=0",
        "metric=repair_T&condition=debate&report=%00",
    ):
        assert reader.get(f"{url_of(built)}rows?{query}").status_code in {200, 404}


def test_files_of_the_page_are_those_of_the_command(built: Experiment, reader: Client) -> None:
    report = build_report(workspace=built.workspace, name="sums")

    links = links_of(
        built.workspace.name, "sums", site="http://testserver", report=Report.objects.get().pk
    )

    def linked(report: dict[str, Any]) -> bytes:
        return page_bytes(report, links)

    for form, made in (("json", report_bytes), ("csv", table_bytes), ("html", linked)):
        answer = reader.get(f"{url_of(built)}report.{form}")
        assert answer.content == made(report)
        assert answer["Content-Disposition"] == f'attachment; filename="sums.{form}"'


def test_rows_are_paged_by_key(built: Experiment, reader: Client) -> None:
    report = Report.objects.get()
    first = ReportRow.objects.exclude(agent_id="").filter(condition="debate").first()
    assert first is not None
    fields = {
        f.attname: getattr(first, f.attname) for f in ReportRow._meta.fields if f.attname != "id"
    }
    ReportRow.objects.bulk_create(ReportRow(**fields) for _ in range(120))
    url: str | None = f"{url_of(built)}rows?metric=agent_accuracy_T&condition=debate"
    seen = 0
    while url:
        page = text_of(reader, url)
        seen += page.count("<tr>") - 1
        following = re.search(r'href="([^"]*)" rel="next"', page)
        url = following[1].replace("&amp;", "&") if following else None

    rows = report.rows.filter(condition="debate").exclude(agent_id="")
    assert seen == rows.count() > 120


def test_new_records_are_said_and_a_new_report_is_asked_for(
    built: Experiment, reader: Client
) -> None:
    assert "There are newer records" not in text_of(reader, url_of(built))

    Experiment.objects.filter(pk=built.pk).update(status="CANCELLED")

    assert "There are newer records" in text_of(reader, url_of(built))
    reader.post(f"{url_of(built)}build")
    assert Report.objects.count() == 2


def test_a_report_that_broke_says_so_and_can_be_built_again(
    ran: Experiment, reader: Client
) -> None:
    reader.post(f"{url_of(ran)}build")
    Report.objects.update(status="FAILED", fault="<b>no</b>")

    page = text_of(reader, url_of(ran))

    assert "could not be built" in page and "&lt;b&gt;no" in page


def test_other_workspaces_have_no_such_report(built: Experiment) -> None:
    annotator = signed_in(member(built.workspace, Role.ANNOTATOR))
    for path in ("", "rows?metric=repair_T&condition=debate", "report.json"):
        assert annotator.get(f"{url_of(built)}{path}").status_code == 404


HOSTILE = "<img src=x onerror=alert(1)>\u202e<script>alert(1)</script>{{7*7}}=cmd()"


def test_hostile_names_are_harmless_in_the_file(built: Experiment) -> None:
    report = json.loads(Report.objects.get().body)
    condition = report["conditions"][0]
    condition["name"] = condition["labels"][0] = HOSTILE
    condition["figures"][0]["notes"] = [HOSTILE]
    condition["figures"][1]["by"] = {"agent": HOSTILE}
    condition["tables"]["dependence"][0]["agents"][0] = HOSTILE
    condition["tables"]["stop_reasons"] = {HOSTILE: 1}
    report["comparisons"][0]["a"] = HOSTILE
    report["deviations"] = [{"condition": HOSTILE, "text": HOSTILE}]

    page = page_bytes(report).decode()

    assert "<img" not in page and "<script" not in page and "\u202e" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;⟨U+202E⟩" in page and "{{7*7}}" in page


def test_the_file_loads_nothing_and_runs_nothing(built: Experiment) -> None:
    page = page_bytes(json.loads(Report.objects.get().body)).decode()

    assert "default-src 'none'" in page
    assert not re.search(r"<(script|link|img|iframe|object|form)\b", page)
    assert all(target.startswith("#") for target in re.findall(r'(?:href|src)="([^"]*)"', page))
    assert "url(" not in page and "@import" not in page


def test_every_metric_of_a_report_has_its_definition(built: Experiment) -> None:
    report = json.loads(Report.objects.get().body)
    metrics = {f["metric"] for one in report["conditions"] for f in one["figures"]}

    assert metrics <= DEFINITIONS.keys() and len(metrics) > 40


def test_cells_of_tables_are_no_formulas() -> None:
    table = Table("stop_reasons", "Why", ("what", "=x"), (("=cmd()", -1), ("+1", None)))

    assert table_csv(table).decode() == "what,'=x\r\n'=cmd(),-1\r\n'+1,\r\n"


@pytest.fixture
def unstarted(home: Workspace, ran: Experiment, tmp_path: Path) -> Experiment:
    source = questions_file(tmp_path, 8)
    text = THREE_ARMS.replace("NAME", "sums-later").replace("QUESTIONS", source.name)
    return experiments.create_experiment(
        workspace=home, spec=parse(text, "experiment.yaml"), folder=tmp_path, environ={}
    )


def test_a_report_on_what_was_never_started_leads_to_the_experiment(
    unstarted: Experiment, reader: Client
) -> None:
    page = text_of(reader, f"/w/{unstarted.workspace.name}/reports/sums-later/")

    assert "has not been started" in page and "Build" not in page
    assert f'href="/w/{unstarted.workspace.name}/experiments/{unstarted.pk}/"' in page


def test_a_report_on_what_runs_says_how_far_it_is(unstarted: Experiment, reader: Client) -> None:
    url = f"/w/{unstarted.workspace.name}/reports/sums-later/"
    experiments.start(experiment=unstarted)
    page = text_of(reader, url)
    assert "No run of the experiment is done yet" in page and "Watch the experiment" in page
    assert "Build" not in page

    executed(unstarted, most_rounds=4)
    done = Run.objects.filter(experiment=unstarted, status="DONE").count()
    page = text_of(reader, url)

    assert f"The experiment is running: {done} of 24 runs are done" in page and done > 0
    assert "Build a report on what is done" in page and "Watch the experiment" in page


def test_a_report_on_what_finished_says_what_it_will_be_of(ran: Experiment, reader: Client) -> None:
    page = text_of(reader, url_of(ran))

    assert "Nobody has asked for this report yet" in page and "24 of 24 runs are done" in page
    assert "Build the report</button>" in page


def test_a_report_on_nothing_done_is_built_and_says_so(
    unstarted: Experiment, reader: Client, bell: Bell, django_capture_on_commit_callbacks: Any
) -> None:
    url = f"/w/{unstarted.workspace.name}/reports/sums-later/"
    with django_capture_on_commit_callbacks(execute=True):
        reader.post(f"{url}build")
    bell.build_all()

    page = text_of(reader, url)
    assert "undefined: " in page and "8 of 8 runs are not done" in page
    assert "No row is like that" in text_of(reader, f"{url}rows?metric=repair_T&condition=vote")


ONE_MEGABYTE = HOSTILE + "x" * 1_000_000


@pytest.mark.parametrize("text", [HOSTILE, ONE_MEGABYTE], ids=["markup", "one megabyte"])
def test_what_others_wrote_is_harmless_and_short_on_page_and_in_file(
    built: Experiment, text: str
) -> None:
    report = json.loads(Report.objects.get().body)
    for condition in report["conditions"]:
        condition["name"] = condition["protocol"] = condition["same_start"] = text
        condition["marked"], condition["labels"] = text, [text]
        condition["tables"]["stop_reasons"] = {text: 1}
        condition["tables"]["dependence"] = [{"at": "0", "reason": text}]
        for figure in condition["figures"]:
            figure["by"] = {"agent": text, text: text} if figure["by"] else {}
            figure["notes"] = [text]
            figure["reason"] = text if figure["value"] is None else None
    for pair in report["comparisons"]:
        pair["a"] = pair["b"] = text
    report["deviations"] = [{"condition": text, "text": text}]
    report["inputs"] = {text: text, "protocols": {text: text}}

    links = links_of("main", "sums", site="https://example.org")
    for page in (page_bytes(report).decode(), page_bytes(report, links).decode()):
        shown = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
        assert not re.search(r"<(img|script|iframe|object|link)\b", shown)
        assert "\u202e" not in page and "⟨U+202E⟩" in page
        assert "x" * 400 not in re.sub(r'href="[^"]*"', "", shown)


def test_no_cell_of_the_rows_file_is_a_formula(built: Experiment, reader: Client) -> None:
    report = Report.objects.get()
    row = report.rows.filter(agent_id="", condition="debate").first()
    assert row is not None
    texts = ["=cmd()", "+1", "-1", "@x", "\t=1", "\r=1", HOSTILE, "=" + ONE_MEGABYTE]
    for text in texts:
        row.pk = None
        row.run_key, row.question_id, row.stratum = text, text[:200], text[:200]
        row.answers = {"plurality": [text, text]}
        row.save(force_insert=True)

    query = "metric=accuracy_T&condition=debate"
    answer = reader.get(f"{url_of(built)}rows.csv?{query}")
    sheet = list(csv.reader(io.StringIO(b"".join(answer).decode(), newline="")))
    cells = [cell for line in sheet for cell in line]
    assert len(sheet) == 1 + 8 + len(texts)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "\t", "\r"))]
    assert not [cell for cell in cells if cell.startswith("-") and not cell[1:].isdigit()]
    assert max(map(len, cells)) < 32_767 and any("characters)" in cell for cell in cells)

    page = text_of(reader, f"{url_of(built)}rows?{query}")
    assert "<img" not in page and "\u202e" not in page and len(page) < 200_000
