"""Batches of messages, edits, deletions and outcomes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.gates import OutboundBatch, OutboundGates
from msgsvc_core.channels.updates import DeliveryReported
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NORMAL, URGENT, NewJob
from msgsvc_core.kernel.errors import BillingBlocked, Conflict, NotFound, ValidationFailed
from msgsvc_core.messages import reports
from msgsvc_core.messages.batches import counting
from msgsvc_core.messages.batches.counting import BatchCounts
from msgsvc_core.messages.batches.models import Batch
from msgsvc_core.messages.batches.service import Batches
from msgsvc_core.messages.bodies import EditMessageBody, MessageQuery, SendBody
from msgsvc_core.messages.deliveries import Delivery
from msgsvc_core.messages.edits import JOB
from msgsvc_core.messages.fields import MessageStatus
from msgsvc_core.messages.models import FinalStatus
from msgsvc_core.messages.outcomes import DIED, MessageOutcomes
from msgsvc_core.messages.reports import DeliveryReports
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from tests.unit.parts.rows import NOW_MS, a_message, insert_message, row_of


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(limits={"batch_messages": 3, "text_length": 10}) as core:
        yield core


# ---- batches ------------------------------------------------------------------------------------


async def insert_batch(tx: Tx, batch_id: str = "bat_1", **fields: Any) -> Batch:
    counts = dict.fromkeys(("sent", "failed", "skipped"), 0)
    values = {"total": 1, **counts, "created_at_ms": NOW_MS, "finished_at_ms": None, **fields}
    batch = Batch(PROJECT, batch_id, **values)
    await tx.insert("core_batches", row_of(batch))
    return batch


def ended(batch_id: str | None, *statuses: MessageStatus) -> list[FinalStatus]:
    message = a_message(batch_id=batch_id)
    return [FinalStatus(message, status) for status in statuses]


async def counts_of(core: MemoryCore, tx: Tx, batch_id: str = "bat_1") -> dict[str, int]:
    """How many of a batch ended as what, without those of nothing."""
    found = await core.service.get(Batches).find(tx, PROJECT, batch_id)
    counts = {name: getattr(found, name) for name in ("sent", "failed", "unknown", "skipped")}
    return {name: count for name, count in counts.items() if count}


async def test_what_is_unknown_counts_as_failed_and_the_end_of_a_batch_is_told_once(
    core: MemoryCore, tx: Tx
) -> None:
    await insert_batch(tx, "bat_1", total=4)
    await insert_batch(tx, "bat_2", total=3, sent=2)
    counts = core.service.get(BatchCounts)
    await counts.count(tx, [*ended("bat_1", "sent", "unknown", "skipped"), *ended("bat_2", "sent")])
    await counts.count(tx, ended("bat_2", "sent"))

    assert await counts_of(core, tx, "bat_1") == {
        "sent": 1,
        "failed": 1,
        "unknown": 1,
        "skipped": 1,
    }
    assert await counts_of(core, tx, "bat_2") == {"sent": 3}
    assert [(event.name, event.data["batch_id"]) for event in core.emitted] == [
        ("batch.completed", "bat_2")
    ]


async def test_messages_of_no_batch_are_counted_nowhere(core: MemoryCore, tx: Tx) -> None:
    batch = await insert_batch(tx)
    await core.service.get(BatchCounts).count(tx, ended(None, "sent"))

    assert await core.service.get(Batches).find(tx, PROJECT, "bat_1") == batch
    assert core.emitted == []


async def test_what_turns_out_later_is_moved_between_counts_without_an_event(
    core: MemoryCore, tx: Tx
) -> None:
    await insert_batch(tx, total=4, failed=4, unknown=3, finished_at_ms=NOW_MS)
    late = ended("bat_1", "sent", "sent", "failed")
    await core.service.get(BatchCounts).count(tx, [], corrected=late)

    # Two were sent after all, and three are unknown no longer.
    assert await counts_of(core, tx) == {"sent": 2, "failed": 2}
    assert core.emitted == []


async def test_each_message_of_a_batch_is_judged_alone_and_the_good_ones_keep_their_order(
    core: MemoryCore,
) -> None:
    async with core.db.transaction() as tx:
        await core.person(tx)
    good = {"subscriber_id": "sub_1"}
    bodies = [{**good, "text": "1"}, {"subscriber_id": "sub_2", "text": "x"}, {**good, "text": "2"}]
    answer = await core.service.get(Batches).send(PROJECT, bodies)
    async with core.db.read() as tx:
        query = MessageQuery(batch_id=answer.batch_id)
        queued = await core.messages.page(tx, PROJECT, query, ascending=True)

    assert [(each.index, each.code) for each in answer.rejected] == [(1, "subscriber_not_found")]
    assert (answer.accepted, [each.content.text for each in queued]) == (2, ["1", "2"])


async def test_a_batch_of_which_nothing_is_taken_has_ended_and_is_told_of_by_a_job(
    core: MemoryCore,
) -> None:
    answer = await core.service.get(Batches).send(PROJECT, [{"text": "to nobody"}])
    async with core.db.read() as tx:
        batch = await core.service.get(Batches).find(tx, PROJECT, answer.batch_id)
        [job] = await core.jobs_named(tx, counting.JOB)
    ctx = JobInTest(core.db)
    await core.service.get(BatchCounts).complete(ctx, [job])

    assert (batch.total, batch.finished_at_ms) == (0, NOW_MS)
    assert [(event.name, event.data["batch_id"]) for event in core.emitted] == [
        ("batch.completed", answer.batch_id)
    ]
    assert ctx.completed == [job]


class NoCredits:
    """Billing that refuses everything."""

    @hookimpl
    async def check_operation(self, project_id: str, operation: str) -> None:
        raise BillingBlocked


async def test_too_many_messages_or_none_that_is_paid_for_make_no_batch() -> None:
    body = {"subscriber_id": "sub_1", "text": "Hi"}
    for plugins, most, refusal in (
        ([], 3, ValidationFailed),
        ([("billing", NoCredits())], 4, BillingBlocked),
    ):
        async with memory_core(extra_plugins=plugins, limits={"batch_messages": most}) as core:
            async with core.db.transaction() as tx:
                await core.person(tx)
            with pytest.raises(refusal):
                await core.service.get(Batches).send(PROJECT, [body] * 4)
            async with core.db.read() as tx:
                assert await core.pending_jobs(tx) == []
                assert await core.messages.page(tx, PROJECT, MessageQuery()) == []


async def test_a_batch_is_found_by_its_own_project_alone(core: MemoryCore, tx: Tx) -> None:
    batch = await insert_batch(tx)

    assert await core.service.get(Batches).find(tx, PROJECT, "bat_1") == batch
    with pytest.raises(NotFound):
        await core.service.get(Batches).find(tx, "prj_2", "bat_1")


# ---- what may be sent ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"text": "x" * 11}, "text: must be at most 10"),
        ({"text": "Hi", "permission": "news"}, "permission: this project has no permission"),
        ({"text": "Hi", "metadata": {"note": "x" * 4096}}, "metadata: must be at most"),
        ({"text": "Hi", "channel": "messenger_b"}, "is on messenger_a"),
        ({"text": "Hi", "format": "html"}, "format"),
    ],
)
async def test_what_cannot_be_sent_is_refused_by_its_field(
    core: MemoryCore, tx: Tx, fields: dict[str, Any], why: str
) -> None:
    await core.person(tx)
    core.recording().capabilities = Capabilities(formats=frozenset({"plain"}))
    body = SendBody(subscriber_id="sub_1", **fields)

    with pytest.raises(ValidationFailed, match=why):
        await core.messages.prepare(PROJECT, body, tx)


async def test_a_template_is_rendered_when_the_message_is_taken_in_its_readers_language(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx, lang="ru")
    texts = {"en": "Hi", "ru": "Привет"}
    template = CreateTemplateBody.model_validate({"key": "hello", "text": texts})
    await core.templates.create(tx, PROJECT, template)
    body = SendBody(subscriber_id="sub_1", template="hello", silent=True)
    prepared = await core.messages.prepare(PROJECT, body, tx)

    assert (prepared.content.text, prepared.content.silent) == ("Привет", True)
    assert prepared.channel is core.channels["messenger_a"]


async def test_only_the_bot_by_which_a_person_came_may_write_to_them(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx, bot="chn_gone")

    with pytest.raises(Conflict, match="is gone"):
        await core.messages.prepare(PROJECT, SendBody(subscriber_id="sub_1", text="Hi"), tx)


# ---- edits and deletions ------------------------------------------------------------------------

NEW_TEXT = EditMessageBody(text="Bye")


async def test_what_is_still_queued_is_edited_without_a_call(core: MemoryCore, tx: Tx) -> None:
    await insert_message(tx)
    edited = await core.messages.changes.edit(tx, PROJECT, "msg_1", NEW_TEXT)

    assert (edited.content.text, edited.shown, edited.edited_at_ms) == ("Bye", None, NOW_MS)
    assert await core.pending_jobs(tx) == []


async def test_what_was_sent_is_edited_by_a_job_of_its_bot(core: MemoryCore, tx: Tx) -> None:
    sent = await insert_message(tx, status="sent")
    edited = await core.messages.changes.edit(tx, PROJECT, "msg_1", NEW_TEXT)

    # Its reader sees the old text until the job has run.
    assert (edited.content.text, edited.shown) == ("Bye", sent.content)
    [job] = await core.jobs_named(tx, JOB)
    assert (job.lane, job.priority, job.payload["change"]) == (
        lane_of("messenger_a"),
        NORMAL,
        "edit",
    )


async def test_the_same_edit_again_changes_nothing(core: MemoryCore, tx: Tx) -> None:
    sent = await insert_message(tx, status="sent")

    assert (
        await core.messages.changes.edit(tx, PROJECT, "msg_1", EditMessageBody(text="Hi")) == sent
    )
    assert await core.pending_jobs(tx) == []


@pytest.mark.parametrize(
    ("body", "takes", "why"),
    [
        (NEW_TEXT, Capabilities(edit=False), "can't edit"),
        (
            EditMessageBody.model_validate(
                {"media": {"type": "image", "url": "https://a.example/1"}}
            ),
            Capabilities(edit=True, edit_media=False),
            "can't change the file",
        ),
    ],
)
async def test_a_channel_that_cannot_edit_takes_edits_of_what_is_queued_alone(
    core: MemoryCore, tx: Tx, body: EditMessageBody, takes: Capabilities, why: str
) -> None:
    core.recording().capabilities = takes
    sent, queued = await insert_message(tx, status="sent"), await insert_message(tx, "msg_2")
    with pytest.raises(Conflict, match=why):
        await core.messages.changes.edit(tx, PROJECT, "msg_1", body)
    edited = await core.messages.changes.edit(tx, PROJECT, "msg_2", body)

    assert await core.messages.find(tx, PROJECT, "msg_1") == sent
    assert edited.content == body.changed(queued.content)
    assert await core.pending_jobs(tx) == []


async def test_a_message_that_was_never_sent_says_so_when_it_is_edited(
    core: MemoryCore, tx: Tx
) -> None:
    await insert_message(tx, status="failed")

    with pytest.raises(Conflict, match="it is failed"):
        await core.messages.changes.edit(tx, PROJECT, "msg_1", NEW_TEXT)


async def test_what_is_deleted_before_it_is_sent_is_skipped_and_counted(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        await insert_batch(tx)
        await insert_message(tx, batch_id="bat_1")
        deleted = await core.messages.changes.delete(tx, PROJECT, "msg_1")

        assert (deleted.status, deleted.error, deleted.deleted_at_ms) == (
            "skipped",
            "deleted",
            NOW_MS,
        )
        assert await counts_of(core, tx) == {"skipped": 1}
        assert await core.pending_jobs(tx) == []
    labels = {"channel": "messenger_a", "outcome": "skipped", "reason": "cancelled"}
    assert core.metrics.registry.get_sample_value("msgsvc_deliveries_total", labels) == 1


async def test_a_deletion_waits_for_no_edit_and_ends_them(core: MemoryCore, tx: Tx) -> None:
    await insert_message(tx, status="sent")
    await core.messages.changes.delete(tx, PROJECT, "msg_1")

    [job] = await core.jobs_named(tx, JOB)
    assert (job.priority, job.payload["change"]) == (URGENT, "delete")
    with pytest.raises(Conflict, match="being deleted"):
        await core.messages.changes.edit(tx, PROJECT, "msg_1", NEW_TEXT)


@pytest.mark.parametrize(
    ("status", "takes", "why"),
    [
        ("unknown", Capabilities(), "not known whether"),
        ("skipped", Capabilities(), "was not sent"),
        ("sent", Capabilities(delete=False), "can't delete"),
    ],
)
async def test_what_cannot_be_taken_back_says_why(
    core: MemoryCore, tx: Tx, status: str, takes: Capabilities, why: str
) -> None:
    core.recording().capabilities = takes
    await insert_message(tx, status=status)

    with pytest.raises(Conflict, match=why):
        await core.messages.changes.delete(tx, PROJECT, "msg_1")


async def test_a_second_deletion_changes_nothing(core: MemoryCore, tx: Tx) -> None:
    gone = await insert_message(tx, status="sent", deleted_at_ms=NOW_MS)

    assert await core.messages.changes.delete(tx, PROJECT, "msg_1") == gone
    assert await core.pending_jobs(tx) == []


async def test_blanking_skips_what_is_queued_and_says_how_many_are_on_their_way(
    core: MemoryCore, tx: Tx
) -> None:
    await insert_batch(tx, total=2)
    await insert_message(tx, "msg_1", batch_id="bat_1")
    await insert_message(tx, "msg_2", batch_id="bat_1", status="sending")
    left = await core.messages.changes.blank(tx, PROJECT, ["msg_1", "msg_2"])
    found = await core.messages.get_many(tx, PROJECT, ["msg_1", "msg_2"])

    assert (left, await counts_of(core, tx)) == (1, {"skipped": 1})
    assert {key: (each.status, each.content.text) for key, each in found.items()} == {
        "msg_1": ("skipped", ""),
        "msg_2": ("sending", "Hi"),
    }


# ---- outcomes -----------------------------------------------------------------------------------


async def delivery(
    core: MemoryCore,
    tx: Tx,
    number: int,
    failure: DeliveryError | None = None,
    *,
    is_known: bool = True,
    **fields: object,
) -> Delivery:
    """An attempt to send `msg_<number>` to `sub_<number>`."""
    person = await core.person(tx, f"sub_{number}") if is_known else None
    fields = {"subscriber_id": f"sub_{number}", **fields}
    message = await insert_message(tx, f"msg_{number}", **fields)
    made = Delivery(claimed(NewJob("message.deliver", project_id=PROJECT)), message, person)
    made.failure, made.message_ref = failure, None if failure else f"m{number}"
    return made


async def test_outcomes_are_told_and_who_blocked_the_bot_is_unsubscribed(
    core: MemoryCore, tx: Tx
) -> None:
    blocked = DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden")
    sent, lost = await delivery(core, tx, 1), await delivery(core, tx, 2, blocked)
    statuses = await core.service.get(MessageOutcomes).settle(tx, [sent, lost])
    found = await core.messages.get_many(tx, PROJECT, ["msg_1", "msg_2"])

    assert [(each.status, each.reason, each.ref) for each in statuses] == [
        ("sent", None, "m1"),
        ("failed", "user_blocked_bot", None),
    ]
    assert [(each.status, each.reason, each.message_ref) for each in found.values()] == [
        ("sent", None, "m1"),
        ("failed", "user_blocked_bot", None),
    ]
    assert core.event_names == ["delivery.success", "delivery.failed", "subscription.deleted"]
    assert core.emitted[1].data["should_unsubscribe"] is True
    assert (await core.subscribers.get(tx, PROJECT, "sub_2")).status == "blocked"


async def test_of_a_message_that_is_gone_nothing_is_told(core: MemoryCore, tx: Tx) -> None:
    job = claimed(NewJob("message.deliver", project_id=PROJECT))
    gone = Delivery(job, a_message(), await core.person(tx))

    assert await core.service.get(MessageOutcomes).settle(tx, [gone]) == []
    assert core.emitted == []


async def test_a_message_that_has_ended_keeps_its_outcome(core: MemoryCore, tx: Tx) -> None:
    ended = await delivery(core, tx, 1, status="skipped", error="deleted")

    assert await core.service.get(MessageOutcomes).settle(tx, [ended]) == []
    assert await core.messages.find(tx, PROJECT, "msg_1") == ended.message
    assert core.emitted == []


async def test_what_may_have_arrived_is_unknown_and_has_no_flags(core: MemoryCore, tx: Tx) -> None:
    lost = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "connection lost", in_doubt=True)
    await core.service.get(MessageOutcomes).settle(tx, [await delivery(core, tx, 1, lost)])
    told = core.emitted[0].data

    assert (await core.messages.find(tx, PROJECT, "msg_1")).status == "unknown"
    assert (told["status"], told["reason"]) == ("unknown", "unknown")
    assert (told["retryable"], told["should_unsubscribe"]) == (None, None)


DELIVER = claimed(NewJob("message.deliver", {"message_id": "msg_1"}, project_id=PROJECT))


@pytest.mark.parametrize(
    ("stood", "status", "counts"),
    [
        ("sending", "unknown", {"failed": 1, "unknown": 1}),
        ("queued", "failed", {"failed": 1}),
    ],
)
async def test_what_a_dead_job_leaves_is_ended_without_telling_what_broke(
    core: MemoryCore, tx: Tx, stood: str, status: str, counts: dict[str, int]
) -> None:
    await insert_batch(tx)
    await delivery(core, tx, 1, status=stood, batch_id="bat_1")
    await core.service.get(MessageOutcomes).settle_dead(tx, DELIVER, "/etc/msgsvc: no such file")
    ended = await core.messages.find(tx, PROJECT, "msg_1")

    assert (ended.status, await counts_of(core, tx)) == (status, counts)
    assert core.event_names == ["delivery.failed", "batch.completed"]
    assert core.emitted[0].data["status"] == status
    assert "no such file" not in f"{ended.error} {core.emitted[0].data['error']}"


@pytest.mark.parametrize("stood", ["sending", "queued"])
async def test_a_message_that_is_withdrawn_may_have_been_sent(
    core: MemoryCore, tx: Tx, stood: str
) -> None:
    await insert_batch(tx)
    await delivery(core, tx, 1, status=stood, batch_id="bat_1")
    await core.service.get(MessageOutcomes).settle_withdrawn(tx, DELIVER)

    assert (await core.messages.find(tx, PROJECT, "msg_1")).status == "unknown"
    assert await counts_of(core, tx) == {"failed": 1, "unknown": 1}
    assert core.emitted[0].data["status"] == "unknown"
    assert "restored from a backup" in core.emitted[0].data["error"]


async def test_a_late_answer_tells_of_what_was_sent_alone(core: MemoryCore, tx: Tx) -> None:
    refused = DeliveryError(Reason.INVALID_MESSAGE, "too long")
    late = [
        await delivery(core, tx, 1, status="unknown"),
        await delivery(core, tx, 2, refused, status="unknown"),
        # Its outcome is known.
        await delivery(core, tx, 3, status="failed"),
    ]
    corrected = await core.service.get(MessageOutcomes).correct(tx, late)
    found = await core.messages.get_many(tx, PROJECT, ["msg_1", "msg_2", "msg_3"])

    assert [(each.message.message_id, each.status) for each in corrected] == [
        ("msg_1", "sent"),
        ("msg_2", "failed"),
    ]
    assert [each.status for each in found.values()] == ["sent", "failed", "failed"]
    # That it failed was told when it became unknown.
    assert core.event_names == ["delivery.success"]


async def test_what_is_not_sent_is_skipped_or_in_doubt_where_another_process_died(
    core: MemoryCore, tx: Tx
) -> None:
    channel = core.channels["messenger_a"]
    gate = core.service.get(OutboundGates)[channel.key]
    batch_of_lane = OutboundBatch(JobInTest(core.db), channel, gate, [], repeatable=False)
    unsent = [
        await delivery(core, tx, 1, status="sending"),
        await delivery(core, tx, 2, expires_at_ms=NOW_MS),
        await delivery(core, tx, 3, is_known=False),
    ]
    statuses = await core.service.get(MessageOutcomes).settle_unsent(tx, batch_of_lane, unsent)
    found = await core.messages.get_many(tx, PROJECT, ["msg_1", "msg_2", "msg_3"])

    ends = [
        ("unknown", "unknown", DIED),
        ("skipped", "expired", "expired"),
        ("skipped", "no_subscriber", "not subscribed"),
    ]
    assert [(each.status, each.reason, each.error) for each in statuses] == ends
    assert [(each.status, each.reason, each.error) for each in found.values()] == ends
    assert core.event_names == ["delivery.failed"] * 3


# ---- reports ------------------------------------------------------------------------------------


async def test_what_was_read_is_recorded_as_arrived_too(core: MemoryCore, tx: Tx) -> None:
    await insert_message(tx, status="sent", message_ref="m1")
    report = DeliveryReported(update_id="1", message_ref="m1", state="read")
    await core.service.get(DeliveryReports).record(tx, "messenger_a", report)
    message = await core.messages.find(tx, PROJECT, "msg_1")

    assert (message.delivered_at_ms, message.read_at_ms) == (NOW_MS, NOW_MS)
    assert core.event_names == ["delivery.delivered", "delivery.read"]


async def test_a_report_of_an_unknown_message_is_tried_again_by_a_job(
    core: MemoryCore, tx: Tx
) -> None:
    report = DeliveryReported(update_id="1", message_ref="m1", state="delivered")
    await core.service.get(DeliveryReports).record(tx, "messenger_a", report)

    [job] = await core.jobs_named(tx, reports.JOB)
    assert (job.payload["message_ref"], job.payload["state"]) == ("m1", "delivered")
    assert job.run_at_ms == NOW_MS + 1000


async def test_a_failure_that_is_reported_later_is_counted_once(core: MemoryCore, tx: Tx) -> None:
    await insert_batch(tx, total=2, sent=2, finished_at_ms=NOW_MS)
    await insert_message(tx, status="sent", message_ref="m1", batch_id="bat_1")
    report = DeliveryReported(update_id="1", message_ref="m1", state="failed", detail="no phone")
    for _ in range(2):
        await core.service.get(DeliveryReports).record(tx, "messenger_a", report)
    message = await core.messages.find(tx, PROJECT, "msg_1")

    assert (message.status, message.error) == ("failed", "no phone")
    assert await counts_of(core, tx) == {"sent": 1, "failed": 1}
    assert core.event_names == ["delivery.failed"]


async def test_a_message_that_arrived_cannot_be_reported_as_failed(
    core: MemoryCore, tx: Tx
) -> None:
    arrived = await insert_message(tx, status="sent", message_ref="m1", delivered_at_ms=NOW_MS)
    report = DeliveryReported(update_id="1", message_ref="m1", state="failed", detail="no phone")
    await core.service.get(DeliveryReports).record(tx, "messenger_a", report)

    assert await core.messages.find(tx, PROJECT, "msg_1") == arrived
    assert core.emitted == []
