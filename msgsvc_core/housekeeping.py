"""Once an hour: removes what the core need not remember, and lets older secret keys be retired."""

from collections.abc import Sequence

from msgsvc_core import key_canary
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec

#: Hours for which ids of updates are kept; Telegram keeps an unfetched update for 24.
UPDATE_HOURS = 48

HOUR_MS = 3600 * 1000

#: Tables whose rows mean nothing after their `expires_at_ms`.
ENDING = (
    "core_links",
    "core_member_links",
    "core_account_links",
    "core_account_sessions",
    "core_account_requests",
)


async def purge(ctx: JobContext, jobs: Sequence[Job]) -> None:
    """Deletes old update ids, idempotency records, events, links, sessions and entries of the audit log.

    Settings of channels and second factors that an older secret key encrypted are encrypted by the
    current one.
    """
    service = ctx.service
    now_ms = service.clock.now_ms()
    kept_ms = service.settings.limits.idempotency_hours * HOUR_MS
    async with ctx.completing(*jobs) as tx:
        await service.own_channels.reseal(tx)
        await service.second_factor.reseal(tx)
        await key_canary.reseal(tx, service.secrets)
        await tx.execute(
            "DELETE FROM core_updates WHERE received_at_ms < :limit_ms",
            {"limit_ms": now_ms - UPDATE_HOURS * HOUR_MS},
        )
        await tx.execute(
            "DELETE FROM core_idempotency WHERE created_at_ms < :limit_ms",
            {"limit_ms": now_ms - kept_ms},
        )
        await tx.execute(
            "DELETE FROM core_events WHERE occurred_at_ms < :limit_ms",
            {"limit_ms": now_ms - service.settings.limits.event_days * 24 * HOUR_MS},
        )
        await service.audit.forget_old(tx)
        for links in ENDING:
            await tx.execute(
                f"DELETE FROM {links} WHERE expires_at_ms < :now_ms", {"now_ms": now_ms}
            )


PURGE_JOB = JobSpec("core.purge", purge, every_s=3600)
