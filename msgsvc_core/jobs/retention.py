"""Once an hour: removes what the core need not remember, and lets older secret keys be retired."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgsvc_core.db import Tx
from msgsvc_core.db.sql import some_of
from msgsvc_core.jobs.contract import Job, JobContext, JobSpec
from msgsvc_core.jobs.steps import in_parts, in_steps
from msgsvc_core.security import key_canary

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Hours for which ids of updates are kept; Telegram keeps an unfetched update for 24.
UPDATE_HOURS = 48

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS

#: Tables whose rows mean nothing after their `expires_at_ms`.
ENDING = (
    "core_links",
    "core_member_links",
    "core_account_links",
    "core_account_sessions",
    "core_account_requests",
    "core_start_codes",
    "core_limit_hits",
)


async def purge(ctx: JobContext, _jobs: Sequence[Job]) -> None:
    """Deletes old update ids, idempotency records, events, links, sessions and entries of the audit log.

    Settings of channels and second factors that an older secret key encrypted are encrypted by the
    current one.
    """
    service = ctx.service
    now_ms = service.clock.now_ms()
    limits, accounts = service.settings.limits, service.settings.accounts
    aged = (
        ("core_updates", "received_at_ms", UPDATE_HOURS * HOUR_MS),
        ("core_offers", "asked_at_ms", limits.answer_hours * HOUR_MS),
        ("core_idempotency", "created_at_ms", limits.idempotency_hours * HOUR_MS),
        ("core_events", "occurred_at_ms", limits.event_days * DAY_MS),
        ("core_audit", "at_ms", accounts.audit_days * DAY_MS),
    )
    await in_parts(
        partial(_reseal, service),
        *(
            partial(_remove, ctx, table, column, now_ms - kept_ms)
            for table, column, kept_ms in aged
        ),
        *(partial(_remove, ctx, table, "expires_at_ms", now_ms) for table in ENDING),
    )


async def _reseal(service: "Service") -> None:
    async with service.db.transaction() as tx:
        await service.own_channels.reseal(tx)
        await service.second_factor.reseal(tx)
        await key_canary.reseal(tx, service.secrets)


async def _remove(ctx: JobContext, table: str, column: str, before_ms: int) -> None:
    """Removes the rows whose time is before then."""

    async def some(tx: Tx, most: int) -> int:
        old = some_of(table, f"{column} < :before_ms", tx.dialect)
        params = {"before_ms": before_ms, "most": most}
        return await tx.execute(f"DELETE FROM {table} WHERE {old}", params)

    await in_steps(ctx, some)


PURGE_JOB = JobSpec("core.purge", purge, every_s=3600)
