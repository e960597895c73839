"""kill -9 of a served process while it erases many subscribers, and what was done to each."""

import random
import time
from pathlib import Path

import httpx2
import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.kernel.ids import new_id
from msgsvc_core.service import Service
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults import slow_outbox
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import HUNG_S, PEOPLE, Shop, open_shop
from tests.process import until

pytestmark = pytest.mark.faults

#: Subscribers besides those of the shop: of ten a step, there are many for a kill to come into.
MORE = 1500

PATH = "/v1/subscribers/bulk-actions"


@pytest.fixture
async def shop(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> Shop:
    made = await open_shop(tmp_path, await backend.empty())
    settings = load_settings(made.deployment.config, env={}, plugins=())
    service = Service(settings, extra_plugins=[("slow_outbox", slow_outbox)])
    await service.open_database()
    async with service.db.transaction() as tx:
        project_id = await tx.fetch_val("SELECT project_id FROM core_projects")
        await tx.insert_many("core_subscribers", [_person(project_id, n) for n in range(MORE)])
    await service.db.disconnect()
    return made


def _person(project_id: str, number: int) -> dict[str, object]:
    return {
        "project_id": project_id,
        "subscriber_id": new_id("sub"),
        "channel": "messenger_a",
        "bot": "messenger_a",
        "user_id": f"more-{number}",
        "chat_id": f"more-{number}",
        "first_name": "Ann",
        "lang": "en",
        "status": "active",
        "source": "api",
        "created_at_ms": 0,
        "last_seen_at_ms": 0,
    }


def _status(shop: Shop) -> tuple[str, int, int, int]:
    [(status, total, done, failed)] = shop.query(
        "SELECT status, total, done, failed FROM core_bulk_actions"
    )
    return status, total, done, failed


def _begin(shop: Shop, url: str) -> None:
    headers = {"Authorization": f"Bearer {shop.key}"}
    with httpx2.Client(base_url=url, headers=headers, timeout=HUNG_S) as client:
        body = {"action": "erase", "all": True}
        bulk_action_id = client.post(PATH, json=body).json()["bulk_action_id"]
        until(lambda: _status(shop)[0] == "waiting", timeout_s=30)
        answer = client.post(f"{PATH}/{bulk_action_id}/confirm", json={"total": PEOPLE + MORE})
        assert answer.status_code == 200, answer.text


def test_each_subscriber_is_erased_and_counted_once_over_many_kills(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=3, long=20)
    with shop.deployment.serving() as server:
        _begin(shop, server.url)
        server.kill()
    in_midst = int(_status(shop)[0] == "running")
    for _ in range(kills - 1):
        with shop.deployment.serving() as server:
            time.sleep(random.uniform(0.0, 0.3))
            server.kill()
        in_midst += _status(shop)[0] == "running"
    with shop.deployment.serving():
        until(lambda: _status(shop)[0] == "completed", timeout_s=120)

    total = PEOPLE + MORE
    [(told,)] = shop.query("SELECT COUNT(*) FROM core_events WHERE name = 'subscription.deleted'")
    [(left,)] = shop.query("SELECT COUNT(*) FROM core_subscribers")
    figure(
        f"kill -9 in the midst of a bulk action ({shop.database_url.partition(':')[0]})",
        f"{in_midst} of {kills} kills in time, {total} people: {told} erasures told of, {left} left",
        kills=kills,
        in_midst=in_midst,
        wrong=abs(total - told) + left,
    )
    assert _status(shop) == ("completed", total, total, 0)
    assert (told, left) == (total, 0)
    assert shop.query("SELECT * FROM core_bulk_targets") == []
