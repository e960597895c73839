"""Creates services for tests: one per test, or one shared by all cases of a test function."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import CORE_MIGRATIONS, Database, MigrationSource
from msgsvc_core.jobs.batch import recurring
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.kernel.tracing import Tracing
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.plugins.loading import load_plugins, package
from msgsvc_core.service import Service
from msgsvc_devkit.channel import RecordingPlugin
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.idle_pools import LastingPool
from msgsvc_devkit.runners import ServiceWithWorker, TestRunner

#: The secret key of tests.
SECRET_KEY = "a-key-for-tests-only-a-key-for-tests-only"

_SETTINGS: dict[str, Any] = {
    "secret_keys": (SECRET_KEY,),
    "plugins": (),
    "sqlite_synchronous": "NORMAL",
    # Of each connection to PostgreSQL the server's process starts with an empty cache of its catalogue.
    "database_pool": 4,
    "channels": {"messenger_a": {"plugin": "recording"}, "messenger_b": {"plugin": "recording"}},
    "jobs": {"sweep_s": 0.05},
    # Tests that wait poll, and more often on a slow machine.
    "limits": {"requests_per_minute": 100_000},
}

#: Settings of plugins, by plugin, section and name, for services that load it.
_PLUGIN_SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    # With the default cost, a hundred passwords would take ten seconds.
    "dashboard": {"dashboard": {"password_memory_kib": 8, "password_passes": 1}},
}


def settings_of(
    plugins: Sequence[str], extra_plugins: Iterable[tuple[str, Any]] = (), **given: Any
) -> Settings:
    """The settings of a service of tests: with two channels of kind `recording`, and no limits on requests
    but those `given`."""
    values = {**_SETTINGS, **given, "plugins": tuple(plugins)}
    values["limits"] = {**_SETTINGS["limits"], **values["limits"]}
    for name in {*plugins, *(name for name, _ in extra_plugins)} & set(_PLUGIN_SETTINGS):
        for section, defaults in _PLUGIN_SETTINGS[name].items():
            values[section] = {**defaults, **values.get(section, {})}
    return Settings.model_validate(values)


def migrations_of(
    plugins: Sequence[str], extra_plugins: Iterable[tuple[str, Any]] = ()
) -> list[MigrationSource]:
    """The core's migrations and those of plugins."""
    registered = (getattr(plugin, "register_migrations", None) for _, plugin in extra_plugins)
    own = [register() for register in registered if register is not None]
    return [CORE_MIGRATIONS, *_migrations_of_installed(tuple(plugins)), *own]


@cache
def _migrations_of_installed(plugins: tuple[str, ...]) -> tuple[MigrationSource, ...]:
    # Each test asks, and loading plugins was a quarter of the cost of a service with five.
    return tuple(load_plugins(plugins).hook.register_migrations())


class EarlierRuns:
    """A plugin with which a service finds its recurring jobs on a new database as after their first runs.
    These would happen at once, and were a third of the cost of a service that is started and stopped. Jobs of
    plugins that are given as objects, which tests are about, run at once."""

    def __init__(self) -> None:
        self._service: Service | None = None

    def leave_to(self, service: Service) -> None:
        """Call it before the service starts."""
        self._service = service

    @hookimpl
    async def on_start(self) -> None:
        # Not with a second start: its jobs are as the first left them.
        service, self._service = self._service, None
        if service is None:
            return
        named = [service.plugins.get_plugin(name) for name in service.settings.loaded_plugins]
        packages = {"msgsvc_core", *map(package, named)}
        now_ms = service.clock.now_ms()
        later = [
            recurring(spec, now_ms + round(spec.every_s * 1000))
            for spec in service.job_specs
            if spec.every_s is not None and spec.handler.__module__.partition(".")[0] in packages
        ]
        async with service.db.transaction(background=True) as tx:
            await service.jobs.enqueue(tx, *later)


