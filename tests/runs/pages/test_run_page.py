"""The run page: one debate as a matrix, its cells, and its replay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from debateweb.models import Role, Workspace
from runs.models import AttemptOutcome, Run, State
from runs.providers.base import ProviderReply
from runs.providers.endings import BAD_REQUEST, RATE_LIMITED, failed
from runs.run_pages.reads import CELL_TEXT_CHARS
from runs.run_pages.texts import changed_words, cut, cut_bytes, excerpt_of
from tests.debateweb.people import member, signed_in
from tests.runs import factories
from tests.runs.scripted import Call, ScriptedGateway, replied, said

pytestmark = pytest.mark.django_db

HOSTILE = (
    "<img src=x onerror=alert(1)> <iframe srcdoc='<script>alert(2)</script>'></iframe> "
    '<div hx-get="/logout" hx-trigger="load">x</div> [click](javascript:alert(3)) '
    "<a href='javascript:alert(4)'>y</a> \u202eevil\u202c \x00 \x1b[31m red"
)


@pytest.fixture(autouse=True)
def _no_broker() -> Iterator[None]:
    with patch("runs.dispatch.current_app"):
        yield


@pytest.fixture
def home() -> Workspace:
    return Workspace.objects.create(name="home")


@pytest.fixture
def reader(home: Workspace) -> Client:
    return signed_in(member(home, Role.READER))


def ran(folder: Path, home: Workspace, script: Any = None, **parts: Any) -> Run:
    """Return the first run of an experiment that ended."""
    made = factories.experiment(folder, in_workspace=home, **parts)
    gateway = ScriptedGateway(script) if script is not None else ScriptedGateway()
    first = factories.finish(made, gateway).runs.order_by("position").first()
    assert first is not None
    return first


def run_url(run: Run, query: str = "") -> str:
    return reverse("runs:run", args=["home", run.pk]) + query


def cell_url(run: Run, t: int, agent_id: str, query: str = "") -> str:
    return reverse("runs:run_cell", args=["home", run.pk, t, agent_id]) + query


def page(client: Client, url: str, **headers: str) -> str:
    answer = client.get(url, headers=headers)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def words(html: str) -> str:
    """Return what a page says, without its tags, spaces run together."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def cell_words(html: str, number: int, t: int) -> str:
    found = re.search(rf'<td id="cell-{number}-{t}".*?</td>', html, re.DOTALL)
    assert found is not None
    return words(found[0])


def turning(call: Call) -> ProviderReply:
    """Agent a goes right → wrong in round 1, b wrong → right in round 2, c stays right."""
    answers = {"a": ["2", "3", "3"], "b": ["5", "5", "2"], "c": ["2", "2", "2"]}
    return said(answers[call.agent_id][call.t])


