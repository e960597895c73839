"""How many recipients a run of a shard may claim now, and when to check again."""

from dataclasses import dataclass

from msgsvc_core.channels.outbound.gate import OutboundGate
from msgsvc_core.mailings import pace
from msgsvc_core.mailings.models import Mailing

#: The share of those in flight that are claimed, and recorded, together, while the others' calls are in
#: progress. If all were claimed at once, all would end at once and wait for the database.
GROUP_SHARE = 0.5

#: Seconds between checks of the mailing while the platform is slow: it may have been paused.
CHECK_S = 0.25


@dataclass(frozen=True, slots=True)
class Claimable:
    """How many recipients may be claimed. `resume_at_ms` is when to continue, in Unix milliseconds, if the
    run should end because that will not change soon."""

    count: int
    resume_at_ms: int | None = None


class ClaimWindow:
    """The recipients that one run may have in flight: up to `limit`, within the channel's limit that all its
    mailings share, its rate limits, and the mailing's own pace."""

    def __init__(self, gate: OutboundGate, limit: int) -> None:
        self._gate = gate
        #: Maximum in flight, of this mailing alone, if the platform is quick enough; and how many are claimed
        #: together.
        self._max_limit = limit
        self._limit = self.group_size = 1
        self._slots = gate.concurrency.slots(bulk=True)
        #: Whether no recipient could be claimed because other mailings of the channel use the limit in
        #: flight.
        self._waits_for_slots = False
        #: Number of outcomes that are being written: their places are free afterwards.
        self._recording = 0
        #: Whether a full group was claimed, so that there may be more.
        self._was_full = False
        #: When the next recipients are due by the mailing's pace, if that is soon, in Unix milliseconds.
        self.next_due_ms: int | None = None

    def recording(self, count: int, in_flight: int) -> None:
        """So many outcomes are written now, beside those in flight."""
        self._recording = count
        self._slots.set(in_flight + count)

    def set_in_flight(self, count: int) -> None:
        self._slots.set(count)

    def reset(self) -> None:
        """Before a claim."""
        self._was_full, self.next_due_ms = False, None
        self._waits_for_slots = False

    def claimed(self, count: int) -> None:
        """So many recipients were found; more may be there after a full group."""
        self._was_full = count == self.group_size

    def claimable(self, mailing: Mailing, now_ms: int, in_flight: int) -> Claimable:
        self._limit = min(self._max_limit, self._gate.concurrency.bulk_limit)
        self.group_size = max(1, int(self._limit * GROUP_SHARE))
        due, check_ms = self._limit, None
        if mailing.per_minute is not None:
            due, check_ms = pace.capacity(mailing, now_ms), pace.check_interval_ms(mailing)
            if due <= 0 and check_ms is None:
                return Claimable(0, pace.retry_at_ms(mailing, now_ms))
        free, resume_at_ms = min(self.group_size, self._limit - in_flight), None
        capacity = self._gate.paced_capacity()
        if capacity is not None:
            free = min(free, capacity.jobs)
            if free <= 0 and not in_flight:
                # The lane's gate knows when to continue.
                resume_at_ms = now_ms
        slots = self._slots.available + self._recording
        if slots < free:
            self._waits_for_slots = slots <= 0 and not in_flight
            free = slots
        if check_ms is not None and due <= free:
            self.next_due_ms = now_ms + check_ms
        count = min(free, due)
        # Counted before they are in flight: other mailings of the channel claim recipients meanwhile.
        self._slots.set(max(self._slots.count, in_flight + count))
        return Claimable(count, resume_at_ms)

    def has_room(self, in_flight: int) -> bool:
        """Whether another group may be claimed."""
        return self._was_full and in_flight + self.group_size <= self._limit

    def wait_s(self, now_ms: int) -> float:
        """Seconds until the mailing should be checked."""
        wait_s = CHECK_S
        if self.next_due_ms is not None:
            wait_s = max(0.0, (self.next_due_ms - now_ms) / 1000)
        capacity = self._gate.paced_capacity()
        if capacity is None:
            return wait_s
        return min(wait_s, max(0.02, (capacity.next_check_ms - now_ms) / 1000))

    async def until_slots(self) -> None:
        """Waits while other mailings of the channel use the whole limit in flight."""
        while self._waits_for_slots and self._slots.available <= 0:
            await self._gate.concurrency.until_changed()
