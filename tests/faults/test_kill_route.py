"""kill -9 while messages go along their routes: three channels, each of which refuses 30 % for good."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.routing.models import CreateRouteBody
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults import refusing_outbox
from tests.faults.conftest import Figure, Rounds
from tests.faults.refusing_outbox import refuses
from tests.process import Deployment, install_module

pytestmark = pytest.mark.faults

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

    async def send(self, on_unknown: str) -> None:
        """A message to everybody, by one route."""
        steps = [{"channel": name, "on_unknown": on_unknown} for name in CHANNELS]
        body = CreateRouteBody.model_validate({"name": "All", "steps": steps})
        async with self.service.db.transaction() as tx:
            route = await self.service.routes.create(tx, self.project_id, body)
        messages = [
            {"external_id": f"person-{number}", "route": route.route_id, "text": "Hi"}
            for number in range(self.people)
        ]
        for first in range(0, self.people, BATCH):
            answer = await self.service.batches.send(
                self.project_id, messages[first : first + BATCH]
            )
            assert answer.rejected == []

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


@pytest.mark.parametrize("on_unknown", ["continue", "stop"])
async def test_everybody_is_reached_by_the_first_channel_that_works_over_many_kills(
    tmp_path: Path,
    backend: SQLiteDatabases | PostgresDatabases,
    on_unknown: str,
    rounds: Rounds,
    figure: Figure,
) -> None:
    kills, people = rounds(short=2, long=10), rounds(short=600, long=10_000)
    async with town(tmp_path, backend, people) as this:
        await this.send(on_unknown)
        for number in range(kills):
            server = await asyncio.to_thread(this.deployment.start)
            try:
                before = await this.final()

                async def some_are_final(before: int = before) -> bool:
                    return await this.final() > before

                # So that a kill comes in the middle, however long a start takes.
                await until(some_are_final, timeout_s=60)
                await asyncio.sleep(CALL_S * random.uniform(0, 4))
            finally:
                await asyncio.to_thread(server.kill)
            assert await this.final() < people, f"all had ended before kill {number + 1}"
        last = await asyncio.to_thread(this.deployment.start)
        try:

            async def all_are_final() -> bool:
                return await this.final() == people

            await until(all_are_final, timeout_s=600)
        finally:
            await asyncio.to_thread(last.end)
        messages = await this.query(
            "SELECT message_id, subscriber_id, channel, status FROM core_messages"
        )
        events = await this.query("SELECT name, data FROM core_events WHERE name LIKE 'delivery.%'")
        [batches] = await this.query(
            "SELECT SUM(sent) AS sent, SUM(failed) AS failed, SUM(unknown) AS unknown FROM core_batches"
        )

    expected = {
        f"chat-{number}": next(
            (name for name in CHANNELS if not refuses(name, f"chat-{number}")), None
        )
        for number in range(people)
    }
    reached = {chat: channel for chat, channel in expected.items() if channel is not None}
    shown = this.shown()
    told = Counter(json.loads(event["data"])["message_id"] for event in events)
    statuses = Counter(message["status"] for message in messages)
    twice = sum(times > 1 for times in Counter(chat for _, chat in shown.elements()).values())
    figure(
        f"kill -9 of messages by a route, {on_unknown} if unknown, {backend.name}",
        f"{kills} kills, {people} people: {dict(statuses)}, {twice} reached twice",
        kills=kills,
        people=people,
        unknown=statuses["unknown"],
        twice=twice,
    )
    wanted = Counter((channel, chat) for chat, channel in reached.items())
    # What is charged is charged by the one event of each message.
    assert told == Counter(message["message_id"] for message in messages)
    assert (batches["sent"], batches["failed"]) == (
        statuses["sent"],
        statuses["failed"] + statuses["unknown"],
    )
    for message in messages:
        chat = f"chat-{int(message['subscriber_id'].removeprefix('sub_')[1:])}"
        assert message["status"] != "sent" or message["channel"] == expected[chat]
    if on_unknown == "continue":
        assert shown == wanted
        assert statuses["sent"] == len(reached)
    else:
        # A call in progress at a kill is made again, and refused: the first may have been taken.
        assert twice == 0
        assert shown <= wanted
        assert statuses["sent"] == shown.total()
        assert len(reached) - statuses["sent"] <= statuses["unknown"]
