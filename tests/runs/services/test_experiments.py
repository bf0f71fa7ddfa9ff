"""Making experiments: every fault before the first call, in one line each, nothing written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from debateweb.errors import InputError
from debateweb.models import AuditEvent, Workspace
from runs.experiment_file import parse
from runs.importers.records import QuestionRecord
from runs.models import Account, Arm, Experiment, Name, ProtocolVersion, Question, QuestionSet, Run
from runs.protocols.spec import Protocol
from runs.services.experiments import create_experiment
from runs.services.imports import import_debates, import_questions
from runs.services.naming import NameTakenError
from tests.races import in_own_session, wait_for_blocked_session
from tests.runs import factories
from tests.runs.scripted import ScriptedGateway, said
from tests.runs.services.test_frozen_rows import a_debate

pytestmark = pytest.mark.django_db

TABLES = (Experiment, Run, Account, Arm, ProtocolVersion, QuestionSet, Question, Name, AuditEvent)
DEBATE = {"name": "debate", "protocol": "du_2023", "models": {"default": factories.SIMULATED}}
UNPRICED = """
models:
  mine:
    path: openai_compatible
    base_url: http://127.0.0.1:9/v1
"""


@pytest.fixture
def home() -> Workspace:
    made = factories.workspace()
    import_questions(
        workspace=made, name="set", format_name="jsonl", records=factories.questions(6)
    )
    return made


def make(
    home: Workspace,
    folder: Path,
    *arms: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    **parts: Any,
) -> Experiment:
    body = {"name": "e", "questions": "set", "arms": list(arms or [DEBATE]), **parts}
    return create_experiment(
        workspace=home, spec=parse(json.dumps(body), "e.yaml"), folder=folder, environ=environ or {}
    )


def counts() -> list[int]:
    return [model.objects.count() for model in TABLES]


def arm(**parts: Any) -> dict[str, Any]:
    return {**DEBATE, **parts}


@pytest.mark.parametrize(
    ("arms", "parts", "line"),
    [
        ([arm(protocol="nonesuch")], {}, "arms[0].protocol: there is no preset"),
        ([arm(protocol="no.yaml")], {}, "arms[0].protocol: there is no file 'no.yaml'"),
        ([arm(protocol="bad.yaml")], {}, "arms[0].protocol: bad.yaml:"),
        ([arm(models={"default": "nonesuch"})], {}, "arms[0].models.default: unknown model"),
        ([arm(models={"default": "simulated:accuracy=7"})], {}, "arms[0].models.default:"),
        ([arm(models={"default": "recorded:log"})], {}, "no imported debate set 'log'"),
        ([arm(models={"default": "mine"})], {}, "model mine: no price is known"),
        ([arm(models={"default": "openai/gpt-4.1-mini"})], {}, "set OPENAI_API_KEY"),
        ([arm(models={"other": "simulated:seed=1"})], {}, "no slot and no agent of that name"),
        ([arm(models={"a": "simulated:seed=1"})], {}, "no model for slot 'default'"),
        (
            [DEBATE, {"name": "b", "protocol": "single", "branch_from": {"arm": "debate"}}],
            {},
            "arms[1].branch_from: agents",
        ),
        ([DEBATE], {"questions": "nonesuch"}, "questions: there is no set and no file 'nonesuch'"),
        ([DEBATE], {"sample": {"n": 7}}, "sample.n: 7 questions are wanted, 6 are there"),
        ([DEBATE], {"evidence_package": "docs"}, "evidence_package: "),
    ],
)
def test_a_fault_is_one_clear_line_and_nothing_is_written(
    home: Workspace, tmp_path: Path, arms: list[Any], parts: dict[str, Any], line: str
) -> None:
    (tmp_path / "models.yaml").write_text(UNPRICED)
    (tmp_path / "bad.yaml").write_text("name: bad\nagents: []\n")
    before = counts()
    with pytest.raises(InputError) as raised:
        make(home, tmp_path, *arms, **parts)
    lines = str(raised.value).splitlines()
    assert any(line in each for each in lines), lines
    assert counts() == before


def test_all_faults_are_told_at_once(home: Workspace, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        make(
            home,
            tmp_path,
            arm(protocol="nonesuch"),
            arm(name="two", models={"default": "nonesuch"}),
            arm(name="three", models={"default": "openai/gpt-4.1-mini"}),
        )
    lines = str(raised.value).splitlines()
    assert len(lines) == 3, lines


def test_a_models_file_with_faults_is_told_by_line(home: Workspace, tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("models:\n  mine:\n    price: much\n")
    with pytest.raises(InputError, match=r"models\.yaml:\d+: "):
        make(home, tmp_path)


def test_a_key_in_the_environment_is_enough_and_is_not_stored(
    home: Workspace, tmp_path: Path
) -> None:
    secret = "sk-not-to-be-stored"
    made = make(
        home,
        tmp_path,
        arm(models={"default": "openai/gpt-4.1-mini"}),
        environ={"OPENAI_API_KEY": secret},
        budget={"microusd_per_run": 10**6},
    )
    stored = json.dumps([made.spec, made.arms.get().bindings])
    assert secret not in stored
    assert made.arms.get().marked == ""


def test_a_file_of_questions_stays_unwritten_when_an_arm_has_faults(
    home: Workspace, tmp_path: Path
) -> None:
    a_file_of_questions(tmp_path)
    before = counts()
    with pytest.raises(InputError):
        make(home, tmp_path, arm(protocol="nonesuch"), questions="mine.jsonl")
    assert counts() == before


def a_file_of_questions(folder: Path) -> None:
    lines = [
        json.dumps(
            {
                "id": f"m{i}",
                "question": f"What is {i}?",
                "reference": str(i),
                "answer_type": "number",
                "split": "test" if i % 2 else "validation",
            }
        )
        for i in range(5)
    ]
    (folder / "mine.jsonl").write_text("\n".join(lines))


def test_a_file_of_questions_becomes_a_set_of_its_name(home: Workspace, tmp_path: Path) -> None:
    a_file_of_questions(tmp_path)
    made = make(home, tmp_path, questions="mine.jsonl")
    assert made.question_set.name == "mine"
    assert made.runs.count() == 5
    again = make(home, tmp_path, name="again", questions="mine.jsonl")
    assert again.question_set == made.question_set


def test_only_the_questions_of_the_split_are_run(home: Workspace, tmp_path: Path) -> None:
    a_file_of_questions(tmp_path)
    made = make(home, tmp_path, questions="mine.jsonl", analysis={"split": "test"})
    ids = made.runs.order_by("position").values_list("question__external_id", flat=True)
    assert list(ids) == ["m1", "m3"]
    whole = make(home, tmp_path, name="whole", analysis={"split": "test"})
    assert whole.runs.count() == 6, "a set that knows no splits is all of it"


def test_a_split_that_the_set_does_not_hold_is_one_clear_line(
    home: Workspace, tmp_path: Path
) -> None:
    records = [
        QuestionRecord("x", "What?", ("1",), "number", split="validation"),
    ]
    import_questions(workspace=home, name="val", format_name="jsonl", records=records)
    with pytest.raises(InputError, match="questions: 'val' holds none of split 'test'"):
        make(home, tmp_path, questions="val", analysis={"split": "test"})


def test_the_same_specification_is_the_same_experiment(home: Workspace, tmp_path: Path) -> None:
    first = make(home, tmp_path)
    before = counts()
    assert make(home, tmp_path) == first
    assert counts() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("seed", "ends"), [(1, "the same"), (2, "another specification")])
def test_of_two_who_make_an_experiment_at_once_one_makes_it(
    home: Workspace, tmp_path: Path, seed: int, ends: str
) -> None:
    def other() -> str:
        try:
            make(home, tmp_path, seeds=[seed])
        except NameTakenError as exc:
            return exc.message
        return "the same"

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            make(home, tmp_path, seeds=[1])
            waiting = pool.submit(in_own_session(other))
            wait_for_blocked_session()
        assert ends in waiting.result(timeout=10)
    assert Experiment.objects.count() == 1


def test_another_specification_under_the_same_name_is_refused(
    home: Workspace, tmp_path: Path
) -> None:
    make(home, tmp_path)
    before = counts()
    with pytest.raises(NameTakenError, match="'e' exists with another specification"):
        make(home, tmp_path, seeds=[2])
    assert counts() == before


def test_a_name_of_another_kind_is_refused(home: Workspace, tmp_path: Path) -> None:
    with pytest.raises(NameTakenError, match="'set' is taken"):
        make(home, tmp_path, name="set")


def test_arms_questions_and_seeds_are_crossed_question_by_question(
    home: Workspace, tmp_path: Path
) -> None:
    made = make(
        home,
        tmp_path,
        DEBATE,
        {"name": "b", "protocol": "du_2023", "branch_from": {"arm": "debate"}},
        seeds=[1, 2],
        limit=2,
    )
    rows = made.runs.order_by("position").values_list("question__external_id", "seed", "arm__name")
    assert list(rows) == [
        (q, seed, name) for q in ("q1", "q2") for seed in (1, 2) for name in ("debate", "b")
    ]
    for run in made.runs.filter(arm__name="b"):
        source = run.branch_source
        assert source is not None
        assert (source.question_id, source.seed, source.arm.name) == (
            run.question_id,
            run.seed,
            "debate",
        )


def test_a_chain_of_branches_is_stored_whole(home: Workspace, tmp_path: Path) -> None:
    made = make(
        home,
        tmp_path,
        DEBATE,
        {"name": "b", "protocol": "du_2023", "branch_from": {"arm": "debate"}},
        {"name": "c", "protocol": "du_2023", "branch_from": {"arm": "b"}},
    )
    assert made.runs.count() == 18
    assert made.runs.filter(arm__name="c", branch_source__arm__name="b").count() == 6


def test_matched_by_money_an_agent_counts_at_the_price_of_its_own_model(
    home: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "models.yaml").write_text(
        """
