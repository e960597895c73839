"""kill -9 of two served processes while scheduled messages come due, and what was sent of them."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx2
import pytest

from msgsvc_core.db import Database
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import FINAL, HUNG_S, PEOPLE, Shop, open_shop
from tests.process import until

pytestmark = pytest.mark.faults

#: Messages that come due before each kill.
BATCH = 100

#: Few messages a transaction, so that there are many for a kill to come into.
SETTINGS = "\n[scheduling]\nopen_records = 10000\nbatch = 2\n"


@pytest.fixture
async def shop(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> Shop:
    made = await open_shop(tmp_path, await backend.empty())
    made.plugins = [*made.plugins, "scheduling"]
    made.configure(delay_s=0.01)
    with made.deployment.config.open("a", encoding="utf-8") as file:
        file.write(SETTINGS)
    made.deployment.run("migrate")
    return made


def _schedule(shop: Shop, url: str, texts: Sequence[str]) -> None:
    headers = {"Authorization": f"Bearer {shop.key}"}
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    with httpx2.Client(base_url=url, headers=headers, timeout=HUNG_S) as client:
        for number, text in enumerate(texts):
            subscriber_id = shop.subscribers[number % PEOPLE]
            body = {"subscriber_id": subscriber_id, "text": text, "send_at": at}
            assert client.post("/v1/scheduled", json=body).status_code == 201


async def _have_batch_due(shop: Shop) -> None:
    """An hour later, as far as these records know."""
    database = Database(shop.database_url)
    await database.connect()
    async with database.transaction() as tx:
        await tx.execute(
            "UPDATE scheduling_records SET due_at_ms = 1 WHERE record_id IN"
            " (SELECT record_id FROM scheduling_records WHERE due_at_ms > 1"
            " ORDER BY record_id LIMIT :most)",
            {"most": BATCH},
        )
    await database.disconnect()


def _left(shop: Shop) -> int:
    [(left,)] = shop.query("SELECT COUNT(*) FROM scheduling_records WHERE due_at_ms = 1")
    return int(left)


def _is_over(shop: Shop) -> bool:
    statuses = {status for (status,) in shop.query("SELECT DISTINCT status FROM core_messages")}
    return _left(shop) == 0 and statuses <= FINAL


def test_what_is_due_is_sent_once_over_many_kills(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=3, long=20)
    texts = [f"message {number}" for number in range(kills * BATCH)]
    with shop.deployment.serving() as server:
        _schedule(shop, server.url, texts)
        server.kill()
    in_midst = 0
    for _ in range(kills):
        with shop.deployment.serving() as first, shop.deployment.serving() as second:
            until(lambda: _left(shop) == 0, timeout_s=60)
            asyncio.run(_have_batch_due(shop))
            at_work_until = random.randrange(BATCH // 10, BATCH - BATCH // 10)
            until(lambda most=at_work_until: _left(shop) <= most, timeout_s=60)
            first.kill()
            second.kill()
        in_midst += _left(shop) > 0
    with shop.deployment.serving():
        until(lambda: _is_over(shop), timeout_s=120)

    queued = Counter(
        json.loads(content)["text"]
        for (content,) in shop.query("SELECT content FROM core_messages")
    )
    statuses = Counter(shop.query("SELECT status FROM scheduling_records"))
    told = Counter(name for (name,) in shop.query("SELECT name FROM core_events"))
    twice = sum(times > 1 for times in queued.values()) + sum(
        times > 1 for times in shop.outbox.values()
    )
    lost = len(set(texts) - set(queued))
    figure(
        f"kill -9 as messages come due ({shop.database_url.partition(':')[0]})",
        f"{in_midst} of {kills} kills in time, {len(texts)} messages: {lost} lost, {twice} sent twice",
        kills=kills,
        in_midst=in_midst,
        lost=lost,
        twice=twice,
    )
    assert (lost, twice) == (0, 0)
    assert statuses == {("sent",): len(texts)}
    assert told["scheduled.sent"] == len(texts)
