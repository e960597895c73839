"""Tells operators of limits that were reached: an event, a line in the log, a metric."""

from functools import partial

import structlog
from prometheus_client import CollectorRegistry, Counter

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_sms.events import LIMIT_REACHED

log = structlog.get_logger(__name__)


class Operators:
    """The plugin's one object for all channels, which find it by its type."""

    def __init__(self, *, events: Events, registry: CollectorRegistry) -> None:
        self._events = events
        self._stopped = Counter(
            "msgsvc_sms_stopped",
            "Messages that a limit of an SMS channel stopped, by limit.",
            ["rule"],
            registry=registry,
        )

    async def limit_reached(
        self,
        tx: Tx,
        identity: ChannelIdentity,
        project_id: str | None,
        *,
        rule: str,
        says: str,
        ends_at_ms: int,
        first: bool,
    ) -> None:
        """A message was stopped; `first` since the limit was reached, of which alone there is an event."""
        tx.on_commit(partial(self._stopped.labels(rule).inc, 1))
        if not first:
            return
        if project_id is not None:
            fields = {
                "channel": identity.name,
                "limit": rule,
                "detail": says,
                "until": to_rfc3339(ends_at_ms),
            }
            await self._events.emit(tx, project_id, LIMIT_REACHED, fields)
        tx.on_commit(
            lambda: log.warning("sms_limit_reached", channel=identity.key, reason=rule, detail=says)
        )
