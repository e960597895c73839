"""Messages with a route: moves, and what ends them."""

from dataclasses import replace
from typing import Any

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import NewJob
from msgsvc_core.messages.deliveries import Delivery
from msgsvc_core.messages.delivery import JOB
from msgsvc_core.messages.models import FinalStatus, Message
from msgsvc_core.messages.outcomes import MessageOutcomes
from msgsvc_core.messages.route_moves import DEADLINE
from msgsvc_core.messages.route_progress import CALL_S, RouteProgress
from msgsvc_core.routing.models import RouteStep, steps_to_column
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore
from tests.unit.parts.rows import NOW_MS, insert_message

STEPS = (
    RouteStep(channel="messenger_a", until="delivered", within_seconds=60),
    RouteStep(channel="messenger_b"),
)
#: Of the message at its second step.
LAST_STEP = {
    "route_step": 1,
    "subscriber_id": "sub_2",
    "channel": "messenger_b",
    "bot": "messenger_b",
}


async def routed(core: MemoryCore, tx: Tx, **fields: Any) -> Message:
    """The message `msg_1`, by default at its first step, to a person on both channels."""
    await core.person(tx, external_id="ann")
    await core.person(tx, "sub_2", external_id="ann", channel="messenger_b")
    given = {"route_id": "rte_1", "route_steps": steps_to_column(STEPS), "route_step": 0, **fields}
    return await insert_message(tx, **given)


async def refuse(core: MemoryCore, tx: Tx, message: Message) -> list[FinalStatus]:
    """The platform refuses the message at its step."""
    job = claimed(NewJob(JOB, {"message_id": "msg_1", "step": message.route_step}))
    delivery = Delivery(job, message, None)
    delivery.failure = DeliveryError(Reason.INVALID_MESSAGE, "too long")
    return await core.service.get(MessageOutcomes).settle(tx, [delivery])


async def test_a_message_goes_on_with_a_job_of_the_next_bot(core: MemoryCore, tx: Tx) -> None:
    ended = await refuse(core, tx, await routed(core, tx))
    message = await core.messages.find(tx, PROJECT, "msg_1")

    assert (ended, core.emitted) == ([], [])
    assert (message.status, message.route_step) == ("queued", 1)
    assert (message.bot, message.subscriber_id) == ("messenger_b", "sub_2")
    assert [(copy.step, copy.status, copy.error) for copy in message.past_steps] == [
        (0, "failed", "too long")
    ]
    [job] = await core.jobs_named(tx, JOB)
    assert (job.lane, job.payload["step"]) == ("channel:messenger_b", 1)


async def test_a_message_that_has_moved_already_stays_as_it_is(core: MemoryCore, tx: Tx) -> None:
    message = await routed(core, tx)
    await refuse(core, tx, message)
    moved = await core.messages.find(tx, PROJECT, "msg_1")
    ended = await refuse(core, tx, message)

    assert (ended, core.emitted) == ([], [])
    assert await core.messages.find(tx, PROJECT, "msg_1") == moved
    assert len(await core.pending_jobs(tx)) == 1


async def test_a_step_that_waits_for_a_report_is_not_left_by_a_late_call(
    core: MemoryCore, tx: Tx
) -> None:
    waiting = await routed(core, tx, status="sending", waits_for="delivered")
    as_it_was = replace(waiting, status="queued", waits_for=None)
    ended = await refuse(core, tx, as_it_was)

    assert (ended, core.emitted) == ([], [])
    assert await core.messages.find(tx, PROJECT, "msg_1") == waiting
    assert await core.pending_jobs(tx) == []


async def test_a_message_without_a_further_step_fails_with_its_reasons(
    core: MemoryCore, tx: Tx
) -> None:
    [end] = await refuse(core, tx, await routed(core, tx, **LAST_STEP))
    message = await core.messages.find(tx, PROJECT, "msg_1")

    reasons = ("failed", "invalid_message", "messenger_b: too long")
    assert (end.status, end.reason, end.error) == reasons
    assert (message.status, message.reason, message.error) == reasons
    assert core.event_names == ["delivery.failed"]


async def test_a_step_whose_call_is_in_progress_is_looked_at_again(core: MemoryCore) -> None:
    async with core.db.transaction() as tx:
        message = await routed(core, tx, status="sending")
    ctx = JobInTest(core.db)
    job = claimed(NewJob(DEADLINE, {"message_id": "msg_1", "step": 0}, project_id=PROJECT))
    await core.service.get(RouteProgress).look(ctx, [job])
    async with core.db.read() as tx:
        [again] = await core.jobs_named(tx, DEADLINE)

        assert await core.messages.find(tx, PROJECT, "msg_1") == message
    assert ctx.completed == [job]
    assert again.payload == job.payload
    assert again.run_at_ms == NOW_MS + CALL_S * 1000
