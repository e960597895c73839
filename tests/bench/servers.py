"""What is measured: the echo, and the service on each database, each in a process of its own."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_core.settings import load_settings
from msgsvc_core.testing.databases import PostgresDatabases, postgres_answers, postgres_url
from tests.bench import echo, sink
from tests.bench.load import Request
from tests.process import Deployment, Server, install_module, start_server

T = TypeVar("T")

TEXT = "Your order 4711 is on its way and arrives tomorrow between 10 and 12."

#: Subscribers that the messages go to, in turn; one's messages are delivered one after another.
SUBSCRIBERS = 500


@dataclass(frozen=True, slots=True)
class Target:
    """A server under test. It stands still while another one is measured."""

    name: str
    server: Server
    request: Request
    #: How many messages its database holds.
    count: Callable[[], int] | None = None

    def pause(self) -> None:
        os.kill(self.server.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.server.process.pid, signal.SIGCONT)


@contextmanager
def all_targets(folder: Path, missing: Callable[[str], None]) -> Iterator[list[Target]]:
    """The echo first. `missing` is told what can't be measured here.

    `<database>` is the service as it is by default, which delivers beside taking messages in;
    `<database>, taken in only` leaves delivery to other processes.
    """
    installed = install_module(folder / "installed", Path(sink.__file__))
    if there := postgres_answers(postgres_url()):
        postgres = PostgresDatabases(postgres_url())
    else:
        missing("PostgreSQL is not measured: it does not answer")
    with ExitStack() as stack:
        if there:
            stack.callback(lambda: asyncio.run(postgres.drop_all()))
        services = []
        for runner, suffix in (("embedded", ""), ("none", ", taken in only")):
            place = folder / f"sqlite-{runner}"
            services.append((f"sqlite{suffix}", place, runner, f"sqlite:///{place / 'bench.db'}"))
            if there:
                place, url = folder / f"postgresql-{runner}", asyncio.run(postgres.empty())
                services.append((f"postgresql{suffix}", place, runner, url))
        targets: list[Target] = []
        stack.callback(_end, targets)
        for name, place, runner, url in services:
            place.mkdir()
            targets.append(_start(name, Deployment(place, [installed]), url, runner))
            targets[-1].pause()
        targets.insert(0, _start_echo(folder, targets[0].request))
        targets[0].pause()
        yield targets


def _start_echo(folder: Path, like: Request) -> Target:
    server = start_server([sys.executable, echo.__file__], folder / "echo.log", os.environ)
    return Target("echo", server, Request(server.url + "/v1/send", like.bodies, like.api_key))


def _start(name: str, deployment: Deployment, database_url: str, runner: str) -> Target:
    """The service as `msgsvc serve` runs it by default, but for the limit of requests."""
    deployment.configure(
        'plugins = ["sink"]\n'
        '[channels.messenger_a]\nplugin = "sink"\n'
        "[limits]\nrequests_per_minute = 100000000\n"
        f'[jobs]\nrunner = "{runner}"\n',
        database_url,
    )

    async def set_up(service: Service) -> tuple[str, list[str]]:
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
        return key, [person.subscriber_id for person in people]

    async def count(service: Service) -> int:
        async with service.db.read() as tx:
            return int(await tx.fetch_val("SELECT COUNT(*) AS count FROM core_messages"))

    key, subscriber_ids = asyncio.run(_opened(deployment, set_up))
    bodies = deployment.folder / "bodies.jsonl"
    bodies.write_text(
        "".join(json.dumps({"subscriber_id": id_, "text": TEXT}) + "\n" for id_ in subscriber_ids)
    )
    server = deployment.start()
    request = Request(server.url + "/v1/send", bodies, key)
    return Target(name, server, request, lambda: asyncio.run(_opened(deployment, count)))


async def _opened(deployment: Deployment, use: Callable[[Service], Awaitable[T]]) -> T:
    settings = load_settings(deployment.config, env={}, plugins=())
    service = Service(settings, extra_plugins=[("sink", sink)])
    await service.migrate()
    await service.open_database()
    try:
        return await use(service)
    finally:
        await service.db.disconnect()


def _end(targets: list[Target]) -> None:
    for target in targets:
        # A kill, for what still waits to be delivered is of no interest.
        target.server.kill()
