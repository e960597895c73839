"""Parses the platform's webhook calls (Cloud API: "messages webhook reference")."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from msgsvc_core.channels import (
    Blocked,
    ButtonPressed,
    ChannelUser,
    ChatMoved,
    DeliveryReported,
    MediaType,
    MessageEdited,
    MessageReceived,
    Reason,
    ReceivedFile,
    Started,
    Unblocked,
    Update,
)
from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_whatsapp.failures import OPTED_OUT, detail_of, reason_of
from msgsvc_whatsapp.messages import data_of

log = structlog.get_logger(__name__)

#: Messages with a file, in our words; sound and stickers are documents to us.
FILES: Mapping[str, MediaType] = {
    "image": "image",
    "video": "video",
    "document": "document",
    "audio": "document",
    "sticker": "document",
}

#: A text that starts the bot: links to the chat have it written already.
_START = re.compile(r"/?(?:start|старт)(?:\s+(\S+))?", re.IGNORECASE)

#: A text that unsubscribes: what people write to businesses, and carriers ask them to take.
_STOP = re.compile(r"(?:stop|unsubscribe|стоп|отписаться)[.!]?", re.IGNORECASE)

#: Unix time, until the year 5138.
_SECONDS = re.compile(r"[0-9]{1,11}", re.ASCII)

_PHONE = re.compile(r"[1-9][0-9]{6,14}")


class Unreadable(ValueError):
    """A call does not match the documentation. The text names the field, but never contains its value."""


@dataclass(frozen=True, slots=True)
class _Value:
    """The `value` of a change, and its contacts by their ids."""

    fields: Mapping[str, Any]
    contacts: Mapping[str, Mapping[str, Any]]
    channel: str


def read_call(body: bytes, number_id: str, channel: str) -> list[Update]:
    """The updates in a call's body that are about this phone number. What can't be read is logged."""
    try:
        raw = json.loads(body)
        return list(_updates(raw, number_id, channel))
    except (ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, Unreadable) else "it is not JSON"
        log.warning("update_skipped", channel=channel, error=said)
        return []


def _updates(raw: Any, number_id: str, channel: str) -> Iterator[Update]:
    for entry in _objects(_object(raw, "the call"), "entry"):
        for change in _objects(entry, "changes"):
            fields = _object(change.get("value"), "value")
            of = _object(fields.get("metadata", {}), "metadata").get("phone_number_id")
            if of != number_id:
                # An app's webhook is called for all of its numbers.
                log.debug("update_of_other_number", channel=channel)
                continue
            value = _Value(fields, _contacts(fields), channel)
            yield from _of_change(change.get("field"), value)


def _of_change(field: Any, value: _Value) -> Iterator[Update]:
    if field not in {"messages", "user_preferences"}:
        raise Unreadable("field: unknown")
    for name, read in _LISTS.items():
        for one in _objects(value.fields, name):
            try:
                yield from read(one, value)
            except Unreadable as error:
                log.warning("update_skipped", channel=value.channel, error=f"{name}: {error}")
    for reported in _objects(value.fields, "errors"):
        code, detail = reported.get("code"), detail_of(reported)
        log.warning("platform_reports", channel=value.channel, code=code, detail=detail)


def _message(message: Mapping[str, Any], value: _Value) -> Iterator[Update]:
    if message.get("group_id") is not None:
        log.debug("group_message_ignored", channel=value.channel)
        return
    kind = _text(message, "type")
    read = _MESSAGES.get(kind)
    if read is None:
        raise Unreadable("type: unknown, or with nothing that could be handed on")
    update = read(message, value)
    if update is not None:
        yield update


def _written(message: Mapping[str, Any], value: _Value) -> Update:
    text = _optional_text(_object(message.get("text"), "text"), "body") or ""
    return _said(message, value, text)


def _said(message: Mapping[str, Any], value: _Value, text: str) -> Update:
    about = _about(message, value)
    start = _START.fullmatch(text.strip())
    if start is not None and (start[1] is None or START_PAYLOAD.fullmatch(start[1])):
        return Started(**about, payload=start[1] or "")
    if _STOP.fullmatch(text.strip()):
        text = "/stop"
    return MessageReceived(
        **about, text=text, message_ref=_text(message, "id"), reply_to=_answered(message)
    )


def _with_file(message: Mapping[str, Any], value: _Value) -> Update:
    file, text = _file(message)
    return MessageReceived(
        **_about(message, value),
        text=text,
        files=(file,),
        message_ref=_text(message, "id"),
        reply_to=_answered(message),
    )


def _interactive(message: Mapping[str, Any], value: _Value) -> Update:
    interactive = _object(message.get("interactive"), "interactive")
    kind = interactive.get("type")
    if kind not in {"button_reply", "list_reply"}:
        raise Unreadable("interactive.type: unknown")
    reply = _object(interactive.get(kind), f"interactive.{kind}")
    return ButtonPressed(
        **_about(message, value),
        data=data_of(_text(reply, "id")),
        message_ref=_answered(message) or "",
        button_ref=_text(message, "id"),
        text=_optional_text(reply, "title") or "",
    )


def _quick_reply(message: Mapping[str, Any], value: _Value) -> Update:
    """A button of a template, whose text is all that it says."""
    return _said(message, value, _text(_object(message.get("button"), "button"), "text"))


def _edited(message: Mapping[str, Any], value: _Value) -> Update:
    edit = _object(message.get("edit"), "edit")
    content = _object(edit.get("message"), "edit.message")
    kind = content.get("type")
    files: tuple[ReceivedFile, ...] = ()
    if kind == "text":
        text = _optional_text(_object(content.get("text"), "text"), "body") or ""
    elif kind in FILES:
        file, text = _file(content)
        files = (file,)
    else:
        raise Unreadable("edit.message.type: unknown")
    ref = _text(edit, "original_message_id")
    return MessageEdited(**_about(message, value), message_ref=ref, text=text, files=files)


def _system(message: Mapping[str, Any], value: _Value) -> Update | None:
    system = _object(message.get("system"), "system")
    kind = system.get("type")
    if kind not in {"user_changed_number", "user_changed_user_id"}:
        raise Unreadable("system.type: unknown")
    before, now = (_optional_text(system, name) for name in ("previous_user_id", "user_id"))
    if not before or not now:
        # Before August 2026 only phone numbers were told, by which we know nobody.
        log.info("number_change_without_ids", channel=value.channel)
        return None
    user = ChannelUser(before, "")
    update_id = f"message:{_text(message, 'id')}"
    return ChatMoved(
        update_id=update_id, chat_id=before, user=user, new_chat_id=now, new_user_id=now
    )


def _status(status: Mapping[str, Any], value: _Value) -> Iterator[Update]:
    """What became of a message that was accepted. If the user has opted out, that is told too: the message
    may be none of a project."""
    ref, state = _text(status, "id"), status.get("status")
    if state in {"delivered", "read"}:
        yield DeliveryReported(
            update_id=f"status:{ref}:{state}", message_ref=ref, state=state, at_ms=_at_ms(status)
        )
    if state != "failed":
        return
    errors = _objects(status, "errors")
    codes = [error.get("code") for error in errors]
    detail = detail_of(errors[0]) if errors else "no details"
    log.warning(
        "message_not_delivered",
        channel=value.channel,
        message_ref=ref,
        code=codes[0] if codes else None,
        detail=detail,
    )
    yield DeliveryReported(
        update_id=f"status:{ref}:failed",
        message_ref=ref,
        state="failed",
        at_ms=_at_ms(status),
        reason=reason_of(codes[0]) if codes else Reason.UNKNOWN,
        detail=detail,
    )
    if OPTED_OUT in codes:
        user = _user(status, value, "recipient_user_id", "recipient_id")
        yield Blocked(update_id=f"status:{ref}", chat_id=user.user_id, user=user)


def _at_ms(status: Mapping[str, Any]) -> int | None:
    """The time of a status, in seconds as text; None if it can't be read."""
    at = status.get("timestamp")
    return int(at) * 1000 if isinstance(at, str) and _SECONDS.fullmatch(at) else None


