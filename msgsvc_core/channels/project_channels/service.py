"""Project channels: validation of settings, and their life cycle."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from msgsvc_core.channels import bots, spending
from msgsvc_core.channels.contract import Channel, ChannelHealth, ChannelIdentity
from msgsvc_core.channels.health.check import check_channel
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.kinds import ShownSettings, WrongKind, WrongSettings
from msgsvc_core.channels.project_channels import store
from msgsvc_core.channels.project_channels.models import (
    PLACE,
    BotAnswer,
    BudgetAnswer,
    ChannelAnswer,
    CreateChannelBody,
    OwnChannel,
    OwnChannelStatus,
    State,
    UpdateChannelBody,
    row_of,
)
from msgsvc_core.channels.project_channels.sync import ChannelSync
from msgsvc_core.channels.reception.models import ReceptionAnswer, reception_of
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.registry.broken import BrokenChannel
from msgsvc_core.channels.shelf.service import delete_of_channel
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.clock import Clock, to_rfc3339
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.kernel.json import to_json
from msgsvc_core.security import DecryptionError, SecretBox
from msgsvc_core.security.sealed import SealedColumn

#: Prefix of the ids; the key of the channel everywhere else.
ID_PREFIX = "chn"

#: The settings contain the bots' tokens.
SEALED = SealedColumn(
    table="core_channels",
    column="settings",
    key=("project_id", "name"),
    bound_to=("channel_id",),
    place=PLACE,
    holds="settings and tokens of {count} bot(s) of projects",
    if_lost="each project connects its bot again: PATCH /v1/channels/{key} with all settings",
)

#: The result of a check in quarantine.
NOT_ASKED = ChannelHealth(
    ok=False, detail="the service is in quarantine and calls no messenger", unreachable=True
)

#: Whether a project has subscribers on a channel, by the channel's key.
HasSubscribers = Callable[[Tx, str, str], Awaitable[bool]]


class ProjectChannels:
    """The channels that projects add."""

    def __init__(
        self,
        *,
        clock: Clock,
        db: Database,
        secrets: SecretBox,
        channels: Channels,
        sync: ChannelSync,
        states: ChannelStates,
        has_subscribers: HasSubscribers,
        settings: Settings,
    ) -> None:
        self._clock = clock
        self._db = db
        self._secrets = secrets
        self._channels = channels
        self._sync = sync
        self._states = states
        self._has_subscribers = has_subscribers
        self._shared = settings.channels
        self._per_project = settings.own_channels.per_project
        self._is_quarantined = settings.quarantine

    async def create(self, tx: Tx, project_id: str, body: CreateChannelBody) -> OwnChannel:
        """Creates a channel, which works in this process after the commit, and in others a moment later.

        Raises `ValidationFailed` for invalid settings, and `Conflict` for a name in use and at the limit.
        """
        self._check(body.plugin, body.settings)
        await tx.lock(f"channels of {project_id}")
        before = await self.check_free(tx, project_id, body.name, body.plugin)
        now_ms = self._clock.now_ms()
        # Subscribers of the earlier bot of this name are reached through the new one.
        channel_id = before.channel_id if before else new_id(ID_PREFIX)
        channel = OwnChannel(
            project_id=project_id,
            name=body.name,
            channel_id=channel_id,
            plugin=body.plugin,
            sealed=self._seal(channel_id, body.settings),
            revision=await bots.next_revision(tx),
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        await store.upsert(tx, channel)
        tx.on_commit(partial(self._sync.apply, channel))
        return channel

    async def check_free(
        self, tx: Tx, project_id: str, name: str, plugin: str, *, waiting: int = 0
    ) -> OwnChannel | None:
        """Raises `Conflict` unless the project may have one more channel, of that name and kind, beside
        `waiting` others. Returns the removed one that it would replace.
        """
        limit = self._per_project
        if await store.count(tx, project_id) + waiting >= limit:
            raise Conflict("a project has at most {limit} channels of its own", limit=limit)
        before = await store.find(tx, project_id, name)
        self._check_name(name, plugin, before)
        return before

    async def get(self, tx: Tx, project_id: str, name: str) -> OwnChannel:
        """Raises `NotFound`, also for another project's channel."""
        channel = await store.find(tx, project_id, name)
        if channel is None or channel.removed_at_ms is not None:
            raise NotFound("there is no channel {name!r} of your own", name=name)
        return channel

    async def page(
        self, tx: Tx, project_id: str, after: str | None, limit: int
    ) -> list[OwnChannel]:
        """Up to `limit` channels, newest first, from before `after`."""
        return await store.list_page(tx, project_id, after, limit)

    async def list_all(self, tx: Tx) -> list[OwnChannel]:
        """The channels of all projects, for an operator; oldest first."""
        return await store.list_all(tx)

    async def update(
        self, tx: Tx, project_id: str, name: str, body: UpdateChannelBody
    ) -> OwnChannel:
        """The channel after the change. Raises `NotFound` and `ValidationFailed`.

        A stop by the platform is cleared, and state of another bot deleted.
        """
        await tx.lock(f"channels of {project_id}")
        channel = await self.get(tx, project_id, name)
        try:
            before = self._options(channel)
        except DecryptionError:
            # Then all settings must be given again.
            before = {}
        merged = {**before, **body.settings}
        options = {key: value for key, value in merged.items() if value is not None}
        self._check(channel.plugin, options)
        changed = replace(
            channel,
            sealed=self._seal(channel.channel_id, options),
            revision=await bots.next_revision(tx),
            updated_at_ms=self._clock.now_ms(),
        )
        await store.update(tx, changed)
        if self._is_same_bot(channel.plugin, before, options):
            await self._states.clear_stop(tx, channel.channel_id)
        else:
            await self._states.delete(tx, channel.channel_id)
        tx.on_commit(partial(self._sync.apply, changed))
        return changed

    async def delete(self, tx: Tx, project_id: str, name: str) -> None:
        """Removes a channel and its settings; its queued messages are skipped.

        Raises `NotFound`.
        """
        await tx.lock(f"channels of {project_id}")
        channel = await self.get(tx, project_id, name)
        has_people = await self._has_subscribers(tx, project_id, channel.channel_id)
        await store.remove(tx, channel, self._clock.now_ms(), keep=has_people)
        await self._states.delete(tx, channel.channel_id)
        await bots.delete(tx, channel.channel_id)
        await spending.delete(tx, channel.channel_id)
        await delete_of_channel(tx, channel.channel_id)
        revision = await bots.next_revision(tx)
        tx.on_commit(partial(self._sync.remove, channel.channel_id, revision))

    async def check(
        self, project_id: str, name: str
    ) -> tuple[ChannelHealth, ReceptionAnswer | None]:
        """Checks the bot with its platform, without holding a database connection meanwhile.

        The result includes the last known reception status. In quarantine the platform is not asked. Raises
        `NotFound`.
        """
        async with self._db.read() as tx:
            row = await self.get(tx, project_id, name)
        async with self._channels.borrow(row.channel_id) as channel:
            if channel is None:
                raise NotFound("there is no channel {name!r} of your own", name=name)
            if self._is_quarantined:
                health = NOT_ASKED
            else:
                asked_at_ms = self._clock.now_ms()
                health = await check_channel(channel)
                await self._channels.remember(channel, health)
                await self._states.apply_health(channel, health, asked_at_ms=asked_at_ms)
            async with self._db.read() as tx:
                state = await self._states.find(tx, channel.key)
            return health, reception_of(channel, state)

    async def answers(self, tx: Tx, channels: Sequence[OwnChannel]) -> list[ChannelAnswer]:
        """Channels in the form of the API."""
        ids = [channel.channel_id for channel in channels]
        states = await store.states(tx, ids)
        spent = await spending.spent(tx, ids, spending.day_of(self._clock.now_ms()))
        return [
            self._answer(channel, states.get(channel.channel_id), spent.get(channel.channel_id, 0))
            for channel in channels
        ]

    def _answer(self, row: OwnChannel, state: State | None, spent: int) -> ChannelAnswer:
        shown = ShownSettings({}, [])
        status: OwnChannelStatus = "working"
        detail = receiving = profile = link = unavailable_since = reception = budget = None
        paused_until = None
        if state is not None and state.paused_until_ms > self._clock.now_ms():
            paused_until = to_rfc3339(state.paused_until_ms)
        try:
            options = self._options(row)
            shown = self._channels.kinds.shown(row.plugin, options)
            channel = self._channel(row, options)
        except (DecryptionError, WrongSettings) as error:
            status, detail = "broken", str(error)
        else:
            receiving, profile, link = channel.receiving, channel.profile, channel.link("hello")
            reception, budget = reception_of(channel, state), channel.budget
            if isinstance(channel, BrokenChannel):
                status, detail = "broken", channel.why
            elif state is not None and state.status == "stopped":
                status, detail = "stopped", state.detail
            elif state is not None and state.outage_since_ms is not None:
                status, detail = "unavailable", state.outage_detail
                unavailable_since = to_rfc3339(state.outage_since_ms)
        return ChannelAnswer(
            name=row.name,
            channel_id=row.channel_id,
            plugin=row.plugin,
            settings=shown.values,
            secrets=shown.secrets,
            status=status,
            detail=detail,
            unavailable_since=unavailable_since,
            paused_until=paused_until,
            receiving=receiving or "nothing",
            reception=reception,
            bot=profile and BotAnswer(name=profile.name, username=profile.username),
            link=link,
            budget=budget
            and BudgetAnswer(
                unit=budget.unit, most=budget.in_units(budget.most), spent=budget.in_units(spent)
            ),
            created_at=to_rfc3339(row.created_at_ms),
            updated_at=to_rfc3339(row.updated_at_ms),
        )

    def _channel(self, row: OwnChannel, options: dict[str, Any]) -> Channel:
        """The channel as it works in this process; before the commit of a change, as it will."""
        channels = self._channels
        here = channels.get(row.channel_id)
        if here is not None and self._sync.has(row):
            return here
        identity = ChannelIdentity(row.name, row.channel_id, row.project_id)
        return channels.kinds.create(identity, row.plugin, options)

    def _is_same_bot(self, plugin: str, before: dict[str, Any], options: dict[str, Any]) -> bool:
        kinds = self._channels.kinds
        try:
            known = kinds.digests(plugin, before)
        except WrongSettings:
            return False
        return kinds.digests(plugin, options)[0] in known

    def _options(self, row: OwnChannel) -> dict[str, Any]:
        """The decrypted settings. Raises `DecryptionError`."""
        options: dict[str, Any] = json.loads(
            self._secrets.decrypt(row.sealed, row_of(row.channel_id))
        )
        return options

    def _seal(self, channel_id: str, options: dict[str, Any]) -> str:
        return self._secrets.encrypt(to_json(options), row_of(channel_id))

    def _check(self, plugin: str, options: dict[str, Any]) -> None:
        try:
            self._channels.kinds.check_own(plugin, options)
        except WrongKind as error:
            raise ValidationFailed.because(error) from None
        except WrongSettings as error:
            raise ValidationFailed.because(error, field="settings", joined=True) from None

    def _check_name(self, name: str, plugin: str, before: OwnChannel | None) -> None:
        """Subscribers are kept when a channel gets another bot, so it must be of the same kind: user ids
        of one platform mean other users on another."""
        if before is not None and before.removed_at_ms is None:
            raise Conflict(
                "you have a channel {name!r} of your own already", field="name", name=name
            )
        shared = self._shared.get(name)
        for other in (before, shared):
            if other is not None and other.plugin != plugin:
                raise Conflict(
                    "{name!r} is or was of the kind {kind!r}, and people are known by"
                    " that; give this channel another name",
                    field="name",
                    name=name,
                    kind=other.plugin,
                )