models:
  dear:
    base_url: http://127.0.0.1:9/v1
    price: {input_microusd_per_mtok: 0, output_microusd_per_mtok: 1000000}
"""
    )
    models = {"default": factories.SIMULATED, "b": "dear"}
    match = {"arm": "debate", "by": "microusd"}
    vote = {"name": "vote", "protocol": "self_consistency", "match": match}
    made = make(home, tmp_path, arm(models=models), {**vote, "models": {"default": "dear"}})
    sampled = Protocol.model_validate_json(made.arms.get(name="vote").protocol.canonical)
    assert len(sampled.agents) == 2, "one of three agents costs anything, and answers twice"


def test_the_number_of_matched_samples_is_resolved_before_hashing(
    home: Workspace, tmp_path: Path
) -> None:
    made = make(
        home,
        tmp_path,
        DEBATE,
        {
            "name": "vote",
            "protocol": "self_consistency",
            "match": {"arm": "debate", "by": "output_tokens"},
        },
    )
    vote = Protocol.model_validate_json(made.arms.get(name="vote").protocol.canonical)
    assert len(vote.agents) == 6, "three agents who answer twice"
    assert made.runs.filter(arm__name="vote").first().protocol_hash == (  # type: ignore[union-attr]
        made.arms.get(name="vote").protocol.protocol_hash
    )


def test_a_sample_is_the_same_wherever_it_is_drawn(home: Workspace, tmp_path: Path) -> None:
    def drawn(name: str, workspace: Workspace, seed: int) -> list[str]:
        made = make(workspace, tmp_path, name=name, sample={"n": 3, "seed": seed})
        ids = made.runs.order_by("position").values_list("question__external_id", flat=True)
        return list(ids)

    elsewhere = factories.workspace()
    import_questions(
        workspace=elsewhere, name="set", format_name="jsonl", records=factories.questions(6)
    )
    samples = [drawn(f"s{seed}", home, seed) for seed in range(8)]
    assert samples[0] == drawn("other", elsewhere, 0)
    assert len({tuple(sample) for sample in samples}) > 1
    assert all(sample == sorted(sample) and len(sample) == 3 for sample in samples)


def test_a_stratified_sample_shares_equally(home: Workspace, tmp_path: Path) -> None:
    records = [
        QuestionRecord(f"q{i}", f"What is {i}?", ("1",), "number", stratum="ab"[i > 1])
        for i in range(10)
    ]
    import_questions(workspace=home, name="strata", format_name="jsonl", records=records)
    made = make(home, tmp_path, questions="strata", sample={"n": 5, "seed": 1, "by": "stratum"})
    strata = list(made.runs.values_list("question__stratum", flat=True))
    assert (strata.count("a"), strata.count("b")) == (2, 3)


def test_a_recorded_set_must_answer_the_same_questions(home: Workspace, tmp_path: Path) -> None:
    import_debates(workspace=home, name="log", format_name="jsonl", records=[a_debate()])
    replay = arm(protocol="du_replay", models={"default": "recorded:log"})
    with pytest.raises(InputError, match="'log' answers other questions than 'set'"):
        make(home, tmp_path, replay)
    made = make(home, tmp_path, replay, questions="log")
    assert made.arms.get().marked == "recorded"


def test_the_mark_of_an_arm_says_what_answers_in_it(home: Workspace, tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text(factories.MODELS)
    made = make(
        home,
        tmp_path,
        DEBATE,
        arm(name="both", models={"default": factories.SIMULATED, "a": "scripted"}),
    )
    assert list(made.arms.order_by("position").values_list("marked", flat=True)) == [
        "simulated",
        "mixed",
    ]


def test_one_protocol_is_stored_once_and_a_changed_file_is_a_new_version(
    home: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    path.write_text(factories.protocol_text())
    mine = arm(protocol="p.json")
    make(home, tmp_path, mine, name="e1")
    make(home, tmp_path, mine, name="e2")
    path.write_text(factories.protocol_text(revision_rounds=1))
    make(home, tmp_path, mine, name="e3")
    versions = ProtocolVersion.objects.filter(name="test").order_by("version")
    assert list(versions.values_list("version", flat=True)) == [1, 2]
    assert Arm.objects.filter(protocol=versions[0]).count() == 2


def test_the_same_specification_with_a_changed_protocol_file_is_refused(
    home: Workspace, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    path.write_text(factories.protocol_text())
    make(home, tmp_path, arm(protocol="p.json"))
    path.write_text(factories.protocol_text(revision_rounds=1))
    with pytest.raises(NameTakenError, match="another protocol of arm 'debate'"):
        make(home, tmp_path, arm(protocol="p.json"))


def test_a_run_without_caps_of_its_own_can_pay_what_its_protocol_can_use(
    home: Workspace, tmp_path: Path
) -> None:
    made = factories.experiment(tmp_path)
    account = made.runs.get().account
    assert account.cap_output_tokens is not None and account.cap_microusd is not None
    gateway = ScriptedGateway(lambda c: said("2", output_tokens=c.request.max_output_tokens))
    factories.finish(made, gateway)
    assert made.runs.get().stop_reason == "round_limit"
