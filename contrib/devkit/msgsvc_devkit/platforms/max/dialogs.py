"""The fake's state: users, their dialogs with the bot, and messages."""

import time
from dataclasses import dataclass, field
from typing import Any

#: A dialog's id is derived from the user's, but differs from it, so that they can't be confused.
DIALOG_OFFSET = 7_000_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class Profile:
    """A user or the bot, as in the schema's User."""

    user_id: int
    first_name: str
    username: str | None = None
    is_bot: bool = False

    def to_wire(self) -> dict[str, Any]:
        wire = {
            "user_id": self.user_id,
            "first_name": self.first_name,
            "last_name": "",
            "is_bot": self.is_bot,
            "last_activity_time": now_ms(),
            "name": self.first_name,
        }
        # For users without one the platform omits the field instead of sending null.
        return wire if self.username is None else {**wire, "username": self.username}


@dataclass(slots=True)
class Dialog:
    """A user's chat with the bot. The bot doesn't know it until the user starts it."""

    person: Profile
    locale: str
    started: bool = False
    suspended: bool = False
    messages: list["Message"] = field(default_factory=list)
    #: The notices that button presses got, in order; an empty text if there was none.
    notices: list[str] = field(default_factory=list)

    @property
    def chat_id(self) -> int:
        return self.person.user_id + DIALOG_OFFSET


@dataclass(slots=True, eq=False)
class Message:
    """A message, `shown` without its markup. `attachments` are as the bot sent them."""

    mid: str
    dialog: Dialog
    sender: Profile
    shown: str
    markup: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    silent: bool = False
    edited: bool = False
    at_ms: int = field(default_factory=now_ms)

    @property
    def rows(self) -> list[list[dict[str, Any]]]:
        """The buttons."""
        for one in self.attachments:
            if one["type"] == "inline_keyboard":
                rows: list[list[dict[str, Any]]] = one["payload"]["buttons"]
                return rows
        return []

    def to_wire(self) -> dict[str, Any]:
        """The schema's Message. The user in `recipient` is the dialog's user, in either direction."""
        return {
            "recipient": {
                "chat_id": self.dialog.chat_id,
                "chat_type": "dialog",
                "user_id": self.dialog.person.user_id,
            },
            "timestamp": self.at_ms,
            "body": {
                "mid": self.mid,
                "seq": self.at_ms << 16,
                "text": self.shown,
                "attachments": self.attachments,
                "markup": self.markup,
            },
            "sender": self.sender.to_wire(),
        }
