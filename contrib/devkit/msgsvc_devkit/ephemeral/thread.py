"""A service in a thread of this process, with a loop of its own: for tests of any kind, async or not."""

import asyncio
import shutil
import threading
from collections.abc import Awaitable, Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

import uvloop
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from msgsvc_core.config.settings import Settings
from msgsvc_core.server import ConnectionLimits, Server, bind
from msgsvc_core.service import Service
from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.ephemeral.clock_api import ClockPlugin
from msgsvc_devkit.ephemeral.inbox import PATH as INBOX_PATH
from msgsvc_devkit.ephemeral.inbox import Inboxes
from msgsvc_devkit.ephemeral.settings import ephemeral_settings
from msgsvc_devkit.ephemeral.tenancy import Tenancy, create_tenancy
from msgsvc_devkit.ephemeral.time_travel import TimeTravel

T = TypeVar("T")

#: Seconds that the service gets to start and to stop on a busy machine.
PATIENCE_S = patient(60.0)

#: A test has few connections, and the limit of open files belongs to the program under test.
SERVER = {"max_connections": 200}


class ServiceThread:
    """Listens on one port of this machine from `start` to `stop`. `renew` puts a new service behind it, with
    the same project and API key and nothing else in it, in a tenth of a second.

    `folder` is where the databases are.
    """

    tenancy: Tenancy

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="msgsvc", daemon=True)
        self._listener = bind("127.0.0.1", 0)
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._settings = ephemeral_settings(folder, self.base_url, {}, server=SERVER)
        self._serving = AsyncExitStack()
        self._running = AsyncExitStack()
        self._service: Service | None = None
        self._time_travel: TimeTravel | None = None
        self._count = 0
        self.inboxes = Inboxes(self.base_url)

    def start(self) -> None:
        """Creates the database and listens."""
        self._thread.start()
        self.call(self._start())

    def stop(self) -> None:
        """Ends the service and the thread."""
        try:
            self.call(self._stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(PATIENCE_S)
            self._loop.close()
            self._listener.close()

    def renew(self, settings: Mapping[str, Any]) -> None:
        """Replaces the service by a new one, with these settings beside the usual ones. Raises
        `SettingsError`."""
        self.call(self._renew(settings))

    def end(self) -> None:
        """Ends the service. Until the next `renew` nothing runs, and requests are answered with 503."""
        self.call(self._end())

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the service's loop, and waits for it here."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def hop(self, work: Coroutine[Any, Any, T]) -> T:
        """The same from another loop, which goes on meanwhile."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    @property
    def service(self) -> Service:
        """The current service, for coroutines given to `call` and `hop`."""
        assert self._service is not None, "renew comes first"
        return self._service

    @property
    def time_travel(self) -> TimeTravel:
        """What moves its clock."""
        assert self._time_travel is not None, "renew comes first"
        return self._time_travel

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _start(self) -> None:
        template = Service(self._settings)
        async with template:
            self.tenancy = await create_tenancy(template)
        settings = self._settings
        guard = ConnectionLimits(settings.server, settings.errors_url, template.metrics)
        listening = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            # A function: uvicorn takes a bound method for an application of ASGI 2.
            await self._answer(scope, receive, send)

        server = Server(app, guard, listening=lambda _sockets: listening.set(), signals=False)
        serving = asyncio.create_task(server.serve(sockets=[self._listener]))

        async def stop_serving() -> None:
            server.should_exit = True
            await serving

        self._serving.push_async_callback(stop_serving)
        await _within(listening.wait())

    async def _end(self) -> None:
        await self._running.aclose()
        self._service = self._time_travel = None
        self.inboxes.clear()

    async def _stop(self) -> None:
        await self._end()
        await self._serving.aclose()

    async def _renew(self, settings: Mapping[str, Any]) -> None:
        await self._end()
        self._count += 1
        database = self._folder / f"test-{self._count}.db"
        shutil.copyfile(self._folder / "msgsvc.db", database)
        clock = MovableClock()
        service = Service(
            self._with(settings, database),
            clock=clock,
            extra_plugins=[("ephemeral", ClockPlugin(clock))],
        )
        async with AsyncExitStack() as undo:
            undo.callback(_remove, database)
            await undo.enter_async_context(service)
            self._running = undo.pop_all()
        self._service = service
        self._time_travel = TimeTravel(clock=clock, db=service.db, jobs=service.jobs)

    def _with(self, settings: Mapping[str, Any], database: Path) -> Settings:
        changed = self._settings
        if settings:
            given = {"server": SERVER, **settings}
            changed = ephemeral_settings(self._folder, self.base_url, {}, **given)
        kept = {"database_url": f"sqlite:///{database}", "secret_keys": self._settings.secret_keys}
        return changed.model_copy(update=kept)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].startswith(INBOX_PATH):
            await self.inboxes(scope, receive, send)
        elif self._service is None:
            await Response(status_code=503)(scope, receive, send)
        else:
            await self.service.app(scope, receive, send)


def _remove(database: Path) -> None:
    for path in database.parent.glob(f"{database.name}*"):
        path.unlink(missing_ok=True)


async def _within(work: Awaitable[T]) -> T:
    async with asyncio.timeout(PATIENCE_S):
        return await work
