"""When an API key was last used, and what a key may be called."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from msgsvc_core.kernel.errors import ValidationFailed
from msgsvc_core.projects import key_uses
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant


async def last_used(service: Service, tenant: Tenant) -> int | None:
    [listed] = await service.projects.list_keys(tenant.project.project_id)
    return listed.last_used_at_ms


async def test_a_new_key_was_never_used(service: Service, tenant: Tenant) -> None:
    assert await last_used(service, tenant) is None


async def test_the_last_use_of_a_key_is_written(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.client.get("/v1/project")
    clock.advance(10)
    await tenant.client.get("/v1/project")
    used_at_ms = clock.now_ms()
    clock.advance(30)

    await service.projects.key_uses.write()

    assert await last_used(service, tenant) == used_at_ms


async def test_a_request_itself_writes_no_use(service: Service, tenant: Tenant) -> None:
    await tenant.client.get("/v1/project")

    assert await last_used(service, tenant) is None


async def test_uses_are_written_every_minute(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert key_uses.WRITE_EVERY_S == 60
    monkeypatch.setattr(key_uses, "WRITE_EVERY_S", 0.02)
    service = await make_service()
    tenant = await make_tenant(service)

    async def used() -> bool:
        return await last_used(service, tenant) == clock.now_ms()

    for _ in range(2):
        clock.advance(60)
        await tenant.client.get("/v1/project")
        await until(used)


async def test_uses_are_written_when_the_service_stops(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.client.get("/v1/project")

    await service.stop()
    await service.start()

    assert await last_used(service, tenant) == clock.now_ms()


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_use_that_another_process_wrote_later_stays(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    await tenant.client.get("/v1/project")
    later_ms = clock.now_ms() + 5000
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_api_keys SET last_used_at_ms = :at_ms", {"at_ms": later_ms})

    await service.projects.key_uses.write()

    assert await last_used(service, tenant) == later_ms


async def test_a_refused_key_was_not_used(service: Service, tenant: Tenant) -> None:
    await service.projects.set_active(tenant.project.project_id, False)
    await tenant.client.get("/v1/project")

    await service.projects.key_uses.write()

    assert await last_used(service, tenant) is None


async def test_uses_of_many_keys_are_written_together(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    project_id = tenant.project.project_id
    secrets = [(await service.projects.create_key(project_id, f"k{n}"))[1] for n in range(20)]
    async with asyncio.TaskGroup() as tasks:
        for secret in secrets:
            tasks.create_task(service.projects.authenticate(secret))

    await service.projects.key_uses.write()

    uses = [listed.last_used_at_ms for listed in await service.projects.list_keys(project_id)]
    assert uses == [None, *[clock.now_ms()] * 20]


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "a\nb", "a\x00", "a\u202eb", "a\u200b", "x" * 65, "\x1b[31mred"]
)
async def test_a_key_has_a_name_that_can_be_shown(
    service: Service, tenant: Tenant, name: str
) -> None:
    with pytest.raises(ValidationFailed, match=re.escape("name: must be 1-64 printable")):
        await service.projects.create_key(tenant.project.project_id, name)


@pytest.mark.shared_service
@pytest.mark.parametrize("name", ["x", "x" * 64, "Касса № 1", "site (old)"])
async def test_a_key_may_be_called_what_people_say(
    service: Service, tenant: Tenant, name: str
) -> None:
    key, _ = await service.projects.create_key(tenant.project.project_id, name)

    assert key.name == name
