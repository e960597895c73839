"""A broadcast by processes that can be killed, and a platform that writes down what it was told."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from msgsvc_core.config.settings import load_settings
from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.service import Service
from msgsvc_devkit.runners import TestRunner
from tests.faults import slow_outbox
from tests.process import Deployment, Server, install_module

#: Seconds of a call, so that a kill finds all that may be in hand under way.
CALL_S = 0.3


class Receiver(NamedTuple):
    """A person as the messenger knows them."""

    user_id: str
    chat_id: str


@dataclass
class Campaign:
    """A deployment with people, and the broadcast to them that was asked for last.

    `service` sends nothing itself: it asks, as a process for the API does, and looks on.
    """

    deployment: Deployment
    service: Service
    project_id: str
    start: Callable[[], Server]
    job_id: str = ""

    async def ask(self, text: str) -> None:
        """Asks for a broadcast to all."""
        new = NewMailing("broadcasts", MailingMessage(text=text), Audience(all=True))
        async with self.service.db.transaction() as tx:
            self.job_id = (await self.service.mailings.start(tx, self.project_id, new)).job_id

    async def cancel(self) -> None:
        async with self.service.db.transaction() as tx:
            await self.service.mailings.cancel(tx, self.project_id, self.job_id)

    async def query(self, sql: str) -> list[Any]:
        """Rows; `:job_id` is the broadcast."""
        async with self.service.db.read() as tx:
            return await tx.fetch_all(sql, {"job_id": self.job_id})

    async def mailing(self) -> Any:
        [row] = await self.query("SELECT * FROM core_mailings WHERE job_id = :job_id")
        return row

    async def sent(self) -> int:
        return int((await self.mailing())["sent"])

    async def is_ended(self) -> bool:
        return (await self.mailing())["finished_at_ms"] is not None

    async def statuses(self) -> dict[str, str]:
        """The ledger's status of each chat."""
        rows = await self.query(
            "SELECT s.chat_id, r.status FROM core_recipients r"
            " JOIN core_subscribers s ON s.subscriber_id = r.subscriber_id"
            " WHERE r.job_id = :job_id"
        )
        return {row["chat_id"]: row["status"] for row in rows}

    async def told(self) -> list[str]:
        """The names of the events of broadcasts, of all that there were."""
        rows = await self.query("SELECT name FROM core_events WHERE name LIKE 'broadcast.%'")
        return [row["name"] for row in rows]

    def log(self, text: str) -> list[dict[str, Any]]:
        """The platform's lines of a text."""
        path = self.deployment.folder / "outbox.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in map(json.loads, lines) if line["text"] == text]

    def shown(self, text: str) -> Counter[str]:
        """How often the platform was told to write it to each chat."""
        return Counter(line["chat_id"] for line in self.log(text))


@asynccontextmanager
async def campaign(
    folder: Path,
    databases: Any,
    runner: TestRunner,
    people: int,
    *,
    on: str = "",
    messenger: ModuleType = slow_outbox,
    name: str = "",
    channel: str | None = None,
    receivers: Sequence[Receiver] = (),
) -> AsyncIterator[Campaign]:
    """`on` is the database; by default SQLite for the embedded runner, PostgreSQL for dramatiq.

    `messenger` is the plugin of the channel, and `channel` its settings; by default an outbox whose calls
    take `CALL_S`. One that is installed is named by `name`. `receivers` are the people, if the messenger
    knows them.
    """
    if channel is None:
        channel = f'outbox = "{folder / "outbox.jsonl"}"\ndelay_s = {CALL_S}\n'
    installed = (
        [] if name else [install_module(folder / "installed", Path(str(messenger.__file__)))]
    )
    name = name or messenger.__name__.rpartition(".")[2]
    deployment = Deployment(folder, installed)
    on = on or ("sqlite" if runner.name == "embedded" else "postgresql")
    url = None if on == "sqlite" else await databases[on].empty()
    jobs = {"lease_s": 1.0, "sweep_s": 0.1, **runner.job_settings}
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in jobs.items())
    deployment.configure(
        f'plugins = ["broadcasts", "{name}"]\n'
        "[channels.messenger_a]\n"
        f'plugin = "{name}"\n'
        f"{channel}"
        f'[jobs]\n{settings}[log]\nlevel = "warning"\n',
        url,
    )
    service = Service(
        load_settings(deployment.config, env={}, plugins=()),
        extra_plugins=[(name, messenger)],
    )
    await asyncio.to_thread(deployment.run, "migrate")
    await service.open_database()
    try:
        project = await service.projects.create("Shop")
        known = receivers or [Receiver(f"user-{n}", f"chat-{n}") for n in range(people)]
        await _subscribe(service, project.project_id, known)
        start = deployment.start if runner.name == "embedded" else deployment.start_worker
        yield Campaign(deployment, service, project.project_id, start)
    finally:
        await service.db.disconnect()
        if url is not None:
            await databases[on].give_back(url)


async def _subscribe(service: Service, project_id: str, people: Sequence[Receiver]) -> None:
    now_ms = service.clock.now_ms()
    for first in range(0, len(people), 500):
        rows = [
            {
                "project_id": project_id,
                "subscriber_id": f"sub_{number:07d}",
                "channel": "messenger_a",
                "bot": "messenger_a",
                "user_id": person.user_id,
                "chat_id": person.chat_id,
                "first_name": f"Person {number}",
                "lang": "en",
                "status": "active",
                "source": "api",
                "created_at_ms": now_ms,
                "last_seen_at_ms": now_ms,
            }
            for number, person in enumerate(people[first : first + 500], first)
        ]
        async with service.db.transaction() as tx:
            await tx.insert_many("core_subscribers", rows)
