"""kill -9 of a served process while messages are on their way, and what is left of them.

`MSGSVC_FAULT_ROUNDS` sets how often the process is killed under load (5 by default).
"""

import json
import os
import random
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_core.settings import load_settings
from tests.faults import slow_outbox
from tests.process import Deployment, Server, install_module, until

pytestmark = pytest.mark.faults

ROUNDS = int(os.environ.get("MSGSVC_FAULT_ROUNDS", "5"))

#: Subscribers, and so chats in which messages are sent side by side.
PEOPLE = 8

#: Seconds after which a restarted process may take up what the killed one held.
LEASE_S = 1.0

#: Statuses that a message keeps.
FINAL = {"sent", "failed", "skipped", "unknown"}


@dataclass
class Shop:
    """A deployment with subscribers, and the means to look at it from outside."""

    deployment: Deployment
    key: str
    subscribers: list[str]
    #: Texts that were answered with 202, by message id.
    accepted: dict[str, str] = field(default_factory=dict)

    def send(self, url: str, number: int, client: httpx2.Client) -> str:
        """Sends a message; its text is unique. Raises `httpx2.HTTPError` when nobody answers."""
        text = f"message {number}"
        answer = client.post(
            f"{url}/v1/send",
            json={"subscriber_id": self.subscribers[number % PEOPLE], "text": text},
            headers={"Authorization": f"Bearer {self.key}"},
        )
        assert answer.status_code == 202, answer.text
        message_id = str(answer.json()["message_id"])
        self.accepted[message_id] = text
        return message_id

    @property
    def outbox(self) -> Counter[str]:
        """How often each text was shown."""
        path = self.deployment.folder / "outbox.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["text"] for line in lines)

    def statuses(self) -> dict[str, str]:
        """The status of every accepted message, as the database has it."""
        rows = self.query("SELECT message_id, status FROM core_messages")
        found: dict[str, str] = {row[0]: row[1] for row in rows}
        return {message_id: found.get(message_id, "lost") for message_id in self.accepted}

    def all_final(self) -> bool:
        return all(status in FINAL for status in self.statuses().values())

    def query(self, sql: str) -> list[tuple[str, ...]]:
        path = self.deployment.folder / "msgsvc.db"
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()


def configure(deployment: Deployment, delay_s: float) -> None:
    deployment.configure(
        'plugins = ["slow_outbox"]\n'
        "[channels.messenger_a]\n"
        'plugin = "slow_outbox"\n'
        f'outbox = "{deployment.folder / "outbox.jsonl"}"\n'
        f"delay_s = {delay_s}\n"
        "[limits]\nrequests_per_minute = 1000000\n"
        f"[jobs]\nlease_s = {LEASE_S}\nsweep_s = 0.1\n"
        '[log]\nlevel = "warning"\n'
    )


@pytest.fixture
async def shop(tmp_path: Path) -> Shop:
    """A shop whose messenger takes 50 ms for a call."""
    deployment = Deployment(
        tmp_path, [install_module(tmp_path / "installed", Path(slow_outbox.__file__))]
    )
    configure(deployment, delay_s=0.05)
    settings = load_settings(deployment.config, env={}, plugins=())
    service = Service(settings, extra_plugins=[("slow_outbox", slow_outbox)])
    await service.open_database()
    project = await service.projects.create("Shop")
    _, key = await service.projects.create_key(project.project_id, "test")
    async with service.db.transaction() as tx:
        subscribers = [
            await service.subscribers.ensure(
                tx,
                project.project_id,
                "messenger_a",
                ChannelUser(f"user-{number}", f"Person {number}"),
                f"chat-{number}",
                source="api",
            )
            for number in range(PEOPLE)
        ]
    await service.db.disconnect()
    return Shop(deployment, key, [subscriber.subscriber_id for subscriber in subscribers])


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=10) as made:
        yield made


def test_a_message_accepted_before_a_kill_is_delivered_after_the_restart(
    shop: Shop, client: httpx2.Client
) -> None:
    configure(shop.deployment, delay_s=2.0)
    with shop.deployment.serving() as server:
        first = shop.send(server.url, 0, client)
        until(lambda: shop.statuses()[first] == "sending")
        # The lane is busy with the first one, so this one is accepted and not begun.
        second = shop.send(server.url, 1, client)
        server.kill()
    before = shop.statuses()

    configure(shop.deployment, delay_s=0.05)
    with shop.deployment.serving():
        until(shop.all_final)

    assert before == {first: "sending", second: "queued"}
    assert shop.statuses() == {first: "unknown", second: "sent"}
    assert shop.outbox == {"message 1": 1}


def test_nothing_accepted_is_lost_or_shown_twice_over_many_kills(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = iter(range(1_000_000))
    for _ in range(ROUNDS):
        with shop.deployment.serving() as server:
            stream_until_killed(shop, server, numbers)
    with shop.deployment.serving():
        until(shop.all_final, timeout_s=60)

    shown = shop.outbox
    counts = Counter(shop.statuses().values())
    twice = [text for text, times in shown.items() if times > 1]
    unshown = [
        shop.accepted[message_id]
        for message_id, status in shop.statuses().items()
        if status == "sent" and not shown[shop.accepted[message_id]]
    ]
    with capsys.disabled():
        print(  # noqa: T201 - the figures are what one runs the long form for
            f"\n{ROUNDS} kills: {len(shop.accepted)} accepted, {dict(counts)}, "
            f"{len(twice)} shown twice, {len(unshown)} sent but not shown"
        )
    assert set(counts) <= {"sent", "unknown"}
    assert counts["sent"] > 0
    assert not twice
    assert not unshown
    # What a kill leaves in doubt is at most what was in the hands of the platform: a call a chat.
    assert counts["unknown"] <= ROUNDS * PEOPLE
    assert shop.query("PRAGMA integrity_check") == [("ok",)]


def stream_until_killed(shop: Shop, server: Server, numbers: Iterator[int]) -> None:
    """Sends from several threads until the process is gone, which is soon."""
    lock = threading.Lock()

    def send() -> None:
        with httpx2.Client(timeout=10) as client:
            while True:
                with lock:
                    number = next(numbers)
                try:
                    shop.send(server.url, number, client)
                except httpx2.HTTPError:
                    return

    with ThreadPoolExecutor(4) as threads:
        senders = [threads.submit(send) for _ in range(4)]
        time.sleep(random.uniform(0.3, 1.2))
        server.kill()
        for sender in senders:
            sender.result()


def test_sigterm_ends_with_exit_0_and_everything_known(shop: Shop, client: httpx2.Client) -> None:
    with shop.deployment.serving() as server:
        for number in range(40):
            shop.send(server.url, number, client)
        code = server.end()
    after_end = Counter(shop.statuses().values())

    with shop.deployment.serving():
        until(shop.all_final)

    assert code == 0
    assert "sending" not in after_end
    assert set(shop.statuses().values()) == {"sent"}
    assert shop.outbox == Counter(shop.accepted.values())
    assert shop.query("PRAGMA integrity_check") == [("ok",)]
