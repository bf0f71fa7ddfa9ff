"""Published judgments, in small sets of the same form."""

from __future__ import annotations

import io
import json
import stat
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from runs.importers import beside
from runs.importers.faults import ImportFaults
from runs.importers.judged_records import JudgmentRecord, LabelRecord
from runs.importers.judged_registry import read_judgments, read_labels
from runs.importers.records import DebateRecord
from tests.runs.importers.helpers import debate_faults, debates, lines
from tests.runs.importers.judged import judgment_faults, judgments, put, set_faults

HEADER = "subset,evaluator,item,gold,winner_order_ab,winner_order_ba,stage1_ab,stage1_ba\n"
PAIR = {"input": "2 + 2?", "output_1": "4", "output_2": "5", "label": 1}


def said(records: list[JudgmentRecord]) -> list[tuple[str, str, str | None, str]]:
    return [(r.judge.name, r.order[0], r.verdict, r.status) for r in records]


def an_llmbar(folder: Path, rows: str, items: Any = (PAIR,)) -> Path:
    put(folder, "items/Set__One.json", list(items))
    return put(folder, "verdicts.csv", HEADER + rows).parent


def test_llmbar_says_who_won_under_each_order(tmp_path: Path) -> None:
    an_llmbar(tmp_path, "Set/One,GPT-4/Vanilla,0,1,1,2,,\n")
    found = list(read_judgments(tmp_path))
    assert said(found) == [
        ("GPT-4/Vanilla", "output_1", "output_1", "SUCCEEDED"),
        ("GPT-4/Vanilla", "output_2", "output_2", "SUCCEEDED"),
    ]
    item = found[0].item
    assert (item.item_id, item.group, item.gold) == ("Set/One/0", "Set/One", "output_1")
    assert [candidate.text for candidate in item.candidates] == ["4", "5"]
    assert (item.question, found[0].judge.model) == ("2 + 2?", "GPT-4")


def test_llmbar_keeps_an_unreadable_verdict_apart_from_a_tie(tmp_path: Path) -> None:
    an_llmbar(tmp_path, "Set/One,GPT-4/Vanilla,0,1,,2,,\n")
    assert said(list(read_judgments(tmp_path)))[0][2:] == (None, "INVALID")


def test_the_first_of_two_stages_is_a_judge_of_its_own(tmp_path: Path) -> None:
    an_llmbar(tmp_path, "Set/One,GPT-4/Swap,0,1,1,1,1,2\n")
    found = list(read_judgments(tmp_path))
    assert [judge for judge, *_ in said(found)] == ["GPT-4/Swap"] * 2 + [
        "GPT-4/Swap (first stage)"
    ] * 2
    assert len({record.judge.judge_hash for record in found}) == 2


def test_llmbar_without_its_items_says_that_the_texts_are_missing() -> None:
    found = judgments(HEADER + "Set/One,GPT-4/Vanilla,7,2,1,2,,\n", None)
    assert found[0].item.metadata == {"texts": "not in the file"}
    assert found[0].item.question == "Set/One/7"


def test_a_subset_is_never_a_path_outside_of_the_set(tmp_path: Path) -> None:
    put(tmp_path, "secret.json", [PAIR])
    put(tmp_path, "set/items/x.json", [PAIR])
    put(tmp_path, "set/verdicts.csv", HEADER + '"../../secret",GPT-4/V,0,1,1,1,,\n')
    (first, _) = read_judgments(tmp_path / "set")
    assert first.item.candidates[0].text == ""


def test_a_result_file_of_llmbar_is_read_with_its_name(tmp_path: Path) -> None:
    result = {
        "swap = False": {"completion": ["Output (a)", "stop"], "winner": "1"},
        "swap = True": {"completion": ["?", "stop"], "winner": None},
    }
    path = put(tmp_path, "Set__One__GPT-4__Vanilla.json", [{**PAIR, "results": [result]}])
    found = list(read_judgments(path))
    assert said(found) == [
        ("GPT-4/Vanilla", "output_1", "output_1", "SUCCEEDED"),
        ("GPT-4/Vanilla", "output_2", None, "INVALID"),
    ]
    assert found[0].rationale == "Output (a)"


