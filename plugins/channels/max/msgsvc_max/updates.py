"""Parses the platform's updates (schema: Update)."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import structlog

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    MessageEdited,
    MessageReceived,
    Started,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.storable_text import storable
from msgsvc_max.files import files_of, shown_of

log = structlog.get_logger(__name__)


class InvalidUpdate(ValueError):
    """An update does not match the schema. The text names the field, but never contains its value."""


class UnknownKind(InvalidUpdate):
    """An update is of a kind that the platform was not asked for."""


def read_call(body: bytes, channel: str) -> list[Update]:
    """The update in a webhook call's body."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        return [Unreadable.of(body, UnreadableReason.MALFORMED, "it is not JSON")]
    return list(read_updates([raw], channel))


def read_updates(raws: Iterable[Any], channel: str) -> Iterator[Update]:
    """Converts the platform's updates. Irrelevant ones are omitted."""
    for raw in raws:
        try:
            update = read_update(raw)
        except UnknownKind as error:
            update = Unreadable.of(raw, UnreadableReason.UNKNOWN_KIND, str(error))
        except InvalidUpdate as error:
            update = Unreadable.of(raw, UnreadableReason.MALFORMED, str(error))
        except Exception as error:
            # A fault of ours with one update must not stop the others.
            log.exception("update_failed", channel=channel)
            update = Unreadable.failed(raw, error)
        if update is not None:
            yield update


def read_update(raw: Any) -> Update | None:
    """One update; None if it is irrelevant. Raises `InvalidUpdate`."""
    fields = _object(raw, "the update")
    kind = _text(fields, "update_type")
    read = _READERS.get(kind)
    if read is None:
        raise UnknownKind("update_type: unknown")
    return read(fields)


def _started(fields: Mapping[str, Any]) -> Update:
    payload = _optional_text(fields, "payload") or ""
    return Started(**_of_dialog(fields), payload=payload)


def _blocked(fields: Mapping[str, Any]) -> Update:
    return Blocked(**_of_dialog(fields))


def _of_dialog(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What updates about a dialog have in common.

    They carry no id. A person starts or stops a bot in one dialog, and not twice within a millisecond,
    so these four name the update, however often it is sent.
    """
    chat_id, user = _number(fields, "chat_id"), _user(fields, fields)
    when = _number(fields, "timestamp")
    return {
        "update_id": _id(_text(fields, "update_type"), chat_id, user.user_id, when),
        "chat_id": chat_id,
        "user": user,
    }


def _message(fields: Mapping[str, Any]) -> Update | None:
    """What a person wrote; None for what is no news."""
    message = _object(fields.get("message"), "message")
    said = _said(fields, message)
    if said is None:
        return None
    return MessageReceived(
        # The platform's id of the message is unique, and this update comes once for each.
        update_id=_id("message_created", said["message_ref"]),
        reply_to=_answered(message.get("link")),
        **said,
    )


def _edited(fields: Mapping[str, Any]) -> Update | None:
    """What a person changed; None for what is no news."""
    said = _said(fields, _object(fields.get("message"), "message"))
    if said is None:
        return None
    # A message is changed as often as one likes, but not twice within a millisecond.
    update_id = _id("message_edited", said["message_ref"], _number(fields, "timestamp"))
    return MessageEdited(update_id=update_id, **said)


def _said(fields: Mapping[str, Any], message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Common fields of messages and edits; None for messages that were not sent to the bot."""
    recipient = _object(message.get("recipient"), "message.recipient")
    sender = message.get("sender")
    # In a group or channel the bot is no partner in conversation, and its own messages are no news.
    if recipient.get("chat_type") != "dialog" or not isinstance(sender, dict):
        return None
    if sender.get("is_bot") is True:
        return None
    body = _object(message.get("body"), "message.body")
    shown = _shared_with(body, message.get("link"))
    attachments = shown.get("attachments")
    text, files = _optional_text(shown, "text") or "", files_of(attachments)
    return {
        "chat_id": _number(recipient, "chat_id"),
        "user": _user({"user": sender}, fields),
        # A picture without a word is a message too, and a place.
        "text": text if text or files else shown_of(attachments),
        "files": files,
        "message_ref": _text(body, "mid"),
    }


def _shared_with(body: Mapping[str, Any], link: Any) -> Mapping[str, Any]:
    """The body, or, of a message that only passes another one on, that of the other."""
    forwarded = link.get("message") if isinstance(link, dict) else None
    if not isinstance(forwarded, dict) or link.get("type") != "forward":
        return body
    return body if body.get("text") or body.get("attachments") else forwarded


def _answered(link: Any) -> str | None:
    """The message that another one answers (schema: LinkedMessage); one that is passed on answers none."""
    message = (
        link.get("message") if isinstance(link, dict) and link.get("type") == "reply" else None
    )
    return _optional_text(message, "mid") if isinstance(message, dict) else None


def _callback(fields: Mapping[str, Any]) -> Update | None:
    callback = _object(fields.get("callback"), "callback")
    if fields.get("message") is None:
        # Deleted meanwhile: nothing says any more in which chat it was.
        return None
    message = _object(fields.get("message"), "message")
    recipient = _object(message.get("recipient"), "message.recipient")
    body = _object(message.get("body"), "message.body")
    user, callback_id = _user(callback, fields), _text(callback, "callback_id")
    data = _optional_text(callback, "payload") or ""
    # The schema calls `callback_id` the keyboard's; with who pressed what and when, it is the press's.
    when = _number(callback, "timestamp")
    return ButtonPressed(
        update_id=_id("message_callback", callback_id, user.user_id, when, data),
        chat_id=_number(recipient, "chat_id"),
        user=user,
        data=data,
        message_ref=_text(body, "mid"),
        button_ref=callback_id,
    )


#: `dialog_removed` comes with a `bot_stopped` of its own, which may be the one that gets lost.
_READERS: dict[str, Callable[[Mapping[str, Any]], Update | None]] = {
    "bot_started": _started,
    "bot_stopped": _blocked,
    "dialog_removed": _blocked,
    "message_created": _message,
    "message_edited": _edited,
    "message_callback": _callback,
}

#: What the platform is asked to send. A dialog that was cleared or muted can still be written to.
UPDATE_TYPES = tuple(_READERS)


def _user(holder: Mapping[str, Any], update: Mapping[str, Any]) -> ChannelUser:
    found = _object(holder.get("user"), "user")
    name = _optional_text(found, "first_name") or _optional_text(found, "name") or ""
    return ChannelUser(
        user_id=_number(found, "user_id"),
        first_name=name,
        username=_optional_text(found, "username") or None,
        lang=_optional_text(update, "user_locale") or None,
    )


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidUpdate(f"{name}: not an object")
    return value


def _number(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    # An id has at most 64 bits, and Python would refuse to spell thousands of digits.
    if not isinstance(value, int) or isinstance(value, bool) or value.bit_length() > 63:
        raise InvalidUpdate(f"{name}: not a number")
    return str(value)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = _optional_text(fields, name)
    if not value:
        raise InvalidUpdate(f"{name}: missing")
    return value


def _optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidUpdate(f"{name}: not a text")
    return storable(value)


def _id(kind: str, *parts: str) -> str:
    """Short, whatever the parts; JSON keeps them apart."""
    digest = hashlib.blake2b(to_json(parts).encode(), digest_size=16).hexdigest()
    return f"{kind}:{digest}"
