"""Nothing that people write to a bot keeps the event loop: neither while a channel reads it, nor while the
areas decide whether it is theirs."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import entry_points
from itertools import count
from typing import Any

import pytest

from msgsvc_core.channels import (
    ButtonPressed,
    ChannelUser,
    DeliveryReported,
    MessageEdited,
    MessageReceived,
    ReceivedFile,
    Started,
    Update,
)
from msgsvc_core.kernel.hooks import flatten
from msgsvc_core.plugins.loading import load_plugins
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_email.channel import READ_AT_ONCE
from msgsvc_email.mail import read_mail
from msgsvc_email.proof import is_verified
from msgsvc_email.structured import recipients, sender_in
from msgsvc_email.updates import files_of
from msgsvc_matrix.rooms import Members
from msgsvc_matrix.updates import read_event, read_receipts
from msgsvc_max import updates as max_updates
from msgsvc_sms.gsm import decode_gsm, read_header
from msgsvc_sms.pdu import MAX_BYTES, Tlv, read_short_message
from msgsvc_sms.receipts import read_receipt
from msgsvc_sms.templates import MAX_FORM_BYTES, at, read_body
from msgsvc_telegram.updates import read_updates
from msgsvc_whatsapp import updates as whatsapp_updates
from tests.hostile.loop_steps import ROUNDS, measure_pace, measured_steps, most_s
from tests.hostile.place import furnish
from tests.hostile.test_public_pages import leaves, with_value
from tests.hostile.texts import UNITS, text_of, texts, urlencoded

#: Characters of one text in an update: the largest of a body of `server.max_body_bytes`.
LONG = 250_000

#: Characters of a text that a channel may pass on: an event of Matrix has 64 KiB.
PASSED_ON = 60_000

#: The name of what people send, which is read; else the others would prove little.
AS_IT_IS = "as it is"

#: What stands in one value of an update after the other.
SPOT_UNITS = ("\u0301", "-", " ", "9")

_ANN = {"id": 1, "is_bot": False, "first_name": "Ann", "username": "ann", "language_code": "en"}
_CHAT = {"id": 1, "type": "private", "first_name": "Ann"}
_MESSAGE = {"message_id": 1, "from": _ANN, "chat": _CHAT, "date": 1}
TELEGRAM: Sequence[Any] = (
    {"update_id": 1, "message": {**_MESSAGE, "text": "/start a"}},
    {
        "update_id": 1,
        "message": {**_MESSAGE, "text": "Hi", "entities": [{"type": "bold", "offset": 0}]},
    },
    {"update_id": 1, "edited_message": {**_MESSAGE, "text": "Hi"}},
    {
        "update_id": 1,
        "message": {**_MESSAGE, "caption": "Hi", "document": {"file_id": "a", "file_name": "b"}},
    },
    {
        "update_id": 1,
        "message": {**_MESSAGE, "contact": {"phone_number": "+1", "first_name": "Ann"}},
    },
    {
        "update_id": 1,
        "message": {**_MESSAGE, "poll": {"question": "a", "options": [{"text": "b"}]}},
    },
    {"update_id": 1, "callback_query": {"id": "1", "from": _ANN, "message": _MESSAGE, "data": "y"}},
    {
        "update_id": 1,
        "my_chat_member": {"chat": _CHAT, "from": _ANN, "new_chat_member": {"status": "kicked"}},
    },
)

_JOHN = {
    "user_id": 1,
    "first_name": "John",
    "name": "John Doe",
    "username": "john",
    "is_bot": False,
}
_BODY = {
    "mid": "m",
    "seq": 1,
    "text": "Hi",
    "attachments": [{"type": "file", "payload": {"url": "https://a.b/c"}}],
}
_TO = {"chat_id": 1, "chat_type": "dialog", "user_id": 2}
_WRITTEN = {"recipient": _TO, "timestamp": 1, "body": _BODY, "sender": _JOHN}
MAX: Sequence[Any] = (
    {
        "update_type": "bot_started",
        "timestamp": 1,
        "chat_id": 1,
        "user": _JOHN,
        "payload": "a",
        "user_locale": "en",
    },
    {"update_type": "message_created", "timestamp": 1, "message": _WRITTEN, "user_locale": "en"},
    {"update_type": "message_edited", "timestamp": 1, "message": _WRITTEN},
    {
        "update_type": "message_callback",
        "timestamp": 1,
        "callback": {"timestamp": 1, "callback_id": "a", "user": _JOHN, "payload": "b"},
        "message": _WRITTEN,
    },
)

_NUMBER = "1"


def _whatsapp(message: Mapping[str, Any]) -> Any:
    one = {"from": "16505550001", "from_user_id": "US.1", "id": "w", "timestamp": "1", **message}
    value = {
        "metadata": {"phone_number_id": _NUMBER},
        "contacts": [{"wa_id": "16505550001", "user_id": "US.1", "profile": {"name": "Ann"}}],
        "messages": [one],
    }
    return {"entry": [{"id": "1", "changes": [{"field": "messages", "value": value}]}]}


WHATSAPP: Sequence[Any] = (
    _whatsapp({"type": "text", "text": {"body": "start a"}}),
    _whatsapp(
        {
            "type": "document",
            "document": {"id": "1", "filename": "a", "caption": "b", "mime_type": "c/d"},
        }
    ),
    _whatsapp(
        {
            "type": "interactive",
            "interactive": {"type": "button_reply", "button_reply": {"id": "1:a", "title": "b"}},
        }
    ),
    _whatsapp(
        {
            "type": "contacts",
            "contacts": [{"name": {"formatted_name": "a"}, "phones": [{"phone": "+1"}]}],
        }
    ),
    _whatsapp(
        {
            "type": "location",
            "location": {"latitude": 1, "longitude": 2, "name": "a", "address": "b"},
        }
    ),
)

_EVENT = {"event_id": "$1", "sender": "@ann:a.example", "origin_server_ts": 1}
MATRIX: Sequence[Any] = (
    {**_EVENT, "type": "m.room.message", "content": {"msgtype": "m.text", "body": "Hi"}},
    {
        **_EVENT,
        "type": "m.room.message",
        "content": {
            "msgtype": "m.text",
            "body": "> <@a:b> Hi\n\nHo",
            "format": "org.matrix.custom.html",
            "formatted_body": "<b>Hi</b>",
            "m.relates_to": {"m.in_reply_to": {"event_id": "$0"}},
        },
    },
    {
        **_EVENT,
        "type": "m.room.message",
        "content": {
            "msgtype": "m.file",
            "body": "a",
            "filename": "b",
            "url": "mxc://a/b",
            "info": {"mimetype": "a/b"},
        },
    },
    {
        **_EVENT,
        "type": "m.room.member",
        "state_key": "@ann:a.example",
        "content": {"membership": "leave"},
    },
)


Parsing = tuple[str, Callable[[], object]]


def updates_of(samples: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Each sample, and with one value after the other replaced."""
    for number, sample in enumerate(samples):
        yield AS_IT_IS, sample
        for spot, _ in leaves(sample):
            for name, text in texts(SPOT_UNITS, (LONG,)):
                yield f"{number} {spot} {name}", with_value(sample, spot, text)
        for unit in UNITS:
            whole = sample
            for spot, value in leaves(sample):
                if value in {"Hi", "a", "b", "start a", "/start a"}:
                    whole = with_value(whole, spot, text_of(unit, LONG))
            yield f"{number} {unit!r}", whole


