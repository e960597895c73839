"""The channels of a service: those of the configuration, and those added by projects."""

import asyncio
from collections import defaultdict
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from msgsvc_core.channels import bots
from msgsvc_core.channels.commands import CommandCatalogue
from msgsvc_core.channels.contract import BotProfile, Channel, ChannelHealth, ChannelIdentity
from msgsvc_core.channels.failures import ForeignBot, no_bot_ready
from msgsvc_core.channels.kinds import ChannelKinds, WrongKind, WrongSettings
from msgsvc_core.channels.registry.broken import BrokenChannel
from msgsvc_core.channels.registry.ref_counts import ChannelRefCounts, close_quietly
from msgsvc_core.channels.start_links.addresses import ChannelAddresses
from msgsvc_core.channels.updates import Update
from msgsvc_core.config.settings import ChannelSettings, Settings
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Database, Tx
from msgsvc_core.kernel.errors import Conflict, InvalidValue, SettingsError, ValidationFailed
from msgsvc_core.kernel.ids import is_id

#: Takes over the channels that other processes have added. Raises `DatabaseUnavailable`.
Refresh = Callable[[], Awaitable[None]]

#: Handles an update of the bot with that key.
Receive = Callable[[str, Update], Awaitable[None]]

#: Stops or resumes a channel by the result of its `check`, and when that started, in Unix milliseconds.
NoteHealth = Callable[[Channel, ChannelHealth, int], Awaitable[bool]]


