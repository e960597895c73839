"""The channels of a service: built from the settings, started and stopped with it."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from pydantic import ValidationError

from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.turns import Turns
from msgsvc_core.errors import ValidationFailed
from msgsvc_core.plugins import by_name
from msgsvc_core.settings import Section, SettingsError

if TYPE_CHECKING:
    from msgsvc_core.service import Service

#: Seconds before a channel whose `run` failed is run again.
RESTART_S = 5.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """Declares a kind of messenger (hook `register_channel_kinds`).

    `settings` types what stands in `[channels.<name>]` beside `plugin`; `create` makes the channel.
    """

    name: str
    settings: type[Section]
    create: Callable[["Service", str, Any], Channel]


class Channels:
    """`service.channels`, by the name that the API shows."""

    def __init__(self, service: "Service", kinds: Iterable[ChannelKind]) -> None:
        self._service = service
        known = by_name("kind of messenger", kinds)
        self._channels = {
            name: self._create(name, settings.plugin, settings.options, known)
            for name, settings in service.settings.channels.items()
        }
        self._tasks: list[asyncio.Task[None]] = []
        #: Keeps the order in each chat, where batches of a lane are under way at once.
        self.turns = Turns()

    def __iter__(self) -> Iterator[Channel]:
        return iter(self._channels.values())

    def __contains__(self, name: str) -> bool:
        return name in self._channels

    def __getitem__(self, name: str) -> Channel:
        return self._channels[name]

    @property
    def names(self) -> list[str]:
        return list(self._channels)

    def check_name(self, name: str) -> None:
        """Raises `ValidationFailed` for a channel that there is not."""
        if name not in self._channels:
            raise ValidationFailed(f"channel: must be one of {', '.join(self._channels)}")

    def deep_links(self, payload: str, names: Iterable[str] | None = None) -> dict[str, str]:
        """The link per channel that starts its bot with `payload`."""
        return {
            channel.name: channel.deep_link(payload)
            for channel in self
            if names is None or channel.name in names
        }

    def qr_links(self, payload: str, names: Iterable[str] | None = None) -> dict[str, str]:
        """The address per channel of an SVG that shows the deep link as a QR code; no key needed."""
        base = self._service.settings.base_url
        return {
            channel.name: f"{base}/qr/{channel.name}/{payload}.svg"
            for channel in self
            if names is None or channel.name in names
        }

    async def start(self) -> None:
        """Begins to take updates in."""
        self._tasks = [
            asyncio.create_task(self._run(channel), name=f"channel {channel.name}")
            for channel in self
        ]

    async def stop_receiving(self) -> None:
        """Takes no more updates; what is being handled has been committed or will come again."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        for channel in self:
            await channel.close()

    async def _run(self, channel: Channel) -> None:
        receive = partial(self._service.inbound.receive, channel.name)
        while True:
            try:
                await channel.run(receive)
            except Exception:
                log.exception("channel_interrupted", channel=channel.name)
            else:
                return
            await asyncio.sleep(RESTART_S)

    def _create(
        self,
        name: str,
        kind_name: str,
        options: Mapping[str, Any],
        kinds: Mapping[str, ChannelKind],
    ) -> Channel:
        kind = kinds.get(kind_name)
        if kind is None:
            known = ", ".join(sorted(kinds)) or "none"
            raise SettingsError(
                f"channels.{name}.plugin: no loaded plugin has a messenger named {kind_name!r} "
                f"(known: {known}); is it in `plugins`?"
            )
        try:
            settings = kind.settings.model_validate(options)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(("channels", name, *map(str, problem["loc"])))
            raise SettingsError(f"{where}: {problem['msg']}") from error
        return kind.create(self._service, name, settings)
