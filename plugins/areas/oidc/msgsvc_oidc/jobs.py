"""Hourly jobs: deletes what has ended, and rotates the signing keys."""

from collections.abc import Sequence

from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS, Clock
from msgsvc_oidc.keys.service import SigningKeys
from msgsvc_oidc.settings import OidcSettings

#: Days for which a grant that ended is kept, so that its replayed code or token is recognised.
KEPT_DAYS = 7


class OidcJobs:
    """The plugin's jobs."""

    def __init__(self, *, clock: Clock, settings: OidcSettings, keys: SigningKeys) -> None:
        self._keys = keys
        # As long as a session can last: its clients are found by their grants.
        kept_ms = max(KEPT_DAYS * DAY_MS, settings.session_hours * HOUR_MS)
        self._retention = Retention(
            name="oidc.purge",
            clock=clock,
            rules=[
                RetentionRule("oidc_requests", "expires_at_ms"),
                RetentionRule("oidc_sessions", "expires_at_ms", KEPT_DAYS * DAY_MS),
                RetentionRule("oidc_device_requests", "expires_at_ms", HOUR_MS),
                RetentionRule("oidc_ciba_requests", "expires_at_ms", HOUR_MS),
                RetentionRule("oidc_grants", "ends_at_ms", kept_ms),
                RetentionRule("oidc_registration_tokens", "expires_at_ms", KEPT_DAYS * DAY_MS),
                RetentionRule("oidc_assertions", "expires_at_ms"),
                RetentionRule("oidc_sign_ins", "at_ms", settings.sign_in_log_days * DAY_MS),
                RetentionRule(
                    "oidc_logout_deliveries", "created_at_ms", settings.sign_in_log_days * DAY_MS
                ),
            ],
        )

    def specs(self) -> list[JobSpec]:
        return [self._retention.spec, JobSpec("oidc.rotate_keys", self.rotate_keys, every_s=3600)]

    async def rotate_keys(self, ctx: JobContext, _jobs: Sequence[Job]) -> None:
        """Promotes, retires and deletes the keys that are due."""
        async with ctx.transaction() as tx:
            await self._keys.rotate(tx)
