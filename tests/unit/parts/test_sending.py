"""What goes out by a channel: messages, edits, recipients of mailings and system messages, from fakes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels.calls import MAX_AGE_S, BotCalls
from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound import OutboundGates
from msgsvc_core.channels.outbox import BotOutbox, OnComplete
from msgsvc_core.config.sections import MediaSettings
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.content.outgoing import Button, Media, OutgoingMessage
from msgsvc_core.files.media_checks import MediaChecks
from msgsvc_core.jobs.contract import Job, NewJob
from msgsvc_core.mailings.deliveries import RecipientDelivery, RecipientSender, SendContext
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.messages.deliveries import DeliveryLoader
from msgsvc_core.messages.delivery import MessageDelivery
from msgsvc_core.messages.edit_job import SENDING_MS, MessageEditor
from msgsvc_core.messages.files import MessageFiles
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.models import Message
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.outbound import RETRIES, gates_of, no_checks, sender_of
from tests.unit.parts.routed import moves_of
from tests.unit.parts.rows import NOW_MS, a_mailing, a_message, row_of

LANE = lane_of("messenger_a")


class NoBatches:
    """No message is of a batch."""

    async def count(self, *_: object) -> None:
        """Nobody counts."""


def found(*messages: Message) -> Answer:
    return [row_of(message) for message in messages]


def ids(*numbers: int, edited: OutgoingMessage | None = None) -> Answer:
    text = None if edited is None else json.dumps(edited.to_payload())
    return [{"message_id": f"msg_{number}", "edited": text} for number in numbers]


# ---- messages -----------------------------------------------------------------------------------


def delivery_of(core: FakeContext, gates: OutboundGates | None = None) -> MessageDelivery:
    outcomes = MessageOutcomes(
        clock=core.clock,
        events=core.events,
        metrics=core.metrics,
        subscribers=core.subscribers,
        batches=NoBatches(),
        routed=moves_of(core),
    )
    return MessageDelivery(
        clock=core.clock,
        gates=gates or gates_of(core),
        loader=DeliveryLoader(db=core.db, subscribers=core.subscribers),
        files=no_checks(),
        outcomes=outcomes,
        retries=RETRIES,
        sender=sender_of(core),
        preferences=core.subscribers.preferences,
    )


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


async def deliver(core: FakeContext, jobs: Sequence[Job], *answers: Answer) -> FakeJobContext:
    core.db.answers += answers
    ctx = FakeJobContext(core.db)
    await delivery_of(core).deliver(ctx, jobs)
    return ctx


async def test_chats_are_sent_to_side_by_side_and_told_of_together() -> None:
    core, jobs = plugin_context(), deliveries(1, 2)
    core.subscribers.person("sub_1")
    core.subscribers.person("sub_2")
    messages = found(a_message("msg_1"), a_message("msg_2", subscriber_id="sub_2"))
    ctx = await deliver(core, jobs, messages, ids(1, 2), ids(1, 2))

    channel = core.channels.recording("messenger_a")
    assert {each.chat_id for each in channel.sent} == {"chat 1", "chat 2"}
    # By which a platform drops repeats.
    assert sorted(channel.keys) == ["msg_1", "msg_2"]
    assert core.events.names == ["delivery.success", "delivery.success"]
    assert ctx.completed == jobs


async def test_of_one_chat_no_more_than_one_message_is_marked_at_a_time() -> None:
    core, jobs = plugin_context(), deliveries(1, 2, to="sub_1")
    core.subscribers.person("sub_1")
    first, second = a_message("msg_1"), a_message("msg_2", content=OutgoingMessage("Bye"))
    rounds = (found(first, second), ids(1), ids(1), found(second), ids(2), ids(2))
    await deliver(core, jobs, *rounds)

    assert core.channels.recording("messenger_a").texts == ["Hi", "Bye"]
    marked = [params["keys"] for sql, params in core.db.statements if "status = 'sending'," in sql]
    assert [json.loads(keys) for keys in marked] == [[[PROJECT, "msg_1"]], [[PROJECT, "msg_2"]]]


@pytest.mark.parametrize(
    ("fields", "status", "why"),
    [
        ({}, "unsubscribed", "not subscribed"),
        ({"expires_at_ms": NOW_MS}, "active", "expired"),
        ({"permission": "news"}, "active", "the permission 'news' is not granted"),
    ],
)
async def test_what_is_not_due_any_more_is_skipped_without_a_call(
    fields: dict[str, Any], status: str, why: str
) -> None:
    core, jobs = plugin_context(), deliveries(1)
    core.subscribers.person("sub_1", status=status)
    ctx = await deliver(core, jobs, found(a_message(**fields)), ids(1))

    assert core.channels.recording("messenger_a").sent == []
    assert why in json.loads(core.db.statements[1][1]["keys"])[0]
    assert ctx.completed == jobs


async def test_what_the_platform_does_not_take_fails_before_it_is_called() -> None:
    core, jobs = plugin_context(), deliveries(1)
    core.subscribers.person("sub_1")
    core.channels.recording("messenger_a").capabilities = Capabilities(max_text_length=1)
    still = [{"project_id": PROJECT, "message_id": "msg_1", "content": '{"text": "Hi"}'}]
    await deliver(core, jobs, found(a_message()), still, ids(1))

    assert core.channels.recording("messenger_a").keys == []
    assert [event.data["reason"] for event in core.events.emitted] == ["invalid_message"]


async def test_a_chat_that_has_to_wait_goes_back_for_as_long_as_the_platform_said() -> None:
    core, jobs = plugin_context(), deliveries(1)
    core.subscribers.person("sub_1")
    refusal = DeliveryError(Reason.RATE_LIMITED, "slow down", 30, scope="chat")
    core.channels.recording("messenger_a").failures = [refusal]
    ctx = await deliver(core, jobs, found(a_message()), ids(1), 1)

    assert ctx.rescheduled == [(jobs[0], NOW_MS + 30_000)]
    assert "slow down" in json.loads(core.db.statements[-1][1]["keys"])[0]
    assert core.events.emitted == []


async def test_a_message_that_was_edited_meanwhile_is_sent_as_it_is_now() -> None:
    core, jobs = plugin_context(), deliveries(1)
    core.subscribers.person("sub_1")
    edited = ids(1, edited=OutgoingMessage("Hi again"))
    await deliver(core, jobs, found(a_message()), edited, ids(1))

    assert core.channels.recording("messenger_a").texts == ["Hi again"]


async def test_what_another_runner_has_marked_is_left_to_it() -> None:
    core, jobs = plugin_context(), deliveries(1)
    core.subscribers.person("sub_1")
    ctx = await deliver(core, jobs, found(a_message()), ids())

    assert core.channels.recording("messenger_a").sent == []
    assert (ctx.completed, ctx.rescheduled) == ([], [])


async def test_a_stopped_bot_has_its_jobs_put_back_untouched() -> None:
    core, jobs = plugin_context(), deliveries(1)
    gates = gates_of(core)
    gates.changed("messenger_a", stopped=True)
    ctx = FakeJobContext(core.db)
    await delivery_of(core, gates).deliver(ctx, jobs)

    assert ctx.rescheduled == [(jobs[0], None)]
    assert core.db.statements == []


# ---- edits --------------------------------------------------------------------------------------


def editor_of(core: FakeContext) -> MessageEditor:
    return MessageEditor(
        clock=core.clock,
        gates=gates_of(core),
        subscribers=core.subscribers,
        changes=core.messages.changes,
        files=no_checks(),
        retries=RETRIES,
        sender=sender_of(core),
    )


async def change(
    core: FakeContext, kind: str, message: Message, *answers: Answer
) -> tuple[Job, FakeJobContext]:
    core.db.answers += [found(message), *answers]
    core.messages.by_id[message.message_id] = message
    ctx = FakeJobContext(core.db)
    payload = {"message_id": "msg_1", "subscriber_id": "sub_1", "change": kind}
    job = claimed(NewJob("message.change", payload, lane=LANE, project_id=PROJECT))
    await editor_of(core).change(ctx, [job])
    return job, ctx


SENT = a_message(status="sent", message_ref="m1", shown=OutgoingMessage("Hello"))


async def test_an_edit_shows_what_the_message_is_by_now() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1")
    job, ctx = await change(core, "edit", SENT, 1)

    [edited] = core.channels.recording("messenger_a").edited
    assert (edited.message_ref, edited.message.text) == ("m1", "Hi")
    assert ctx.completed == [job]


@pytest.mark.parametrize(
    "message",
    [
        replace(SENT, shown=None),
        replace(SENT, deleted_at_ms=NOW_MS),
        a_message(status="failed"),
        # It is sent as it is then.
        a_message(status="queued"),
    ],
)
async def test_an_edit_that_is_shown_already_or_never_will_be_calls_nobody(
    message: Message,
) -> None:
    core = plugin_context()
    core.subscribers.person("sub_1")
    job, ctx = await change(core, "edit", message)

    assert core.channels.recording("messenger_a").edited == []
    assert ctx.completed == [job]


async def test_what_is_being_sent_is_looked_at_again_soon() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1")
    job, ctx = await change(core, "delete", replace(SENT, status="sending"))

    assert ctx.rescheduled == [(job, NOW_MS + SENDING_MS)]


async def test_a_deletion_before_a_retry_keeps_the_message_from_being_sent() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1")
    job, ctx = await change(core, "delete", a_message(status="queued"))

    assert core.messages.by_id["msg_1"].status == "skipped"
    assert (ctx.completed, core.channels.recording("messenger_a").deleted) == ([job], [])


async def test_a_refused_deletion_is_written_on_the_message_and_who_blocked_the_bot_leaves() -> (
    None
):
    core = plugin_context()
    core.subscribers.person("sub_1")
    blocked = DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden")
    core.channels.recording("messenger_a").refusals = [blocked]
    job, ctx = await change(core, "delete", SENT, 1)

    assert core.db.statements[-1][1]["error"] == "delete: Forbidden"
    assert core.subscribers.by_id[PROJECT, "sub_1"].status == "blocked"
    assert ctx.completed == [job]


async def test_what_another_bot_sent_is_out_of_reach() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1", bot="messenger_b")
    await change(core, "edit", SENT, 1)

    assert "gone over to another bot" in core.db.statements[-1][1]["error"]
    assert core.channels.recording("messenger_a").edited == []


async def test_an_edit_that_is_given_up_is_taken_back_without_the_cause() -> None:
    tx = FakeTx(answers=[found(SENT), 1])
    payload = {"message_id": "msg_1", "subscriber_id": "sub_1", "change": "edit"}
    job = claimed(NewJob("message.change", payload, lane=LANE, project_id=PROJECT))
    await editor_of(plugin_context()).settle_dead(tx, job, "/srv/app: disk full")

    assert tx.statements[-1][1]["error"] == "edit: the service could not do it"


# ---- recipients of mailings ---------------------------------------------------------------------


def recipients_of(core: FakeContext, files: MessageFiles | None = None) -> RecipientSender:
    return RecipientSender(
        subscribers=core.subscribers,
        limits=MessageLimits.of(LimitSettings(text_length=10)),
        links=LinkTracking(secrets=core.secrets, base_url="https://msgsvc.example"),
        default_lang="en",
        files=files or no_checks(),
        sender=sender_of(core),
    )


def context_of(core: FakeContext, text: str = "Hi {{ first_name }}", **more: Any) -> SendContext:
    mailing = a_mailing(text=text)
    channel = core.channels["messenger_a"]
    gate = gates_of(core)[channel.key]
    return SendContext(mailing, channel, gate, **more)


def recipient(core: FakeContext, name: str, number: int = 1) -> RecipientDelivery:
    job = claimed(NewJob("mailing.send", lane=LANE, project_id=PROJECT))
    return RecipientDelivery(job, core.subscribers.person(f"sub_{number}", first_name=name))


async def test_each_recipient_is_sent_their_own_text_and_one_who_is_too_long_fails_alone() -> None:
    core = plugin_context()
    recipients, context = recipients_of(core), context_of(core)
    fits, too_long = recipient(core, "Ann"), recipient(core, "Anastasia", 2)
    ready = await recipients.prepare(context, [fits, too_long])
    await recipients.send(context, fits)

    channel = core.channels.recording("messenger_a")
    assert (ready, channel.texts) == ([fits], ["Hi Ann"])
    # The same after a crash: no message has an id yet.
    assert channel.keys == ["job_1-sub_1"]
    assert too_long.failure is not None
    assert too_long.failure.reason is Reason.INVALID_MESSAGE


async def test_what_nobody_can_get_fails_for_all() -> None:
    core = plugin_context()
    failure = DeliveryError(Reason.INVALID_MESSAGE, "no such file")
    one = recipient(core, "Ann")

    context = context_of(core)
    context = replace(context, failures={context.mailing.content: failure})

    assert await recipients_of(core).prepare(context, [one]) == []
    assert one.failure is failure


async def test_what_the_channel_refuses_is_not_sent() -> None:
    core = plugin_context()
    core.channels.recording("messenger_a").capabilities = Capabilities(max_text_length=3)
    one = recipient(core, "Ann")

    assert await recipients_of(core).prepare(context_of(core), [one]) == []
    assert one.failure is not None
    assert "at most 3" in one.failure.text


async def test_a_personal_file_that_is_no_file_fails_its_recipient() -> None:
    async def inspect(media: Media) -> None:
        if media.url.endswith("/2.png"):
            raise DeliveryError(Reason.INVALID_MESSAGE, "it is empty")

    core = plugin_context()
    checks = MediaChecks(clock=core.clock, settings=MediaSettings(), inspect=inspect)
    mailing = a_mailing(content=PERSONAL_FILE)
    channel = core.channels["messenger_a"]
    context = SendContext(mailing, channel, gates_of(core)[channel.key])
    good, bad = recipient(core, "1"), recipient(core, "2", 2)
    files = MessageFiles(enabled=True, checks=lambda: checks)

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


def calls_of(core: FakeContext) -> BotCalls:
    return BotCalls(
        clock=core.clock,
        jobs=core.jobs,
        outbox=BotOutbox(jobs=core.jobs, secrets=core.secrets),
        gates=gates_of(core),
        sender=sender_of(core),
    )


TOLD = OnComplete("x.told", {"n": 1})


async def queued(core: FakeContext, message: OutgoingMessage, *, to: str = "messenger_a") -> Job:
    """The job of a bot that has something to say, and tells `x.told` what became of it."""
    outbox = BotOutbox(jobs=core.jobs, secrets=core.secrets)
    await outbox.send(FakeTx(), to, "c1", message, on_complete=TOLD)
    return claimed(core.jobs.enqueued.pop(), now_ms=NOW_MS)


async def run_call(core: FakeContext, job: Job) -> dict[str, Any]:
    """What `x.told` is told."""
    await calls_of(core).run(FakeJobContext(core.db), [job])
    [told] = core.jobs.named("x.told")
    return told.payload


async def test_what_a_bot_says_is_told_with_its_reference() -> None:
    core = plugin_context()
    told = await run_call(core, await queued(core, OutgoingMessage("Your code is 1234")))

    assert core.channels.recording("messenger_a").texts == ["Your code is 1234"]
    assert told == {"n": 1, "outcome": "sent", "error": "", "message_ref": "m1"}


async def test_what_is_too_late_is_not_said() -> None:
    core = plugin_context()
    job = await queued(core, OutgoingMessage("Your code is 1234"))
    core.clock.advance(MAX_AGE_S)

    assert (await run_call(core, job))["outcome"] == "expired"
    assert core.channels.recording("messenger_a").sent == []


async def test_a_channel_that_is_gone_says_nothing() -> None:
    core = plugin_context()

    told = await run_call(core, await queued(core, OutgoingMessage("Hi"), to="chn_gone"))
    assert (told["outcome"], told["message_ref"]) == ("unknown", None)


async def test_what_a_platform_cannot_show_is_said_as_it_can() -> None:
    core = plugin_context()
    channel = core.channels.recording("messenger_a")
    channel.capabilities = Capabilities(
        formats=frozenset({"plain"}), media_types=frozenset(), buttons="links"
    )
    rows = ((Button("Yes", data="~x:1"), Button("Site", url="https://shop.example/")),)
    picture = Media("image", "https://shop.example/1.png")
    message = OutgoingMessage("<b>Hi</b>", format="html", buttons=rows, media=picture)
    # The language of the chat is not known.
    core.db.answers.append([])
    await run_call(core, await queued(core, message))

    [sent] = channel.sent
    assert sent.message == OutgoingMessage("Hi\n\nSite: https://shop.example/")


async def test_an_edit_where_there_are_none_is_a_new_message() -> None:
    core = plugin_context()
    core.channels.recording("messenger_a").capabilities = Capabilities(edit=False)
    outbox = BotOutbox(jobs=core.jobs, secrets=core.secrets)
    await outbox.edit(FakeTx(), "messenger_a", "c1", "m0", OutgoingMessage("Done"))
    job = claimed(core.jobs.enqueued.pop(), now_ms=NOW_MS)
    await calls_of(core).run(FakeJobContext(core.db), [job])

    assert core.channels.recording("messenger_a").texts == ["Done"]
    assert core.channels.recording("messenger_a").edited == []


async def test_a_dead_call_is_told_without_its_cause() -> None:
    core = plugin_context()
    job = await queued(core, OutgoingMessage("Hi"))
    await calls_of(core).on_dead(FakeTx(), job, "/srv/app: disk full")

    [told] = core.jobs.named("x.told")
    assert told.payload["error"] == "the service could not deliver it"
