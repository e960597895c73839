"""Mailings from the request to their end: rules built from fakes."""

import json
from typing import Any

import pytest

from msgsvc_core.billing import Charge
from msgsvc_core.channels.contract import Capabilities
from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.lanes import lane_of
from msgsvc_core.channels.states import ChannelState
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NORMAL, URGENT, Job, NewJob, Stopping
from msgsvc_core.kernel.clock import HOUR_MS
from msgsvc_core.kernel.errors import Conflict, NotFound, ValidationFailed
from msgsvc_core.mailings.dead_letters import DeadMailings
from msgsvc_core.mailings.deliveries import RecipientDelivery, RecipientSender, SendContext
from msgsvc_core.mailings.expansion import MailingExpansion
from msgsvc_core.mailings.links import LinkTracking
from msgsvc_core.mailings.models import (
    Audience,
    Mailing,
    MailingMessage,
    MailingShard,
    NewMailing,
)
from msgsvc_core.mailings.outcomes import MailingOutcomes
from msgsvc_core.mailings.route_moves import MailingRoutes, StepOutcome
from msgsvc_core.mailings.route_watch import RouteWatch
from msgsvc_core.mailings.sending import MailingSender
from msgsvc_core.mailings.service import (
    EXPAND_JOB,
    LATE_MS,
    OPERATION,
    SEND_JOB,
    SETTLEMENT,
    WATCH_S,
    Mailings,
    expand_job,
    send_job,
    watch_job,
)
from msgsvc_core.mailings.validation import AudienceNames, MailingValidation
from msgsvc_core.messages.limits import MessageLimits
from msgsvc_core.messages.outcomes import DIED, MessageOutcomes
from msgsvc_core.routing import RouteStep
from msgsvc_core.routing.models import steps_to_column
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_devkit.fakes.database import Answer
from msgsvc_devkit.fakes.mailings import FakeMailingValidation
from tests.unit.parts.outbound import RETRIES, gates_of, ignore, no_checks, sender_of
from tests.unit.parts.routed import moves_of
from tests.unit.parts.rows import NOW_MS, a_mailing, row_of, shard_row

LIMITS = LimitSettings(broadcast_ids=3, broadcast_recipients=5, text_length=20)
EVERYBODY = Audience(all=True)
LANE = lane_of("messenger_a")


def new_mailing(text: str = "Hi", audience: Audience = EVERYBODY, **more: Any) -> NewMailing:
    message = {
        name: more.pop(name) for name in ("metadata", "permission", "expires_in") if name in more
    }
    return NewMailing(
        "broadcasts", MailingMessage.model_validate({"text": text, **message}), audience, **more
    )


def found(*mailings: Mailing) -> Answer:
    return [row_of(mailing) for mailing in mailings]


# ---- what may be started ------------------------------------------------------------------------


def validation_of(core: FakeContext) -> MailingValidation:
    return MailingValidation(
        clock=core.clock,
        channels=core.channels,
        templates=core.templates,
        names=AudienceNames(tags=core.tags, permissions=core.permissions, routes=core.routes),
        limits=LIMITS,
        links=LinkTracking(secrets=core.secrets, base_url="https://msgsvc.example"),
        languages=("en", "ru"),
        default_lang="en",
    )


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (new_mailing(send_at_ms=NOW_MS - 1), "send_at: is in the past"),
        (new_mailing(audience=Audience(subscriber_ids=["sub_1"] * 4)), "at most 3"),
        (new_mailing(audience=Audience(subscriber_ids=["sub_1", "7"])), r"subscriber_ids\[1\]"),
        (new_mailing(metadata={"note": "x" * 4096}), "metadata: must be at most"),
        (new_mailing(audience=Audience(channels=["fax"])), "no channel 'fax'"),
        (new_mailing(audience=Audience(tags_none=["vip"])), "no tag 'vip'"),
        (new_mailing(permission="news"), "no permission 'news'"),
    ],
)
async def test_what_cannot_be_sent_is_refused_before_anybody_is_counted(
    new: NewMailing, why: str
) -> None:
    tx = FakeTx()

    with pytest.raises(ValidationFailed, match=why):
        await validation_of(plugin_context()).judge(tx, PROJECT, new)
    assert tx.statements == []


