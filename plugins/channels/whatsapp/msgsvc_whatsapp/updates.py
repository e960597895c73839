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
    ItemKind,
    MediaType,
    MessageEdited,
    MessageReceived,
    Reason,
    ReceivedFile,
    Started,
    Unblocked,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_core.channels.inbound import placeholders
from msgsvc_core.kernel.storable_text import storable
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

#: Contacts of one message that are shown.
MOST_CARDS = 10

_PHONE = re.compile(r"[1-9][0-9]{6,14}")


class InvalidUpdate(ValueError):
    """A call does not match the documentation. The text names the field, but never contains its value."""


@dataclass(frozen=True, slots=True)
class _Value:
    """The `value` of a change, and its contacts by their ids."""

    fields: Mapping[str, Any]
    contacts: Mapping[str, Mapping[str, Any]]
    channel: str


def read_call(body: bytes, number_id: str, channel: str) -> list[Update]:
    """The updates in a call's body that are about this phone number."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        return [Unreadable.of(body, UnreadableReason.MALFORMED, "it is not JSON")]
    try:
        return list(_updates(raw, number_id, channel))
    except InvalidUpdate as error:
        return [Unreadable.of(body, UnreadableReason.MALFORMED, str(error))]


# Values are compared with tuples where nothing says that they are texts: an odd one may not be hashable.


def _updates(raw: Any, number_id: str, channel: str) -> Iterator[Update]:
    for entry in _list(_object(raw, "the call"), "entry"):
        if not isinstance(entry, dict):
            yield _malformed({"entry": [entry]}, "entry: not an object")
            continue
        for change in _list(entry, "changes"):
            try:
                # The others of the call have nothing to do with it.
                yield from _of_change(_object(change, "changes"), number_id, channel)
            except InvalidUpdate as error:
                yield _malformed({"entry": [{"changes": [change]}]}, str(error))


def _of_change(change: Mapping[str, Any], number_id: str, channel: str) -> Iterator[Update]:
    fields = _object(change.get("value"), "value")
    metadata = fields.get("metadata")
    of = metadata.get("phone_number_id") if isinstance(metadata, dict) else None
    if of != number_id:
        # An app's webhook is called for all of its numbers.
        log.debug("update_of_other_number", channel=channel)
        return
    if change.get("field") not in ("messages", "user_preferences"):
        raw = {"entry": [{"changes": [change]}]}
        yield Unreadable.of(raw, UnreadableReason.UNKNOWN_KIND, "field: unknown")
        return
    value = _Value(fields, _contacts(fields), channel)
    lists = [(name, _list(fields, name)) for name in _LISTS]
    for name, items in lists:
        for item in items:
            yield from _of_item(change, name, item, value)
    for reported in _objects(fields, "errors"):
        code, detail = reported.get("code"), detail_of(reported)
        log.warning("platform_reports", channel=channel, code=code, detail=detail)


def _of_item(change: Mapping[str, Any], name: str, item: Any, value: _Value) -> list[Update]:
    """The updates of one item of a list; one that can't be read costs only itself."""
    try:
        return list(_LISTS[name](_object(item, "it"), value))
    except InvalidUpdate as error:
        kind: ItemKind = "report" if name == "statuses" else "update"
        return [_malformed(_alone(change, name, item), f"{name}: {error}", kind)]
    except Exception as error:
        # A fault of ours with one update must not stop the others.
        log.exception("update_failed", channel=value.channel)
        return [Unreadable.failed(_alone(change, name, item), error)]


def _malformed(raw: dict[str, Any], why: str, kind: ItemKind = "update") -> Unreadable:
    return Unreadable.of(raw, UnreadableReason.MALFORMED, why, kind=kind)


def _alone(change: Mapping[str, Any], name: str, item: Any) -> dict[str, Any]:
    """A call with this item only, so that it can be read again."""
    kept = {key: each for key, each in change["value"].items() if key not in _LISTS}
    return {"entry": [{"changes": [{**change, "value": {**kept, name: [item]}}]}]}


def _message(message: Mapping[str, Any], value: _Value) -> Iterator[Update]:
    if message.get("group_id") is not None:
        log.debug("group_message_ignored", channel=value.channel)
        return
    kind = _text(message, "type")
    if kind in _UNSAID:
        log.info("update_ignored", channel=value.channel, kinds=[kind])
        return
    update = _MESSAGES.get(kind, _unknown)(message, value)
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
        files=() if file is None else (file,),
        message_ref=_text(message, "id"),
        reply_to=_answered(message),
    )


def _interactive(message: Mapping[str, Any], value: _Value) -> Update:
    interactive = _object(message.get("interactive"), "interactive")
    kind = interactive.get("type")
    if kind not in ("button_reply", "list_reply"):
        if not isinstance(kind, str):
            raise InvalidUpdate("interactive.type: not a text")
        # A form of the platform's that was filled in, say.
        return _shared(message, value, placeholders.unknown(kind))
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


