"""
Models behind one small interface.

A provider turns one request into one reply and never raises for what a model, a network or a
server did: every ending is a ``ProviderReply``. It retries nothing (retries are on the ledger,
S31), keeps no state about runs, and knows neither Django nor the database: keys, base URLs and
connections are handed in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from runs.engine.types import AnswerType, CallKind, CallStatus, PromptMessage


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider reported them. ``None``: it did not say."""

    input_tokens: int | None = None
    cached_tokens: int | None = None  # The part of input_tokens read from a cache.
    output_tokens: int | None = None
    reasoning_tokens: int | None = None  # The part of output_tokens spent on reasoning.

    @property
    def known(self) -> bool:
        return self.input_tokens is not None and self.output_tokens is not None


@dataclass(frozen=True, slots=True)
class Origin:
    """
    What the host knows about a call. Only ``simulated`` and ``recorded`` models read it.

    It never leaves the process: a provider that talks to a network must not send any of it.
    ``peer_answers`` are the counted answers of the peers shown, in the order shown, ``None`` for
    an abstention.
    """

    run_seed: int = 0
    question_hash: str = ""
    question_id: str = ""
    answer_type: AnswerType = "open"
    choices: tuple[str, ...] = ()
    reference: tuple[str, ...] = ()
    agent_id: str = ""
    agent_index: int = 0
    t: int = 0
    kind: CallKind = CallKind.INITIAL
    own_answer: str | None = None
    peer_answers: tuple[str | None, ...] = ()
    output_format: str = "text"


@dataclass(frozen=True, slots=True)
class ProviderRequest:
    """One call. Lengths in tokens, times in seconds."""

    model: str
    prompt: tuple[PromptMessage, ...]
    max_output_tokens: int
    timeout_seconds: float
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    response_schema: dict[str, Any] | None = field(default=None, hash=False)
    origin: Origin = Origin()


@dataclass(frozen=True, slots=True)
class ProviderReply:
    """
    How one call ended.

    ``raw`` is the reply's text (UTF-8, surrogates passed through). ``billed`` says whether the
    call may have cost something: "no" only where the provider certainly did nothing (refused
    connection, 429, 401); an ambiguous failure is "maybe" and its reservation is held (S31).
    ``transient`` says that the same call may succeed later. ``error_detail`` is one short line
    with no secret in it.
    """

    status: CallStatus
    raw: bytes = b""
    usage: Usage = Usage()
    finish_reason: str = ""  # stop, length, content_filter, refusal, …
    model_version: str = ""
    latency_seconds: float = 0.0
    queued_seconds: float = 0.0  # Waited for a slot before; not a part of the latency.
    error_class: str = ""
    error_detail: str = ""
    transient: bool = False
    billed: str = "yes"  # yes | no | maybe
    retry_after_seconds: float | None = None
    simulated: bool = False


class Provider(Protocol):
    """A model that can be called from the process's event loop."""

    #: "simulated" or "recorded" where the reply comes from no model; "" otherwise.
    marked: str

    async def complete(self, request: ProviderRequest) -> ProviderReply:
        """Return how the call ended. Raises only ``asyncio.CancelledError``."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...
