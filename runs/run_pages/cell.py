"""One agent in one round: what was sent, read, answered, charged and admitted."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from debateweb.texts import DiffPart, diff_words, printable
from runs.engine.types import (
    Answer,
    AnswerKind,
    CallStatus,
    Dropped,
    PromptMessage,
    Question,
    ReadEntry,
    Status,
)
from runs.models import Attempt, AttemptOutcome, LedgerEntry, Run
from runs.models import State as StateRow
from runs.protocols.spec import Protocol
from runs.queries import arm_context, engine_question
from runs.run_pages import reads
from runs.run_pages.matrix import STATUS_BADGES, Went, way_between
from runs.run_pages.reads import Ruling, Version
from runs.run_pages.scoring import Scoring, read_again, scored
from runs.run_pages.texts import Cut, changed_words, cut, cut_bytes

#: Both texts together; above it the difference costs more than a page may take.
MOST_DIFF_CHARS = 3_000
DROP_WORDS = {
    "total_cap": "no room left under the cap of all messages together",
    "no_slot": "the prompt has no place for peers",
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt as it was sent."""

    role: str
    content: Cut
    label: str


@dataclass(frozen=True, slots=True)
class Read:
    """A state in a prompt; ``t`` is the round that admitted it, None where there is no such."""

    entry: ReadEntry
    t: int | None
    is_same: bool  # Whether the stored state has the hash that was read.

    @property
    def part(self) -> str:
        if self.entry.own:
            return "own"
        return "earlier turn" if self.entry.earlier else "peer"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A visible state that the prompt does not hold, and why."""

    entry: Dropped
    t: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Movement:
    """A line of the ledger; ``account`` is the run's or the experiment's."""

    entry: LedgerEntry
    account: str


@dataclass(frozen=True, slots=True)
class End:
    """An outcome with the beginning of its reply."""

    row: AttemptOutcome
    raw: Cut
    detail: Cut
    label: str

    @property
    def badge(self) -> tuple[str, str]:
        kind = "ok" if self.row.status == CallStatus.SUCCEEDED else "bad"
        return kind, self.row.status.lower()


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt with its outcomes (a late one too) and its movements."""

    row: Attempt
    ends: list[End]
    movements: list[Movement]
    retry_of: int | None  # The ordinal of the attempt that this one repeats.
    decoding: str

    @property
    def label(self) -> str:
        return f"attempt {self.row.ordinal}"


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: attempts with one digest sent these very messages."""

    digest: str
    ordinals: list[int]
    messages: list[Message]
    selected: list[Read]
    dropped: list[LeftOut]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The candidate that came of it, in full, and what changed since the version before."""

    row: StateRow
    text: Cut
    answer_raw: Cut
    claims: list[dict[str, Any]]
    parts: list[DiffPart] | None = None
    before: Version | None = None


@dataclass(frozen=True, slots=True)
class CellView:
    """All that the cell page shows."""

    t: int
    agent_id: str
    ruling: Ruling | None
    badge: tuple[str, str]
    sent: list[Sent]
    tries: list[Try]
    admitted: Admitted | None
    kept: Version | None
    is_cut: bool = field(default=False)
    #: Of the admitted answer; else of the answer that an INVALID reply holds, if it was read.
    scoring: Scoring | None = None
    held_before: Scoring | None = None
    went: Went = ""


def cell_of(run: Run, t: int, agent_id: str, *, limit: int | None) -> CellView | None:
    """
    Return the cell, or None where the run has none such. Eight queries.

    ``limit`` cuts each text after so many characters (replies: bytes); None shows all.
    """
    attempts = reads.attempts_at(run.pk, t, agent_id)
    ruling = next((r for r in reads.rulings_of(run.pk) if (r.t, r.agent_id) == (t, agent_id)), None)
    versions = reads.versions_of(run.pk, limit or reads.WHOLE, agent_id=agent_id)
    state = reads.state_at(run.pk, t, agent_id)
    if not attempts and ruling is None and state is None:
        return None
    before = [version for version in versions if version.round < t]
    sent = _sent(attempts, reads.prompts_of(attempts), reads.places_of_states(run.pk), limit)
    tries = _tries(run, attempts, limit)
    admitted = _admitted(state, before[-1] if before else None, limit) if state else None
    question, protocol = engine_question(run.question), arm_context(run.arm_id).protocol
    if state is not None:
        answer: Answer | None = _admitted_answer(state)
    else:
        answer = _refused_answer(ruling, tries, sent, protocol, question)
    scoring = scored(answer, question, protocol.normaliser) if answer is not None else None
    earlier = scored(before[-1].answer, question, protocol.normaliser) if before else None
    return CellView(
        t=t,
        agent_id=agent_id,
        ruling=ruling,
        badge=STATUS_BADGES[Status(ruling.status)] if ruling else ("busy", "round open"),
        sent=sent,
        tries=tries,
        admitted=admitted,
        kept=before[-1] if before and state is None else None,
        is_cut=any(text.is_cut for text in _texts(sent, tries, admitted)),
        scoring=scoring,
        held_before=earlier,
        went=way_between(
            earlier.correct if earlier is not None else None,
            scoring.correct if scoring is not None and state is not None else None,
        ),
    )


