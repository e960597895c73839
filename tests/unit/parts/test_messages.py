"""Batches of messages, edits, deletions and outcomes: rules built from fakes."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound import OutboundBatch
from msgsvc_core.channels.updates import DeliveryReported
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.db import Tx, WriteBatch
from msgsvc_core.jobs.contract import NORMAL, URGENT, NewJob
from msgsvc_core.kernel.errors import BillingBlocked, Conflict, NotFound, ValidationFailed
from msgsvc_core.messages import reports
from msgsvc_core.messages.batches import counting
from msgsvc_core.messages.batches.counting import BatchCounts
from msgsvc_core.messages.batches.models import Batch
from msgsvc_core.messages.batches.service import Batches
from msgsvc_core.messages.bodies import EditBody, SendBody
from msgsvc_core.messages.counting import SentCounter
from msgsvc_core.messages.deliveries import Delivery
from msgsvc_core.messages.edits import JOB, MessageChanges
from msgsvc_core.messages.fields import MessageStatus
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.models import FinalStatus, Message
from msgsvc_core.messages.outcomes import DIED, MessageOutcomes
from msgsvc_core.messages.reports import DeliveryReports
from msgsvc_core.messages.route_progress import RouteProgress
from msgsvc_core.messages.templates.models import CreateTemplateBody
from msgsvc_core.messages.validation import MessageValidation
from msgsvc_devkit import FakeClock, FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeEvents, FakeJobContext, FakeTx, claimed
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.outbound import gates_of
from tests.unit.parts.routed import moves_of
from tests.unit.parts.rows import NOW_MS, a_message, row_of

LIMITS = MessageLimits.of(LimitSettings())


class Counted:
    """An `OutcomeCounter` that keeps what it was told."""

    def __init__(self) -> None:
        self.ended: list[FinalStatus] = []
        self.corrected: list[FinalStatus] = []

    async def count(
        self, tx: Tx, ended: Sequence[FinalStatus], corrected: Sequence[FinalStatus] = ()
    ) -> None:
        self.ended += ended
        self.corrected += corrected


# ---- batches ------------------------------------------------------------------------------------


def batch(batch_id: str = "bat_1", **fields: Any) -> Batch:
    counts = dict.fromkeys(("sent", "failed", "skipped"), 0)
    values: dict[str, Any] = {
        "total": 3,
        **counts,
        "created_at_ms": NOW_MS,
        "finished_at_ms": None,
        **fields,
    }
    return Batch(PROJECT, batch_id, **values)


def ended(batch_id: str | None, *statuses: MessageStatus) -> list[FinalStatus]:
    message = a_message(batch_id=batch_id)
    return [FinalStatus(message, status) for status in statuses]


async def test_what_is_unknown_counts_as_failed_and_the_end_of_a_batch_is_told_once() -> None:
    events = FakeEvents()
    counts = BatchCounts(clock=FakeClock(), events=events)
    still_open, over = batch("bat_1", sent=1), batch("bat_2", sent=3, finished_at_ms=NOW_MS)
    tx = FakeTx(answers=[[row_of(still_open), row_of(over)]])
    await counts.count(tx, [*ended("bat_1", "sent", "unknown", "skipped"), *ended("bat_2", "sent")])

    counted = json.loads(tx.statements[0][1]["keys"])
    # Sent, failed, skipped, unknown.
    assert counted == [
        [PROJECT, "bat_1", "1", "1", "1", "1"],
        [PROJECT, "bat_2", "1", "0", "0", "0"],
    ]
    assert [(event.name, event.data["batch_id"]) for event in events.emitted] == [
        ("batch.completed", "bat_2")
    ]


async def test_messages_of_no_batch_are_counted_nowhere() -> None:
    tx = FakeTx()
    await BatchCounts(clock=FakeClock(), events=FakeEvents()).count(tx, ended(None, "sent"))

    assert tx.statements == []


async def test_what_turns_out_later_is_moved_between_counts_without_an_event() -> None:
    events, tx = FakeEvents(), FakeTx(answers=[1])
    counts = BatchCounts(clock=FakeClock(), events=events)
    await counts.count(tx, [], corrected=ended("bat_1", "sent", "sent", "failed"))

    # Two were sent after all, and three are unknown no longer.
    assert json.loads(tx.statements[0][1]["keys"]) == [[PROJECT, "bat_1", "2", "3"]]
    assert events.emitted == []


async def test_a_batch_of_which_nothing_was_taken_is_told_of_by_a_job() -> None:
    core = plugin_context()
    core.db.answers.append([row_of(batch(total=0, finished_at_ms=NOW_MS))])
    ctx = FakeJobContext(core.db)
    job = claimed(NewJob(counting.JOB, {"batch_id": "bat_1"}, project_id=PROJECT))
    await BatchCounts(clock=core.clock, events=core.events).complete(ctx, [job])

    assert core.events.names == ["batch.completed"]
    assert ctx.completed == [job]


def batches_of(core: FakeContext, most: int = 3) -> Batches:
    return Batches(
        clock=core.clock,
        db=core.db,
        jobs=core.jobs,
        billing=core.billing,
        messages=core.messages,
        most=most,
    )


async def test_each_message_of_a_batch_is_judged_alone_and_the_good_ones_keep_their_order() -> None:
    core, unit = plugin_context(), WriteBatch()
    core.subscribers.person()
    good = {"subscriber_id": "sub_1"}
    bodies = [{**good, "text": "1"}, {"subscriber_id": "sub_2", "text": "x"}, {**good, "text": "2"}]
    answer = await batches_of(core).add(unit, PROJECT, bodies)

    assert [(each.index, each.code) for each in answer.rejected] == [(1, "subscriber_not_found")]
    assert (answer.accepted, core.messages.texts) == (2, ["1", "2"])
    assert {each.batch_id for each in core.messages.by_id.values()} == {answer.batch_id}


async def test_a_batch_of_which_nothing_is_taken_has_ended() -> None:
    core, unit = plugin_context(), WriteBatch()
    answer = await batches_of(core).add(unit, PROJECT, [{"text": "to nobody"}])

    [((table, columns), values)] = unit.rows
    row = dict(zip(columns, values, strict=True))
    assert (table, row["total"], row["finished_at_ms"]) == ("core_batches", 0, NOW_MS)
    assert [job.payload for job in core.jobs.named(counting.JOB)] == [{"batch_id": answer.batch_id}]


async def test_too_many_messages_or_none_that_is_paid_for_make_no_batch() -> None:
    core = plugin_context()
    core.subscribers.person()
    body = {"subscriber_id": "sub_1", "text": "Hi"}
    with pytest.raises(ValidationFailed, match="at most 3"):
        await batches_of(core).send(PROJECT, [body] * 4)
    core.billing.refused.add(PROJECT)
    with pytest.raises(BillingBlocked):
        await batches_of(core).send(PROJECT, [body])

    assert core.db.commits == 0


async def test_a_batch_is_found_by_its_own_project_alone() -> None:
    batches = batches_of(plugin_context())

    assert await batches.find(FakeTx(answers=[[row_of(batch())]]), PROJECT, "bat_1") == batch()
    with pytest.raises(NotFound):
        await batches.find(FakeTx(answers=[[]]), PROJECT, "bat_1")


# ---- what may be sent ---------------------------------------------------------------------------


def validation_of(core: FakeContext) -> MessageValidation:
    return MessageValidation(
        db=core.db,
        channels=core.channels,
        subscribers=core.subscribers,
        permissions=core.permissions,
        templates=core.templates,
        limits=MessageLimits.of(LimitSettings(text_length=10)),
        routes=core.routes,
        clock=core.clock,
    )


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
    fields: dict[str, Any], why: str
) -> None:
    core = plugin_context()
    core.subscribers.person()
    core.channels.recording("messenger_a").capabilities = Capabilities(formats=frozenset({"plain"}))
    body = SendBody(subscriber_id="sub_1", **fields)

    with pytest.raises(ValidationFailed, match=why):
        await validation_of(core).judge(PROJECT, body)


async def test_a_template_is_rendered_when_the_message_is_taken_in_its_readers_language() -> None:
    core, tx = plugin_context(), FakeTx()
    core.subscribers.person(lang="ru")
    texts = {"en": "Hi", "ru": "Привет"}
    template = CreateTemplateBody.model_validate({"key": "hello", "text": texts})
    await core.templates.create(tx, PROJECT, template)
    body = SendBody(subscriber_id="sub_1", template="hello", silent=True)
    judged = await validation_of(core).judge(PROJECT, body)

    assert (judged.content.text, judged.content.silent) == ("Привет", True)
    assert judged.channel is core.channels["messenger_a"]


async def test_only_the_bot_by_which_a_person_came_may_write_to_them() -> None:
    core = plugin_context()
    core.subscribers.person(bot="chn_gone")

    with pytest.raises(Conflict, match="is gone"):
        await validation_of(core).judge(PROJECT, SendBody(subscriber_id="sub_1", text="Hi"))


# ---- edits and deletions ------------------------------------------------------------------------


def changes_of(core: FakeContext, counted: Counted | None = None) -> MessageChanges:
    return MessageChanges(
        clock=core.clock,
        jobs=core.jobs,
        metrics=core.metrics,
        channels=core.channels,
        batches=counted or Counted(),
        limits=LIMITS,
    )


def found(*messages: Message) -> list[dict[str, object]]:
    return [row_of(message) for message in messages]


NEW_TEXT = EditBody(text="Bye")


async def test_what_is_still_queued_is_edited_without_a_call() -> None:
    core, message = plugin_context(), a_message()
    tx = FakeTx(answers=[found(message), [{"status": "queued"}], found(message)])
    await changes_of(core).edit(tx, PROJECT, "msg_1", NEW_TEXT)

    assert json.loads(tx.statements[1][1]["content"])["text"] == "Bye"
    assert core.jobs.enqueued == []


async def test_what_was_sent_is_edited_by_a_job_of_its_bot() -> None:
    core, message = plugin_context(), a_message(status="sent")
    tx = FakeTx(answers=[found(message), [{"status": "sent"}], found(message)])
    await changes_of(core).edit(tx, PROJECT, "msg_1", NEW_TEXT)

    [job] = core.jobs.named(JOB)
    assert (job.lane, job.priority, job.payload["change"]) == (
        lane_of("messenger_a"),
        NORMAL,
        "edit",
    )


async def test_the_same_edit_again_changes_nothing() -> None:
    core = plugin_context()
    tx = FakeTx(answers=[found(a_message(status="sent"))])
    await changes_of(core).edit(tx, PROJECT, "msg_1", EditBody(text="Hi"))

    assert core.jobs.enqueued == []


@pytest.mark.parametrize(
    ("body", "takes", "why"),
    [
        (NEW_TEXT, Capabilities(edit=False), "can't edit"),
        (
            EditBody.model_validate({"media": {"type": "image", "url": "https://a.example/1"}}),
            Capabilities(edit=True, edit_media=False),
            "can't change the file",
        ),
    ],
)
async def test_a_channel_that_cannot_edit_takes_edits_of_what_is_queued_alone(
    body: EditBody, takes: Capabilities, why: str
) -> None:
    core, sent = plugin_context(), a_message(status="sent")
    core.channels.recording("messenger_a").capabilities = takes
    tx = FakeTx(answers=[found(sent), [], found(sent)])
    with pytest.raises(Conflict, match=why):
        await changes_of(core).edit(tx, PROJECT, "msg_1", body)

    assert json.loads(tx.statements[1][1]["statuses"]) == ["queued"]


async def test_a_message_that_was_never_sent_says_so_when_it_is_edited() -> None:
    failed = a_message(status="failed")
    tx = FakeTx(answers=[found(failed), [], found(failed)])

    with pytest.raises(Conflict, match="it is failed"):
        await changes_of(plugin_context()).edit(tx, PROJECT, "msg_1", NEW_TEXT)


async def test_what_is_deleted_before_it_is_sent_is_skipped_and_counted() -> None:
    core, counted, message = plugin_context(), Counted(), a_message()
    tx = FakeTx(answers=[found(message), 1, [{"message_id": "msg_1"}], found(message)])
    await changes_of(core, counted).delete(tx, PROJECT, "msg_1")
    tx.commit()

    assert [(each.status, each.error) for each in counted.ended] == [("skipped", "deleted")]
    labels = {"channel": "messenger_a", "outcome": "skipped", "reason": ""}
    assert core.metrics.registry.get_sample_value("msgsvc_deliveries_total", labels) == 1
    assert core.jobs.enqueued == []


async def test_a_deletion_waits_for_no_edit_and_ends_them() -> None:
    core, sent = plugin_context(), a_message(status="sent")
    await changes_of(core).delete(FakeTx(answers=[found(sent), 0, found(sent)]), PROJECT, "msg_1")

    [job] = core.jobs.named(JOB)
    assert (job.priority, job.payload["change"]) == (URGENT, "delete")
    with pytest.raises(Conflict, match="being deleted"):
        await changes_of(core).edit(FakeTx(answers=[found(sent)]), PROJECT, "msg_1", NEW_TEXT)


@pytest.mark.parametrize(
    ("status", "takes", "why"),
    [
        ("unknown", Capabilities(), "not known whether"),
        ("skipped", Capabilities(), "was not sent"),
        ("sent", Capabilities(delete=False), "can't delete"),
    ],
)
async def test_what_cannot_be_taken_back_says_why(
    status: str, takes: Capabilities, why: str
) -> None:
    core = plugin_context()
    core.channels.recording("messenger_a").capabilities = takes
    tx = FakeTx(answers=[found(a_message(status=status)), 0])

    with pytest.raises(Conflict, match=why):
        await changes_of(core).delete(tx, PROJECT, "msg_1")


async def test_a_second_deletion_changes_nothing() -> None:
    core, gone = plugin_context(), a_message(status="sent", deleted_at_ms=NOW_MS)

    assert await changes_of(core).delete(FakeTx(answers=[found(gone)]), PROJECT, "msg_1") == gone
    assert core.jobs.enqueued == []


async def test_blanking_skips_what_is_queued_and_says_how_many_are_on_their_way() -> None:
    core, counted = plugin_context(), Counted()
    queued, sending = a_message("msg_1"), a_message("msg_2", status="sending")
    skipped = a_message("msg_1", status="skipped")
    answers: list[Answer] = [
        found(queued, sending),
        1,
        [{"message_id": "msg_1"}],
        1,
        found(skipped, sending),
    ]
    left = await changes_of(core, counted).blank(
        FakeTx(answers=answers), PROJECT, ["msg_1", "msg_2"]
    )

    assert (left, [each.message.message_id for each in counted.ended]) == (1, ["msg_1"])


# ---- outcomes -----------------------------------------------------------------------------------


def outcomes_of(core: FakeContext, counted: Counted | None = None) -> MessageOutcomes:
    return MessageOutcomes(
        clock=core.clock,
        events=core.events,
        metrics=core.metrics,
        subscribers=core.subscribers,
        batches=counted or Counted(),
        routed=moves_of(core),
    )


def delivery(
    core: FakeContext,
    number: int,
    failure: DeliveryError | None = None,
    *,
    is_known: bool = True,
    **fields: object,
) -> Delivery:
    """An attempt to send `msg_<number>` to `sub_<number>`."""
    message = a_message(f"msg_{number}", subscriber_id=f"sub_{number}", **fields)
    person = core.subscribers.person(f"sub_{number}") if is_known else None
    made = Delivery(claimed(NewJob("message.deliver", project_id=PROJECT)), message, person)
    made.failure, made.message_ref = failure, None if failure else f"m{number}"
    return made


def ids(*numbers: int) -> list[dict[str, str]]:
    return [{"message_id": f"msg_{number}"} for number in numbers]


async def test_outcomes_are_told_and_who_blocked_the_bot_is_unsubscribed() -> None:
    core = plugin_context()
    blocked = DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden")
    sent, lost = delivery(core, 1), delivery(core, 2, blocked)
    statuses = await outcomes_of(core).settle(FakeTx(answers=[ids(1, 2)]), [sent, lost])

    assert [(each.status, each.reason, each.ref) for each in statuses] == [
        ("sent", None, "m1"),
        ("failed", "user_blocked_bot", None),
    ]
    assert core.events.names == ["delivery.success", "delivery.failed", "subscription.deleted"]
    assert core.events.emitted[1].data["should_unsubscribe"] is True
    assert core.subscribers.by_id[PROJECT, "sub_2"].status == "blocked"


async def test_of_a_message_that_is_gone_nothing_is_told() -> None:
    core = plugin_context()
    statuses = await outcomes_of(core).settle(FakeTx(answers=[[]]), [delivery(core, 1)])

    assert (statuses, core.events.emitted) == ([], [])


async def test_what_may_have_arrived_is_unknown_and_has_no_flags() -> None:
    core = plugin_context()
    lost = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "connection lost", in_doubt=True)
    statuses = await outcomes_of(core).settle(FakeTx(answers=[ids(1)]), [delivery(core, 1, lost)])
    told = core.events.emitted[0].data

    assert [each.status for each in statuses] == ["unknown"]
    assert (told["status"], told["reason"]) == ("unknown", "unknown")
    assert (told["retryable"], told["should_unsubscribe"]) == (None, None)


@pytest.mark.parametrize(("stood", "status"), [("sending", "unknown"), ("queued", "failed")])
async def test_what_a_dead_job_leaves_is_ended_without_telling_what_broke(
    stood: str, status: str
) -> None:
    core, counted = plugin_context(), Counted()
    core.subscribers.person()
    tx = FakeTx(answers=[found(a_message(status=stood)), ids(1)])
    job = claimed(NewJob("message.deliver", {"message_id": "msg_1"}, project_id=PROJECT))
    await outcomes_of(core, counted).settle_dead(tx, job, "/etc/msgsvc: no such file")

    assert [each.status for each in counted.ended] == [status]
    assert core.events.emitted[0].data["status"] == status
    assert "no such file" not in core.events.emitted[0].data["error"]


@pytest.mark.parametrize("stood", ["sending", "queued"])
async def test_a_message_that_is_withdrawn_may_have_been_sent(stood: str) -> None:
    core, counted = plugin_context(), Counted()
    core.subscribers.person()
    tx = FakeTx(answers=[found(a_message(status=stood)), ids(1)])
    job = claimed(NewJob("message.deliver", {"message_id": "msg_1"}, project_id=PROJECT))
    await outcomes_of(core, counted).settle_withdrawn(tx, job)

    assert [each.status for each in counted.ended] == ["unknown"]
    assert core.events.emitted[0].data["status"] == "unknown"
    assert "restored from a backup" in core.events.emitted[0].data["error"]


async def test_a_late_answer_tells_of_what_was_sent_alone() -> None:
    core = plugin_context()
    refused = DeliveryError(Reason.INVALID_MESSAGE, "too long")
    late = [delivery(core, 1), delivery(core, 2, refused), delivery(core, 3)]
    corrected = await outcomes_of(core).correct(FakeTx(answers=[ids(1, 2)]), late)

    assert [(each.message.message_id, each.status) for each in corrected] == [
        ("msg_1", "sent"),
        ("msg_2", "failed"),
    ]
    # That it failed was told when it became unknown.
    assert core.events.names == ["delivery.success"]


async def test_what_is_not_sent_is_skipped_or_in_doubt_where_another_process_died() -> None:
    core = plugin_context()
    channel = core.channels["messenger_a"]
    gate = gates_of(core)[channel.key]
    batch_of_lane = OutboundBatch(FakeJobContext(), channel, gate, [], repeatable=False)
    died = delivery(core, 1, status="sending")
    late = delivery(core, 2, expires_at_ms=NOW_MS)
    stranger = delivery(core, 3, is_known=False)
    tx = FakeTx(answers=[ids(1, 2, 3)])
    statuses = await outcomes_of(core).settle_unsent(tx, batch_of_lane, [died, late, stranger])

    assert [(each.status, each.error) for each in statuses] == [
        ("unknown", DIED),
        ("skipped", "expired"),
        ("skipped", "not subscribed"),
    ]
    assert core.events.names == ["delivery.failed"]


# ---- reports ------------------------------------------------------------------------------------


def reports_of(core: FakeContext, *counters: SentCounter) -> DeliveryReports:
    return DeliveryReports(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        subscribers=core.subscribers,
        outcomes=outcomes_of(core),
        counters=counters,
        routes=RouteProgress(moves=moves_of(core), batches=Counted()),
    )


class Moved:
    """A `SentCounter` that keeps what it was told."""

    def __init__(self) -> None:
        self.failed: list[FinalStatus] = []

    async def count_failed(self, tx: Tx, failed: Sequence[FinalStatus]) -> None:
        self.failed += failed


async def test_what_was_read_is_recorded_as_arrived_too() -> None:
    core, message = plugin_context(), a_message(status="sent")
    tx = FakeTx(answers=[found(message), 1, 1])
    report = DeliveryReported(update_id="1", message_ref="m1", state="read")
    await reports_of(core).record(tx, "messenger_a", report)

    assert core.events.names == ["delivery.delivered", "delivery.read"]


async def test_a_report_of_an_unknown_message_is_tried_again_by_a_job() -> None:
    core = plugin_context()
    report = DeliveryReported(update_id="1", message_ref="m1", state="delivered")
    await reports_of(core).record(FakeTx(answers=[[], []]), "messenger_a", report)

    [job] = core.jobs.named(reports.JOB)
    assert (job.payload["message_ref"], job.payload["state"]) == ("m1", "delivered")
    assert job.run_at_ms == core.clock.now_ms() + 1000


async def test_a_failure_that_is_reported_later_is_counted_once() -> None:
    core, moved = plugin_context(), Moved()
    report = DeliveryReported(update_id="1", message_ref="m1", state="failed", detail="no phone")
    for changed in (1, 0):
        tx = FakeTx(answers=[found(a_message(status="sent")), changed])
        await reports_of(core, moved).record(tx, "messenger_a", report)

    assert [(each.status, each.error) for each in moved.failed] == [("failed", "no phone")]
    assert core.events.names == ["delivery.failed"]