def _preference(preference: Mapping[str, Any], value: _Value) -> Iterator[Update]:
    user = _user(preference, value, "user_id", "wa_id")
    wish, when = preference.get("value"), preference.get("timestamp")
    kinds: dict[Any, type[Update]] = {"stop": Blocked, "resume": Unblocked}
    if wish not in kinds:
        log.info("preference_ignored", channel=value.channel)
        return
    update_id = f"preference:{user.user_id}:{when}:{wish}"
    yield kinds[wish](update_id=update_id, chat_id=user.user_id, user=user)


_MESSAGES: Mapping[str, Callable[[Mapping[str, Any], _Value], Update | None]] = {
    "text": _written,
    **dict.fromkeys(FILES, _with_file),
    "interactive": _interactive,
    "button": _quick_reply,
    "edit": _edited,
    "system": _system,
}

_LISTS: Mapping[str, Callable[[Mapping[str, Any], _Value], Iterator[Update]]] = {
    "messages": _message,
    "statuses": _status,
    "user_preferences": _preference,
}


def _about(message: Mapping[str, Any], value: _Value) -> dict[str, Any]:
    """What updates of a user's messages have in common: a message is sent once, and its id unique."""
    user = _user(message, value, "from_user_id", "from")
    return {
        "update_id": f"message:{_text(message, 'id')}",
        "chat_id": user.user_id,
        "user": user,
    }


