"""What a bot says by itself: sealed at rest, adapted to the messenger, tried again when it must."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_core.channels import Button, Capabilities, DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.system_messages.outbox import OnComplete
from msgsvc_core.jobs import Job, JobContext, JobSpec
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory

SECRET = OutgoingMessage(
    "Back to the site", buttons=((Button("Back", url="https://shop.example/?code=c0de"),),)
)


async def say(service: Service, message: OutgoingMessage, edit: str | None = None) -> None:
    async with service.db.transaction() as tx:
        if edit is None:
            await service.outbox.send(tx, "messenger_a", "chat-1", message)
        else:
            await service.outbox.edit(tx, "messenger_a", "chat-1", edit, message)


async def test_a_waiting_call_holds_nothing_readable(make_service: ServiceFactory) -> None:
    service = await make_service(jobs={"runner": "none"})

    await say(service, SECRET)

    async with service.db.read() as tx:
        payload = await tx.fetch_val("SELECT payload FROM core_jobs WHERE name = 'channel.call'")
    assert "c0de" not in payload
    assert "Back" not in payload
    assert json.loads(payload)["chat_id"] == "chat-1"


async def test_an_edit_becomes_a_new_message_where_there_is_no_editing(
    service: Service, channel: RecordingChannel
) -> None:
    channel.capabilities = Capabilities(edit=False)

    await say(service, OutgoingMessage("Done"), edit="m1")
    await settled(service)

    assert (channel.texts, channel.edited) == (["Done"], [])


async def test_buttons_are_left_out_where_there_are_none(
    service: Service, channel: RecordingChannel
) -> None:
    channel.capabilities = Capabilities(buttons="links")

    await say(service, SECRET)
    await settled(service)

    assert channel.sent[0].message.buttons == ()


async def test_the_calls_of_a_chat_keep_their_order_over_a_pause(
    service: Service, channel: RecordingChannel, clock: FakeClock
) -> None:
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=3)]
    async with service.db.transaction() as tx:
        for text in ("one", "two", "three"):
            await service.outbox.send(tx, "messenger_a", "chat-1", OutgoingMessage(text))
    await settled(service)
    clock.advance(3.1)
    await settled(service)

    assert channel.texts == ["one", "two", "three"]


@pytest.mark.parametrize("reason", [Reason.CHAT_NOT_FOUND, Reason.INVALID_MESSAGE])
async def test_a_call_that_can_not_succeed_is_given_up(
    service: Service, channel: RecordingChannel, reason: Reason
) -> None:
    channel.failures = [DeliveryError(reason, "no")]

    await say(service, OutgoingMessage("one"))
    await say(service, OutgoingMessage("two"))
    await settled(service)

    assert channel.texts == ["two"]


async def told(service: Service, *, expires_in_s: float = 60) -> dict[str, Any]:
    """What is told of one call, made after the failures that the channel was given."""
    async with service.db.transaction() as tx:
        await service.outbox.send(
            tx,
            "messenger_a",
            "chat-1",
            OutgoingMessage("Your code"),
            expires_at_ms=service.clock.now_ms() + round(expires_in_s * 1000),
            on_complete=OnComplete("teller.told", {"of": "otp_1"}),
        )
    await settled(service)
    [payload] = TOLD
    return payload


TOLD: list[dict[str, Any]] = []


class Teller:
    """A plugin that hears how a call ended."""

    @staticmethod
    @hookimpl
    def register_jobs() -> Sequence[JobSpec]:
        async def hear(ctx: JobContext, jobs: Sequence[Job]) -> None:
            TOLD.extend(job.payload for job in jobs)

        TOLD.clear()
        return [JobSpec("teller.told", hear)]


@pytest.mark.parametrize(
    ("failure", "outcome"),
    [
        (None, {"outcome": "sent", "error": "", "message_ref": "m1"}),
        (
            DeliveryError(Reason.USER_BLOCKED_BOT, "gone"),
            {"outcome": "user_blocked_bot", "error": "gone", "message_ref": None},
        ),
        (
            RuntimeError("broken"),
            {"outcome": "unknown", "error": "RuntimeError", "message_ref": None},
        ),
    ],
)
async def test_who_asked_for_it_is_told_how_a_call_ended(
    make_service: ServiceFactory, failure: Exception | None, outcome: dict[str, Any]
) -> None:
    service = await make_service(extra_plugins=[("teller", Teller)])
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    if failure is not None:
        channel.failures = [failure]

    assert await told(service) == {"of": "otp_1", **outcome}


async def test_a_call_is_not_made_after_its_time(make_service: ServiceFactory) -> None:
    service = await make_service(extra_plugins=[("teller", Teller)])
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)

    assert (await told(service, expires_in_s=0))["outcome"] == "expired"
    assert channel.sent == []
