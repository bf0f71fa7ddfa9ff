"""The YAML 1.2 reader: the core schema, line numbers, and what it refuses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.protocols.yaml12 import MAX_INTEGER, YamlError, dotted, load

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("abcé 1.-", max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


def refusal(text: str) -> str:
    with pytest.raises(YamlError) as caught:
        load(text, "f.yaml")
    assert len(caught.value.lines) == 1
    return caught.value.lines[0]


@pytest.mark.parametrize("word", ["yes", "no", "on", "off", "y", "N", "0b1", "1_000", "12:30"])
def test_words_that_yaml_1_1_would_convert_stay_text(word: str) -> None:
    assert load(f"a: {word}", "f").data == {"a": word}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("1.", 1.0),
        (".5", 0.5),
        ("-7", -7),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ('"1"', "1"),
        ("'true'", "true"),
        ("2026-03-28", "2026-03-28"),
    ],
)
def test_scalars_follow_the_core_schema(text: str, value: object) -> None:
    got = load(f"a: {text}", "f").data["a"]
    assert got == value
    assert type(got) is type(value)


@given(JSON_VALUES)
def test_json_is_read_as_itself(value: object) -> None:
    document = {"value": value}
    assert load(json.dumps(document), "f").data == document
    assert load(json.dumps(document, indent="\t", ensure_ascii=False), "f").data == document


def test_lines_point_at_keys_and_list_items() -> None:
    document = load("a: 1\nb:\n  - x\n  - c: 2\n    d: {e: 3}\n", "f")
    assert [document.line(p) for p in [("a",), ("b",), ("b", 0), ("b", 1, "d", "e")]] == [
        1,
        2,
        3,
        5,
    ]


def test_a_missing_field_is_reported_at_its_nearest_parent() -> None:
    document = load("a:\n  b:\n    c: 1\n", "f.yaml")
    assert document.fault(("a", "b", "x", 0), "is missing") == "f.yaml:2: a.b.x[0]: is missing"
    assert document.fault((), "is empty") == "f.yaml:1: is empty"


def test_aliases_share_values_and_keep_the_lines_of_what_they_name() -> None:
    document = load("base: &b {x: 1}\nuse: *b\n", "f")
    assert document.data == {"base": {"x": 1}, "use": {"x": 1}}
    assert document.line(("use",)) == 2
    assert document.line(("use", "x")) == 1


def test_a_duplicate_key_is_refused_with_both_lines() -> None:
    assert refusal("a: 1\nb: 2\na: 3\n") == "f.yaml:3: duplicate key 'a', first on line 1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1\n", "f.yaml:2: not YAML"),
        ("a: b: c", "f.yaml:1: not YAML"),
        ("a: !!python/object:os.system x", "tags are not read"),
        ("a: !!str 1", "tags are not read"),
        ("%YAML 1.1\n---\na: 1", "only YAML 1.2"),
        ("a: 1\n---\nb: 2\n", "f.yaml:2: more than one document"),
        ("a: .inf", "not a finite number"),
        ("a: .nan", "not a finite number"),
        ("a: 1e999", "not a finite number"),
        ("a: 9007199254740992", "beyond 2^53"),
        ("a: " + "9" * 5000, "beyond 2^53"),
        ("? [1, 2]\n: x", "a key has to be text"),
        ("&k a: 1", "an anchor on a key"),
        ("x: &k 1\n*k : 2", "an alias as a key"),
        ("base: &b {x: 1}\nuse:\n  <<: *b\n", "f.yaml:3: merge keys"),
        ("a: &x [*x]", "stands inside what it names"),
        ("a: *x", "names no anchor"),
        ('a: "\\0"', "NUL is not text"),
        ('a: "\\ud800"', "surrogate"),
        ("a: \ud800", "surrogate"),
        ("ok: 1\na: \x01", "f.yaml:2: not YAML"),
        ("[" * 3000, "nested deeper"),
        ("- " * 3000, "nested deeper"),
        ("a: '" + "x" * 1_000_001 + "'", "larger than"),
        ("a: '" + "é" * 600_000 + "'", "larger than"),
        ('a: "\\UFFFFFFFF"', "not YAML"),
    ],
)
def test_what_is_refused_is_said_in_one_line(text: str, says: str) -> None:
    line = refusal(text)
    assert says in line
    assert "\n" not in line
    assert len(line) < 200


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)
    )
    assert "more than" in refusal(bomb)
    assert "more than 100 aliases" in refusal("a: &a 1\nb: [" + "*a, " * 101 + "]\n")


@given(st.text(max_size=60))
def test_any_text_gives_a_document_or_a_clear_refusal(text: str) -> None:
    said: tuple[str, ...] = ()
    try:
        said = (json.dumps(load(text, "f").data, allow_nan=False),)
    except YamlError as exc:
        said = tuple(line for line in exc.lines if line.startswith("f:"))
    assert len(said) == 1


def test_a_path_is_written_with_dots_and_brackets() -> None:
    assert dotted(("agents", 0, "decoding", "top_p")) == "agents[0].decoding.top_p"


@pytest.mark.parametrize(
    "text",
    [
        '? "a\\nf.yaml:9: b\\e[31m"\n: 1\n? "a\\nf.yaml:9: b\\e[31m"\n: 2\n',
        "&" + "x" * 500 + " a: 1",
        "a: *" + "x" * 500,
        "a: !" + "x" * 500 + " 1",
    ],
)
def test_what_a_fault_repeats_of_a_file_can_not_break_its_line(text: str) -> None:
    line = refusal(text)
    assert line.isprintable()
    assert len(line) < 200
