"""Subscribes users: once per user, channel and project, from any source."""

from collections.abc import Sequence

from msgsvc_core.channels import chats
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.i18n import Texts, reported_tag
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.subscribers import store
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.models import Source, Status, Subscriber
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.preferences_links import PreferencesLinks
from msgsvc_core.subscribers.tags.service import Tags

#: Prefix of subscriber ids.
ID_PREFIX = "sub"


class Subscribing:
    """Subscribes users, and updates known ones."""

    def __init__(
        self,
        *,
        clock: Clock,
        texts: Texts,
        events: Events,
        channels: Channels,
        tags: Tags,
        permissions: Permissions,
        greetings: Greetings,
        preferences: PreferencesLinks,
    ) -> None:
        self.preferences = preferences
        self._clock = clock
        self._texts = texts
        self._events = events
        self._channels = channels
        self._tags = tags
        self._permissions = permissions
        self._greetings = greetings

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
        """The subscriber, and whether they are newly subscribed: see `Subscribers.subscribe`."""
        now_ms = self._clock.now_ms()
        # The language chosen by /lang in this chat applies to new subscriptions too.
        _, chosen = await chats.find_language(tx, channel, chat_id) or ("", None)
        locale = chosen or reported_tag(user.lang)
        seen = Subscriber(
            project_id=project_id,
            subscriber_id=new_id(ID_PREFIX),
            channel=self._channels.name_for(project_id, channel),
            bot=channel,
            user_id=user.user_id,
            chat_id=chat_id,
            first_name=user.first_name,
            username=user.username,
            lang=self.language_for(locale),
            locale=locale,
            external_id=None,
            status="active",
            source=source,
            created_at_ms=now_ms,
            last_seen_at_ms=now_ms,
        )
        if external_id is not None:
            await lock_external_id(tx, project_id, external_id)
        subscriber_id, is_new, subscribed = await self._insert_or_refresh(tx, seen)
        if external_id is not None:
            await store.set_external_id(tx, project_id, subscriber_id, external_id)
        await self._tags.assign(tx, project_id, subscriber_id, tags)
        is_as_seen = is_new and external_id is None and not tags
        subscriber = seen if is_as_seen else await self._refresh(tx, seen)
        if subscribed:
            await self._events.emit(
                tx, project_id, "subscription.created", {"source": source}, subscriber=subscriber
            )
        if await self._permissions.grant(tx, subscriber, permissions, defaults=is_new):
            subscriber = await self._refresh(tx, seen)
        if subscribed:
            await self._greetings.welcome(tx, subscriber, source)
        return subscriber, subscribed

    async def register(
        self,
        tx: Tx,
        project_id: str,
        channel: Channel,
        address: str,
        *,
        source: Source,
        status: Status = "active",
        first_name: str = "",
        lang: str | None = None,
    ) -> tuple[Subscriber, bool]:
        """The subscriber with an address, in its normal form, and whether they are new; see
        `Subscribers.register`. No event, and no default permissions.

        On a channel without addresses it is the id of the person and of the chat with them, as
        `Channel.parse_chat_id` returns it.
        """
        now_ms = self._clock.now_ms()
        is_by_address = channel.capabilities.addresses
        _, chosen = await chats.find_language(tx, channel.key, address) or ("", None)
        locale = lang or chosen
        new = Subscriber(
            project_id=project_id,
            subscriber_id=new_id(ID_PREFIX),
            channel=channel.name,
            bot=channel.key,
            user_id=address,
            chat_id=address,
            first_name=first_name,
            username=address if is_by_address else None,
            lang=self.language_for(locale),
            locale=locale,
            external_id=None,
            status=status,
            source=source,
            created_at_ms=now_ms,
            last_seen_at_ms=now_ms,
        )
        is_new = await store.insert_if_new(tx, new)
        if is_by_address:
            # Pages and replies of the chat are the project's from now on, unless it is another's.
            await chats.touch(
                tx, channel.key, address, user_id=address, project_id=project_id, now_ms=now_ms
            )
        return await self._refresh(tx, new), is_new

    def language_for(self, locale: str | None) -> str:
        """The language of texts for a person with this tag."""
        return self._texts.choose(locale)

    async def announce(self, tx: Tx, subscriber: Subscriber) -> None:
        """Emits `subscription.created` for a person whom the project added as active, and grants the default
        permissions."""
        await self._events.emit(
            tx,
            subscriber.project_id,
            "subscription.created",
            {"source": subscriber.source},
            subscriber=subscriber,
        )
        await self._permissions.grant(tx, subscriber, (), defaults=True)

    async def _insert_or_refresh(self, tx: Tx, seen: Subscriber) -> tuple[str, bool, bool]:
        """The id of the subscriber, whether they are new, and whether they were not active before."""
        while True:
            # A subscriber found by the first query may be erased before the second.
            if await store.insert_if_new(tx, seen):
                return seen.subscriber_id, True, True
            known = await store.refresh(tx, seen)
            if known is not None:
                return known[0], False, known[1]

    async def _refresh(self, tx: Tx, seen: Subscriber) -> Subscriber:
        found = await store.find_by_user(tx, seen.project_id, seen.channel, seen.user_id)
        assert found is not None
        return found


async def lock_external_id(tx: Tx, project_id: str, external_id: str) -> None:
    """Locks an `external_id`: otherwise two concurrent requests would both find it free."""
    await tx.lock(f"external_id {external_id} of {project_id}")
