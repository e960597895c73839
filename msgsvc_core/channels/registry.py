"""The channels of a service: built from the settings, started and stopped with it."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from msgsvc_core.channels.contract import Channel, ChannelIdentity
from msgsvc_core.channels.receiving import receive_updates
from msgsvc_core.channels.turns import Turns
from msgsvc_core.errors import Unavailable, ValidationFailed
from msgsvc_core.plugins import by_name
from msgsvc_core.settings import Section, SettingsError

if TYPE_CHECKING:
    from msgsvc_core.service import Service


@dataclass(frozen=True, slots=True)
class ChannelKind:
    """Declares a kind of messenger (hook `register_channel_kinds`).

    `settings` types what stands in `[channels.<name>]` beside `plugin`; `create` makes the channel.
    `operator_settings` are names of settings that a project can't give its own channels, because they
    say where our calls go: base URLs and proxies.
    """

    name: str
    settings: type[Section]
    create: Callable[["Service", ChannelIdentity, Any], Channel]
    operator_settings: frozenset[str] = frozenset()


class Channels:
    """`service.channels`, by key; `of` finds what a project means by a name."""

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

    def __contains__(self, key: str) -> bool:
        return key in self._channels

    def __getitem__(self, key: str) -> Channel:
        return self._channels[key]

    def of(self, project_id: str, name: str) -> Channel | None:
        """The channel that the project has under this name."""
        return self._channels.get(name)

    def all_of(self, project_id: str) -> list[Channel]:
        """The channels that the project can use."""
        return list(self._channels.values())

    def check_name(self, project_id: str, name: str) -> None:
        """Raises `ValidationFailed` for a channel that the project does not have."""
        if self.of(project_id, name) is None:
            known = ", ".join(channel.name for channel in self.all_of(project_id))
            raise ValidationFailed(f"channel: must be one of {known}")

    def deep_links(
        self, project_id: str, payload: str, names: Iterable[str] | None = None
    ) -> dict[str, str]:
        """The link per channel that starts its bot with `payload`.

        A bot that the platform has not told us the name of yet is left out. Raises `Unavailable` when
        no bot is left.
        """
        links: dict[str, str] = {}
        for channel in self.all_of(project_id):
            if names is None or channel.name in names:
                link = channel.link(payload)
                if link is not None:
                    links[channel.name] = link
        if not links:
            raise Unavailable("no bot is ready yet; its messenger could not be asked")
        return links

    def qr_links(self, links: Mapping[str, str], project_id: str, payload: str) -> dict[str, str]:
        """The address per channel of `links` of an SVG that shows it as a QR code; no key needed."""
        base = self._service.settings.base_url
        found = {channel.name: channel.key for channel in self.all_of(project_id)}
        return {name: f"{base}/qr/{found[name]}/{payload}.svg" for name in links}

    async def start(self) -> None:
        """Begins to take updates in."""
        self._tasks = [
            asyncio.create_task(
                receive_updates(self._service, channel), name=f"channel {channel.key}"
            )
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
        return kind.create(self._service, ChannelIdentity(name, key=name), settings)
