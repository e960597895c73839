"""What goes out by a channel: messages, edits, recipients of mailings and system messages."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels.buttons.fallbacks import ChannelSender
from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.channels.system_messages.calls import MAX_AGE_S, BotCalls
from msgsvc_core.channels.system_messages.outbox import JOB as CALL
from msgsvc_core.channels.system_messages.outbox import OnComplete
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.content.outgoing import Button, Media, OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.files.media_checks import MediaChecks
from msgsvc_core.jobs.contract import Job, NewJob
from msgsvc_core.mailings.deliveries import RecipientDelivery, RecipientSender, SendContext
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.messages import store
from msgsvc_core.messages.bodies import EditMessageBody
from msgsvc_core.messages.delivery import MessageDelivery
from msgsvc_core.messages.edit_job import SENDING_MS, MessageEditor
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.models import Message
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore
from tests.unit.parts.rows import NOW_MS, a_mailing, insert_message

LANE = lane_of("messenger_a")


async def message_of(core: MemoryCore, message_id: str = "msg_1") -> Message:
    """A message as it is now."""
    async with core.db.read() as tx:
        return await core.messages.find(tx, PROJECT, message_id)


# ---- messages -----------------------------------------------------------------------------------


def deliveries(*numbers: int, to: str = "") -> list[Job]:
    """The jobs of `msg_<number>`, each to `sub_<number>` or to whom they all are."""
    return [
        claimed(
            NewJob(
                "message.deliver",
                {"message_id": f"msg_{number}", "subscriber_id": to or f"sub_{number}"},
                lane=LANE,
                project_id=PROJECT,
            )
        )
        for number in numbers
    ]


async def deliver(core: MemoryCore, jobs: Sequence[Job]) -> JobInTest:
    ctx = JobInTest(core.db)
    await core.service.get(MessageDelivery).deliver(ctx, jobs)
    return ctx


async def arrange(core: MemoryCore, *, status: str = "active", **fields: Any) -> list[Job]:
    """The job of a message to a person of that status."""
    async with core.db.transaction() as tx:
        await core.person(tx, status=status)
        await insert_message(tx, **fields)
    return deliveries(1)


@pytest.fixture
def before_marking(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[Tx], Awaitable[object]]], None]:
    """Has something happen in a transaction after messages were loaded, while their files are checked."""

    def arrange(happen: Callable[[Tx], Awaitable[object]]) -> None:
        async def check_due(_due: object) -> None:
            async with core.db.transaction() as tx:
                await happen(tx)

        monkeypatch.setattr(core.service.get(MessageFiles), "check_due", check_due)

    return arrange


async def test_chats_are_sent_to_side_by_side_and_told_of_together(core: MemoryCore) -> None:
    jobs = deliveries(1, 2)
    async with core.db.transaction() as tx:
        for number in (1, 2):
            await core.person(tx, f"sub_{number}")
            await insert_message(tx, f"msg_{number}", subscriber_id=f"sub_{number}")
    ctx = await deliver(core, jobs)

    channel = core.recording()
    assert {each.chat_id for each in channel.sent} == {"chat 1", "chat 2"}
    # By which a platform drops repeats.
    assert sorted(channel.keys) == ["msg_1", "msg_2"]
    assert core.event_names == ["delivery.success", "delivery.success"]
    assert ctx.completed == jobs


async def test_of_one_chat_no_more_than_one_message_is_marked_at_a_time(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    statuses: list[list[str]] = []

    async def send(_chat_id: str, message: OutgoingMessage) -> str:
        found = [await message_of(core, "msg_1"), await message_of(core, "msg_2")]
        statuses.append([message.text, *(each.status for each in found)])
        return "m1"

    monkeypatch.setattr(core.recording(), "send", send)
    async with core.db.transaction() as tx:
        await core.person(tx)
        await insert_message(tx, "msg_1")
        await insert_message(tx, "msg_2", content=OutgoingMessage("Bye"))
    await deliver(core, deliveries(1, 2, to="sub_1"))

    assert statuses == [["Hi", "sending", "queued"], ["Bye", "sent", "sending"]]


@pytest.mark.parametrize(
    ("fields", "status", "why"),
    [
        ({}, "unsubscribed", "not subscribed"),
        ({"expires_at_ms": NOW_MS}, "active", "expired"),
        ({"permission": "news"}, "active", "the permission 'news' is not granted"),
    ],
)
async def test_what_is_not_due_any_more_is_skipped_without_a_call(
    core: MemoryCore, fields: dict[str, Any], status: str, why: str
) -> None:
    jobs = await arrange(core, status=status, **fields)
    ctx = await deliver(core, jobs)
    message = await message_of(core)

    assert core.recording().keys == []
    assert (message.status, message.error) == ("skipped", why)
    assert ctx.completed == jobs


async def test_what_the_platform_does_not_take_fails_before_it_is_called(core: MemoryCore) -> None:
    core.recording().capabilities = Capabilities(max_text_length=1)
    await deliver(core, await arrange(core))

    assert core.recording().keys == []
    assert (await message_of(core)).status == "failed"
    assert [event.data["reason"] for event in core.emitted] == ["invalid_message"]


async def test_a_chat_that_has_to_wait_goes_back_for_as_long_as_the_platform_said(
    core: MemoryCore,
) -> None:
    refusal = DeliveryError(Reason.RATE_LIMITED, "slow down", 30, scope="chat")
    core.recording().failures = [refusal]
    [job] = await arrange(core)
    ctx = await deliver(core, [job])
    message = await message_of(core)

    assert ctx.rescheduled == [(job, NOW_MS + 30_000)]
    assert (message.status, message.error) == ("queued", "slow down")
    assert core.emitted == []


async def test_a_message_that_was_edited_meanwhile_is_sent_as_it_is_now(
    core: MemoryCore, before_marking: Callable[..., None]
) -> None:
    edit = EditMessageBody(text="Hi again")
    before_marking(lambda tx: core.messages.changes.edit(tx, PROJECT, "msg_1", edit))
    await deliver(core, await arrange(core))

    assert core.recording().texts == ["Hi again"]


async def test_what_another_runner_has_marked_is_left_to_it(
    core: MemoryCore, before_marking: Callable[..., None]
) -> None:
    jobs = await arrange(core)
    message = await message_of(core)
    before_marking(lambda tx: store.mark_sending(tx, [message]))
    ctx = await deliver(core, jobs)

    assert core.recording().keys == []
    assert (ctx.completed, ctx.rescheduled) == ([], [])
    assert (await message_of(core)).status == "sending"


async def test_a_stopped_bot_has_its_jobs_put_back_untouched(core: MemoryCore) -> None:
    jobs = await arrange(core)
    message = await message_of(core)
    core.service.get(OutboundGates).changed("messenger_a", stopped=True)
    ctx = await deliver(core, jobs)

    assert ctx.rescheduled == [(jobs[0], None)]
    assert await message_of(core) == message


# ---- edits --------------------------------------------------------------------------------------

SENT = {"status": "sent", "message_ref": "m1", "shown": OutgoingMessage("Hello")}


def change_job(kind: str) -> Job:
    payload = {"message_id": "msg_1", "subscriber_id": "sub_1", "change": kind}
    return claimed(NewJob("message.change", payload, lane=LANE, project_id=PROJECT))


async def change(
    core: MemoryCore, kind: str, message: dict[str, Any], *, bot: str = "messenger_a"
) -> tuple[Job, JobInTest]:
    """Has a message to a person of that bot edited or deleted."""
    async with core.db.transaction() as tx:
        await core.person(tx, bot=bot)
        await insert_message(tx, **message)
    job, ctx = change_job(kind), JobInTest(core.db)
    await core.service.get(MessageEditor).change(ctx, [job])
    return job, ctx


async def test_an_edit_shows_what_the_message_is_by_now(core: MemoryCore) -> None:
    job, ctx = await change(core, "edit", SENT)
    message = await message_of(core)

    [edited] = core.recording().edited
    assert (edited.message_ref, edited.message.text) == ("m1", "Hi")
    assert (message.shown, message.edited_at_ms) == (None, NOW_MS)
    assert ctx.completed == [job]


@pytest.mark.parametrize(
    "message",
    [
        SENT | {"shown": None},
        SENT | {"deleted_at_ms": NOW_MS},
        {"status": "failed"},
        # It is sent as it is then.
        {"status": "queued"},
    ],
)
async def test_an_edit_that_is_shown_already_or_never_will_be_calls_nobody(
    core: MemoryCore, message: dict[str, Any]
) -> None:
    job, ctx = await change(core, "edit", message)

    assert core.recording().edited == []
    assert (await message_of(core)).edited_at_ms is None
    assert ctx.completed == [job]


async def test_what_is_being_sent_is_looked_at_again_soon(core: MemoryCore) -> None:
    job, ctx = await change(core, "delete", SENT | {"status": "sending"})

    assert ctx.rescheduled == [(job, NOW_MS + SENDING_MS)]


async def test_a_deletion_before_a_retry_keeps_the_message_from_being_sent(
    core: MemoryCore,
) -> None:
    job, ctx = await change(core, "delete", {"status": "queued"})

    assert (await message_of(core)).status == "skipped"
    assert (ctx.completed, core.recording().deleted) == ([job], [])


async def test_a_refused_deletion_is_written_on_the_message_and_who_blocked_the_bot_leaves(
    core: MemoryCore,
) -> None:
    core.recording().refusals = [DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden")]
    job, ctx = await change(core, "delete", SENT)
    message = await message_of(core)

    assert (message.error, message.deleted_at_ms) == ("delete: Forbidden", None)
    async with core.db.read() as tx:
        assert (await core.subscribers.get(tx, PROJECT, "sub_1")).status == "blocked"
    assert ctx.completed == [job]


async def test_what_another_bot_sent_is_out_of_reach(core: MemoryCore) -> None:
    await change(core, "edit", SENT, bot="messenger_b")

    assert (await message_of(core)).error == "edit: the person has gone over to another bot"
    assert core.recording().edited == []


async def test_an_edit_that_is_given_up_is_taken_back_without_the_cause(
    core: MemoryCore, tx: Tx
) -> None:
    await insert_message(tx, **SENT)
    await core.service.get(MessageEditor).settle_dead(tx, change_job("edit"), "/srv/app: disk full")
    message = await core.messages.find(tx, PROJECT, "msg_1")

    assert (message.content.text, message.shown) == ("Hello", None)
    assert message.error == "edit: the service could not do it"


# ---- recipients of mailings ---------------------------------------------------------------------


def recipients_of(core: MemoryCore, files: MessageFiles | None = None) -> RecipientSender:
    return RecipientSender(
        subscribers=core.subscribers,
        limits=MessageLimits.of(LimitSettings(text_length=10)),
        links=LinkTracking(secrets=core.secrets, base_url="https://msgsvc.example"),
        default_lang="en",
        files=files or core.service.get(MessageFiles),
        sender=core.service.get(ChannelSender),
    )


def context_of(core: MemoryCore, text: str = "Hi {{ first_name }}", **mailing: Any) -> SendContext:
    channel = core.channels["messenger_a"]
    return SendContext(
        a_mailing(text=text, **mailing), channel, core.service.get(OutboundGates)[channel.key]
    )


async def recipient(core: MemoryCore, tx: Tx, name: str, number: int = 1) -> RecipientDelivery:
    job = claimed(NewJob("mailing.send", lane=LANE, project_id=PROJECT))
    return RecipientDelivery(job, await core.person(tx, f"sub_{number}", first_name=name))


async def test_each_recipient_is_sent_their_own_text_and_one_who_is_too_long_fails_alone(
    core: MemoryCore, tx: Tx
) -> None:
    recipients, context = recipients_of(core), context_of(core)
    fits, too_long = await recipient(core, tx, "Ann"), await recipient(core, tx, "Anastasia", 2)
    ready = await recipients.prepare(context, [fits, too_long])
    await recipients.send(context, fits)

    channel = core.recording()
    assert (ready, channel.texts) == ([fits], ["Hi Ann"])
    # The same after a crash: no message has an id yet.
    assert channel.keys == ["job_1-sub_1"]
    assert too_long.failure is not None
    assert too_long.failure.reason is Reason.INVALID_MESSAGE


async def test_what_nobody_can_get_fails_for_all(core: MemoryCore, tx: Tx) -> None:
    failure = DeliveryError(Reason.INVALID_MESSAGE, "no such file")
    one, context = await recipient(core, tx, "Ann"), context_of(core)
    context = replace(context, failures={context.mailing.content: failure})

    assert await recipients_of(core).prepare(context, [one]) == []
    assert one.failure is failure


async def test_what_the_channel_refuses_is_not_sent(core: MemoryCore, tx: Tx) -> None:
    core.recording().capabilities = Capabilities(max_text_length=3)
    one = await recipient(core, tx, "Ann")

    assert await recipients_of(core).prepare(context_of(core), [one]) == []
    assert one.failure is not None
    assert "at most 3" in one.failure.text


async def test_a_personal_file_that_is_no_file_fails_its_recipient(
    core: MemoryCore, tx: Tx
) -> None:
    async def inspect(media: Media) -> None:
        if media.url.endswith("/2.png"):
            raise DeliveryError(Reason.INVALID_MESSAGE, "it is empty")

    checks = MediaChecks(clock=core.clock, settings=MediaSettings(), inspect=inspect)
    files = MessageFiles(enabled=True, checks=lambda: checks)
    context = context_of(core, content=PERSONAL_FILE)
    good, bad = await recipient(core, tx, "1"), await recipient(core, tx, "2", 2)

    assert await recipients_of(core, files).prepare(context, [good, bad]) == [good]
    assert bad.failure is not None
    assert bad.failure.text == "it is empty"


PERSONAL_FILE = json.dumps(
    {
        "content": {
            "text": "Hi",
            "media": {"type": "image", "url": "https://a.example/{{ first_name }}.png"},
        },
        "variables": {},
        "silent": False,
    }
)


# ---- system messages ----------------------------------------------------------------------------

TOLD = OnComplete("x.told", {"n": 1})


async def queue(core: MemoryCore, message: OutgoingMessage, *, to: str = "messenger_a") -> None:
    """A bot has something to say, and tells `x.told` what became of it."""
    async with core.db.transaction() as tx:
        await core.outbox.send(tx, to, "c1", message, on_complete=TOLD)


async def jobs_of(core: MemoryCore, name: str) -> list[Job]:
    async with core.db.read() as tx:
        return await core.jobs_named(tx, name)


async def make_calls(core: MemoryCore) -> list[dict[str, Any]]:
    """Makes the calls that are queued; returns what `x.told` is told."""
    await core.service.get(BotCalls).run(JobInTest(core.db), await jobs_of(core, CALL))
    return [told.payload for told in await jobs_of(core, TOLD.job)]


async def test_what_a_bot_says_is_told_with_its_reference(core: MemoryCore) -> None:
    await queue(core, OutgoingMessage("Your code is 1234"))
    told = await make_calls(core)

    assert core.recording().texts == ["Your code is 1234"]
    assert told == [{"n": 1, "outcome": "sent", "error": "", "message_ref": "m1"}]


async def test_what_is_too_late_is_not_said(core: MemoryCore) -> None:
    await queue(core, OutgoingMessage("Your code is 1234"))
    core.clock.advance(MAX_AGE_S)
    [told] = await make_calls(core)

    assert told["outcome"] == "expired"
    assert core.recording().sent == []


async def test_a_channel_that_is_gone_says_nothing(core: MemoryCore) -> None:
    await queue(core, OutgoingMessage("Hi"), to="chn_gone")
    [told] = await make_calls(core)

    assert (told["outcome"], told["message_ref"]) == ("unknown", None)


async def test_what_a_platform_cannot_show_is_said_as_it_can(core: MemoryCore) -> None:
    core.recording().capabilities = Capabilities(
        formats=frozenset({"plain"}), media_types=frozenset(), buttons="links"
    )
    rows = ((Button("Yes", data="~x:1"), Button("Site", url="https://shop.example/")),)
    picture = Media("image", "https://shop.example/1.png")
    await queue(core, OutgoingMessage("<b>Hi</b>", format="html", buttons=rows, media=picture))
    await make_calls(core)

    [sent] = core.recording().sent
    assert sent.message == OutgoingMessage("Hi\n\nSite: https://shop.example/")


async def test_an_edit_where_there_are_none_is_a_new_message(core: MemoryCore) -> None:
    core.recording().capabilities = Capabilities(edit=False)
    async with core.db.transaction() as tx:
        await core.outbox.edit(tx, "messenger_a", "c1", "m0", OutgoingMessage("Done"))
    await make_calls(core)

    assert core.recording().texts == ["Done"]
    assert core.recording().edited == []


async def test_a_dead_call_is_told_without_its_cause(core: MemoryCore) -> None:
    await queue(core, OutgoingMessage("Hi"))
    [job] = await jobs_of(core, CALL)
    async with core.db.transaction() as tx:
        await core.service.get(BotCalls).on_dead(tx, job, "/srv/app: disk full")

    [told] = await jobs_of(core, TOLD.job)
    assert told.payload["error"] == "the service could not deliver it"
