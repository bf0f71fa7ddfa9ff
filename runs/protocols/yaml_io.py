"""Protocols as YAML 1.2 or JSON, in and out."""

from __future__ import annotations

import io
import json
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from runs.protocols.faults import fault_lines
from runs.protocols.spec import Protocol
from runs.protocols.yaml12 import FileFaultError, YamlError, load


class ProtocolError(FileFaultError):
    """A text is not a protocol; ``lines`` says where and why, at most 20 of them."""


def load_protocol(text: str, where: str) -> Protocol:
    """
    Return the protocol in ``text``, YAML 1.2 or JSON; ``where`` names it in faults.

    Raises ProtocolError with one ``WHERE:LINE: field.path: what is wrong`` for every fault.
    """
    try:
        document = load(text, where)
    except YamlError as exc:
        raise ProtocolError(exc.lines) from exc
    if not isinstance(document.data, dict):
        raise ProtocolError([document.fault((), "a protocol is a mapping of fields")])
    try:
        # By way of JSON, since there lists are the only way to write a tuple.
        return Protocol.model_validate_json(json.dumps(document.data))
    except ValidationError as exc:
        raise ProtocolError(fault_lines(exc, document)) from exc


def dump_protocol(protocol: Protocol) -> str:
    """
    Return ``protocol`` as YAML 1.2 with every field that differs from its default.

    Loading the result gives an equal protocol; prompts of several lines are literal blocks.
    """
    content = protocol.model_dump(mode="json", exclude_defaults=True)
    return dump_document({"schema_version": protocol.schema_version, **content})


def dump_document(content: dict[str, Any]) -> str:
    """Return plain values as YAML 1.2, a protocol or not yet one; ``load`` reads the same."""
    out = io.StringIO()
    _writer().dump(_blocks(content), out)
    return out.getvalue()


def _writer() -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 2**20  # Folded lines are the one place where the writer loses blanks.
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _blocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _blocks(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_blocks(inner) for inner in value]
    if isinstance(value, str):
        return _styled(value)
    return value


def _styled(text: str) -> Any:
    if _fits_a_block(text):
        return LiteralScalarString(text)
    # Only double quotes escape what the other styles would take for a line break.
    return text if text.isprintable() else DoubleQuotedScalarString(text)


def _fits_a_block(text: str) -> bool:
    """Whether a literal block gives back exactly this text, character for character."""
    lines = text.split("\n")
    return (
        len(lines) > 1
        and all(line.isprintable() for line in lines)
        and not any(line != line.rstrip() for line in lines)
        and not text.startswith((" ", "\n"))
        and not text.endswith("\n\n")
    )
