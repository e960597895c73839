"""Reads what a person did from the bytes of a file in the inbox."""

import json
from typing import Any

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    MessageReceived,
    Started,
    Unblocked,
    Update,
)


class UnreadableUpdate(Exception):
    """The file holds no update. The text says why."""


def read_update(update_id: str, raw: bytes) -> Update:
    """The update in `raw`, e.g. `{"kind": "start", "user": "ann", "name": "Ann", "payload": "x"}`.

    Raises `UnreadableUpdate`.
    """
    try:
        return _update(update_id, json.loads(raw))
    except (ValueError, TypeError, KeyError) as error:
        raise UnreadableUpdate(repr(error)) from error


def _update(update_id: str, found: dict[str, Any]) -> Update:
    user = ChannelUser(
        user_id=str(found["user"]),
        first_name=str(found.get("name", found["user"])),
        lang=found.get("lang"),
    )
    # A person has one chat with the bot, so their id serves for both.
    common: dict[str, Any] = {"update_id": update_id, "chat_id": user.user_id, "user": user}
    match found["kind"]:
        case "start":
            return Started(**common, payload=found.get("payload", ""))
        case "text":
            return MessageReceived(**common, text=found["text"])
        case "button":
            return ButtonPressed(
                **common, data=found["data"], message_ref=found["ref"], button_ref=update_id
            )
        case "block":
            return Blocked(**common)
        case "unblock":
            return Unblocked(**common)
        case kind:
            raise UnreadableUpdate(f"no update is of kind {kind!r}")
