"""Mailings from the request to their end."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.billing import Charge
from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NORMAL, URGENT, Job, NewJob, Stopping
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.mailings import ledger, store
from msgsvc_core.mailings.audience import Audience
from msgsvc_core.mailings.content import MailingContent
from msgsvc_core.mailings.dead_letters import DeadMailings
from msgsvc_core.mailings.deliveries import RecipientDelivery, SendContext
from msgsvc_core.mailings.expansion import MailingExpansion
from msgsvc_core.mailings.ledger import DueRecipient
from msgsvc_core.mailings.models import Mailing, MailingMessage, NewMailing
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.sending import MailingSender
from msgsvc_core.mailings.service import (
    EXPAND_JOB,
    LATE_MS,
    OPERATION,
    SEND_JOB,
    SETTLEMENT,
    WATCH_JOB,
    WATCH_S,
)
from msgsvc_core.messages.outcomes import DIED
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.routing import RouteStep
from msgsvc_core.routing.models import CreateRouteBody
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from tests.unit.parts.billing import Billing
from tests.unit.parts.rows import NOW_MS

EVERYBODY = Audience(all=True)
LANE = lane_of("messenger_a")
IN_DOUBT = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "connection lost", in_doubt=True)


class Ended(list[Mailing]):
    """The mailings that have ended, as plugins learn of it."""

    @hookimpl
    async def on_mailing_ended(self, tx: Tx, mailing: Mailing) -> None:
        self.append(mailing)


@pytest.fixture
def billing() -> Billing:
    return Billing()


@pytest.fixture
def ended() -> Ended:
    return Ended()


@pytest.fixture
async def core(billing: Billing, ended: Ended) -> AsyncIterator[MemoryCore]:
    limits = {"broadcast_ids": 3, "broadcast_recipients": 5, "text_length": 20}
    plugins = [("billing", billing), ("ended", ended)]
    async with memory_core(extra_plugins=plugins, limits=limits) as core:
        yield core


def new_mailing(text: str = "Hi", audience: Audience = EVERYBODY, **more: Any) -> NewMailing:
    message = {
        name: more.pop(name) for name in ("metadata", "permission", "expires_in") if name in more
    }
    return NewMailing(
        "broadcasts", MailingMessage.model_validate({"text": text, **message}), audience, **more
    )


async def add_people(core: MemoryCore, *subscriber_ids: str, **columns: Any) -> None:
    async with core.db.transaction() as tx:
        for subscriber_id in subscriber_ids:
            await core.person(tx, subscriber_id, **columns)


async def start(core: MemoryCore, audience: Audience = EVERYBODY, **more: Any) -> Mailing:
    async with core.db.transaction() as tx:
        return await core.mailings.start(tx, PROJECT, new_mailing(audience=audience, **more))


async def test_an_accepted_message_is_rendered_once_for_each_language(
    core: MemoryCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_people(core, "sub_ann")
    rendered: list[str] = []
    render = MailingContent.render

    def counted(content: MailingContent, lang: str, *given: Any, **named: Any) -> OutgoingMessage:
        rendered.append(lang)
        return render(content, lang, *given, **named)

    monkeypatch.setattr(MailingContent, "render", counted)

    await start(core)

    assert rendered == ["en", "ru"]


async def claim(core: MemoryCore, name: str) -> list[Job]:
    """Takes the jobs of that name out of the queue."""
    async with core.db.transaction() as tx:
        jobs = await core.jobs_named(tx, name)
        await core.jobs.discard_unclaimed(tx, [job.job_id for job in jobs])
    return jobs


async def queued(core: MemoryCore, name: str) -> list[Job]:
    async with core.db.read() as tx:
        return await core.jobs_named(tx, name)


async def expand(core: MemoryCore) -> JobInTest:
    return await core.run(*await claim(core, EXPAND_JOB))


async def begin(core: MemoryCore, *subscriber_ids: str, **more: Any) -> Mailing:
    """A mailing to these new people and those there are, which has its recipients. Its shards are to run."""
    await add_people(core, *subscriber_ids)
    mailing = await start(core, **more)
    await expand(core)
    return await find(core, mailing)


async def run_shard(core: MemoryCore, bot: str = "messenger_a") -> JobInTest:
    [job] = [job for job in await claim(core, SEND_JOB) if job.lane == lane_of(bot)]
    return await core.run(job)


async def find(core: MemoryCore, mailing: Mailing) -> Mailing:
    async with core.db.read() as tx:
        return await core.mailings.find(tx, *mailing.key)


async def statuses_of(core: MemoryCore, mailing: Mailing) -> dict[str, str]:
    """The recipients' statuses, by their id."""
    async with core.db.read() as tx:
        found = await core.mailings.recipients(tx, mailing, None, None, 10)
    return {each.subscriber_id: each.status for each in found}


