"""Starts billing months when the previous one is over, also for inactive accounts."""

from collections.abc import Sequence

from msgsvc_billing import store
from msgsvc_billing.service import Billing
from msgsvc_core.jobs import Job, JobContext, JobSpec, Stopping
from msgsvc_core.kernel.clock import Clock

#: Accounts that are renewed in one transaction.
STEP = 100


class Renewal:
    """The job that starts billing months."""

    def __init__(self, *, clock: Clock, billing: Billing) -> None:
        self._clock = clock
        self._billing = billing

    @property
    def spec(self) -> JobSpec:
        return JobSpec("billing.renew", self.renew, every_s=600)

    async def renew(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Renews all accounts whose month is over. Safe to run concurrently: each is renewed once."""
        while True:
            if ctx.stopping:
                raise Stopping
            async with ctx.transaction() as tx:
                ended = await store.list_ended(tx, self._clock.now_ms(), STEP)
                # In the same lock order as charges to several accounts.
                for state in sorted(ended, key=lambda state: state.account_id):
                    await self._billing.renew(tx, state)
            if len(ended) < STEP:
                return
