"""kill -9 of a served process while one-time codes go from one channel of a route to the next."""

import json
import random
import time
from collections import defaultdict
from pathlib import Path

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service
from msgsvc_devkit.databases import PostgresDatabases, SQLiteDatabases
from tests.faults import slow_outbox
from tests.faults.conftest import Figure, Rounds
from tests.faults.shop import HUNG_S, PEOPLE, Shop, open_shop
from tests.process import until

pytestmark = pytest.mark.faults

#: The channels of the route after that of the shop.
FURTHER = ("messenger_b", "messenger_c")

#: Seconds between two steps, the fewest that a route may wait.
WAIT_S = 5


@pytest.fixture
async def shop(tmp_path: Path, backend: SQLiteDatabases | PostgresDatabases) -> Shop:
    made = await open_shop(tmp_path, await backend.empty())
    made.plugins = [*made.plugins, "otp"]
    made.configure()
    with made.deployment.config.open("a", encoding="utf-8") as file:
        for name in FURTHER:
            outbox = made.deployment.folder / "outbox.jsonl"
            file.write(
                f'[channels.{name}]\nplugin = "slow_outbox"\noutbox = "{outbox}"\ndelay_s = 0.02\n'
            )
    made.deployment.run("migrate")
    settings = load_settings(made.deployment.config, env={}, plugins=())
    service = Service(settings, extra_plugins=[("slow_outbox", slow_outbox)])
    await service.open_database()
    async with service.db.transaction() as tx:
        project_id = await tx.fetch_val("SELECT project_id FROM core_projects")
        for number in range(PEOPLE):
            user = ChannelUser(f"user-{number}", f"Person {number}")
            for name in ("messenger_a", *FURTHER):
                await service.subscribers.ensure(
                    tx,
                    project_id,
                    name,
                    user,
                    f"{name}-{number}",
                    source="api",
                    external_id=f"person-{number}",
                )
    await service.db.disconnect()
    return made


def _ask(shop: Shop, url: str) -> None:
    """Has everybody sent a code by a route."""
    headers = {"Authorization": f"Bearer {shop.key}"}
    steps = [{"channel": name, "within_seconds": WAIT_S} for name in ("messenger_a", *FURTHER)]
    with httpx2.Client(base_url=url, headers=headers, timeout=HUNG_S) as client:
        made = client.post("/v1/routes", json={"name": "Codes", "steps": steps})
        route_id = made.json()["route_id"]
        for number in range(PEOPLE):
            body = {"external_id": f"person-{number}", "route_id": route_id}
            answer = client.post("/v1/otp/send", json=body)
            assert answer.status_code == 202, answer.text


def _is_over(shop: Shop) -> bool:
    told = shop.query("SELECT COUNT(*) FROM otp_recipients WHERE sent_at_ms IS NOT NULL")
    return told == [(PEOPLE * 3,)]


def test_each_code_goes_to_every_step_in_order_over_many_kills(
    shop: Shop, rounds: Rounds, figure: Figure
) -> None:
    kills = rounds(short=5, long=25)
    with shop.deployment.serving() as server:
        _ask(shop, server.url)
        server.kill()
    in_midst, until_s = 0, time.monotonic() + 2 * WAIT_S
    for number in range(kills - 1):
        in_midst += not _is_over(shop)
        with shop.deployment.serving() as server:
            # The steps come all at once, after their time.
            left_s = until_s - time.monotonic()
            time.sleep(random.uniform(0.0, max(0.3, left_s / (kills - 1 - number))))
            server.kill()
    in_midst += not _is_over(shop)
    with shop.deployment.serving():
        until(lambda: _is_over(shop), timeout_s=120)

    shown: dict[str, list[str]] = defaultdict(list)
    codes: dict[str, set[str]] = defaultdict(set)
    for line in (shop.deployment.folder / "outbox.jsonl").read_text().splitlines():
        said = json.loads(line)
        name, _, person = said["chat_id"].partition("-")
        shown[person].append(name)
        codes[person].add(said["text"])
    steps = shop.query("SELECT otp_id, step FROM otp_recipients ORDER BY otp_id, step")
    skipped = sum(len(set(names)) != 3 for names in shown.values())
    disordered = sum(names != sorted(names) for names in shown.values())
    several = sum(len(texts) != 1 for texts in codes.values())
    figure(
        f"kill -9 while codes go by a route ({shop.database_url.partition(':')[0]})",
        f"{in_midst} of {kills} kills in time, {PEOPLE} codes: {skipped} skipped a step",
        kills=kills,
        in_midst=in_midst,
        wrong=skipped + disordered + several,
    )
    # A call that was under way is made again, never a step.
    assert len(shown) == PEOPLE
    assert (skipped, disordered, several) == (0, 0, 0)
    assert [step for _, step in steps] == [0, 1, 2] * PEOPLE
    assert shop.query("SELECT * FROM otp_codes WHERE sealed IS NOT NULL") == []
    assert shop.query("SELECT * FROM core_jobs WHERE name = 'otp.step'") == []
