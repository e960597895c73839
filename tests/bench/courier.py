"""A messenger over HTTP: every message is a POST to a platform, as most channels make it."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from msgsvc_core.channels import (
    Channel,
    ChannelIdentity,
    ChannelKind,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.channels.http import PlatformHttp
from msgsvc_core.config.sections import Section
from msgsvc_core.kernel.json import read_json
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.channel import SendOnlyChannel

#: Seconds for one call.
TIMEOUT_S = 10.0

PATH = "/bot1:token/sendMessage"


def body_of(chat_id: str, text: str, *, silent: bool) -> dict[str, Any]:
    """What is sent for a message."""
    return {"chat_id": chat_id, "text": text, "disable_notification": silent}


class CourierSettings(Section):
    """Where the platform is, and the certificate that it shows, if that is its own authority."""

    url: str
    ca_file: str | None = None


class CourierChannel(SendOnlyChannel):
    """Calls as the channels of messengers with an HTTP API do."""

    def __init__(self, identity: ChannelIdentity, settings: CourierSettings) -> None:
        super().__init__(identity)
        self._http = PlatformHttp(
            settings.url, timeout_s=TIMEOUT_S, connections=None, ca_file=settings.ca_file
        )

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        body = body_of(chat_id, message.text, silent=message.silent)
        answer = await self._http.call("POST", PATH, json=body)
        if answer.status != HTTPStatus.OK:
            raise DeliveryError(Reason.INVALID_MESSAGE, "the platform refused it")
        return str(read_json(answer.body)["result"]["message_id"])

    async def close(self) -> None:
        await self._http.close()


@hookimpl
def register_channel_kinds() -> Sequence[ChannelKind]:
    def create(_context: Any, identity: ChannelIdentity, settings: CourierSettings) -> Channel:
        return CourierChannel(identity, settings)

    return [ChannelKind("courier", CourierSettings, create)]