async def test_a_mailing_that_was_taken_before_may_name_whom_there_never_was() -> None:
    kept = new_mailing(audience=Audience(subscriber_ids=["7"]), was_kept=True)
    judged = await validation_of(plugin_context()).judge(FakeTx(answers=[[]]), PROJECT, kept)

    assert (judged.reachable, judged.unreachable) == (0, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Hi {{ first_name", "text: at character 4"),
        ("Hi {{ surname }}", "variables.surname: is required"),
        ("x" * 21, "at most 20 characters"),
    ],
)
async def test_what_some_would_have_holes_in_or_nobody_could_get_is_refused(
    text: str, why: str
) -> None:
    tx = FakeTx(answers=[[{"bot": "messenger_a", "count": 1}]])

    with pytest.raises(ValidationFailed, match=why):
        await validation_of(plugin_context()).judge(tx, PROJECT, new_mailing(text))


async def test_only_the_bots_that_reach_somebody_must_take_it() -> None:
    core = plugin_context()
    core.channels.recording("messenger_b").capabilities = Capabilities(max_text_length=1)
    by_a: Answer = [{"bot": "messenger_a", "count": 2}]
    judged = await validation_of(core).judge(FakeTx(answers=[by_a]), PROJECT, new_mailing())

    assert (judged.counts, judged.total) == ({"messenger_a": 2}, 2)
    by_b: Answer = [{"bot": "messenger_b", "count": 1}]
    with pytest.raises(ValidationFailed, match="on messenger_b"):
        await validation_of(core).judge(FakeTx(answers=[by_b]), PROJECT, new_mailing())


async def test_more_recipients_than_there_may_be_are_refused() -> None:
    tx = FakeTx(answers=[[{"bot": "messenger_a", "count": 6}]])

    with pytest.raises(ValidationFailed, match="more than 5 subscribers"):
        await validation_of(plugin_context()).judge(tx, PROJECT, new_mailing())


# ---- their life ---------------------------------------------------------------------------------


class Ended(list[Mailing]):
    """The mailings of which it was told that they have ended."""

    async def __call__(self, tx: Tx, mailing: Mailing) -> None:
        self.append(mailing)


def mailings_of(core: FakeContext, ended: Ended | None = None) -> Mailings:
    validation = FakeMailingValidation(
        core.subscribers,
        clock=core.clock,
        channels=core.channels,
        templates=core.templates,
        limits=LIMITS,
    )
    return Mailings(
        clock=core.clock,
        jobs=core.jobs,
        billing=core.billing,
        validation=validation,
        limits=LIMITS,
        on_ended=Ended() if ended is None else ended,
        on_tested=Ended(),
    )


async def test_who_can_be_reached_is_paid_for_when_a_mailing_is_taken() -> None:
    core, tx = plugin_context(), FakeTx()
    core.subscribers.person("sub_1")
    core.subscribers.person("sub_2", status="blocked")
    named = Audience(subscriber_ids=["sub_1", "sub_2"])
    mailing = await mailings_of(core).start(
        tx, PROJECT, new_mailing(audience=named, send_at_ms=NOW_MS + HOUR_MS, expires_in=60)
    )

    assert core.billing.charges == [Charge(PROJECT, OPERATION, mailing.job_id, quantity=1)]
    assert mailing.total == 2
    # Counted from when it begins.
    assert mailing.expires_at_ms == NOW_MS + HOUR_MS + 60_000
    [job] = core.jobs.named(EXPAND_JOB)
    assert job.run_at_ms == NOW_MS + HOUR_MS
    assert tx.rows["core_mailings"][0]["status"] == "scheduled"


async def test_a_mailing_is_changed_only_from_where_it_stands() -> None:
    mailings, over = mailings_of(plugin_context()), a_mailing(status="completed")

    for change in (mailings.pause, mailings.cancel):
        with pytest.raises(Conflict, match="it is completed"):
            await change(FakeTx(answers=[0, found(over)]), PROJECT, "job_1")
    with pytest.raises(NotFound):
        await mailings.pause(FakeTx(answers=[0, []]), PROJECT, "job_1")


async def test_what_is_resumed_before_it_began_waits_for_its_time() -> None:
    core = plugin_context()
    waits = a_mailing(status="paused", started_at_ms=None, expanded_to="", send_at_ms=NOW_MS + 1)
    tx = FakeTx(answers=[found(waits), 1, found(waits), []])
    await mailings_of(core).resume(tx, PROJECT, "job_1")

    assert "status = 'scheduled'" in tx.statements[1][0]
    assert core.jobs.enqueued == [expand_job(waits, NOW_MS + 1)]


async def test_what_is_resumed_goes_on_with_the_shards_that_are_not_done() -> None:
    core, ended = plugin_context(), Ended()
    paused = a_mailing(status="paused")
    shards = [
        shard_row(MailingShard("messenger_a", "sub_5", [], is_done=True)),
        shard_row(MailingShard("messenger_b", "sub_5", [], is_done=False)),
    ]
    tx = FakeTx(answers=[found(paused), 1, found(paused), [], shards])
    await mailings_of(core, ended).resume(tx, PROJECT, "job_1")

    assert core.jobs.enqueued == [send_job(paused, "messenger_b")]
    assert ended == []


async def test_whom_a_dead_shard_had_in_flight_are_settled_by_a_cancel() -> None:
    core = plugin_context()
    cancelled = a_mailing(status="cancelled")
    shards = [
        shard_row(MailingShard("messenger_a", "", ["sub_1"], is_done=False)),
        shard_row(MailingShard("messenger_b", "", [], is_done=False)),
    ]
    tx = FakeTx(answers=[1, found(cancelled), [], found(cancelled), shards])
    await mailings_of(core).cancel(tx, PROJECT, "job_1")

    assert core.jobs.enqueued == [send_job(cancelled, "messenger_a")]


async def test_in_the_end_those_who_got_it_are_paid_for_and_it_is_told_once() -> None:
    core, ended = plugin_context(), Ended()
    over = a_mailing(status="completed", total=3, sent=1, skipped=2, charged=3)
    mailings = mailings_of(core, ended)
    await mailings.finish(FakeTx(answers=[found(over)]), PROJECT, "job_1", "completed")
    assert await mailings.finish(FakeTx(answers=[[]]), PROJECT, "job_1", "completed") is None

    assert ended == [over]
    [charge] = core.billing.charges
    assert (charge.operation, charge.quantity, charge.refusable) == (SETTLEMENT, -2, False)


async def test_of_a_mailing_that_never_began_no_ids_are_kept() -> None:
    named = a_mailing(status="cancelled", audience={"subscriber_ids": ["sub_1", "sub_2"]})
    tx = FakeTx(answers=[found(named), 1])
    await mailings_of(plugin_context()).finish(tx, PROJECT, "job_1", "cancelled")

    assert json.loads(tx.statements[1][1]["audience"]) == {"subscriber_ids_count": 2}


@pytest.mark.parametrize(
    ("fields", "answers", "why"),
    [
        ({}, [], "has not ended yet"),
        ({"finished_at_ms": NOW_MS, "purged_at_ms": NOW_MS}, [], "no longer stored"),
        ({"finished_at_ms": NOW_MS}, [[{"found": 1}]], "already resent"),
        ({"finished_at_ms": NOW_MS}, [[], []], "no subscribed recipient"),
        (
            {"finished_at_ms": NOW_MS, "expires_at_ms": NOW_MS},
            [[], [{"bot": "messenger_a", "count": 1}]],
            "expired",
        ),
    ],
)
async def test_a_mailing_is_sent_again_to_those_in_doubt_only_where_that_makes_sense(
    fields: dict[str, Any], answers: list[Answer], why: str
) -> None:
    tx = FakeTx(answers=[found(a_mailing(**fields)), *answers])

    with pytest.raises(Conflict, match=why):
        await mailings_of(plugin_context()).resend_unknown(tx, PROJECT, "job_1")


async def test_who_withdrew_the_permission_is_not_in_doubt_any_more() -> None:
    core = plugin_context()
    before = a_mailing(finished_at_ms=NOW_MS, audience={"permission": "news", "langs": ["ru"]})
    tx = FakeTx(answers=[found(before), [], [{"bot": "messenger_a", "count": 2}]])
    again = await mailings_of(core).resend_unknown(tx, PROJECT, "job_1")

    assert (again.resend_of, again.audience, again.total) == ("job_1", {"permission": "news"}, 2)
    assert core.billing.charges[0].quantity == 2


async def test_a_mailing_makes_room_for_what_is_more_urgent_and_for_messages_that_are_late() -> (
    None
):
    core, tx = plugin_context(), FakeTx()
    mailings = mailings_of(core)
    await core.jobs.enqueue(tx, NewJob("message.deliver", lane=LANE, priority=NORMAL))
    assert not await mailings.must_yield(tx, LANE)
    core.clock.advance(LATE_MS / 1000)
    assert await mailings.must_yield(tx, LANE)
    core.jobs.enqueued.clear()
    await core.jobs.enqueue(tx, NewJob("channel.call", lane=LANE, priority=URGENT))

    assert await mailings.must_yield(tx, LANE)


# ---- whom it is for -----------------------------------------------------------------------------


def expansion_of(core: FakeContext, most: int = 5) -> MailingExpansion:
    return MailingExpansion(
        clock=core.clock,
        jobs=core.jobs,
        mailings=core.mailings,
        names=AudienceNames(tags=core.tags, permissions=core.permissions, routes=core.routes),
        most=most,
        on_dead=ignore,
    )


BEGINS = a_mailing(expanded_to="")
STARTED, NOT_STARTED = 1, 0


def expand_it(core: FakeContext, *answers: Answer) -> tuple[FakeJobContext, Job]:
    core.db.answers += answers
    return FakeJobContext(core.db), claimed(expand_job(BEGINS, None))


async def test_when_nobody_is_left_to_look_at_each_bot_gets_its_shard() -> None:
    core = plugin_context()
    looked_at = a_mailing(expanded_to="sub_9", total=2)
    ctx, job = expand_it(
        core,
        *(STARTED, found(BEGINS), [{"last": "sub_9"}], 2, 1),
        *(NOT_STARTED, found(looked_at), [{"last": None}]),
        # The end: lock, the project's state, lock, what is fixed, the bots.
        *(found(looked_at), 0, found(looked_at), 1, [{"bot": "messenger_a"}]),
    )
    await expansion_of(core).expand(ctx, [job])

    assert [row["bot"] for row in core.db.rows["core_mailing_ways"]] == ["messenger_a"]
    assert [each.lane for each in core.jobs.named(SEND_JOB)] == [LANE]
    assert ctx.completed == [job]


async def test_a_mailing_to_nobody_is_completed_at_once() -> None:
    core = plugin_context()
    core.mailings.by_id["job_1"] = BEGINS
    ctx, job = expand_it(
        core,
        *(STARTED, found(BEGINS), [{"last": None}]),
        *(found(BEGINS), 0, found(BEGINS), 1, []),
    )
    await expansion_of(core).expand(ctx, [job])

    assert [each.status for each in core.mailings.ended] == ["completed"]


async def test_without_the_tag_that_it_left_out_it_is_not_sent_to_all() -> None:
    core = plugin_context()
    core.mailings.by_id["job_1"] = a_mailing(status="cancelled")
    to_some = a_mailing(expanded_to="", audience={"tags_none": ["vip"]})
    cancelled = a_mailing(expanded_to="", status="cancelled")
    ctx, job = expand_it(core, STARTED, found(to_some), 1, found(cancelled), 0, found(cancelled))
    await expansion_of(core).expand(ctx, [job])

    assert "no tag 'vip'" in core.db.statements[2][1]["error"]
    assert [each.status for each in core.mailings.ended] == ["cancelled"]
    assert core.jobs.named(SEND_JOB) == []


async def test_an_audience_that_has_grown_too_large_gets_nothing_at_all() -> None:
    core = plugin_context()
    core.mailings.by_id["job_1"] = a_mailing(status="cancelled")
    cancelled = a_mailing(expanded_to="", status="cancelled")
    ctx, job = expand_it(
        core,
        *(STARTED, found(BEGINS), [{"last": "sub_9"}], 6, 1),
        *(1, found(cancelled), 0, found(cancelled)),
    )
    await expansion_of(core, most=5).expand(ctx, [job])

    assert "beyond 5 subscribers" in core.db.statements[5][1]["error"]
    assert [each.status for each in core.mailings.ended] == ["cancelled"]


async def test_a_runner_that_stops_leaves_off_between_two_steps() -> None:
    core = plugin_context()
    ctx, job = expand_it(core, STARTED, found(BEGINS), [{"last": "sub_9"}], 2, 1)
    ctx.is_stopping = True

    with pytest.raises(Stopping):
        await expansion_of(core).expand(ctx, [job])
    assert ctx.completed == []


# ---- what became of recipients ------------------------------------------------------------------


class NoBatches:
    """Messages of mailings are of no batch."""

    async def count(self, *_: object) -> None:
        """Nobody counts."""


def outcomes_of(core: FakeContext) -> MailingOutcomes:
    messages = MessageOutcomes(
        clock=core.clock,
        events=core.events,
        metrics=core.metrics,
        subscribers=core.subscribers,
        batches=NoBatches(),
        routed=moves_of(core),
    )
    return MailingOutcomes(
        clock=core.clock,
        events=core.events,
        subscribers=core.subscribers,
        retries=RETRIES,
        default_lang="en",
        messages=messages,
        routes=routes_of_mailings(core),
    )


async def none_stopped(*_: object) -> dict[str, bool]:
    return {}


def routes_of_mailings(core: FakeContext) -> MailingRoutes:
    return MailingRoutes(
        clock=core.clock,
        jobs=core.jobs,
        channels=core.channels,
        subscribers=core.subscribers,
        find_stopped=none_stopped,
    )


def context_of(core: FakeContext, mailing: Mailing | None = None) -> SendContext:
    mailing, channel = mailing or a_mailing(), core.channels["messenger_a"]
    gate = gates_of(core)[channel.key]
    return SendContext(mailing, channel, gate)


SHARD_JOB = claimed(send_job(a_mailing(), "messenger_a"), now_ms=NOW_MS)


def delivery(
    core: FakeContext, number: int, failure: DeliveryError | None = None
) -> RecipientDelivery:
    made = RecipientDelivery(SHARD_JOB, core.subscribers.person(f"sub_{number}"))
    made.failure, made.message_ref = failure, None if failure else f"m{number}"
    return made


def ledger(*numbers: int) -> Answer:
    return [{"subscriber_id": f"sub_{number}"} for number in numbers]


async def test_recipients_get_their_message_their_event_and_their_place_in_the_counts() -> None:
    core = plugin_context()
    blocked = DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden")
    in_doubt = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "connection lost", in_doubt=True)
    made = [delivery(core, 1), delivery(core, 2, blocked), delivery(core, 3, in_doubt)]
    tx = FakeTx(answers=[ledger(1), ledger(2, 3), 1])
    await outcomes_of(core).settle(context_of(core), tx, made)

    counts = {name: tx.statements[-1][1][name] for name in ("sent", "failed", "unknown")}
    assert counts == {"sent": 1, "failed": 2, "unknown": 1}
    assert [row["status"] for row in tx.rows["core_messages"]] == ["sent", "failed", "unknown"]
    assert core.events.names == [
        "delivery.success",
        "delivery.failed",
        "delivery.failed",
        "subscription.deleted",
    ]


