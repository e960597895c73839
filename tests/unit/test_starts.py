"""The order in which the parts of batches start."""

import asyncio
from collections.abc import Sequence

from msgsvc_core.jobs.contract import Job
from msgsvc_core.jobs.starts import Starts


def jobs(*names: str, priority: int = 5) -> list[list[Job]]:
    return [
        [
            Job(
                job_id=f"job_{name}",
                name=name,
                lane="channel:a",
                payload={},
                attempts=1,
                deliveries=1,
                created_at_ms=0,
                project_id=None,
                priority=priority,
            )
        ]
        for name in names
    ]


class Lane:
    """Notes which parts of which batch have started; each lasts until it is told to end."""

    def __init__(self) -> None:
        self.starts, self.started = Starts(), list[str]()
        self.ends: dict[str, asyncio.Event] = {}

    async def run(self, batch: str, parts: Sequence[Sequence[Job]]) -> None:
        async with self.starts.places(parts) as places:
            for part, place in zip(parts, places, strict=True):
                await self.starts.reach(place)
                name = f"{batch} {part[0].name}"
                self.started.append(name)
                self.ends[name] = asyncio.Event()
                await self.ends[name].wait()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        for _ in range(5):
            await asyncio.sleep(0)


async def started(*batches: asyncio.Task[None]) -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_later_batch_does_not_start_before_an_earlier_ones_second_part() -> None:
    lane = Lane()
    first = asyncio.create_task(lane.run("first", jobs("message", "notice")))
    second = asyncio.create_task(lane.run("second", jobs("notice")))
    await started(first, second)
    assert lane.started == ["first message"]

    await lane.end("first message")
    assert lane.started == ["first message", "first notice", "second notice"]
    await lane.end("first notice")
    await lane.end("second notice")
    await asyncio.gather(first, second)


async def test_what_shares_no_kind_starts_at_once() -> None:
    lane = Lane()
    first = asyncio.create_task(lane.run("first", jobs("message", "notice")))
    urgent = asyncio.create_task(lane.run("urgent", jobs("notice", priority=1)))
    other = asyncio.create_task(lane.run("other", jobs("message")))
    await started(first, urgent, other)

    assert lane.started == ["first message", "urgent notice", "other message"]
    for task in (first, urgent, other):
        task.cancel()
    await asyncio.gather(first, urgent, other, return_exceptions=True)


async def test_a_batch_that_is_given_up_holds_nobody_up() -> None:
    lane = Lane()
    first = asyncio.create_task(lane.run("first", jobs("message", "notice")))
    second = asyncio.create_task(lane.run("second", jobs("notice")))
    await started(first, second)
    first.cancel()
    await started(first, second)

    assert lane.started == ["first message", "second notice"]
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
