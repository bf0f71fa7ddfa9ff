"""One way to store a protocol: its name is taken, its content stands once, whoever stores it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.db import transaction

from debateweb.errors import InputError
from debateweb.models import Workspace
from runs.models import Arm, Experiment, Kind, Name, ProtocolVersion
from runs.protocols.presets import load_preset, with_agents
from runs.protocols.spec import Protocol
from runs.services.imports import import_questions
from runs.services.naming import NameTakenError, kind_of
from runs.services.protocol_versions import save_version, version_of_arm
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories


@pytest.fixture
def home(db: None) -> Workspace:
    return factories.workspace()


def protocol(**parts: object) -> Protocol:
    return Protocol.model_validate_json(factories.protocol_text(**parts))


def test_an_arms_protocol_and_a_saved_one_are_one_version_under_one_name(home: Workspace) -> None:
    of_arm = version_of_arm(workspace=home, protocol=protocol(), actor=None)
    saved, is_new = save_version(workspace=home, protocol=protocol(), actor=None)
    assert (saved, is_new) == (of_arm, False)
    assert kind_of(workspace=home, name="test") == Kind.PROTOCOL
    changed, _ = save_version(workspace=home, protocol=protocol(revision_rounds=3), actor=None)
    assert changed.version == 2


def test_an_experiments_protocol_takes_its_name(home: Workspace, tmp_path: Path) -> None:
    factories.experiment(tmp_path, in_workspace=home)
    with pytest.raises(NameTakenError, match="'test' is taken"):
        import_questions(
            workspace=home, name="test", format_name="jsonl", records=factories.questions()
        )


def test_a_file_whose_name_is_something_elses_is_one_line_and_nothing_is_written(
    home: Workspace, tmp_path: Path
) -> None:
    import_questions(
        workspace=home, name="test", format_name="jsonl", records=factories.questions()
    )
    with pytest.raises(InputError) as raised:
        factories.experiment(tmp_path, in_workspace=home)
    assert str(raised.value) == (
        "arms[0].protocol: p.json: name: 'test' is taken by questions; "
        "give the protocol another name"
    )
    assert not Experiment.objects.exists()
    assert not ProtocolVersion.objects.exists()


def test_an_experiment_called_as_its_protocol_is_refused(home: Workspace, tmp_path: Path) -> None:
    with pytest.raises(NameTakenError, match="'test' is taken by experiment"):
        factories.experiment(tmp_path, in_workspace=home, name="test")
    assert not Name.objects.filter(name="test").exists()


def test_another_protocol_may_not_go_by_a_shipped_name(home: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"p\.json: name: 'du_2023' is a shipped protocol"):
        factories.experiment(tmp_path, in_workspace=home, protocol={"name": "du_2023"})


def test_a_shipped_protocol_runs_beside_questions_of_its_name(
    home: Workspace, tmp_path: Path
) -> None:
    import_questions(
        workspace=home, name="du_2023", format_name="jsonl", records=factories.questions()
    )
    models = {"default": factories.SIMULATED}
    arms: list[dict[str, object]] = [
        {"name": "as-it-is", "protocol": "du_2023", "models": models},
        {"name": "five", "protocol": "du_2023", "agents": 5, "models": models},
    ]
    made = factories.experiment(tmp_path, in_workspace=home, arms=arms)
    stored = Arm.objects.filter(experiment=made).order_by("position")
    assert [str(arm.protocol) for arm in stored] == ["du_2023 v1", "du_2023 v2"]
    assert kind_of(workspace=home, name="du_2023") == Kind.QUESTIONS


def test_a_copy_of_a_shipped_protocol_in_a_file_is_the_shipped_one(
    home: Workspace, tmp_path: Path
) -> None:
    own = json.loads(with_agents(load_preset("du_2023"), 4).model_dump_json())
    models = {"default": factories.SIMULATED}
    (tmp_path / "copy.json").write_text(json.dumps(own))
    arms = [{"name": "copy", "protocol": "copy.json", "models": models}]
    made = factories.experiment(tmp_path, in_workspace=home, arms=arms)
    assert made.arms.get().protocol.name == "du_2023"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_store_the_same_at_once_one_makes_the_version() -> None:
    home = factories.workspace()

    def other() -> int:
        return version_of_arm(workspace=home, protocol=protocol(), actor=None).pk

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            mine, is_new = save_version(workspace=home, protocol=protocol(), actor=None)
            waiting = pool.submit(in_own_session(other))
            wait_for_blocked_session()
        assert (waiting.result(timeout=10), is_new) == (mine.pk, True)
    assert ProtocolVersion.objects.get().version == 1
    assert Name.objects.filter(name="test").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_arms_of_a_shipped_protocol_at_once_one_makes_the_version() -> None:
    home = factories.workspace()
    shipped = load_preset("du_2023")

    def other() -> int:
        return version_of_arm(workspace=home, protocol=shipped, actor=None).pk

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            mine = version_of_arm(workspace=home, protocol=shipped, actor=None)
            waiting = pool.submit(in_own_session(other))
            wait_for_blocked_session()
        assert waiting.result(timeout=10) == mine.pk
    assert ProtocolVersion.objects.get().version == 1


@pytest.mark.django_db(transaction=True)
def test_different_protocols_stored_at_once_under_one_name_are_numbered_in_turn() -> None:
    home = factories.workspace()

    def other() -> int:
        changed = protocol(revision_rounds=4)
        return save_version(workspace=home, protocol=changed, actor=None)[0].version

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            version_of_arm(workspace=home, protocol=protocol(), actor=None)
            waiting = pool.submit(in_own_session(other))
            wait_for_blocked_session()
        assert waiting.result(timeout=10) == 2
