"""Plans the outcome of a due record, and its event."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgsvc_core.db import WriteBatch
from msgsvc_core.events import NewEvent
from msgsvc_core.kernel.clock import MINUTE_MS
from msgsvc_core.subscribers.models import Subscriber
from msgsvc_scheduling.events import FAILED, RECURRING_SENT, SENT, SKIPPED
from msgsvc_scheduling.models import Outcome, Record
from msgsvc_scheduling.settings import SchedulingSettings

#: The reason of what was not sent as its time was missed.
MISSED = "missed"

#: The reason of what an operator took away from a restored copy.
WITHDRAWN = "withdrawn"

#: The reason of what failed by a mistake of ours; the log has it.
INTERNAL_ERROR = "internal_error"

#: The reason of what can't be sent as its project is disabled: the error code of its requests.
PROJECT_INACTIVE = "project_inactive"

_EVENTS = {"sent": SENT, "failed": FAILED, "skipped": SKIPPED}


@dataclass(slots=True)
class Plan:
    """A record's next state, its event, and the rows to write with it."""

    record: Record
    after: Record
    outcome: Outcome | None = None
    unit: WriteBatch = field(default_factory=WriteBatch)

    def event(self, people: Mapping[tuple[str, str], Subscriber]) -> NewEvent | None:
        """None for what only waits longer."""
        record, outcome = self.record, self.outcome
        if outcome is None:
            return None
        fields: dict[str, Any] = {f"{record.kind}_id": record.record_id}
        name = _EVENTS[outcome.status]
        if outcome.status == "sent":
            fields |= {"message_id": outcome.message_id, "job_id": outcome.job_id}
            name = RECURRING_SENT if record.kind == "recurring" else SENT
        else:
            fields["reason"] = outcome.reason
        whose = people.get((record.project_id, record.subscriber_id or ""))
        return NewEvent(record.project_id, name, fields, whose)


def finished(record: Record, outcome: Outcome, now_ms: int) -> Plan:
    """The plan with this outcome; a recurring record has its next time."""
    return Plan(record, _after(record, outcome, now_ms), outcome)


def not_sent(record: Record, settings: SchedulingSettings, now_ms: int) -> Plan | None:
    """The plan of a record that is not sent now: it was missed, or waits for the end of quiet hours."""
    assert record.due_at_ms is not None, "it is due"
    if now_ms - record.due_at_ms <= settings.grace_minutes * MINUTE_MS:
        return None
    if settings.missed == "skip":
        missed = Outcome("skipped", reason=MISSED, error="the service was down at its time")
        return finished(record, missed, now_ms)
    if record.rule is None:
        return None
    awake_ms = record.rule.awake(now_ms)
    return Plan(record, replace(record, due_at_ms=awake_ms)) if awake_ms > now_ms else None


def of_disabled_project(record: Record, now_ms: int) -> Plan:
    why = "the project was disabled at its time"
    return finished(record, Outcome("failed", reason=PROJECT_INACTIVE, error=why), now_ms)


def withdrawn(record: Record, now_ms: int) -> Plan:
    """The plan where the original of a restored copy may have sent it."""
    why = "withdrawn from a restored copy: the original may have sent it"
    return finished(record, Outcome("skipped", reason=WITHDRAWN, error=why), now_ms)


def failed(record: Record, error: Exception, now_ms: int) -> Plan:
    """The plan after an internal error. Retrying for ever would delay the other records."""
    why = f"{type(error).__name__}; the service's log has more"
    return finished(record, Outcome("failed", reason=INTERNAL_ERROR, error=why), now_ms)


def _after(record: Record, outcome: Outcome, now_ms: int) -> Record:
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
        return done.finished("completed", now_ms)
    return replace(done, due_at_ms=next_ms)
