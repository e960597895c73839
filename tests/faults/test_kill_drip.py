"""kill -9 of a served process while people are led through a chain, and what they were sent."""

import json
import random
import time
from collections import defaultdict
from pathlib import Path

import httpx2
import pytest

from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import FINAL, HUNG_S, PEOPLE, Shop, open_shop
from tests.process import until

pytestmark = pytest.mark.faults

STEPS = [f"step {number}" for number in range(1, 51)]

#: Few steps a transaction, so that there are many for a kill to come into.
SETTINGS = "\n[drip]\nbatch = 2\nlook_s = 0.2\n"


@pytest.fixture
async def shop(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> Shop:
    made = await open_shop(tmp_path, await backend.empty())
    made.plugins = [*made.plugins, "drip"]
    made.configure(delay_s=0.01)
    with made.deployment.config.open("a", encoding="utf-8") as file:
        file.write(SETTINGS)
    made.deployment.run("migrate")
    return made


def _enroll_all(shop: Shop, url: str) -> None:
    headers = {"Authorization": f"Bearer {shop.key}"}
    steps = [{"delay": {"minutes": 0}, "message": {"text": text}} for text in STEPS]
    body = {"name": "Welcome", "trigger": {"on": "manual"}, "steps": steps}
    with httpx2.Client(base_url=url, headers=headers, timeout=HUNG_S) as client:
        drip_id = client.post("/v1/drips", json=body).json()["drip_id"]
        for subscriber_id in shop.subscribers:
            path = f"/v1/drips/{drip_id}/enroll"
            assert client.post(path, json={"subscriber_id": subscriber_id}).status_code == 201


def _is_over(shop: Shop) -> bool:
    ended = shop.query("SELECT COUNT(*) FROM drip_enrollments WHERE status = 'completed'")
    statuses = {status for (status,) in shop.query("SELECT DISTINCT status FROM core_messages")}
    return ended == [(PEOPLE,)] and statuses <= FINAL


def test_each_step_is_sent_once_and_in_order_over_many_kills(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=3, long=20)
    with shop.deployment.serving() as server:
        _enroll_all(shop, server.url)
        server.kill()
    in_midst = 0
    for _ in range(kills - 1):
        in_midst += not _is_over(shop)
        with shop.deployment.serving() as server:
            time.sleep(random.uniform(0.0, 0.3))
            server.kill()
    in_midst += not _is_over(shop)
    with shop.deployment.serving():
        until(lambda: _is_over(shop), timeout_s=120)

    queued = defaultdict(list)
    for subscriber_id, content in shop.query(
        "SELECT subscriber_id, content FROM core_messages ORDER BY message_id"
    ):
        queued[subscriber_id].append(json.loads(content)["text"])
    shown = defaultdict(list)
    for line in (shop.deployment.folder / "outbox.jsonl").read_text().splitlines():
        shown[json.loads(line)["chat_id"]].append(STEPS.index(json.loads(line)["text"]))
    wrong = sum(texts != STEPS for texts in queued.values())
    disordered = sum(seen != sorted(set(seen)) for seen in shown.values())
    figure(
        f"kill -9 in the midst of chains ({shop.database_url.partition(':')[0]})",
        f"{in_midst} of {kills} kills in time, {PEOPLE} people, {len(STEPS)} steps:"
        f" {wrong + disordered} not each once in order",
        kills=kills,
        in_midst=in_midst,
        wrong=wrong + disordered,
    )
    assert (len(queued), wrong, disordered) == (PEOPLE, 0, 0)
    told = dict(shop.query("SELECT name, COUNT(*) FROM core_events GROUP BY name"))
    assert told["drip.step_sent"] == PEOPLE * len(STEPS)
    assert told["drip.completed"] == PEOPLE
