"""A town in which everybody is on three channels, each of which refuses 30 % for good."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgsvc_core.config.settings import load_settings
from msgsvc_core.routing import Routes
from msgsvc_core.routing.models import CreateRouteBody
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults import refusing_outbox
from tests.process import Deployment, install_module

CHANNELS = ("messenger_a", "messenger_b", "messenger_c")

#: Seconds of a call, so that a kill finds some under way.
CALL_S = 0.05

#: Messages of one batch.
BATCH = 500


@dataclass
class Town:
    """People on three channels; `service` only accepts messages, and looks on."""

    deployment: Deployment
    service: Service
    project_id: str
    people: int

    async def make_route(self, on_unknown: str) -> str:
        """A route over the channels in their order; returns its id."""
        steps = [{"channel": name, "on_unknown": on_unknown} for name in CHANNELS]
        body = CreateRouteBody.model_validate({"name": "All", "steps": steps})
        async with self.service.db.transaction() as tx:
            return (await self.service.get(Routes).create(tx, self.project_id, body)).route_id

    async def work(self, kills: int, has_ended: Callable[[], Awaitable[bool]]) -> None:
        """Serves until everything has ended, killed so often while it is under way."""
        for number in range(kills):
            server = await asyncio.to_thread(self.deployment.start)
            try:
                before = await self.final()

                async def some_are_final(before: int = before) -> bool:
                    return await self.final() > before

                # So that a kill comes in the middle, however long a start takes.
                await until(some_are_final, timeout_s=60)
                await asyncio.sleep(CALL_S * random.uniform(0, 4))
            finally:
                await asyncio.to_thread(server.kill)
            assert await self.final() < self.people, f"all had ended before kill {number + 1}"
        last = await asyncio.to_thread(self.deployment.start)
        try:
            await until(has_ended, timeout_s=600)
        finally:
            await asyncio.to_thread(last.end)

    async def query(self, sql: str) -> list[Any]:
        async with self.service.db.read() as tx:
            return await tx.fetch_all(sql, {})

    async def final(self) -> int:
        [row] = await self.query(
            "SELECT COUNT(*) AS n FROM core_messages WHERE finished_at_ms IS NOT NULL"
        )
        return int(row["n"])

    def shown(self) -> Counter[tuple[str, str]]:
        """How often each channel has shown the message to each chat."""
        path = self.deployment.folder / "outbox.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter((line["channel"], line["chat_id"]) for line in map(json.loads, lines))


@asynccontextmanager
async def town(
    folder: Path, backend: SQLiteDatabases | PostgresDatabases, people: int
) -> AsyncIterator[Town]:
    installed = install_module(folder / "installed", Path(refusing_outbox.__file__))
    deployment = Deployment(folder, [installed])
    url = await backend.empty()
    channels = "".join(
        f'[channels.{name}]\nplugin = "refusing_outbox"\n'
        f'outbox = "{folder / "outbox.jsonl"}"\ndelay_s = {CALL_S}\n'
        for name in CHANNELS
    )
    deployment.configure(
        'plugins = ["refusing_outbox"]\n'
        f"{channels}"
        '[jobs]\nlease_s = 1.0\nsweep_s = 0.1\n[log]\nlevel = "warning"\n',
        url,
    )
    service = Service(
        load_settings(deployment.config, env={}, plugins=()),
        extra_plugins=[("refusing_outbox", refusing_outbox)],
    )
    await asyncio.to_thread(deployment.run, "migrate")
    await service.open_database()
    try:
        project = await service.projects.create("Shop")
        await _subscribe(service, project.project_id, people)
        yield Town(deployment, service, project.project_id, people)
    finally:
        await service.db.disconnect()
        await backend.give_back(url)


async def _subscribe(service: Service, project_id: str, people: int) -> None:
    now_ms = service.clock.now_ms()
    for first in range(0, people, BATCH):
        rows = [
            {
                "project_id": project_id,
                "subscriber_id": f"sub_{channel[-1]}{number:07d}",
                "external_id": f"person-{number}",
                "channel": channel,
                "bot": channel,
                "user_id": f"user-{number}",
                "chat_id": f"chat-{number}",
                "first_name": f"Person {number}",
                "lang": "en",
                "status": "active",
                "source": "api",
                "created_at_ms": now_ms,
                "last_seen_at_ms": now_ms,
            }
            for number in range(first, min(people, first + BATCH))
            for channel in CHANNELS
        ]
        async with service.db.transaction() as tx:
            await tx.insert_many("core_subscribers", rows)