def test_two_stages_are_read_as_an_answer_and_its_revision() -> None:
    rows = "Set/One,GPT-4/Swap,0,1,1,1,1,2\nSet/One,GPT-4/Vanilla,0,1,1,1,,\n"
    (record,) = debates(HEADER + rows, None)
    assert [[turn.answer for turn in turns] for turns in record.rounds] == [
        ["output_1", "output_2"],
        ["output_1", "output_1"],
    ]
    assert (record.protocol, record.question.reference) == ("GPT-4/Swap", ("output_1",))


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("Set/One,GPT-4/V,x,1,1,1,,", 'item: must be a whole number from 0, not "x"'),
        ("Set/One,GPT-4/V,0,3,1,1,,", 'gold: must be one of 1, 2, not "3"'),
        ("Set/One,GPT-4/V,0,1,tie,1,,", 'winner_order_ab: must be one of 1, 2, not "tie"'),
        (",GPT-4/V,0,1,1,1,,", "subset: is null"),
    ],
)
def test_a_faulty_row_of_llmbar_is_refused(row: str, fault: str) -> None:
    good = "Set/One,GPT-4/V,0,1,1,1,,\n"
    assert judgment_faults(HEADER + good + row + "\n", "llmbar") == [f"j.jsonl:3: {fault}"]


def test_a_folder_without_what_the_format_needs_is_refused(tmp_path: Path) -> None:
    assert set_faults(tmp_path, "llmbar") == [
        "SET: file: the folder holds no verdicts.csv or *__*__*.json"
    ]
    assert set_faults(tmp_path, "jsonl") == ["SET: file: cannot be read: Is a directory"]


def a_pair(idx: int = 0, **changes: Any) -> dict[str, Any]:
    return {
        "idx": idx,
        "motivation_app": "Mail",
        "cmp_key": "m1_m2",
        "instruction": "Shorten.",
        "input": f"Text {idx}",
        "response1": "T.",
        "response2": True,
        "annotator1": 1,
        "annotator2": 0,
        "annotator3": 1,
        **changes,
    }


def a_pandalm(folder: Path, *results: Any) -> Path:
    put(folder, "testset-v1.json", [a_pair(n) for n in range(len(results))])
    verdicts = [{"idx": n, "gpt_result": one, "gpt_reason": "so"} for n, one in enumerate(results)]
    return put(folder, "gpt-9-testset-v1.json", verdicts)


def test_pandalm_joins_a_judge_with_the_pairs_beside_it(tmp_path: Path) -> None:
    path = a_pandalm(tmp_path, "1", 2, "Tie", 0, "garbage")
    found = list(read_judgments(path))
    assert [record.verdict for record in found] == ["response1", "response2", "tie", "tie", None]
    assert (found[4].status, found[4].metadata["said"]) == ("INVALID", "garbage")
    assert found[0].judge.name == "gpt-9"
    assert [c.model for c in found[0].item.candidates] == ["m1", "m2"]
    assert (found[0].item.gold, found[0].item.candidates[1].text) == ("response1", "true")
    assert list(read_judgments(tmp_path)) == found


def test_three_people_who_all_disagree_are_no_gold(tmp_path: Path) -> None:
    path = a_pandalm(tmp_path, 1)
    put(tmp_path, "testset-v1.json", [a_pair(annotator3=2)])
    (record,) = read_judgments(path)
    assert record.item.gold is None


def test_pandalm_has_three_people_a_pair(tmp_path: Path) -> None:
    put(tmp_path, "testset-v1.json", [a_pair()])
    found = list(read_labels(tmp_path))
    order = ("response1", "response2")
    assert found == [
        LabelRecord("pandalm-0000", f"annotator{n}", "pairwise", label, shown_order=order)
        for n, label in ((1, "response1"), (2, "tie"), (3, "response1"))
    ]