async def test_of_who_was_erased_meanwhile_nothing_is_kept_or_told() -> None:
    core = plugin_context()
    tx = FakeTx(answers=[ledger()])
    await outcomes_of(core).settle(context_of(core), tx, [delivery(core, 1)])

    assert tx.rows["core_messages"] == []
    assert core.events.emitted == []


async def test_who_has_to_wait_goes_back_to_the_ledger_with_the_first_refusal() -> None:
    core = plugin_context()
    refused = DeliveryError(Reason.RATE_LIMITED, "slow down", 30)
    tx = FakeTx(answers=[ledger(1)])
    recorded = await outcomes_of(core).record(context_of(core), tx, [delivery(core, 1, refused)])

    assert (recorded.ended, recorded.has_retries) == ([], True)
    [row] = json.loads(tx.statements[0][1]["keys"])
    # Status, tries, message, reason, error, when to try again, refused since, begin of a route's step.
    assert row[3:] == [
        "queued",
        "0",
        None,
        None,
        "slow down",
        str(NOW_MS + 30_000),
        str(NOW_MS),
        None,
    ]
    assert tx.rows["core_messages"] == []


@pytest.mark.parametrize(
    ("repeatable", "status", "ends"),
    [(False, "running", "unknown"), (True, "running", "queued"), (True, "paused", "unknown")],
)
async def test_whom_a_dead_process_had_in_flight_are_in_doubt_or_sent_to_again(
    repeatable: bool, status: str, ends: str
) -> None:
    core = plugin_context()
    core.subscribers.person("sub_1")
    core.channels.recording("messenger_a").capabilities = Capabilities(repeatable=repeatable)
    in_flight = [shard_row(MailingShard("messenger_a", "sub_1", ["sub_1"], is_done=False))]
    answers: list[Answer] = [in_flight, ledger(1), *([] if ends == "queued" else [1]), 1]
    tx = FakeTx(answers=answers)
    context = context_of(core, a_mailing(status=status))
    await outcomes_of(core).settle_left(context, tx, SHARD_JOB)

    [row] = json.loads(tx.statements[1][1]["keys"])
    assert (row[3], row[7]) == (ends, DIED)
    assert tx.statements[-1][1]["in_hand"] == "[]"


