"""An upgrade while everything goes on: two processes of a release are replaced by today's, one by one."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msgsvc_devkit import until
from tests import phone
from tests.faults import receivers
from tests.faults.conftest import Figure, Rounds
from tests.faults.rollout import Balancer, Traffic, balancing, lines_of
from tests.process import Deployment, Server, install_module, start_server
from tests.upgrades import loading
from tests.upgrades.releases import CodeMissing, Installed, ReleaseDeployment, releases

pytestmark = pytest.mark.faults

CONFIGURATION = """\
plugins = ["phone", "sandbox", "telegram", "max", "auth", "billing", "broadcasts", "dashboard", "drip",
  "forms", "helpdesk", "oidc", "otp", "scheduling", "webhooks"]
[channels.messenger_a]
plugin = "phone"
outbox = "{outbox}"
[channels.town]
plugin = "sandbox"
[auth]
sessions_per_hour = 1000000
[webhooks]
allow_http = true
allow_cidrs = ["127.0.0.0/8"]
[limits]
requests_per_minute = 100000000
[log]
level = "warning"
"""

#: Seconds of traffic before, between and after the steps.
STEP_S, LONG_STEP_S = 1.5, 20.0

#: Seconds until everything that was queued is done.
PATIENCE_S, LONG_PATIENCE_S = 120.0, 1800.0


@dataclass(frozen=True, slots=True)
class Shop:
    """One configuration and one database for both: the release, and today's code."""

    folder: Path
    old: ReleaseDeployment
    new: Deployment

    @property
    def outbox(self) -> Path:
        return self.folder / "outbox.jsonl"

    def texts_shown(self) -> Counter[str]:
        """How often the messenger was told to show each text."""
        return Counter(line["text"] for line in lines_of(self.outbox) if line["call"] == "send")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    try:
        return releases()[-1].unpack(tmp_path_factory.mktemp("release") / "of")
    except CodeMissing as error:
        pytest.skip(f"the release's code {error}")


def open_shop(folder: Path, installed: Installed, url: str | None) -> Shop:
    """Each code has the messenger that was written for it."""
    install_module(folder / "old", installed.code / "tests" / "phone.py")
    install_module(folder / "new", Path(phone.__file__))
    old = installed.deployment(folder, [folder / "old"])
    old.configure(CONFIGURATION.format(outbox=folder / "outbox.jsonl"), url)
    return Shop(folder, old, Deployment(folder, [folder / "new"]))


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Server]:
    """Takes all webhooks, and writes them down."""
    command = [sys.executable, receivers.__file__, str(tmp_path / "webhooks.jsonl")]
    server = start_server(command, tmp_path / "receivers.log", {})
    yield server
    server.kill()


@asynccontextmanager
async def serving(balancer: Balancer, *servers: Server) -> AsyncIterator[list[Server]]:
    """The servers in the rotation; those that are in the list at the end are killed."""
    running = list(servers)
    try:
        for server in servers:
            await balancer.add(server)
        yield running
    finally:
        for server in running:
            server.kill()


async def events_since(balancer: Balancer, last: str) -> list[str]:
    """The ids of the events after that one, the newest first, by the pages of the API."""
    found: list[str] = []
    cursor = ""
    while True:
        page = await balancer.ask("GET", f"/v1/events?limit=100{cursor}")
        for event in page["data"]:
            if event["event_id"] == last:
                return found
            found.append(event["event_id"])
        cursor = f"&cursor={page['next_cursor']}"


async def until_delivered(shop: Shop, count: int, timeout_s: float) -> None:
    """Until the messenger was told so many messages."""

    async def delivered() -> bool:
        return await asyncio.to_thread(lambda: shop.texts_shown().total()) >= count

    await until(delivered, timeout_s=timeout_s)


