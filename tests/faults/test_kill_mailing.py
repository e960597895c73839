"""kill -9 of who sends a broadcast, on both runners, and what the platform's log says of it."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.mailings import Audience, MailingMessage, NewMailing
from msgsvc_core.mailings.sending import MOST_IN_HAND
from msgsvc_core.service import Service
from msgsvc_core.settings import load_settings
from msgsvc_core.testing import until
from msgsvc_core.testing.fixtures import backends_found
from msgsvc_core.testing.runners import TestRunner
from tests.faults import slow_outbox
from tests.faults.conftest import Figure, Rounds
from tests.process import Deployment, Server, install_module

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("runner", ["embedded", "redis"], indirect=True),
]

#: Seconds of a call, so that a kill finds all that may be in hand under way.
CALL_S = 0.3


@dataclass
class Campaign:
    """A deployment with a broadcast that nobody sends yet; `service` only looks on."""

    deployment: Deployment
    service: Service
    job_id: str
    start: Callable[[], Server]

    async def query(self, sql: str) -> list[Any]:
        async with self.service.db.read() as tx:
            return await tx.fetch_all(sql)

    async def sent(self) -> int:
        return int((await self.query("SELECT sent FROM core_mailings"))[0]["sent"])

    async def is_ended(self) -> bool:
        rows = await self.query("SELECT finished_at_ms FROM core_mailings")
        return rows[0]["finished_at_ms"] is not None

    @property
    def shown(self) -> Counter[str]:
        """How often the platform was told to write to each chat."""
        path = self.deployment.folder / "outbox.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["chat_id"] for line in lines)


@asynccontextmanager
async def campaign(
    folder: Path, databases: Any, runner: TestRunner, people: int
) -> AsyncIterator[Campaign]:
    installed = install_module(folder / "installed", Path(slow_outbox.__file__))
    deployment = Deployment(folder, [installed])
    url = None if runner.name == "embedded" else await databases["postgresql"].empty()
    jobs = {"lease_s": 1.0, "sweep_s": 0.1, **runner.job_settings}
    settings = "".join(f"{name} = {json.dumps(value)}\n" for name, value in jobs.items())
    deployment.configure(
        'plugins = ["broadcasts", "slow_outbox"]\n'
        "[channels.messenger_a]\n"
        'plugin = "slow_outbox"\n'
        f'outbox = "{folder / "outbox.jsonl"}"\n'
        f"delay_s = {CALL_S}\n"
        f'[jobs]\n{settings}[log]\nlevel = "warning"\n',
        url,
    )
    service = Service(
        load_settings(deployment.config, env={}, plugins=()),
        extra_plugins=[("slow_outbox", slow_outbox)],
    )
    await service.migrate()
    await service.open_database()
    try:
        project = await service.projects.create("Shop")
        await _subscribe(service, project.project_id, people)
        new = NewMailing("broadcasts", MailingMessage(text="Hi"), Audience(all=True))
        async with service.db.transaction() as tx:
            mailing = await service.mailings.start(tx, project.project_id, new)
        start = deployment.start if url is None else deployment.start_worker
        yield Campaign(deployment, service, mailing.job_id, start)
    finally:
        await service.db.disconnect()
        if url is not None:
            await databases["postgresql"].give_back(url)


async def _subscribe(service: Service, project_id: str, people: int) -> None:
    now_ms = service.clock.now_ms()
    for first in range(0, people, 500):
        rows = [
            {
                "project_id": project_id,
                "subscriber_id": f"sub_{number:07d}",
                "channel": "messenger_a",
                "bot": "messenger_a",
                "user_id": f"user-{number}",
                "chat_id": f"chat-{number}",
                "first_name": f"Person {number}",
                "lang": "en",
                "status": "active",
                "source": "api",
                "created_at_ms": now_ms,
                "last_seen_at_ms": now_ms,
            }
            for number in range(first, min(people, first + 500))
        ]
        async with service.db.transaction() as tx:
            await tx.insert_many("core_subscribers", rows)


async def test_nobody_is_lost_and_nobody_sent_to_twice_over_many_kills(
    tmp_path: Path, databases: Any, runner: TestRunner, rounds: Rounds, figure: Figure
) -> None:
    if runner.name != "embedded" and not backends_found()["postgres"]:
        pytest.skip("PostgreSQL does not answer")
    kills, people = rounds(short=3, long=20), rounds(short=2000, long=20_000)
    async with campaign(tmp_path, databases, runner, people) as this:
        for number in range(kills):
            server = await asyncio.to_thread(this.start)
            try:
                before = await this.sent()

                async def some_are_sent(before: int = before) -> bool:
                    return await this.sent() > before

                # So that a kill comes in the middle, however long a start takes.
                await until(some_are_sent, timeout_s=60)
                await asyncio.sleep(CALL_S * random.uniform(0, 1))
            finally:
                await asyncio.to_thread(server.kill)
            assert not await this.is_ended(), f"it had ended before kill {number + 1}"
        last = await asyncio.to_thread(this.start)
        try:
            await until(this.is_ended, timeout_s=300)
        finally:
            await asyncio.to_thread(last.end)
        [mailing] = await this.query("SELECT * FROM core_mailings")
        rows = await this.query(
            "SELECT s.chat_id, r.status FROM core_recipients r"
            " JOIN core_subscribers s ON s.subscriber_id = r.subscriber_id"
        )
        told = await this.query("SELECT name FROM core_events WHERE name LIKE 'broadcast.%'")
        messages = await this.query("SELECT status FROM core_messages")

    status_of = {row["chat_id"]: row["status"] for row in rows}
    statuses, shown = Counter(status_of.values()), this.shown
    twice = sum(times > 1 for times in shown.values())
    lost = sum(status == "sent" and not shown[chat] for chat, status in status_of.items())
    figure(
        f"kill -9 during a broadcast, {runner.name}",
        f"{kills} kills, {people} recipients: {dict(statuses)}, {lost} lost, {twice} sent to twice",
        kills=kills,
        recipients=people,
        unknown=statuses["unknown"],
        lost=lost,
        twice=twice,
    )
    assert (lost, twice) == (0, 0)
    assert len(rows) == people
    assert set(statuses) <= {"sent", "unknown"}
    # What was in the platform's hands, each time.
    assert statuses["unknown"] <= kills * MOST_IN_HAND
    assert (mailing["sent"], mailing["failed"]) == (statuses["sent"], statuses["unknown"])
    assert (mailing["skipped"], mailing["total"]) == (0, people)
    assert [row["name"] for row in told] == ["broadcast.completed"]
    assert Counter(row["status"] for row in messages) == statuses
