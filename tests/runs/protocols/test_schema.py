"""The published JSON Schema: valid itself, equal to the committed file, true of the presets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from runs.protocols.presets import preset_names, preset_text
from runs.protocols.schema import DIALECT, json_schema, schema_text
from runs.protocols.yaml12 import load
from tests.runs.protocols.published import PUBLISHED

COMMITTED = Path(__file__).parents[3] / "docs" / "protocol.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def test_the_committed_schema_is_the_generated_one() -> None:
    assert COMMITTED.read_text("utf-8") == schema_text(), (
        "write it anew: python manage.py protocol schema > docs/protocol.schema.json"
    )


def test_the_schema_is_a_schema_of_the_dialect_that_it_names() -> None:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == DIALECT
    assert schema["$id"] == "urn:debateweb:protocol:1"


def test_every_part_and_every_top_level_field_is_described() -> None:
    schema = json_schema()
    assert [name for name, part in schema["$defs"].items() if not part.get("description")] == []
    assert schema["description"]


@pytest.mark.parametrize("name", preset_names())
def test_every_shipped_file_is_valid_as_it_is_written(name: str) -> None:
    assert list(VALIDATOR.iter_errors(load(preset_text(name), name).data)) == []


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_protocol_is_valid_with_and_without_its_defaults(name: str) -> None:
    protocol = PUBLISHED[name]
    for leave_out in (True, False):
        content = json.loads(protocol.model_dump_json(exclude_defaults=leave_out))
        assert list(VALIDATOR.iter_errors(content)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("agents", 0, "id"), "-a"),
        (("agents", 0, "colour"), "red"),
        (("revision_rounds",), -1),
        (("operator", "kind"), "simultaneous"),
        (("schema_version",), 2),
        (("agents",), []),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(
    path: tuple[str | int, ...], value: Any
) -> None:
    content: Any = json.loads(PUBLISHED["du_2023"].model_dump_json())
    place = content
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert list(VALIDATOR.iter_errors(content))