def test_a_judge_without_the_pairs_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "gpt-testset-v1.json", [{"idx": 0, "gpt_result": 1}])
    assert set_faults(path, "pandalm") == [
        "gpt-testset-v1.json: file: there is no testset-v1.json beside, which holds the pairs"
    ]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"annotator1": 3}, "annotator1: must be 0 (tie), 1 or 2, not 3"),
        ({"cmp_key": "m1"}, "cmp_key: must name two models with one underscore between them"),
        ({"response1": 7}, 'response1: must be text, not 7; write "7"'),
    ],
)
def test_a_faulty_pair_names_its_own_file(
    tmp_path: Path, change: dict[str, Any], fault: str
) -> None:
    path = a_pandalm(tmp_path, 1)
    put(tmp_path, "testset-v1.json", [a_pair(**change)])
    assert set_faults(path, "pandalm") == [f"testset-v1.json:1: {fault}"]


def test_a_verdict_on_no_pair_is_refused(tmp_path: Path) -> None:
    path = a_pandalm(tmp_path, 1)
    put(tmp_path, "testset-v1.json", [a_pair(5)])
    assert set_faults(path, "pandalm") == [
        "gpt-9-testset-v1.json:1: idx: 0 is no pair of the test set"
    ]


def zipped(folder: Path, under: str = "") -> io.BytesIO:
    """Return an archive of a folder, as it would be uploaded."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.rglob("*"):
            archive.write(path, under + str(path.relative_to(folder)))
    return stream


def archive_faults(stream: io.BytesIO) -> list[str]:
    with pytest.raises(ImportFaults) as caught:
        list(read_judgments(stream, "pandalm", name="set.zip"))
    return str(caught.value).split("\n")


@pytest.mark.parametrize("under", ["", "pandalm/"])
def test_a_set_may_be_uploaded_as_an_archive(tmp_path: Path, under: str) -> None:
    a_pandalm(tmp_path, "1", 2, "Tie")
    found = list(read_judgments(zipped(tmp_path, under), name="set.zip"))
    assert found == list(read_judgments(tmp_path))
    assert list(read_labels(zipped(tmp_path, under), name="set.zip")) == list(read_labels(tmp_path))


def test_a_fault_in_an_archive_names_the_file_in_it(tmp_path: Path) -> None:
    a_pandalm(tmp_path, 1)
    put(tmp_path, "testset-v1.json", [a_pair(annotator1=3)])
    assert archive_faults(zipped(tmp_path, "p/")) == [
        "set.zip/p/testset-v1.json:1: annotator1: must be 0 (tie), 1 or 2, not 3"
    ]


@pytest.mark.parametrize("name", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "a\\b"])
def test_no_file_of_an_archive_leaves_its_folder(tmp_path: Path, name: str) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, "[]")
    (fault,) = archive_faults(stream)
    assert fault.startswith("set.zip: archive: holds ")
    assert fault.endswith(", which is no file of a folder")


def test_an_archive_holds_no_links() -> None:
    stream = io.BytesIO()
    link = zipfile.ZipInfo("testset-v1.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert archive_faults(stream) == [
        'set.zip: archive: holds "testset-v1.json", which is no file of a folder'
    ]


def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside, "MAX_UNPACKED_BYTES", 1024 * 1024)
    put(tmp_path, "testset-v1.json", " " * 2 * 1024 * 1024)
    assert archive_faults(zipped(tmp_path)) == [
        "set.zip: archive: is larger than 1 MB when unpacked"
    ]
    monkeypatch.setattr(beside, "MAX_MEMBERS", 0)
    assert archive_faults(zipped(tmp_path)) == ["set.zip: archive: holds 1 files; the most is 0"]


def test_a_damaged_archive_is_one_clear_line(tmp_path: Path) -> None:
    put(tmp_path, "testset-v1.json", [a_pair()])
    content = zipped(tmp_path).getvalue()
    (fault,) = archive_faults(io.BytesIO(content[: len(content) // 2]))
    assert fault.startswith("set.zip: archive: cannot be unpacked: ")


def test_what_an_archive_was_laid_out_in_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    a_pandalm(tmp_path / "set", 1)
    assert len(list(read_judgments(zipped(tmp_path / "set"), name="set.zip"))) == 1
    assert list((tmp_path / "temporary").iterdir()) == []


def a_vicuna(folder: Path, *scores: Any, **changes: Any) -> Path:
    put(folder, "question.jsonl", lines(*({"question_id": n, "text": "Why?"} for n in (1, 2, 3))))
    for own, model in (("x", "base:1"), ("y", "vic:1")):
        answer = {"answer_id": own, "model_id": model, "question_id": 1, "text": f"By {own}"}
        put(folder, f"answer/answer_{own}.jsonl", lines(answer))
    put(folder, "reviewer.jsonl", lines({"reviewer_id": "g-math", "metadata": {"top_p": 1}}))
    rows = [
        {
            "review_id": f"r{n}",
            "question_id": n,
            "answer1_id": "x",
            "answer2_id": "y",
            "text": "Because.",
            "score": one,
            "reviewer_id": ("g-math", "g-generic")[n % 2],
            "metadata": {},
            **changes,
        }
        for n, one in enumerate(scores, 1)
    ]
    return put(folder, "review/review_x_y.jsonl", lines(*rows))


def test_the_higher_score_wins_and_equal_ones_tie(tmp_path: Path) -> None:
    path = a_vicuna(tmp_path, [8, 8.5], [9.0, 9], [-1, -1])
    found = list(read_judgments(path))
    assert [record.verdict for record in found] == ["vic:1", "tie", None]
    assert [record.status for record in found] == ["SUCCEEDED", "SUCCEEDED", "INVALID"]
    assert found[0].scores == {"base:1": 8.0, "vic:1": 8.5}
    assert found[0].order == ("base:1", "vic:1")
    assert found[0].item.candidates[1].text == "By y"
    assert found[0].metadata["reviewer_id"] == "g-generic"
    assert list(read_judgments(tmp_path)) == found


def test_the_reviewers_of_all_categories_are_one_judge(tmp_path: Path) -> None:
    found = list(read_judgments(a_vicuna(tmp_path, [8, 8], [9, 9])))
    assert {(record.judge.name, record.judge.judge_hash) for record in found} == {
        ("g", found[0].judge.judge_hash)
    }
    assert found[0].judge.decoding == {"top_p": 1}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"answer1_id": "q"}, 'answer1_id: "q" is in no file of answers'),
        ({"question_id": 9}, "question_id: 9 is not in question.jsonl"),
        ({"score": [1]}, "score: must be a list of two numbers"),
        ({"score": [1, "x"]}, 'score.1: must be a number, not "x"'),
        ({"answer2_id": "x"}, 'answer2_id: is by "base:1" as the first one is'),
    ],
)
def test_a_faulty_review_is_refused(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    path = a_vicuna(tmp_path, [8, 8], **changes)
    assert set_faults(path, "vicuna_blog") == [f"review_x_y.jsonl:1: {fault}"]


def test_reviews_without_their_texts_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "reviews/review_a_b.jsonl", lines({"question_id": 1}))
    assert set_faults(path, "vicuna_blog") == [
        "review_a_b.jsonl: file: needs question.jsonl and answer/*.jsonl beside it; name the folder"
    ]


def a_chateval(folder: Path, *panels: list[tuple[str, str]], words: str | None = None) -> Path:
    if words is not None:
        put(folder, "review_gpt35_vicuna-13b_human.txt", words)
    rows = [
        {
            "question": f"Why {n}?",
            "response": {"gpt35": "So.", "vicuna": "Thus."},
            "evaluation": [{"role": role, "evaluation": text} for role, text in panel],
        }
        for n, panel in enumerate(panels)
    ]
    return put(folder, "two_pair_comparison.json", rows)


ONE, TWO, SAME, SILENT = "Assistant 1", "I say\nAnswer: Assistant 2", "Same", "[Silence]"


def test_every_referee_is_a_judge_even_where_it_was_silent(tmp_path: Path) -> None:
    path = a_chateval(tmp_path, [("", SILENT), ("Bob", TWO)], [("Ann", SAME), ("Bob", ONE)])
    found = [r for r in read_judgments(path) if "majority" not in r.judge.name]
    assert said(found) == [
        ("two/Ann", "gpt35", None, "INVALID"),
        ("two/Bob", "gpt35", "vicuna", "SUCCEEDED"),
        ("two/Ann", "gpt35", "tie", "SUCCEEDED"),
        ("two/Bob", "gpt35", "gpt35", "SUCCEEDED"),
    ]


@pytest.mark.parametrize(
    ("texts", "as_tie", "dropped"),
    [
        ([ONE, ONE, TWO], "gpt35", "gpt35"),
        ([ONE, TWO, SAME], "tie", "tie"),
        ([ONE, SILENT, SILENT], "tie", "gpt35"),
        ([SILENT, SILENT, SILENT], "tie", None),
        ([ONE, TWO, SILENT], "tie", "tie"),
    ],
)
def test_the_panel_is_read_in_two_ways(
    tmp_path: Path, texts: list[str], as_tie: str, dropped: str | None
) -> None:
    path = a_chateval(tmp_path, list(zip(("Ann", "Bob", "Cy"), texts, strict=True)))
    panel = {r.judge.name: r.verdict for r in read_judgments(path) if "majority" in r.judge.name}
    assert panel == {
        "two/majority, unparsable as tie": as_tie,
        "two/majority, unparsable dropped": dropped,
    }


def test_people_beside_a_chateval_file_are_its_gold_and_its_labels(tmp_path: Path) -> None:
    panels = [[("Ann", ONE)]] * 3
    path = a_chateval(tmp_path, *panels, words="CHATGPT\nTIE\nVICUNA13B\n")
    assert [record.item.gold for record in read_judgments(path)] == ["gpt35", "tie", "vicuna"]
    assert [record.label for record in read_labels(path, "chateval")] == ["gpt35", "tie", "vicuna"]


def test_people_who_said_more_or_less_than_was_asked_are_refused(tmp_path: Path) -> None:
    path = a_chateval(tmp_path, [("Ann", ONE)], words="CHATGPT\nTIE\n")
    assert set_faults(path, "chateval") == [
        "two_pair_comparison.json: file: has 1 items where 2 people's words stand beside it"
    ]
    a_chateval(tmp_path, [("Ann", ONE)], words="CHATGPT\nMAYBE\n")
    assert set_faults(path, "chateval") == [
        'review_gpt35_vicuna-13b_human.txt:2: word: "MAYBE" is none of the known words'
    ]


def a_session(**changes: Any) -> dict[str, Any]:
    return {
        "id": "s-1",
        "setting": "ai_debate",
        "story_id": "17",
        "question": "Why?\n",
        "answers": ["Rain. \n", "Snow."],
        "correct_index": 1,
        "judge": "Owl",
        "debaters": {"Debater A": "m", "Debater B": "m"},
        "final_belief": [0.2, 0.8],
        "completed_ms": 1_691_982_010_349,
        "turns": [
            {"role": "Judge", "belief": [0.5, 0.5], "text": "", "end": False},
            {"role": "Debater A", "text": "Rain.", "mode": "SimultaneousSpeeches"},
            {"role": "Debater B", "text": "Snow.", "mode": "SimultaneousSpeeches"},
            {"role": "Judge", "belief": [0.6000000000000001, 0.4], "text": "Hm", "end": False},
            {"role": "Debater A", "text": "Wet.", "mode": "SequentialSpeeches"},
            {"role": "Judge", "belief": [0.2, 0.8], "text": "", "end": True},
        ],
        **changes,
    }


def session(**changes: Any) -> DebateRecord:
    (record,) = debates(lines(a_session(**changes)), None)
    return record


def test_a_session_is_a_debate_with_sides_and_beliefs() -> None:
    record = session()
    assert [(agent.agent_id, agent.side) for agent in record.agents] == [
        ("Debater A", "incorrect"),
        ("Debater B", "correct"),
    ]
    assert [[(t.agent_id, t.answer, t.order) for t in turns] for turns in record.rounds] == [
        [("Debater A", "Rain.", 0), ("Debater B", "Snow.", 1)],
        [("Debater A", "Rain.", 0)],
    ]
    assert [(b.after, b.belief["Rain."]) for b in record.beliefs] == [
        (0, 0.5),
        (1, 0.6000000000000001),
        (2, 0.2),
    ]
    assert record.final is not None
    assert (record.final.answer, record.question.reference) == ("Snow.", ("Snow.",))
    assert (record.protocol, record.reads_known) == ("ai_debate", "assumed")


def test_a_consultant_has_the_side_for_which_it_argues() -> None:
    turns = [turn for turn in a_session()["turns"] if turn["role"] != "Debater B"]
    record = session(debaters={"Debater A": "m"}, turns=turns, setting="ai_consultancy")
    assert [(agent.role, agent.side) for agent in record.agents] == [("consultant", "incorrect")]


def test_a_question_is_one_question_in_whichever_place_its_answers_stood() -> None:
    swapped = session(answers=["Snow.", "Rain."], correct_index=0)
    assert swapped.question == session().question
    assert swapped.agents[0].side == "correct"


def test_an_undecided_judge_gave_no_answer() -> None:
    record = session(final_belief=[0.5, 0.5])
    assert record.final is not None
    assert record.final.answer is None


def test_a_session_is_also_a_verdict_with_its_belief_as_scores(tmp_path: Path) -> None:
    turns = [turn for turn in a_session()["turns"] if turn["role"] != "Debater B"]
    alone = a_session(id="s-2", debaters={"Debater A": "m"}, turns=turns, final_belief=[0.5, 0.5])
    first, second = read_judgments(put(tmp_path, "s.jsonl", lines(a_session(), alone)))
    assert said([first, second]) == [
        ("human judges", "answer_a", "answer_b", "SUCCEEDED"),
        ("human judges", "answer_a", "tie", "SUCCEEDED"),
    ]
    assert (first.item.gold, first.item.group) == ("answer_b", "ai_debate")
    assert first.scores == {"answer_a": 0.2, "answer_b": 0.8}
    assert (first.metadata, second.item.metadata) == ({"judge": "Owl"}, {"assigned": "incorrect"})
    assert first.item.question_id == second.item.question_id == "17"  # The story.


def test_final_beliefs_are_labels_of_the_judge(tmp_path: Path) -> None:
    path = put(tmp_path, "s.jsonl", lines(a_session()))
    (label,) = read_labels(path)
    assert (label.item_id, label.annotator, label.kind) == ("s-1", "Owl", "belief")
    assert label.label == {"answer_a": 0.2, "answer_b": 0.8}
    assert label.at == "2023-08-14T03:00:10.349+00:00"


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"answers": ["Rain."]}, "answers: must list two answers, not 1"),
        ({"answers": ["Rain.", "Rain. "]}, "answers: lists the same choice twice"),
        ({"correct_index": 2}, "correct_index: must be 0 or 1, not 2"),
        ({"final_belief": [0.2, 0.7]}, "final_belief: "),
        ({"final_belief": [20, 80]}, "final_belief: "),
        ({"final_belief": [1]}, "final_belief: must be a list of two shares"),
        ({"debaters": {"Debater C": "m"}}, "debaters.Debater C: must be one of Debater A"),
        ({"debaters": {"Debater A": "m"}}, 'turns[2].role: "Debater B" is none of the debaters'),
        ({"turns": []}, "turns: hold no speech"),
        ({"turns": [{"text": "?"}]}, "turns[0].role: is missing"),
    ],
)
def test_a_faulty_session_is_refused(changes: dict[str, Any], fault: str) -> None:
    text = lines(a_session(id="s-0"), a_session(**changes))
    assert any(one.startswith(f"d.jsonl:2: {fault}") for one in debate_faults(text, "nyu"))


def test_a_set_that_is_not_json_is_one_clear_line(tmp_path: Path) -> None:
    path = put(tmp_path, "one_pair_comparison.json", json.dumps([1])[:-1])
    faults = set_faults(path, "chateval")
    assert faults[0].startswith("one_pair_comparison.json:1: ")
