"""The person of a grant, as claims tell of them."""

from msgsvc_core.db import Database
from msgsvc_core.kernel.errors import SubscriberNotFound
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_oidc.protocol.errors import invalid_token
from msgsvc_oidc.protocol.scopes import Person
from msgsvc_oidc.protocol.token import Grant


class People:
    """Reads subscribers with their verified contacts."""

    def __init__(
        self, *, db: Database, subscribers: Subscribers, contacts: VerifiedContacts
    ) -> None:
        self._db = db
        self._subscribers = subscribers
        self._contacts = contacts

    async def get(self, grant: Grant) -> Person:
        """Raises `OAuthError` if the person was erased."""
        found = await self.find(grant)
        if found is None:
            raise invalid_token("the person is no longer known")
        return found

    async def find(self, grant: Grant) -> Person | None:
        """None for a person who was erased."""
        async with self._db.read() as tx:
            try:
                found = await self._subscribers.get(tx, grant.project_id, grant.subscriber_id)
            except SubscriberNotFound:
                return None
            contacts = await self._contacts.find(tx, grant.project_id, grant.subscriber_id)
        return Person(
            first_name=found.first_name,
            username=found.username,
            locale=found.locale or found.lang,
            updated_at_ms=found.last_seen_at_ms,
            phone=contacts.phone,
            email=contacts.email,
        )
