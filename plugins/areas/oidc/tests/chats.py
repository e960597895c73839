"""Somebody who talks to a bot; every act returns when the bot has done its part."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from msgsvc_core.channels import ButtonPressed, ChannelUser, MessageReceived, Update
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, Sent, settled

_numbers = count(1)


@dataclass(frozen=True)
class BotChat:
    """A person's chat with a bot."""

    service: Service
    user_id: str = "1001"
    channel_key: str = "messenger_a"
    chat_id: str = "chat-1001"
    lang: str = "en"

    @property
    def channel(self) -> RecordingChannel:
        channel = self.service.channels[self.channel_key]
        assert isinstance(channel, RecordingChannel)
        return channel

    @property
    def last(self) -> Sent:
        """What the bot said or edited last."""
        sent = [each for each in self.channel.sent if each.chat_id == self.chat_id]
        edited = [each for each in self.channel.edited if each.chat_id == self.chat_id]
        return (edited or sent)[-1]

    @property
    def labels(self) -> list[str]:
        return [button.text for row in self.last.message.buttons for button in row]

    async def write(self, text: str) -> str:
        """Returns what the bot answers."""
        self.channel.edited.clear()
        await self._receive(MessageReceived(update_id=_update_id(), text=text, **self._who))
        return self.last.message.text

    async def press(self, label: str) -> str:
        """Presses a button of the last message."""
        rows = self.last.message.buttons
        (data,) = [button.data for row in rows for button in row if button.text == label]
        return await self.press_data(data or "")

    async def press_data(self, data: str) -> str:
        """As a button of an older message does."""
        ref = self.last.message_ref
        press = ButtonPressed(
            update_id=_update_id(), data=data, message_ref=ref, button_ref="press", **self._who
        )
        await self._receive(press)
        return self.last.message.text

    @property
    def _who(self) -> dict[str, Any]:
        user = ChannelUser(self.user_id, "Ann", "ann_k", self.lang)
        return {"chat_id": self.chat_id, "user": user}

    async def _receive(self, update: Update) -> None:
        await self.service.inbound.receive(self.channel_key, update)
        await settled(self.service)


def _update_id() -> str:
    return f"u{next(_numbers)}"
