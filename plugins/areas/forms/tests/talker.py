"""Somebody who fills in forms in a messenger; every act returns when the bot has done its part."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Update,
)
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, Sent, settled

_numbers = count(1)


@dataclass
class Talker:
    """A person in a chat with a bot. `service` may be another one after a restart."""

    service: Service
    user: ChannelUser = field(default_factory=lambda: ChannelUser("1001", "Ann", "ann_k", "en"))
    channel_key: str = "messenger_a"
    refs: list[str] = field(default_factory=list)
    #: The thread of the chat that they have open.
    thread: str | None = None

    @property
    def who(self) -> dict[str, Any]:
        chat_id = f"chat-{self.user.user_id}"
        return {"chat_id": chat_id, "user": self.user, "thread": self.thread}

    @property
    def channel(self) -> RecordingChannel:
        channel = self.service.channels[self.channel_key]
        assert isinstance(channel, RecordingChannel)
        return channel

    @property
    def shown(self) -> list[Sent]:
        """What the bot has said here, as it was edited since; the oldest first."""
        chat_id = self.who["chat_id"]
        shown = {sent.message_ref: sent for sent in self.channel.sent if sent.chat_id == chat_id}
        for edit in self.channel.edited:
            shown[edit.message_ref] = edit
        return list(shown.values())

    @property
    def text(self) -> str:
        """The last message's."""
        return self.shown[-1].message.text

    @property
    def labels(self) -> list[str]:
        """What stands on its buttons."""
        return [button.text for row in self.shown[-1].message.buttons for button in row]

    @property
    def notice(self) -> str | None:
        """What the last press was answered with."""
        return self.channel.answered[-1][1]

    async def open(self, slug: str) -> str:
        await self.receive(
            Started(update_id=f"s{next(_numbers)}", payload=f"form_{slug}", **self.who)
        )
        return self.text

    async def say(self, *texts: str) -> str:
        """Returns what the bot says last."""
        for text in texts:
            self.refs.append(f"own-{next(_numbers)}")
            update = MessageReceived(
                update_id=f"t{next(_numbers)}", text=text, message_ref=self.refs[-1], **self.who
            )
            await self.receive(update)
        return self.text

    async def send_file(self, content: bytes, name: str = "a.txt") -> str:
        ref = f"file-{next(_numbers)}"
        self.channel.contents[ref] = content
        update = MessageReceived(
            update_id=f"f{next(_numbers)}",
            text="",
            files=(ReceivedFile("document", ref, name, "text/plain", len(content)),),
            message_ref=ref,
            **self.who,
        )
        await self.receive(update)
        return self.text

    async def change(self, ref: str, text: str) -> str:
        update = MessageEdited(
            update_id=f"e{next(_numbers)}", message_ref=ref, text=text, **self.who
        )
        await self.receive(update)
        return self.text

    def press_of(self, label: str, message: Sent | None = None) -> ButtonPressed:
        message = message or next(one for one in reversed(self.shown) if label in _labels(one))
        data = next(
            button.data for row in message.message.buttons for button in row if button.text == label
        )
        number = next(_numbers)
        return ButtonPressed(
            update_id=f"p{number}",
            data=data or "",
            message_ref=message.message_ref,
            button_ref=f"b{number}",
            **self.who,
        )

    async def press(self, label: str, message: Sent | None = None) -> str:
        """Presses a button, in the newest message that has it."""
        await self.receive(self.press_of(label, message))
        return self.text

    async def receive(self, update: Update) -> None:
        await self.service.inbound.receive(self.channel_key, update)
        await settled(self.service)


def _labels(sent: Sent) -> list[str]:
    return [button.text for row in sent.message.buttons for button in row]
