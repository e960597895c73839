"""Every plugin loads alone with the core, and leaves no trace when it is taken out."""

from importlib.metadata import entry_points

import httpx2
import pytest

from msgsvc_core.plugins.loading import ENTRY_POINT_GROUP
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory

OURS = sorted(
    point.name
    for point in entry_points(group=ENTRY_POINT_GROUP)
    if point.value.startswith("msgsvc_")
)


@pytest.mark.parametrize("name", OURS)
async def test_a_plugin_loads_alone_and_starts(name: str, make_service: ServiceFactory) -> None:
    service = await make_service(plugins=(name,))

    assert await _answers(service)


async def test_a_service_goes_on_after_a_plugin_is_taken_out(make_service: ServiceFactory) -> None:
    with_all = await make_service(plugins=tuple(OURS))
    project = await with_all.projects.create("Shop")
    await with_all.stop()

    alone = await make_service(
        database_url=with_all.settings.database_url, plugins=(), jobs={"sweep_s": 0.05}
    )

    assert [found.project_id for found in await alone.projects.list()] == [project.project_id]
    assert await _answers(alone)


async def _answers(service: Service) -> bool:
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        documented = await client.get("/openapi.json")
        ready = await client.get("/readyz")
    return documented.status_code == ready.status_code == 200
