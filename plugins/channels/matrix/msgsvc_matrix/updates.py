"""Parses the events of a direct chat into msgsvc's updates."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgsvc_core.channels import (
    Blocked,
    ChannelUser,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Unblocked,
    Update,
)
from msgsvc_core.channels.inbound import placeholders
from msgsvc_core.kernel.storable_text import storable
from msgsvc_matrix.files import KINDS, file_of
from msgsvc_matrix.rooms import Members

#: Types of messages whose text is theirs. A notice is what another bot says, and "must never be
#: automatically responded to" (`m.notice`).
TEXTS = frozenset({"m.text", "m.emote"})

#: Types of messages that are for no person: of other bots, and of clients among themselves.
UNSAID = frozenset({"m.notice", "m.key.verification.request"})

#: Types of events that the homeserver is asked for.
EVENT_TYPES = (
    "m.room.message",
    "m.sticker",
    "m.room.member",
    "m.room.redaction",
    "m.room.encryption",
)

#: The quoted message before a reply, as clients wrote it until version 1.13.
_QUOTE = re.compile(r"(?:> [^\n]*(?:\n|$))+\n?")


#: The point of a place (RFC 5870): latitude and longitude in degrees.
_GEO_URI = re.compile(r"geo:(-?[\d.]{1,20}),(-?[\d.]{1,20})")

#: No clock shows this time in milliseconds: a server of others may have named it.
_NO_TIME_MS = 1 << 53


class InvalidEvent(ValueError):
    """An event does not match the specification. The text names the field, but never contains its value."""


def read_event(event: Mapping[str, Any], room_id: str, members: Members, me: str) -> Update | None:
    """The update of an event in a direct chat; None if it is irrelevant. Raises `InvalidEvent`."""
    kind, sender = text_in(event, "type"), text_in(event, "sender")
    if kind == "m.room.member":
        return _membership(event, room_id, members, me)
    if sender == me:
        return None
    common = _common(event, room_id, sender, members)
    if kind == "m.room.redaction":
        return _redaction(event, common)
    if kind in {"m.room.message", "m.sticker"}:
        return _message(event, kind, common)
    return None


@dataclass(frozen=True, slots=True)
class Receipt:
    """That a user has read everything up to an event."""

    event_id: str
    user_id: str
    at_ms: int | None


def read_receipts(events: Sequence[Mapping[str, Any]], me: str) -> list[Receipt]:
    """The receipts of others. Those of a thread are not of the main timeline, in which the bot writes;
    a homeserver shows private ones (`m.read.private`) to their owner alone."""
    found = []
    for event in events:
        content = event.get("content")
        if event.get("type") != "m.receipt" or not isinstance(content, dict):
            continue
        for event_id, kinds in content.items():
            users = kinds.get("m.read") if isinstance(kinds, dict) else None
            for user_id, given in users.items() if isinstance(users, dict) else ():
                data = given if isinstance(given, dict) else {}
                if user_id == me or data.get("thread_id") not in (None, "main"):
                    continue
                if _id_of(event_id) is not None:
                    found.append(Receipt(storable(event_id), user_id, _ms_in(data, "ts")))
    return found


def report_of(
    receipt: Receipt, event: Mapping[str, Any], room_id: str, members: Members, me: str
) -> DeliveryReported | None:
    """The report of a receipt; `event` is the one that it names. None if that has no time."""
    up_to_ms, content = _ms_in(event, "origin_server_ts"), event.get("content")
    if up_to_ms is None:
        return None
    relates = content.get("m.relates_to") if isinstance(content, dict) else None
    # An edit is an event of its own: `send` has not returned it.
    is_edit = isinstance(relates, dict) and relates.get("rel_type") == "m.replace"
    is_sent = event.get("sender") == me and event.get("type") == "m.room.message" and not is_edit
    return DeliveryReported(
        update_id=f"read:{receipt.event_id}",
        chat_id=room_id,
        user=user_of(receipt.user_id, members.names.get(receipt.user_id)),
        message_ref=receipt.event_id if is_sent else "",
        state="read",
        at_ms=receipt.at_ms,
        up_to_ms=up_to_ms,
    )


def user_of(user_id: str, name: str | None = None) -> ChannelUser:
    """A user as the platform describes them. Matrix knows no language of theirs."""
    localpart = user_id.removeprefix("@").partition(":")[0]
    shown = storable(name).strip() if name else ""
    return ChannelUser(user_id, shown or localpart, user_id.removeprefix("@"))


def membership_of(event: Mapping[str, Any]) -> tuple[str, str]:
    """The membership that an event gives, and the one before."""
    content, unsigned = event.get("content"), event.get("unsigned")
    before: Any = unsigned.get("prev_content") if isinstance(unsigned, dict) else None
    return _membership_in(content), _membership_in(before)


def text_in(fields: Mapping[str, Any], name: str) -> str:
    """A text that must be there. Raises `InvalidEvent`."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidEvent(f"{name}: missing")
    return storable(value)