async def test_a_late_answer_corrects_who_was_given_up() -> None:
    core = plugin_context()
    late: Answer = [{"subscriber_id": "sub_1", "message_id": "msg_1"}]
    tx = FakeTx(answers=[ledger(), late, [{"message_id": "msg_1"}], 1])
    failed = DeliveryError(Reason.CHAT_NOT_FOUND, "no such chat")
    made = [delivery(core, 1), delivery(core, 2, failed)]

    assert await outcomes_of(core).settle_late(context_of(core), tx, made) == 1
    counts = {name: tx.statements[-1][1][name] for name in ("sent", "failed", "unknown")}
    assert counts == {"sent": 1, "failed": -1, "unknown": -1}
    assert [event.data["message_id"] for event in core.events.emitted] == ["msg_1"]


# ---- dead jobs ----------------------------------------------------------------------------------


def dead_mailings_of(core: FakeContext) -> DeadMailings:
    return DeadMailings(
        clock=core.clock,
        gates=gates_of(core),
        mailings=core.mailings,
        outcomes=outcomes_of(core),
    )


async def test_a_mailing_whose_job_died_is_paused_without_telling_what_broke() -> None:
    tx = FakeTx(answers=[1])
    await dead_mailings_of(plugin_context()).dead_letter(tx, SHARD_JOB, "/srv/app: disk full")

    [(sql, params)] = tx.statements
    assert "status = 'paused'" in sql
    assert "disk full" not in params["error"]


