"""A messenger over real HTTP, whose platform lives in the test and so outlives the processes that call it."""

from collections.abc import Sequence
from typing import Any

from aiohttp import ClientError, ClientSession

from msgsvc_core.channels import (
    Capabilities,
    ChannelIdentity,
    ChannelKind,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.config.sections import Section
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import SendOnlyChannel


class HttpMessengerSettings(Section):
    """`repeatable` is whether the platform at `url` drops repeats."""

    url: str
    repeatable: bool


class HttpMessengerChannel(SendOnlyChannel):
    """Makes one POST for each message."""

    def __init__(
        self, _service: Any, identity: ChannelIdentity, settings: HttpMessengerSettings
    ) -> None:
        super().__init__(identity)
        self.capabilities = Capabilities(repeatable=settings.repeatable)
        self._url = settings.url
        self._session: ClientSession | None = None

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        if self._session is None:
            self._session = ClientSession()
        try:
            async with self._session.post(self._url, json={"key": message.key}) as answer:
                return await answer.text()
        except ClientError as error:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, type(error).__name__, in_doubt=True
            ) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    return [ChannelKind("http_messenger", HttpMessengerSettings, HttpMessengerChannel)]
