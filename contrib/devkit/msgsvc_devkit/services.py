"""Makes services for tests: one for each test, or one that all cases of a test function share."""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.config.settings import Settings
from msgsvc_core.db import CORE_MIGRATIONS
from msgsvc_core.kernel.clock import Clock
from msgsvc_core.plugins.loading import load_plugins
from msgsvc_core.service import Service
from msgsvc_devkit.channel import RecordingPlugin
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.fakes.secrets import SECRET_KEY
from msgsvc_devkit.runners import TestRunner

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


class ServiceMaker:
    """Makes services on fresh databases: `await make(extra_plugins=..., **settings)`.

    They have two channels of kind `recording` and are started. Their jobs are run by `runner`, unless
    `jobs` names another. Requests are as good as not limited, unless `limits` says otherwise.
    """

    def __init__(
        self, backend: SQLiteDatabases | PostgresDatabases, clock: FakeClock, runner: TestRunner
    ) -> None:
        self._backend = backend
        self._clock = clock
        self._runner = runner
        self._started: list[Service] = []
        self._fresh: list[str] = []

    async def __call__(
        self,
        *,
        extra_plugins: Any = (),
        start: bool = True,
        use_clock: Clock | None = None,
        **settings: Any,
    ) -> Service:
        plugins = [("recording", RecordingPlugin()), *extra_plugins]
        values = {**_SETTINGS, **settings}
        values["jobs"] = {**self._runner.job_settings, **values["jobs"]}
        values["limits"] = {**_SETTINGS["limits"], **values["limits"]}
        for name in {*values["plugins"], *(name for name, _ in plugins)} & set(_PLUGIN_SETTINGS):
            for section, given in _PLUGIN_SETTINGS[name].items():
                values[section] = {**given, **values.get(section, {})}
        if "database_url" not in values:
            hook = load_plugins(values["plugins"], plugins).hook
            sources = [CORE_MIGRATIONS, *hook.register_migrations()]
            self._fresh.append(await self._backend.fresh(sources))
            values["database_url"] = self._fresh[-1]
        clock = use_clock or self._clock
        service = self._runner.build(Settings.model_validate(values), clock, plugins)
        if start:
            await service.start()
            self._started.append(service)
        return service

    async def close(self) -> None:
        """Stops what it has started, and gives the databases back."""
        for service in reversed(self._started):
            await service.stop()
        # Several services may have shared one, and a test may have started one by itself.
        started = {service.settings.database_url for service in self._started}
        for url in {*self._fresh, *started}:
            await self._backend.give_back(url)


class SharedMaker:
    """Gives every case of a test function the services that its first case has made."""

    def __init__(self, maker: ServiceMaker) -> None:
        self._maker = maker
        self._made: list[tuple[Mapping[str, Any], Service]] = []
        self._next = 0

    def begin(self) -> None:
        """The next case."""
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
    """What the cases of the test function that runs share: their clock, and a service on each database."""

    def __init__(self) -> None:
        self._function = ""
        self._clocks: dict[str, FakeClock] = {}
        self._makers: dict[str, SharedMaker] = {}

    def clock_of(self, function: str) -> FakeClock:
        if function not in self._clocks:
            self._clocks = {function: FakeClock()}
        return self._clocks[function]

    async def maker_of(
        self, function: str, backend: SQLiteDatabases | PostgresDatabases, runner: TestRunner
    ) -> SharedMaker:
        """The function's services on that database; those of another function are stopped."""
        if function != self._function:
            await self.close()
            self._function = function
        if backend.name not in self._makers:
            maker = ServiceMaker(backend, self.clock_of(function), runner)
            self._makers[backend.name] = SharedMaker(maker)
        self._makers[backend.name].begin()
        return self._makers[backend.name]

    async def close(self) -> None:
        makers, self._makers, self._function = self._makers, {}, ""
        for maker in makers.values():
            await maker.close()
