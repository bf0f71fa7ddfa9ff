"""
Longest prompts that the renderer can make of a protocol (S31), in UTF-8 bytes.

No tokenizer makes more than one token of a byte, so that a length in bytes bounds the tokens.
Every message counts as long as it may be shown, in four bytes a character.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from runs.engine.delimiting import fence
from runs.engine.hashing import canonical_bytes
from runs.engine.judge_prompts import candidate_head, reply_format, speaker_head
from runs.engine.operators import TOKENS_PER_MESSAGE
from runs.engine.parsing import response_schema
from runs.engine.prompts import CANDIDATE, NO_MESSAGES, NO_OWN_STATE, choices_text
from runs.engine.templates import DEFAULT_PEER, texts_for
from runs.engine.types import Evidence, Question
from runs.protocols.checks import SLOT
from runs.protocols.decisions import JudgeSettings
from runs.protocols.spec import Agent, Protocol

_BYTES_PER_CHAR = 4  # The most that UTF-8 needs.


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a question puts into prompts, in UTF-8 bytes as rendered."""

    question_bytes: int
    choices_bytes: int = 0
    evidence_bytes: int = 0
    candidates_bytes: int = 0
    answer_format_bytes: int = 0
    schema_bytes: int = 0

    @classmethod
    def of(cls, protocol: Protocol, question: Question, evidence: tuple[Evidence, ...]) -> Self:
        """Return the exact sizes of one question under ``protocol``."""
        schema = response_schema(question, protocol)
        return cls(
            question_bytes=_bytes(question.text),
            choices_bytes=_bytes(choices_text(question)),
            evidence_bytes=sum(_evidence_bytes(item) for item in evidence),
            candidates_bytes=sum(_candidate_bytes(item) for item in evidence),
            answer_format_bytes=_bytes(protocol.answer_format(question.answer_type)),
            schema_bytes=len(canonical_bytes(schema)) if schema is not None else 0,
        )


def in_degree(protocol: Protocol, reader: str) -> int:
    """Return how many peers ``reader`` may read in a round (S18)."""
    topology, others = protocol.topology, len(protocol.agents) - 1
    hub = topology.hub or protocol.agents[0].id
    degrees: dict[str, Callable[[], int]] = {  # Computed only for the kind that there is.
        "full": lambda: others,
        "none": lambda: 0,
        "ring": lambda: min(others, 2 if topology.bidirectional else 1),
        "star": lambda: others if reader == hub else min(others, 1),
        "k_regular": lambda: topology.k or 0,
        "groups": lambda: sum(len(group) - 1 for group in topology.groups if reader in group),
        "custom": lambda: sum(edge.reader == reader for edge in topology.edges),
    }
    return degrees[topology.kind]()


