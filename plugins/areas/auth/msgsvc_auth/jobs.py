"""Removes, once an hour, sessions that nobody asks about any longer."""

from collections.abc import Sequence

from msgsvc_auth import store
from msgsvc_auth.mini_app import store as mini_app_store
from msgsvc_core.jobs import Job, JobContext, JobSpec

#: Days for which a session's outcome can be looked up. Its code is long dead by then; a second
#: verify of it is told `auth_code_invalid` from then on, no more `auth_code_used`.
KEPT_DAYS = 7

DAY_MS = 24 * 3600 * 1000
MINUTE_MS = 60 * 1000


async def purge(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Deletes sessions that were opened more than `KEPT_DAYS` ago, and outdated data of mini apps."""
    async with ctx.completing(*jobs) as tx:
        now_ms = ctx.service.clock.now_ms()
        await store.purge_sessions(tx, now_ms - KEPT_DAYS * DAY_MS)
        # Data that was let through at the last moment is noted a moment later.
        await mini_app_store.purge_uses(tx, now_ms - MINUTE_MS)


PURGE_JOB = JobSpec("auth.purge", purge, every_s=3600)
