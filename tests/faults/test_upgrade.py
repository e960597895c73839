"""An upgrade while everything goes on: two processes of a release are replaced by today's, one by one."""

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
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
delay_s = {delay_s}
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

#: Subscribers that there are before, messages sent to them, and further ones written as if they had been.
HISTORY, LONG_HISTORY = (200, 500, 500), (10_000, 2_000, 98_000)

#: Messages to one chat that are sent as the service of a file is stopped, and seconds that each takes.
QUEUED, CALL_S = 200, 0.02

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

    @property
    def log(self) -> str:
        """Of all processes, old and new."""
        return (self.folder / "serve.log").read_text()

    def texts_shown(self) -> Counter[str]:
        """How often the messenger was told to show each text."""
        return Counter(line["text"] for line in lines_of(self.outbox) if line["call"] == "send")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    try:
        return releases()[-1].unpack(tmp_path_factory.mktemp("release") / "of")
    except CodeMissing as error:
        pytest.skip(f"the release's code {error}")


def open_shop(
    folder: Path, installed: Installed, url: str | None = None, delay_s: float = 0.0
) -> Shop:
    """Each code has the messenger that was written for it; a call of that takes `delay_s`."""
    install_module(folder / "old", installed.code / "tests" / "phone.py")
    install_module(folder / "new", Path(phone.__file__))
    old = installed.deployment(folder, [folder / "old"])
    configuration = CONFIGURATION.format(outbox=folder / "outbox.jsonl", delay_s=delay_s)
    old.configure(configuration, url)
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


async def load(shop: Shop, what: str, *counts: int) -> str:
    """Runs `tests/upgrades/loading.py` with the release's code."""
    script = Path(loading.__file__)
    return await asyncio.to_thread(shop.old.run_script, script, what, *map(str, counts))


async def until_delivered(shop: Shop, count: int, timeout_s: float) -> None:
    """Until the messenger was told so many messages."""

    async def delivered() -> bool:
        return await asyncio.to_thread(lambda: shop.texts_shown().total()) >= count

    await until(delivered, timeout_s=timeout_s)


@dataclass(slots=True)
class Rollout:
    """What was done while two processes were replaced, and what became of it."""

    shop: Shop
    balancer: Balancer
    traffic: Traffic
    last_event_before: str
    migrated_s: float = 0.0
    events: set[str] = field(default_factory=set)
    statuses: Counter[str] = field(default_factory=Counter)
    #: How often each event came to the webhook.
    received: Counter[str] = field(default_factory=Counter)

    async def settle(self, timeout_s: float) -> None:
        """Returns when every message has an outcome, and every event has come to the webhook."""

        async def ended() -> bool:
            self.statuses.clear()
            for message_id in self.traffic.sent:
                answer = await self.balancer.ask("GET", f"/v1/messages/{message_id}")
                self.statuses[answer["status"] if answer else "no answer"] += 1
            return not {"queued", "sending"} & set(self.statuses)

        async def received() -> bool:
            self.events = set(await events_since(self.balancer, self.last_event_before))
            self.received = await asyncio.to_thread(self._received)
            return self.events <= set(self.received)

        await until(ended, timeout_s=timeout_s)
        await until(received, timeout_s=timeout_s)

    def _received(self) -> Counter[str]:
        lines = lines_of(self.shop.folder / "webhooks.jsonl")
        return Counter(json.loads(line["body"])["data"]["event_id"] for line in lines)

    @property
    def numbers(self) -> dict[str, float]:
        shown = self.shop.texts_shown()
        return {
            "requests": self.balancer.answered,
            "failed": len(self.balancer.failures),
            "slowest_s": self.balancer.slowest_s,
            "migrated_s": self.migrated_s,
            "sent": len(self.traffic.sent),
            "lost": sum(not shown[text] for text in self.traffic.sent.values()),
            "twice": sum(times > 1 for times in shown.values()),
            "signed_in": len(self.traffic.signed_in),
            "events": len(self.events),
        }

    def __str__(self) -> str:
        numbers = self.numbers
        return (
            f"{numbers['requests']} requests, {numbers['failed']} failed, the slowest"
            f" {self.balancer.slowest_s:.1f} s; migrated in {self.migrated_s:.1f} s;"
            f" {numbers['sent']} sent meanwhile, {numbers['lost']} lost, {numbers['twice']} twice;"
            f" {numbers['signed_in']} signed in; {numbers['events']} events, all with their webhook"
        )

    def check(self) -> None:
        numbers, signed_in = self.numbers, self.traffic.signed_in
        assert self.balancer.failures == [], self.shop.log
        assert self.traffic.wrong == []
        assert (numbers["lost"], numbers["twice"]) == (0, 0)
        assert dict(self.statuses) == {"sent": len(self.traffic.sent)}
        assert self.events <= set(self.received)
        assert [event for event, times in self.received.items() if times > 1] == []
        assert len(set(signed_in)) == len(signed_in) > 0
        assert len(self.events) >= len(self.traffic.sent) + len(signed_in)


