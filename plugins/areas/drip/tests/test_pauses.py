"""Pauses of a chain and of one person in it, the end of both, and edits of a chain that is under way."""

from typing import Any

import pytest

from msgsvc_devkit import settled
from msgsvc_drip import jobs

from .conftest import DAY, HOUR, WITH_DRIP, Shop, refusal, steps_of


async def test_paused_chain_sends_nothing_and_goes_on_where_it_was(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR / 2)
    paused = await shop.call(f"/drips/{drip_id}/pause")
    assert await shop.after(10 * HOUR) == []
    resumed = await shop.call(f"/drips/{drip_id}/resume")

    assert (paused["status"], resumed["status"]) == ("paused", "active")
    assert await shop.after(HOUR / 2 - 1) == []
    assert await shop.after(1) == ["one"]
    assert await shop.after(HOUR - 1) == ["one"]
    assert await shop.after(1) == ["one", "two"]


async def test_pause_and_resume_twice_change_nothing_more(shop: Shop) -> None:
    drip_id = await shop.chain("one")
    await shop.enroll(drip_id, await shop.person())
    for seconds in (0, HOUR):
        await shop.after(seconds)
        await shop.call(f"/drips/{drip_id}/pause")
    for _ in range(2):
        await shop.call(f"/drips/{drip_id}/resume")

    [enrollment] = await shop.enrollments(drip_id)
    assert enrollment["due_at"] == "2026-01-15T14:00:00.000Z"


async def test_paused_chain_takes_nobody_in(shop: Shop) -> None:
    drip_id = await shop.chain("Welcome", trigger={"on": "subscription"}, status="paused")
    ann = await shop.person()
    answer = await shop.client.post(f"/v1/drips/{drip_id}/enroll", json={"subscriber_id": ann})

    assert refusal(answer) == (409, "conflict")
    assert await shop.enrollments(drip_id) == []


async def test_several_pauses_add_up_for_who_came_before_them_and_not_for_who_came_after(
    shop: Shop,
) -> None:
    drip_id = await shop.chain("one", "two")
    await shop.enroll(drip_id, await shop.person("Ann"))
    for _ in range(2):
        await shop.after(60)
        await shop.call(f"/drips/{drip_id}/pause")
        await shop.after(10 * HOUR)
        await shop.call(f"/drips/{drip_id}/resume")
    await shop.enroll(drip_id, await shop.person("Bob"))

    due = [one["due_at"] for one in await shop.enrollments(drip_id)]
    assert due == ["2026-01-16T09:00:00.000Z", "2026-01-16T09:02:00.000Z"]
    await shop.after(HOUR - 121)
    assert shop.texts() == []
    await shop.after(1)
    assert (shop.texts("Ann"), shop.texts("Bob")) == (["one"], [])
    await shop.after(120)
    assert (shop.texts("Ann"), shop.texts("Bob")) == (["one"], ["one"])
    # The second steps follow an hour after the first ones.
    await shop.after(HOUR - 121)
    assert (shop.texts("Ann"), shop.texts("Bob")) == (["one"], ["one"])
    await shop.after(1)
    assert (shop.texts("Ann"), shop.texts("Bob")) == (["one", "two"], ["one"])


async def test_chain_that_begins_paused_goes_on_when_it_is_resumed(shop: Shop) -> None:
    drip_id = await shop.chain("one", status="paused")
    await shop.after(DAY)
    await shop.call(f"/drips/{drip_id}/resume")
    await shop.enroll(drip_id, await shop.person())

    assert await shop.after(HOUR - 1) == []
    assert await shop.after(1) == ["one"]


async def test_who_pauses_in_a_paused_chain_has_left_what_was_left_when_that_paused(
    shop: Shop,
) -> None:
    drip_id = await shop.chain("one")
    enrollment_id = await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR / 2)
    await shop.call(f"/drips/{drip_id}/pause")
    await shop.after(DAY)
    await shop.call(f"/drips/enrollments/{enrollment_id}/pause")
    await shop.after(DAY)
    await shop.call(f"/drips/{drip_id}/resume")
    await shop.after(DAY)
    await shop.call(f"/drips/enrollments/{enrollment_id}/resume")

    assert await shop.after(HOUR / 2 - 1) == []
    assert await shop.after(1) == ["one"]


async def test_step_that_was_late_at_the_pause_goes_out_at_its_end_and_not_before(
    make_service: Any, make_tenant: Any, clock: Any
) -> None:
    idle = await make_service(**WITH_DRIP, jobs={"runner": "none"})
    shop = Shop(idle, await make_tenant(idle), clock)
    drip_id = await shop.chain("one", "two")
    await shop.enroll(drip_id, await shop.person())
    clock.advance(2 * HOUR)
    await shop.call(f"/drips/{drip_id}/pause")
    worker = await make_service(**WITH_DRIP, database_url=idle.settings.database_url)
    there = Shop(worker, shop.tenant, clock)
    assert await there.after(HOUR) == []
    await shop.call(f"/drips/{drip_id}/resume")
    assert await there.after(1) == ["one"]
    assert await there.after(HOUR - 1) == ["one"]

    assert await there.after(1) == ["one", "two"]


