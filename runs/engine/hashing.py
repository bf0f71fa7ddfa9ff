"""
Hashes and their preimages (S35). The table in docs/semantics.md lists every one of them.

All are SHA-256, in lower-case hex, over RFC 8785 canonical JSON of UTF-8 text as given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import rfc8785

from runs.engine.types import Answer, Claim, Evidence, PromptMessage, Question, State


def canonical_bytes(value: Any) -> bytes:
    """
    Return the RFC 8785 bytes of a JSON value.

    Raises ValueError for what the format cannot hold: integers beyond 2^53, NaN, lone
    surrogates, keys that are not text.
    """
    try:
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as exc:
        raise ValueError(f"no canonical form: {exc}") from exc


def digest(value: Any) -> str:
    """Return the hex SHA-256 of a JSON value's canonical bytes."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def raw_digest(raw: bytes) -> str:
    """Return the hex SHA-256 of bytes as they came."""
    return hashlib.sha256(raw).hexdigest()


def question_hash(question: Question) -> str:
    """Identify what the agents are asked. The reference and the id are left out."""
    return digest(
        {
            "question": question.text,
            "answer_type": question.answer_type,
            "choices": list(question.choices),
        }
    )


def evidence_hash(evidence: Iterable[Evidence]) -> str:
    """Identify an evidence snapshot: ids, texts and sources in their given order."""
    return digest([{"id": e.id, "text": e.text, "source": e.source} for e in evidence])


def claim_hash(text: str) -> str:
    """Identify one wording of a claim (S7)."""
    return digest({"claim": text})


def _answer(answer: Answer) -> dict[str, str]:
    return {"raw": answer.raw, "kind": answer.kind.value, "value": answer.value}


def _claims(claims: Iterable[Claim]) -> list[dict[str, str]]:
    return [{"claim_id": c.claim_id, "claim_hash": c.claim_hash} for c in claims]


def content_hash(
    *,
    text: str,
    answer: Answer,
    raw_hash: str,
    claims: Iterable[Claim] = (),
    evidence_refs: Iterable[str] = (),
    unresolved: Iterable[str] = (),
) -> str:
    """Identify what a state says, whoever said it and in whichever round (S3)."""
    return digest(
        {
            "text": text,
            "answer": _answer(answer),
            "raw_hash": raw_hash,
            "claims": _claims(claims),
            "evidence_refs": list(evidence_refs),
            "unresolved": list(unresolved),
        }
    )


def snapshot_preimage(t: int, states: Iterable[State]) -> bytes:
    """
    Return the bytes of a read buffer: no time, latency or database id (S9, S35).

    States stand in the order of the configured agents.
    """
    return canonical_bytes(
        {
            "t": t,
            "states": [
                {
                    "agent_id": s.agent_id,
                    "state_version": s.state_version,
                    "parent_version": s.parent_version,
                    "round": s.round,
                    "content_hash": s.content_hash,
                }
                for s in states
            ],
        }
    )


def snapshot_hash(t: int, states: Iterable[State]) -> str:
    """Return the hash of a read buffer."""
    return raw_digest(snapshot_preimage(t, states))


def request_digest(
    *,
    model_slot: str,
    prompt: Iterable[PromptMessage],
    decoding: Mapping[str, Any],
    response_schema: Mapping[str, Any] | None,
) -> str:
    """Identify what is asked of a model slot; the model behind it is bound by the run (S4)."""
    return digest(
        {
            "model_slot": model_slot,
            "prompt": [{"role": m.role, "content": m.content} for m in prompt],
            "decoding": dict(decoding),
            "response_schema": dict(response_schema) if response_schema is not None else None,
        }
    )
