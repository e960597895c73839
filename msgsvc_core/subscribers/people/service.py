"""People: shown with all addresses, merged and split."""

from collections.abc import Sequence

from msgsvc_core.api.pagination import PageQuery, read_position
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, SubscriberNotFound, ValidationFailed
from msgsvc_core.parts import OnMerged
from msgsvc_core.subscribers.contacts.service import VerifiedContacts
from msgsvc_core.subscribers.models import Subscriber, UpdateSubscriberBody
from msgsvc_core.subscribers.people import store
from msgsvc_core.subscribers.people.models import Consent, Person
from msgsvc_core.subscribers.service import Subscribers, check_external_id
from msgsvc_core.subscribers.subscribing import lock_external_id


class People:
    """A person is the subscribers with one `external_id`, at most one on a channel: there
    is no table of people."""

    def __init__(
        self, *, subscribers: Subscribers, contacts: VerifiedContacts, on_merged: Sequence[OnMerged]
    ) -> None:
        self._subscribers = subscribers
        self._contacts = contacts
        self._on_merged = on_merged

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[Person]:
        """By `external_id`; one more than `query.limit` if there are more."""
        place = read_position(query.after)
        after = None if place is None else place[1]
        ids = await store.list_external_ids(tx, project_id, after, query.fetch_limit)
        return await self._people(tx, project_id, ids)

    async def get(self, tx: Tx, project_id: str, external_id: str) -> Person:
        """Raises `InvalidExternalId`, and `SubscriberNotFound` if no subscriber has this id."""
        check_external_id(external_id)
        found = await self._people(tx, project_id, [external_id])
        if not found:
            raise _nobody(external_id)
        return found[0]

    async def set_consent(
        self, tx: Tx, project_id: str, external_id: str, channel: str, consent: Consent
    ) -> Person:
        """Subscribes or unsubscribes a person on one channel, with the events of that. Nothing happens where
        it is so already. Raises `SubscriberNotFound`, `ValidationFailed` for an unknown channel, and
        `Conflict` for a person who blocked the bot."""
        found = await self._subscribers.get_by_identifier(
            tx, project_id, subscriber_id=None, external_id=external_id, channel=channel
        )
        if consent == "unsubscribed":
            await self._subscribers.unsubscribe(tx, project_id, found.subscriber_id, reason="api")
        elif found.status != "active":
            await self._subscribers.resubscribe(tx, project_id, found.subscriber_id)
        return await self.get(tx, project_id, external_id)

    async def merge(self, tx: Tx, project_id: str, external_id: str, into: str) -> Person:
        """Gives all subscribers of a person the id of another, who is the same.

        One-time codes and sign-ins in progress belong to subscribers, and go on; personal links that are
        open lead to the id that stays, and messages that wait at a route's step are for it. Raises
        `InvalidExternalId`, `ValidationFailed` for one id twice, `SubscriberNotFound` if one of them has no
        subscribers, and `Conflict` if both are on a channel.
        """
        check_external_id(external_id)
        check_external_id(into)
        if external_id == into:
            raise ValidationFailed("must be another id than external_id", field="into")
        # In one order, so that two merges don't wait for each other.
        for one in sorted((external_id, into)):
            await lock_external_id(tx, project_id, one)
        ending = await store.lock_channels(tx, project_id, external_id)
        staying = await store.lock_channels(tx, project_id, into)
        if not ending:
            raise _nobody(external_id)
        if not staying:
            raise _nobody(into)
        both = [channel for channel in ending if channel in staying]
        if both:
            raise _both(both)
        await store.move(tx, project_id, external_id, into)
        for move in self._on_merged:
            await move(tx, project_id, external_id, into)
        return await self.get(tx, project_id, into)

    async def merge_subscriber(
        self, tx: Tx, project_id: str, subscriber_id: str, into: str, *, seen: str | None
    ) -> Person:
        """Merges the person of a subscriber into another; one without an `external_id` gets the other's.

        `seen` is the `external_id` that the subscriber had when this was decided. Raises `Conflict` if it is
        another by now, and what `merge` raises.
        """
        subscriber = await self._subscribers.get(tx, project_id, subscriber_id)
        if subscriber.external_id != seen:
            raise Conflict("your own ID of this subscriber was changed meanwhile: look again")
        if seen is not None:
            return await self.merge(tx, project_id, seen, into)
        staying = await self.get(tx, project_id, into)
        if subscriber.channel in {each.channel for each in staying.subscribers}:
            raise _both([subscriber.channel])
        body = UpdateSubscriberBody(external_id=into)
        await self._subscribers.change(tx, project_id, subscriber_id, body)
        return await self.get(tx, project_id, into)

    async def split(self, tx: Tx, project_id: str, subscriber_id: str) -> Subscriber:
        """Takes the `external_id` from a subscriber, who is somebody else. Raises `SubscriberNotFound`, and
        `Conflict` if they have none."""
        subscriber = await self._subscribers.get(tx, project_id, subscriber_id)
        if subscriber.external_id is None:
            raise Conflict(
                "{subscriber_id} has no external_id",
                field="subscriber_id",
                subscriber_id=subscriber_id,
            )
        body = UpdateSubscriberBody(external_id=None)
        return await self._subscribers.change(tx, project_id, subscriber_id, body)

    async def _people(self, tx: Tx, project_id: str, external_ids: Sequence[str]) -> list[Person]:
        """Those of the ids that have subscribers, in their order."""
        if not external_ids:
            return []
        members = await store.list_members(tx, project_id, external_ids)
        ids = [subscriber_id for _, subscriber_id in members]
        found = await self._subscribers.get_many(tx, [(project_id, one) for one in ids])
        contacts = await self._contacts.find_many(tx, project_id, ids)
        by_id: dict[str, list[Subscriber]] = {}
        for external_id, subscriber_id in members:
            if (project_id, subscriber_id) in found:
                by_id.setdefault(external_id, []).append(found[project_id, subscriber_id])
        return [
            Person(
                external_id=one,
                subscribers=tuple(by_id[one]),
                contacts={
                    each.subscriber_id: contacts[each.subscriber_id]
                    for each in by_id[one]
                    if each.subscriber_id in contacts
                },
            )
            for one in external_ids
            if one in by_id
        ]


def _nobody(external_id: str) -> SubscriberNotFound:
    return SubscriberNotFound(
        "there is no subscriber with external_id {external_id!r}", external_id=external_id
    )


def _both(channels: Sequence[str]) -> Conflict:
    return Conflict(
        "both have an account on {channels}: split one of them off, or erase it",
        field="external_id, into",
        channels=", ".join(channels),
    )
