"""Removes, once an hour, sessions that nobody asks about any longer."""

from collections.abc import Sequence

from msgsvc_auth import store
from msgsvc_core.jobs import Job, JobContext, JobSpec

#: Days for which a session's outcome can be looked up. Its code is long dead by then; a second
#: verify of it is told `auth_code_invalid` from then on, no more `auth_code_used`.
KEPT_DAYS = 7

DAY_MS = 24 * 3600 * 1000


async def purge(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Deletes sessions that were opened more than `KEPT_DAYS` ago."""
    async with ctx.completing(*jobs) as tx:
        await store.purge_sessions(tx, ctx.service.clock.now_ms() - KEPT_DAYS * DAY_MS)


PURGE_JOB = JobSpec("auth.purge", purge, every_s=3600)
