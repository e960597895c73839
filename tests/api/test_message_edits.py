"""POST /v1/messages/{id}/edit: what is still to be sent at once, what was sent in the chat."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import (
    Button,
    Capabilities,
    DeliveryError,
    Media,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.changing import WAIT, edit, hold_sends, is_now
from tests.api.conftest import CheckError, Send
from tests.api.reading import message_of

PICTURE = {"type": "image", "url": "https://shop.example/1.png"}
OTHER_PICTURE = {"type": "image", "url": "https://shop.example/2.png"}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    """Nobody serves the files that are named here."""
    return await make_service(media={"check": False})


async def test_a_sent_message_is_edited_in_its_chat(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    message_id = await send(text="Ready at *6*", format="markdown")
    await settled(service)
    clock.advance(60)
    answered = await edit(client, message_id, text="Ready at *7*")
    await settled(service)

    (edited,) = channel.edited
    assert (edited.chat_id, edited.message_ref) == ("chat-Ann", channel.sent[-1].message_ref)
    assert edited.message == OutgoingMessage("Ready at *7*", "markdown")
    assert (answered["text"], answered["edited_at"]) == ("Ready at *7*", None)
    message = await message_of(client, message_id)
    assert (message["status"], message["text"]) == ("sent", "Ready at *7*")
    assert message["edited_at"] > message["finished_at"]
    assert channel.texts[1:] == ["Ready at *6*"]


async def test_what_is_left_out_stays_as_it_is(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="<b>Hi</b>", format="html", buttons=[[{"text": "A", "data": "a"}]])
    await settled(service)
    for body in (
        {"text": "<b>Ho</b>"},
        {"buttons": [[{"text": "B", "data": "b"}]]},
        {"format": "plain"},
        {"buttons": []},
    ):
        await edit(client, message_id, **body)
        await settled(service)

    a, b = ((Button("A", data="a"),),), ((Button("B", data="b"),),)
    assert [edited.message for edited in channel.edited] == [
        OutgoingMessage("<b>Ho</b>", "html", a),
        OutgoingMessage("<b>Ho</b>", "html", b),
        OutgoingMessage("<b>Ho</b>", "plain", b),
        OutgoingMessage("<b>Ho</b>", "plain"),
    ]


@pytest.mark.both_databases
async def test_a_queued_message_is_sent_as_it_was_edited(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    channel.failures = [WAIT]
    message_id = await send(text="old", media=PICTURE)
    await settled(service)
    answered = await edit(client, message_id, text="new", media=OTHER_PICTURE)
    clock.advance(61)
    await settled(service)

    assert (answered["status"], answered["text"]) == ("queued", "new")
    assert answered["edited_at"] is not None
    assert channel.sent[-1].message == OutgoingMessage("new", media=Media(**OTHER_PICTURE))
    assert channel.edited == []
    assert (await message_of(client, message_id))["status"] == "sent"


async def test_an_edit_while_the_message_is_being_sent_comes_after_its_sending(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_send = hold_sends(channel, monkeypatch)
    message_id = await send(text="old")
    await until(lambda: is_now(client, message_id, "sending"))
    await edit(client, message_id, text="new")
    await asyncio.sleep(0.1)  # the edit's job runs, and finds that it is too early
    before = list(channel.edited)
    may_send.set()
    await until(lambda: is_now(client, message_id, "sent"))
    clock.advance(1)
    await settled(service)

    assert before == []
    assert channel.texts[1:] == ["old"]
    assert [edited.message.text for edited in channel.edited] == ["new"]


async def test_a_message_that_goes_back_while_it_is_edited_is_sent_as_edited(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel.failures = [WAIT]
    may_send = hold_sends(channel, monkeypatch)
    message_id = await send(text="old")
    await until(lambda: is_now(client, message_id, "sending"))
    await edit(client, message_id, text="new")
    may_send.set()
    await until(lambda: is_now(client, message_id, "queued"))
    clock.advance(61)
    await settled(service)

    assert channel.texts[1:] == ["new"]
    assert channel.edited == []


async def test_several_quick_edits_show_the_last(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    message_id = await send()
    await settled(service)
    channel.refusals = [WAIT]
    for number in range(5):
        await edit(client, message_id, text=f"edit {number}")
    await settled(service)
    clock.advance(61)
    await settled(service)

    assert channel.edited[-1].message.text == "edit 4"
    assert (await message_of(client, message_id))["text"] == "edit 4"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_edits_at_the_same_time_lose_nothing(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="old")
    await settled(service)
    await asyncio.gather(
        edit(client, message_id, text="new"),
        edit(client, message_id, buttons=[[{"text": "A", "data": "a"}]]),
    )
    await settled(service)

    assert channel.edited[-1].message == OutgoingMessage("new", buttons=((Button("A", data="a"),),))


async def test_the_same_edit_again_makes_no_second_call(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="old")
    await settled(service)
    for _ in range(3):
        await edit(client, message_id, text="new")
        await settled(service)

    assert len(channel.edited) == 1


async def test_the_file_is_changed_where_the_channel_can(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    channel.capabilities = Capabilities(edit_media=True)
    message_id = await send(text="old", media=PICTURE)
    await settled(service)
    await edit(client, message_id, text="new")
    await settled(service)
    await edit(client, message_id, media=OTHER_PICTURE)
    await settled(service)

    # A file that stays is not handed over again.
    assert [edited.message.media for edited in channel.edited] == [None, Media(**OTHER_PICTURE)]
    assert (await message_of(client, message_id))["media"]["url"] == OTHER_PICTURE["url"]


async def test_the_file_of_a_sent_message_stays_where_the_channel_can_not_change_it(
    service: Service, client: httpx2.AsyncClient, send: Send, check_error: CheckError
) -> None:
    message_id = await send(media=PICTURE)
    await settled(service)
    answer = await client.post(f"/v1/messages/{message_id}/edit", json={"media": OTHER_PICTURE})

    fields = check_error(answer, 409, "conflict")
    assert fields["error"].startswith("media: this channel can't change the file")


async def test_a_channel_that_can_not_edit_takes_edits_of_queued_messages_alone(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    check_error: CheckError,
) -> None:
    channel.capabilities = Capabilities(edit=False)
    sent = await send(text="sent")
    await settled(service)
    channel.failures = [WAIT]
    queued = await send(text="old")
    await settled(service)
    refused = await client.post(f"/v1/messages/{sent}/edit", json={"text": "new"})
    await edit(client, queued, text="new")
    clock.advance(61)
    await settled(service)

    fields = check_error(refused, 409, "conflict")
    assert fields["error"] == "this channel can't edit messages that were sent"
    assert channel.texts[1:] == ["sent", "new"]


@pytest.mark.parametrize("status", ["failed", "skipped", "unknown"])
async def test_what_was_not_sent_can_not_be_edited(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    check_error: CheckError,
    status: str,
) -> None:
    in_doubt = status == "unknown"
    failure = DeliveryError(Reason.INVALID_MESSAGE, "no", in_doubt=in_doubt)
    channel.failures = [WAIT if status == "skipped" else failure]
    message_id = await send(expires_in=1)
    await settled(service)
    clock.advance(61)
    await settled(service)
    answer = await client.post(f"/v1/messages/{message_id}/edit", json={"text": "new"})

    assert await is_now(client, message_id, status)
    check_error(answer, 409, "conflict")


WRONG = {
    "nothing": ({}, "give at least one of text, format, media and buttons"),
    "null": ({"text": None}, "text: must not be null"),
    "an empty text": ({"text": ""}, "text: "),
    "a long text": ({"text": "x" * 4001}, "text: must be at most 4000 characters"),
    "too many rows": ({"buttons": [[{"text": "A", "data": "a"}]] * 4}, "buttons: at most 3 rows"),
    "an unknown field": ({"silent": True}, "silent: "),
}


@pytest.mark.parametrize(("body", "why"), WRONG.values(), ids=WRONG)
async def test_an_edit_keeps_to_the_rules_of_a_send(
    client: httpx2.AsyncClient,
    send: Send,
    check_error: CheckError,
    body: dict[str, Any],
    why: str,
) -> None:
    answer = await client.post(f"/v1/messages/{await send()}/edit", json=body)

    assert why in check_error(answer, 400, "validation_failed")["error"]


async def test_an_edit_of_no_message_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.post("/v1/messages/msg_1/edit", json={"text": "new"})

    check_error(answer, 404, "not_found")


async def test_a_new_file_is_not_lost_among_quick_edits(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    channel.capabilities = Capabilities(edit_media=True)
    message_id = await send(text="old", media=PICTURE)
    await settled(service)
    channel.refusals = [WAIT]
    await edit(client, message_id, text="new")
    await edit(client, message_id, media=OTHER_PICTURE)
    await settled(service)
    clock.advance(61)
    await settled(service)

    assert channel.edited[-1].message == OutgoingMessage("new", media=Media(**OTHER_PICTURE))
