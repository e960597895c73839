"""Subscribers, their tags and their permissions in memory."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgsvc_core.api.pagination import PageQuery, read_position
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.updates import ChannelUser
from msgsvc_core.db import DataLoader, Tx
from msgsvc_core.db.counting import MOST_COUNTED, Count
from msgsvc_core.events import Events
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.errors import (
    AlreadySubscribed,
    Conflict,
    NotFound,
    PermissionHasSubscribers,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.kernel.i18n import reported_tag
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.subscribers.erasure.job import SubscriberErasure
from msgsvc_core.subscribers.greetings import Greetings
from msgsvc_core.subscribers.models import (
    AddedStatus,
    PersonSubscription,
    Recipient,
    Source,
    Status,
    Subscriber,
    SubscriberFilters,
    SubscriberQuery,
    UpdateSubscriberBody,
)
from msgsvc_core.subscribers.permissions.models import (
    CreatePermissionBody,
    Permission,
    UpdatePermissionBody,
)
from msgsvc_core.subscribers.permissions.service import Permissions
from msgsvc_core.subscribers.preferences_links import PreferencesLinks
from msgsvc_core.subscribers.searching import folded, place_of, read_place
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.subscribing import Subscribing
from msgsvc_core.subscribers.tags.models import Tag
from msgsvc_core.subscribers.tags.service import Tags
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.channels import FakeChannels
from msgsvc_devkit.fakes.database import FakeDatabase
from msgsvc_devkit.fakes.events import FakeEvents
from msgsvc_devkit.fakes.jobs import FakeJobQueue, FakeOutbox
from msgsvc_devkit.fakes.projects import PROJECT, FakeProjects
from msgsvc_devkit.fakes.secrets import fake_secrets, fake_texts

#: A subscriber's (project_id, subscriber_id).
Key = tuple[str, str]


class FakeTags(Tags):
    """`carried` contains the tags of each subscriber, `added` the arguments of the hook `on_tags_added`."""

    def __init__(self, *, clock: Clock | None = None, max_tags: int = 100) -> None:
        clock = clock or FakeClock()
        super().__init__(
            clock=clock, jobs=FakeJobQueue(clock), max_tags=max_tags, on_added=self._record
        )
        #: Project, subscriber, the tags.
        self.added: list[tuple[str, str, list[str]]] = []
        self.carried: dict[Key, list[str]] = {}
        #: Creation time and current name of a tag, by project and permanent id.
        self._made: dict[Key, tuple[str, int]] = {}

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[Tag]:
        found = sorted(self._of(project_id), key=lambda tag: (tag.created_at_ms, tag.name))
        after = read_position(query.after)
        earlier = [tag for tag in found if after is None or (tag.created_at_ms, tag.name) < after]
        return earlier[::-1][: query.fetch_limit]

    async def list_all(self, tx: Tx, project_id: str, limit: int) -> list[Tag]:
        found = sorted(self._of(project_id), key=lambda tag: tag.name)
        return [replace(tag, subscribers=min(tag.subscribers, limit)) for tag in found]

    async def get(self, tx: Tx, project_id: str, name: str) -> Tag:
        for tag in self._of(project_id):
            if tag.name == name:
                return tag
        raise NotFound("there is no tag {name!r}", name=name)

    async def rename(self, tx: Tx, project_id: str, name: str, new_name: str) -> Tag:
        tag = await self.get(tx, project_id, name)
        names = self._names(project_id)
        if new_name != name and new_name in names:
            raise Conflict("you have a tag {name!r} already", field="name", name=new_name)
        self._made[project_id, names[name]] = (new_name, tag.created_at_ms)
        for key, carried in self.carried.items():
            if key[0] == project_id:
                self.carried[key] = [new_name if one == name else one for one in carried]
        return await self.get(tx, project_id, new_name)

    async def ids_of(self, tx: Tx, project_id: str, names: Sequence[str]) -> list[str]:
        known = self._names(project_id)
        return [known[name] for name in names if name in known]

    async def lock_missing(self, tx: Tx, project_id: str, names: Sequence[str]) -> list[str]:
        return sorted(set(names) - self._names(project_id).keys())

    async def names_of(self, tx: Tx, project_id: str, tag_ids: Sequence[str]) -> list[str]:
        return [
            self._made[project_id, tag_id][0]
            for tag_id in tag_ids
            if (project_id, tag_id) in self._made
        ]

    async def labels(self, tx: Tx, project_id: str, tag_ids: Sequence[str]) -> dict[str, str]:
        return {
            tag_id: self._made[project_id, tag_id][0]
            for tag_id in tag_ids
            if (project_id, tag_id) in self._made
        }

    async def delete(self, tx: Tx, project_id: str, name: str) -> None:
        await self.get(tx, project_id, name)
        del self._made[project_id, self._names(project_id)[name]]
        for key, carried in self.carried.items():
            if key[0] == project_id and name in carried:
                carried.remove(name)

    async def remove(self, tx: Tx, project_id: str, subscriber_id: str, name: str) -> None:
        await self.get(tx, project_id, name)
        carried = self.carried.get((project_id, subscriber_id), [])
        if name in carried:
            carried.remove(name)

    async def assign(
        self, tx: Tx, project_id: str, subscriber_id: str, names: Sequence[str]
    ) -> None:
        carried = self.carried.setdefault((project_id, subscriber_id), [])
        known = self._names(project_id)
        given = [one for one in dict.fromkeys(names) if one in known and one not in carried]
        carried += given
        if given:
            await self._on_added(tx, project_id, subscriber_id, given)

    async def replace(
        self, tx: Tx, project_id: str, subscriber_id: str, names: Sequence[str]
    ) -> None:
        carried = self.carried.setdefault((project_id, subscriber_id), [])
        carried[:] = [name for name in carried if name in names]
        await self.assign(tx, project_id, subscriber_id, names)

    async def _insert_missing(self, tx: Tx, project_id: str, names: Sequence[str]) -> int:
        known = self._names(project_id)
        missing = [name for name in dict.fromkeys(names) if name not in known]
        if len(known) + len(missing) > self._max_tags:
            raise Conflict("a project has at most {limit}", field="tags", limit=self._max_tags)
        for name in missing:
            self._made[project_id, new_id("tag")] = (name, self._clock.now_ms())
        return len(missing)

    def _names(self, project_id: str) -> dict[str, str]:
        """Permanent ids of the project's tags, by name."""
        return {
            name: tag_id for (owner, tag_id), (name, _) in self._made.items() if owner == project_id
        }

    def _of(self, project_id: str) -> list[Tag]:
        found = []
        for (owner, _), (name, created_at_ms) in self._made.items():
            if owner == project_id:
                carrying = [key for key, tags in self.carried.items() if name in tags]
                count = sum(key[0] == project_id for key in carrying)
                found.append(Tag(project_id, name, created_at_ms, count))
        return found

    async def _record(
        self, _tx: Tx, project_id: str, subscriber_id: str, tags: Sequence[str]
    ) -> None:
        self.added.append((project_id, subscriber_id, list(tags)))


