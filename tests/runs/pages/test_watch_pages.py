"""The page of one experiment: what moves, when asking ends, and the hands on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.cache import cache, caches
from django.db import connection
from django.test import Client
from django.utils import timezone
from kombu.exceptions import OperationalError
from pytest_django.live_server_helper import LiveServer
from redis.exceptions import ConnectionError as RedisConnectionError

from debateweb.celery import heartbeat_key
from debateweb.models import Role, User, Workspace
from runs.models import Experiment, ExperimentStatus, Run, RunStatus
from runs.queries_experiments import calls_of, pace_of
from runs.services import experiments
from runs.templatetags.humanwords import breakable, duration
from runs.watch_views import ACTS
from tests.debateweb.people import member, signed_in
from tests.runs import factories
from tests.runs.scripted import ScriptedGateway

pytestmark = pytest.mark.django_db
POLLS = "hx-trigger"
HTMX = {"HX-Request": "true"}
SWAPS = 50


@pytest.fixture
def home() -> Workspace:
    cache.clear()
    return Workspace.objects.create(name="home")


@pytest.fixture(autouse=True)
def _no_worker_afterwards() -> Iterator[None]:
    yield
    cache.delete(heartbeat_key("rounds"))


@pytest.fixture
def client(home: Workspace) -> Client:
    return signed_in(member(home, Role.RESEARCHER))


@pytest.fixture
def made(home: Workspace, tmp_path: Path) -> Experiment:
    return factories.experiment(
        tmp_path, in_workspace=home, question_count=4, model=factories.SIMULATED
    )


def url(experiment: Experiment, end: str = "") -> str:
    return f"/w/home/experiments/{experiment.pk}/{end}"


def fragment(client: Client, experiment: Experiment) -> str:
    return client.get(url(experiment), headers=HTMX).content.decode()


def moved(experiment: Experiment, status: ExperimentStatus) -> None:
    Experiment.objects.filter(pk=experiment.pk).update(status=status)


def test_the_page_shows_what_was_promised_with_its_hashes(client: Client, made: Experiment) -> None:
    page = client.get(url(made)).content.decode()
    assert made.spec_hash in page
    assert made.analysis_hash in page
    assert "accuracy_T" in page
    assert page.count("<h1>") == 1


def test_a_fragment_is_a_part_of_the_page_and_no_page(client: Client, made: Experiment) -> None:
    part = fragment(client, made)
    assert part.strip().startswith('<section id="moving"')
    assert "<html" not in part
    assert client.get(url(made))["vary"].count("HX-Request")


@pytest.mark.parametrize(
    ("status", "polls"),
    [
        (ExperimentStatus.READY, False),
        (ExperimentStatus.RUNNING, True),
        (ExperimentStatus.PAUSED, False),
        (ExperimentStatus.AWAITING_CONFIRMATION, False),
        (ExperimentStatus.CANCELLED, True),  # Its pending runs have still to end.
    ],
)
def test_asking_ends_where_nothing_can_change(
    client: Client, made: Experiment, status: ExperimentStatus, polls: bool
) -> None:
    moved(made, status)
    assert (POLLS in fragment(client, made)) == polls


def test_a_paused_experiment_is_asked_about_until_no_worker_holds_a_round(
    client: Client, made: Experiment
) -> None:
    run = factories.begin(made)[0]
    experiments.pause(experiment=made)
    assert POLLS not in fragment(client, made)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now() + timedelta(minutes=1))
    assert POLLS in fragment(client, made)


def test_a_finished_experiment_is_not_asked_about(client: Client, made: Experiment) -> None:
    experiments.cancel(experiment=made)
    experiments.end_pending(made)
    moved(made, ExperimentStatus.FINISHED)
    part = fragment(client, made)
    assert POLLS not in part
    assert "is finished" in part


def test_the_last_answer_brings_the_runs_as_they_ended_and_takes_the_message_away(
    client: Client, made: Experiment
) -> None:
    experiments.start(experiment=made)
    asked = url(made) + "?arm=debate"
    going = client.get(asked, headers=HTMX).content.decode()
    assert f'hx-get="{asked}"' in going  # So that the last one knows the filter.
    assert "runs-list" not in going
    factories.finish(made)
    last = client.get(asked, headers=HTMX).content.decode()
    assert POLLS not in last
    assert '<div id="runs-list" hx-swap-oob="true">' in last
    assert last.count("</span> done</span>") == 4
    assert "does not move under your hands" not in last
    assert '<div id="said" hx-swap-oob="true"></div>' in last
    assert "hx-swap-oob" not in client.get(asked).content.decode()
    nothing = client.get(url(made) + "?status=PENDING", headers=HTMX).content.decode()
    assert "No run is like that" in nothing


def test_the_report_of_this_experiment_is_one_click_away(client: Client, made: Experiment) -> None:
    page = client.get(url(made)).content.decode()
    address = f"/w/home/reports/{made.name}/"
    assert f'href="{address}"' in page
    assert client.get(address).status_code == 200


def test_what_limits_calls_and_what_limits_money_have_names_of_their_own(
    client: Client, home: Workspace, tmp_path: Path
) -> None:
    made = factories.experiment(
        tmp_path,
        in_workspace=home,
        model=factories.SIMULATED,
        concurrency=7,
        budget={"microusd_total": 3_000_000},
    )
    page = client.get(url(made)).content.decode()
    assert "concurrency: 7 at once" in page
    assert "Spending cap" in page
    assert page.count("$3.00") == 2  # The cap, and what of it is left.


def test_a_dead_worker_reads_stalled_and_says_what_to_do(client: Client, made: Experiment) -> None:
    run = factories.begin(made)[0]
    assert 'id="said"' in fragment(client, made)  # "It has started." is no news then.
    late = timezone.now() - timedelta(minutes=1)
    Run.objects.filter(pk=run.pk).update(lease_expires_at=late, lease_owner="gone")
    part = fragment(client, made)
    assert "Stalled: no worker" in part
    assert "1 run under way has nobody" in part
    cache.set(heartbeat_key("rounds"), time.time(), 60)
    assert "Stalled" not in fragment(client, made)


def test_what_a_worker_holds_is_not_stalled(client: Client, made: Experiment) -> None:
    run = factories.begin(made)[0]
    Run.objects.filter(pk=run.pk).update(lease_expires_at=timezone.now() + timedelta(minutes=1))
    assert "Stalled" not in fragment(client, made)


def test_calls_are_counted_by_status_and_kind_of_error(client: Client, made: Experiment) -> None:
    factories.finish(made)
    calls = calls_of(made)
    assert calls.attempts == sum(o.attempts for o in calls.outcomes) == 36
    assert (calls.in_flight, calls.without_outcome, calls.retries) == (0, 0, 0)
    page = client.get(url(made)).content.decode()
    assert "4 done, 0 running, 0 pending" in page
    assert "36, of them 0 retries" in page
    stop = made.runs.values_list("stop_reason", flat=True).distinct().get()
    assert f"?arm=debate&amp;stop={stop}#runs" in page


def test_calls_of_few_runs_are_counted_when_one_ends_and_of_many_now_and_then(
    client: Client, made: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runs.queries_experiments.COUNTED_FOR_SECONDS", 600)
    first, *others = factories.begin(made)
    assert "0, of them 0 retries" in fragment(client, made)
    monkeypatch.setattr("runs.watch_views._has_worker", lambda: True)
    for _ in range(3):
        first = factories.execute(first, ScriptedGateway())
    assert "9, of them 0 retries" in fragment(client, made)
    monkeypatch.setattr("runs.watch_views.FEW_RUNS", 0)
    assert "9, of them 0 retries" in fragment(client, made)
    for _ in range(3):
        others[0] = factories.execute(others[0], ScriptedGateway())
    assert "9, of them 0 retries" in fragment(client, made)  # As it was counted before.


def test_the_pace_says_how_long_the_rest_takes(made: Experiment) -> None:
    now = timezone.now()
    for place, run in enumerate(made.runs.order_by("position")[:3]):
        Run.objects.filter(pk=run.pk).update(
            status=RunStatus.DONE,
            stop_reason="ROUND_BUDGET",
            ended_at=now - timedelta(seconds=60 - 20 * place),
        )
    pace = pace_of(made, left=6)
    assert pace is not None
    assert pace.runs == 3
    assert pace.seconds_left == pytest.approx(2 * pace.seconds)
    assert 60 <= pace.seconds < 70
    assert pace_of(made, left=0) is None


def test_the_page_answers_while_the_broker_is_away(
    client: Client, made: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise RedisConnectionError("gone")

    moved(made, ExperimentStatus.RUNNING)
    backend = type(caches["default"])
    monkeypatch.setattr(backend, "get", refuse)
    monkeypatch.setattr(backend, "set", refuse)
    assert "Stalled: no worker" in fragment(client, made)


def test_start_pause_resume_and_cancel_each_work_once(client: Client, made: Experiment) -> None:
    for act, status in (
        ("start", ExperimentStatus.RUNNING),
        ("pause", ExperimentStatus.PAUSED),
        ("resume", ExperimentStatus.RUNNING),
        ("cancel", ExperimentStatus.CANCELLED),
    ):
        for _ in range(2):  # A second press changes nothing and is no fault.
            reply = client.post(url(made, act), follow=True)
            assert reply.status_code == 200
            assert "Nothing was changed" not in reply.content.decode()
        made.refresh_from_db()
        assert made.status == status
    assert not made.runs.exclude(status=RunStatus.DONE).exists()  # No worker: ended here.


def test_a_start_that_no_broker_hears_is_noted_and_said(
    client: Client, made: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unheard(*, experiment: Experiment, actor: User | None) -> None:
        moved(experiment, ExperimentStatus.RUNNING)
        raise OperationalError("gone")

    monkeypatch.setitem(ACTS, "start", (unheard, ExperimentStatus.RUNNING, ""))
    page = client.post(url(made, "start"), follow=True).content.decode()
    assert "the broker does not answer" in page


def test_what_cannot_be_done_now_is_said_in_words(client: Client, made: Experiment) -> None:
    page = client.post(url(made, "resume"), follow=True).content.decode()
    assert "is READY; resume needs PAUSED" in page
    assert "Nothing was changed" in page


def test_a_cancel_is_asked_about_first(client: Client, made: Experiment) -> None:
    page = client.get(url(made, "cancel")).content.decode()
    assert f"Cancel {made.name}?" in page
    made.refresh_from_db()
    assert made.status == ExperimentStatus.READY


def test_a_reader_sees_and_cannot_touch(home: Workspace, made: Experiment) -> None:
    reader = signed_in(member(home, Role.READER))
    page = reader.get(url(made)).content.decode()
    assert "Start</button>" not in page
    assert reader.post(url(made, "start")).status_code == 404


def test_the_stage_asks_with_its_figures_and_goes_on_when_confirmed(
    client: Client, home: Workspace, tmp_path: Path
) -> None:
    arms = [
        {"name": name, "protocol": "p.json", "models": {"default": factories.SIMULATED}}
        for name in ("a", "b")
    ]
    made = factories.experiment(
        tmp_path,
        in_workspace=home,
        question_count=3,
        arms=arms,
        budget={"stage": {"questions": 1}},
        analysis={"contrasts": [["a", "b"]]},
    )
    moved(made, ExperimentStatus.AWAITING_CONFIRMATION)
    page = client.get(url(made)).content.decode()
    assert "Projected for the whole" in page
    assert "a against b" in page
    client.post(url(made, "confirm"))
    made.refresh_from_db()
    assert (made.status, made.stage_confirmed_at is not None) == (ExperimentStatus.RUNNING, True)


def test_runs_are_filtered_and_paged_by_position(
    client: Client, home: Workspace, tmp_path: Path
) -> None:
    made = factories.experiment(tmp_path, in_workspace=home, question_count=60)
    first = client.get(url(made)).content.decode()
    assert "?after=49#runs" in first
    second = client.get(url(made) + "?after=49").content.decode()
    assert ">q51<" in second
    assert ">q50<" not in second
    assert "No run is like that" in client.get(url(made) + "?status=DONE").content.decode()
    assert ">q1<" in client.get(url(made) + "?arm=debate&status=PENDING").content.decode()
    for odd in ("?after=x", "?after=99999999999", "?arm=%00", "?stop=%F0%9F%98%80"):
        assert client.get(url(made) + odd).status_code == 200


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (12_000, "3 h 20 min"),
        (183_600, "2 days 3 h"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_a_long_name_breaks_after_its_marks_and_stays_harmless() -> None:
    assert breakable("a/b:c=1,d") == "a/<wbr>b:<wbr>c=1,<wbr>d<wbr>"
    assert breakable("<b>,") == "&lt;b&gt;,<wbr>"


@pytest.mark.django_db(transaction=True)
def test_fifty_swaps_leave_no_connection_behind(
    client: Client, made: Experiment, live_server: LiveServer
) -> None:
    address = urlsplit(live_server.url)
    session = client.cookies[settings.SESSION_COOKIE_NAME].value
    headers = {**HTMX, "Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}
    before = 0
    for swap in range(SWAPS):
        browser = HTTPConnection(address.hostname or "", address.port)
        browser.request("GET", url(made), headers=headers)
        assert b'id="moving"' in browser.getresponse().read()
        browser.close()
        if swap == 4:
            before = connections()
    assert connections() <= before


def connections() -> int:
    """Return how many connections the test's database has."""
    time.sleep(0.2)  # The server notices a closed one a moment later.
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
        return int(cursor.fetchone()[0])