def telegram() -> Iterator[Parsing]:
    for name, raw in updates_of(TELEGRAM):
        yield name, lambda raw=raw: read_updates([raw], "telegram")
    yield (
        "many entities",
        lambda: read_updates(
            [{"update_id": 1, "message": {**_MESSAGE, "text": "Hi", "entities": [{}] * 50_000}}],
            "telegram",
        ),
    )


def max_() -> Iterator[Parsing]:
    for name, raw in updates_of(MAX):
        yield name, lambda raw=raw: list(max_updates.read_updates([raw], "max"))


def whatsapp() -> Iterator[Parsing]:
    for name, raw in updates_of(WHATSAPP):
        body = json.dumps(raw).encode()
        yield name, lambda body=body: whatsapp_updates.read_call(body, _NUMBER, "whatsapp")


def matrix() -> Iterator[Parsing]:
    for name, raw in updates_of(MATRIX):
        members = Members(2, {"@ann:a.example": "Ann", "@me:a.example": None})
        yield (
            name,
            lambda raw=raw, members=members: read_event(
                raw, "!r:a.example", members, "@me:a.example"
            ),
        )
    read = {"m.read": {f"@{number}:a": {"ts": 1} for number in range(2_000)}}
    receipts = [{"type": "m.receipt", "content": {f"${number}": read for number in range(10)}}]
    yield "many receipts", lambda: read_receipts(receipts, "@me:a.example")