async def test_a_cancelled_mailing_whose_job_died_ends_with_whom_it_had_in_flight() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1")
    cancelled = a_mailing(status="cancelled", total=1)
    core.mailings.by_id["job_1"] = cancelled
    in_flight = [shard_row(MailingShard("messenger_a", "sub_1", ["sub_1"], is_done=False))]
    tx = FakeTx(answers=[0, found(cancelled), in_flight, ledger(1), 1, 1])
    await dead_mailings_of(core).dead_letter(tx, SHARD_JOB, "")

    assert [row["status"] for row in tx.rows["core_messages"]] == ["unknown"]
    assert [each.status for each in core.mailings.ended] == ["cancelled"]


# ---- a shard's run ------------------------------------------------------------------------------


def sender_of_mailings(core: FakeContext) -> MailingSender:
    recipients = RecipientSender(
        subscribers=core.subscribers,
        limits=MessageLimits.of(LIMITS),
        links=LinkTracking(secrets=core.secrets, base_url="https://msgsvc.example"),
        default_lang="en",
        files=no_checks(),
        sender=sender_of(core),
    )
    return MailingSender(
        clock=core.clock,
        channels=core.channels,
        gates=gates_of(core),
        recipients=recipients,
        outcomes=outcomes_of(core),
        mailings=core.mailings,
        retries=RETRIES,
        on_dead=ignore,
    )


