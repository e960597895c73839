"""Servers under measurement, each in a process of its own: the echo, and the service."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db import DatabaseUnavailable
from msgsvc_core.service import Service
from tests import phone
from tests.bench import courier, echo, sink
from tests.bench.load import Request
from tests.bench.run import BenchError, Run
from tests.process import Deployment, Server, install_module, start_server

T = TypeVar("T")

#: Writes what a measurement needs to the database of a service, given the project's id.
Fill = Callable[[Service, str], Awaitable[None]]

TEXT = "Your order 4711 is on its way and arrives tomorrow between 10 and 12."

#: Subscribers that the messages go to, in turn; one's messages are delivered one after another.
SUBSCRIBERS = 500

#: Seconds for what came due while a server was stopped: looks for due work, leases and the like.
CATCH_UP_S = 0.3

#: How often a server is stopped anew that was stopped in the middle of a transaction.
PAUSES = 10

#: Plugins of the bench's own, which the service's process finds by their entry points.
_OWN: dict[str, ModuleType] = {"sink": sink, "courier": courier, "phone": phone}


def pause(server: Server) -> None:
    """Stops a server where it stands, so that it takes nothing from the one that is measured."""
    os.kill(server.process.pid, signal.SIGSTOP)


def go_on(server: Server) -> None:
    os.kill(server.process.pid, signal.SIGCONT)


def wake(server: Server) -> None:
    """Lets a server go on, and do what came due while it stood still, which is no part of what follows."""
    go_on(server)
    time.sleep(CATCH_UP_S)


def memory_mib(server: Server) -> float:
    """What the server's process holds in memory."""
    command = ["ps", "-o", "rss=", "-p", str(server.process.pid)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024


def cpu_s(server: Server) -> float | None:
    """Seconds of CPU that the process has used; None where the system does not tell (`/proc`)."""
    try:
        line = Path(f"/proc/{server.process.pid}/stat").read_text()
    except FileNotFoundError:
        return None
    # Counted from behind the name, which may hold anything (proc_pid_stat(5), utime and stime).
    user, system = line.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def cpu_percent(server: Server, watch_s: float) -> float | None:
    """CPU time of the next `watch_s` seconds, as a part of the clock's."""
    began_s, before_s = time.monotonic(), cpu_s(server)
    time.sleep(watch_s)
    after_s, passed_s = cpu_s(server), time.monotonic() - began_s
    return None if before_s is None or after_s is None else (after_s - before_s) / passed_s * 100


@contextmanager
def started(run: Run, script: ModuleType, *arguments: str) -> Iterator[Server]:
    """A module of the bench that serves when it is run as a script; killed at the end."""
    assert script.__file__
    log = run.new_folder() / "server.log"
    # Found as `tests.bench...` from wherever the bench is run.
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    server = start_server([sys.executable, "-P", script.__file__, *arguments], log, environment)
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def started_echo(run: Run) -> Iterator[Server]:
    """The bare Starlette application that everything over HTTP is compared with."""
    with started(run, echo) as server:
        yield server


@dataclass(frozen=True, slots=True)
class Bodies:
    """Lines for the generators: whom to send to, one body each."""

    path: Path

    @classmethod
    def to(cls, path: Path, subscriber_ids: Sequence[str]) -> "Bodies":
        lines = [json.dumps({"subscriber_id": id_, "text": TEXT}) for id_ in subscriber_ids]
        path.write_text("\n".join(lines) + "\n")
        return cls(path)


@dataclass(frozen=True, slots=True)
class ServiceUnderTest:
    """A running `msgsvc serve` with a project, a key and subscribers."""

    deployment: Deployment
    plugins: tuple[str, ...]
    server: Server
    project_id: str
    sends: Request
    #: Unix seconds at which its process was started.
    began_s: float

    def use(self, work: Callable[[Service], Awaitable[T]]) -> T:
        """What `work` answers, given the service's database, beside the running process."""
        return asyncio.run(_opened(self.deployment, self.plugins, work))

    def count_messages(self) -> int:
        async def count(service: Service) -> int:
            async with service.db.read() as tx:
                return int(await tx.fetch_val("SELECT COUNT(*) AS count FROM core_messages"))

        return self.use(count)

    def with_fresh_keys(self) -> Request:
        return replace(self.sends, fresh_keys=True)


def while_it_stands(service: ServiceUnderTest, write: Callable[[Service], Awaitable[None]]) -> None:
    """Has `write` done while the server, which `pause` stopped, stands still; it catches up before.

    It may have been stopped in the middle of a transaction, and then nobody else can begin one on
    SQLite; it goes on for a moment, and is stopped again.
    """
    wake(service.server)
    pause(service.server)
    for _ in range(PAUSES):
        try:
            service.use(write)
            return
        except DatabaseUnavailable:
            go_on(service.server)
            time.sleep(0.1)
            pause(service.server)
    raise BenchError("the server was always stopped in the middle of a transaction")


@dataclass(frozen=True, slots=True)
class Setup:
    """How a service is configured where that is not its default."""

    kind: str
    runner: str = "embedded"
    channel: str = 'plugin = "sink"'
    plugins: tuple[str, ...] = ("sink",)
    sections: Sequence[str] = field(default_factory=tuple)
    #: Lines of the section `[server]`.
    server: str = ""

    def as_toml(self) -> str:
        parts = [
            f"plugins = {json.dumps(self.plugins)}",
            f"[channels.messenger_a]\n{self.channel}",
            f'[jobs]\nrunner = "{self.runner}"',
            # The one limit that no honest load stays under.
            "[limits]\nrequests_per_minute = 100000000",
            *self.sections,
        ]
        return "\n".join(parts) + "\n"


async def nothing_more(_service: Service, _project_id: str) -> None:
    """What is set up by default is enough."""


@contextmanager
def started_service(
    run: Run,
    setup: Setup,
    route: Callable[[str], str] = lambda url: url,
    fill: Fill = nothing_more,
) -> Iterator[ServiceUnderTest]:
    """The service as `msgsvc serve` runs it, its log in a file; killed at the end.

    A kill, for what still waits to be delivered is of no interest. `route` is given the URL of the
    database, and returns the one by which the service reaches it. `fill` writes to that database, given
    the project's id, before the process is started.
    """
    installed = run.folder / "installed"
    for name, module in _OWN.items():
        if not (installed / f"{name}.py").exists():
            assert module.__file__
            install_module(installed, Path(module.__file__))
    deployment = Deployment(run.new_folder(), [installed], forks=False)
    url = route(run.databases.new(setup.kind))
    deployment.configure(setup.as_toml(), url, server=setup.server)
    project_id, key, ids = asyncio.run(_opened(deployment, setup.plugins, _set_up))
    bodies = Bodies.to(deployment.folder / "bodies.jsonl", ids)
    asyncio.run(_opened(deployment, setup.plugins, lambda opened: fill(opened, project_id)))
    began_s = time.time()
    server = deployment.start()
    sends = Request(server.url + "/v1/send", bodies.path, key)
    try:
        yield ServiceUnderTest(deployment, setup.plugins, server, project_id, sends, began_s)
    finally:
        server.kill()


async def _set_up(service: Service) -> tuple[str, str, list[str]]:
    project = await service.projects.create("Bench")
    _, key = await service.projects.create_key(project.project_id, "bench")
    async with service.db.transaction() as tx:
        people = [
            await service.subscribers.ensure(
                tx,
                project.project_id,
                "messenger_a",
                ChannelUser(f"user-{number}", "Ann"),
                f"chat-{number}",
                source="api",
            )
            for number in range(SUBSCRIBERS)
        ]
    return project.project_id, key, [person.subscriber_id for person in people]


async def _opened(
    deployment: Deployment, plugins: Sequence[str], use: Callable[[Service], Awaitable[T]]
) -> T:
    own = [(name, _OWN[name]) for name in plugins if name in _OWN]
    others = [name for name in plugins if name not in _OWN]
    settings = load_settings(deployment.config, env={}, plugins=others)
    service = Service(settings, extra_plugins=own)
    await service.migrate()
    await service.open_database()
    try:
        return await use(service)
    finally:
        await service.db.disconnect()
