"""
The identity of a protocol (S1, S35).

The preimage is the RFC 8785 form of every field that differs from its default, plus
``schema_version``; fields that only describe (``name``, ``title``, ``description``, ``source``)
are left out. Written-out defaults therefore change nothing, and a field added later leaves the
hashes of older protocols alone. The defaults themselves are frozen with ``schema_version``: to
change one is to move it. docs/decisions/0020-protocol-hash.md has the reasons.
"""

from __future__ import annotations

from typing import Any

from runs.engine.hashing import canonical_bytes, raw_digest
from runs.protocols.spec import Protocol

DESCRIPTIVE_FIELDS = frozenset(("name", "title", "description", "source"))


def algorithm(protocol: Protocol) -> dict[str, Any]:
    """Return the JSON value that the hash is taken over."""
    content = protocol.model_dump(
        mode="json", exclude_defaults=True, exclude=set(DESCRIPTIVE_FIELDS)
    )
    return {**content, "schema_version": protocol.schema_version}


def protocol_preimage(protocol: Protocol) -> bytes:
    """Return the canonical bytes of the protocol's algorithm."""
    return canonical_bytes(algorithm(protocol))


def protocol_hash(protocol: Protocol) -> str:
    """Return the hex SHA-256 that identifies the algorithm, whatever it is called."""
    return raw_digest(protocol_preimage(protocol))


def canonical_text(protocol: Protocol) -> str:
    """Return the canonical JSON of all that differs from the defaults, as it is stored."""
    content = protocol.model_dump(mode="json", exclude_defaults=True)
    return canonical_bytes({**content, "schema_version": protocol.schema_version}).decode()