def sms() -> Iterator[Parsing]:
    addresses = b"\0\1\1123\0\1\1456\0"
    for coding in (0, 1, 3, 5, 6, 8, 0x0A, 0x0E, 0xF0):
        for kind in (0, 0x04, 0x40):
            for unit in (
                b"id:",
                b"id: ",
                b"stat:",
                b"err:1",
                b" ",
                b"\x1b",
                b"\xd8\x00",
                b"\x05\0\3",
                b"9",
                b"\xff",
            ):
                payload = (unit * MAX_BYTES)[: MAX_BYTES - 200]
                tlv = (
                    Tlv.MESSAGE_PAYLOAD.to_bytes(2)
                    + min(len(payload), 65_535).to_bytes(2)
                    + payload[:65_535]
                )
                body = addresses + bytes((kind, 0, 0)) + b"\0\0" + bytes((0, 0, coding, 0, 0)) + tlv
                yield f"{coding} {kind} {unit!r}", lambda body=body: _short_message(body)
    for unit in (b"\x1e\0\0\0", b"\x1e\x04\0\1a"):
        yield (
            f"TLVs {unit!r}",
            lambda unit=unit: _short_message(addresses + b"\0" * 10 + unit * 15_000),
        )


def _short_message(body: bytes) -> None:
    message = read_short_message(body)
    read_receipt(message)
    text = message.text_bytes
    with suppress(ValueError):
        read_header(text)
    decode_gsm(text)