async def put_in_flight(core: MemoryCore, mailing: Mailing, *subscriber_ids: str) -> None:
    """A process has died while it sent to these people."""
    async with core.db.transaction() as tx:
        shard = await store.find_shard(tx, *mailing.key, "messenger_a")
        assert shard is not None
        await store.set_shard(tx, *mailing.key, replace(shard, in_flight=list(subscriber_ids)))


# ---- what may be started ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (new_mailing(send_at_ms=NOW_MS - 1), "send_at: is in the past"),
        (new_mailing(send_at_ms=NOW_MS + 3661 * DAY_MS), "send_at: must lie within ten years"),
        (new_mailing(audience=Audience(subscriber_ids=["sub_1"] * 4)), "at most 3"),
        (new_mailing(audience=Audience(subscriber_ids=["sub_1", "7"])), r"subscriber_ids\[1\]"),
        (new_mailing(metadata={"note": "x" * 4096}), "metadata: must be at most"),
        (new_mailing(audience=Audience(channels=["fax"])), "no channel 'fax'"),
        (new_mailing(audience=Audience(tags_none=["vip"])), "no tag 'vip'"),
        (new_mailing(permission="news"), "no permission 'news'"),
    ],
)
async def test_what_cannot_be_sent_is_refused_before_anybody_is_counted(
    core: MemoryCore, new: NewMailing, why: str
) -> None:
    # They are too many, which would be found by counting them.
    await add_people(core, *"123456")

    async with core.db.transaction() as tx:
        with pytest.raises(ValidationFailed, match=why):
            await core.mailings.count(tx, PROJECT, new)


