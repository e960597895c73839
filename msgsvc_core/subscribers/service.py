"""Subscribers: lookup, changes, subscribing, unsubscribing and erasure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgsvc_core.channels import chats
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ChannelUser
from msgsvc_core.db import Database, DataLoader, Tx
from msgsvc_core.db.counting import MOST_COUNTED, Count
from msgsvc_core.events import Events
from msgsvc_core.kernel.errors import (
    AlreadySubscribed,
    BadRequest,
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.kernel.json import to_json
from msgsvc_core.subscribers import search_store, store
from msgsvc_core.subscribers.erasure.job import SubscriberErasure
from msgsvc_core.subscribers.models import (
    AddedStatus,
    AddSubscriberBody,
    PersonSubscription,
    Recipient,
    Source,
    Status,
    Subscriber,
    SubscriberFilters,
    SubscriberQuery,
    UpdateSubscriberBody,
)
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.searching import read_place
from msgsvc_core.subscribers.subscribing import ID_PREFIX, Subscribing, lock_external_id
from msgsvc_core.subscribers.tags.service import Tags


class Subscribers:
    """`service.subscribers`. `attributes_bytes` limits a subscriber's attributes as JSON."""

    def __init__(
        self,
        *,
        db: Database,
        events: Events,
        channels: Channels,
        tags: Tags,
        permissions: Permissions,
        subscribing: Subscribing,
        erasure: SubscriberErasure,
        attributes_bytes: int,
    ) -> None:
        #: Links to the pages on which subscribers choose what they get.
        self.preferences = subscribing.preferences
        self._events = events
        self._channels = channels
        self._tags = tags
        self._permissions = permissions
        self._subscribing = subscribing
        self._erasure = erasure
        self._attributes_bytes = attributes_bytes
        self._recipients = DataLoader(db, store.find_recipients)
        self._recipients_by_external_id = DataLoader(db, store.find_recipients_by_external_id)

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
        permissions: Sequence[str] = (),
        external_id: str | None = None,
    ) -> Subscriber:
        """Like `subscribe`, without reporting whether they are newly subscribed."""
        subscriber, _ = await self.subscribe(
            tx,
            project_id,
            channel,
            user,
            chat_id,
            source=source,
            tags=tags,
            permissions=permissions,
            external_id=external_id,
        )
        return subscriber

    async def subscribe(
        self,
        tx: Tx,
        project_id: str,
        channel: str,
        user: ChannelUser,
        chat_id: str,
        *,
        source: Source,
        tags: Sequence[str] = (),
        permissions: Sequence[str] = (),
        external_id: str | None = None,
    ) -> tuple[Subscriber, bool]:
        """Subscribes a user; returns the subscriber, and whether they are newly subscribed.

        `channel` is the key of the bot they are talking to, through which they are reached from now on.
        `tags` are added and `permissions` granted, as far as they exist in the project; `external_id` is set
        if they have none and nobody else on the channel has it. Emits `subscription.created` for a new
        subscriber, who also gets the project's default permissions, and for a resubscribed one; the bot
        welcomes both: see `Greetings`. Raises `ForeignBot` for another project's own bot: see
        `InboundContext.serves`.
        """
        return await self._subscribing.subscribe(
            tx,
            project_id,
            channel,
            user,
            chat_id,
            source=source,
            tags=tags,
            permissions=permissions,
            external_id=external_id,
        )

    async def register(
        self,
        tx: Tx,
        project_id: str,
        channel: str,
        address: str,
        *,
        source: Source,
        status: AddedStatus = "unsubscribed",
        first_name: str = "",
        lang: str | None = None,
    ) -> tuple[Subscriber, bool]:
        """The subscriber with an address on a project's channel by its name, and whether they are new.

        Those who are known stay as they are. `lang` is the person's tag in canonical form. `unsubscribed` is
        for people who have not consented to messages: one-time codes and questions reach them all the same.
        Emits nothing. Raises `ValidationFailed` for something that is not an address, and for a channel that
        knows nobody by one.
        """
        found = self._channels.of_addresses(project_id, channel)
        return await self._subscribing.register(
            tx,
            project_id,
            found,
            self._channels.parse_address(found, address),
            source=source,
            status=status,
            first_name=first_name,
            lang=lang,
        )

    async def add(self, tx: Tx, project_id: str, body: AddSubscriberBody) -> Subscriber:
        """Adds a person by their address, and emits `subscription.created` for an active one.

        Raises what `register` and `change` do, `NotFound` for an unknown permission, `AlreadySubscribed`,
        and `Conflict` for a person who is known and not subscribed.
        """
        given = {"tags": body.tags, "attributes": body.attributes, "external_id": body.external_id}
        details = UpdateSubscriberBody.model_validate({k: v for k, v in given.items() if v})
        self._check(details)
        if body.external_id is not None:
            await lock_external_id(tx, project_id, body.external_id)
        known, is_new = await self.register(
            tx,
            project_id,
            body.channel,
            body.address,
            source="api",
            status=body.status,
            first_name=body.first_name,
            lang=body.lang,
        )
        subscriber_id = known.subscriber_id
        if not is_new and known.status == "active":
            raise AlreadySubscribed(
                "{subscriber_id} is subscribed already", subscriber_id=subscriber_id
            )
        if not is_new:
            raise Conflict(
                "{subscriber_id} has this address and is {status}; they or POST"
                " /v1/subscribers/{subscriber_id}/subscribe can change that",
                subscriber_id=subscriber_id,
                status=known.status,
            )
        if details.model_fields_set:
            known = await self.change(tx, project_id, subscriber_id, details)
        if body.status == "active":
            await self._subscribing.announce(tx, known)
        for key in dict.fromkeys(body.permissions):
            await self.set_permission(tx, project_id, subscriber_id, key, True)
        return await self.get(tx, project_id, subscriber_id)

    def takes_codes(self, subscriber: Subscriber) -> bool:
        """Whether one-time codes and questions reach a subscriber: an active one and, on a channel of
        addresses, one who has asked for no messages."""
        return self._takes_codes(subscriber.project_id, subscriber.channel, subscriber.status)

    def recipient_takes_codes(self, project_id: str, recipient: Recipient) -> bool:
        """Like `takes_codes`, for a recipient."""
        return self._takes_codes(project_id, recipient.channel, recipient.status)

    def _takes_codes(self, project_id: str, channel: str, status: Status) -> bool:
        if status == "unsubscribed":
            return self._is_of_addresses(project_id, channel)
        return status == "active"

    def _is_by_address(self, subscriber: Subscriber) -> bool:
        return self._is_of_addresses(subscriber.project_id, subscriber.channel)

    def _is_of_addresses(self, project_id: str, name: str) -> bool:
        channel = self._channels.resolve(project_id, name)
        return channel is not None and channel.capabilities.addresses

    async def change(
        self, tx: Tx, project_id: str, subscriber_id: str, body: UpdateSubscriberBody
    ) -> Subscriber:
        """The subscriber after the change. Raises `SubscriberNotFound`, `InvalidExternalId`, `Conflict`
        for an `external_id` in use on the channel and beyond the limit of tags, and `ValidationFailed` for
        too large attributes."""
        self._check(body)
        await self.get(tx, project_id, subscriber_id)
        # Locks before the subscriber's row, always in this order.
        if body.tags is not None:
            await self._tags.ensure(tx, project_id, body.tags)
        if body.external_id is not None:
            await lock_external_id(tx, project_id, body.external_id)
        given = body.model_dump(include=body.model_fields_set - {"tags"})
        if body.lang is not None:
            given |= self._language_columns(body.lang)
        if not await store.update(tx, project_id, subscriber_id, given):
            # Erased concurrently, or rejected.
            await self.get(tx, project_id, subscriber_id)
            raise Conflict(
                "another subscriber of this channel has {external_id!r}",
                field="external_id",
                external_id=body.external_id,
            )
        if body.tags is not None:
            await self._tags.replace(tx, project_id, subscriber_id, body.tags)
        return await self.get(tx, project_id, subscriber_id)

    def _language_columns(self, tag: str) -> dict[str, str]:
        return {"lang": self._subscribing.language_for(tag), "locale": tag}

    async def add_tag(self, tx: Tx, project_id: str, subscriber_id: str, name: str) -> None:
        """Adds a tag, which is created if needed. Raises `SubscriberNotFound`, `Conflict` beyond the
        limit, and `ValidationFailed` for an invalid name."""
        await self.get(tx, project_id, subscriber_id)
        await self._tags.add(tx, project_id, subscriber_id, name)

    async def remove_tag(self, tx: Tx, project_id: str, subscriber_id: str, name: str) -> None:
        """Removes a tag, if the subscriber has it. Raises `NotFound` for an unknown tag, and
        `SubscriberNotFound`."""
        await self.get(tx, project_id, subscriber_id)
        await self._tags.remove(tx, project_id, subscriber_id, name)

    async def set_permission(
        self, tx: Tx, project_id: str, subscriber_id: str, key: str, granted: bool
    ) -> bool:
        """Grants or revokes a permission; True if that changed anything.

        Then, and only then, `subscription.permission_changed` is emitted. Raises `NotFound` for an
        unknown permission, `SubscriberNotFound`.
        """
        subscriber = await self.get(tx, project_id, subscriber_id)
        return await self._permissions.set(tx, subscriber, key, granted)

    async def get(self, tx: Tx, project_id: str, subscriber_id: str) -> Subscriber:
        """Raises `SubscriberNotFound`, also for another project's id."""
        subscriber = await store.find(tx, project_id, subscriber_id)
        if subscriber is None:
            raise _not_found(subscriber_id)
        return subscriber

    async def find_by_user(
        self, tx: Tx, project_id: str, channel: str, user_id: str
    ) -> Subscriber | None:
        """The subscriber with the messenger's `user_id`, on a project's channel by its name."""
        return await store.find_by_user(tx, project_id, channel, user_id)

    async def list_by_user(self, tx: Tx, bot: str, user_id: str) -> list[PersonSubscription]:
        """A user's current and former subscriptions by a bot, in all projects, oldest first; `bot` is the
        channel's key."""
        return await store.list_by_user(tx, bot, user_id)

    async def lock_existing(
        self, tx: Tx, keys: Collection[tuple[str, str]], *, skip_locked: bool = False
    ) -> dict[tuple[str, str], Status]:
        """The status of those of `keys` that exist; they can't be erased until `tx` ends.

        Keys are (project_id, subscriber_id). For rows that refer to subscribers: lock the subscribers before
        such rows, as an erasure does, to avoid deadlocks. With `skip_locked`, subscribers that are being
        erased are omitted instead of waited for.
        """
        if not keys:
            return {}
        return await store.lock_existing(tx, sorted(set(keys)), skip_locked=skip_locked)

    async def get_by_identifier(
        self,
        tx: Tx,
        project_id: str,
        *,
        subscriber_id: str | None,
        external_id: str | None,
        channel: str | None,
    ) -> Subscriber:
        """The subscriber of a request with one of two identifiers. Raises what `get_recipient` and `get`
        raise."""
        recipient = await self.get_recipient(
            project_id,
            subscriber_id=subscriber_id,
            external_id=external_id,
            channel=channel,
            tx=tx,
        )
        return await self.get(tx, project_id, recipient.subscriber_id)

    async def get_many(
        self, tx: Tx, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], Subscriber]:
        """The subscribers that exist, by (project_id, subscriber_id)."""
        return await store.get_many(tx, keys)

    async def find_selected(
        self, tx: Tx, project_id: str, ids: str, params: Mapping[str, Any]
    ) -> list[Subscriber]:
        """The subscribers of a project whose ids are selected by the query `ids` with `params`, in the order
        of their ids: for a table of ids, in one round trip."""
        return await store.find_selected(tx, project_id, ids, params)

    async def get_recipient(
        self,
        project_id: str,
        *,
        subscriber_id: str | None,
        external_id: str | None,
        channel: str | None = None,
        tx: Tx | None = None,
    ) -> Recipient:
        """The subscriber that a request names by exactly one of its two identifiers.

        Of several with the same `external_id`, the most recently active one. Without `tx`, the lookup is
        batched with those of other requests.
        """
        if subscriber_id is not None and external_id is not None:
            raise MutuallyExclusiveIdentifiers(
                "give one of them, not both", field="subscriber_id, external_id"
            )
        if channel is not None:
            self._channels.check_name(project_id, channel)
        if subscriber_id is not None:
            recipient = await self._recipients.get((project_id, subscriber_id), tx)
            if recipient is None:
                raise _not_found(subscriber_id)
            if channel not in {None, recipient.channel}:
                raise ValidationFailed(
                    "this subscriber is on {channel}", field="channel", channel=recipient.channel
                )
            return recipient
        if external_id is None:
            raise ValidationFailed("give it, or external_id", field="subscriber_id")
        check_external_id(external_id)
        known = await self._recipients_by_external_id.get((project_id, external_id), tx) or []
        on_channel = [found for found in known if channel in {None, found.channel}]
        if not on_channel:
            raise _nobody_has(external_id)
        return await self._best(on_channel)

    async def list_recipients(
        self,
        project_id: str,
        *,
        subscriber_id: str | None,
        external_id: str | None,
        tx: Tx | None = None,
    ) -> list[Recipient]:
        """All subscribers of the person that a request names by exactly one of its two identifiers, at most
        one on each channel. Raises what `get_recipient` raises."""
        if subscriber_id is not None or external_id is None:
            named = await self.get_recipient(
                project_id, subscriber_id=subscriber_id, external_id=external_id, tx=tx
            )
            if named.external_id is None:
                return [named]
            external_id = named.external_id
        check_external_id(external_id)
        known = await self._recipients_by_external_id.get((project_id, external_id), tx)
        if not known:
            raise _nobody_has(external_id)
        return known

    async def list_recipients_of(
        self, tx: Tx, people: Sequence[tuple[str, str, str | None]]
    ) -> list[list[Recipient]]:
        """As `list_recipients`, of many people at once: each is (project, one of their subscribers,
        `external_id`); without the third it is that of the subscriber. Empty for who is not there any
        more."""
        named = await self._recipients.get_many(
            {(project_id, subscriber_id) for project_id, subscriber_id, _ in people}, tx
        )
        wanted: dict[int, tuple[str, str]] = {}
        for number, (project_id, subscriber_id, given_id) in enumerate(people):
            recipient = named.get((project_id, subscriber_id))
            if recipient is not None and (external_id := given_id or recipient.external_id):
                wanted[number] = (project_id, external_id)
        by_person = await self._recipients_by_external_id.get_many({*wanted.values()}, tx)
        found: list[list[Recipient]] = []
        for number, (project_id, subscriber_id, _) in enumerate(people):
            recipient = named.get((project_id, subscriber_id))
            if number in wanted:
                found.append(by_person.get(wanted[number], []))
            else:
                found.append([] if recipient is None else [recipient])
        return found

    async def _best(self, recipients: Sequence[Recipient]) -> Recipient:
        """The recipient that a message can reach: an active one before others, then the one seen last
        whose bot exists."""
        best, *others = sorted(
            recipients, key=lambda one: (one.status == "active", one.last_seen_at_ms), reverse=True
        )
        for one in (best, *others) if others else ():
            if one.status == best.status and await self._channels.find(one.bot) is not None:
                return one
        return best

    async def check_channel(self, tx: Tx, project_id: str, name: str) -> None:
        """Raises `ValidationFailed` for a channel that a project does not have, and that has no
        subscribers."""
        if self._channels.resolve(project_id, name) is None and not await store.has_channel(
            tx, project_id, name
        ):
            self._channels.check_name(project_id, name)

    async def page(
        self, tx: Tx, project_id: str, query: SubscriberQuery, *, ascending: bool = False
    ) -> list[Subscriber]:
        """Up to one more than `query.limit`, to show whether there are more.

        Newest first, or oldest first; with `query.query` by the matched name. `BadRequest` for a cursor of
        another list.
        """
        if query.query is not None:
            after = read_place(query.after)
            await self._check_filters(tx, project_id, query)
            return await search_store.search(
                tx, project_id, query.query, query, after, query.fetch_limit
            )
        last = query.after
        if last is not None and not last.startswith(f"{ID_PREFIX}_"):
            raise BadRequest("not one that this list gave; it is one of a search", field="cursor")
        return await self.list_after(
            tx, project_id, query, last, query.fetch_limit, ascending=ascending
        )

    async def count_active(self, tx: Tx, project_id: str, at_most: int) -> int:
        """Number of active subscribers, up to `at_most`."""
        return await store.count_active(tx, project_id, at_most)

    async def active_by_project(self, tx: Tx) -> dict[str, int]:
        """Number of active subscribers of each project that has any; for jobs, as it reads all."""
        return await store.active_by_project(tx)

    async def list_after(
        self,
        tx: Tx,
        project_id: str,
        filters: SubscriberFilters,
        after: str | None,
        limit: int,
        *,
        ascending: bool = False,
    ) -> list[Subscriber]:
        """Up to `limit` subscribers, newest first, from before the id `after`; or oldest first, from after
        it."""
        await self._check_filters(tx, project_id, filters)
        return await store.list_page(tx, project_id, filters, after, limit, ascending=ascending)

    async def count(
        self, tx: Tx, project_id: str, filters: SubscriberFilters, limit: int = MOST_COUNTED
    ) -> Count:
        """How many match the filters, of at most `limit` that are looked at."""
        await self._check_filters(tx, project_id, filters)
        return await store.count(tx, project_id, filters, limit)

    async def _check_filters(self, tx: Tx, project_id: str, filters: SubscriberFilters) -> None:
        if filters.channel is not None:
            await self.check_channel(tx, project_id, filters.channel)

    async def lock(self, tx: Tx, channel: str, user_ids: Collection[str]) -> None:
        """Locks the subscriptions of users by a bot until `tx` ends, before some of them are blocked in
        it, and before rows that belong to them are changed; `channel` is the bot's key."""
        if user_ids:
            await store.lock_subscriptions(tx, channel, user_ids)

    async def block(
        self,
        tx: Tx,
        channel: str,
        user_id: str,
        *,
        reason: str,
        by_failure: bool = True,
        chat_id: str | None = None,
    ) -> None:
        """Ends a user's subscriptions by a bot that they blocked, or whose chat no longer exists.

        `channel` is the bot's key. A shared bot is blocked for all its projects. With `chat_id` nothing
        happens if the bot reaches them in another chat. `by_failure` is whether that follows from a call that
        failed: it may be wrong, so `reached` takes it back. What the person did only they undo.
        """
        if not by_failure:
            # Nor does what had failed before say any more that they want to hear from it.
            await store.forget_failure(tx, channel, user_id)
        ended = await store.block_all(tx, channel, user_id, by_failure=by_failure, chat_id=chat_id)
        for owner, subscriber_id in ended:
            await self._emit_deleted(tx, await self.get(tx, owner, subscriber_id), reason)
        bot = await self._channels.find(channel)
        if bot is not None and bot.capabilities.addresses:
            # Codes reach those who unsubscribed, unless their address no longer exists.
            await store.block_unsubscribed(tx, channel, user_id, by_failure=by_failure)

    async def reached(self, tx: Tx, channel: str, user_id: str) -> None:
        """The user wrote to a bot, by its key, so it reaches them: what a failure has ended goes on, with
        `subscription.created`."""
        for project_id, subscriber_id in await store.restore_reached(tx, channel, user_id):
            subscriber = await self.get(tx, project_id, subscriber_id)
            await self._events.emit(
                tx,
                project_id,
                "subscription.created",
                {"source": subscriber.source},
                subscriber=subscriber,
            )

    async def unblock(self, tx: Tx, channel: str, user_id: str) -> None:
        """The user unblocked the bot. That is not consent: they stay unsubscribed until they press Start,
        or the project subscribes them. No event, since they had been unsubscribed before."""
        await store.clear_blocked(tx, channel, user_id)

    async def record_chat(self, tx: Tx, channel: str, user_id: str, chat_id: str) -> None:
        """Sets the chat in which a bot reaches a user; `channel` is the bot's key."""
        await store.set_chat(tx, channel, user_id, chat_id)

    async def move_chat(self, tx: Tx, channel: str, chat_id: str, new_chat_id: str) -> None:
        """Changes the id of a chat, for all users whom the bot reaches there."""
        await store.move_chat(tx, channel, chat_id, new_chat_id)
        await chats.move(tx, channel, chat_id, new_chat_id)

    async def move_user(self, tx: Tx, channel: str, user_id: str, new_user_id: str) -> None:
        """Changes the id by which a platform knows a user; `channel` is the bot's key.

        In a project where the new id has a subscription already, both stay as they are.
        """
        await store.set_user(tx, channel, user_id, new_user_id)
        await chats.set_user(tx, channel, user_id, new_user_id)

    async def language_of(self, tx: Tx, channel: str, user_id: str) -> str | None:
        """The language in which a bot writes to a user who chose none in the chat; None if they never
        subscribed."""
        return await store.find_language(tx, channel, user_id)

    async def set_language(
        self, tx: Tx, channel: str, chat_id: str, user_id: str, lang: str
    ) -> None:
        """Sets the language that a user chose in a chat, for the bot's and the projects' messages."""
        await chats.set_language(tx, channel, chat_id, lang)
        await store.set_language(tx, channel, user_id, lang)

    async def has_bot(self, tx: Tx, project_id: str, bot: str) -> bool:
        """Whether a project has a subscriber whom the bot reaches; `bot` is the channel's key."""
        return await store.has_bot(tx, project_id, bot)

    async def unsubscribe(
        self, tx: Tx, project_id: str, subscriber_id: str, *, reason: str
    ) -> bool:
        """Unsubscribes a user; False if they were not active, in which case nothing changes.

        `reason` is that of `subscription.deleted`: `api`, or `stop` if sent by the user. A `blocked`
        subscriber stays `blocked`. Raises `SubscriberNotFound`.
        """
        has_left = await store.deactivate(tx, project_id, subscriber_id, "unsubscribed")
        subscriber = await self.get(tx, project_id, subscriber_id)
        if has_left:
            await self._emit_deleted(tx, subscriber, reason)
        return has_left

    async def resubscribe(self, tx: Tx, project_id: str, subscriber_id: str) -> Subscriber:
        """Reactivates an unsubscribed person, and emits `subscription.created`.

        On a channel of addresses also a blocked one, e.g. after a bounce: there nobody can start a bot.
        Raises `AlreadySubscribed`, `SubscriberNotFound`, and `Conflict` if they blocked the bot.
        """
        is_back = await store.reactivate(tx, project_id, subscriber_id)
        subscriber = await self.get(tx, project_id, subscriber_id)
        if not is_back and subscriber.status == "blocked" and self._is_by_address(subscriber):
            is_back = await store.reactivate(tx, project_id, subscriber_id, "blocked")
            subscriber = await self.get(tx, project_id, subscriber_id)
        if is_back:
            await self._events.emit(
                tx, project_id, "subscription.created", {"source": "api"}, subscriber=subscriber
            )
        elif subscriber.status == "active":
            raise AlreadySubscribed(
                "{subscriber_id} is subscribed already", subscriber_id=subscriber_id
            )
        else:
            raise Conflict(
                "{subscriber_id} has blocked the bot; only they can let it write to them"
                " again, by starting it or opening a subscription link",
                subscriber_id=subscriber_id,
            )
        return subscriber

    async def erase(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        """Erases a subscriber and all their data. Raises `SubscriberNotFound`.

        The subscriber is deleted in `tx`; a job deletes copies in messages, events and plugins.
        """
        subscriber = await self.get(tx, project_id, subscriber_id)
        if not await self._erasure.start(tx, subscriber):
            raise _not_found(subscriber_id)

    async def _emit_deleted(self, tx: Tx, subscriber: Subscriber, reason: str) -> None:
        await self._events.emit(
            tx,
            subscriber.project_id,
            "subscription.deleted",
            {"source": subscriber.source, "reason": reason},
            subscriber=subscriber,
        )

    def _check(self, body: UpdateSubscriberBody) -> None:
        if body.external_id is not None:
            check_external_id(body.external_id)
        limit = self._attributes_bytes
        if body.attributes is not None and len(to_json(body.attributes).encode()) > limit:
            raise ValidationFailed(
                "must be at most {limit} bytes as JSON", field="attributes", limit=limit
            )


def _not_found(subscriber_id: str) -> SubscriberNotFound:
    return SubscriberNotFound(
        "there is no subscriber {subscriber_id!r}", subscriber_id=subscriber_id
    )


def _nobody_has(external_id: str) -> SubscriberNotFound:
    return SubscriberNotFound(
        "there is no subscriber with external_id {external_id!r}", external_id=external_id
    )


def check_external_id(external_id: str) -> None:
    """Raises `InvalidExternalId` (decision 0075: 1-128 printable, no spaces at the ends)."""
    if not (
        1 <= len(external_id) <= 128
        and external_id.isprintable()
        and external_id == external_id.strip()
    ):
        raise InvalidExternalId(
            "must be 1-128 printable characters without spaces at its ends", field="external_id"
        )
