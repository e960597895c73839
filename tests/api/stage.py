"""Projects with one resource of every kind: made once on each database, and the same for every test."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import client_at
from tests.api.resources import SETTINGS, MiniAppPlugin, Resources, resources_of
from tests.api.subscribing import subscribing

Backend = SQLiteDatabases | PostgresDatabases

#: Who owns something: a project with a person of that name.
OWNERS = ("Ann", "Bob", "Bea")

#: Projects in which there is nothing.
STRANGERS = ("Nob", "Nea")


@dataclass(frozen=True, slots=True)
class Stage:
    """A service that was asked nothing yet. `owned` is what there is in the project of each name."""

    service: Service
    owned: dict[str, Resources]
    clients: dict[str, httpx2.AsyncClient]

    async def ask(self, who: str, **request: Any) -> httpx2.Response:
        """The answer to a request of that project."""
        return await self.clients[who].request(**request)


@dataclass(frozen=True, slots=True)
class _Set:
    url: str
    owned: dict[str, Resources]
    tenants: dict[str, Tenant]


class Stages:
    """Sets the stage once on each database, and puts everything back in its place for the next test."""

    def __init__(self) -> None:
        self._sets: dict[str, _Set] = {}
        #: The one whose service goes on, with the plugin that all its cases give.
        self._mini_app = MiniAppPlugin()
        self._unchanged: dict[Service, _Set] = {}

    @asynccontextmanager
    async def on(
        self,
        backend: Backend,
        make_service: ServiceFactory,
        make_tenant: Callable[..., Awaitable[Tenant]],
    ) -> AsyncIterator[Stage]:
        if backend.name not in self._sets:
            service = await _started(make_service, MiniAppPlugin())
            made = await _set(service, make_tenant)
            await service.stop()
            await backend.keep(made.url)
            self._sets[backend.name] = made
        found = self._sets[backend.name]
        url = await backend.restored(found.url)
        service = await _started(make_service, MiniAppPlugin(), database_url=url)
        async with _stage(service, found) as stage:
            yield stage

    @asynccontextmanager
    async def unchanged_on(
        self,
        backend: Backend,
        make_service: ServiceFactory,
        make_tenant: Callable[..., Awaitable[Tenant]],
    ) -> AsyncIterator[Stage]:
        """The stage of a function marked `shared_service`, none of whose cases changes anything: it is set
        once for all of them."""
        service = await _started(make_service, self._mini_app)
        if service not in self._unchanged:
            self._unchanged = {service: await _set(service, make_tenant)}
        async with _stage(service, self._unchanged[service]) as stage:
            yield stage


@asynccontextmanager
async def _stage(service: Service, found: _Set) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as clients:
        yield Stage(
            service,
            found.owned,
            {
                name: await clients.enter_async_context(client_at(service, tenant))
                for name, tenant in found.tenants.items()
            },
        )


async def _started(
    make_service: ServiceFactory, mini_app: MiniAppPlugin, **settings: Any
) -> Service:
    return await make_service(extra_plugins=[("mini_app", mini_app)], **SETTINGS, **settings)


async def _set(service: Service, make_tenant: Callable[..., Awaitable[Tenant]]) -> _Set:
    tenants = {
        name: await make_tenant(service, "Shop" if name == "Ann" else "Other")
        for name in (*OWNERS, *STRANGERS)
    }
    owned: dict[str, Resources] = {name: {} for name in STRANGERS}
    for name in OWNERS:
        tenant = tenants[name]
        owned[name] = await resources_of(service, tenant, subscribing(service, tenant), name)
    await settled(service)
    return _Set(service.settings.database_url, owned, tenants)
