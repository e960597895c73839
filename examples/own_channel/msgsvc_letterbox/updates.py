"""Reads what a person did from the bytes of a file in the inbox."""

import json
from pathlib import PurePath
from typing import Any

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    MediaType,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
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


def _file(name: str) -> ReceivedFile:
    """A file beside the inbox. What it is, the core sees when it has it: this is what it is called."""
    kinds: dict[str, MediaType] = {".png": "image", ".jpg": "image", ".mp4": "video"}
    return ReceivedFile(kinds.get(PurePath(name).suffix, "document"), name, PurePath(name).name)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


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
            return Started(**common, payload=_text(found.get("payload", "")))
        case "text":
            return MessageReceived(
                **common,
                text=_text(found["text"]),
                # The core asks `fetch_file` for it later, by what we call it here.
                files=tuple(_file(name) for name in found.get("files", ())),
                # By this name an edit says which message it changes.
                message_ref=update_id,
                reply_to=found.get("answers"),
            )
        case "edit":
            return MessageEdited(
                **common, message_ref=_text(found["ref"]), text=_text(found["text"])
            )
        case "button":
            return ButtonPressed(
                **common,
                data=_text(found["data"]),
                message_ref=_text(found["ref"]),
                button_ref=update_id,
            )
        case "block":
            return Blocked(**common)
        case "unblock":
            return Unblocked(**common)
        case kind:
            raise UnreadableUpdate(f"no update is of kind {kind!r}")
