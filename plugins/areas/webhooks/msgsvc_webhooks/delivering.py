"""Delivery attempts: batches per webhook, with eight concurrent calls.

A batch loads its data together, and outcomes go to the `OutcomeWriter`, so that an attempt costs little
more than its HTTP call. A batch with slow calls does not delay others.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from msgsvc_core.db import Database, Tx
from msgsvc_core.jobs import Job, JobContext, Stopping
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import Finding
from msgsvc_core.kernel.tracing import within
from msgsvc_core.security import DecryptionError
from msgsvc_webhooks import journal, store
from msgsvc_webhooks.calls import CallsByLane
from msgsvc_webhooks.models import Attempt, Delivery, Webhook
from msgsvc_webhooks.outcomes import Outcome, OutcomeWriter, Written
from msgsvc_webhooks.service import Webhooks


def _(text: str) -> str:
    """Marks what is translated later."""
    return text


#: Seconds after which what a batch has still to send is loaded again: the webhook may have been disabled,
#: or have a new secret, and a person may have been erased from the bodies.
FRESH_S = 1.0

#: What the journal says of a delivery that could not be signed.
UNREADABLE = Finding(
    _("the service can't read this webhook's secret; rotate it, or ask the operator"),
    package="msgsvc_webhooks",
)


class Deliveries:
    """Makes the attempts of the job `webhooks.deliver`."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        webhooks: Webhooks,
        writer: OutcomeWriter,
        calls: CallsByLane,
    ) -> None:
        self._clock = clock
        self._db = db
        self._webhooks = webhooks
        self._writer = writer
        self._calls = calls

    async def deliver(self, ctx: JobContext, jobs: Sequence[Job]) -> None:
        """Makes the next attempt of each delivery, and plans the one after it.

        Returns when all outcomes are written. A delivery that has not been tried when the runner stops
        goes back.
        """
        batch = _Batch(
            ctx, jobs, clock=self._clock, db=self._db, webhooks=self._webhooks, writer=self._writer
        )
        calls = self._calls[jobs[0].lane]
        calls.make(jobs, batch.attempt)
        try:
            await batch.written.all_written()
        except BaseException:
            calls.give_up(batch.attempt)
            raise


class _Batch:
    """Deliveries to one webhook, and what they share."""

    def __init__(
        self,
        ctx: JobContext,
        jobs: Sequence[Job],
        *,
        clock: Clock,
        db: Database,
        webhooks: Webhooks,
        writer: OutcomeWriter,
    ) -> None:
        first = jobs[0]
        self._clock = clock
        self._db = db
        self._webhooks = webhooks
        self._writer = writer
        self.written = Written(ctx, len(jobs))
        self._ctx = ctx
        self._uncalled = {job.job_id: str(job.payload["delivery_id"]) for job in jobs}
        self._project_id = first.project_id or ""
        self._webhook_id = first.lane.partition(":")[2]
        self._loop = asyncio.get_running_loop()
        self._loading = asyncio.Lock()
        self._loaded_s: float | None = None
        self._deliveries: dict[str, Delivery] = {}
        self._webhook: Webhook | None = None
        #: None where they can't be read.
        self._secrets: list[str] | None = None
        self._is_broken = False

    async def attempt(self, job: Job) -> None:
        """Attempts one delivery, and has the outcome written."""
        if self._ctx.stopping or self._is_broken:
            self.written.one(Stopping())
            return
        try:
            outcome = await self._attempt(job)
        except Exception as error:  # noqa: BLE001 - raised by `deliver`
            # What kept this one from its call, an absent database for one, keeps the others too.
            self._is_broken = True
            self.written.one(error)
        else:
            self._writer.add(outcome)

    async def _attempt(self, job: Job) -> Outcome:
        await self._refresh()
        delivery = self._deliveries.get(self._uncalled.pop(job.job_id))
        if delivery is None or delivery.status != "pending":
            # Purged, or finished in another way: only its job is left.
            return Outcome(self.written, job)
        if self._webhook is None or self._webhook.status != "active":
            return Outcome(self.written, job, delivery)
        if self._secrets is None:
            # Retried like any failed attempt: the operator may restore the key, and the journal shows the
            # error meanwhile.
            now_ms = self._clock.now_ms()
            attempt = Attempt(now_ms, 0, error=UNREADABLE.reason, failure=UNREADABLE, is_ours=True)
        else:
            with within(job.span):
                attempt = await self._webhooks.send(self._webhook.url, delivery, self._secrets)
        return self._writer.outcome_of(self.written, job, delivery, self._webhook, attempt)

    async def _refresh(self) -> None:
        if self._is_fresh():
            return
        async with self._loading:
            if not self._is_fresh():
                await self._load()

    def _is_fresh(self) -> bool:
        return self._loaded_s is not None and self._loop.time() - self._loaded_s < FRESH_S

    async def _load(self) -> None:
        self._webhook, sealed, self._deliveries = await self._db.read_inline(self._read)
        self._secrets = None
        with suppress(DecryptionError):
            self._secrets = self._webhooks.unseal(self._webhook_id, sealed)
        self._loaded_s = self._loop.time()

    async def _read(self, tx: Tx) -> tuple[Webhook | None, list[str], dict[str, Delivery]]:
        now_ms = self._clock.now_ms()
        webhook, sealed = await store.find_with_secrets(
            tx, self._project_id, self._webhook_id, now_ms
        )
        ids = list(self._uncalled.values())
        return webhook, sealed, await journal.get_many(tx, self._project_id, ids)
