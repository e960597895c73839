"""Each step once: over what dies before its commit, and with two processes at the same steps."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgsvc_core.events import Event
from msgsvc_core.hookspecs import hookimpl
from msgsvc_drip.enrollment_store import Move, find_due, take
from msgsvc_drip.taking import StepTaker

from .conftest import DAY, HOUR, WITH_DRIP, Shop


class Breaking:
    """A plugin that dies of the first events about steps, when all else of them is written."""

    def __init__(self, times: int) -> None:
        self.left = times

    @hookimpl
    async def on_events(self, events: Sequence[Event]) -> None:
        if self.left and any(event.name == "drip.step_sent" for event in events):
            self.left -= 1
            raise RuntimeError("as if the process died here")


async def test_what_dies_before_its_commit_is_done_again_and_once(
    make_service: Any, make_tenant: Any, clock: Any
) -> None:
    breaking = Breaking(times=1)
    plugins = [*WITH_DRIP["extra_plugins"], ("breaking", breaking)]
    service = await make_service(**{**WITH_DRIP, "extra_plugins": plugins})
    shop = Shop(service, await make_tenant(service), clock)
    drip_id = await shop.chain("one", "two")
    for number in range(3):
        await shop.enroll(drip_id, await shop.person(f"P{number}"))
    await shop.after(HOUR)
    assert (breaking.left, shop.texts()) == (0, [])
    # A failed job comes again after a while.
    await shop.after(60)

    assert Counter(shop.texts()) == {"one": 3}
    assert len(await shop.told("drip.step_sent")) == 3
    assert await shop.after(HOUR) == ["one"] * 3 + ["two"] * 3


async def test_two_processes_at_the_same_steps_take_each_once(
    make_service: Any, make_tenant: Any, clock: Any
) -> None:
    idle = {**WITH_DRIP, "jobs": {"runner": "none"}, "drip": {"look_s": 0.001, "batch": 5}}
    first = await make_service(**idle)
    shop = Shop(first, await make_tenant(first), clock)
    second = await make_service(**idle, database_url=first.settings.database_url)
    drip_id = await shop.chain("one", "two")
    for number in range(20):
        await shop.enroll(drip_id, await shop.person(f"P{number}"))
    clock.advance(HOUR)

    async def take_all(service: Any) -> None:
        for _ in range(20):
            await service.get(StepTaker).take_some()

    await asyncio.gather(*(take_all(service) for service in (first, second, first, second)))

    messages = (await shop.client.get("/v1/messages?limit=100")).json()["data"]
    receivers = Counter(message["subscriber_id"] for message in messages)
    assert set(receivers.values()) == {1}
    assert len(receivers) == 20
    assert len(await shop.told("drip.step_sent")) == 20


async def test_step_is_not_taken_from_where_somebody_was(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    enrollment_id = await shop.enroll(drip_id, await shop.person())
    later_ms = shop.clock.now_ms() + DAY * 1000
    async with shop.service.db.read() as tx:
        [(seen, _)] = await find_due(tx, later_ms, 10)
    move = Move(seen, "active", 1, later_ms, None, None)
    await shop.call(f"/drips/enrollments/{enrollment_id}/pause")
    async with shop.service.db.transaction() as tx:
        assert await take(tx, [move], later_ms) == set()
    await shop.call(f"/drips/enrollments/{enrollment_id}/resume")
    async with shop.service.db.transaction() as tx:
        assert await take(tx, [move], later_ms) == {enrollment_id}
    async with shop.service.db.transaction() as tx:
        assert await take(tx, [move], later_ms) == set()