class ServiceMaker:
    """Creates services on new databases: `await make(extra_plugins=..., **settings)`. Those on SQLite are in
    memory, unless `on_file` is set.

    They have two channels of kind `recording` and are started. Their jobs are run by `runner`, unless `jobs`
    names another. Requests are practically unlimited, unless `limits` sets a limit.
    """

    def __init__(
        self,
        backend: SQLiteDatabases | PostgresDatabases,
        clock: FakeClock,
        runner: TestRunner,
        *,
        on_file: bool = False,
    ) -> None:
        self._backend = backend
        self._on_file = on_file
        self._clock = clock
        self._runner = runner
        self._started: list[Service] = []
        self._fresh: list[str] = []
        self._pools: list[LastingPool] = []

    async def __call__(
        self,
        *,
        extra_plugins: Any = (),
        start: bool = True,
        use_clock: Clock | None = None,
        use_tracing: Tracing | None = None,
        **settings: Any,
    ) -> Service:
        names = settings.pop("plugins", ())
        earlier = EarlierRuns()
        plugins = [("recording", RecordingPlugin()), ("earlier runs", earlier), *extra_plugins]
        jobs = settings.get("jobs", {})
        settings["jobs"] = {**_SETTINGS["jobs"], **self._runner.job_settings, **jobs}
        is_new = "database_url" not in settings
        if is_new:
            self._fresh.append(await self._new_database(migrations_of(names, plugins)))
            settings["database_url"] = self._fresh[-1]
        service = self._runner.build(
            settings_of(names, plugins, **settings),
            use_clock or self._clock,
            plugins,
            use_tracing,
            self._connect_to(settings["database_url"]),
        )
        self._use_idle_connections(service)
        runs_jobs = service.settings.jobs.runner == "embedded" and not service.settings.quarantine
        if runs_jobs and is_new:
            earlier.leave_to(service)
        if start:
            await service.start()
            self._started.append(service)
        return service

    async def _new_database(self, sources: Sequence[MigrationSource]) -> str:
        if isinstance(self._backend, SQLiteDatabases) and not self._on_file:
            return await self._backend.fresh_in_memory(sources)
        if isinstance(self._backend, PostgresDatabases):
            return await self._backend.fresh(sources, with_idle_connections=True)
        return await self._backend.fresh(sources)

    def _use_idle_connections(self, service: Service) -> None:
        # Not on other databases: their tables may be dropped, and their connections know statements.
        if service.settings.database_url not in self._fresh:
            return
        if isinstance(self._backend, PostgresDatabases):
            processes = [service]
            if isinstance(service, ServiceWithWorker):
                processes.append(service.worker)
            for each in processes:
                pool = LastingPool(each.db, self._backend.idle)
                each.db._backend = pool
                self._pools.append(pool)

    def _connect_to(self, url: str) -> Database | None:
        if isinstance(self._backend, SQLiteDatabases):
            return self._backend.connect_to(url)
        return None

    async def close(self) -> None:
        """Stops its services, and returns the databases."""
        for pool in self._pools:
            pool.keep()
        for service in reversed(self._started):
            await service.stop()
        # Services may share a database, and a test may have started a service itself.
        started = {service.settings.database_url for service in self._started}
        for url in {*self._fresh, *started}:
            await self._backend.give_back(url)


class SharedMaker:
    """Returns the services created by the first case of a test function to all its cases."""

    def __init__(self, maker: ServiceMaker) -> None:
        self._maker = maker
        self._made: list[tuple[Mapping[str, Any], Service]] = []
        self._next = 0

    def begin(self) -> None:
        """Starts the next case."""
        self._next = 0

    async def __call__(self, **asked: Any) -> Service:
        if self._next == len(self._made):
            self._made.append((asked, await self._maker(**asked)))
        before, service = self._made[self._next]
        assert asked == before, "cases that share a service ask for the same one"
        self._next += 1
        return service

    async def close(self) -> None:
        await self._maker.close()


class SharedServices:
    """The clock and the services, one per database, shared by the cases of the current test function."""

    def __init__(self) -> None:
        self._function = ""
        self._clocks: dict[str, FakeClock] = {}
        self._makers: dict[str, SharedMaker] = {}

    def clock_of(self, function: str) -> FakeClock:
        if function not in self._clocks:
            self._clocks = {function: FakeClock()}
        return self._clocks[function]

    async def maker_of(
        self,
        function: str,
        backend: SQLiteDatabases | PostgresDatabases,
        runner: TestRunner,
        *,
        on_file: bool,
    ) -> SharedMaker:
        """The function's services on that database; stops those of the previous function."""
        if function != self._function:
            await self.close()
            self._function = function
        if backend.name not in self._makers:
            maker = ServiceMaker(backend, self.clock_of(function), runner, on_file=on_file)
            self._makers[backend.name] = SharedMaker(maker)
        self._makers[backend.name].begin()
        return self._makers[backend.name]

    async def close(self) -> None:
        makers, self._makers, self._function = self._makers, {}, ""
        for maker in makers.values():
            await maker.close()
