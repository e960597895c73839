"""Who pressed which button of a broadcast, for its report."""

from collections.abc import AsyncIterator, Sequence

from msgsvc_broadcasts import store
from msgsvc_core.db import Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.events import Event
from msgsvc_core.jobs import JobSpec
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.kernel.clock import DAY_MS, Clock
from msgsvc_core.mailings.audience import MOST_LOOKED_AT
from msgsvc_core.messages.service import Messages

CLICKED = "button.clicked"

#: People who clicked that are read at once.
PEOPLE = 2000


class Clicks:
    """Records presses in the transaction of their event, and counts them. They are kept as long as the
    recipients of a broadcast, and so are clicks on links."""

    def __init__(self, *, clock: Clock, messages: Messages, kept_days: int) -> None:
        self._messages = messages
        self._retention = Retention(
            name="broadcasts.purge",
            clock=clock,
            rules=[
                RetentionRule(table, "clicked_at_ms", kept_days * DAY_MS)
                for table in ("broadcasts_clicks", "broadcasts_link_clicks")
            ],
        )

    def specs(self) -> list[JobSpec]:
        return [self._retention.spec]

    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        """Records the presses among `events` on messages of broadcasts."""
        pressed = [event for event in events if event.name == CLICKED]
        for project_id in dict.fromkeys(event.project_id for event in pressed):
            here = [event for event in pressed if event.project_id == project_id]
            ids = sorted({event.data["message_id"] for event in here})
            messages = await self._messages.get_many(tx, project_id, ids)
            for event in here:
                message = messages.get(event.data["message_id"])
                if message is not None and message.job_id is not None:
                    await store.add_click(
                        tx,
                        project_id,
                        message.job_id,
                        event.data["data"],
                        message.subscriber_id,
                        event.occurred_at_ms,
                    )

    async def people(self, tx: Tx, project_id: str, job_id: str) -> AsyncIterator[list[str]]:
        """All subscribers who clicked something in a broadcast, each once, in portions."""
        after = ""
        while found := await store.list_clickers(tx, project_id, job_id, after, PEOPLE):
            yield found
            after = found[-1]

    async def count(
        self, tx: Tx, project_id: str, job_id: str, limit: int = MOST_LOOKED_AT
    ) -> dict[str, int]:
        """How many people pressed each button of a broadcast, by its data, of at most `limit` presses."""
        return await store.count_clicks(tx, project_id, job_id, limit)
