"""Channels without platforms, which record their calls."""

from collections.abc import Iterable
from typing import TypeVar

from msgsvc_core.channels import (
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelKind,
    Update,
)
from msgsvc_core.channels.addresses import ChannelAddresses
from msgsvc_core.channels.commands import CommandCatalogue
from msgsvc_core.channels.kinds import ChannelKinds
from msgsvc_core.channels.registry import Channels
from msgsvc_core.channels.starting import StartCodes
from msgsvc_core.config.settings import Settings
from msgsvc_core.db import Tx
from msgsvc_core.kernel.clock import Clock
from msgsvc_devkit.channel import RecordingChannel, RecordingPlugin
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.fakes.database import FakeDatabase
from msgsvc_devkit.fakes.media import FakeMedia
from msgsvc_devkit.fakes.secrets import SECRET_KEY, fake_secrets, fake_texts

T = TypeVar("T")


def fake_settings(**fields: object) -> Settings:
    """Settings of a service with two recording channels, no plugins, and the key of tests."""
    channels = {"messenger_a": {"plugin": "recording"}, "messenger_b": {"plugin": "recording"}}
    values = {"secret_keys": (SECRET_KEY,), "plugins": (), "channels": channels, **fields}
    return Settings.model_validate(values)


class FakeChannels(Channels):
    """The configured channels, by default `messenger_a` and `messenger_b`, of the kind `recording` and of
    `kinds`; `put` adds a project's own. Sent messages are in `recording("messenger_a").sent`.

    `received` contains the updates passed on, `checked` the results of `check`, and `starts` the payloads
    with a short code and their expiry.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        kinds: Iterable[ChannelKind] = (),
        clock: Clock | None = None,
    ) -> None:
        self.received: list[tuple[str, Update]] = []
        self.checked: list[tuple[str, ChannelHealth]] = []
        self.starts: dict[str, int] = {}
        settings, clock, secrets = settings or fake_settings(), clock or FakeClock(), fake_secrets()
        context = ChannelContext(
            clock=clock,
            db=FakeDatabase(),
            secrets=secrets,
            base_url=settings.base_url,
            media=FakeMedia,
            is_own_address=lambda _url: False,
            provided=find_nothing,
        )
        super().__init__(
            db=context.db,
            kinds=ChannelKinds(
                [*RecordingPlugin().register_channel_kinds(), *kinds],
                context=context,
                secrets=secrets,
                settings=settings.own_channels,
            ),
            settings=settings,
            addresses=ChannelAddresses(
                base_url=settings.base_url,
                secrets=secrets,
                start_codes=StartCodes(clock=clock, secrets=secrets),
            ),
            commands=CommandCatalogue(texts=fake_texts(), declared=list),
            refresh=self._find_no_others,
            receive=self._record_update,
            apply_health=self._record_health,
        )

    def recording(self, key: str) -> RecordingChannel:
        """The recording channel of that key."""
        channel = self[key]
        assert isinstance(channel, RecordingChannel)
        return channel

    async def find(self, key: str) -> Channel | None:
        return self.get(key)

    async def remember_start(
        self, tx: Tx, project_id: str, payload: str, expires_at_ms: int
    ) -> None:
        if any(
            not channel.capabilities.start_links for channel in self.list_for_project(project_id)
        ):
            self.starts[payload] = expires_at_ms

    async def remember(self, channel: Channel, health: ChannelHealth) -> None:
        if self.get(channel.key) is channel and health.profile is not None:
            channel.profile = health.profile

    async def close(self) -> None:
        """Nothing to close."""

    async def _find_no_others(self) -> None:
        """No other process adds channels."""

    async def _record_update(self, key: str, update: Update) -> None:
        self.received.append((key, update))

    async def _record_health(
        self, channel: Channel, health: ChannelHealth, _asked_at_ms: int
    ) -> bool:
        self.checked.append((channel.key, health))
        return True


def find_nothing(kind: type[T], /) -> T:
    raise LookupError(f"no plugin provides {kind.__qualname__} to fake channels")
