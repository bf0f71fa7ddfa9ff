"""`experiment check`, and what is said when a stage has ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from audits.stage import stage_of
from debateweb.errors import InputError
from runs import dispatch
from runs.models import Experiment, ExperimentStatus, QuestionSet
from tests.audits.reports.experiments import THREE_ARMS, Deaf, executed, made, questions_file

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "current_app", Deaf())


def written(folder: Path, budget: str = "") -> Path:
    questions = questions_file(folder, 12)
    text = THREE_ARMS.replace("NAME", "checked").replace("QUESTIONS", questions.name)
    path = folder / "checked.yaml"
    path.write_text(text + budget)
    return path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    call_command("experiment", *words, "--json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_check_tells_expectation_and_bound_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = said(capsys, "check", str(written(tmp_path)))
    assert (plan["questions"], plan["runs"]) == (12, 36)
    debate, alone, vote = plan["arms"]
    assert debate["expected_output_tokens"] == 2 * alone["expected_output_tokens"] == 6 * 400
    assert all(a["expected_output_tokens"] < a["bound_output_tokens"] for a in (debate, vote))
    assert debate["marked"] == "simulated"
    assert not Experiment.objects.exists()
    assert not QuestionSet.objects.exists()


def test_a_check_names_every_fault_at_once(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.write_text(
        path.read_text()
        .replace("protocol: du_2023", "protocol: nobody_2023")
        .replace("protocol: self_consistency", "protocol: single.yaml")
    )
    with pytest.raises(InputError) as caught:
        call_command("experiment", "check", str(path))
    lines = str(caught.value).splitlines()
    assert [line.rpartition("checked.yaml:")[2].split(": ")[:2] for line in lines] == [
        ["6", "arms[0].protocol"],
        ["11", "arms[2].protocol"],
    ]


def test_an_ended_stage_tells_what_the_whole_would_cost_and_find(tmp_path: Path) -> None:
    path = written(tmp_path, "budget: {stage: {questions: 8}}\n")
    experiment = executed(made(path.read_text(), tmp_path))
    experiment.refresh_from_db()
    assert experiment.status == ExperimentStatus.AWAITING_CONFIRMATION
    stage = stage_of(experiment)
    assert (stage.runs_done, stage.runs) == (24, 36)
    assert (stage.truncated_share, stage.invalid_share) == (0.0, 0.0)
    assert [(c.a, c.b) for c in stage.contrasts] == [("debate", "vote"), ("debate", "revise-alone")]
    for contrast in stage.contrasts:
        assert contrast.stage_questions == 8
        assert (contrast.mde_80 is None) == (contrast.discordance == 0)


@pytest.mark.parametrize(("content", "said"), [(None, "Is a directory"), (b"\xff", "not UTF-8")])
def test_a_file_that_cannot_be_read_is_named_once(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "exp.yaml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match=said) as told:
        call_command("experiment", "check", str(path))
    assert told.value.message.count(str(path)) == 1
