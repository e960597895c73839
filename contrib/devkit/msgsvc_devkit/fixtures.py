"""Pytest fixtures: a service on each database, with a clock that the test controls.

`service` and `client` run a test once on SQLite and once on PostgreSQL, if available: see
`msgsvc_devkit.machine`. `core` has the parts of a service that is not started, for unit tests.
"""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec

import httpx2
import pytest
import pytest_asyncio

from msgsvc_core.db import Tx, postgres_pool
from msgsvc_core.projects import Project
from msgsvc_core.service import Service
from msgsvc_devkit import both_databases
from msgsvc_devkit.both_databases import function_of
from msgsvc_devkit.channel import RecordingChannel
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.core import MemoryCore, memory_core
from msgsvc_devkit.databases import (
    PostgresDatabases,
    SQLiteDatabases,
    postgres_url,
)
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import RunnerName, TestRunner
from msgsvc_devkit.services import ServiceMaker, SharedServices

#: Marks a function whose cases don't affect each other, and can share a service.
SHARED_SERVICE = "shared_service"
#: Marks a test whose services on SQLite have their database in a file: it is about files, locks, several
#: processes, or transactions that meet.
DATABASE_FILE = "database_file"

#: New objects before the youngest generation is collected, and how often that is before the older ones are:
#: services are made and dropped by the thousand, and visiting them took a tenth of the suite's time.
GARBAGE = (20_000, 20, 20)

#: Seconds that a service of a test waits for a new connection to PostgreSQL.
CONNECT_S = 30.0

ServiceFactory = Callable[..., Awaitable[Service]]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{SHARED_SERVICE}: its cases leave nothing behind, and share a service"
    )
    config.addinivalue_line(
        "markers", f"{DATABASE_FILE}: on SQLite its services have a file, not memory"
    )
    if find_spec("sniffio") is None:
        # httpx2 imports it for each request in process. Without this line Python would look through every
        # folder of its path each time, a tenth of the processor time of an API test.
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # None marks a module as absent


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # What is collected stays: looking through it for garbage took a sixth of the time.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    # Ten thousand tests live for the whole run: the garbage collector need not visit them.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GARBAGE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("browser") and not has("browser"):
            item.add_marker(pytest.mark.skip(reason="needs Chromium and zbarimg"))


@pytest.fixture(scope="session")
def databases(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, SQLiteDatabases | PostgresDatabases]]:
    """The factories of new databases, by `sqlite` and `postgresql`."""
    made: dict[str, SQLiteDatabases | PostgresDatabases] = {
        "sqlite": SQLiteDatabases(tmp_path_factory.mktemp("sqlite"))
    }
    if has("postgres"):
        # A busy machine stands still for longer than a service should wait.
        postgres_pool.CONNECT_S = patient(CONNECT_S)
        made["postgresql"] = PostgresDatabases(postgres_url())
    yield made
    for database in made.values():
        asyncio.run(database.drop_all())


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(
    request: pytest.FixtureRequest, databases: dict[str, SQLiteDatabases | PostgresDatabases]
) -> SQLiteDatabases | PostgresDatabases:
    """Each database in turn."""
    if request.param not in databases:
        pytest.skip("PostgreSQL does not answer")
    return databases[request.param]


@pytest.fixture(scope="session")
def shared_services() -> SharedServices:
    """The services that cases of a function marked `shared_service` share."""
    return SharedServices()


@pytest.fixture
def clock(request: pytest.FixtureRequest, shared_services: SharedServices) -> FakeClock:
    """The test's clock."""
    if request.node.get_closest_marker(SHARED_SERVICE):
        return shared_services.clock_of(function_of(request.node.nodeid))
    return FakeClock()


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Iterator[TestRunner]:
    """The job runner: the embedded one, unless a suite parametrises this, and `backend`, with
    `redis` or `rabbitmq` on PostgreSQL."""
    name: RunnerName = getattr(request, "param", "embedded")
    if name != "embedded" and not has(name):
        pytest.skip(f"{name} does not answer")
    made = TestRunner(name)
    yield made
    made.clean_up()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def _stopped_in_the_end(
    shared_services: SharedServices, databases: dict[str, SQLiteDatabases | PostgresDatabases]
) -> AsyncIterator[None]:
    on_server = databases.get("postgresql")
    if isinstance(on_server, PostgresDatabases):
        on_server.idle.open()
    yield
    await shared_services.close()
    if isinstance(on_server, PostgresDatabases):
        await on_server.idle.close()


