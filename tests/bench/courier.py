"""A messenger over HTTP: every message is a POST to a platform, as most channels make it."""

from collections.abc import Sequence
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from msgsvc_core.channels import (
    Channel,
    ChannelHealth,
    ChannelKind,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.hookspecs import hookimpl
from msgsvc_core.settings import Section

#: Seconds for one call.
TIMEOUT_S = 10.0


class CourierSettings(Section):
    """Where the platform is."""

    url: str


class CourierChannel(Channel):
    """One session for all calls, made with the first of them, when there is a loop."""

    def __init__(self, name: str, settings: CourierSettings) -> None:
        super().__init__(name)
        self._url = settings.url + "/bot1:token/sendMessage"
        self._session: ClientSession | None = None

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        body = {"chat_id": chat_id, "text": message.text, "disable_notification": message.silent}
        try:
            async with self._opened().post(self._url, json=body, allow_redirects=False) as answer:
                said = await answer.json()
        except (ClientError, TimeoutError) as error:
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, str(error)) from error
        return str(said["result"]["message_id"])

    # The bench only sends; a call of one of these would be a mistake of it, and shows here.

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise NotImplementedError

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise NotImplementedError

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        raise NotImplementedError

    def deep_link(self, payload: str) -> str:
        return f"courier:{self.name}?start={payload}"

    async def check(self) -> ChannelHealth:
        return ChannelHealth(ok=True)

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
    def create(_service: Any, name: str, settings: CourierSettings) -> Channel:
        return CourierChannel(name, settings)

    return [ChannelKind("courier", CourierSettings, create)]
