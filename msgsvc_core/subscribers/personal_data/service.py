"""Collects all that is stored about a person."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgsvc_core.db import Database
from msgsvc_core.db.personal_data import PersonalData, PersonalTable
from msgsvc_core.kernel.aio import yield_every
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import MutuallyExclusiveIdentifiers, ValidationFailed
from msgsvc_core.kernel.json import from_json
from msgsvc_core.subscribers.contacts.models import Contacts
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_core.subscribers.models import Subscriber, SubscriberAnswer
from msgsvc_core.subscribers.people.models import verified
from msgsvc_core.subscribers.people.service import People
from msgsvc_core.subscribers.personal_data import store
from msgsvc_core.subscribers.personal_data.models import SubscriberData
from msgsvc_core.subscribers.service import Subscribers

#: The end of a column's name of Unix milliseconds.
_MS = "_ms"


class PersonalDataExport:
    """Exports what is stored about a person. `declared` are the tables of the core and of all plugins."""

    def __init__(
        self,
        *,
        clock: Clock,
        subscribers: Subscribers,
        people: People,
        contacts: VerifiedContacts,
        declared: Sequence[PersonalData],
    ) -> None:
        self._clock = clock
        self._subscribers = subscribers
        self._people = people
        self._contacts = contacts
        self.declared = tuple(declared)

    async def find(
        self,
        db: Database,
        project_id: str,
        *,
        subscriber_id: str | None,
        external_id: str | None,
    ) -> list[Subscriber]:
        """The subscribers of the person whom a request names: by `external_id` all, by `subscriber_id` one.

        Raises `SubscriberNotFound`, `InvalidExternalId`, `MutuallyExclusiveIdentifiers` for both names, and
        `ValidationFailed` for none.
        """
        if subscriber_id is not None and external_id is not None:
            raise MutuallyExclusiveIdentifiers(
                "give one of them, not both", field="subscriber_id, external_id"
            )
        async with db.read() as tx:
            if subscriber_id is not None:
                return [await self._subscribers.get(tx, project_id, subscriber_id)]
            if external_id is None:
                raise ValidationFailed("give it, or external_id", field="subscriber_id")
            return list((await self._people.get(tx, project_id, external_id)).subscribers)

    async def collect(self, db: Database, subscriber: Subscriber) -> SubscriberData:
        """All that is stored about a subscriber: the profile and, by section, the rows of each table.

        Each table is read by itself, without a connection in between.
        """
        async with db.read() as tx:
            contacts = await self._contacts.find(
                tx, subscriber.project_id, subscriber.subscriber_id
            )
        return SubscriberData(
            profile=_profile(subscriber, contacts),
            data={
                section.section: await self._rows(db, subscriber, section)
                for section in self._sections()
            },
        )

    def now(self) -> str:
        """The time of an export."""
        return to_rfc3339(self._clock.now_ms())

    def _sections(self) -> list[PersonalTable]:
        return [one for one in self.declared if isinstance(one, PersonalTable)]

    async def _rows(
        self, db: Database, subscriber: Subscriber, section: PersonalTable
    ) -> list[dict[str, Any]]:
        params = {
            "project_id": subscriber.project_id,
            "subscriber_id": subscriber.subscriber_id,
            "bot": subscriber.bot,
            "user_id": subscriber.user_id,
            "chat_id": subscriber.chat_id,
        }
        async with db.read() as tx:
            found = await store.rows_of(tx, section, params)
        return [_shown(row, section) async for row in yield_every(found)]


def _profile(subscriber: Subscriber, contacts: Contacts) -> dict[str, Any]:
    return {
        **SubscriberAnswer.of(subscriber).to_data(),
        "source": subscriber.source,
        "user_id": subscriber.user_id,
        "chat_id": subscriber.chat_id,
        "verified_contacts": [each.to_data() for each in verified(contacts)],
    }


def _shown(row: Mapping[str, Any], section: PersonalTable) -> dict[str, Any]:
    """The row as the export shows it: times as RFC 3339, JSON as what it holds."""
    shown: dict[str, Any] = {}
    for column, value in row.items():
        if column.endswith(_MS):
            shown[column.removesuffix(_MS)] = None if value is None else to_rfc3339(value)
        elif column in section.json and value is not None:
            shown[column] = from_json(value)
        else:
            shown[column] = value
    return shown
