"""What the provider does when a subscriber is erased."""

from collections.abc import Sequence

from msgsvc_core.db import Database, Tx
from msgsvc_core.events import Event
from msgsvc_oidc.backchannel_logout.service import LogoutDeliveries
from msgsvc_oidc.grants.service import Grants
from msgsvc_oidc.journal.service import SignInJournal

#: The event of a subscription that ended, and its reason if the subscriber was erased.
DELETED, ERASED = "subscription.deleted", "erased"


class SubscriberErasure:
    """Sessions and consents go with the subscriber's row. Grants go here, for the clients that they are for
    are notified."""

    def __init__(
        self,
        *,
        db: Database,
        grants: Grants,
        deliveries: LogoutDeliveries,
        journal: SignInJournal,
    ) -> None:
        self._db = db
        self._journal = journal
        self._grants = grants
        self._deliveries = deliveries

    async def on_events(self, tx: Tx, events: Sequence[Event]) -> None:
        """Ends the access of all clients, in the transaction that erases the subscriber."""
        for event in events:
            if event.name == DELETED and event.data.get("reason") == ERASED:
                await self._end(tx, event.project_id, event.data["subscriber_id"])

    async def erase(self, project_id: str, subscriber_id: str) -> None:
        """Empties the journals, and does the same for a grant that was made at the same moment."""
        async with self._db.transaction() as tx:
            await self._end(tx, project_id, subscriber_id)
            await self._journal.forget_person(tx, project_id, subscriber_id)
            await self._deliveries.forget_people(tx, project_id)

    async def _end(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        await self._deliveries.person_left(tx, project_id, subscriber_id)
        await self._grants.delete_of_person(tx, project_id, subscriber_id)
