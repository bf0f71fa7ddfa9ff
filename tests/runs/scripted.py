"""A gateway whose replies, their order, their doubling and their absence a test decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from runs.engine.types import CallStatus
from runs.providers import endings
from runs.providers.base import ProviderReply, ProviderRequest, Usage
from runs.providers.catalog import ModelConfig
from runs.providers.endings import failed
from runs.providers.gateway import Finished

Script = Callable[["Call"], ProviderReply | None]


@dataclass
class Call:
    """One call as it was handed in; ``nth`` counts an agent's calls in its round from 0."""

    token: Any
    request: ProviderRequest
    results: Any
    nth: int
    delay_seconds: float
    is_ended: bool = False
    is_sent: bool = True

    @property
    def agent_id(self) -> str:
        return self.request.origin.agent_id

    @property
    def t(self) -> int:
        return self.request.origin.t

    def deliver(self, reply: ProviderReply) -> None:
        self.is_ended = True
        self.results.put(Finished(self.token, reply))

    def cancel(self) -> None:
        """As the real gateway: the reply still arrives, once."""
        if not self.is_ended:
            self.deliver(failed(endings.CANCELLED, "the call was cancelled"))


@dataclass
class ScriptedGateway:
    """
    Answers each call at once as ``script`` says; None leaves it in flight.

    With ``hold`` the replies of a round come together when it is complete, in the order that
    ``hold`` returns; ``twice`` delivers each of them two times.
    """

    script: Script = field(default=lambda _call: said("2"))
    hold: Callable[[list[tuple[Call, ProviderReply]]], list[tuple[Call, ProviderReply]]] | None = (
        None
    )
    round_size: int = 3
    twice: bool = False
    calls: list[Call] = field(default_factory=list)
    _held: list[tuple[Call, ProviderReply]] = field(default_factory=list)

    def submit(
        self,
        config: ModelConfig,
        request: ProviderRequest,
        *,
        token: object,
        results: Any,
        api_key: str = "",
        not_before_seconds: float = 0.0,
        provider: object = None,
    ) -> Call:
        origin = request.origin
        key = (origin.run_seed, origin.question_hash, origin.agent_id, origin.t)
        earlier = [c for c in self.calls if _key(c) == key]
        call = Call(token, request, results, len(earlier), not_before_seconds)
        self.calls.append(call)
        reply = self.script(call)
        if reply is None:
            return call
        if self.hold is None:
            self._deliver(call, reply)
            return call
        self._held.append((call, reply))
        if len(self._held) == self.round_size:
            due, self._held = self.hold(self._held), []
            for held, its_reply in due:
                self._deliver(held, its_reply)
        return call

    def _deliver(self, call: Call, reply: ProviderReply) -> None:
        call.deliver(reply)
        if self.twice:
            call.deliver(reply)


def _key(call: Call) -> tuple[int, str, str, int]:
    origin = call.request.origin
    return (origin.run_seed, origin.question_hash, origin.agent_id, origin.t)


def said(
    answer: str, *, input_tokens: int = 50, output_tokens: int = 20, **parts: Any
) -> ProviderReply:
    """Return a successful reply with this answer."""
    return replied(f"So the answer is {answer}.", input_tokens, output_tokens, **parts)


def replied(
    text: str | bytes, input_tokens: int | None = 50, output_tokens: int | None = 20, **parts: Any
) -> ProviderReply:
    """Return a successful reply with this very text."""
    fields: dict[str, Any] = {
        "raw": text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"),
        "usage": Usage(input_tokens=input_tokens, output_tokens=output_tokens),
        "finish_reason": "stop",
        "model_version": "scripted-1",
        **parts,
    }
    return ProviderReply(CallStatus.SUCCEEDED, **fields)
