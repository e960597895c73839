"""Fixtures of `ChannelContract`: the channel, its fake platform, and a local server."""

import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from msgsvc_core.channels import Capabilities, Channel, ChannelKind, Media, OutgoingMessage
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Database
from msgsvc_core.service import Service
from msgsvc_devkit.conformance.door import Door
from msgsvc_devkit.conformance.inbox import Inbox
from msgsvc_devkit.conformance.messenger import Messenger, Shown
from msgsvc_devkit.conformance.verdicts import done

#: The channel's name.
CHANNEL = "messenger_a"

SECRET_KEY = "only-for-the-conformance-kit-only-for-the-kit"


class Stage:
    """The fixtures. A plugin's class sets `plugin` and `kind`, and has a fixture `messenger`."""

    #: The plugin: its module `plugin`, or any object with its hooks.
    plugin: Any

    #: The plugin's channel kind to test.
    kind: str

    @pytest.fixture
    async def messenger(self) -> Messenger:
        """The fake platform, running while the check does."""
        raise NotImplementedError("a class with ChannelContract has a fixture `messenger`")

    @pytest.fixture
    async def service(self, messenger: Messenger, tmp_path: Path) -> AsyncIterator[Service]:
        """The service that creates the channel; not started, so that only the check calls the channel."""
        service = new_service(self.plugin, self.kind, messenger.settings, tmp_path)
        # Its database has no tables: no update was ever processed. The ignored check forbids to replace a
        # method, which is meant.
        service.inbound.last_update_ms = _never  # type: ignore[method-assign, assignment]
        yield service
        await service.channels.close()
        if "media" in vars(service):
            await service.media.close()

    @pytest.fixture
    async def channel(self, service: Service) -> Channel:
        """The channel after the platform has returned the bot's identity."""
        channel = service.channels[CHANNEL]
        channel.profile = (await done(channel.check(), "check")).profile
        return channel

    @pytest.fixture
    async def successor(self, service: Service, channel: Channel) -> AsyncIterator[Channel]:
        """The same channel as in another process, without the state of the first one."""
        successor = second_channel(service, self.kind, channel)
        yield successor
        await successor.close()

    @pytest.fixture
    async def door(self) -> AsyncIterator[Door]:
        """The local server for the platform's calls."""
        async with Door().open() as door:
            yield door

    @pytest.fixture
    async def inbox(self, channel: Channel, messenger: Messenger, door: Door) -> Inbox:
        """The channel's updates."""
        inbox = Inbox(channel, messenger, door)
        await done(inbox.open(), "set_webhook")
        return inbox

    @pytest.fixture
    async def chat_id(self, messenger: Messenger) -> str:
        """A chat in which the user has pressed Start."""
        await messenger.start()
        return messenger.chat_id

    @pytest.fixture
    def declared(self, service: Service) -> ChannelKind:
        """The channel kind."""
        return kind_of(service, self.kind)

    @pytest.fixture
    def secrets(self, service: Service) -> list[str]:
        """The secrets among the channel's settings."""
        return secrets_of(service, self.kind)


async def _never(_channel: str, _chat_id: str) -> int | None:
    """No chat is known."""
    return None


def new_service(
    plugin: Any, kind: str, settings: Any, folder: Path, database: Database | None = None
) -> Service:
    """A service with one channel of that kind, on a new file in the folder or that database."""
    values = {
        "secret_keys": (SECRET_KEY,),
        "database_url": f"sqlite:///{folder / 'msgsvc.db'}",
        "plugins": (),
        "channels": {CHANNEL: {**settings, "plugin": kind}},
        "media": {"allow_cidrs": ("127.0.0.0/8",), "allow_http": True},
    }
    return Service(
        Settings.model_validate(values), extra_plugins=[(kind, plugin)], database=database
    )


def secrets_of(service: Service, kind: str) -> list[str]:
    """The values of `SecretStr` fields in the channel's settings."""
    model = kind_of(service, kind).settings
    settings = model.model_validate(service.settings.channels[CHANNEL].options)
    values = [getattr(settings, name) for name in model.model_fields]
    return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


def kind_of(service: Service, name: str) -> ChannelKind:
    """The channel kind as the plugin declares it."""
    hook = service.plugins.hook
    kinds: list[ChannelKind] = [one for found in hook.register_channel_kinds() for one in found]
    return next(one for one in kinds if one.name == name)


def second_channel(service: Service, kind: str, channel: Channel) -> Channel:
    """A second instance of the channel with the same settings."""
    declared, options = kind_of(service, kind), service.settings.channels[CHANNEL].options
    settings = declared.settings.model_validate(options)
    second = declared.create(service.channels.kinds.context, channel.identity, settings)
    second.profile = channel.profile
    return second


def needs(capable: bool, what: str) -> None:
    """Skips the check if the channel's capabilities exclude it."""
    if not capable:
        pytest.skip(f"Capabilities: this channel has no {what}")


def plainest(text: str, takes: Capabilities, **more: Any) -> OutgoingMessage:
    """A message in a format that the channel supports; `text` is without markup."""
    text_format = "plain" if "plain" in takes.formats else min(takes.formats)
    return OutgoingMessage(text, format=text_format, **more)


def picture(door: Door, media_type: Any) -> Media:
    """An attachment of that type."""
    return Media(media_type, door.file_url(media_type))


def keyed(message: OutgoingMessage) -> OutgoingMessage:
    """The message with a key, as the core passes it to a channel; a new key if it has none."""
    return message if message.key else message.with_key(f"kit-{uuid.uuid4().hex}")


async def sent(channel: Channel, chat_id: str, message: OutgoingMessage) -> str:
    """Sends a message, which must succeed; returns its id."""
    __tracebackhide__ = True
    return await done(channel.send(chat_id, keyed(message)), "send")


async def shown_as(messenger: Messenger, ref: str) -> Shown:
    """The message as the user sees it. Fails the check if they don't."""
    __tracebackhide__ = True
    found: Sequence[Shown] = await messenger.shown()
    for message in found:
        if message.ref == ref:
            return message
    refs = [message.ref for message in found]
    pytest.fail(
        f"`send` returned {ref!r}, and the chat shows messages {refs}. Return the platform's own id of"
        " the message, the one that edits, deletes and presses of its buttons name"
    )
