"""Edits that a platform refuses: the message says why, and is what people see."""

import httpx2
import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser, DeliveryError, Reason
from msgsvc_core.messages import edit_job
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from tests.api.changing import WAIT, edit
from tests.api.conftest import Send
from tests.api.reading import events_named, message_of


async def test_a_refused_edit_says_why_and_the_message_is_what_people_see(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="old", buttons=[[{"text": "A", "data": "a"}]])
    await settled(service)
    channel.refusals = [DeliveryError(Reason.INVALID_MESSAGE, "it is too old")]
    await edit(client, message_id, text="new", buttons=[])
    await settled(service)

    message = await message_of(client, message_id)
    assert (message["status"], message["text"], message["edited_at"]) == ("sent", "old", None)
    assert message["buttons"] == [[{"text": "A", "url": None, "data": "a", "style": None}]]
    assert (message["reason"], message["error"]) == ("change_refused", "edit: it is too old")
    assert await events_named(client, "delivery.failed") == []


async def test_an_edit_that_succeeds_takes_the_error_of_the_one_before_away(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="old")
    await settled(service)
    channel.refusals = [DeliveryError(Reason.INVALID_MESSAGE, "not now")]
    for text in ("new", "newer"):
        await edit(client, message_id, text=text)
        await settled(service)

    message = await message_of(client, message_id)
    assert (message["text"], message["reason"], message["error"]) == ("newer", None, None)


async def test_two_edits_that_are_refused_leave_what_was_there_before_both(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    message_id = await send(text="old")
    await settled(service)
    channel.refusals = [WAIT, *(DeliveryError(Reason.INVALID_MESSAGE, "no") for _ in range(2))]
    for text in ("new", "newer"):
        await edit(client, message_id, text=text)
        await settled(service)
    clock.advance(61)
    await settled(service)

    assert (await message_of(client, message_id))["text"] == "old"
    assert channel.edited == []


@pytest.mark.parametrize("data", ["old", "new"])
async def test_buttons_work_whether_or_not_the_edit_has_reached_the_person(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    data: str,
) -> None:
    message_id = await send(buttons=[[{"text": "A", "data": "old"}]])
    await settled(service)
    channel.refusals = [WAIT]
    await edit(client, message_id, buttons=[[{"text": "B", "data": "new"}]])
    await settled(service)
    user = ChannelUser("user-Ann", "Ann", "ann", "en")
    ref = channel.sent[-1].message_ref
    await service.inbound.receive(
        "messenger_a",
        ButtonPressed(
            update_id="press",
            chat_id="chat-Ann",
            user=user,
            button_ref="b1",
            data=data,
            message_ref=ref,
        ),
    )

    (clicked,) = await events_named(client, "button.clicked")
    assert (clicked["message_id"], clicked["data"]) == (message_id, data)


async def test_an_edit_in_doubt_is_made_again(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    message_id = await send()
    await settled(service)
    channel.refusals = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "cut off", in_doubt=True)]
    await edit(client, message_id, text="new")
    await settled(service)
    clock.advance(2)
    await settled(service)

    assert [edited.message.text for edited in channel.edited] == ["new"]


async def test_a_platform_that_stays_away_ends_the_edit_after_the_usual_attempts(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    message_id = await send(text="old")
    await settled(service)
    attempts = service.settings.limits.delivery_attempts
    channel.refusals = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502") for _ in range(attempts)]
    await edit(client, message_id, text="new")
    for _ in range(attempts):
        await settled(service)
        # The platform takes other calls: what fails is this edit.
        await send(text="another")
        await settled(service)
        clock.advance(400)

    message = await message_of(client, message_id)
    assert (message["text"], message["error"]) == ("old", "edit: 502")
    assert channel.refusals == []


@pytest.mark.both_databases
async def test_an_edit_that_finds_the_bot_blocked_ends_the_subscription(
    service: Service, client: httpx2.AsyncClient, send: Send, ann: str, channel: RecordingChannel
) -> None:
    message_id = await send()
    await settled(service)
    channel.refusals = [DeliveryError(Reason.USER_BLOCKED_BOT, "blocked")]
    await edit(client, message_id, text="new")
    await settled(service)

    assert (await client.get(f"/v1/subscribers/{ann}")).json()["status"] == "blocked"


async def test_an_edit_that_the_service_could_not_make_says_nothing_of_the_service(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_args: object) -> None:
        raise RuntimeError("no such file: /srv/msgsvc/media/x")

    async def refused() -> dict[str, object] | None:
        clock.advance(3600)
        message = await message_of(client, message_id)
        return message if message["error"] else None

    message_id = await send(text="old")
    await settled(service)
    monkeypatch.setattr(edit_job.MessageEditor, "_load", fail)
    await edit(client, message_id, text="new")

    message = await until(refused)

    assert message["error"] == "edit: the service could not do it"
    assert message["text"] == "old"
