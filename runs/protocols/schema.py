"""The published JSON Schema of the protocol language."""

from __future__ import annotations

import json
from typing import Any

from runs.protocols.spec import SCHEMA_VERSION, Protocol

SCHEMA_ID = f"urn:debateweb:protocol:{SCHEMA_VERSION}"
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """
    Return the JSON Schema (draft 2020-12) of a protocol, as a JSON value.

    It holds what can be said of each field alone; ``runs.protocols.checks`` has the rules
    across fields.
    """
    schema = Protocol.model_json_schema(mode="validation")
    return {
        "$schema": DIALECT,
        "$id": SCHEMA_ID,
        **schema,
        "title": "debateweb protocol",
    }


def schema_text() -> str:
    """Return the schema as it is committed in docs/protocol.schema.json."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False, sort_keys=True) + "\n"
