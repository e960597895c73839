"""Every plugin loads alone with the core, and leaves no trace when it is taken out."""

from importlib.metadata import entry_points

import httpx2

from msgsvc_core.config.settings import Settings
from msgsvc_core.plugins.loading import ENTRY_POINT_GROUP
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.services import SECRET_KEY
from tests.architecture.tree import ROOT, source_of

OURS = sorted(
    point.name
    for point in entry_points(group=ENTRY_POINT_GROUP)
    if point.value.startswith("msgsvc_")
)


def test_each_plugin_loads_alone_by_its_name() -> None:
    loaded = {
        name: Service(
            Settings.model_validate(
                {"secret_keys": (SECRET_KEY,), "plugins": (name,), "channels": {}}
            )
        ).plugins.has_plugin(name)
        for name in OURS
    }

    assert len(loaded) > 10
    assert all(loaded.values())


def test_each_plugin_keeps_the_contract_of_plugins() -> None:
    """Which starts it alone, stops it, and takes it out."""
    without = [
        path.parent.name
        for path in ROOT.glob("plugins/*/*/pyproject.toml")
        if "(PluginContract)" not in source_of(path.parent / "tests" / "test_conformance.py")
    ]

    assert without == []


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