class FakePermissions(Permissions):
    """`granted` contains the permissions of each subscriber. All subscribers count as active, unless
    `is_active` returns false; `FakeSubscribers` sets it."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        events: Events | None = None,
        max_permissions: int = 100,
    ) -> None:
        clock = clock or FakeClock()
        super().__init__(
            clock=clock, events=events or FakeEvents(clock=clock), max_permissions=max_permissions
        )
        self.granted: dict[Key, list[str]] = {}
        self.is_active: Callable[[Key], bool] = lambda _key: True
        self._defined: dict[Key, Permission] = {}

    async def list_all(self, tx: Tx, project_id: str) -> list[Permission]:
        return [each for (owner, _), each in self._defined.items() if owner == project_id]

    async def page(self, tx: Tx, project_id: str, query: PageQuery) -> list[Permission]:
        defined = await self.list_all(tx, project_id)
        found = sorted(defined, key=lambda each: (each.created_at_ms, each.key))
        after = read_position(query.after)
        earlier = [
            each for each in found if after is None or (each.created_at_ms, each.key) < after
        ]
        return earlier[::-1][: query.fetch_limit]

    async def get(self, tx: Tx, project_id: str, key: str) -> Permission:
        if (project_id, key) not in self._defined:
            raise NotFound("there is no permission {key!r}", key=key)
        return self._defined[project_id, key]

    async def find_existing(self, tx: Tx, keys: Sequence[Key]) -> dict[Key, bool]:
        return {key: True for key in keys if key in self._defined}

    async def find_granted(
        self, tx: Tx, keys: Sequence[tuple[str, str, str]]
    ) -> dict[tuple[str, str, str], bool]:
        return {key: True for key in keys if key[2] in self.granted.get(key[:2], ())}

    async def count_active(
        self, tx: Tx, project_id: str, permissions: Sequence[Permission]
    ) -> dict[str, int]:
        counts = {each.key: len(self._active(project_id, each.key)) for each in permissions}
        return {key: count for key, count in counts.items() if count}

    async def count_active_roughly(
        self, tx: Tx, project_id: str, permissions: Sequence[Permission], limit: int
    ) -> dict[str, int]:
        counts = await self.count_active(tx, project_id, permissions)
        return {each.key: min(counts.get(each.key, 0), limit) for each in permissions}

    async def create(self, tx: Tx, project_id: str, body: CreatePermissionBody) -> Permission:
        if (project_id, body.key) in self._defined:
            raise Conflict("you have a permission {key!r} already", field="key", key=body.key)
        if len(await self.list_all(tx, project_id)) >= self._max_permissions:
            raise Conflict(
                "a project has at most {limit}", field="permissions", limit=self._max_permissions
            )
        created_at_ms = self._clock.now_ms()
        permission = Permission(project_id, created_at_ms=created_at_ms, **dict(body))
        self._defined[project_id, body.key] = permission
        return permission

    async def update(
        self, tx: Tx, project_id: str, key: str, body: UpdatePermissionBody
    ) -> Permission:
        changes = {name: getattr(body, name) for name in body.model_fields_set}
        changed = replace(await self.get(tx, project_id, key), **changes)
        self._defined[project_id, key] = changed
        return changed

    async def delete(self, tx: Tx, project_id: str, key: str) -> None:
        await self.get(tx, project_id, key)
        if self._active(project_id, key):
            raise PermissionHasSubscribers(
                "active subscribers granted {key!r}; only the dashboard may delete it", key=key
            )
        self._delete(project_id, key)

    async def delete_confirmed(self, tx: Tx, project_id: str, key: str, confirmed: int) -> int:
        await self.get(tx, project_id, key)
        active = len(self._active(project_id, key))
        if active > confirmed:
            raise PermissionHasSubscribers(
                "{count} active subscribers granted {key!r}; confirm that number to delete it",
                count=active,
                key=key,
            )
        self._delete(project_id, key)
        return active

    async def check(self, tx: Tx, project_id: str, keys: Sequence[str]) -> None:
        for number, key in enumerate(keys):
            if (project_id, key) not in self._defined:
                raise ValidationFailed(
                    "there is no permission {key!r}", field=f"permissions[{number}]", key=key
                )

    async def grant(
        self, tx: Tx, subscriber: Subscriber, keys: Sequence[str], *, defaults: bool = False
    ) -> list[str]:
        of_all = [each for each in await self.list_all(tx, subscriber.project_id) if each.default]
        granted = self._grant(subscriber, [each.key for each in of_all if defaults])
        granted += self._grant(subscriber, keys)
        await self._emit_changed(tx, subscriber, granted, granted=True)
        return granted

    async def set(self, tx: Tx, subscriber: Subscriber, key: str, granted: bool) -> bool:
        await self.get(tx, subscriber.project_id, key)
        theirs = self.granted.setdefault((subscriber.project_id, subscriber.subscriber_id), [])
        changed = [key] if (key in theirs) != granted else []
        if changed and granted:
            theirs.append(key)
        elif changed:
            theirs.remove(key)
        await self._emit_changed(tx, subscriber, changed, granted=granted)
        return bool(changed)

    def _grant(self, subscriber: Subscriber, keys: Sequence[str]) -> list[str]:
        theirs = self.granted.setdefault((subscriber.project_id, subscriber.subscriber_id), [])
        new = [
            key
            for key in dict.fromkeys(keys)
            if (subscriber.project_id, key) in self._defined and key not in theirs
        ]
        theirs += new
        return new

    def _active(self, project_id: str, key: str) -> list[Key]:
        return [
            who
            for who, granted in self.granted.items()
            if who[0] == project_id and key in granted and self.is_active(who)
        ]

    def _delete(self, project_id: str, key: str) -> None:
        del self._defined[project_id, key]
        for (owner, _), granted in self.granted.items():
            if owner == project_id and key in granted:
                granted.remove(key)


class FakeSubscribers(Subscribers):
    """`person` creates a subscriber in one call; `by_id` contains them, without their tags and permissions,
    which are in `tags` and `permissions`. `erased` are those removed by `erase`."""

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        events: Events | None = None,
        channels: Channels | None = None,
        tags: FakeTags | None = None,
        permissions: FakePermissions | None = None,
        greetings: Greetings | None = None,
    ) -> None:
        self._clock = clock = clock or FakeClock()
        self._texts = fake_texts()
        self._greetings = greetings or Greetings(
            texts=self._texts, outbox=FakeOutbox(), projects=FakeProjects()
        )
        events, channels = events or FakeEvents(clock=clock), channels or FakeChannels(clock=clock)
        self.channels = channels
        self.tags = tags or FakeTags(clock=clock)
        self.permissions = permissions or FakePermissions(clock=clock, events=events)
        self.permissions.is_active = self._is_active
        self.by_id: dict[Key, Subscriber] = {}
        self.erased: list[Subscriber] = []
        #: The language chosen in a chat, by bot and chat.
        self._chosen: dict[tuple[str, str], str] = {}
        super().__init__(
            db=FakeDatabase(),
            events=events,
            channels=channels,
            tags=self.tags,
            permissions=self.permissions,
            subscribing=Subscribing(
                clock=clock,
                texts=self._texts,
                events=events,
                channels=channels,
                tags=self.tags,
                permissions=self.permissions,
                greetings=self._greetings,
                preferences=PreferencesLinks(
                    clock=clock,
                    secrets=fake_secrets(),
                    base_url="https://msgsvc.test",
                    days=90,
                ),
            ),
            erasure=SubscriberErasure(
                clock=clock, jobs=FakeJobQueue(clock), events=events, erasers=()
            ),
            attributes_bytes=8192,
        )
        self._recipients = DataLoader(FakeDatabase(), self._load)
        self._recipients_by_external_id = DataLoader(FakeDatabase(), self._load_by_external_id)

    def person(
        self, subscriber_id: str = "sub_1", *, project_id: str = PROJECT, **fields: Any
    ) -> Subscriber:
        """Adds a subscriber of `messenger_a` with these `fields`."""
        now_ms = self._clock.now_ms()
        values: dict[str, Any] = {
            "channel": "messenger_a",
            "bot": fields.get("channel", "messenger_a"),
            "user_id": subscriber_id.removeprefix("sub_"),
            "chat_id": f"chat {subscriber_id.removeprefix('sub_')}",
            "first_name": "Anna",
            "username": None,
            "lang": "en",
            "external_id": None,
            "status": "active",
            "source": "deep_link",
            "created_at_ms": now_ms,
            "last_seen_at_ms": now_ms,
            **fields,
        }
        key = project_id, subscriber_id
        self.tags.carried[key] = list(values.pop("tags", ()))
        self.permissions.granted[key] = list(values.pop("permissions", ()))
        self.by_id[key] = Subscriber(project_id, subscriber_id, **values)
        return self._filled(key)

    @property
    def everybody(self) -> list[Subscriber]:
        """All subscribers with their tags and permissions, whatever their status."""
        return [self._filled(key) for key in self.by_id]

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
        name, now_ms = self._channels.name_for(project_id, channel), self._clock.now_ms()
        known = self._find(project_id, channel=name, user_id=user.user_id)
        seen: dict[str, Any] = {
            "bot": channel,
            "chat_id": chat_id,
            "username": user.username,
            "last_seen_at_ms": now_ms,
        }
        if user.first_name or not known:
            seen["first_name"] = user.first_name
        is_new, was_active = not known, bool(known and known[0].status == "active")
        if known:
            key = project_id, known[0].subscriber_id
            self._change(key, **seen, status="active")
        else:
            key = project_id, new_id("sub")
            locale = self._chosen.get((channel, chat_id)) or reported_tag(user.lang)
            self.by_id[key] = Subscriber(
                *key,
                channel=name,
                user_id=user.user_id,
                lang=self._texts.choose(locale),
                locale=locale,
                external_id=None,
                status="active",
                source=source,
                created_at_ms=now_ms,
                **seen,
            )
        is_free = not self._find(project_id, channel=name, external_id=external_id)
        if external_id is not None and self.by_id[key].external_id is None and is_free:
            self._change(key, external_id=external_id)
        await self.tags.assign(tx, *key, tags)
        if not was_active:
            await self._events.emit(
                tx,
                project_id,
                "subscription.created",
                {"source": source},
                subscriber=self._filled(key),
            )
        await self.permissions.grant(tx, self._filled(key), permissions, defaults=is_new)
        if not was_active:
            await self._greetings.welcome(tx, self._filled(key), source)
        return self._filled(key), not was_active

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
        found = self._channels.of_addresses(project_id, channel)
        address, now_ms = self._channels.parse_address(found, address), self._clock.now_ms()
        known = self._find(project_id, channel=channel, user_id=address)
        if known:
            return self._filled((project_id, known[0].subscriber_id)), False
        key = project_id, new_id("sub")
        self.by_id[key] = Subscriber(
            *key,
            channel=channel,
            bot=found.key,
            user_id=address,
            chat_id=address,
            first_name=first_name,
            username=address,
            lang=self._texts.choose(lang),
            locale=lang,
            external_id=None,
            status=status,
            source=source,
            created_at_ms=now_ms,
            last_seen_at_ms=now_ms,
        )
        return self._filled(key), True

    async def change(
        self, tx: Tx, project_id: str, subscriber_id: str, body: UpdateSubscriberBody
    ) -> Subscriber:
        self._check(body)
        before, key = await self.get(tx, project_id, subscriber_id), (project_id, subscriber_id)
        if body.tags is not None:
            await self.tags.ensure(tx, project_id, body.tags)
        if body.external_id is not None:
            holders = self._find(project_id, channel=before.channel, external_id=body.external_id)
            if any(each.subscriber_id != subscriber_id for each in holders):
                raise Conflict(
                    "another subscriber of this channel has {external_id!r}",
                    field="external_id",
                    external_id=body.external_id,
                )
        given = body.model_dump(include=body.model_fields_set - {"tags"})
        if body.lang is not None:
            given |= self._language_columns(body.lang)
        if "attributes" in given:
            given["attributes"] = given["attributes"] or None
        self._change(key, **given)
        if body.tags is not None:
            await self.tags.replace(tx, project_id, subscriber_id, body.tags)
        return self._filled(key)

    async def get(self, tx: Tx, project_id: str, subscriber_id: str) -> Subscriber:
        if (project_id, subscriber_id) not in self.by_id:
            raise SubscriberNotFound(
                "there is no subscriber {subscriber_id!r}", subscriber_id=subscriber_id
            )
        return self._filled((project_id, subscriber_id))

    async def get_many(self, tx: Tx, keys: Sequence[Key]) -> dict[Key, Subscriber]:
        return {key: self._filled(key) for key in keys if key in self.by_id}

    async def find_selected(
        self, tx: Tx, project_id: str, ids: str, params: Mapping[str, Any]
    ) -> list[Subscriber]:
        rows = await tx.fetch_all(ids, params)
        keys = sorted((project_id, str(row["subscriber_id"])) for row in rows)
        return [self._filled(key) for key in keys if key in self.by_id]

    async def find_by_user(
        self, tx: Tx, project_id: str, channel: str, user_id: str
    ) -> Subscriber | None:
        found = self._find(project_id, channel=channel, user_id=user_id)
        return self._filled((project_id, found[0].subscriber_id)) if found else None

    async def list_by_user(self, tx: Tx, bot: str, user_id: str) -> list[PersonSubscription]:
        theirs = [
            each for each in self.by_id.values() if (each.bot, each.user_id) == (bot, user_id)
        ]
        return [
            PersonSubscription(each.project_id, each.subscriber_id, each.status)
            for each in sorted(theirs, key=lambda each: each.subscriber_id)
        ]

    async def lock_existing(
        self, tx: Tx, keys: Collection[Key], *, skip_locked: bool = False
    ) -> dict[Key, Status]:
        return {key: self.by_id[key].status for key in keys if key in self.by_id}

    async def language_of(self, tx: Tx, channel: str, user_id: str) -> str | None:
        theirs = [
            each for each in self.by_id.values() if (each.bot, each.user_id) == (channel, user_id)
        ]
        return max(theirs, key=lambda each: each.last_seen_at_ms).lang if theirs else None

    async def set_language(
        self, tx: Tx, channel: str, chat_id: str, user_id: str, lang: str
    ) -> None:
        self._chosen[channel, chat_id] = lang
        for key, each in list(self.by_id.items()):
            if (each.bot, each.user_id) == (channel, user_id):
                self._change(key, lang=lang, locale=lang)

    async def has_bot(self, tx: Tx, project_id: str, bot: str) -> bool:
        return bool(self._find(project_id, bot=bot))

    async def check_channel(self, tx: Tx, project_id: str, name: str) -> None:
        if not self._find(project_id, channel=name):
            self._channels.check_name(project_id, name)

    async def page(
        self, tx: Tx, project_id: str, query: SubscriberQuery, *, ascending: bool = False
    ) -> list[Subscriber]:
        text = query.query
        if text is None:
            return await super().page(tx, project_id, query, ascending=ascending)
        after = read_place(query.after)
        found = await self.list_after(tx, project_id, query, None, len(self.by_id))
        places = [(read_place(_place(text, each)), each) for each in found if _matches(text, each)]
        places.sort(key=lambda place: place[0] or ("", ""))
        later = [each for place, each in places if after is None or (place or ("", "")) > after]
        return later[: query.fetch_limit]

    async def count_active(self, tx: Tx, project_id: str, at_most: int) -> int:
        return min(len(list(self._find(project_id, status="active"))), at_most)

    async def active_by_project(self, tx: Tx) -> dict[str, int]:
        active = [each.project_id for each in self.by_id.values() if each.status == "active"]
        return dict(Counter(active))

    async def count(
        self, tx: Tx, project_id: str, filters: SubscriberFilters, limit: int = MOST_COUNTED
    ) -> Count:
        found = len(await self.list_after(tx, project_id, filters, None, len(self.by_id)))
        return Count(min(found, limit), found <= limit)

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
        await self._check_filters(tx, project_id, filters)
        fields = filters.model_dump(
            include={"channel", "status", "lang", "external_id"}, exclude_none=True
        )
        ids = sorted(
            (each.subscriber_id for each in self._find(project_id, **fields)),
            reverse=not ascending,
        )
        found = [
            self._filled((project_id, one))
            for one in ids
            if after is None or (one > after if ascending else one < after)
        ]
        since_ms = -1 if filters.created_after is None else filters.created_after
        return [
            each
            for each in found
            if filters.tag in {None, *each.tags}
            and filters.permission in {None, *each.permissions}
            and each.created_at_ms > since_ms
        ][:limit]

    async def lock(self, tx: Tx, channel: str, user_ids: Collection[str]) -> None:
        """Nothing to lock."""

    async def block(
        self, tx: Tx, channel: str, user_id: str, *, reason: str, chat_id: str | None = None
    ) -> None:
        for key in self._of_person(channel, user_id, "active"):
            if chat_id not in {None, self.by_id[key].chat_id}:
                continue
            self._change(key, status="blocked")
            await self._emit_deleted(tx, self._filled(key), reason)
        bot = await self._channels.find(channel)
        if bot is not None and bot.capabilities.addresses:
            for key in self._of_person(channel, user_id, "unsubscribed"):
                self._change(key, status="blocked")

    async def unblock(self, tx: Tx, channel: str, user_id: str) -> None:
        for key in self._of_person(channel, user_id, "blocked"):
            self._change(key, status="unsubscribed")

    async def record_chat(self, tx: Tx, channel: str, user_id: str, chat_id: str) -> None:
        for key, each in list(self.by_id.items()):
            if (each.bot, each.user_id) == (channel, user_id):
                self._change(key, chat_id=chat_id)

    async def move_chat(self, tx: Tx, channel: str, chat_id: str, new_chat_id: str) -> None:
        for key, each in list(self.by_id.items()):
            if (each.bot, each.chat_id) == (channel, chat_id):
                self._change(key, chat_id=new_chat_id)

    async def move_user(self, tx: Tx, channel: str, user_id: str, new_user_id: str) -> None:
        taken = {
            (key[0], each.channel)
            for key, each in self.by_id.items()
            if each.user_id == new_user_id
        }
        for key, each in list(self.by_id.items()):
            is_theirs = (each.bot, each.user_id) == (channel, user_id)
            if is_theirs and (key[0], each.channel) not in taken:
                self._change(key, user_id=new_user_id)

    async def unsubscribe(
        self, tx: Tx, project_id: str, subscriber_id: str, *, reason: str
    ) -> bool:
        before = await self.get(tx, project_id, subscriber_id)
        if before.status != "active":
            return False
        self._change((project_id, subscriber_id), status="unsubscribed")
        await self._emit_deleted(tx, await self.get(tx, project_id, subscriber_id), reason)
        return True

    async def resubscribe(self, tx: Tx, project_id: str, subscriber_id: str) -> Subscriber:
        before = await self.get(tx, project_id, subscriber_id)
        if before.status == "active":
            raise AlreadySubscribed(
                "{subscriber_id} is subscribed already", subscriber_id=subscriber_id
            )
        if before.status == "blocked" and not self._is_by_address(before):
            raise Conflict("{subscriber_id} has blocked the bot", subscriber_id=subscriber_id)
        self._change((project_id, subscriber_id), status="active")
        subscriber = await self.get(tx, project_id, subscriber_id)
        await self._events.emit(
            tx, project_id, "subscription.created", {"source": "api"}, subscriber=subscriber
        )
        return subscriber

    async def erase(self, tx: Tx, project_id: str, subscriber_id: str) -> None:
        subscriber = await self.get(tx, project_id, subscriber_id)
        key = project_id, subscriber_id
        del self.by_id[key]
        self.tags.carried.pop(key, None)
        self.permissions.granted.pop(key, None)
        self.erased.append(subscriber)
        nobody = replace(subscriber, first_name="", username=None, tags=(), external_id=None)
        await self._emit_deleted(tx, nobody, "erased")

    async def _load(self, _tx: Tx, keys: Sequence[Key]) -> dict[Key, Recipient]:
        return {key: _recipient(self.by_id[key]) for key in keys if key in self.by_id}

    async def _load_by_external_id(
        self, _tx: Tx, keys: Sequence[Key]
    ) -> dict[Key, list[Recipient]]:
        return {
            key: [_recipient(each) for each in self._find(key[0], external_id=key[1])]
            for key in keys
        }

    def _filled(self, key: Key) -> Subscriber:
        return replace(
            self.by_id[key],
            tags=tuple(sorted(self.tags.carried.get(key, ()))),
            permissions=tuple(sorted(self.permissions.granted.get(key, ()))),
        )

    def _find(self, project_id: str, **fields: Any) -> list[Subscriber]:
        return [
            each
            for each in self.by_id.values()
            if each.project_id == project_id
            and all(getattr(each, name) == value for name, value in fields.items())
        ]

    def _of_person(self, bot: str, user_id: str, status: str) -> list[Key]:
        return [
            key
            for key, each in self.by_id.items()
            if (each.bot, each.user_id, each.status) == (bot, user_id, status)
        ]

    def _change(self, key: Key, **fields: Any) -> None:
        self.by_id[key] = replace(self.by_id[key], **fields)

    def _is_active(self, key: Key) -> bool:
        return key not in self.by_id or self.by_id[key].status == "active"


def _recipient(person: Subscriber) -> Recipient:
    return Recipient(
        person.subscriber_id,
        person.channel,
        person.bot,
        person.status,
        person.last_seen_at_ms,
        person.lang,
        person.external_id,
    )


def _names(person: Subscriber) -> list[str | None]:
    return [person.first_name, person.username, person.external_id]


def _place(text: str, person: Subscriber) -> str:
    return place_of(text, person.subscriber_id, *_names(person))


def _matches(text: str, person: Subscriber) -> bool:
    return any(name and folded(name).startswith(folded(text)) for name in _names(person))
