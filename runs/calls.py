"""
The calls of one round: written and paid for before they leave, persisted as they come back.

The desk knows attempts, reservations and repetitions. It judges nothing: whether a reply is
admitted and whether a call is made again is the engine's to say (S11, S31).
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty
from typing import Any

from django.conf import settings
from django.db import connection

from runs.engine.admission import admit
from runs.engine.draws import Draws
from runs.engine.hashing import raw_digest
from runs.engine.judging import judged_invalid
from runs.engine.ledger import Amount
from runs.engine.retries import Ending, decide
from runs.engine.types import CallPlan, CallResult, CallStatus, Question, Snapshot, Status, Verdict
from runs.leases import Signal, Watch
from runs.providers.base import Provider, ProviderReply
from runs.providers.catalog import api_key
from runs.providers.gateway import Gateway
from runs.queries import ArmContext, recorded_provider
from runs.services import finish, ledger, resume
from runs.services.ledger import LeaseLostError
from runs.services.rounds import Lease
from runs.translation import attempt_draft, call_result, outcome_draft, provider_request

#: How long the gateway may take to say how a cancelled call ended.
CANCEL_PATIENCE_SECONDS = 2.0


@dataclass
class Flight:
    """One attempt that was sent and has not come back."""

    attempt_id: int
    call: CallPlan
    ordinal: int
    reserved: Amount
    handle: Any = None


@dataclass
class Progress:
    """What an agent has used up of its repetitions in this round."""

    used: Counter[str] = field(default_factory=Counter)
    next_ordinal: int = 0
    last_attempt: int | None = None


class CallDesk:
    """The calls of one round under one lease."""

    def __init__(
        self,
        *,
        lease: Lease,
        watch: Watch,
        gateway: Gateway,
        arm: ArmContext,
        question: Question,
        snapshot: Snapshot,
        draws: Draws,
        ends_at: float,
        asked: Mapping[str, Question] | None = None,
    ) -> None:
        """
        ``ends_at`` is the end of the round on this process's monotonic clock (S10). ``asked`` is
        what a call is asked where that is not the run's own question: a judge's calls.
        """
        self.lease = lease
        self.watch = watch
        self.gateway = gateway
        self.arm = arm
        self.protocol = arm.protocol
        self.question = question
        self.snapshot = snapshot
        self.draws = draws
        self.ends_at = ends_at
        self.asked = asked or {}
        self.results: list[CallResult] = []
        self.skipped: list[str] = []
        self.cancelled = False
        self.overran = False
        self._flights: dict[int, Flight] = {}
        self._progress: dict[str, Progress] = {}
        self._attempt_ids: dict[tuple[str, int], int] = {}
        self._recorded_models: dict[int, Provider] = {}

    @property
    def remaining_seconds(self) -> float:
        return self.ends_at - time.monotonic()

    def restore(self, calls: Sequence[CallPlan]) -> None:
        """Take over what an earlier worker left: its results count, its lost calls are held."""
        self.overran = resume.has_overrun(self.lease)
        planned = {call.agent_id: call for call in calls}
        for past in resume.attempts_of_round(self.lease):
            progress = self._progress_of(past.agent_id)
            if past.repeats_after is not None:
                progress.used[past.repeats_after] += 1
            progress.next_ordinal = max(progress.next_ordinal, past.ordinal + 1)
            progress.last_attempt = past.attempt_id
            self._attempt_ids[past.agent_id, past.ordinal] = past.attempt_id
            self.results.append(past.result(planned[past.agent_id]))

    def call_all(self, calls: Sequence[CallPlan]) -> None:
        """Reserve for the whole round at once, or agent by agent in a seeded order (S31)."""
        wanted = [call for call in calls if not self._is_answered(call)]
        if not wanted:
            return
        groups: Iterable[Sequence[CallPlan]] = [wanted]
        if self.protocol.limits.round_reservation == "seeded_order":
            order = self.draws.shuffled(wanted, t=self.lease.t, purpose="reservation")
            groups = [[call] for call in order]
        for group in groups:
            if not self._send(group):
                self.skipped.extend(call.agent_id for call in group)

    def collect(self) -> None:
        """Take results as they come, each persisted at once, until all are in or time is up."""
        while self._flights and not self.cancelled:
            if settings.DB_CONNECTIONS:
                connection.close()  # Back to the pool: others need it while this thread waits.
            try:
                batch = [self.watch.inbox.get(timeout=max(self.remaining_seconds, 0.0))]
            except Empty:
                break
            while not self.watch.inbox.empty():
                batch.append(self.watch.inbox.get_nowait())
            self._take(batch)
        self._give_up()

    def deciding_attempts(self, verdicts: Iterable[Verdict]) -> dict[str, int | None]:
        """Return for each agent the attempt that its verdict is about: the admitted or the last."""
        return {v.agent_id: self._deciding_attempt(v) for v in verdicts}

    def attempt_id(self, call_id: str, ordinal: int | None) -> int | None:
        """Return the attempt of this ordinal; None where there was none."""
        return None if ordinal is None else self._attempt_ids[call_id, ordinal]

    # Sending -----------------------------------------------------------------------------

    def _send(self, calls: Sequence[CallPlan], *, delay_seconds: float = 0.0) -> bool:
        """Write the attempts with their reservations, then hand the calls to the gateway."""
        lease = self.lease
        drafts = [self._draft(call) for call in calls]
        made = ledger.reserve_attempts(
            run_id=lease.run_id, t=lease.t, fence=lease.fence, worker=lease.worker, drafts=drafts
        )
        if made is None:
            return False
        for call, draft in zip(calls, drafts, strict=True):
            attempt_id = made[draft.agent_id, draft.ordinal]
            progress = self._progress_of(call.agent_id)
            progress.next_ordinal = draft.ordinal + 1
            progress.last_attempt = attempt_id
            self._attempt_ids[call.agent_id, draft.ordinal] = attempt_id
            flight = Flight(attempt_id, call, draft.ordinal, draft.reserve)
            self._flights[attempt_id] = flight
            flight.handle = self._submit(call, attempt_id, delay_seconds)
        return True

    def _draft(self, call: CallPlan) -> ledger.AttemptDraft:
        progress = self._progress_of(call.agent_id)
        return attempt_draft(
            call,
            model=self.arm.model_of(call.agent_id).name,
            price=self.arm.price_of(call.agent_id),
            agent=self.arm.agent(call.agent_id),
            ordinal=progress.next_ordinal,
            retry_of=progress.last_attempt,
        )

    def _submit(self, call: CallPlan, attempt_id: int, delay_seconds: float) -> Any:
        config = self.arm.model_of(call.agent_id)
        request = provider_request(
            call,
            config=config,
            agent=self.arm.agent(call.agent_id),
            protocol=self.protocol,
            question=self.asked.get(call.agent_id, self.question),
            snapshot=self.snapshot,
            draws=self.draws,
            timeout_seconds=min(
                float(self.protocol.limits.call_timeout_seconds), max(self.remaining_seconds, 0.0)
            ),
        )
        return self.gateway.submit(
            config,
            request,
            token=attempt_id,
            results=self.watch.inbox,
            api_key=api_key(config, os.environ),
            not_before_seconds=delay_seconds,
            provider=self._recorded_model(call.agent_id),
        )

    def _recorded_model(self, agent_id: str) -> Provider | None:
        set_id = self.arm.recorded_sets.get(self.arm.called(agent_id))
        if set_id is None:
            return None
        if set_id not in self._recorded_models:
            self._recorded_models[set_id] = recorded_provider(
                debate_set_id=set_id,
                question_id=self.lease.question_id,
                question_hash=self.draws.question_hash,
                seed=self.lease.seed,
                context=self.arm,
            )
        return self._recorded_models[set_id]

    # Results -----------------------------------------------------------------------------

    def _take(self, batch: list[Any]) -> None:
        came: list[tuple[Flight, ProviderReply]] = []
        lease_lost = False
        for item in batch:
            if item is Signal.LEASE_LOST:
                lease_lost = True
            elif item is Signal.CANCELLED:
                self.cancelled = True
            else:
                flight = self._flights.pop(item.token, None)
                if flight is not None:  # A second delivery of one call is nobody's any more.
                    came.append((flight, item.reply))
        self._persist(came)
        if lease_lost:
            self._leave_to_another()
        for flight, reply in came:
            self._after(flight, reply)

    def _persist(self, came: list[tuple[Flight, ProviderReply]]) -> None:
        if self._record(came):  # Another worker ended these attempts: it holds the lease by now.
            self._leave_to_another()

    def _record(self, came: list[tuple[Flight, ProviderReply]]) -> bool:
        """Write how attempts ended; True where another worker had ended some of them."""
        outcomes = [
            outcome_draft(
                attempt_id=flight.attempt_id,
                reply=reply,
                reserved=flight.reserved,
                price=self.arm.price_of(flight.call.agent_id),
            )
            for flight, reply in came
        ]
        ended = ledger.record_outcomes(
            run_id=self.lease.run_id, account_id=self.lease.account_id, outcomes=outcomes
        )
        late = [o for o in outcomes if o.attempt_id not in ended]
        if late:
            finish.record_late(self.lease, late)
        self.overran |= any(o.settlement.overran for o in outcomes)
        return bool(late)

    def _after(self, flight: Flight, reply: ProviderReply) -> None:
        """Keep the result; call again where the protocol allows it and the money is there."""
        call = flight.call
        result = call_result(call, flight.ordinal, reply)
        self.results.append(result)
        invalid = self._is_invalid(call, result)
        if (reply.status is CallStatus.SUCCEEDED and not invalid) or self.cancelled:
            return
        progress = self._progress_of(call.agent_id)
        retry = decide(
            allowed=self.protocol.retries,
            used=progress.used,
            ending=Ending(reply.status, reply.transient, invalid, reply.retry_after_seconds),
            jitter=self.draws.uniform(
                agent=call.agent_id, t=call.t, purpose="backoff", index=flight.ordinal
            ),
            remaining_seconds=self.remaining_seconds,
        )
        if retry is not None:
            progress.used[retry.cause] += 1
            self._send([call], delay_seconds=retry.delay_seconds)

    def _is_invalid(self, call: CallPlan, result: CallResult) -> bool:
        """Admission is asked here only where its answer could lead to another call."""
        if result.status is not CallStatus.SUCCEEDED or not self.protocol.retries.invalid:
            return False
        if call.agent_id in self.asked:
            return judged_invalid(self.protocol, call, self.asked[call.agent_id], result)
        return self._verdict(call, result).status is Status.INVALID

    def _is_answered(self, call: CallPlan) -> bool:
        """A restored call that ended by itself is over; only one lost with its worker is not."""
        mine = [r for r in self.results if r.agent_id == call.agent_id]
        return bool(mine) and mine[-1].error_class != resume.LOST_WORKER

    def _verdict(self, call: CallPlan, result: CallResult) -> Verdict:
        return admit(
            protocol=self.protocol,
            question=self.question,
            call=call,
            result=result,
            snapshot=self.snapshot,
        )

    def _give_up(self) -> None:
        """End what is still in flight: what it may have used stays held (S31)."""
        if not self._flights:
            return
        for flight in self._flights.values():
            flight.handle.cancel()
        self._persist([(f, self._ending(f, reply)) for f, reply in self._last_replies()])

    def _last_replies(self) -> list[tuple[Flight, ProviderReply]]:
        """Return how the cancelled calls ended: the gateway knows which of them were ever sent."""
        came: list[tuple[Flight, ProviderReply]] = []
        patience_ends = time.monotonic() + CANCEL_PATIENCE_SECONDS
        while self._flights:
            try:
                item = self.watch.inbox.get(timeout=max(patience_ends - time.monotonic(), 0.0))
            except Empty:
                break
            flight = None if isinstance(item, Signal) else self._flights.pop(item.token, None)
            if flight is not None:
                came.append((flight, item.reply))
        unheard = ProviderReply(CallStatus.CANCELLED, error_class="cancelled", billed="maybe")
        came += [(flight, unheard) for flight in self._flights.values()]
        self._flights.clear()
        return came

    def _ending(self, flight: Flight, reply: ProviderReply) -> ProviderReply:
        """A call that the round's end cut short is a TIMEOUT; one that made it counts (S10)."""
        if reply.status is CallStatus.CANCELLED and not self.cancelled:
            reply = replace(reply, status=CallStatus.TIMEOUT, error_class="round_deadline")
        self.results.append(call_result(flight.call, flight.ordinal, reply))
        return reply

    def _leave_to_another(self) -> None:
        """
        The lease is gone: call no more, and change no state (S10).

        What was sent has to be paid for. Its receipt is waited for a moment, because it settles
        what the other worker holds for it (S31).
        """
        handles = [flight.handle for flight in self._flights.values()]
        for handle in handles:
            if not handle.is_sent:
                handle.cancel()
        # A call that was never sent has used nothing, and that is a receipt as well.
        heard = [(f, r) for f, r in self._last_replies() if not _says_nothing(r)]
        for handle in handles:
            handle.cancel()
        self._record(heard)
        raise LeaseLostError(self.lease.run_id)

    def _deciding_attempt(self, verdict: Verdict) -> int | None:
        mine = [r for r in self.results if r.agent_id == verdict.agent_id]
        if verdict.state is None:
            ordinal = max((r.attempt for r in mine), default=None)
        else:
            wanted = verdict.state.raw_hash
            ordinal = min(r.attempt for r in mine if raw_digest(r.raw) == wanted)
        return None if ordinal is None else self._attempt_ids[verdict.agent_id, ordinal]

    def _progress_of(self, agent_id: str) -> Progress:
        return self._progress.setdefault(agent_id, Progress())


def _says_nothing(reply: ProviderReply) -> bool:
    """Tell whether a call was cut off and nobody knows what it has used."""
    return reply.status is CallStatus.CANCELLED and reply.billed == "maybe"
