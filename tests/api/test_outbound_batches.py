"""Batches of jobs that call one channel: who is behind whom."""

import asyncio

import pytest

from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.jobs.contract import Job, NewJob
from msgsvc_core.service import Service
from msgsvc_devkit.contexts import JobInTest, claimed

#: The kinds of jobs that a channel's lane holds, each with what names its receiver.
KINDS = {
    "message.deliver": {"message_id": "msg_1", "subscriber_id": "sub_1"},
    "message.change": {"message_id": "msg_1", "subscriber_id": "sub_1"},
    "channel.call": {"call": "send", "chat_id": "1001"},
    "channel.open_thread": {"chat_id": "1001"},
}


def job_of(name: str) -> Job:
    return claimed(NewJob(name, KINDS[name], lane="channel:messenger_a"))


@pytest.mark.parametrize("name", KINDS)
async def test_a_job_does_not_overtake_one_that_failed(service: Service, name: str) -> None:
    first, second = job_of(name), job_of(name)
    with pytest.raises(RuntimeError, match="broke"):
        async with service.get(OutboundGates).batch(JobInTest(service.db), [first]):
            raise RuntimeError("it broke")

    ctx = JobInTest(service.db)
    async with service.get(OutboundGates).batch(ctx, [second]) as batch:
        left = batch.jobs

    assert left == []
    assert [job for job, _ in ctx.rescheduled] == [second]


async def test_a_batch_begins_when_an_earlier_one_of_its_receiver_has_ended(
    service: Service,
) -> None:
    order: list[str] = []

    async def work(name: str) -> None:
        async with service.get(OutboundGates).batch(
            JobInTest(service.db), [job_of("message.deliver")]
        ):
            order.append(f"{name} begins")
            await asyncio.sleep(0)
            order.append(f"{name} ends")

    await asyncio.gather(work("first"), work("second"))

    assert order == ["first begins", "first ends", "second begins", "second ends"]


async def test_a_batch_knows_its_channel_and_that_it_is_gone(service: Service) -> None:
    there, gone = (
        job_of("channel.call"),
        claimed(NewJob("channel.call", lane="channel:messenger_z")),
    )

    async with (
        service.get(OutboundGates).batch(JobInTest(service.db), [there]) as batch,
        service.get(OutboundGates).batch(JobInTest(service.db), [gone]) as lost,
    ):
        assert batch.channel is service.channels["messenger_a"]
        assert batch.gate is service.get(OutboundGates)["messenger_a"]
        assert lost.channel is None
        assert lost.jobs == [gone]
