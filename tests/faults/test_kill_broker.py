"""FLUSHALL and kill -9 of the Redis that wakes workers, while they are under load."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
import redis

from msgsvc_devkit.machine import has
from tests.faults.conftest import Figure, Rounds
from tests.faults.redis_server import running_redis
from tests.faults.workshop import workshop
from tests.ports import free_ports

pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server"),
]

#: Seconds within which work must go on (issue of the engine: 60).
RESUMED_S = 60.0

#: Seconds of load before, between and after the faults.
LOAD_S = 1.5


async def test_work_goes_on_without_the_broker_and_none_is_lost(
    tmp_path: Path, databases: Any, rounds: Rounds, figure: Figure
) -> None:
    if not has("postgres"):
        pytest.skip("PostgreSQL does not answer")
    count = rounds(short=2, long=10)
    port = free_ports()
    url = f"redis://127.0.0.1:{port}/0"
    settings = {"runner": "dramatiq", "broker_url": url}
    waits_s: dict[str, list[float]] = {"emptied": [], "away": [], "back": []}
    async with workshop(tmp_path, databases["postgresql"], settings) as shop:

        async def until_done() -> float:
            """Seconds until what was added until now is done, with more being added."""
            return await shop.until_done(shop.service.clock.now_ms(), RESUMED_S)

        with running_redis(port, tmp_path):
            shop.start_worker()
            shop.start_worker()
        async with shop.under_load():
            for _ in range(count):
                with running_redis(port, tmp_path):
                    waits_s["back"].append(await until_done())
                    await asyncio.sleep(LOAD_S)
                    with redis.Redis.from_url(url) as client:
                        client.flushall()
                    waits_s["emptied"].append(await until_done())
                    await asyncio.sleep(LOAD_S)
                # Killed now, with what was in it.
                waits_s["away"].append(await until_done())
                await asyncio.sleep(LOAD_S)
        await until_done()
        rows = await shop.query("SELECT MAX(done_at_ms - created_at_ms) AS worst FROM effects")
        found = await shop.findings()

    longest_s = rows[0]["worst"] / 1000
    worst = ", ".join(f"{name} {max(times):.1f} s" for name, times in waits_s.items())
    figure(
        "FLUSHALL and kill -9 of Redis",
        f"{count} of each, all done within ({worst}), a job waited {longest_s:.1f} s at most; {found}",
        rounds=count,
        worst_s=longest_s,
        lost=found.jobs_lost + found.messages["lost"],
    )
    assert longest_s <= RESUMED_S
    assert (found.jobs_lost, found.jobs_twice, found.shown_twice) == (0, 0, 0)
    assert set(found.messages) == {"sent"}