def locked(mailing: Mailing, *, in_flight: tuple[str, ...] = (), project: str = "active") -> Answer:
    shard = shard_row(MailingShard("messenger_a", "", list(in_flight), is_done=False))
    return [{**row_of(mailing), **shard, "project_status": project}]


NOBODY: Answer = []


async def run_shard(core: FakeContext, mailing: Mailing, *answers: Answer) -> FakeJobContext:
    core.mailings.by_id[mailing.job_id] = mailing
    core.db.answers += [found(mailing), *answers]
    ctx = FakeJobContext(core.db)
    await sender_of_mailings(core).run(ctx, [SHARD_JOB])
    return ctx


async def test_a_shard_sends_to_its_recipients_and_the_last_one_ends_the_mailing() -> None:
    core, runs = plugin_context(), a_mailing(total=1)
    core.subscribers.person("sub_1")
    no_shard_in_flight = [shard_row(MailingShard("messenger_a", "", [], is_done=False))]
    ctx = await run_shard(
        core,
        runs,
        # Nobody waits to be tried again; one is next, and stands in flight before they are called.
        *(locked(runs), no_shard_in_flight, NOBODY, NOBODY, ledger(1), 1),
        # What became of them; nobody is next; the counts, and nobody is in flight.
        *(locked(runs, in_flight=("sub_1",)), ledger(1), NOBODY, 1, 1),
        # The end.
        *(found(runs), locked(runs), NOBODY, NOBODY, 1),
    )

    assert core.channels.recording("messenger_a").keys == ["job_1-sub_1"]
    assert core.events.names == ["delivery.success"]
    assert [each.status for each in core.mailings.ended] == ["completed"]
    assert ctx.completed == [SHARD_JOB]


