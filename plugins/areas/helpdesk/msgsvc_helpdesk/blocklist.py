"""Blocked customers: their messages neither open tickets nor continue them."""

from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import NotFound
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_helpdesk import blocklist_store
from msgsvc_helpdesk.models import Blocked


class Blocklist:
    """The blocklists of all projects."""

    def __init__(
        self,
        *,
        clock: Clock,
        subscribers: Subscribers,
    ) -> None:
        self._clock = clock
        self._subscribers = subscribers

    async def add(self, tx: Tx, project_id: str, subscriber_id: str, reason: str) -> Blocked:
        """Blocks a subscriber, or changes the reason. Raises `SubscriberNotFound`."""
        await self._subscribers.get(tx, project_id, subscriber_id)
        now_ms = self._clock.now_ms()
        await blocklist_store.upsert(tx, Blocked(project_id, subscriber_id, reason, now_ms))
        return await self.get(tx, project_id, subscriber_id)

    async def get(self, tx: Tx, project_id: str, subscriber_id: str) -> Blocked:
        """Raises `NotFound` for a subscriber who is not blocked."""
        blocked = await blocklist_store.find(tx, project_id, subscriber_id)
        if blocked is None:
            raise NotFound("{subscriber_id} is not on the blocklist", subscriber_id=subscriber_id)
        return blocked

    async def remove(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        """Unblocks a subscriber. Raises `NotFound`."""
        if not await blocklist_store.delete(tx, project_id, subscriber_id):
            raise NotFound("{subscriber_id} is not on the blocklist", subscriber_id=subscriber_id)

    async def page(self, tx: Tx, project_id: str, after: str | None, limit: int) -> list[Blocked]:
        """By the subscriber's id, newest first, from `after` on."""
        return await blocklist_store.list_page(tx, project_id, after, limit)
