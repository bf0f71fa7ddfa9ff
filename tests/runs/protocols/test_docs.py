"""The example that the documentation explains is a protocol that runs."""

from __future__ import annotations

import re
from pathlib import Path

from runs.protocols.checks import COMMON_SLOTS, PEER_SLOTS, REVISION_SLOTS, unsupported
from runs.protocols.presets import load_preset, preset_names
from runs.protocols.yaml_io import load_protocol

PAGE = (Path(__file__).parents[3] / "docs" / "protocols.md").read_text("utf-8")


def test_the_annotated_example_is_a_protocol_that_can_run() -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    protocol = load_protocol(found[1], "docs/protocols.md")
    assert unsupported(protocol) == []
    assert protocol.agent_ids == ("a", "b", "c")


def test_every_shipped_protocol_is_listed_with_its_size() -> None:
    for name in preset_names():
        protocol = load_preset(name)
        assert f"| `{name}` | {len(protocol.agents)} × {protocol.revision_rounds} |" in PAGE


def test_every_slot_is_listed() -> None:
    rows = [
        frozenset(row.split()) for row in re.findall(r"^\| `([a-z_ ]+)` \|", PAGE, re.MULTILINE)
    ]
    assert COMMON_SLOTS in rows
    assert REVISION_SLOTS - COMMON_SLOTS in rows
    assert PEER_SLOTS in rows