def test_the_matrix_shows_every_agent_in_every_round_with_right_and_wrong(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    html = page(reader, run_url(ran(tmp_path, home, turning)))
    assert len(re.findall(r'<td id="cell-\d+-\d+"', html)) == 9
    assert "admitted" in cell_words(html, 1, 0) and "right" in cell_words(html, 1, 0)
    assert "right → wrong" in cell_words(html, 1, 1)
    assert "wrong" in cell_words(html, 1, 2) and "→" not in cell_words(html, 1, 2)
    assert "wrong → right" in cell_words(html, 2, 2)
    said_ = words(html)
    assert "What is 1 plus 1?" in said_ and "Reference: 2" in said_
    assert "Stopped: round_limit" in said_ and "changed_answers" in said_
    assert "plurality after round 2" in said_ and "Settled" in said_
    assert 'href="#cell-1-1"' in html and 'href="#cell-2-2"' in html


def test_show_lists_only_agents_that_turned_and_lets_their_other_cells_recede(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = ran(tmp_path, home, turning)
    broke = page(reader, run_url(run, "?show=broke"))
    assert 'id="cell-1-1"' in broke and 'id="cell-2-2"' not in broke
    assert broke.count('class="run-aside"') == 2
    assert 'href="?show=fixed#cell-2-2"' in broke
    assert 'id="cell-2-2"' in page(reader, run_url(run, "?show=fixed"))
    assert "No agent of this run has such a round." in page(reader, run_url(run, "?show=refused"))
    everything = page(reader, run_url(run, "?show=<script>"))
    assert len(re.findall(r'<td id="cell-\d+-\d+"', everything)) == 9


def test_what_changed_since_the_last_version_is_told_word_by_word(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    html = page(reader, run_url(ran(tmp_path, home, turning)))
    assert "What changed: So the answer is [removed: 2. ] [added: 3. ]" in cell_words(html, 1, 1)
    assert "Word for word as version 1." in cell_words(html, 3, 1)


def test_an_agent_that_fails_keeps_its_version_and_one_without_any_is_inactive(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    def script(call: Call) -> ProviderReply:
        if call.agent_id == "c" or (call.agent_id, call.t) == ("b", 1):
            return failed(BAD_REQUEST, "no <b>such</b> thing")
        return said("2")

    run = ran(tmp_path, home, script)
    html = page(reader, run_url(run))
    assert "retained: version 1 of round 0" in cell_words(html, 2, 1)
    assert "failed" in cell_words(html, 3, 0)
    assert "inactive" in cell_words(html, 3, 1)
    cell = page(reader, cell_url(run, 1, "b"))
    assert "Retained" in words(cell) and cell_url(run, 0, "b") in cell
    assert "no &lt;b&gt;such&lt;/b&gt; thing" in cell


def test_the_cell_page_shows_prompt_read_set_attempts_and_ledger(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    def script(call: Call) -> ProviderReply:
        if (call.agent_id, call.t, call.nth) == ("a", 1, 0):
            return failed(RATE_LIMITED, "slow down")
        return said("2")

    run = ran(tmp_path, home, script)
    html = page(reader, cell_url(run, 1, "a"))
    told = words(html)
    attempts = list(run.attempts.filter(t=1, agent_id="a").order_by("ordinal"))
    assert len(attempts) == 2
    for message in json.loads(attempts[0].prompt):
        assert message["content"].splitlines()[0] in html
    assert "Attempts 0, 1; request" in told and attempts[0].request_digest in html
    assert cell_url(run, 0, "b") in html and cell_url(run, 0, "c") in html
    assert "retry of 0" in told and "rate_limited" in told and "scripted-1" in told
    assert "reserve" in told and "settle" in told and "So the answer is 2." in told
    assert "Admitted as version 2" in told


def test_a_reply_that_came_late_stands_beside_the_outcome(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = ran(tmp_path, home)
    attempt = run.attempts.get(t=0, agent_id="a")
    AttemptOutcome.objects.create(
        attempt=attempt, late=True, status="SUCCEEDED", raw=b"too <late>", model_version="other-2"
    )
    html = page(reader, cell_url(run, 0, "a"))
    assert "Late reply, 10 bytes" in words(html) and "too &lt;late&gt;" in html
    assert "scripted-1" in html and "other-2" in html


def test_a_branched_answer_leads_to_the_run_that_it_was_taken_from(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    arm = {"protocol": "p.json", "models": {"default": "scripted"}}
    arms = [
        {"name": "first", **arm},
        {"name": "second", "protocol": "p.json", "branch_from": {"arm": "first"}},
    ]
    run = ran(tmp_path, home, arms=arms)
    branch = run.experiment.runs.get(branch_source=run)
    assert "version 1, branched" in cell_words(page(reader, run_url(branch)), 1, 0)
    html = page(reader, cell_url(branch, 0, "a"))
    assert "No call was made." in html and cell_url(run, 0, "a") in html


def test_states_that_were_cut_or_left_out_are_named_with_lengths_and_reasons(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    def script(call: Call) -> ProviderReply:
        return replied("x" * 300 + "\nFinal answer: 2")

    caps = {"message_cap_chars": 100, "total_cap_chars": 150}
    run = ran(tmp_path, home, script, protocol={"selection": caps})
    told = words(page(reader, cell_url(run, 1, "a")))
    assert "truncated" in told and "316 → 100" in told
    assert "dropped" in told and "no room left under the cap" in told


@pytest.mark.parametrize("where", ["text", "answer"])
def test_hostile_replies_are_shown_and_do_nothing(
    where: str, tmp_path: Path, home: Workspace, reader: Client
) -> None:
    reply = f"{HOSTILE}\nFinal answer: {HOSTILE if where == 'answer' else 2}"

    def script(call: Call) -> ProviderReply:
        return replied(b"\xff\xfe" + reply.encode())

    run = ran(tmp_path, home, script)
    urls = [run_url(run), cell_url(run, 0, "a")]
    if where == "text":  # With a hostile answer nobody was admitted, and nobody revised.
        urls.append(cell_url(run, 1, "b"))
    for url in urls:
        html = page(reader, url)
        main = html[html.index("<main") : html.index("</main>")]
        assert "<img" not in main and "<iframe" not in main and 'hx-get="/logout"' not in main
        assert 'href="javascript' not in main and "href='javascript" not in main
        assert not {"\u202e", "\x00", "\x1b"} & set(html)
    raw = page(reader, cell_url(run, 0, "a"))
    assert "&lt;img src=x onerror=alert(1)&gt;" in raw
    assert "⟨U+202E⟩" in raw and "⟨U+0000⟩" in raw and "⟨0xFF⟩⟨0xFE⟩" in raw


def test_a_line_of_a_megabyte_is_cut_and_shown_whole_when_asked_for(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    def script(call: Call) -> ProviderReply:
        return replied("y" * 1_000_000 + "\nFinal answer: 2")

    run = ran(tmp_path, home, script, protocol={"revision_rounds": 1})
    assert len(page(reader, run_url(run))) < 60_000
    html = page(reader, cell_url(run, 0, "a"))
    assert len(html) < 4 * CELL_TEXT_CHARS and "?all=1" in html
    assert "y" * 1_000_000 in page(reader, cell_url(run, 0, "a", "?all=1"))


def test_verifying_says_that_everything_agrees_or_what_does_not(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = ran(tmp_path, home, turning)
    url = reverse("runs:run_verify", args=["home", run.pk])
    assert "Everything agrees" in reader.post(url).content.decode()
    panel = reader.post(url, headers={"HX-Request": "true"}).content.decode()
    assert "Everything agrees" in panel and "<html" not in panel
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = 'replica'")
        State.objects.filter(run=run, agent_id="a", state_version=1).update(answer_value="9")
        cursor.execute("SET LOCAL session_replication_role = 'origin'")
    told = words(reader.post(url).content.decode())
    assert "The records disagree" in told and "agent a" in told


def test_a_run_that_has_not_begun_says_so_and_cannot_be_verified(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = factories.experiment(tmp_path, in_workspace=home).runs.get()
    assert "Nothing was asked yet." in page(reader, run_url(run))
    url = reverse("runs:run_verify", args=["home", run.pk])
    assert "has not ended" in reader.post(url).content.decode()
    assert reader.get(cell_url(run, 0, "a")).status_code == 404


def test_runs_lead_to_their_neighbours_by_position(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    made = factories.experiment(tmp_path, in_workspace=home, question_count=3)
    first, middle, last = made.runs.order_by("position")
    assert f'rel="prev" href="{run_url(first)}"' in page(reader, run_url(middle))
    assert f'rel="next" href="{run_url(last)}"' in page(reader, run_url(middle))
    assert 'rel="prev"' not in page(reader, run_url(first))
    assert 'rel="next"' not in page(reader, run_url(last))


def test_annotators_strangers_and_other_workspaces_find_no_run(
    tmp_path: Path, home: Workspace
) -> None:
    run = ran(tmp_path, home)
    other = Workspace.objects.create(name="other")
    annotator = signed_in(member(home, Role.ANNOTATOR))
    stranger = signed_in(member(other, Role.OWNER, "stranger"))
    for client in (annotator, stranger):
        assert client.get(run_url(run)).status_code == 404
        assert client.get(cell_url(run, 0, "a")).status_code == 404
    foreign = reverse("runs:run", args=["other", run.pk])
    assert stranger.get(foreign).status_code == 404


def test_an_htmx_request_for_a_cell_gets_the_panel_alone(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = ran(tmp_path, home)
    panel = page(reader, cell_url(run, 0, "a"), **{"HX-Request": "true"})
    assert "<html" not in panel and "Prompt as sent" in panel
    assert "Open as a page" in panel


def test_queries_are_as_many_for_many_agents_and_rounds_as_for_few(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    counts = []
    for agents, rounds in ((2, 1), (9, 4)):
        protocol = {
            "agents": [{"id": f"a{i}"} for i in range(agents)],
            "revision_rounds": rounds,
        }
        run = ran(tmp_path, home, protocol=protocol)
        assert run.verdicts.count() == agents * (rounds + 1)
        each = []
        for url in (run_url(run), cell_url(run, 1, "a0")):
            page(reader, url)  # The arm is read once in a process.
            with CaptureQueriesContext(connection) as seen:
                page(reader, url)
            each.append(len(seen))
        counts.append(each)
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 16, counts


def test_the_runs_of_an_experiment_that_turned_are_listed_by_first_and_last_answer(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = ran(tmp_path, home, turning, question_count=2)
    url = reverse("runs:experiment_turned", args=["home", run.experiment_id])
    broke, fixed = words(page(reader, url)), words(page(reader, f"{url}?went=fixed"))
    assert "a: 2 → 3" in broke and "b: 5 → 2" not in broke and "q2" not in broke
    assert "b: 5 → 2" in fixed and "a: 2 → 3" not in fixed
    assert run_url(run) in page(reader, url)
    assert "No run went so." in page(reader, f"{url}?after={run.position}")


def test_pages_of_runs_that_turned_lead_on_and_ask_as_often_for_many_runs_as_for_few(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    made = ran(tmp_path, home, turning, question_count=3).experiment
    url = reverse("runs:experiment_turned", args=["home", made.pk])
    page(reader, url)  # The arm is read once in a process.
    counts = []
    for most in (1, 100):
        with patch("runs.run_pages.turned.LOOKED_AT", most):
            with CaptureQueriesContext(connection) as seen:
                html = page(reader, url)
            counts.append(len(seen))
            assert ("after=0" in html) == (most == 1)
    assert counts[0] == counts[1] <= 10
    with patch("runs.run_pages.turned.WINDOW", 1):
        assert "after=0" in page(reader, url)
        assert "None among these runs." in page(reader, f"{url}?after=0")
        assert "No run went so." in page(reader, f"{url}?after=1")


def test_a_cut_reply_ends_between_characters() -> None:
    euro = "€".encode()
    assert cut_bytes(euro[:2], 3).text == ""
    assert cut_bytes(euro, 3).text == "€"
    assert cut_bytes(euro[:2], 2).text == "⟨0xE2⟩⟨0x82⟩"
    assert cut("abc", 2).is_cut and not cut("abc", 3).is_cut and not cut("abc", None).is_cut


def test_kept_and_added_words_are_the_new_text_and_kept_and_removed_ones_the_old() -> None:
    old, new = "  one two\nthree ", "one 2\n\nthree four"
    parts = changed_words(old, new)
    assert "".join(p.text for p in parts if p.change != "removed") == new
    assert "".join(p.text for p in parts if p.change != "added") == old


def test_a_wrong_answer_says_what_was_read_what_the_reference_is_and_why_it_is_wrong(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = ran(tmp_path, home, turning)
    shown = words(page(reader, cell_url(run, 1, "a")))
    assert "Why it counts as wrong" in shown and "right → wrong" in shown
    assert "it differs from the nearest reference, 2, by 1; the protocol allows 0." in shown
    assert "Read from the reply 3 By the rule" in shown and "Counted as 3 ; a value" in shown
    assert "Reference 2 which counts as 2" in shown and "Before 2 ✓ right" in shown
    back = words(page(reader, cell_url(run, 2, "b")))
    assert "wrong → right" in back and "as counted it is equal to a reference" in back


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("3 or 4"), ["Why it was not admitted", "invalid, which is no vote", "3 or 4"]),
        (said("I don't know"), ["an abstention, which is no vote", "I don&#x27;t know"]),
        (
            replied("I'm sorry, but I can't help with that."),
            ["a refusal, which is no vote", "a refusal holds no value"],
        ),
        (failed(BAD_REQUEST, "no"), ["No answer was read: the call did not succeed"]),
    ],
    ids=["invalid", "abstained", "refused", "failed"],
)
def test_what_is_no_vote_says_what_was_read_and_what_it_counts_as(
    tmp_path: Path, home: Workspace, reader: Client, reply: ProviderReply, expected: list[str]
) -> None:
    def script(call: Call) -> ProviderReply:
        return reply if (call.agent_id, call.t) == ("a", 1) else said("2")

    shown = words(page(reader, cell_url(ran(tmp_path, home, script), 1, "a")))
    for text in expected:
        assert text in shown


def test_the_matrix_shows_the_change_itself_and_leads_from_turn_to_turn(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    texts = {"a": ["2", "3", "3"], "b": ["2", "2", "4"], "c": ["2", "2", "2"]}

    def script(call: Call) -> ProviderReply:
        grown = "I looked again." if (call.agent_id, call.t) == ("c", 2) else "I added."
        return replied(f"{grown}\nFinal answer: {texts[call.agent_id][call.t]}")

    html = page(reader, run_url(ran(tmp_path, home, script)))
    assert "[removed: 2 ]" in cell_words(html, 1, 1) and "[added: 3 ]" in cell_words(html, 1, 1)
    assert "[added: looked again." in cell_words(html, 3, 2)
    assert "answer kept" in cell_words(html, 3, 2)
    assert "Word for word as version 1." in cell_words(html, 3, 1)
    assert 'href="#cell-2-2">next right → wrong' in html
    assert html.count('class="run-next"') == 1


def test_the_matrix_comes_before_the_observables_of_the_stop(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    html = page(reader, run_url(ran(tmp_path, home, turning)))
    assert html.index('id="matrix"') < html.index("changed_answers") < html.index("Settled")
    assert html.index('href="#stop"') < html.index('id="matrix"')


def test_runs_stand_under_experiments_in_the_navigation(
    tmp_path: Path, home: Workspace, reader: Client
) -> None:
    run = ran(tmp_path, home, turning)
    turned = reverse("runs:experiment_turned", args=["home", run.experiment_id])
    for url in (run_url(run), cell_url(run, 0, "a"), turned):
        assert 'aria-current="true">Experiments</a>' in page(reader, url), url
    listed = page(reader, reverse("runs:experiments", args=["home"]))
    assert 'aria-current="page">Experiments</a>' in listed


def test_an_excerpt_keeps_the_change_and_a_few_words_around_it() -> None:
    before = " ".join(f"w{i}" for i in range(40))
    excerpt = excerpt_of(changed_words(before, before.replace("w20", "new")), 240)
    shown = "".join(part.text for part in excerpt)
    assert shown == "… w16 w17 w18 w19 w20 new w21 w22 w23 w24 … "
    assert excerpt_of(changed_words(before, before), 240) == []
    long = excerpt_of(changed_words("a", "b" * 5_000), 100)
    assert sum(len(part.text) for part in long) <= 102
