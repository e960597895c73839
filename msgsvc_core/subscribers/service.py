"""The rules of subscribing: once per person, channel and project, by whatever path."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgsvc_core.channels.updates import ChannelUser
from msgsvc_core.db import Lookup, Tx
from msgsvc_core.errors import (
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.ids import new_id
from msgsvc_core.subscribers import store
from msgsvc_core.subscribers.models import Receiver, Source, Subscriber, SubscriberQuery

if TYPE_CHECKING:
    from msgsvc_core.service import Service


class Subscribers:
    """`service.subscribers`."""

    def __init__(self, service: "Service") -> None:
        self._service = service
        self._receivers = Lookup(service.db, store.find_receivers)
        self._receivers_by_external_id = Lookup(service.db, store.find_receivers_by_external_id)

    async def ensure(
        self,
        tx: Tx,
        project_id: str,
        channel: str,
        user: ChannelUser,
        chat_id: str,
        *,
        source: Source,
        tags: Sequence[str] = (),
        external_id: str | None = None,
    ) -> Subscriber:
        """The subscriber for this person, subscribed now if they were not.

        `channel` is the key of the bot that they are talking to, which reaches them from now on.
        `tags` are added, and `external_id` is bound if they have none and nobody else on the channel
        has it. Emits `subscription.created` for a new subscriber, and for one who had left.
        Raises `ForeignBot` for another project's own bot: see `InboundContext.serves`.
        """
        now_ms = self._service.clock.now_ms()
        seen = Subscriber(
            project_id=project_id,
            subscriber_id=new_id("sub"),
            channel=self._service.channels.name_for(project_id, channel),
            bot=channel,
            user_id=user.user_id,
            chat_id=chat_id,
            first_name=user.first_name,
            username=user.username,
            lang=self._service.texts.choose(user.lang),
            external_id=None,
            status="active",
            source=source,
            created_at_ms=now_ms,
            last_seen_at_ms=now_ms,
        )
        subscribed = await store.insert_if_new(tx, seen) or await store.refresh(tx, seen)
        subscriber = await self._known(tx, seen)
        if external_id is not None:
            await store.set_external_id(tx, project_id, subscriber.subscriber_id, external_id)
        await self.add_tags(tx, project_id, tags, subscriber_id=subscriber.subscriber_id)
        subscriber = await self._known(tx, seen)
        if subscribed:
            await self._service.events.emit(
                tx, project_id, "subscription.created", {"source": source}, subscriber=subscriber
            )
        return subscriber

    async def find(self, tx: Tx, project_id: str, subscriber_id: str) -> Subscriber:
        """Raises `SubscriberNotFound`, for another project's id as well."""
        subscriber = await store.find(tx, project_id, subscriber_id)
        if subscriber is None:
            raise _not_found(subscriber_id)
        return subscriber

    async def find_many(
        self, tx: Tx, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Subscriber]:
        """Those that there are, by (project_id, subscriber_id)."""
        return await store.find_many(tx, keys)

    async def receiver(
        self,
        project_id: str,
        *,
        subscriber_id: str | None,
        external_id: str | None,
        channel: str | None = None,
        tx: Tx | None = None,
    ) -> Receiver:
        """The subscriber that a request names by exactly one of its two identifiers.

        Of those with the same `external_id` it is the most recently active one. Without `tx` the
        question is asked together with those of other requests.
        """
        if subscriber_id is not None and external_id is not None:
            raise MutuallyExclusiveIdentifiers(
                "subscriber_id, external_id: give one of them, not both"
            )
        if channel is not None:
            self._service.channels.check_name(project_id, channel)
        if subscriber_id is not None:
            receiver = await self._receivers.get((project_id, subscriber_id), tx)
            if receiver is None:
                raise _not_found(subscriber_id)
            if channel not in {None, receiver.channel}:
                raise ValidationFailed(f"channel: this subscriber is on {receiver.channel}")
            return receiver
        if external_id is None:
            raise ValidationFailed("subscriber_id: give it, or external_id")
        check_external_id(external_id)
        known = await self._receivers_by_external_id.get((project_id, external_id), tx) or []
        on_channel = [found for found in known if channel in {None, found.channel}]
        if not on_channel:
            raise SubscriberNotFound(f"there is no subscriber with external_id {external_id!r}")
        return max(on_channel, key=lambda found: (found.status == "active", found.last_seen_at_ms))

    async def page(self, tx: Tx, project_id: str, query: SubscriberQuery) -> list[Subscriber]:
        """Up to one more than `query.limit`, newest first, so that the caller sees if more follow."""
        if query.channel is not None:
            self._service.channels.check_name(project_id, query.channel)
        return await store.list_page(tx, project_id, query, query.after, query.most)

    async def block(self, tx: Tx, channel: str, user_id: str, *, reason: str) -> None:
        """Ends the subscriptions by which a bot reaches a person: they blocked it, or are gone.

        `channel` is the bot's key. One that serves several projects is blocked for all of them.
        """
        for owner, subscriber_id in await store.end_active(tx, channel, user_id, "blocked"):
            subscriber = await self.find(tx, owner, subscriber_id)
            await self._service.events.emit(
                tx,
                owner,
                "subscription.deleted",
                {"source": subscriber.source, "reason": reason},
                subscriber=subscriber,
            )

    async def _known(self, tx: Tx, seen: Subscriber) -> Subscriber:
        found = await store.find_by_user(tx, seen.project_id, seen.channel, seen.user_id)
        assert found is not None
        return found

    async def add_tags(
        self, tx: Tx, project_id: str, tags: Sequence[str], subscriber_id: str | None = None
    ) -> None:
        """Makes tags exist, and gives them to a subscriber. Raises `Conflict` beyond the limit."""
        if not tags:
            return
        limit = self._service.settings.limits.tags
        await tx.lock(f"tags of {project_id}")
        if await store.count_tags(tx, project_id, tags) > limit:
            raise Conflict(f"tags: a project has at most {limit}")
        await store.add_tags(tx, project_id, subscriber_id, tags, self._service.clock.now_ms())


def _not_found(subscriber_id: str) -> SubscriberNotFound:
    return SubscriberNotFound(f"there is no subscriber {subscriber_id!r}")


def check_external_id(external_id: str) -> None:
    """Raises `InvalidExternalId` (API conventions: 1-128 printable, no spaces at the ends)."""
    if not (
        1 <= len(external_id) <= 128
        and external_id.isprintable()
        and external_id == external_id.strip()
    ):
        raise InvalidExternalId(
            "external_id: must be 1-128 printable characters without spaces at its ends"
        )
