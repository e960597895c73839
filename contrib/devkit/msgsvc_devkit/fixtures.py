"""Pytest fixtures: a service on each database, with a clock that stands still.

`service` and `client` run a test once on SQLite and once on PostgreSQL, where it answers. The
variable `MSGSVC_TEST_REQUIRE=postgres,redis,rabbitmq,browser` turns what is missing into a failure;
it also takes `node`, `php` and `go`, with which the verifiers of webhooks in those languages are run,
and `npm`, which brings the checks of accessibility.
"""

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import CORE_MIGRATIONS
from msgsvc_core.plugins.loading import load_plugins
from msgsvc_core.projects import Project
from msgsvc_core.service import Service
from msgsvc_devkit.channel import RecordingChannel, RecordingPlugin
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.databases import (
    PostgresDatabases,
    SQLiteDatabases,
    postgres_answers,
    postgres_url,
)
from msgsvc_devkit.runners import RunnerName, TestRunner, rabbitmq_url, redis_url

REQUIRE_VARIABLE = "MSGSVC_TEST_REQUIRE"
PROGRAMS = ("node", "npm", "php", "go", "nginx")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
SECRET_KEY = "a-key-for-tests-only-a-key-for-tests-only"

_SETTINGS: dict[str, Any] = {
    "secret_keys": (SECRET_KEY,),
    "plugins": (),
    "sqlite_synchronous": "NORMAL",
    "channels": {"messenger_a": {"plugin": "recording"}, "messenger_b": {"plugin": "recording"}},
    "jobs": {"sweep_s": 0.05},
    # A test that waits for something polls, and more often where the machine is slow.
    "limits": {"requests_per_minute": 100_000},
}

#: Settings of plugins, by plugin, section and name, for services that load it.
_PLUGIN_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    # As they should be, a hundred passwords would take ten seconds.
    "dashboard": {"dashboard": {"password_memory_kib": 8, "password_passes": 1}},
}

ServiceFactory = Callable[..., Awaitable[Service]]


@cache
def backends_found() -> dict[str, bool]:
    """What of `postgres`, `redis`, `rabbitmq` and `browser` this machine has."""
    return {
        "postgres": postgres_answers(postgres_url()),
        "redis": _listens(redis_url(), 6379),
        "rabbitmq": _listens(rabbitmq_url(), 5672),
        "browser": chromium() is not None and shutil.which("zbarimg") is not None,
    }


def chromium() -> str | None:
    """The path of the machine's Chromium."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def pytest_report_header(config: pytest.Config) -> str:
    found = ", ".join(
        f"{name} {'yes' if there else 'NO'}" for name, there in backends_found().items()
    )
    return f"msgsvc runs on: sqlite yes, {found}"


def pytest_configure(config: pytest.Config) -> None:
    required = [name for name in os.environ.get(REQUIRE_VARIABLE, "").split(",") if name]
    found = {name: shutil.which(name) is not None for name in PROGRAMS}
    found |= backends_found() if required else {}
    missing = [name for name in required if not found.get(name)]
    if missing:
        raise pytest.UsageError(
            f"{REQUIRE_VARIABLE} asks for what is missing: {', '.join(missing)}"
        )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("browser") and not backends_found()["browser"]:
            item.add_marker(pytest.mark.skip(reason="needs Chromium and zbarimg"))


@pytest.fixture(scope="session")
def databases(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, SQLiteDatabases | PostgresDatabases]]:
    """Where fresh databases come from, by `sqlite` and `postgresql`."""
    made: dict[str, SQLiteDatabases | PostgresDatabases] = {
        "sqlite": SQLiteDatabases(tmp_path_factory.mktemp("sqlite"))
    }
    if backends_found()["postgres"]:
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


@pytest.fixture
def clock() -> FakeClock:
    """The test's time."""
    return FakeClock()


@pytest.fixture
def runner(request: pytest.FixtureRequest) -> Iterator[TestRunner]:
    """Who runs jobs: the embedded runner, unless a suite parametrises this, and `backend`, with
    `redis` or `rabbitmq` on PostgreSQL."""
    name: RunnerName = getattr(request, "param", "embedded")
    if name != "embedded" and not backends_found()[name]:
        pytest.skip(f"{name} does not answer")
    made = TestRunner(name)
    yield made
    made.clean_up()


@pytest.fixture
async def make_service(
    backend: SQLiteDatabases | PostgresDatabases, clock: FakeClock, runner: TestRunner
) -> AsyncIterator[ServiceFactory]:
    """Makes services on fresh databases: `await make_service(extra_plugins=..., **settings)`.

    They have two channels of kind `recording`, are started, and are stopped after the test. Their
    jobs are run by `runner`, unless `jobs` names another. Requests are as good as not limited, unless
    `limits` says otherwise.
    """
    started: list[Service] = []
    fresh: list[str] = []

    async def make(
        *, extra_plugins: Any = (), start: bool = True, use_clock: Any = None, **settings: Any
    ) -> Service:
        plugins = [("recording", RecordingPlugin()), *extra_plugins]

        values = {**_SETTINGS, **settings}
        values["jobs"] = {**runner.job_settings, **values["jobs"]}
        values["limits"] = {**_SETTINGS["limits"], **values["limits"]}
        for name in {*values["plugins"], *(name for name, _ in plugins)} & set(_PLUGIN_SETTINGS):
            for section, given in _PLUGIN_SETTINGS[name].items():
                values[section] = {**given, **values.get(section, {})}
        if "database_url" not in values:
            hook = load_plugins(values["plugins"], plugins).hook
            fresh.append(await backend.fresh([CORE_MIGRATIONS, *hook.register_migrations()]))
            values["database_url"] = fresh[-1]
        service = runner.build(Settings.model_validate(values), use_clock or clock, plugins)
        if start:
            await service.start()
            started.append(service)
        return service

    yield make
    for service in reversed(started):
        await service.stop()
    # Several services may have shared one, and a test may have started one by itself.
    for url in {*fresh, *(service.settings.database_url for service in started)}:
        await backend.give_back(url)


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    """A started service without plugins but the recording messengers."""
    return await make_service()


@pytest.fixture
def channel(service: Service) -> RecordingChannel:
    """The service's `messenger_a`."""
    found = service.channels["messenger_a"]
    assert isinstance(found, RecordingChannel)
    return found


@dataclass(frozen=True, slots=True)
class Tenant:
    """A project, its key, and a client that uses it."""

    project: Project
    key: str
    client: httpx2.AsyncClient


async def tenant_of(service: Service, name: str, scopes: tuple[str, ...] = ("*",)) -> Tenant:
    """A project with a client that calls the service in process; close it in the end."""
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
    """Makes a project with a client that calls the service in process."""
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


def _listens(url: str, default_port: int) -> bool:
    parts = urlsplit(url)
    try:
        with socket.create_connection(
            (parts.hostname or "127.0.0.1", parts.port or default_port), 2
        ):
            return True
    except OSError:
        return False
