"""A stand-in for a project's channel whose settings can't be read, so that other channels are not
affected."""

from typing import NoReturn

from msgsvc_core.channels.contract import Channel, ChannelHealth, ChannelIdentity
from msgsvc_core.channels.failures import ChannelNotReady, DeliveryError, Reason
from msgsvc_core.content.outgoing import OutgoingMessage


class BrokenChannel(Channel):
    """Fails like an unavailable platform, so that queued calls are retried, here or in another process.

    `why` is for operators, and contains nothing of the settings.
    """

    def __init__(self, identity: ChannelIdentity, why: str) -> None:
        super().__init__(identity)
        self.why = why

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self._fail()

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        self._fail()

    async def delete(self, chat_id: str, message_ref: str) -> None:
        self._fail()

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        self._fail()

    def deep_link(self, payload: str) -> str:
        raise ChannelNotReady(self.why)

    async def check(self) -> ChannelHealth:
        return ChannelHealth(ok=False, detail=self.why)

    def _fail(self) -> NoReturn:
        raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, self.why)