def _user(holder: Mapping[str, Any], value: _Value, by_id: str, by_phone: str) -> ChannelUser:
    """The user by their business-scoped id. Their phone number is their id only where the platform tells no
    other."""
    known = [_optional_text(holder, name) or "" for name in (by_id, by_phone)]
    contact = next((value.contacts[one] for one in known if one in value.contacts), {})
    user_id = known[0] or _optional_text(contact, "user_id") or known[1]
    if not user_id:
        raise Unreadable(f"{by_id}: missing")
    profile = _object(contact.get("profile", {}), "contacts.profile")
    number = known[1] or _optional_text(contact, "wa_id") or ""
    return ChannelUser(
        user_id=user_id,
        first_name=_optional_text(profile, "name") or "",
        username=_optional_text(profile, "username") or None,
        phone=f"+{number}" if _PHONE.fullmatch(number) else None,
    )


def _contacts(fields: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    contacts = _objects(fields, "contacts")
    ids = [(one.get(name), one) for one in contacts for name in ("user_id", "wa_id")]
    return {given: one for given, one in ids if isinstance(given, str) and given}


def _file(message: Mapping[str, Any]) -> tuple[ReceivedFile, str]:
    """The file of a message, and the text beside it."""
    kind = _text(message, "type")
    file = _object(message.get(kind), kind)
    return (
        ReceivedFile(
            FILES[kind],
            _text(file, "id"),
            _optional_text(file, "filename"),
            _optional_text(file, "mime_type"),
        ),
        _optional_text(file, "caption") or "",
    )


def _answered(message: Mapping[str, Any]) -> str | None:
    """The message that another one answers, or whose button was pressed."""
    context = message.get("context")
    return _optional_text(context, "id") if isinstance(context, dict) else None


def _objects(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = holder.get(name, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise Unreadable(f"{name}: not a list of objects")
    return found


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{name}: not an object")
    return value


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = _optional_text(fields, name)
    if not value:
        raise Unreadable(f"{name}: missing")
    return value


def _optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise Unreadable(f"{name}: not a text")
    # No database takes half a surrogate pair, and PostgreSQL no NUL.
    return value.replace("\0", "").encode("utf-8", "replace").decode()
