"""Handles dead letters of mailings' jobs: such a mailing must not end as if it had been sent to everyone."""

from msgsvc_core.channels.lanes import channel_of
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import Job
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.mailings import store
from msgsvc_core.mailings.deliveries import SendContext
from msgsvc_core.mailings.models import Mailing
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.service import SEND_JOB, Mailings


class DeadMailings:
    """Settles mailings whose jobs are dead letters."""

    def __init__(
        self, *, clock: Clock, gates: OutboundGates, mailings: Mailings, outcomes: MailingOutcomes
    ) -> None:
        self._clock = clock
        self._gates = gates
        self._mailings = mailings
        self._outcomes = outcomes

    async def dead_letter(self, tx: Tx, job: Job, _error: str) -> None:
        """Pauses the mailing with the reason, so that it can be resumed; completes a cancelled one."""
        key = job.project_id or "", job.payload["job_id"]
        # The reason is not given to the project: it may name hosts and files of the operator.
        why = "the service could not go on; its operator can see why"
        now_ms = self._clock.now_ms()
        if await store.set_status(
            tx, *key, "paused", ("scheduled", "running"), now_ms=now_ms, error=why
        ):
            return
        mailing = await store.lock(tx, *key)
        if mailing is not None and mailing.status == "cancelled":
            if job.name == SEND_JOB:
                await self._settle_in_flight(tx, mailing, job)
            await self._mailings.finish(tx, *key, "cancelled")

    async def _settle_in_flight(self, tx: Tx, mailing: Mailing, job: Job) -> None:
        """Settles the recipients that the shard had in flight."""
        gate = self._gates[channel_of(job.lane)]
        context = SendContext(mailing, None, gate)
        await self._outcomes.settle_left(context, tx, job)
