"""What happens when the time of a record has come: once, in one transaction, and told."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog

from msgsvc_core.db import DatabaseUnavailable, LockTimeout, Tx
from msgsvc_scheduling import store
from msgsvc_scheduling.events import FAILED, RECURRING_SENT, SENT, SKIPPED
from msgsvc_scheduling.models import Due, Outcome, Record
from msgsvc_scheduling.sending import Sending
from msgsvc_scheduling.settings import SchedulingSettings

if TYPE_CHECKING:
    from msgsvc_core.service import Service

log = structlog.get_logger(__name__)

#: The reason of what was not sent as its time was missed.
MISSED = "missed"

#: The reason of what failed by a mistake of ours; the log has it.
INTERNAL_ERROR = "internal_error"

_EVENTS = {"sent": SENT, "failed": FAILED, "skipped": SKIPPED}

OutcomeOf = Callable[[Tx, Record], Awaitable[Outcome]]


class Running:
    """`service.get(Running)`."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._settings = service.section(SchedulingSettings)
        self._sending = Sending(service)

    async def run(self, due: Due) -> None:
        """Does what is due, once however many processes try.

        What fails by a mistake of ours is told as failed: tried for ever, it would hold up the rest.
        """
        try:
            await self._run(due, self._outcome)
        except (DatabaseUnavailable, LockTimeout):
            raise
        except Exception as error:
            log.exception("scheduled_message_failed", id=due.record_id)
            why = f"{type(error).__name__}; the service's log has more"
            failed = Outcome("failed", reason=INTERNAL_ERROR, error=why)

            async def told(_tx: Tx, _record: Record) -> Outcome:
                return failed

            await self._run(due, told)

    async def _run(self, due: Due, outcome_of: OutcomeOf) -> None:
        now_ms = self._service.clock.now_ms()
        async with self._service.db.transaction() as tx:
            # The person before the record, as an erasure has them: two who go the other way would
            # wait for each other.
            if due.subscriber_id is not None:
                await store.keep_subscriber(tx, due.project_id, due.subscriber_id)
            record = await store.hold_due(tx, due)
            if record is None:
                return
            quiet_until_ms = self._quiet_until(record, now_ms)
            if quiet_until_ms is not None:
                await store.move_on(tx, due, replace(record, due_at_ms=quiet_until_ms))
                return
            outcome = await outcome_of(tx, record)
            moved = await store.move_on(tx, due, _after(record, outcome, now_ms))
            assert moved, "the record is held"
            await self._tell(tx, record, outcome)

    def _is_missed(self, record: Record, now_ms: int) -> bool:
        assert record.due_at_ms is not None, "it is due"
        return now_ms - record.due_at_ms > self._settings.grace_minutes * 60_000

    def _quiet_until(self, record: Record, now_ms: int) -> int | None:
        """When quiet hours end into which a run falls that is caught up; None outside them."""
        if record.rule is None or self._settings.missed == "skip":
            return None
        if not self._is_missed(record, now_ms):
            return None
        awake_ms = record.rule.awake(now_ms)
        return awake_ms if awake_ms > now_ms else None

    async def _outcome(self, tx: Tx, record: Record) -> Outcome:
        now_ms = self._service.clock.now_ms()
        if self._settings.missed == "skip" and self._is_missed(record, now_ms):
            return Outcome("skipped", reason=MISSED, error="the service was down at its time")
        return await self._sending.hand_over(tx, record)

    async def _tell(self, tx: Tx, record: Record, outcome: Outcome) -> None:
        subscriber = None
        if record.subscriber_id is not None:
            subscriber = await self._service.subscribers.find(
                tx, record.project_id, record.subscriber_id
            )
        fields: dict[str, Any] = {f"{record.kind}_id": record.record_id}
        name = _EVENTS[outcome.status]
        if outcome.status == "sent":
            fields |= {"message_id": outcome.message_id, "job_id": outcome.job_id}
            name = RECURRING_SENT if record.kind == "recurring" else SENT
        else:
            fields["reason"] = outcome.reason
        await self._service.events.emit(tx, record.project_id, name, fields, subscriber=subscriber)


def _after(record: Record, outcome: Outcome, now_ms: int) -> Record:
    """The record when that has become of it."""
    done = replace(
        record,
        message_id=outcome.message_id,
        job_id=outcome.job_id,
        reason=outcome.reason,
        error=outcome.error,
        last_run_at_ms=now_ms,
    )
    if record.rule is None:
        return done.finished(outcome.status, now_ms)
    assert record.due_at_ms is not None, "it was due"
    # Of all runs that were missed there is one.
    next_ms = record.rule.next_after(max(now_ms, record.due_at_ms))
    if next_ms is None:
        return done.finished("ended", now_ms)
    return replace(done, due_at_ms=next_ms)
