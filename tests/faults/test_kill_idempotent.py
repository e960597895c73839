"""One Idempotency-Key, 50 requests in flight, and kill -9 before, in and after the effect."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults import dying_effect
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import HUNG_S, PEOPLE, Shop, open_shop
from tests.process import Server, until

pytestmark = pytest.mark.faults

#: Requests of one key at once (the issue's number).
IN_FLIGHT = 50

#: Milliseconds in which a request of this load is answered; a kill falls somewhere among them.
BUSY_MS = 120


@pytest.fixture
async def shop(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> AsyncIterator[Shop]:
    url = await backend.empty()
    yield await open_shop(tmp_path, url, [Path(dying_effect.__file__)])
    await backend.give_back(url)


@dataclass
class Farm:
    """The API processes of a shop: one on SQLite, two on PostgreSQL."""

    shop: Shop
    servers: list[Server] = field(default_factory=list)

    @property
    def urls(self) -> list[str]:
        return [server.url for server in self.servers]

    def has_lost_one(self) -> bool:
        return any(server.process.poll() is not None for server in self.servers)

    def complete(self) -> None:
        """Starts anew whoever has died."""
        alive = [server for server in self.servers if server.process.poll() is None]
        for server in self.servers:
            if server not in alive:
                server.kill()  # only gathers what is left of the process
        self.servers = alive
        while len(self.servers) < (1 if self.shop.database_url.startswith("sqlite") else 2):
            self.servers.append(self.shop.deployment.start())

    def end(self) -> None:
        for server in self.servers:
            server.kill()


@pytest.fixture
def farm(shop: Shop) -> Iterator[Farm]:
    made = Farm(shop)
    try:
        made.complete()
        yield made
    finally:
        made.end()


@dataclass
class Tally:
    """What requests were answered, over all keys."""

    keys: int = 0
    answers: Counter[str] = field(default_factory=Counter)

    @property
    def text(self) -> str:
        return ", ".join(f"{times} {name}" for name, times in sorted(self.answers.items()))


def check_key(
    farm: Farm, tally: Tally, path: str, body: dict[str, Any], kill_at: float | None
) -> None:
    """One key: 50 requests with a kill among them, then 50 more when all servers are back."""
    key = f"key-{body['text'].replace(' ', '-')}"
    ids: set[str] = set()
    asyncio.run(_race(farm, tally, key, path, body, kill_at, ids))
    until(farm.has_lost_one)
    farm.complete()
    after = Tally()
    asyncio.run(_race(farm, after, key, path, body, None, ids))
    tally.keys += 1
    messages = farm.shop.query(
        f"SELECT COUNT(*) FROM core_messages WHERE content LIKE '%\"{body['text']}\"%'"
    )

    assert messages == [(1,)]
    assert len(ids) == 1
    assert set(after.answers) <= {"fresh", "replayed"}
    assert after.answers["fresh"] <= 1
    farm.shop.accepted[ids.pop()] = body["text"]


async def _race(
    farm: Farm,
    tally: Tally,
    key: str,
    path: str,
    body: dict[str, Any],
    kill_at: float | None,
    ids: set[str],
) -> None:
    """Sends the same request 50 times at once, evenly to all servers; keeps the ids in `ids`."""
    headers = {"Authorization": f"Bearer {farm.shop.key}", "Idempotency-Key": key}
    limits = httpx2.Limits(max_connections=IN_FLIGHT)
    async with httpx2.AsyncClient(timeout=HUNG_S, headers=headers, limits=limits) as client:

        async def send(number: int) -> str:
            url = farm.urls[number % len(farm.urls)]
            try:
                answer = await client.post(f"{url}{path}", json=body)
            except httpx2.TimeoutException:
                raise
            except httpx2.TransportError:
                return "cut off"
            if answer.status_code == 425:
                return "425"
            assert answer.status_code == 202, answer.text
            ids.add(answer.json()["message_id"])
            return "replayed" if "Idempotent-Replayed" in answer.headers else "fresh"

        async def kill() -> None:
            if kill_at is not None:
                await asyncio.sleep(kill_at)  # a kill at any moment is the fault itself
                random.choice(farm.servers).process.kill()

        answers, _ = await asyncio.gather(
            asyncio.gather(*(send(number) for number in range(IN_FLIGHT))), kill()
        )
    tally.answers.update(answers)


def new_body(shop: Shop, **fields: str) -> dict[str, Any]:
    text = shop.next_text()
    subscriber_id = shop.subscribers[int(text.rpartition(" ")[2]) % PEOPLE]
    return {"subscriber_id": subscriber_id, "text": text, **fields}


def test_a_key_has_one_effect_whenever_its_server_is_killed(
    farm: Farm, tmp_path: Path, rounds: Rounds, figure: Figure
) -> None:
    shop, tally = farm.shop, Tally()
    for number in range(rounds(short=1, long=10)):
        for when in ("before", "in", "after"):
            died = tmp_path / f"{when}-{number}"
            body = new_body(shop, die=when, died=str(died))
            check_key(farm, tally, "/v1/fault/effect", body, None)
            assert died.exists()
    for _ in range(rounds(short=2, long=30)):
        body = new_body(shop)
        check_key(farm, tally, "/v1/send", body, random.uniform(0, BUSY_MS) / 1000)
    until(shop.all_final, timeout_s=60)

    ledger = shop.ledger()
    figure(
        f"one Idempotency-Key, kill -9, {'SQLite' if len(farm.urls) == 1 else 'PostgreSQL'}",
        f"{tally.keys} keys, {IN_FLIGHT} in flight, 1 effect each; around the kill {tally.text};"
        f" then {ledger.text}",
        keys=tally.keys,
        **ledger.numbers,
    )
    ledger.check()
