"""What plugins ask about people and projects in place of SQL of their own."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant

from .subscribing import Subscribe

MakeTenant = Callable[..., Awaitable[Tenant]]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_locking_people_tells_who_there_are_and_how_they_stand(
    service: Service, tenant: Tenant, subscribe: Subscribe
) -> None:
    project_id = tenant.project.project_id
    ann, ben = await subscribe("Ann"), await subscribe("Ben")
    async with service.db.transaction() as tx:
        await service.subscribers.unsubscribe(tx, project_id, ben, reason="api")
    asked = [(project_id, ann), (project_id, ben), (project_id, "sub_none"), ("prj_none", ann)]

    async with service.db.transaction() as tx:
        found = await service.subscribers.lock_existing(tx, [*asked, asked[0]])
        nobody = await service.subscribers.lock_existing(tx, [])

    assert found == {(project_id, ann): "active", (project_id, ben): "unsubscribed"}
    assert nobody == {}


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_nobody_who_is_locked_is_erased_until_the_transaction_ends(
    service: Service, tenant: Tenant, subscribe: Subscribe
) -> None:
    project_id = tenant.project.project_id
    key = (project_id, await subscribe("Ann"))

    async def erase() -> None:
        async with service.db.transaction() as tx:
            await service.subscribers.erase(tx, *key)

    async with service.db.transaction() as tx:
        assert key in await service.subscribers.lock_existing(tx, [key])
        erasing = asyncio.create_task(erase())
        await asyncio.wait([erasing], timeout=0.05)
        is_there = key in await service.subscribers.get_many(tx, [key])
    await erasing

    assert is_there
    async with service.db.transaction() as tx:
        assert await service.subscribers.lock_existing(tx, [key]) == {}


async def test_whoever_is_being_erased_is_skipped_or_waited_for(
    service: Service, tenant: Tenant, subscribe: Subscribe
) -> None:
    project_id = tenant.project.project_id
    ann, ben = [(project_id, await subscribe(name)) for name in ("Ann", "Ben")]
    if service.db.dialect == "sqlite":
        pytest.skip("one transaction writes at a time, so nobody is being erased beside it")

    async def wait_for() -> set[tuple[str, str]]:
        async with service.db.transaction() as tx:
            return set(await service.subscribers.lock_existing(tx, [ann, ben]))

    async with service.db.transaction() as erasing:
        await service.subscribers.erase(erasing, *ann)
        async with service.db.transaction() as tx:
            free = await service.subscribers.lock_existing(tx, [ann, ben], skip_locked=True)
        waiting = asyncio.create_task(wait_for())
        await asyncio.wait([waiting], timeout=0.05)
        has_waited = not waiting.done()

    assert set(free) == {ben}
    assert has_waited
    assert await waiting == {ben}


async def test_a_bot_knows_a_person_across_projects(
    service: Service, tenant: Tenant, subscribe: Subscribe, make_tenant: MakeTenant
) -> None:
    other = await make_tenant(service, "News")
    first, second = await subscribe("Ann"), await subscribe("Ann", to=other)
    await subscribe("Ben")

    async with service.db.read() as tx:
        known = await service.subscribers.list_by_user(tx, "messenger_a", "user-Ann")
        found = await service.subscribers.find_by_user(
            tx, other.project.project_id, "messenger_a", "user-Ann"
        )

    assert [(one.project_id, one.subscriber_id, one.status) for one in known] == [
        (tenant.project.project_id, first, "active"),
        (other.project.project_id, second, "active"),
    ]
    assert found is not None
    assert found.subscriber_id == second


async def test_disabled_projects_are_found_among_all_and_among_some(
    service: Service, tenant: Tenant, make_tenant: MakeTenant
) -> None:
    other = await make_tenant(service, "News")
    active, disabled = tenant.project.project_id, other.project.project_id
    await service.projects.set_active(disabled, False)

    async with service.db.read() as tx:
        of_all = await service.projects.find_disabled(tx)
        of_some = await service.projects.find_disabled(tx, [active])
        of_none = await service.projects.find_disabled(tx, [])
        many = await service.projects.get_many(tx, [active, disabled, "prj_none"])

    assert (of_all, of_some, of_none) == ({disabled}, set(), set())
    assert {project_id: one.status for project_id, one in many.items()} == {
        active: "active",
        disabled: "disabled",
    }