def _membership(event: Mapping[str, Any], room_id: str, members: Members, me: str) -> Update | None:
    who, (now, before) = text_in(event, "state_key"), membership_of(event)
    if who == me:
        other = members.other_than(me)
        # A changed profile is a membership too.
        if now != "join" or before == "join" or other is None:
            return None
        return Started(**_common(event, room_id, other, members))
    common = _common(event, room_id, who, members)
    if now in {"leave", "ban"}:
        return Blocked(**common) if before in {"", "join"} else None
    if now == "join" and before in {"leave", "ban", "invite"}:
        return Unblocked(**common)
    return None


def _redaction(event: Mapping[str, Any], common: dict[str, Any]) -> Update | None:
    """A message that was taken back: one without content."""
    content = event.get("content")
    inside = content.get("redacts") if isinstance(content, dict) else None
    # Room version 11 moved it.
    ref = _id_of(event.get("redacts") or inside)
    return None if ref is None else MessageEdited(**common, message_ref=ref, text="")


def _message(event: Mapping[str, Any], kind: str, common: dict[str, Any]) -> Update | None:
    content = event.get("content")
    if not isinstance(content, dict):
        raise InvalidEvent("content: not an object")
    if not content:
        return None  # redacted meanwhile
    relates = content.get("m.relates_to")
    relates = relates if isinstance(relates, dict) else {}
    if relates.get("rel_type") == "m.replace":
        new, ref = content.get("m.new_content"), _id_of(relates.get("event_id"))
        if not isinstance(new, dict) or ref is None:
            raise InvalidEvent("m.new_content: missing")
        said = _said(new, kind)
        if said is None:
            return None
        return MessageEdited(**common, message_ref=ref, text=said[0], files=said[1])
    above = relates.get("m.in_reply_to")
    reply_to = _id_of(above.get("event_id")) if isinstance(above, dict) else None
    said = _said(content, kind)
    if said is None:
        return None
    text, files = said
    if reply_to is not None and (quote := _QUOTE.match(text)):
        text = text[quote.end() :]
    return MessageReceived(
        **common,
        text=text,
        files=files,
        message_ref=common["update_id"],
        reply_to=reply_to,
    )


def _said(content: Mapping[str, Any], kind: str) -> tuple[str, tuple[ReceivedFile, ...]] | None:
    """Text and files of a message; None if it holds neither."""
    msgtype = kind if kind == "m.sticker" else text_in(content, "msgtype")
    body = content.get("body")
    if not isinstance(body, str):
        raise InvalidEvent("body: missing")
    body = storable(body)
    if msgtype in TEXTS:
        return body, ()
    if msgtype == "m.location":
        point = _GEO_URI.match(str(content.get("geo_uri")))
        return placeholders.place(*(point.groups() if point else (None, None)), body), ()
    if msgtype in UNSAID:
        return None
    if msgtype not in KINDS:
        # What it says to clients that don't know the kind (`m.room.message`).
        return body, ()
    name = content.get("filename")
    # The body is the caption if there is a name beside it (version 1.10), and else the name.
    filename = storable(name) if isinstance(name, str) and name else body
    caption = "" if filename == body or kind == "m.sticker" else body
    file = file_of(msgtype, content, filename or None)
    if file is None:
        # Encrypted, say. A line stands for it, so that the person is answered.
        return caption or placeholders.unknown(msgtype), ()
    return caption, (file,)


def _common(
    event: Mapping[str, Any], room_id: str, user_id: str, members: Members
) -> dict[str, Any]:
    return {
        "update_id": text_in(event, "event_id"),
        "chat_id": room_id,
        "user": user_of(user_id, members.names.get(user_id)),
    }


def _membership_in(content: Any) -> str:
    found = content.get("membership") if isinstance(content, dict) else None
    return found if isinstance(found, str) else ""


def _ms_in(fields: Mapping[str, Any], name: str) -> int | None:
    value = fields.get(name)
    return value if type(value) is int and 0 <= value < _NO_TIME_MS else None


def _id_of(value: Any) -> str | None:
    return storable(value) if isinstance(value, str) and value.startswith("$") else None
