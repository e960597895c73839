"""Deletes expired sessions and requests, once an hour."""

from collections.abc import Sequence

from msgsvc_auth import store
from msgsvc_auth.mini_app.service import purge_uses
from msgsvc_auth.requested.pages import purge_requests
from msgsvc_core.jobs import Job, JobContext, JobSpec, in_parts, in_steps
from msgsvc_core.kernel.clock import DAY_MS, MINUTE_MS, Clock

#: Days for which a session's outcome can be looked up. Its code has expired long before; afterwards,
#: verifying it again gives `auth_code_invalid` instead of `auth_code_used`.
KEPT_DAYS = 7


class SessionPurge:
    """The job that deletes old sessions."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock

    @property
    def spec(self) -> JobSpec:
        return JobSpec("auth.purge", self.purge, every_s=3600)

    async def purge(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Deletes sessions that were opened more than `KEPT_DAYS` ago, expired requests of other plugins,
        and outdated data of mini apps."""
        now_ms = self._clock.now_ms()
        before_ms = now_ms - KEPT_DAYS * DAY_MS
        # Data that was let through at the last moment is noted a moment later.
        used_before_ms = now_ms - MINUTE_MS
        # Sign-ins that were started on a page at the last moment, and their codes, have ended as well.
        asked_before_ms = now_ms - DAY_MS
        await in_parts(
            lambda: in_steps(ctx, lambda tx, most: store.purge_sessions(tx, before_ms, most)),
            lambda: in_steps(ctx, lambda tx, most: purge_uses(tx, used_before_ms, most)),
            lambda: in_steps(ctx, lambda tx, most: purge_requests(tx, asked_before_ms, most)),
        )