async def rolled_out(
    shop: Shop,
    balancer: Balancer,
    running: list[Server],
    subscribers: list[str],
    inbox: Server,
    step_s: float,
) -> Rollout:
    """Replaces the running processes one by one, as docs/install.md says, with traffic all the time."""
    [last] = (await balancer.ask("GET", "/v1/events?limit=1"))["data"]
    await balancer.ask("POST", "/v1/webhooks", {"url": f"{inbox.url}/ok/shop"})
    traffic = Traffic(balancer, subscribers)
    made = Rollout(shop, balancer, traffic, last["event_id"])
    async with traffic.going():
        await asyncio.sleep(step_s)
        began_s = time.monotonic()
        await asyncio.to_thread(shop.new.run, "migrate", "--phase", "expand")
        made.migrated_s = time.monotonic() - began_s
        await asyncio.sleep(step_s)
        for old in list(running):
            await balancer.remove(old)
            assert await asyncio.to_thread(old.end) == 0
            running.remove(old)
            running.append(await asyncio.to_thread(shop.new.start))
            await balancer.add(running[-1])
            await asyncio.sleep(step_s)
        began_s = time.monotonic()
        await asyncio.to_thread(shop.new.run, "migrate", "--phase", "contract")
        made.migrated_s += time.monotonic() - began_s
        await asyncio.sleep(step_s)
    return made


@pytest.mark.timeout(600)  # it starts four processes of two releases, and waits for all their work
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
    subscribers, messages, past = rounds(short=HISTORY, long=LONG_HISTORY)
    patience_s = rounds(short=PATIENCE_S, long=LONG_PATIENCE_S)
    shop = open_shop(tmp_path, installed, url)
    await asyncio.to_thread(shop.old.run, "migrate")
    loaded = json.loads(await load(shop, "begin", subscribers, messages))
    old = [await asyncio.to_thread(shop.old.start) for _ in range(2)]
    async with balancing(loaded["key"]) as balancer, serving(balancer, *old) as running:
        await until_delivered(shop, messages, patience_s)
        await load(shop, "past", past)
        step_s = rounds(short=STEP_S, long=LONG_STEP_S)
        found = await rolled_out(shop, balancer, running, loaded["subscribers"], inbox, step_s)
        await found.settle(patience_s)
        for server in list(running):
            assert await asyncio.to_thread(server.end) == 0
            running.remove(server)
    figure(
        "upgrade of two processes",
        f"{messages + past} messages of {subscribers} people; {found}",
        messages=messages + past,
        subscribers=subscribers,
        **found.numbers,
    )
    found.check()
    assert "Traceback" not in shop.log
    await databases["postgresql"].give_back(url)


async def test_a_file_is_upgraded_between_a_stop_and_a_start(
    tmp_path: Path, installed: Installed, rounds: Rounds, figure: Figure
) -> None:
    subscribers, messages, past = rounds(short=HISTORY, long=LONG_HISTORY)
    patience_s = rounds(short=PATIENCE_S, long=LONG_PATIENCE_S)
    shop = open_shop(tmp_path, installed, delay_s=CALL_S)
    await asyncio.to_thread(shop.old.run, "migrate")
    loaded = json.loads(await load(shop, "begin", subscribers, messages))
    old = await asyncio.to_thread(shop.old.start)
    async with balancing(loaded["key"]) as balancer, serving(balancer, old) as running:
        await until_delivered(shop, 100, patience_s)
        await load(shop, "past", past)
        # One after another: most are still queued when it stops.
        for number in range(QUEUED):
            body = {"subscriber_id": loaded["subscribers"][0], "text": f"queued {number}"}
            await balancer.ask("POST", "/v1/send", body)
        began_s = time.monotonic()
        assert await asyncio.to_thread(old.end) == 0
        stopped_s = time.monotonic()
        running.remove(old)
        queued = QUEUED - sum(text.startswith("queued") for text in shop.texts_shown())
        await asyncio.to_thread(shop.new.run, "migrate")
        migrated_s = time.monotonic()
        running.append(await asyncio.to_thread(shop.new.start))
        balancer.upstreams.clear()
        await balancer.add(running[0])
        started_s = time.monotonic()
        await until_delivered(shop, messages + QUEUED, patience_s)
        listed = await statuses_of(balancer, loaded["subscribers"][0])
        assert await asyncio.to_thread(running.pop().end) == 0
    shown = shop.texts_shown()
    expected = [f"loaded {number}" for number in range(messages)]
    expected += [f"queued {number}" for number in range(QUEUED)]
    lost = sum(not shown[text] for text in expected)
    twice = sum(times > 1 for times in shown.values())
    figure(
        "upgrade of a SQLite file",
        f"{messages + past} messages of {subscribers} people, {queued} queued: stopped in"
        f" {stopped_s - began_s:.1f} s, migrated in {migrated_s - stopped_s:.1f} s, ready"
        f" {started_s - migrated_s:.1f} s later; {lost} lost, {twice} twice",
        messages=messages + past,
        queued=queued,
        stop_s=stopped_s - began_s,
        migrate_s=migrated_s - stopped_s,
        start_s=started_s - migrated_s,
        lost=lost,
        twice=twice,
    )
    assert queued > 0
    assert (lost, twice) == (0, 0)
    assert balancer.failures == []
    assert listed == {"sent": 100}
    assert "Traceback" not in shop.log


async def statuses_of(balancer: Balancer, subscriber_id: str) -> Counter[str]:
    """Of a person's latest hundred messages, once none is on its way."""
    path = f"/v1/messages?limit=100&subscriber_id={subscriber_id}"

    async def ended() -> Counter[str] | None:
        found = Counter(each["status"] for each in (await balancer.ask("GET", path))["data"])
        return None if {"queued", "sending"} & set(found) else found

    found = await until(ended, timeout_s=PATIENCE_S)
    assert found is not None
    return found
