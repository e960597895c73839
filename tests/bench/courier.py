"""A messenger over HTTP: every message is a POST to a platform, as most channels make it."""

from collections.abc import Sequence
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from msgsvc_core.channels import (
    Channel,
    ChannelIdentity,
    ChannelKind,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.settings import Section
from msgsvc_core.testing.channel import SendOnlyChannel

#: Seconds for one call.
TIMEOUT_S = 10.0

PATH = "/bot1:token/sendMessage"


def body_of(chat_id: str, text: str, *, silent: bool) -> dict[str, Any]:
    """What is sent for a message."""
    return {"chat_id": chat_id, "text": text, "disable_notification": silent}


class CourierSettings(Section):
    """Where the platform is."""

    url: str


class CourierChannel(SendOnlyChannel):
    """One session for all calls, made with the first of them, when there is a loop."""

    def __init__(self, identity: ChannelIdentity, settings: CourierSettings) -> None:
        super().__init__(identity)
        self._url = settings.url + PATH
        self._session: ClientSession | None = None

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        body = body_of(chat_id, message.text, silent=message.silent)
        try:
            async with self._opened().post(self._url, json=body, allow_redirects=False) as answer:
                said = await answer.json()
        except (ClientError, TimeoutError) as error:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, str(error)) from error
        return str(said["result"]["message_id"])

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> ClientSession:
        if self._session is None:
            self._session = ClientSession(
                connector=TCPConnector(limit=0),
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=TIMEOUT_S),
            )
        return self._session


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    def create(_service: Any, identity: ChannelIdentity, settings: CourierSettings) -> Channel:
        return CourierChannel(identity, settings)

    return [ChannelKind("courier", CourierSettings, create)]