def _admitted_answer(state: StateRow) -> Answer:
    return Answer(
        raw=state.answer_raw,
        kind=AnswerKind(state.answer_kind),
        value=state.answer_value,
        rule=state.answer_rule,
    )


def _refused_answer(
    ruling: Ruling | None,
    tries: list[Try],
    sent: list[Sent],
    protocol: Protocol,
    question: Question,
) -> Answer | None:
    """Return what a reply that was ruled INVALID holds; None where it is shown in part only."""
    if ruling is None or ruling.status != Status.INVALID:
        return None
    for attempt in reversed(tries):
        request = next((s for s in sent if attempt.row.ordinal in s.ordinals), None)
        end = next((end for end in attempt.ends if not end.row.late), None)
        if end is None or request is None:
            continue
        if end.raw.is_cut or any(message.content.is_cut for message in request.messages):
            return None
        return read_again(
            bytes(end.row.raw_start),  # type: ignore[attr-defined]  # An annotation.
            finish_reason=end.row.finish_reason,
            prompt=tuple(
                PromptMessage(message.role, message.content.text)  # type: ignore[arg-type]
                for message in request.messages
            ),
            question=question,
            protocol=protocol,
        )
    return None


def _texts(sent: list[Sent], tries: list[Try], admitted: Admitted | None) -> Iterable[Cut]:
    for one in sent:
        yield from (message.content for message in one.messages)
    for attempt in tries:
        for end in attempt.ends:
            yield from (end.raw, end.detail)
    if admitted is not None:
        yield from (admitted.text, admitted.answer_raw)


def _sent(
    attempts: list[Attempt],
    prompts: dict[str, str],
    places: dict[tuple[str, int], tuple[int, str]],
    limit: int | None,
) -> list[Sent]:
    requests: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        requests.setdefault(attempt.request_digest, []).append(attempt)
    return [
        Sent(
            digest=digest,
            ordinals=[attempt.ordinal for attempt in same],
            messages=[
                Message(
                    message["role"],
                    cut(message["content"], limit),
                    f"Message {number} of attempt {same[0].ordinal}",
                )
                for number, message in enumerate(json.loads(prompts[digest]), start=1)
            ],
            selected=_selected(same[0].read_set, places),
            dropped=_dropped(same[0].read_set, places),
        )
        for digest, same in requests.items()
    ]


def _selected(
    read_set: dict[str, Any], places: dict[tuple[str, int], tuple[int, str]]
) -> list[Read]:
    found = []
    for entry in (ReadEntry(**body) for body in read_set["entries"]):
        t, digest = places.get((entry.agent_id, entry.state_version), (None, ""))
        found.append(Read(entry, t, digest == entry.content_hash))
    return sorted(found, key=lambda read: read.entry.position)


def _dropped(
    read_set: dict[str, Any], places: dict[tuple[str, int], tuple[int, str]]
) -> list[LeftOut]:
    found = []
    for entry in (Dropped(**body) for body in read_set["dropped"]):
        t, _digest = places.get((entry.agent_id, entry.state_version), (None, ""))
        found.append(LeftOut(entry, t, DROP_WORDS.get(entry.reason, entry.reason)))
    return found


def _tries(run: Run, attempts: list[Attempt], limit: int | None) -> list[Try]:
    ordinals = {attempt.pk: attempt.ordinal for attempt in attempts}
    ends: dict[int, list[End]] = {}
    for row in reads.outcomes_of(attempts, limit):
        raw = cut_bytes(bytes(row.raw_start), row.raw_bytes)  # type: ignore[attr-defined]
        label = f"{'Late reply' if row.late else 'Reply'} to attempt {ordinals[row.attempt_id]}"
        end = End(row, raw, cut(row.error_detail, limit), label)
        ends.setdefault(row.attempt_id, []).append(end)
    movements: dict[int | None, list[Movement]] = {}
    for entry in reads.entries_of(attempts):
        account = "run" if entry.account_id == run.account_id else "experiment"
        movements.setdefault(entry.attempt_id, []).append(Movement(entry, account))
    return [
        Try(
            row=attempt,
            ends=ends.get(attempt.pk, []),
            movements=movements.get(attempt.pk, []),
            retry_of=ordinals.get(attempt.retry_of_id) if attempt.retry_of_id else None,
            decoding=_decoding(attempt.decoding),
        )
        for attempt in attempts
    ]


def _decoding(settings: dict[str, Any]) -> str:
    """Return the settings that were set, as words."""
    said = (
        f"{key} {json.dumps(value)}" for key, value in settings.items() if value not in (None, [])
    )
    return ", ".join(said)


def _admitted(state: StateRow, before: Version | None, limit: int | None) -> Admitted:
    return Admitted(
        row=state,
        text=cut(state.text, limit),
        answer_raw=cut(state.answer_raw, limit),
        claims=[{**claim, "text": cut(claim["text"], limit)} for claim in state.claims],
        parts=_changes(state, before),
        before=before,
    )


def _changes(state: StateRow, before: Version | None) -> list[DiffPart] | None:
    if before is None or before.text.is_cut:
        return None
    if len(state.text) + len(before.text.text) <= MOST_DIFF_CHARS:
        return diff_words(printable(before.text.text), printable(state.text))
    return changed_words(printable(before.text.text), printable(state.text))