async def test_steps_of_a_disabled_project_wait_until_it_is_enabled(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    await shop.enroll(drip_id, await shop.person())
    await shop.service.projects.set_active(shop.project_id, False)
    assert await shop.after(3 * HOUR) == []
    await shop.service.projects.set_active(shop.project_id, True)
    assert await shop.after(1) == ["one"]

    assert await shop.after(HOUR) == ["one", "two"]


async def test_paused_person_waits_while_others_go_on(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    ann, bob = await shop.person("Ann"), await shop.person("Bob")
    enrollment_id = await shop.enroll(drip_id, ann)
    await shop.enroll(drip_id, bob)
    await shop.after(HOUR / 2)
    paused = await shop.call(f"/drips/enrollments/{enrollment_id}/pause")
    await shop.after(3 * HOUR)
    resumed = await shop.call(f"/drips/enrollments/{enrollment_id}/resume")
    await shop.after(HOUR / 2 - 1)

    assert (paused["status"], paused["due_at"]) == ("paused", None)
    assert (resumed["status"], resumed["due_at"]) == ("active", "2026-01-15T16:00:00.000Z")
    # Three hours passed at once: the second step's hour began when the first one was sent.
    assert (shop.texts("Ann"), shop.texts("Bob")) == ([], ["one"])
    await shop.after(1)
    assert shop.texts("Ann") == ["one"]


@pytest.mark.parametrize("chain_first", [True, False])
async def test_person_who_is_paused_in_a_paused_chain_needs_both_to_go_on(
    shop: Shop, chain_first: bool
) -> None:
    drip_id = await shop.chain("one")
    enrollment_id = await shop.enroll(drip_id, await shop.person())
    both = [f"/drips/{drip_id}", f"/drips/enrollments/{enrollment_id}"]
    for path in both if chain_first else reversed(both):
        await shop.call(f"{path}/pause")
    first, second = both if chain_first else list(reversed(both))
    await shop.call(f"{first}/resume")
    assert await shop.after(2 * HOUR) == []
    await shop.call(f"{second}/resume")

    assert await shop.after(HOUR - 1) == []
    assert await shop.after(1) == ["one"]


async def test_cancelled_person_gets_nothing_more(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    enrollment_id = await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR)
    cancelled = await shop.call(f"/drips/enrollments/{enrollment_id}/cancel")

    assert (cancelled["status"], cancelled["next_step"]) == ("cancelled", None)
    assert await shop.after(HOUR) == ["one"]
    for action in ("pause", "resume", "cancel"):
        answer = await shop.client.post(f"/v1/drips/enrollments/{enrollment_id}/{action}")
        assert refusal(answer) == (409, "conflict")


async def test_people_finish_the_version_that_they_began(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two", "three")
    ann, bob = await shop.person("Ann"), await shop.person("Bob")
    await shop.enroll(drip_id, ann)
    await shop.after(HOUR)
    edited = await shop.call(
        f"/drips/{drip_id}", "PATCH", steps=steps_of("zero", "one", "two", "x")
    )
    await shop.enroll(drip_id, bob)
    for _ in range(4):
        await shop.after(HOUR)

    assert edited["version"] == 2
    assert shop.texts("Ann") == ["one", "two", "three"]
    assert shop.texts("Bob") == ["zero", "one", "two", "x"]
    assert [one["version"] for one in await shop.enrollments(drip_id)] == [1, 2]


async def test_shorter_chain_ends_nobody_who_is_in_it(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two", "three", stop_on=["order.paid"])
    ann = await shop.person("Ann")
    await shop.enroll(drip_id, ann)
    await shop.after(HOUR)
    await shop.call(f"/drips/{drip_id}", "PATCH", steps=steps_of("new"), stop_on=[])
    assert await shop.after(HOUR) == ["one", "two"]
    await shop.call("/events", subscriber_id=ann, name="order.paid")

    assert await shop.after(HOUR) == ["one", "two"]
    [enrollment] = await shop.enrollments(drip_id)
    assert (enrollment["status"], enrollment["reason"]) == ("stopped", "order.paid")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_new_trigger_and_name_hold_at_once_and_make_no_version(shop: Shop) -> None:
    drip_id = await shop.chain("one")
    edited = await shop.call(
        f"/drips/{drip_id}", "PATCH", name="Hello", trigger={"on": "subscription"}
    )
    ann = await shop.person()

    assert (edited["name"], edited["version"]) == ("Hello", 1)
    assert [one["subscriber_id"] for one in await shop.enrollments(drip_id)] == [ann]


async def test_deleted_chain_sends_nothing_more(shop: Shop) -> None:
    drip_id = await shop.chain("one", "two")
    await shop.enroll(drip_id, await shop.person())
    await shop.after(HOUR)
    await shop.call(f"/drips/{drip_id}", "DELETE")

    assert await shop.after(HOUR) == ["one"]
    assert refusal(await shop.client.get(f"/v1/drips/{drip_id}")) == (404, "not_found")
    assert refusal(await shop.client.delete(f"/v1/drips/{drip_id}")) == (404, "not_found")


async def test_those_of_a_deleted_chain_are_removed_a_part_at_a_time(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "REMOVED_AT_ONCE", 2)
    drip_id, other = await shop.chain("one"), await shop.chain("two")
    for number in range(5):
        person = await shop.person(f"P{number}")
        await shop.enroll(drip_id, person)
    await shop.enroll(other, person)

    await shop.call(f"/drips/{drip_id}", "DELETE")
    await settled(shop.service)

    assert [one["drip_id"] for one in (await shop.call("/drips", "GET"))["data"]] == [other]
    async with shop.service.db.read() as tx:
        for table in ("drip_chains", "drip_versions", "drip_enrollments"):
            rows = await tx.fetch_all(f"SELECT drip_id FROM {table}")
            assert {row["drip_id"] for row in rows} == {other}
