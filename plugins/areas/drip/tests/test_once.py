"""Each step once: over what dies before its commit, and with two processes at the same steps."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.events import Event
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_drip.due_store import DueStep, Move, advance, find_due, find_due_drips
from msgsvc_drip.step_runner import StepRunner

from .conftest import DAY, HOUR, WITH_DRIP, Shop


class Breaking:
    """A plugin that fails at events about steps, when all else of them is written."""

    def __init__(self, error: Exception, times: int = 1, subscriber_id: str | None = None) -> None:
        self.error = error
        self.left = times
        self.subscriber_id = subscriber_id

    @hookimpl
    async def on_events(self, events: Sequence[Event]) -> None:
        whose = {event.data["subscriber_id"] for event in events if event.name == "drip.step_sent"}
        if self.left and whose and self.subscriber_id in {None, *whose}:
            self.left -= 1
            raise self.error


async def test_what_dies_before_its_commit_is_done_again_and_once(
    make_service: Any, make_tenant: Any, clock: Any
) -> None:
    breaking = Breaking(DatabaseUnavailable("as if it were gone"))
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


async def test_what_fails_for_one_person_holds_up_nobody_else(
    make_service: Any, make_tenant: Any, clock: Any
) -> None:
    breaking = Breaking(ZeroDivisionError(), times=1000, subscriber_id="nobody yet")
    plugins = [*WITH_DRIP["extra_plugins"], ("breaking", breaking)]
    service = await make_service(**{**WITH_DRIP, "extra_plugins": plugins})
    shop = Shop(service, await make_tenant(service), clock)
    drip_id = await shop.chain("one", "two")
    people = {name: await shop.person(name) for name in ("Ann", "Bob", "Cid", "Dan", "Eve")}
    for subscriber_id in people.values():
        await shop.enroll(drip_id, subscriber_id)
    breaking.subscriber_id = people["Cid"]
    await shop.after(HOUR)

    assert shop.texts("Cid") == []
    assert [shop.texts(name) for name in people if name != "Cid"] == [["one"]] * 4
    reasons = [one["reason"] for one in await shop.enrollments(drip_id)]
    assert reasons.count(None) == 4
    assert any(reason and reason.startswith("step 1: an internal error") for reason in reasons)
    breaking.left = 0
    await shop.after(HOUR)
    assert shop.texts("Cid") == ["two"]


async def test_chain_of_many_holds_up_no_other(
    make_service: Any, make_tenant: Any, clock: Any
) -> None:
    idle = {**WITH_DRIP, "jobs": {"runner": "none"}, "drip": {"look_s": 0.001, "batch": 10}}
    service = await make_service(**idle)
    shop = Shop(service, await make_tenant(service), clock)
    many, few = await shop.chain("many"), await shop.chain("few")
    for number in range(20):
        await shop.enroll(many, await shop.person(f"P{number}"))
    clock.advance(60)
    await shop.enroll(few, await shop.person("Ann"))
    clock.advance(2 * HOUR)

    assert await service.get(StepRunner).run_batch()

    messages = (await shop.client.get("/v1/messages?limit=100")).json()["data"]
    assert Counter(message["text"] for message in messages) == {"many": 5, "few": 1}


@pytest.mark.database_file
@pytest.mark.both_databases
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
            await service.get(StepRunner).run_batch()

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
    [seen] = await due_at(shop, later_ms)
    move = Move(seen, "active", 1, later_ms, None, None)
    await shop.call(f"/drips/enrollments/{enrollment_id}/pause")
    async with shop.service.db.transaction() as tx:
        assert await advance(tx, [move], later_ms) == set()
    await shop.call(f"/drips/enrollments/{enrollment_id}/resume")
    async with shop.service.db.transaction() as tx:
        assert await advance(tx, [move], later_ms) == {enrollment_id}
    async with shop.service.db.transaction() as tx:
        assert await advance(tx, [move], later_ms) == set()


async def test_step_is_not_taken_from_before_a_pause_of_the_chain(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    enrollment_id = await shop.enroll(drip_id, await shop.person())
    later_ms = shop.clock.now_ms() + DAY * 1000
    [seen] = await due_at(shop, later_ms)
    move = Move(seen, "active", 1, later_ms, None, None)
    await shop.call(f"/drips/{drip_id}/pause")
    async with shop.service.db.transaction() as tx:
        assert await advance(tx, [move], later_ms) == set()
    shop.clock.advance(1)
    await shop.call(f"/drips/{drip_id}/resume")
    async with shop.service.db.transaction() as tx:
        assert await advance(tx, [move], later_ms) == set()
    [seen] = await due_at(shop, later_ms)
    async with shop.service.db.transaction() as tx:
        assert await advance(tx, [Move(seen, "active", 1, later_ms, None, None)], later_ms) == {
            enrollment_id
        }


async def test_pause_of_a_chain_is_answered_when_the_steps_in_hand_are_written(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    await shop.enroll(drip_id, await shop.person())
    later_ms = shop.clock.now_ms() + DAY * 1000
    [seen] = await due_at(shop, later_ms)
    async with shop.service.db.transaction() as tx:
        assert await advance(tx, [Move(seen, "active", 1, later_ms, None, None)], later_ms)
        pause = asyncio.create_task(shop.call(f"/drips/{drip_id}/pause"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(pause), 0.2)

    assert (await pause)["status"] == "paused"


async def due_at(shop: Shop, at_ms: int) -> list[DueStep]:
    """What is due then."""
    async with shop.service.db.read() as tx:
        return [
            one
            for chain in await find_due_drips(tx, at_ms, 10)
            for one in await find_due(tx, chain, at_ms, 10)
        ]