class PromptLengths:
    """
    Longest prompts in bytes, part by part as the renderer composes them.

    What is the same for several rounds is measured once: 64 agents in 64 rounds with their whole
    history make some hundred thousand parts.
    """

    def __init__(self, protocol: Protocol, sizes: Sizes) -> None:
        self._protocol = protocol
        self._sizes = sizes
        selection = protocol.selection
        self._message_chars = min(selection.message_cap_chars, selection.total_cap_chars)
        self._message_bytes = self._message_chars * _BYTES_PER_CHAR
        self._label_bytes = _label_bytes(protocol)
        self._degrees = {agent.id: in_degree(protocol, agent.id) for agent in protocol.agents}
        self._turns: dict[tuple[str, int], int] = {}
        self._histories: dict[str, list[int]] = {}

    def call(self, agent: Agent, t: int) -> int:
        """Return the bound of a whole prompt of round ``t``, chat overhead included."""
        texts = texts_for(self._protocol.prompts, agent)
        system = _filled(texts.system, self._common(agent))
        total = system + TOKENS_PER_MESSAGE if system else 0  # An empty one is not sent.
        total += self._turn(agent, t) + TOKENS_PER_MESSAGE
        if t > 0 and self._protocol.selection.own_history == "all":
            total += self._history(agent, t)
        return total

    def judge(self, settings: JudgeSettings, candidates: int) -> int:
        """Return the bound of a judge's prompt that shows at most so many candidates (S28)."""
        sizes, last = self._sizes, self._protocol.revision_rounds
        rounds = last + 1 if settings.sees_rounds == "all" else 1
        shown = candidates * rounds
        said = len(self._protocol.agents) * rounds
        candidate = len(candidate_head("A", last)) + _JUDGED["candidate"] + self._message_bytes
        message = len(speaker_head(len(self._protocol.agents), last)) + _JUDGED["message"]
        values = {
            "question": sizes.question_bytes,
            "choices": sizes.choices_bytes,
            "evidence": sizes.evidence_bytes if settings.sees_evidence else 0,
            "candidates": shown * (candidate + len("\n\n")),
            "transcript": said * (message + self._message_bytes + len("\n\n")),
            "answer_format": _bytes(reply_format(settings, candidates)),
        }
        return _filled(settings.prompt, values) + TOKENS_PER_MESSAGE

    def _history(self, agent: Agent, t: int) -> int:
        """Return the length of the turns before ``t``: of each what was asked and answered."""
        sums = self._histories.setdefault(agent.id, [0])
        while len(sums) <= t:
            answered = self._message_bytes + TOKENS_PER_MESSAGE
            sums.append(sums[-1] + self._turn(agent, len(sums) - 1) + TOKENS_PER_MESSAGE + answered)
        return sums[t]

    def _turn(self, agent: Agent, t: int) -> int:
        # Only where the peers' earlier rounds are shown again is one revision longer than another.
        alike = t if self._protocol.selection.rounds == "all" else min(t, 1)
        if (agent.id, alike) not in self._turns:
            self._turns[agent.id, alike] = self._measured_turn(agent, alike)
        return self._turns[agent.id, alike]

    def _measured_turn(self, agent: Agent, t: int) -> int:
        texts = texts_for(self._protocol.prompts, agent)
        if t == 0:
            return _filled(texts.initial, self._common(agent))
        return _filled(texts.revision, self._common(agent) | self._read(agent, t))

    def _common(self, agent: Agent) -> dict[str, int]:
        sizes = self._sizes
        intensity = self._protocol.selection.agreement_intensity_percent
        return {
            "question": sizes.question_bytes,
            "choices": sizes.choices_bytes,
            "evidence": sizes.evidence_bytes,
            "candidates": sizes.candidates_bytes,
            "persona": _bytes(agent.persona),
            "side": _bytes(agent.side or ""),
            "answer_format": sizes.answer_format_bytes,
            "agreement_intensity": len(str(intensity)) if intensity is not None else 0,
        }

    def _read(self, agent: Agent, t: int) -> dict[str, int]:
        return {
            "own_text": max(self._message_bytes + _BLOCK["own_text"], len(NO_OWN_STATE)),
            "own_answer": max(self._message_bytes + _INLINE["own_answer"], len(NO_OWN_STATE)),
            "peers": self._peers(agent, t),
        }

    def _peers(self, agent: Agent, t: int) -> int:
        prompts, selection = self._protocol.prompts, self._protocol.selection
        template = prompts.peer or DEFAULT_PEER
        messages = self._degrees[agent.id] + selection.include_self
        if selection.rounds == "all":
            messages *= t
        frame = _filled(
            template,
            {
                "label": self._label_bytes,
                "text": _BLOCK["message"],
                "answer": _INLINE["answer"],
                "count": 1,
            },
        )
        # Text and answer of a message share its cap, and all messages the total.
        chars = min(messages * self._message_chars, selection.total_cap_chars)
        copies = max(template.count("{{text}}"), template.count("{{answer}}"))
        shown = chars * _BYTES_PER_CHAR * copies
        between = max(0, messages - 1) * _bytes(prompts.separator)
        return max(messages * frame + shown + between, len(NO_MESSAGES))


def _label_bytes(protocol: Protocol) -> int:
    names = [f"Agent {len(protocol.agents) + 1}"]
    names += [name for agent in protocol.agents for name in (agent.id, agent.role)]
    return max(_bytes(name) for name in names)


def _filled(template: str, sizes: Mapping[str, int]) -> int:
    return _bytes(SLOT.sub("", template)) + sum(sizes[slot] for slot in SLOT.findall(template))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8"))


def _evidence_bytes(item: Evidence) -> int:
    marks = len(_FENCE.block("evidence", "")) + 1  # One line end after each piece.
    return _bytes(f"[{item.id}] {item.source}\n{item.text}") + marks


def _candidate_bytes(item: Evidence) -> int:
    frame = len(_FENCE.block("candidate", "")) + len(f"{CANDIDATE} A:\n\n\n")
    return _bytes(item.text) + frame


_FENCE = fence((), seed=())  # Any key will do: all are of one length.
_BLOCK = {kind: len(_FENCE.block(kind, "")) for kind in ("own_text", "message")}
_JUDGED = {kind: len(_FENCE.block(kind, "\nAnswer: ")) for kind in ("candidate", "message")}
_INLINE = {kind: len(_FENCE.inline(kind, "")) for kind in ("own_answer", "answer")}
