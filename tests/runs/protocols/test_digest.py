"""What does and what does not change a protocol's hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from runs.protocols.digest import (
    DESCRIPTIVE_FIELDS,
    algorithm,
    canonical_text,
    protocol_hash,
    protocol_preimage,
)
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.spec import Part, Protocol
from runs.protocols.yaml_io import load_protocol
from tests.runs.protocols.published import PUBLISHED

NAMES = st.sampled_from(sorted(PUBLISHED))

#: The defaults of schema version 1, which a hash takes for granted. A change of one means that
#: stored protocols would run otherwise under their old hash: move ``schema_version`` instead.
DEFAULTS_OF_VERSION_1 = Path(__file__).with_name("defaults_1.json")


def rewritten(value: Any, draw: Any) -> Any:
    """Return an equal JSON value with the keys of every object in another order."""
    if isinstance(value, dict):
        keys = draw(st.permutations(list(value)))
        return {key: rewritten(value[key], draw) for key in keys}
    if isinstance(value, list):
        return [rewritten(item, draw) for item in value]
    return value


@given(st.data(), NAMES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_order_of_keys_white_space_and_escapes_change_nothing(
    data: st.DataObject, name: str, indent: int | str | None, ascii_only: bool
) -> None:
    protocol = PUBLISHED[name]
    content = rewritten(protocol.model_dump(mode="json"), data.draw)
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_only)
    assert protocol_hash(load_protocol(text, "f")) == protocol_hash(protocol)


@given(NAMES, st.booleans(), st.booleans())
def test_written_out_and_left_out_defaults_give_one_hash(
    name: str, leave_out: bool, as_yaml: bool
) -> None:
    protocol = PUBLISHED[name]
    content = protocol.model_dump(mode="json", exclude_defaults=leave_out)
    text = json.dumps(content)
    if as_yaml:  # Block style at the top; the parts stay JSON, which YAML 1.2 contains.
        text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in content.items())
    assert protocol_hash(load_protocol(text, "f")) == protocol_hash(protocol)


@pytest.mark.parametrize("spelling", ["1", "1.0", "1e0", "10E-1"])
def test_the_spelling_of_a_number_changes_nothing(spelling: str) -> None:
    text = (
        f"name: x\nagents: [{{id: a, decoding: {{temperature: {spelling}}}}}]\n"
        "revision_rounds: 0\nprompts: {initial: '{{question}}'}\n"
    )
    assert b'"temperature":1}' in protocol_preimage(load_protocol(text, "f"))


@pytest.mark.parametrize("field", sorted(DESCRIPTIVE_FIELDS))
def test_descriptions_are_no_part_of_the_algorithm(field: str) -> None:
    value = {"source": None, "name": "another"}.get(field, "Another.")
    before = load_preset("du_2023")
    after = before.model_copy(update={field: value})
    assert after != before
    assert protocol_hash(after) == protocol_hash(before)


def _other(value: Any) -> Any:
    """Return some other value of about the same type."""
    others: list[tuple[type, Any]] = [
        (bool, lambda v: not v),
        (int, lambda v: v + 1),
        (float, lambda v: v / 2 + 0.01),
        (str, lambda v: v + "x"),
        (tuple, lambda v: v[:-1] if v else ("x",)),
        (dict, lambda v: {} if v else {"x": 1.0}),
        (type(None), lambda v: v is None),
    ]
    return next(change(value) for kind, change in others if isinstance(value, kind))


def _changed_in_one_field(model: BaseModel, path: str = "") -> list[tuple[str, BaseModel]]:
    """Return copies of ``model`` that differ in exactly one field each, however deep."""
    out: list[tuple[str, BaseModel]] = []
    for name in type(model).model_fields:
        value = getattr(model, name)
        where = f"{path}.{name}" if path else name
        if isinstance(value, BaseModel):
            inner = _changed_in_one_field(value, where)
            out += [(at, model.model_copy(update={name: copy})) for at, copy in inner]
        elif isinstance(value, tuple) and value and isinstance(value[0], BaseModel):
            inner = _changed_in_one_field(value[0], f"{where}[0]")
            out += [(at, model.model_copy(update={name: (c, *value[1:])})) for at, c in inner]
            out.append((where, model.model_copy(update={name: value[:-1]})))
        else:
            changed = _other(value)
            out.append((where, model.model_copy(update={name: changed})))
    return out


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_any_change_of_one_semantic_field_changes_the_hash(name: str) -> None:
    protocol = PUBLISHED[name]
    seen = {protocol_hash(protocol)}
    changed = [
        (path, copy)
        for path, copy in _changed_in_one_field(protocol)
        if path.partition(".")[0] not in DESCRIPTIVE_FIELDS
    ]
    assert len(changed) > 80
    for path, copy in changed:
        assert isinstance(copy, Protocol)
        other = protocol_hash(copy)
        assert other not in seen, path
        seen.add(other)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_stored_text_gives_back_the_whole_protocol(name: str) -> None:
    protocol = PUBLISHED[name]
    stored = canonical_text(protocol)
    assert Protocol.model_validate_json(stored) == protocol
    assert canonical_text(load_protocol(stored, name)) == stored


def test_the_order_of_agents_is_a_part_of_the_algorithm() -> None:
    protocol = load_preset("du_2023")
    turned = protocol.model_copy(update={"agents": protocol.agents[::-1]})
    assert protocol_hash(turned) != protocol_hash(protocol)


def test_no_two_published_protocols_share_a_hash() -> None:
    hashes = {protocol_hash(protocol) for protocol in PUBLISHED.values()}
    assert len(hashes) == len(PUBLISHED)


def test_a_field_added_later_leaves_old_hashes_alone() -> None:
    class LaterProtocol(Protocol):
        patience: int = 3
        mood: Literal["calm", "keen"] = "calm"

    old = load_preset("du_2023")
    new = LaterProtocol(**{name: getattr(old, name) for name in Protocol.model_fields})
    assert protocol_hash(new) == protocol_hash(old)
    assert protocol_hash(new.model_copy(update={"mood": "keen"})) != protocol_hash(old)


def test_the_version_of_the_schema_is_always_in_the_preimage() -> None:
    for name in preset_names():
        assert algorithm(load_preset(name))["schema_version"] == 1


def defaults() -> dict[str, Any]:
    """Return every default of every part, as the JSON value that it is dumped to."""
    return {
        f"{part.__name__}.{name}": to_jsonable_python(field.get_default(call_default_factory=True))
        for part in Part.__subclasses__()
        for name, field in part.model_fields.items()
        if not field.is_required()
    }


def test_the_defaults_that_a_hash_takes_for_granted_are_frozen() -> None:
    frozen = json.loads(DEFAULTS_OF_VERSION_1.read_text("utf-8"))
    present = defaults()
    assert {name: present.get(name, "(gone)") for name in frozen} == frozen
    assert sorted(set(present) - set(frozen)) == [], "new fields: add them to defaults_1.json"
