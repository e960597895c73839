"""The hourly purge."""

from collections.abc import Sequence
from functools import partial

from msgsvc_core.db import Tx
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_steps
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_sms import store

#: Days for which rows are of use: texts that nobody reads, parts of a text whose others never came, numbers
#: that are taken for known, and counters and blocks after their window.
KEPT_DAYS = {
    "sms_inbox": 7,
    "sms_parts": 1,
    "sms_numbers": 365,
    "sms_counters": 1,
    "sms_blocks": 1,
}


class SmsJobs:
    """Deletes what is of no use any more."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    def specs(self) -> list[JobSpec]:
        return [JobSpec("sms.purge", self.purge, every_s=3600)]

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        now_ms = self._clock.now_ms()
        for table, days in KEPT_DAYS.items():
            await in_steps(ctx, partial(self._purge, table, now_ms - days * DAY_MS))

    async def _purge(self, table: str, before_ms: int, tx: Tx, limit: int) -> int:
        return await store.purge(tx, table, before_ms, limit)