async def test_of_a_paused_mailing_nobody_is_sent_to() -> None:
    core, paused = plugin_context(), a_mailing(status="paused")
    ctx = await run_shard(core, paused, locked(paused), NOBODY, found(paused), locked(paused))

    assert core.channels.recording("messenger_a").keys == []
    assert (ctx.completed, core.mailings.ended) == ([SHARD_JOB], [])


async def test_a_mailing_of_a_disabled_project_is_paused() -> None:
    core, runs, paused = plugin_context(), a_mailing(), a_mailing(status="paused")
    await run_shard(
        core,
        runs,
        *(locked(runs, project="disabled"), 1, locked(paused, project="disabled")),
        *(NOBODY, found(paused), locked(paused)),
    )

    assert "the project is disabled" in core.db.statements[2][0]
    assert core.channels.recording("messenger_a").keys == []


async def test_a_shard_gives_way_to_what_is_urgent_and_goes_on_after_it() -> None:
    core, runs = plugin_context(), a_mailing()
    await core.jobs.enqueue(FakeTx(), NewJob("channel.call", lane=LANE, priority=URGENT))
    await run_shard(core, runs, locked(runs), NOBODY, found(runs), locked(runs), ledger(1))

    assert core.channels.recording("messenger_a").keys == []
    [again] = core.jobs.named(SEND_JOB)
    assert again.run_at_ms == NOW_MS


# ---- routes -------------------------------------------------------------------------------------


def by_two_channels() -> Mailing:
    steps = [RouteStep(channel="messenger_a"), RouteStep(channel="messenger_b")]
    return a_mailing(route_id="rte_1", route_steps=steps_to_column(steps))


async def test_who_is_on_one_channel_alone_ends_as_that_did() -> None:
    core = plugin_context()
    core.db.answers += [NOBODY]
    outcome = StepOutcome("sub_1", "messenger_a", "failed", "invalid_message", "no such thing")

    async with core.db.transaction() as tx:
        ended = await routes_of_mailings(core).go_on(tx, by_two_channels(), [outcome])

    assert ended == {"sub_1": outcome}


def watch_of(core: FakeContext) -> RouteWatch:
    return RouteWatch(
        clock=core.clock,
        jobs=core.jobs,
        channels=core.channels,
        mailings=core.mailings,
        routes=routes_of_mailings(core),
        find_troubled=no_trouble,
    )


async def no_trouble(_: Tx) -> list[ChannelState]:
    return []


async def test_a_route_without_trouble_is_looked_at_again_later() -> None:
    core, mailing = plugin_context(), by_two_channels()
    job = claimed(watch_job(mailing))
    shards: Answer = [shard_row(MailingShard("messenger_a", "", [], is_done=False))]
    core.db.answers += [found(mailing), shards, found(mailing), found(mailing)]
    ctx = FakeJobContext(core.db)

    await watch_of(core).run(ctx, [job])

    [again] = core.jobs.enqueued
    assert (again.name, again.run_at_ms) == ("mailing.route", NOW_MS + WATCH_S * 1000)