async def test_a_mailing_that_was_taken_before_may_name_whom_there_never_was(
    core: MemoryCore, tx: Tx
) -> None:
    kept = new_mailing(audience=Audience(subscriber_ids=["7"]), was_kept=True)
    prepared = await core.mailings.count(tx, PROJECT, kept)

    assert (prepared.reachable, prepared.unreachable) == (0, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Hi {{ first_name", "text: at character 4"),
        ("Hi {{ surname }}", "variables.surname: is required"),
        ("x" * 21, "at most 20 characters"),
    ],
)
async def test_what_some_would_have_holes_in_or_nobody_could_get_is_refused(
    core: MemoryCore, tx: Tx, text: str, why: str
) -> None:
    await core.person(tx)

    with pytest.raises(ValidationFailed, match=why):
        await core.mailings.count(tx, PROJECT, new_mailing(text))


async def test_only_the_bots_that_reach_somebody_must_take_it(core: MemoryCore, tx: Tx) -> None:
    core.recording("messenger_b").capabilities = Capabilities(max_text_length=1)
    await core.person(tx, "sub_1")
    await core.person(tx, "sub_2")
    prepared = await core.mailings.count(tx, PROJECT, new_mailing())

    assert (prepared.counts, prepared.total) == ({"messenger_a": 2}, 2)
    await core.person(tx, "sub_3", channel="messenger_b")
    with pytest.raises(ValidationFailed, match="on messenger_b"):
        await core.mailings.count(tx, PROJECT, new_mailing())


async def test_more_recipients_than_there_may_be_are_refused(core: MemoryCore) -> None:
    await add_people(core, *"12345")
    await start(core)
    await add_people(core, "6")

    with pytest.raises(ValidationFailed, match="more than 5 subscribers"):
        await start(core)


# ---- their life ---------------------------------------------------------------------------------


async def test_who_can_be_reached_is_paid_for_when_a_mailing_is_taken(
    core: MemoryCore, tx: Tx, billing: Billing
) -> None:
    await core.person(tx, "sub_1")
    await core.person(tx, "sub_2", status="blocked")
    named = Audience(subscriber_ids=["sub_1", "sub_2"])
    new = new_mailing(audience=named, send_at_ms=NOW_MS + HOUR_MS, expires_in=60)
    mailing = await core.mailings.start(tx, PROJECT, new)

    assert billing.charges == [Charge(PROJECT, OPERATION, mailing.job_id, quantity=1)]
    assert (mailing.total, mailing.status) == (2, "scheduled")
    # Counted from when it begins.
    assert mailing.expires_at_ms == NOW_MS + HOUR_MS + 60_000
    [job] = await core.jobs_named(tx, EXPAND_JOB)
    assert job.run_at_ms == NOW_MS + HOUR_MS
    assert await core.mailings.find(tx, *mailing.key) == mailing


async def test_a_mailing_is_changed_only_from_where_it_stands(core: MemoryCore) -> None:
    over = await begin(core)

    assert over.status == "completed"
    async with core.db.transaction() as tx:
        for change in (core.mailings.pause, core.mailings.cancel):
            with pytest.raises(Conflict, match="it is completed"):
                await change(tx, *over.key)
        with pytest.raises(NotFound):
            await core.mailings.pause(tx, PROJECT, "job_9")


async def test_what_is_resumed_before_it_began_waits_for_its_time(core: MemoryCore) -> None:
    mailing = await start(core, send_at_ms=NOW_MS + 1)
    await claim(core, EXPAND_JOB)
    async with core.db.transaction() as tx:
        await core.mailings.pause(tx, *mailing.key)
        resumed = await core.mailings.resume(tx, *mailing.key)

    assert resumed.status == "scheduled"
    [job] = await queued(core, EXPAND_JOB)
    assert (job.payload, job.run_at_ms) == ({"job_id": mailing.job_id}, NOW_MS + 1)


async def test_what_is_resumed_goes_on_with_the_shards_that_are_not_done(
    core: MemoryCore, ended: Ended
) -> None:
    await add_people(core, "sub_2", channel="messenger_b")
    mailing = await begin(core, "sub_1")
    await run_shard(core)
    async with core.db.transaction() as tx:
        await core.mailings.pause(tx, *mailing.key)
        await core.mailings.resume(tx, *mailing.key)

    assert [job.lane for job in await queued(core, SEND_JOB)] == [lane_of("messenger_b")]
    assert ended == []


async def test_whom_a_dead_shard_had_in_flight_are_settled_by_a_cancel(core: MemoryCore) -> None:
    await add_people(core, "sub_2", channel="messenger_b")
    mailing = await begin(core, "sub_1")
    await claim(core, SEND_JOB)
    await put_in_flight(core, mailing, "sub_1")
    async with core.db.transaction() as tx:
        cancelled = await core.mailings.cancel(tx, *mailing.key)

    assert cancelled.status == "cancelled"
    assert [job.lane for job in await queued(core, SEND_JOB)] == [LANE]


async def test_in_the_end_those_who_got_it_are_paid_for_and_it_is_told_once(
    core: MemoryCore, billing: Billing, ended: Ended
) -> None:
    mailing = await begin(core, "sub_1", "sub_2", "sub_3")
    async with core.db.transaction() as tx:
        for gone in ("sub_2", "sub_3"):
            await core.subscribers.unsubscribe(tx, PROJECT, gone, reason="stop")
    await run_shard(core)
    async with core.db.transaction() as tx:
        assert await core.mailings.finish(tx, *mailing.key, "completed") is None

    assert ended == [await find(core, mailing)]
    assert (ended[0].status, ended[0].sent, ended[0].skipped) == ("completed", 1, 2)
    [_, charge] = billing.charges
    assert (charge.operation, charge.quantity, charge.refusable) == (SETTLEMENT, -2, False)


async def test_of_a_mailing_that_never_began_no_ids_are_kept(core: MemoryCore) -> None:
    await add_people(core, "sub_1", "sub_2")
    named = Audience(subscriber_ids=["sub_1", "sub_2"])
    mailing = await start(core, named, send_at_ms=NOW_MS + 1)
    async with core.db.transaction() as tx:
        await core.mailings.cancel(tx, *mailing.key)

    assert (await find(core, mailing)).audience == {"subscriber_ids_count": 2}


async def end_in_doubt(core: MemoryCore, *subscriber_ids: str, **more: Any) -> Mailing:
    """A mailing as `begin` starts it, of whose recipients nobody knows whether they got it."""
    mailing = await begin(core, *subscriber_ids, **more)
    core.recording().failures = [IN_DOUBT for _ in range(mailing.total)]
    await run_shard(core)
    return await find(core, mailing)


async def not_ended(core: MemoryCore) -> Mailing:
    return await begin(core, "sub_1")


async def purged(core: MemoryCore) -> Mailing:
    mailing = await end_in_doubt(core, "sub_1")
    core.clock.advance(core.config.limits.recipient_days * DAY_MS / 1000 + 1)
    await core.run(NewJob("mailing.purge"))
    return mailing


async def resent(core: MemoryCore) -> Mailing:
    mailing = await end_in_doubt(core, "sub_1")
    async with core.db.transaction() as tx:
        await core.mailings.resend_unknown(tx, *mailing.key)
    return mailing


async def to_who_left(core: MemoryCore) -> Mailing:
    mailing = await end_in_doubt(core, "sub_1")
    async with core.db.transaction() as tx:
        await core.subscribers.unsubscribe(tx, PROJECT, "sub_1", reason="stop")
    return mailing


async def expired(core: MemoryCore) -> Mailing:
    mailing = await end_in_doubt(core, "sub_1", expires_in=60)
    core.clock.advance(60)
    return mailing


@pytest.mark.parametrize(
    ("prepare", "why"),
    [
        (not_ended, "has not ended yet"),
        (purged, "no longer stored"),
        (resent, "already resent"),
        (to_who_left, "no subscribed recipient"),
        (expired, "expired"),
    ],
)
async def test_a_mailing_is_sent_again_to_those_in_doubt_only_where_that_makes_sense(
    core: MemoryCore, prepare: Callable[[MemoryCore], Awaitable[Mailing]], why: str
) -> None:
    mailing = await prepare(core)

    async with core.db.transaction() as tx:
        with pytest.raises(Conflict, match=why):
            await core.mailings.resend_unknown(tx, *mailing.key)


async def test_who_withdrew_the_permission_is_not_in_doubt_any_more(
    core: MemoryCore, billing: Billing
) -> None:
    await add_people(core, "sub_1", "sub_2", "sub_3", permissions=["news"], lang="ru")
    before = await end_in_doubt(core, audience=Audience(permission="news", langs=["ru"]))
    async with core.db.transaction() as tx:
        await core.subscribers.set_permission(tx, PROJECT, "sub_1", "news", granted=False)
        again = await core.mailings.resend_unknown(tx, *before.key)

    assert (again.resend_of, again.audience, again.total) == (
        before.job_id,
        {"permission": "news"},
        2,
    )
    assert billing.charges[-1] == Charge(PROJECT, OPERATION, again.job_id, quantity=2)


async def test_a_mailing_makes_room_for_what_is_more_urgent_and_for_messages_that_are_late(
    core: MemoryCore,
) -> None:
    async def must_yield() -> bool:
        async with core.db.read() as tx:
            return await core.mailings.must_yield(tx, LANE)

    async with core.db.transaction() as tx:
        await core.jobs.enqueue(tx, NewJob("message.deliver", lane=LANE, priority=NORMAL))
    assert not await must_yield()
    core.clock.advance(LATE_MS / 1000)
    assert await must_yield()
    await claim(core, "message.deliver")
    assert not await must_yield()
    async with core.db.transaction() as tx:
        await core.jobs.enqueue(tx, NewJob("channel.call", lane=LANE, priority=URGENT))

    assert await must_yield()


# ---- whom it is for -----------------------------------------------------------------------------


async def test_when_nobody_is_left_to_look_at_each_bot_gets_its_shard(core: MemoryCore) -> None:
    await add_people(core, "sub_1", "sub_2")
    mailing = await start(core)
    ctx = await expand(core)

    assert len(ctx.completed) == 1
    assert [job.lane for job in await queued(core, SEND_JOB)] == [LANE]
    async with core.db.read() as tx:
        shards = await store.list_shards(tx, *mailing.key)
    assert [(shard.bot, shard.is_done) for shard in shards] == [("messenger_a", False)]
    assert await statuses_of(core, mailing) == {"sub_1": "queued", "sub_2": "queued"}


async def test_a_mailing_to_nobody_is_completed_at_once(core: MemoryCore, ended: Ended) -> None:
    await begin(core)

    assert [each.status for each in ended] == ["completed"]


async def test_without_the_tag_that_it_left_out_it_is_not_sent_to_all(
    core: MemoryCore, ended: Ended
) -> None:
    await add_people(core, "sub_1")
    async with core.db.transaction() as tx:
        await core.tags.ensure(tx, PROJECT, ["vip"])
    await start(core, Audience(tags_none=["vip"]))
    async with core.db.transaction() as tx:
        await core.tags.delete(tx, PROJECT, "vip")
    await expand(core)

    assert [each.status for each in ended] == ["cancelled"]
    assert "no tag 'vip'" in str(ended[0].error)
    assert await queued(core, SEND_JOB) == []


async def test_an_audience_that_has_grown_too_large_gets_nothing_at_all(
    core: MemoryCore, ended: Ended
) -> None:
    await add_people(core, *"12345")
    await start(core)
    await add_people(core, "6")
    await expand(core)

    assert [each.status for each in ended] == ["cancelled"]
    assert "beyond 5 subscribers" in str(ended[0].error)
    assert await queued(core, SEND_JOB) == []


async def test_a_runner_that_stops_leaves_off_between_two_steps(core: MemoryCore) -> None:
    await add_people(core, "sub_1", "sub_2")
    mailing = await start(core)
    [job] = await claim(core, EXPAND_JOB)
    ctx = JobInTest(core.db)
    ctx.is_stopping = True

    with pytest.raises(Stopping):
        await core.service.get(MailingExpansion).expand(ctx, [job])
    assert ctx.completed == []
    found = await find(core, mailing)
    assert (found.total, found.expanded_to) == (2, "sub_2")


# ---- what became of recipients ------------------------------------------------------------------


def outcomes_of(core: MemoryCore) -> MailingOutcomes:
    return core.service.get(MailingSender).outcomes


def context_of(core: MemoryCore, mailing: Mailing) -> SendContext:
    channel = core.channels["messenger_a"]
    return SendContext(mailing, channel, core.service.get(OutboundGates)[channel.key])


async def deliveries(
    core: MemoryCore, mailing: Mailing, **failures: DeliveryError | None
) -> list[RecipientDelivery]:
    """Calls that are over: to these people, with the failure of each."""
    job = claimed(NewJob(SEND_JOB, {"job_id": mailing.job_id}, lane=LANE, project_id=PROJECT))
    made: list[RecipientDelivery] = []
    async with core.db.read() as tx:
        for subscriber_id, failure in failures.items():
            person = await core.subscribers.get(tx, PROJECT, subscriber_id)
            delivery = RecipientDelivery(job, person)
            delivery.failure = failure
            delivery.message_ref = None if failure else f"m {subscriber_id}"
            made.append(delivery)
    return made


async def test_recipients_get_their_message_their_event_and_their_place_in_the_counts(
    core: MemoryCore,
) -> None:
    mailing = await begin(core, "sub_1", "sub_2", "sub_3")
    blocked = DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden")
    made = await deliveries(core, mailing, sub_1=None, sub_2=blocked, sub_3=IN_DOUBT)
    async with core.db.transaction() as tx:
        await outcomes_of(core).settle(context_of(core, mailing), tx, made)
        messages = await core.messages_queued(tx)

    statuses = {"sub_1": "sent", "sub_2": "failed", "sub_3": "unknown"}
    assert await statuses_of(core, mailing) == statuses
    assert {each.subscriber_id: each.status for each in messages} == statuses
    found = await find(core, mailing)
    assert (found.sent, found.failed, found.unknown) == (1, 2, 1)
    assert core.event_names == [
        "delivery.success",
        "delivery.failed",
        "delivery.failed",
        "subscription.deleted",
    ]


async def test_of_who_was_erased_meanwhile_nothing_is_kept_or_told(core: MemoryCore) -> None:
    mailing = await begin(core, "sub_1")
    made = await deliveries(core, mailing, sub_1=None)
    async with core.db.transaction() as tx:
        await core.subscribers.erase(tx, PROJECT, "sub_1")
        core.emitted.clear()
        await outcomes_of(core).settle(context_of(core, mailing), tx, made)

        assert await core.messages_queued(tx) == []
    assert core.event_names == []
    assert (await find(core, mailing)).sent == 0


async def test_who_has_to_wait_goes_back_to_the_ledger_with_the_first_refusal(
    core: MemoryCore,
) -> None:
    mailing = await begin(core, "sub_1")
    refused = DeliveryError(Reason.RATE_LIMITED, "slow down", 30)
    made = await deliveries(core, mailing, sub_1=refused)
    async with core.db.transaction() as tx:
        recorded = await outcomes_of(core).record(context_of(core, mailing), tx, made)
        again_ms = await ledger.next_retry_ms(tx, mailing, "messenger_a")
        due = await ledger.due_retries(tx, mailing, "messenger_a", NOW_MS + 30_000, 10)
        recipient = await core.mailings.find_recipient(tx, mailing, "sub_1")

        assert (recorded.ended, recorded.has_retries) == ([], True)
        assert again_ms == NOW_MS + 30_000
        assert due == [DueRecipient("sub_1", attempts=0, refused_from_ms=NOW_MS)]
        assert recipient is not None
        assert (recipient.status, recipient.message_id, recipient.reason, recipient.error) == (
            "queued",
            None,
            None,
            "slow down",
        )
        assert await core.messages_queued(tx) == []


@pytest.mark.parametrize(
    ("repeatable", "is_paused", "ends"),
    [(False, False, "unknown"), (True, False, "queued"), (True, True, "unknown")],
)
async def test_whom_a_dead_process_had_in_flight_are_in_doubt_or_sent_to_again(
    core: MemoryCore, repeatable: bool, is_paused: bool, ends: str
) -> None:
    core.recording().capabilities = Capabilities(repeatable=repeatable)
    mailing = await begin(core, "sub_1")
    await put_in_flight(core, mailing, "sub_1")
    [job] = await claim(core, SEND_JOB)
    async with core.db.transaction() as tx:
        if is_paused:
            mailing = await core.mailings.pause(tx, *mailing.key)
        await outcomes_of(core).settle_left(context_of(core, mailing), tx, job)
        recipient = await core.mailings.find_recipient(tx, mailing, "sub_1")
        shard = await store.find_shard(tx, *mailing.key, "messenger_a")

    assert recipient is not None
    assert (recipient.status, recipient.error) == (ends, DIED)
    assert shard is not None
    assert shard.in_flight == []


async def test_a_late_answer_corrects_who_was_given_up(core: MemoryCore) -> None:
    mailing = await begin(core, "sub_1", "sub_2")
    await put_in_flight(core, mailing, "sub_1", "sub_2")
    [job] = await claim(core, SEND_JOB)
    context, outcomes = context_of(core, mailing), outcomes_of(core)
    failed = DeliveryError(Reason.CHAT_NOT_FOUND, "no such chat")
    late = await deliveries(core, mailing, sub_1=None, sub_2=failed)
    async with core.db.transaction() as tx:
        await outcomes.settle_left(context, tx, job)
        given_up = await core.mailings.find(tx, *mailing.key)
        core.emitted.clear()

        assert await outcomes.settle_late(context, tx, late) == 1
        messages = await core.messages_queued(tx)
    found = await find(core, mailing)
    assert (given_up.sent, given_up.failed, given_up.unknown) == (0, 2, 2)
    assert (found.sent, found.failed, found.unknown) == (1, 1, 1)
    assert await statuses_of(core, mailing) == {"sub_1": "sent", "sub_2": "unknown"}
    [sent] = [each for each in messages if each.status == "sent"]
    assert [event.data["message_id"] for event in core.emitted] == [sent.message_id]


# ---- dead jobs ----------------------------------------------------------------------------------


async def test_a_mailing_whose_job_died_is_paused_without_telling_what_broke(
    core: MemoryCore,
) -> None:
    mailing = await begin(core, "sub_1")
    [job] = await claim(core, SEND_JOB)
    async with core.db.transaction() as tx:
        await core.service.get(DeadMailings).dead_letter(tx, job, "/srv/app: disk full")

    found = await find(core, mailing)
    assert found.status == "paused"
    assert "operator" in str(found.error)
    assert "disk full" not in str(found.error)


async def test_a_cancelled_mailing_whose_job_died_ends_with_whom_it_had_in_flight(
    core: MemoryCore, ended: Ended
) -> None:
    mailing = await begin(core, "sub_1")
    await put_in_flight(core, mailing, "sub_1")
    [job] = await claim(core, SEND_JOB)
    async with core.db.transaction() as tx:
        await core.mailings.cancel(tx, *mailing.key)
        assert ended == []
        await core.service.get(DeadMailings).dead_letter(tx, job, "")
        [message] = await core.messages_queued(tx)

    assert message.status == "unknown"
    assert [each.status for each in ended] == ["cancelled"]


# ---- a shard's run ------------------------------------------------------------------------------


async def test_a_shard_sends_to_its_recipients_and_the_last_one_ends_the_mailing(
    core: MemoryCore, ended: Ended
) -> None:
    mailing = await begin(core, "sub_1")
    ctx = await run_shard(core)

    assert core.recording().keys == [f"{mailing.job_id}-sub_1"]
    assert core.event_names == ["delivery.success"]
    assert [each.status for each in ended] == ["completed"]
    assert len(ctx.completed) == 1


async def test_of_a_paused_mailing_nobody_is_sent_to(core: MemoryCore, ended: Ended) -> None:
    mailing = await begin(core, "sub_1")
    async with core.db.transaction() as tx:
        await core.mailings.pause(tx, *mailing.key)
    ctx = await run_shard(core)

    assert core.recording().keys == []
    assert (len(ctx.completed), ended) == (1, [])
    assert await queued(core, SEND_JOB) == []


async def test_a_mailing_of_a_disabled_project_is_paused(core: MemoryCore) -> None:
    mailing = await begin(core, "sub_1")
    await core.projects.set_active(PROJECT, active=False)
    await run_shard(core)

    found = await find(core, mailing)
    assert (found.status, found.error) == ("paused", "the project is disabled")
    assert core.recording().keys == []


async def test_a_shard_gives_way_to_what_is_urgent_and_goes_on_after_it(core: MemoryCore) -> None:
    await begin(core, "sub_1")
    async with core.db.transaction() as tx:
        await core.jobs.enqueue(tx, NewJob("channel.call", lane=LANE, priority=URGENT))
    await run_shard(core)

    assert core.recording().keys == []
    [again] = await queued(core, SEND_JOB)
    assert again.run_at_ms == NOW_MS


# ---- routes -------------------------------------------------------------------------------------


async def begin_by_route(core: MemoryCore, *subscriber_ids: str) -> Mailing:
    """The same by a route of two channels, of which these people are on the first."""
    steps = [RouteStep(channel="messenger_a"), RouteStep(channel="messenger_b")]
    async with core.db.transaction() as tx:
        body = CreateRouteBody(name="Both", steps=steps)
        route = await core.routes.create(tx, PROJECT, body)
    return await begin(core, *subscriber_ids, route_id=route.route_id)


async def test_who_is_on_one_channel_alone_ends_as_that_did(core: MemoryCore) -> None:
    mailing = await begin_by_route(core, "sub_1")
    core.recording().failures = [DeliveryError(Reason.INVALID_MESSAGE, "no such thing")]
    await run_shard(core)

    async with core.db.read() as tx:
        recipient = await core.mailings.find_recipient(tx, mailing, "sub_1")
    assert recipient is not None
    assert (recipient.status, recipient.reason, recipient.error) == (
        "failed",
        "invalid_message",
        "no such thing",
    )


async def test_a_route_without_trouble_is_looked_at_again_later(core: MemoryCore) -> None:
    mailing = await begin_by_route(core, "sub_1")
    await core.run(*await claim(core, WATCH_JOB))

    [again] = await queued(core, WATCH_JOB)
    assert (again.payload, again.run_at_ms) == (
        {"job_id": mailing.job_id},
        NOW_MS + WATCH_S * 1000,
    )
