"""DELETE /v1/messages/{id}: what is still to be sent is not, what was sent is removed from the chat."""

import httpx2
import pytest

from msgsvc_core.channels import Capabilities, DeliveryError, Reason
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from tests.api.changing import WAIT, hold_sends, is_now
from tests.api.conftest import CheckError, Send
from tests.api.reading import events_named, message_of


async def test_a_sent_message_is_removed_from_its_chat(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send()
    await settled(service)
    answer = await client.delete(f"/v1/messages/{message_id}")
    await settled(service)

    assert (answer.status_code, answer.json()["deleted_at"]) == (202, None)
    assert channel.deleted == [("chat-Ann", channel.sent[-1].message_ref)]
    message = await message_of(client, message_id)
    assert (message["status"], message["error"]) == ("sent", None)
    assert message["deleted_at"] is not None


async def test_a_queued_message_is_skipped(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    channel.failures = [WAIT]
    message_id = await send()
    await settled(service)
    answered = (await client.delete(f"/v1/messages/{message_id}")).json()
    clock.advance(61)
    await settled(service)

    assert (answered["status"], answered["error"]) == ("skipped", "deleted")
    assert answered["deleted_at"] == answered["finished_at"] is not None
    assert channel.texts[1:] == []
    assert await message_of(client, message_id) == answered
    [event] = await events_named(client, "delivery.failed")
    assert (event["message_id"], event["status"]) == (message_id, "skipped")
    assert event["reason"] == answered["reason"] == "cancelled"


async def test_a_message_that_is_being_sent_is_removed_afterwards(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_send = hold_sends(channel, monkeypatch)
    message_id = await send()
    await until(lambda: is_now(client, message_id, "sending"))
    await client.delete(f"/v1/messages/{message_id}")
    may_send.set()
    await until(lambda: is_now(client, message_id, "sent"))
    # The deletion has found it being sent, and will look again; it goes by the time at which it says so.
    await settled(service)
    clock.advance(1)
    await settled(service)

    assert len(channel.texts[1:]) == len(channel.deleted) == 1


async def test_a_message_that_goes_back_after_its_deletion_is_never_sent(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502")]
    may_send = hold_sends(channel, monkeypatch)
    message_id = await send()
    await until(lambda: is_now(client, message_id, "sending"))
    await client.delete(f"/v1/messages/{message_id}")
    may_send.set()
    # It is queued again; or skipped already, where the deletion came to it at once.
    await settled(service)
    # Else the deletion looks again, sooner than the delivery tries again.
    clock.advance(0.6)
    await settled(service)
    clock.advance(60)
    await settled(service)

    assert await is_now(client, message_id, "skipped")
    assert channel.texts[1:] == []


async def test_a_second_deletion_changes_nothing(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send()
    await settled(service)
    for _ in range(2):
        await client.delete(f"/v1/messages/{message_id}")
    await settled(service)
    before = await message_of(client, message_id)
    again = await client.delete(f"/v1/messages/{message_id}")
    await settled(service)

    assert (again.status_code, again.json()) == (202, before)
    assert len(channel.deleted) == 1


async def test_a_refused_deletion_says_why(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="still there")
    await settled(service)
    channel.refusals = [DeliveryError(Reason.INVALID_MESSAGE, "message can't be deleted")]
    await client.delete(f"/v1/messages/{message_id}")
    await settled(service)

    message = await message_of(client, message_id)
    assert message["error"] == "delete: message can't be deleted"
    assert message["reason"] == "change_refused"
    assert (message["status"], message["deleted_at"]) == ("sent", None)
    assert message["text"] == "still there"


async def test_an_edit_after_a_deletion_is_a_conflict(
    service: Service, client: httpx2.AsyncClient, send: Send, check_error: CheckError
) -> None:
    message_id = await send()
    await settled(service)
    await client.delete(f"/v1/messages/{message_id}")
    await settled(service)
    answer = await client.post(f"/v1/messages/{message_id}/edit", json={"text": "new"})

    assert check_error(answer, 409, "conflict")["error"] == "the message was deleted"


async def test_edit_and_deletion_are_made_in_their_order(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send()
    await settled(service)
    await client.post(f"/v1/messages/{message_id}/edit", json={"text": "new"})
    await client.delete(f"/v1/messages/{message_id}")
    await client.post(f"/v1/messages/{message_id}/edit", json={"text": "too late"})
    await settled(service)

    assert len(channel.deleted) == 1
    assert "too late" not in [edited.message.text for edited in channel.edited[1:]]


async def test_a_channel_that_can_not_delete_says_so(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    check_error: CheckError,
) -> None:
    channel.capabilities = Capabilities(delete=False)
    message_id = await send()
    await settled(service)
    answer = await client.delete(f"/v1/messages/{message_id}")

    fields = check_error(answer, 409, "conflict")
    assert fields["error"] == "this channel can't delete messages that were sent"


@pytest.mark.parametrize("in_doubt", [False, True], ids=["failed", "unknown"])
async def test_what_was_not_sent_can_not_be_deleted(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    check_error: CheckError,
    in_doubt: bool,
) -> None:
    channel.failures = [DeliveryError(Reason.INVALID_MESSAGE, "no", in_doubt=in_doubt)]
    message_id = await send()
    await settled(service)

    check_error(await client.delete(f"/v1/messages/{message_id}"), 409, "conflict")


async def test_a_deletion_of_no_message_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    check_error(await client.delete("/v1/messages/msg_1"), 404, "not_found")


async def test_a_deletion_does_not_wait_behind_an_edit_that_waits(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="old")
    await settled(service)
    channel.refusals = [DeliveryError(Reason.RATE_LIMITED, "later", 120, scope="chat")]
    await client.post(f"/v1/messages/{message_id}/edit", json={"text": "new"})
    await settled(service)
    async with service.db.transaction() as tx:
        # The chat may be written to again; only the edit still waits for its time.
        await tx.execute("UPDATE core_channel_states SET paused_until_ms = 0", {})
    getattr(service, "worker", service).get(OutboundGates)["messenger_a"]._pauses._chats.clear()
    await client.delete(f"/v1/messages/{message_id}")
    await settled(service)

    assert len(channel.deleted) == 1
    assert (await message_of(client, message_id))["deleted_at"] is not None


async def test_an_edit_after_the_deletion_is_refused(
    service: Service,
    client: httpx2.AsyncClient,
    send: Send,
    channel: RecordingChannel,
    clock: FakeClock,
    check_error: CheckError,
) -> None:
    message_id = await send(text="old")
    await settled(service)
    channel.refusals = [WAIT]
    await client.delete(f"/v1/messages/{message_id}")
    edited = await client.post(f"/v1/messages/{message_id}/edit", json={"text": "new"})
    await settled(service)
    clock.advance(61)
    await settled(service)

    assert check_error(edited, 409, "conflict")["error"] == "the message is being deleted"
    assert len(channel.deleted) == 1
    assert channel.edited == []


@pytest.mark.both_databases
async def test_what_could_not_be_deleted_may_be_edited_again(
    service: Service, client: httpx2.AsyncClient, send: Send, channel: RecordingChannel
) -> None:
    message_id = await send(text="old")
    await settled(service)
    channel.refusals = [DeliveryError(Reason.INVALID_MESSAGE, "too old")]
    await client.delete(f"/v1/messages/{message_id}")
    await settled(service)
    edited = await client.post(f"/v1/messages/{message_id}/edit", json={"text": "new"})
    await settled(service)

    assert edited.status_code == 202
    assert [each.message.text for each in channel.edited] == ["new"]
