"""A service with sign-ins to be raced for: server processes, codes, and many clients at once."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db import Row
from msgsvc_core.service import Service
from msgsvc_devkit.deadlines import patient
from tests import phone
from tests.process import Deployment, Server, install_module

#: Seconds after which an unanswered request counts as hung.
HUNG_S = patient(60.0)

#: Status and error code of an answer; no code for a success.
Outcome = tuple[int, str | None]


@dataclass
class Desk:
    """A deployment whose `service` is opened here, beside the server processes."""

    deployment: Deployment
    service: Service
    project_id: str
    key: str
    servers: list[Server] = field(default_factory=list)

    def start(self, processes: int) -> None:
        """Returns when as many more take requests."""
        self.servers += [self.deployment.start() for _ in range(processes)]

    def kill(self) -> None:
        """kill -9 of all of them."""
        while self.servers:
            self.servers.pop().kill()

    async def people(self, count: int) -> dict[str, str]:
        """The chats of so many new subscribers, by subscriber id."""
        made: dict[str, str] = {}
        async with self.service.db.transaction() as tx:
            for number in range(count):
                chat_id = f"chat-{number}"
                subscriber = await self.service.subscribers.ensure(
                    tx,
                    self.project_id,
                    "messenger_a",
                    ChannelUser(f"user-{number}", f"Person {number}"),
                    chat_id,
                    source="api",
                )
                made[subscriber.subscriber_id] = chat_id
        return made

    @property
    def outbox(self) -> list[tuple[str, str]]:
        """What the messenger has shown: chat and text, in order."""
        return [(call["chat_id"], call["text"]) for call in self.calls]

    @property
    def calls(self) -> list[dict[str, Any]]:
        """All that the messenger was told to do."""
        return phone.calls(self.deployment.folder / "outbox.jsonl")

    async def query(self, sql: str) -> list[Row]:
        """Rows, by a connection beside those of the servers."""
        async with self.service.db.read() as tx:
            return await tx.fetch_all(sql)

    @asynccontextmanager
    async def clients(self, at_once: int) -> AsyncIterator["Clients"]:
        """Clients that call the servers in turn, over `at_once` connections that are kept."""
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=at_once),
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=aiohttp.ClientTimeout(total=HUNG_S),
        ) as session:
            yield Clients(session, [server.url for server in self.servers])


@dataclass(frozen=True, slots=True)
class Clients:
    """Posts many requests at the same time, evenly to all servers."""

    session: aiohttp.ClientSession
    urls: Sequence[str]

    async def post(
        self, path: str, bodies: Sequence[Mapping[str, Any]]
    ) -> list[tuple[Outcome, dict[str, Any]]]:
        """What each of the bodies was answered, all of them sent at once."""

        async def one(number: int, body: Mapping[str, Any]) -> tuple[Outcome, dict[str, Any]]:
            url = self.urls[number % len(self.urls)] + path
            async with self.session.post(url, json=body) as response:
                answer: dict[str, Any] = await response.json()
                return (response.status, answer.get("code")), answer

        return await asyncio.gather(*(one(number, body) for number, body in enumerate(bodies)))


@asynccontextmanager
async def open_desk(
    folder: Path,
    database_url: str,
    plugins: Sequence[str],
    sections: str = "",
    *,
    modules: Sequence[Path] = (),
    delay_s: float = 0.0,
) -> AsyncIterator[Desk]:
    """A desk in `folder`, with an empty database; its servers are killed when the block ends.

    `plugins` are loaded beside the messenger, whose calls take `delay_s`; by the servers also
    `modules`.
    """
    own = [Path(phone.__file__), *modules]
    for module in own:
        install_module(folder / "installed", module)
    deployment = Deployment(folder, [folder / "installed"])
    deployment.configure(
        f"plugins = {json.dumps([*(module.stem for module in own), *plugins])}\n"
        "[channels.messenger_a]\n"
        'plugin = "phone"\n'
        f'outbox = "{folder / "outbox.jsonl"}"\n'
        f"delay_s = {delay_s}\n"
        # Races are not slowed down; what else is limited stands in `sections`.
        "[limits]\nrequests_per_minute = 100000000\n"
        "[jobs]\nlease_s = 1.0\nsweep_s = 0.1\n"
        '[log]\nlevel = "warning"\n' + sections,
        database_url,
    )
    settings = load_settings(deployment.config, env={}, plugins=plugins)
    service = Service(settings, extra_plugins=[("phone", phone)])
    await service.migrate()
    await service.open_database()
    try:
        project = await service.projects.create("Shop")
        _, key = await service.projects.create_key(project.project_id, "test")
        desk = Desk(deployment, service, project.project_id, key)
        try:
            yield desk
        finally:
            desk.kill()
    finally:
        await service.db.disconnect()


def outcomes(answers: Sequence[tuple[Outcome, dict[str, Any]]]) -> Counter[Outcome]:
    """How often each outcome was."""
    return Counter(outcome for outcome, _ in answers)


def as_text(counted: Counter[Outcome]) -> str:
    """For figures: `1000 × 200, 99000 × 409 auth_code_used`."""
    return ", ".join(
        f"{times} × {status}" + (f" {code}" if code else "")
        for (status, code), times in sorted(counted.items(), key=str)
    )
