"""Background work: months begin when the one before is over, also of accounts that do nothing."""

from collections.abc import Sequence

from msgsvc_billing import store
from msgsvc_billing.service import Billing
from msgsvc_core.jobs import Job, JobContext, JobSpec, Stopping

#: Accounts that are renewed in one transaction.
STEP = 100


async def renew(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Renews all accounts whose month is over. Two who do it at once renew each one once."""
    service = ctx.service
    billing = service.get(Billing)
    while True:
        if ctx.stopping:
            raise Stopping
        async with service.db.transaction() as tx:
            ended = await store.list_ended(tx, service.clock.now_ms(), STEP)
            # In one order, as whoever charges several accounts has it.
            for state in sorted(ended, key=lambda state: state.account_id):
                await billing.renew(tx, state)
        if len(ended) < STEP:
            return


RENEW_JOB = JobSpec("billing.renew", renew, every_s=600)
