"""Workers under load, on a PostgreSQL database, and the means to look at what they did."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db import Row
from msgsvc_core.jobs import NewJob
from msgsvc_core.projects import Project
from msgsvc_core.service import Service
from msgsvc_devkit.databases import PostgresDatabases
from tests.faults import effects, slow_outbox
from tests.process import Deployment, Server, install_module

#: Subscribers, and so chats in which messages are sent side by side.
PEOPLE = 8

#: Seconds that the messenger takes for a call.
CALL_S = 0.02

#: Jobs and messages of each turn of the load, and the seconds between two turns.
JOBS, MESSAGES, TURN_S = 5, 2, 0.05


@dataclass
class Workshop:
    """The serving side, in the test's process, without a runner: it only adds work."""

    deployment: Deployment
    service: Service
    project: Project
    subscribers: list[str]
    workers: list[Server] = field(default_factory=list)
    enqueued: int = 0
    #: Texts of the messages taken in, by message id.
    accepted: dict[str, str] = field(default_factory=dict)

    def start_worker(self) -> Server:
        worker = self.deployment.start_worker()
        self.workers.append(worker)
        return worker

    def forget(self, worker: Server) -> None:
        self.workers.remove(worker)

    async def add_jobs(self, count: int, lane: str = "effects") -> None:
        numbers = range(self.enqueued, self.enqueued + count)
        async with self.service.db.transaction() as tx:
            await self.service.jobs.enqueue(
                tx, *(NewJob(effects.WRITE, {"number": n}, lane=lane) for n in numbers)
            )
        self.enqueued += count

    async def add_messages(self, count: int) -> None:
        for _ in range(count):
            number = len(self.accepted)
            message = await self.service.messages.send(
                self.project.project_id,
                subscriber_id=self.subscribers[number % PEOPLE],
                text=f"message {number}",
            )
            self.accepted[message.message_id] = f"message {number}"

    @asynccontextmanager
    async def under_load(self) -> AsyncIterator[None]:
        """Adds jobs and messages for as long as the block lasts."""

        async def load() -> None:
            while True:
                await self.add_jobs(JOBS)
                await self.add_messages(MESSAGES)
                await asyncio.sleep(TURN_S)

        task = asyncio.create_task(load())
        try:
            yield
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def query(self, sql: str, **params: Any) -> list[Row]:
        async with self.service.db.read() as tx:
            return await tx.fetch_all(sql, params)

    async def count(self, sql: str, **params: Any) -> int:
        return int((await self.query(sql, **params))[0]["count"])

    async def owner_of_messages(self) -> Server | None:
        """The worker that has the messenger's lane now."""
        rows = await self.query(
            "SELECT r.name FROM core_lanes l JOIN core_runners r ON r.runner_id = l.owner"
            " WHERE l.lane = 'channel:messenger_a'"
        )
        for row in rows:
            pid = int(row["name"].rpartition(":")[2])
            for worker in self.workers:
                if worker.process.pid == pid:
                    return worker
        return None

    async def open_before(self, at_ms: int) -> int:
        """Jobs made until then that are not done."""
        return await self.count(
            "SELECT COUNT(*) AS count FROM core_jobs"
            " WHERE created_at_ms <= :at_ms AND key IS NULL AND state <> 'dead'",
            at_ms=at_ms,
        )

    async def until_done(self, at_ms: int, timeout_s: float) -> float:
        """Seconds until all that was added until `at_ms` is done."""
        began = time.monotonic()
        while left := await self.open_before(at_ms):
            waited_s = time.monotonic() - began
            assert waited_s < timeout_s, f"{left} jobs are not done after {waited_s:.0f} s"
            await asyncio.sleep(0.05)
        return time.monotonic() - began

    @property
    def shown(self) -> Counter[str]:
        """How often each text was shown by the messenger."""
        path = self.deployment.folder / "outbox.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["text"] for line in lines)

    async def findings(self) -> "Findings":
        """What became of everything that was added."""
        done = Counter(row["number"] for row in await self.query("SELECT number FROM effects"))
        rows = await self.query("SELECT message_id, status FROM core_messages")
        statuses = {row["message_id"]: row["status"] for row in rows}
        shown = self.shown
        return Findings(
            jobs=self.enqueued,
            jobs_lost=sum(number not in done for number in range(self.enqueued)),
            jobs_twice=sum(times > 1 for times in done.values()),
            messages=Counter(statuses.get(key, "lost") for key in self.accepted),
            shown_twice=sum(times > 1 for times in shown.values()),
            sent_not_shown=sum(
                statuses.get(key) == "sent" and not shown[text]
                for key, text in self.accepted.items()
            ),
        )


@dataclass(frozen=True, slots=True)
class Findings:
    """Counts; `messages` by status, or `lost`."""

    jobs: int
    jobs_lost: int
    jobs_twice: int
    messages: Counter[str]
    shown_twice: int
    sent_not_shown: int

    def __str__(self) -> str:
        return (
            f"{self.jobs} jobs: {self.jobs_lost} lost, {self.jobs_twice} done twice; messages:"
            f" {dict(self.messages)}, {self.shown_twice} shown twice,"
            f" {self.sent_not_shown} sent but not shown"
        )


@asynccontextmanager
async def workshop(
    folder: Path, databases: PostgresDatabases, jobs: dict[str, Any]
) -> AsyncIterator[Workshop]:
    """A deployment without workers yet; those that are there at the end are killed."""
    installed = folder / "installed"
    for module in (effects, slow_outbox):
        install_module(installed, Path(module.__file__))
    deployment = Deployment(folder, [installed])
    plugins = [("effects", effects), ("slow_outbox", slow_outbox)]
    url = await databases.empty()
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in jobs.items())
    deployment.configure(
        'plugins = ["effects", "slow_outbox"]\n'
        "[channels.messenger_a]\n"
        'plugin = "slow_outbox"\n'
        f'outbox = "{folder / "outbox.jsonl"}"\n'
        f"delay_s = {CALL_S}\n"
        f'[jobs]\n{settings}[log]\nlevel = "warning"\n',
        url,
    )
    service = Service(load_settings(deployment.config, env={}, plugins=()), extra_plugins=plugins)
    await service.migrate()
    async with service:
        async with service.db.transaction() as tx:
            await tx.execute(effects.TABLE)
        project = await service.projects.create("Shop")
        async with service.db.transaction() as tx:
            people = [
                await service.subscribers.ensure(
                    tx,
                    project.project_id,
                    "messenger_a",
                    ChannelUser(f"user-{number}", f"Person {number}"),
                    f"chat-{number}",
                    source="api",
                )
                for number in range(PEOPLE)
            ]
        made = Workshop(deployment, service, project, [one.subscriber_id for one in people])
        try:
            yield made
        finally:
            for worker in made.workers:
                worker.kill()
    await databases.give_back(url)
