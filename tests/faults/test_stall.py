"""A process that stands still while its calls are under way, and goes on after another took over."""

import asyncio
import json
import signal
import sqlite3
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_core.db.database import sqlite_path
from msgsvc_devkit import until as wait_until
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from msgsvc_devkit.runners import TestRunner
from tests.faults.campaign import Campaign, campaign
from tests.faults.conftest import Figure
from tests.faults.shop import HUNG_S, PEOPLE, Shop, open_shop, query_postgres
from tests.process import Server, until

pytestmark = pytest.mark.faults

#: Seconds of a call: enough for a busy machine to begin one for each of the people, and to stop the process
#: in it.
CALL_S = 10.0


@pytest.fixture
async def shop(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[Shop]:
    url = await backend.empty()
    yield await open_shop(tmp_path, url)
    await backend.give_back(url)


def is_writing(database_url: str) -> bool:
    """Whether somebody is in a transaction."""
    if not database_url.startswith("sqlite"):
        found = query_postgres(
            database_url,
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND (state = 'active' OR state LIKE 'idle in%')",
        )
        return bool(asyncio.run(found))
    path = sqlite_path(database_url)
    with closing(sqlite3.connect(path, timeout=0.2, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
        connection.execute("ROLLBACK")
    return False


def stall(database_url: str, server: Server) -> None:
    """Stops the process where it holds up nobody else, as most stalls do."""
    server.process.send_signal(signal.SIGSTOP)
    while is_writing(database_url):
        server.process.send_signal(signal.SIGCONT)
        time.sleep(0.05)
        server.process.send_signal(signal.SIGSTOP)


def told(shop: Shop) -> dict[str, list[tuple[str, str | None]]]:
    """What was told of each message, in order: the event's name and `status`."""
    found: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for name, text in shop.query(
        "SELECT name, data FROM core_events WHERE name LIKE 'delivery.%' ORDER BY event_id"
    ):
        data = json.loads(text)
        found[data["message_id"]].append((name, data.get("status")))
    return found


def test_what_was_shown_after_a_stall_is_sent_although_another_called_it_unknown(
    shop: Shop, figure: Figure
) -> None:
    # All at once: the process stands still while nobody has an answer.
    shop.configure(delay_s=CALL_S, min_in_flight=PEOPLE)
    with shop.deployment.serving() as first, httpx2.Client(timeout=HUNG_S) as client:
        messages = [
            {"subscriber_id": person, "text": shop.next_text()} for person in shop.subscribers
        ]
        answer = client.post(
            f"{first.url}/v1/send/batch",
            json={"messages": messages},
            headers={"Authorization": f"Bearer {shop.key}"},
        )
        assert answer.status_code == 202, answer.text
        batch_id = answer.json()["batch_id"]
        rows = shop.query("SELECT message_id, subscriber_id FROM core_messages")
        texts = {body["subscriber_id"]: body["text"] for body in messages}
        shop.accepted = {message_id: texts[person] for message_id, person in rows}
        until(lambda: set(shop.statuses().values()) == {"sending"})
        stall(shop.database_url, first)
        try:
            with shop.deployment.serving() as second:
                until(lambda: set(shop.statuses().values()) == {"unknown"})
                [before] = shop.query("SELECT sent, failed, unknown FROM core_batches")
                first.process.send_signal(signal.SIGCONT)
                until(lambda: set(shop.statuses().values()) == {"sent"})
                after = client.get(
                    f"{second.url}/v1/batches/{batch_id}",
                    headers={"Authorization": f"Bearer {shop.key}"},
                ).json()
        finally:
            first.process.send_signal(signal.SIGCONT)

    ledger, events = shop.ledger(), told(shop)
    ends = shop.query("SELECT data FROM core_events WHERE name = 'batch.completed'")
    figure(
        "a process that stands still in its calls, beyond its leases",
        f"{before[2]} called `unknown` by another, {ledger.statuses['sent']} corrected when the calls ended",
        unknown=before[2],
        corrected=ledger.statuses["sent"],
        shown_twice=len(ledger.shown_twice),
    )
    ledger.check()
    assert tuple(before) == (0, PEOPLE, PEOPLE)
    assert (after["sent"], after["failed"], after["unknown"]) == (PEOPLE, 0, 0)
    assert after["total"] == PEOPLE
    assert len(ends) == 1
    # The second says what the first left open, and nothing is told after it.
    wanted = [("delivery.failed", "unknown"), ("delivery.success", None)]
    assert all(events[message_id] == wanted for message_id in shop.accepted)


async def test_who_got_a_broadcast_during_a_stall_is_sent_although_another_gave_them_up(
    tmp_path: Path,
    databases: Any,
    runner: TestRunner,
    backend: SQLiteDatabases | PostgresDatabases,
) -> None:
    on = "sqlite" if isinstance(backend, SQLiteDatabases) else "postgresql"
    people = 40
    async with campaign(tmp_path, databases, runner, people, on=on) as this:
        first = this.start()
        await this.ask("hello")
        await wait_until(lambda: in_hand(this))
        await asyncio.to_thread(stall, this.service.settings.database_url, first)
        second = await asyncio.to_thread(this.start)
        try:
            await wait_until(this.is_ended)
            before = await this.mailing()
            first.process.send_signal(signal.SIGCONT)
            await wait_until(lambda: nobody_is_unknown(this))
        finally:
            first.process.send_signal(signal.SIGCONT)
            first.kill()
            second.kill()
        after, shown = await this.mailing(), this.shown("hello")
        messages = await this.query("SELECT status FROM core_messages WHERE job_id = :job_id")

        assert before["unknown"] > 0
        assert (after["sent"], after["failed"], after["unknown"]) == (people, 0, 0)
        assert after["total"] == people
        assert await this.told() == ["broadcast.completed"]
        assert set(shown.values()) == {1}
        assert {row["status"] for row in messages} == {"sent"}
        assert len(messages) == people


async def in_hand(this: Campaign) -> bool:
    """Whether calls are under way: their people are in hand, and the process writes no more by now."""
    return bool(this.log("hello"))


async def nobody_is_unknown(this: Campaign) -> bool:
    return bool((await this.mailing())["unknown"] == 0)