@pytest.fixture
async def make_service(
    request: pytest.FixtureRequest,
    backend: SQLiteDatabases | PostgresDatabases,
    clock: FakeClock,
    runner: TestRunner,
    shared_services: SharedServices,
    _stopped_in_the_end: None,
) -> AsyncIterator[ServiceFactory]:
    """Creates services on new databases, and stops them after the test: see `ServiceMaker`.

    Cases of a function marked `shared_service` get the services created by its first case.
    """
    on_file = _is_about_databases(request.node)
    if request.node.get_closest_marker(SHARED_SERVICE):
        yield await shared_services.maker_of(
            function_of(request.node.nodeid), backend, runner, on_file=on_file
        )
        return
    await shared_services.close()
    maker = ServiceMaker(backend, clock, runner, on_file=on_file)
    yield maker
    await maker.close()


def _is_about_databases(item: pytest.Item) -> bool:
    # A plugin's own package does not choose tests by database.
    chooses = item.config.pluginmanager.has_plugin(both_databases.__name__)
    folders = item.config.getini(both_databases.FOLDERS) if chooses else ()
    marked = item.get_closest_marker(DATABASE_FILE) is not None
    return marked or any(folder in item.path.parents for folder in folders)


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    """A started service without plugins except the recording channels."""
    return await make_service()


@pytest.fixture
def channel(service: Service) -> RecordingChannel:
    """The service's `messenger_a`."""
    found = service.channels["messenger_a"]
    assert isinstance(found, RecordingChannel)
    return found


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    """The core's parts on a database in memory, without plugins. To load some, define it again:

    @pytest.fixture
    async def core() -> AsyncIterator[MemoryCore]:
        async with memory_core(plugins=["otp"]) as core:
            yield core
    """
    async with memory_core() as made:
        yield made


@pytest.fixture
async def tx(core: MemoryCore) -> AsyncIterator[Tx]:
    """An open transaction of `core`, rolled back after the test. What opens transactions of its own waits for
    it: such a test arranges in `async with core.db.transaction() as tx`."""
    with suppress(_RollBack):
        async with core.db.transaction() as open_tx:
            yield open_tx
            raise _RollBack


class _RollBack(Exception):
    """Ends a test's transaction."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A project, its API key, and a client that uses it."""

    project: Project
    key: str
    client: httpx2.AsyncClient


async def tenant_of(service: Service, name: str, scopes: tuple[str, ...] = ("*",)) -> Tenant:
    """A project with a client that calls the service in process; close it afterwards."""
    project = await service.projects.create(name)
    _, secret = await service.projects.create_key(project.project_id, "test", scopes)
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {secret}"},
    )
    return Tenant(project, secret, client)


@pytest.fixture
async def make_tenant() -> AsyncIterator[Callable[..., Awaitable[Tenant]]]:
    """Creates a project with a client that calls the service in process."""
    clients: list[httpx2.AsyncClient] = []

    async def make(
        service: Service, name: str = "Shop", scopes: tuple[str, ...] = ("*",)
    ) -> Tenant:
        made = await tenant_of(service, name, scopes)
        clients.append(made.client)
        return made

    yield make
    for client in clients:
        await client.aclose()


@pytest.fixture
async def tenant(service: Service, make_tenant: Callable[..., Awaitable[Tenant]]) -> Tenant:
    """A project of `service`."""
    return await make_tenant(service)


@pytest.fixture
def client(tenant: Tenant) -> httpx2.AsyncClient:
    """The client of `tenant`."""
    return tenant.client
