"""Signed data of the buttons Yes, Cancel and the numbers, bound to a session and a person.

`~auth:y:<token>:<seal>`, for a number `~auth:47:…`: at most 54 of 64 bytes. The seal is a keyed hash over
the choice, the session's token, the channel, the chat and the person asked. So a press counts only from
that person in that chat, also in a group, and only for a button that was shown; nothing is stored per
opened link.
"""

import re
from typing import Literal, NamedTuple

from msgsvc_core.channels import ButtonPressed, InboundContext
from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.kernel.ids import ID_WIDTH
from msgsvc_core.security import SecretBox

PREFIX = "auth:"

PURPOSE = "auth.button"

#: Yes, Cancel, or a number that was picked.
Choice = Literal["y", "n"] | int

_DATA = re.compile(
    rf"{OWN_BUTTON}{PREFIX}([yn]|[1-9][0-9]):([0-9A-Za-z]{{{ID_WIDTH}}}):([0-9A-Za-z]{{{ID_WIDTH}}})"
)


class Chat(NamedTuple):
    """One person's chat with a bot: its key, and the platform's ids."""

    channel: str
    chat_id: str
    user_id: str

    @classmethod
    def of(cls, ctx: InboundContext) -> "Chat":
        return cls(ctx.channel, ctx.update.chat_id, ctx.update.user.user_id)


class SealedButtons:
    """Writes the data of buttons for a chat, and reads it back from a press there."""

    def __init__(self, secrets: SecretBox) -> None:
        self._secrets = secrets

    def write(self, chat: Chat, choice: Choice, token: str) -> str:
        seal = self._secrets.sign(PURPOSE, str(choice), token, *chat)
        return f"{OWN_BUTTON}{PREFIX}{choice}:{token}:{seal}"

    def read(self, ctx: InboundContext) -> tuple[Choice, str] | None:
        """The choice and the session's token; None if this person was not asked in this chat."""
        assert isinstance(ctx.update, ButtonPressed)
        match = _DATA.fullmatch(ctx.update.data)
        if match is None:
            return None
        text, token, seal = match.groups()
        choice = _choice(text)
        if not self._secrets.verify(seal, PURPOSE, str(choice), token, *Chat.of(ctx)):
            return None
        return choice, token


def _choice(text: str) -> Choice:
    if text == "y":
        return "y"
    return "n" if text == "n" else int(text)