def sms_http() -> Iterator[Parsing]:
    # A long form, and one of the length that is read: a character takes up to nine bytes there.
    for name, text in texts(UNITS, (LONG // 6, MAX_FORM_BYTES // 18)):
        form = urlencoded({"from": text, "text": text})
        yield (
            name,
            lambda form=form: at(read_body(form, "application/x-www-form-urlencoded"), "text"),
        )
    for unit in (b"{},", b'{"a":', b"[", b"0,"):
        yield (
            f"{unit!r}",
            lambda unit=unit: read_body(unit * (1_000_000 // len(unit)), "application/json"),
        )
    yield "a long path", lambda: at({"a": 1}, "a." * 500)


def email() -> Iterator[Parsing]:
    """Larger ones are read in another process."""
    fields = (
        "From",
        "To",
        "Subject",
        "Content-Type",
        "Authentication-Results",
        "References",
        "Message-ID",
        "Date",
    )
    for name, text in texts(UNITS, (READ_AT_ONCE - 200,)):
        raw = text.encode()[: READ_AT_ONCE - 200]
        for field in fields:
            yield (
                f"{field}: {name}",
                lambda raw=raw, field=field: _mail(f"{field}: ".encode() + raw + b"\r\n\r\nHi"),
            )
        for kind in (
            "text/plain",
            "text/html",
            "multipart/mixed; boundary=a",
            "message/delivery-status",
        ):
            head = f"From: ann@a.example\r\nContent-Type: {kind}\r\n\r\n".encode()
            yield f"{kind} {name}", lambda raw=raw, head=head: _mail(head + raw)


def _mail(raw: bytes) -> None:
    mail = read_mail(raw)
    sender = sender_in(mail.head.decoded("from"))
    is_verified(mail.head, sender[0] if sender else "", "mx.example")
    recipients(mail.head)
    files_of(mail, "1:1")


#: How each kind of channel reads hostile updates. The sandbox has endpoints, which are in
#: `test_operations.py`.
PARSERS: Mapping[str, Callable[[], Iterator[Parsing]] | None] = {
    "email": email,
    "matrix": matrix,
    "max": max_,
    "sandbox": None,
    "sms": sms,
    "sms_http": sms_http,
    "telegram": telegram,
    "whatsapp": whatsapp,
}


def kinds() -> list[str]:
    """Of every plugin of ours that is installed."""
    names = [
        found.name
        for found in entry_points(group="msgsvc.plugins")
        if found.value.startswith("msgsvc_")
    ]
    return sorted(kind.name for kind in flatten(load_plugins(names).hook.register_channel_kinds()))


@pytest.mark.parametrize("kind", kinds())
def test_a_channel_reads_whatever_it_is_sent_in_no_time(kind: str) -> None:
    assert kind in PARSERS, f"say in {__name__} how {kind} reads hostile updates"
    parsings = PARSERS[kind]
    slow = []
    for name, parse in parsings() if parsings is not None else ():
        if name == AS_IT_IS:
            assert parse(), f"{kind} does not read what it should"
        elif _least_s(parse) > most_s():
            slow.append(name)

    assert slow == []


def _least_s(parse: Callable[[], object]) -> float:
    least = float("inf")
    for _ in range(ROUNDS):
        began = time.thread_time()
        # A refusal is an answer; other tests say which.
        with suppress(Exception):
            parse()
        least = min(least, time.thread_time() - began)
        if least <= most_s():
            break
        # Others may have made the machine slower since.
        measure_pace()
    return least


_numbers = count(1)


def hostile_updates(user: ChannelUser) -> Iterator[tuple[str, Update]]:
    """What a channel passes on of a person's hostile texts."""
    for name, text in texts(UNITS, (PASSED_ON, 4_000)):
        who: dict[str, Any] = {"chat_id": f"chat-{user.user_id}", "user": user}
        named = {
            **who,
            "user": replace(user, first_name=text, username=text, lang=text, phone=text),
        }
        file = ReceivedFile("document", "ref", text, text, 1)
        yield f"text {name}", MessageReceived(update_id="", text=text, message_ref="1", **who)
        yield (
            f"command {name}",
            MessageReceived(update_id="", text="/" + text, message_ref="1", **who),
        )
        yield f"answer {name}", MessageReceived(update_id="", text="1", reply_to=text, **who)
        yield (
            f"file {name}",
            MessageReceived(update_id="", text="", files=(file,), message_ref="1", **who),
        )
        yield f"edited {name}", MessageEdited(update_id="", message_ref="1", text=text, **who)
        yield (
            f"pressed {name}",
            ButtonPressed(
                update_id="", data=text, message_ref="1", button_ref="1", text=text, **who
            ),
        )
        yield f"start {name}", Started(update_id="", payload=text, **who)
        yield f"name {name}", MessageReceived(update_id="", text="Hi", message_ref="2", **named)
        yield (
            f"report {name}",
            DeliveryReported(update_id="", message_ref=text, state="failed", detail=text),
        )


async def test_no_area_is_kept_by_what_people_write(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    place = await furnish(make_service, make_tenant)
    inbound = place.service.inbound
    slow: list[str] = []
    with measured_steps() as steps:
        for name, update in hostile_updates(ChannelUser("user-Ann", "Ann", "ann", "en")):

            async def receive(update: Update = update) -> None:
                await inbound.receive("messenger_a", replace(update, update_id=str(next(_numbers))))

            seconds, _ = await steps.of(receive)
            if seconds > most_s():
                slow.append(f"{name}: {seconds:.3f} s")

    assert slow == []
