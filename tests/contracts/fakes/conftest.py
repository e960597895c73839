"""A plugin's context twice: of a real service on SQLite, and of fakes."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit import FakeClock, plugin_context
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.fixtures import ServiceFactory


class Capture:
    """A plugin that keeps the context which it is given."""

    context: PluginContext

    @hookimpl
    def create_plugin(self, context: PluginContext) -> object:
        self.context = context
        return object()


@pytest.fixture
def backend(
    databases: dict[str, SQLiteDatabases | PostgresDatabases],
) -> SQLiteDatabases | PostgresDatabases:
    """SQLite alone: the real parts have their own tests on both databases."""
    return databases["sqlite"]


@pytest.fixture(params=["real", "fake"])
async def core(
    request: pytest.FixtureRequest, make_service: ServiceFactory, clock: FakeClock
) -> AsyncIterator[PluginContext]:
    """The ports of plugins, real and fake. Nobody runs their jobs."""
    if request.param == "fake":
        yield plugin_context(clock=clock)
        return
    capture = Capture()
    service = await make_service(extra_plugins=[("capture", capture)], start=False)
    await service.open_database()
    yield capture.context
    await service.db.disconnect()


@pytest.fixture
async def tx(core: PluginContext) -> AsyncIterator[Tx]:
    """A transaction that is committed after the test."""
    async with core.db.transaction() as transaction:
        yield transaction


@pytest.fixture
async def project_id(core: PluginContext, tx: Tx) -> str:
    """A project named Shop."""
    return (await core.projects.add(tx, "Shop")).project_id
