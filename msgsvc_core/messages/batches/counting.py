"""Counts what becomes of the messages of a batch, and tells when nothing is left to come."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from msgsvc_core.db import Tx
from msgsvc_core.events import Events, NewEvent
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.messages.batches import store
from msgsvc_core.messages.batches.models import Batch
from msgsvc_core.messages.models import FinalStatus

#: Tells of a batch of which nothing was taken: what makes it only adds rows, and emits no event.
JOB = "batch.complete"


class BatchCounts:
    """How many of a batch's messages have ended, and as what."""

    def __init__(self, *, clock: Clock, events: Events) -> None:
        self._clock = clock
        self._events = events

    @property
    def spec(self) -> JobSpec:
        return JobSpec(JOB, self.complete)

    async def count(
        self, tx: Tx, ended: Sequence[FinalStatus], corrected: Sequence[FinalStatus] = ()
    ) -> None:
        """Counts messages that have just ended in `tx`, each for the first time, and has those that were
        `unknown` until now counted as what they are.

        Called once in a transaction, as its last step: it holds the batches' rows, which the other lanes
        of the same batches wait for, and two calls could take them in different orders. Emits
        `batch.completed` for those of which all is final. A message that is removed before it ended is
        `skipped`.
        """
        more, known = _of_batches(ended), _of_batches(corrected)
        if known:
            await store.correct(tx, known, with_rows_of=more)
        if more:
            completed = await store.count(tx, more, self._clock.now_ms())
            await self._events.emit_many(tx, [_completed(batch) for batch in completed])

    async def count_failed(self, tx: Tx, failed: Sequence[FinalStatus]) -> None:
        """Counts messages as failed that were counted as sent."""
        if found := _of_batches(failed):
            await store.count_failed(tx, found)

    async def complete(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Tells of batches of which nothing was taken."""
        keys = [(job.project_id or "", job.payload["batch_id"]) for job in jobs]
        async with ctx.completing(*jobs) as tx:
            batches = await store.find_many(tx, keys)
            await self._events.emit_many(tx, [_completed(batch) for batch in batches])


def _of_batches(endings: Sequence[FinalStatus]) -> list[store.Ended]:
    """How many of each batch ended as what."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for end in endings:
        if end.message.batch_id is not None:
            key = (end.message.project_id, end.message.batch_id)
            counts[key][end.status] += 1
    return [
        store.Ended(
            project_id,
            batch_id,
            sent=of["sent"],
            # What is unknown is taken to have failed (decision 0075).
            failed=of["failed"] + of["unknown"],
            skipped=of["skipped"],
            unknown=of["unknown"],
        )
        for (project_id, batch_id), of in counts.items()
    ]


def _completed(batch: Batch) -> NewEvent:
    return NewEvent(batch.project_id, "batch.completed", batch.event_fields())