def _place(message: Mapping[str, Any], value: _Value) -> Update:
    at = _object(message.get("location"), "location")
    names = (at.get("name"), at.get("address"))
    return _shared(
        message, value, placeholders.place(at.get("latitude"), at.get("longitude"), *names)
    )


def _cards(message: Mapping[str, Any], value: _Value) -> Update:
    lines = []
    for card in _objects(message, "contacts"):
        name, phones = card.get("name"), card.get("phones")
        numbers = [
            each.get("phone")
            for each in (phones if isinstance(phones, list) else [])
            if isinstance(each, dict)
        ]
        shown = name.get("formatted_name") if isinstance(name, dict) else None
        lines.append(placeholders.contact(shown, numbers))
    return _shared(message, value, "\n".join(lines[:MOST_CARDS]))


def _order(message: Mapping[str, Any], value: _Value) -> Update:
    order = _object(message.get("order"), "order")
    note, items = _optional_text(order, "text") or "", order.get("product_items")
    count = len(items) if isinstance(items, list) else 0
    return _shared(message, value, f"[Order of {count} product(s)] {note}".strip())


def _unknown(message: Mapping[str, Any], value: _Value) -> Update:
    return _shared(message, value, placeholders.unknown(_text(message, "type")))


def _shared(message: Mapping[str, Any], value: _Value, text: str) -> Update:
    """What somebody shared, as a line."""
    return MessageReceived(
        **_about(message, value),
        text=storable(text),
        message_ref=_text(message, "id"),
        reply_to=_answered(message),
    )


def _edited(message: Mapping[str, Any], value: _Value) -> Update:
    edit = _object(message.get("edit"), "edit")
    content = _object(edit.get("message"), "edit.message")
    kind = content.get("type")
    files: tuple[ReceivedFile, ...] = ()
    if kind == "text":
        text = _optional_text(_object(content.get("text"), "text"), "body") or ""
    elif isinstance(kind, str) and kind in FILES:
        file, text = _file(content)
        files = () if file is None else (file,)
    else:
        raise InvalidUpdate("edit.message.type: unknown")
    ref = _text(edit, "original_message_id")
    return MessageEdited(**_about(message, value), message_ref=ref, text=text, files=files)


def _system(message: Mapping[str, Any], value: _Value) -> Update | None:
    system = _object(message.get("system"), "system")
    kind = system.get("type")
    if kind not in ("user_changed_number", "user_changed_user_id"):
        raise InvalidUpdate("system.type: unknown")
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
    if state in ("delivered", "read"):
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
    if not isinstance(wish, str) or wish not in kinds:
        log.info("preference_ignored", channel=value.channel)
        return
    update_id = f"preference:{user.user_id}:{when}:{wish}"
    yield kinds[wish](update_id=update_id, chat_id=user.user_id, user=user)


_MESSAGES: Mapping[str, Callable[[Mapping[str, Any], _Value], Update | None]] = {
    "text": _written,
    **dict.fromkeys(FILES, _with_file),
    "interactive": _interactive,
    "button": _quick_reply,
    "location": _place,
    "contacts": _cards,
    "order": _order,
    "edit": _edited,
    "system": _system,
}

#: Kinds that say nothing which anybody would answer.
_UNSAID = frozenset({"reaction", "ephemeral"})

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
        raise InvalidUpdate(f"{by_id}: missing")
    profile = contact.get("profile")
    profile = profile if isinstance(profile, dict) else {}
    number = known[1] or _optional_text(contact, "wa_id") or ""
    return ChannelUser(
        user_id=user_id,
        first_name=_text_or_none(profile, "name") or "",
        username=_text_or_none(profile, "username") or None,
        phone=f"+{number}" if _PHONE.fullmatch(number) else None,
    )


def _contacts(fields: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    contacts = _objects(fields, "contacts")
    ids = [(one.get(name), one) for one in contacts for name in ("user_id", "wa_id")]
    return {given: one for given, one in ids if isinstance(given, str) and given}


def _file(message: Mapping[str, Any]) -> tuple[ReceivedFile | None, str]:
    """The file of a message, and the text beside it. Without an id nobody can load the file: a line stands
    for it, so that the person is answered."""
    kind = _text(message, "type")
    file = _object(message.get(kind), kind)
    if not file.get("id"):
        return None, _optional_text(file, "caption") or placeholders.unknown(kind)
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


def _text_or_none(fields: Mapping[str, Any], name: str) -> str | None:
    """Of what is told beside a message: it must not keep the message from being read."""
    value = fields.get(name)
    return storable(value) if isinstance(value, str) else None


def _objects(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Those of a list that are objects: one that is none costs itself."""
    return [one for one in _list(holder, name) if isinstance(one, dict)]


def _list(holder: Mapping[str, Any], name: str) -> list[Any]:
    found = holder.get(name, [])
    if not isinstance(found, list):
        raise InvalidUpdate(f"{name}: not a list")
    return found


def _object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidUpdate(f"{name}: not an object")
    return value


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
