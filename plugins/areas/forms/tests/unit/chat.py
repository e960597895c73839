"""Anna's chat with a bot that asks the questions of forms."""

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Update,
)
from msgsvc_core.db import Tx
from msgsvc_devkit.core import MemoryCore
from msgsvc_forms import dialogue_store
from msgsvc_forms.dialogue_store import Dialogue

ANNA = ChannelUser("1", "Anna")


class Chat:
    """The chat of `core.person` with `messenger_a`. Anna's messages are `m1`, `m2` and so on.

    What she does returns what the plugin's rule for it says: whether it is handled.
    """

    def __init__(self, core: MemoryCore, tx: Tx) -> None:
        self._core = core
        self._tx = tx
        self._count = 0
        [rules] = core.service.plugins.hook.register_inbound()
        self._handlers = {rule.on: rule.handler for rule in rules}

    async def open(self, payload: str = "form_order") -> bool | None:
        """Opens a link."""
        return await self._react("start", self._link(payload))

    async def say(self, *texts: str, by: ChannelUser = ANNA) -> bool | None:
        """Writes texts; whether the last one is handled."""
        for text in texts:
            handled = await self._react("message", self._message(text, by))
        return handled

    async def send_file(self, file: ReceivedFile) -> bool | None:
        return await self._react("message", self._message("", ANNA, file))

    async def edit(self, message_ref: str, text: str) -> bool | None:
        edit = MessageEdited(
            update_id="1", chat_id="chat 1", user=ANNA, message_ref=message_ref, text=text
        )
        return await self._react("edit", edit)

    async def press(self, data: str) -> str | None:
        """Presses a button; returns the notice that is shown."""
        press = ButtonPressed(
            update_id="1", chat_id="chat 1", user=ANNA, data=data, message_ref="m", button_ref="b"
        )
        await self._react("button", press)
        *_, call = await self._core.calls(self._tx)
        assert call.call == "answer_button"
        notice: str | None = call.payload["text"]
        return notice

    async def do_aside(self, text: str) -> None:
        """Writes a text that somebody else has handled."""
        await self._react("aside", self._message(text, ANNA))

    async def open_aside(self, payload: str) -> None:
        """Opens a link that has been handled."""
        await self._react("aside", self._link(payload))

    async def texts(self) -> list[str]:
        """What the bot says, in order."""
        return await self._core.texts_sent(self._tx)

    async def under_way(self) -> Dialogue | None:
        """The conversation."""
        return await dialogue_store.lock_active(self._tx, "messenger_a", "chat 1")

    def _link(self, payload: str) -> Started:
        return Started(update_id="1", chat_id="chat 1", user=ANNA, payload=payload)

    def _message(self, text: str, user: ChannelUser, *files: ReceivedFile) -> MessageReceived:
        self._count += 1
        return MessageReceived(
            update_id="1",
            chat_id="chat 1",
            user=user,
            text=text,
            files=files,
            message_ref=f"m{self._count}",
        )

    async def _react(self, kind: str, update: Update) -> bool | None:
        return await self._handlers[kind](self._core.inbound(self._tx, update))