async def test_two_processes_are_upgraded_one_by_one_under_load(
    tmp_path: Path,
    databases: dict[str, Any],
    installed: Installed,
    inbox: Server,
    rounds: Rounds,
    figure: Figure,
) -> None:
    if "postgresql" not in databases:
        pytest.skip("PostgreSQL does not answer")
    url = await databases["postgresql"].empty()
    subscribers, messages = rounds(short=(200, 1000), long=(10_000, 100_000))
    step_s, patience_s = rounds(short=(STEP_S, PATIENCE_S), long=(LONG_STEP_S, LONG_PATIENCE_S))
    shop = open_shop(tmp_path, installed, url)
    await asyncio.to_thread(shop.old.run, "migrate")
    loaded = json.loads(
        await asyncio.to_thread(
            shop.old.run_script, Path(loading.__file__), str(subscribers), str(messages)
        )
    )
    async with balancing(loaded["key"]) as balancer:
        first, second = [await asyncio.to_thread(shop.old.start) for _ in range(2)]
        async with serving(balancer, first, second) as running:
            await until_delivered(shop, messages, patience_s)
            [last] = (await balancer.ask("GET", "/v1/events?limit=1"))["data"]
            hook = {"url": f"{inbox.url}/ok/shop"}
            await balancer.ask("POST", "/v1/webhooks", hook)
            traffic = Traffic(balancer, loaded["subscribers"])
            async with traffic.going():
                await asyncio.sleep(step_s)
                began_s = time.monotonic()
                await asyncio.to_thread(shop.new.run, "migrate")
                migrated_s = time.monotonic() - began_s
                await asyncio.sleep(step_s)
                for old in (first, second):
                    await balancer.remove(old)
                    assert await asyncio.to_thread(old.end) == 0
                    running.remove(old)
                    running.append(await asyncio.to_thread(shop.new.start))
                    await balancer.add(running[-1])
                    await asyncio.sleep(step_s)
            await until_delivered(shop, messages + len(traffic.sent), patience_s)
            events = set(await events_since(balancer, last["event_id"]))

            def hooked() -> list[str]:
                return [
                    json.loads(line["body"])["data"]["event_id"]
                    for line in lines_of(tmp_path / "webhooks.jsonl")
                ]

            async def all_hooked() -> bool:
                return events <= set(await asyncio.to_thread(hooked))

            await until(all_hooked, timeout_s=patience_s)
            statuses = Counter[str]()
            for message_id in traffic.sent:
                answer = await balancer.ask("GET", f"/v1/messages/{message_id}")
                statuses[answer["status"] if answer else "no answer"] += 1
            received = Counter(hooked())
            for server in list(running):
                assert await asyncio.to_thread(server.end) == 0
                running.remove(server)
    shown = shop.texts_shown()
    twice = sum(times > 1 for times in shown.values())
    lost = sum(not shown[text] for text in traffic.sent.values())
    figure(
        "upgrade of two processes",
        f"{messages} messages of {subscribers} people; {balancer.answered} requests,"
        f" {len(balancer.failures)} failed, the slowest {balancer.slowest_s:.1f} s; migrated in"
        f" {migrated_s:.1f} s; {len(traffic.sent)} sent meanwhile, {lost} lost, {twice} twice;"
        f" {len(traffic.signed_in)} signed in; {len(events)} events, all with their webhook",
        messages=messages,
        subscribers=subscribers,
        requests=balancer.answered,
        failed=len(balancer.failures),
        slowest_s=balancer.slowest_s,
        migrated_s=migrated_s,
        sent=len(traffic.sent),
        lost=lost,
        twice=twice,
        signed_in=len(traffic.signed_in),
        events=len(events),
    )
    assert balancer.failures == []
    assert traffic.wrong == []
    assert (lost, twice) == (0, 0)
    assert dict(statuses) == {"sent": len(traffic.sent)}
    assert [event for event, times in received.items() if times > 1] == []
    assert len(set(traffic.signed_in)) == len(traffic.signed_in) > 0
    assert len(events) >= len(traffic.sent) + len(traffic.signed_in)
    log = (tmp_path / "serve.log").read_text()
    assert "Traceback" not in log, log
    await databases["postgresql"].give_back(url)
