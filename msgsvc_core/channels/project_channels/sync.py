"""Keeps a process's channels in sync with the table, whichever process changes it."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Protocol

import structlog

from msgsvc_core.channels import bots
from msgsvc_core.channels.contract import BotProfile, ChannelIdentity
from msgsvc_core.channels.kinds import WrongSettings
from msgsvc_core.channels.project_channels import store
from msgsvc_core.channels.project_channels.models import OwnChannel, row_of
from msgsvc_core.db import Database, DatabaseUnavailable
from msgsvc_core.kernel.aio import cancel_and_wait
from msgsvc_core.security import DecryptionError, SecretBox

log = structlog.get_logger(__name__)


class Registry(Protocol):
    """Receives changes of project channels."""

    def register(
        self, identity: ChannelIdentity, kind_name: str, options: Mapping[str, Any]
    ) -> None: ...
    def register_broken(self, identity: ChannelIdentity, why: str) -> None: ...
    def unregister(self, key: str) -> None: ...
    def set_profile(self, key: str, settings_digest: str, profile: BotProfile) -> None: ...


class ChannelSync:
    """Polls a revision number, and reads the channels only when it has increased."""

    def __init__(
        self, *, db: Database, secrets: SecretBox, channels: Registry, follow_s: float
    ) -> None:
        self._db = db
        self._secrets = secrets
        self._channels = channels
        self._follow_s = follow_s
        #: All changes up to this revision are applied.
        self._seen = 0
        #: The revisions of this process's channels, and of removals that arrived early.
        self._revisions: dict[str, int] = {}
        self._removals: dict[str, int] = {}
        self._refreshing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Loads all channels, and starts to follow changes. Raises `DatabaseUnavailable`."""
        await self.refresh()
        self._task = asyncio.create_task(self._run(), name="follow channels")

    async def stop(self) -> None:
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    async def refresh(self) -> None:
        """Applies all changes committed until now. Raises `DatabaseUnavailable`."""
        async with self._refreshing:
            async with self._db.read() as tx:
                # First: changes committed while we read the rest will be found again.
                revision = await bots.revision(tx)
                if revision == self._seen:
                    return
                changed = await store.changed_after(tx, self._seen)
                present = await store.ids(tx)
                known = await bots.changed_after(
                    tx, self._seen, [channel.channel_id for channel in changed]
                )
            for channel in changed:
                self.apply(channel)
            for key in self._revisions.keys() - present:
                # A channel created here a moment ago may not have been in it yet.
                if self._revisions[key] <= revision:
                    self.remove(key, revision)
            for bot in known:
                if bot.profile is not None:
                    self._channels.set_profile(bot.channel, bot.settings_digest, bot.profile)
            self._seen = revision
            self._removals = {
                key: removed for key, removed in self._removals.items() if removed > revision
            }

    def apply(self, channel: OwnChannel) -> None:
        """Applies a channel's row, unless it is older than the current state."""
        key = channel.channel_id
        newest = max(self._revisions.get(key, 0), self._removals.get(key, 0))
        if channel.revision <= newest:
            return
        self._revisions[key] = channel.revision
        identity = ChannelIdentity(channel.name, key, channel.project_id)
        try:
            options = json.loads(self._secrets.decrypt(channel.sealed, row_of(key)))
            self._channels.register(identity, channel.plugin, options)
        except (WrongSettings, DecryptionError) as error:
            log.error("own_channel_broken", channel=key, error=str(error))
            self._channels.register_broken(identity, str(error))
        except Exception as error:
            # The edge of a plugin: one project's channel must not stop the others.
            log.exception("own_channel_broken", channel=key)
            self._channels.register_broken(identity, f"it can't be made: {type(error).__name__}")

    def has(self, channel: OwnChannel) -> bool:
        """Whether this row is applied in this process."""
        return self._revisions.get(channel.channel_id) == channel.revision

    def remove(self, key: str, revision: int) -> None:
        """Removes a channel that was removed in `revision`."""
        self._revisions.pop(key, None)
        self._removals[key] = max(revision, self._removals.get(key, 0))
        self._channels.unregister(key)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._follow_s)
            try:
                await self.refresh()
            except DatabaseUnavailable as error:
                log.warning("channels_not_followed", error=str(error))
            except Exception:
                # The edge: after any failure, the next round may succeed.
                log.exception("channels_not_followed")
