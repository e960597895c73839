"""`PluginContract`: tests that every plugin has to pass, whatever it adds.

    from msgsvc_devkit import PluginContract
    from msgsvc_surveys import plugin

    class TestSurveys(PluginContract):
        plugin = plugin
        name = "surveys"

Run pytest with `-p msgsvc_devkit.fixtures` and `asyncio_mode = "auto"`: tests that need a database run on
SQLite, and on PostgreSQL if available.
"""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx2
import pytest

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import migrate
from msgsvc_core.db.planning import objections
from msgsvc_core.db.sql import Dialect
from msgsvc_core.service import Service
from msgsvc_devkit.conformance.declarations import Declarations
from msgsvc_devkit.conformance.stage import SECRET_KEY
from msgsvc_devkit.conformance.tables import (
    all_tables,
    drop_tables,
    first_of_key,
    tables_of,
)
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.fixtures import ServiceFactory

Backend = SQLiteDatabases | PostgresDatabases

_DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgresql")


class PluginContract(Declarations):
    """The whole contract. Set `plugin` and `name`."""

    #: Tables that don't belong to a project, and have no `project_id`.
    tables_without_project: ClassVar[frozenset[str]] = frozenset()

    @pytest.fixture
    def loaded(self) -> Service:
        """A service with the plugin, not started."""
        return self.build()

    def build(self, **settings: Any) -> Service:
        """A service with only the core and this plugin."""
        values: Mapping[str, Any] = {
            "secret_keys": (SECRET_KEY,),
            "database_url": "sqlite:///never-opened.db",
            "plugins": (),
            "channels": {},
            **settings,
        }
        return Service(
            Settings.model_validate(values), extra_plugins=[(self.name, type(self).plugin)]
        )

    # ---- loading and removing -------------------------------------------------------------------

    def test_two_services_with_it_live_in_one_process(self) -> None:
        first, second = self.build(), self.build()

        assert [one.name for one in first.endpoints] == [one.name for one in second.endpoints], (
            "a second service has other endpoints of the plugin; keep nothing at the module's level"
        )

    async def test_it_loads_alone_and_the_service_is_ready(
        self, make_service: ServiceFactory
    ) -> None:
        service = await make_service(extra_plugins=[(self.name, type(self).plugin)])

        assert await _status(service, "/readyz") == 200, "the service is not ready with the plugin"
        assert await _status(service, "/openapi.json") == 200, "/openapi.json can't be made"

    async def test_it_starts_again_after_a_stop(self, make_service: ServiceFactory) -> None:
        extra = [(self.name, type(self).plugin)]
        first = await make_service(extra_plugins=extra)
        await first.stop()
        second = await make_service(extra_plugins=extra, database_url=first.settings.database_url)

        assert await _status(second, "/readyz") == 200, (
            "a second start on the same database fails; `on_stop` gives back what `on_start` took"
        )

    async def test_a_service_without_it_has_nothing_of_it(
        self, make_service: ServiceFactory
    ) -> None:
        without = await make_service()
        with_it = self.build()

        assert not await tables_of(without.db, self.name), "its tables are there without it"
        for endpoint in with_it.endpoints[len(without.endpoints) :]:
            status = await _status(without, re.sub(r"{\w+}", "x", endpoint.path))
            assert status == 404, f"{endpoint.path} answers {status} without the plugin"

    async def test_the_service_goes_on_after_it_was_taken_out(
        self, make_service: ServiceFactory
    ) -> None:
        service = await make_service(extra_plugins=[(self.name, type(self).plugin)])
        project = await service.projects.create("Shop")
        await service.stop()
        without = await make_service(database_url=service.settings.database_url)

        assert [one.project_id for one in await without.projects.list()] == [project.project_id], (
            "without the plugin the service does not find its projects again"
        )
        assert await _status(without, "/readyz") == 200, "without the plugin it is not ready"

    # ---- the database ---------------------------------------------------------------------------

    async def test_its_migrations_go_up_and_up_again_after_its_tables_are_gone(
        self, make_service: ServiceFactory, backend: Backend, loaded: Service
    ) -> None:
        if len(loaded.migrations) == 1:
            pytest.skip("the plugin has no tables")
        url = await backend.empty()
        await migrate(url, loaded.migrations)
        without = await make_service(database_url=url)
        tables = await tables_of(without.db, self.name)
        others = await all_tables(without.db) - set(tables) - {f"{self.name}_migrations"}

        assert loaded.migrations[1].owner == self.name, (
            f"its migrations belong to {loaded.migrations[1].owner!r}; name the owner {self.name!r}"
        )
        assert tables, f"no table begins with {self.name}_, though the plugin has migrations"
        assert all(name.startswith("core_") for name in others), (
            f"its migrations made tables of other names: {others}; begin each with {self.name}_"
        )
        assert await migrate(url, loaded.migrations) == [], "a second migration has something to do"
        await drop_tables(without.db, [*tables, f"{self.name}_migrations"])
        assert await migrate(url, loaded.migrations), (
            "after its tables were dropped nothing is done"
        )
        assert await tables_of(without.db, self.name) == tables, (
            "the second time its migrations make other tables than the first"
        )

    def test_its_migrations_can_be_applied_while_the_earlier_release_serves(
        self, loaded: Service
    ) -> None:
        if len(loaded.migrations) == 1:
            pytest.skip("the plugin has no tables")
        for dialect in _DIALECTS:
            found = list(objections(loaded.migrations[1], dialect))
            assert not found, (
                "what processes of the earlier release can't live with belongs into a step with"
                f' phase = "contract": {found}'
            )

    async def test_what_belongs_to_a_project_is_kept_by_project(
        self, make_service: ServiceFactory
    ) -> None:
        service = await make_service(extra_plugins=[(self.name, type(self).plugin)])
        tables = await tables_of(service.db, self.name)
        unknown = self.tables_without_project - set(tables)
        assert not unknown, f"tables_without_project names what is not there: {unknown}"

        for table in set(tables) - self.tables_without_project:
            assert await first_of_key(service.db, table) == "project_id", (
                f"{table}: begin its primary key with project_id, so that nobody reads another's rows;"
                " if it belongs to nobody, name it in tables_without_project"
            )


async def _status(service: Service, path: str) -> int:
    transport = httpx2.ASGITransport(app=service.app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://msgsvc.test") as client:
        return (await client.get(path)).status_code