class Channels:
    """`service.channels`, by key; `resolve` finds a project's channel by name."""

    def __init__(
        self,
        *,
        db: Database,
        kinds: ChannelKinds,
        settings: Settings,
        addresses: ChannelAddresses,
        commands: CommandCatalogue,
        refresh: Refresh,
        receive: Receive,
        apply_health: NoteHealth,
    ) -> None:
        self._db = db
        self.kinds = kinds
        self._addresses = addresses
        #: The commands of bots' menus.
        self.commands = commands
        self._refresh = refresh
        self._receive = receive
        self._apply_health = apply_health
        #: The digests of a channel's settings under every secret key, the current one first.
        self._digests: dict[str, tuple[str, ...]] = {}
        self._shared = {
            name: self._create_shared(name, each) for name, each in settings.channels.items()
        }
        #: The accounts of the bots' tokens, as far as this process recorded them.
        self._accounts: dict[str, str] = {}
        self._own: dict[str, Channel] = {}
        self._own_of: defaultdict[str, dict[str, Channel]] = defaultdict(dict)
        self._ref_counts = ChannelRefCounts()
        self._watchers: list[Callable[[], None]] = []

    # ---- lookup ---------------------------------------------------------------------------------

    @property
    def shared(self) -> list[Channel]:
        """The channels of the configuration, which serve every project."""
        return list(self._shared.values())

    @property
    def own(self) -> list[Channel]:
        """The channels added by projects, as far as this process knows them."""
        return list(self._own.values())

    def __iter__(self) -> Iterator[Channel]:
        return iter([*self._shared.values(), *self._own.values()])

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __getitem__(self, key: str) -> Channel:
        channel = self.get(key)
        if channel is None:
            raise KeyError(key)
        return channel

    def get(self, key: str) -> Channel | None:
        """The channel of that key, if this process knows it: see `find`."""
        return self._shared.get(key) or self._own.get(key)

    async def find(self, key: str) -> Channel | None:
        """The channel with that key; an unknown one is loaded from the database.

        None if it was removed, or never existed. Raises `DatabaseUnavailable`.
        """
        channel = self.get(key)
        if channel is None and is_id(key, bots.OWN_PREFIX):
            await self._refresh()
            channel = self.get(key)
        return channel

    async def get_bot(self, project_id: str, bot: str, name: str) -> Channel:
        """The bot through which a subscriber subscribed, and which alone may write to them; `name` is that of
        their channel.

        Raises `Conflict` if it was removed.
        """
        channel = await self.find(bot)
        if channel is not None:
            return channel
        if self.resolve(project_id, name) is None:
            raise Conflict(
                "the channel {name!r}, by which this subscriber came, is gone", name=name
            )
        raise Conflict(
            "the bot by which this subscriber came to {name!r} is gone; they have to start"
            " the one that is there now",
            name=name,
        )

    @asynccontextmanager
    async def borrow(self, key: str) -> AsyncIterator[Channel | None]:
        """The channel of that key, for the block: if it is replaced meanwhile, it is closed afterwards."""
        channel = await self.find(key)
        if channel is None:
            yield None
            return
        async with self.keep_open(channel):
            yield channel

    def keep_open(self, channel: Channel) -> AbstractAsyncContextManager[None]:
        """Keeps a channel from being closed while the block runs."""
        return self._ref_counts.borrow(channel)

    def resolve(self, project_id: str, name: str) -> Channel | None:
        """The project's channel of this name: its own before a shared one."""
        own = self._own_of.get(project_id, {})
        return own.get(name) or self._shared.get(name)

    def list_for_project(self, project_id: str) -> list[Channel]:
        """The channels that the project can use: those of the configuration in its order, then others by
        name."""
        own = self._own_of.get(project_id, {})
        added = sorted(own.keys() - self._shared.keys())
        return [own.get(name) or self._shared[name] for name in self._shared] + [
            own[name] for name in added
        ]

    def check_name(self, project_id: str, name: str) -> None:
        """Raises `ValidationFailed` if the project does not have a channel of this name."""
        if self.resolve(project_id, name) is None:
            known = ", ".join(channel.name for channel in self.list_for_project(project_id))
            raise ValidationFailed("must be one of {choices}", field="channel", choices=known)

    def check_supported(
        self,
        project_id: str,
        message: OutgoingMessage,
        names: Collection[str] | None = None,
        *,
        field: str = "",
    ) -> None:
        """Raises `ValidationFailed` for a message that none of the project's channels supports, or none of
        those in `names`. One is enough: people are on different channels."""
        problems = {
            channel.name: channel.problem(message)
            for channel in self.list_for_project(project_id)
            if names is None or channel.name in names
        }
        if problems and all(problems.values()):
            name, problem = next(iter(problems.items()))
            raise ValidationFailed("on {name}: {problem}", field=field, name=name, problem=problem)

    def of_addresses(self, project_id: str, name: str) -> Channel:
        """A project's channel that knows people by their address. Raises `ValidationFailed` for others."""
        self.check_name(project_id, name)
        channel = self.resolve(project_id, name)
        if channel is None or not channel.capabilities.addresses:
            raise ValidationFailed(
                "people on {name} have no address: they begin by a link", field="channel", name=name
            )
        return channel

    def parse_address(self, channel: Channel, text: str) -> str:
        """The normal form of an address on a channel. Raises `ValidationFailed`, which does not repeat it."""
        try:
            return channel.parse_address(text)
        except InvalidValue as error:
            raise ValidationFailed.because(error, field="address") from None

    def name_for(self, project_id: str, key: str) -> str:
        """The name of a bot's channel in the project. Raises `ForeignBot` for another project's bot."""
        identity = self[key].identity
        if identity.project_id not in {None, project_id}:
            raise ForeignBot(f"the bot {key} serves another project")
        return identity.name

    def display_name(self, name: str, project_id: str = "") -> str:
        """A channel's display name: "Telegram".

        If the project has several of a kind, the channel's name is added: "Telegram (Support)". A kind
        without a title is shown by the channel's name alone: `messenger_a` is "Messenger A". Without
        `project_id`, for a shared channel.
        """
        channel, words = self.resolve(project_id, name), words_of(name)
        title = "" if channel is None else channel.identity.title
        if not title:
            return words
        alike = [each for each in self.list_for_project(project_id) if each.identity.title == title]
        return title if len(alike) < 2 else f"{title} ({words})"

    def mark(self, name: str, project_id: str = "") -> str:
        """The drawing of a channel's messenger (`ChannelKind.mark`); empty if it has none."""
        channel = self.resolve(project_id, name)
        return "" if channel is None else channel.identity.mark

    # ---- links and addresses --------------------------------------------------------------------

    def deep_links(
        self,
        project_id: str,
        payload: str,
        names: Iterable[str] | None = None,
        *,
        asks: bool = False,
    ) -> dict[str, str]:
        """The link that starts the bot with `payload`, per channel.

        Omits bots whose profile is not known yet and, if it `asks` something, bots that can't receive
        answers. Raises `Unavailable` if none is left.
        """
        links: dict[str, str] = {}
        for channel in self.list_for_project(project_id):
            if asks and not channel.capabilities.answers:
                continue
            if names is None or channel.name in names:
                link = channel.link(payload)
                if link is not None:
                    links[channel.name] = link
        if not links:
            raise no_bot_ready()
        return links

    def start_messages(
        self, project_id: str, payload: str, links: Iterable[str], *, lasting: bool = False
    ) -> dict[str, str]:
        """The text that starts the bot, for each channel of `links` whose link can't carry a payload.

        A long payload is replaced by a short code (see `remember_start`), a `lasting` one never: it is
        printed on posters, and codes end.
        """
        text = f"start {payload}" if lasting else self._addresses.start_message(payload)
        return {
            channel.name: text
            for channel in self.list_for_project(project_id)
            if channel.name in links and not channel.capabilities.start_links
        }

    async def remember_start(
        self, tx: Tx, project_id: str, payload: str, expires_at_ms: int
    ) -> None:
        """Makes the short code of `payload` valid until then, if the project has a channel that needs it."""
        if any(
            not channel.capabilities.start_links for channel in self.list_for_project(project_id)
        ):
            await self._addresses.remember_start(tx, payload, expires_at_ms)

    def check_answers(self, project_id: str, name: str | None) -> None:
        """Raises `ValidationFailed` if a question could not be answered on the channel `name` or, for
        None, on any of the project's."""
        if name is not None:
            channel = self.resolve(project_id, name)
            if channel is not None and not channel.capabilities.answers:
                raise ValidationFailed(
                    "people can't answer a bot on {name}", field="channel", name=name
                )
            return
        channels = self.list_for_project(project_id)
        if channels and not any(channel.capabilities.answers for channel in channels):
            raise ValidationFailed(
                "people can't answer a bot on any of the project's", field="channel"
            )

    def qr_links(self, links: Mapping[str, str], project_id: str, payload: str) -> dict[str, str]:
        """The URL of an SVG with the QR code of each of `links`; no API key needed."""
        found = {channel.name: channel.key for channel in self.list_for_project(project_id)}
        return {name: self._addresses.qr_code(found[name], payload) for name in links}

    def hook_url(self, channel: Channel) -> str:
        """The webhook URL of the channel's bot."""
        return self._addresses.hook_url(channel.key)

    def hook_secrets(self, channel: Channel) -> tuple[str, ...]:
        """Webhook secrets: the current one, which is registered with the platform, then those of older keys.

        64 hex digits, which every platform accepts.
        """
        return self._addresses.hook_secrets(channel.key)

    # ---- inbound -----------------------------------------------------------------------------------

    async def receive(self, key: str, update: Update) -> None:
        """Processes an update of a bot once, however often it is received.

        Raises `DatabaseUnavailable` if it could not be processed and must be received again.
        """
        await self._receive(key, update)

    async def apply_health(
        self, channel: Channel, health: ChannelHealth, *, asked_at_ms: int
    ) -> bool:
        """Stops or resumes the channel by the result of its `check`; True if that changed anything."""
        return await self._apply_health(channel, health, asked_at_ms)

    # ---- projects' channels, called by ChannelSync ----------------------------------------------

    def register(
        self, identity: ChannelIdentity, kind_name: str, options: Mapping[str, Any]
    ) -> None:
        """Creates or replaces a project's channel. Raises `WrongSettings`."""
        digests = self.kinds.digests(kind_name, options)
        self._place(self.kinds.create(identity, kind_name, options), digests)

    def register_broken(self, identity: ChannelIdentity, why: str) -> None:
        """Adds a stand-in for a project's channel whose settings can't be read."""
        self._place(BrokenChannel(identity, why), ())

    def unregister(self, key: str) -> None:
        """Removes a project's channel; it is closed after the calls in progress."""
        channel = self._own.pop(key, None)
        if channel is None:
            return
        named = self._own_of[channel.identity.project_id or ""]
        if named.get(channel.name) is channel:
            del named[channel.name]
        self._digests.pop(key, None)
        self._accounts.pop(key, None)
        self._ref_counts.retire(channel)
        self._notify_watchers()

    def set_profile(self, key: str, settings_digest: str, profile: BotProfile) -> None:
        """Sets a bot's profile, if it belongs to the channel's current settings."""
        channel = self.get(key)
        if channel is not None and settings_digest in self.digests(channel):
            channel.profile = profile

    async def remember(self, channel: Channel, health: ChannelHealth) -> None:
        """Applies a bot's profile that was just read, and shares it with the other processes.

        No effect if the channel was changed meanwhile: the profile is another bot's.
        """
        if self.get(channel.key) is not channel:
            return
        is_noted = health.account is None or self._accounts.get(channel.key) == health.account
        if health.profile is None or (health.profile == channel.profile and is_noted):
            return
        channel.profile = health.profile
        # Read again at the next start, if a power cut loses it.
        async with self._db.transaction(inline=True, durable=False) as tx:
            bot = await bots.load(tx, channel.key, self.digests(channel), health.account)
            if health.account is not None and bot.account != health.account:
                await bots.save_account(tx, bot, health.account)
            if bot.profile != health.profile:
                await bots.save_profile(tx, bot, health.profile)
        if health.account is not None:
            self._accounts[channel.key] = health.account

    def digests(self, channel: Channel) -> tuple[str, ...]:
        """Identifies a channel's bot across restarts and processes."""
        return self._digests.get(channel.key, ())

    def watch(self, on_change: Callable[[], None]) -> None:
        """Calls `on_change` when a project's channel is added, changed or removed."""
        self._watchers.append(on_change)

    # ---- shutdown -------------------------------------------------------------------------------

    async def close(self) -> None:
        """Closes all channels."""
        await self._ref_counts.close()
        await asyncio.gather(*(close_quietly(channel) for channel in self))

    def _create_shared(self, name: str, settings: ChannelSettings) -> Channel:
        try:
            self._digests[name] = self.kinds.digests(settings.plugin, settings.options)
            return self.kinds.create(
                ChannelIdentity(name, key=name), settings.plugin, settings.options
            )
        except WrongSettings as error:
            hint = "; is it in `plugins`?" if isinstance(error, WrongKind) else ""
            raise SettingsError(f"channels.{name}.{error}{hint}") from error

    def _place(self, channel: Channel, digests: tuple[str, ...]) -> None:
        assert channel.identity.project_id is not None, "an own channel has its project"
        before = self._own.get(channel.key)
        self._accounts.pop(channel.key, None)
        if before is not None and set(digests) & set(self.digests(before)):
            channel.profile = before.profile
        self._own[channel.key] = channel
        self._own_of[channel.identity.project_id][channel.name] = channel
        self._digests[channel.key] = digests
        if before is not None:
            self._ref_counts.retire(before)
        self._notify_watchers()

    def _notify_watchers(self) -> None:
        for changed in self._watchers:
            changed()


#: Maximum length of a word that is treated as an abbreviation.
ABBREVIATION = 3


def words_of(name: str) -> str:
    """A channel's name as words: `messenger_a` is "Messenger A", `max` "MAX"."""
    words = name.replace("_", " ").replace("-", " ").split()
    return " ".join(w.upper() if len(w) <= ABBREVIATION else w.capitalize() for w in words)
