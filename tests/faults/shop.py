"""A shop to be killed: a deployment with subscribers and clients, and what is left of it after."""

import asyncio
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import httpx2

from msgsvc_core.channels import ChannelUser
from msgsvc_core.config.settings import load_settings
from msgsvc_core.db.database import sqlite_path
from msgsvc_core.service import Service
from msgsvc_devkit.deadlines import patient
from tests.faults import slow_outbox
from tests.process import Deployment, install_module

#: Subscribers, and so chats in which messages are sent side by side.
PEOPLE = 32

#: Seconds after which a restarted process may take up what a killed one held.
LEASE_S = 1.0

#: Seconds of a call of the messenger, unless a test says otherwise.
DELAY_S = 0.02

#: Threads that send at once.
SENDERS = 4

#: Seconds after which an unanswered request counts as hung.
HUNG_S = patient(30.0)

#: Statuses that a message keeps.
FINAL = {"sent", "failed", "skipped", "unknown"}


@dataclass(frozen=True, slots=True)
class Ledger:
    """What became of everything that was accepted."""

    accepted: int
    #: How many messages have each status; `lost` are those of which the database knows nothing.
    statuses: Counter[str]
    #: Texts that were shown more than once.
    shown_twice: list[str]
    #: Texts whose message is `sent`, and that nobody was shown.
    not_shown: list[str]

    @property
    def text(self) -> str:
        return (
            f"{self.accepted} accepted, {self.numbers['lost']} lost, "
            f"{len(self.shown_twice)} shown twice, {self.statuses['unknown']} marked unknown"
        )

    @property
    def numbers(self) -> dict[str, int]:
        return {
            "accepted": self.accepted,
            "lost": self.statuses["lost"] + len(self.not_shown),
            "shown_twice": len(self.shown_twice),
            "unknown": self.statuses["unknown"],
        }

    def check(self) -> None:
        """What holds after every fault: all is sent or marked, and nothing was shown twice."""
        assert set(self.statuses) <= {"sent", "unknown"}
        assert self.statuses["sent"] > 0
        assert not self.shown_twice
        assert not self.not_shown


@dataclass
class Shop:
    """A deployment with subscribers, and the means to look at it from outside."""

    deployment: Deployment
    database_url: str
    key: str
    subscribers: Sequence[str]
    plugins: Sequence[str]
    #: Texts that were answered with 202, by message id.
    accepted: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def configure(self, delay_s: float = DELAY_S, min_in_flight: int = 8) -> None:
        """Writes the configuration: a messenger whose calls take `delay_s`, and how many are made at once
        before it has answered any."""
        configure(self.deployment, self.database_url, self.plugins, delay_s, min_in_flight)

    def next_text(self) -> str:
        """A text that no other message has."""
        return f"message {next(self._numbers)}"

    def post(
        self, client: httpx2.Client, url: str, text: str, key: str | None = None
    ) -> httpx2.Response:
        """`POST /v1/send`, with an Idempotency-Key if there is one; keeps what is accepted."""
        number = int(text.rpartition(" ")[2])
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = client.post(
            f"{url}/v1/send",
            json={"subscriber_id": self.subscribers[number % PEOPLE], "text": text},
            headers=headers if key is None else {**headers, "Idempotency-Key": key},
        )
        if answer.status_code == 202:
            self.accepted[str(answer.json()["message_id"])] = text
        return answer

    def send(self, client: httpx2.Client, url: str) -> str:
        """Sends a message that must be accepted; returns its id. Raises `httpx2.HTTPError`."""
        answer = self.post(client, url, self.next_text())
        assert answer.status_code == 202, answer.text
        return str(answer.json()["message_id"])

    @contextmanager
    def streaming(self, url: str) -> Iterator[None]:
        """Sends from several threads during the block, or until nobody answers any more."""
        stop = threading.Event()

        def stream() -> None:
            with httpx2.Client(timeout=HUNG_S) as client:
                while not stop.is_set():
                    try:
                        self.send(client, url)
                    except httpx2.TimeoutException:
                        raise
                    except httpx2.HTTPError:
                        return

        with in_threads([stream] * SENDERS, stop):
            yield

    @property
    def outbox(self) -> Counter[str]:
        """How often each text was shown."""
        path = self.deployment.folder / "outbox.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return Counter(json.loads(line)["text"] for line in lines)

    def statuses(self) -> dict[str, str]:
        """The status of every accepted message, as the database has it."""
        found = dict(self.query("SELECT message_id, status FROM core_messages"))
        return {message_id: found.get(message_id, "lost") for message_id in self.accepted}

    def all_final(self) -> bool:
        return all(status in FINAL for status in self.statuses().values())

    def ledger(self) -> Ledger:
        statuses, shown = self.statuses(), self.outbox
        return Ledger(
            len(self.accepted),
            Counter(statuses.values()),
            [text for text, times in shown.items() if times > 1],
            [
                self.accepted[message_id]
                for message_id, status in statuses.items()
                if status == "sent" and not shown[self.accepted[message_id]]
            ],
        )

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows, by a connection of its own."""
        if not self.database_url.startswith("sqlite"):
            return asyncio.run(query_postgres(self.database_url, sql))
        path = sqlite_path(self.database_url)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()


async def open_shop(
    folder: Path, database_url: str | None = None, plugins: Sequence[Path] = ()
) -> Shop:
    """A shop in `folder`, on a SQLite file there or an empty PostgreSQL database.

    `plugins` are modules that its server loads beside the messenger.
    """
    database_url = database_url or f"sqlite:///{folder / 'msgsvc.db'}"
    modules = [Path(slow_outbox.__file__), *plugins]
    packages = [install_module(folder / "installed", module) for module in modules]
    deployment = Deployment(folder, packages[:1])
    names = [module.stem for module in modules]
    configure(deployment, database_url, names, DELAY_S)
    settings = load_settings(deployment.config, env={}, plugins=())
    service = Service(settings, extra_plugins=[("slow_outbox", slow_outbox)])
    await service.migrate()
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
    ids = [subscriber.subscriber_id for subscriber in subscribers]
    return Shop(deployment, database_url, key, ids, names)


def configure(
    deployment: Deployment,
    database_url: str,
    plugins: Sequence[str],
    delay_s: float,
    min_in_flight: int = 8,
) -> None:
    deployment.configure(
        f"plugins = {json.dumps(list(plugins))}\n"
        "[channels.messenger_a]\n"
        'plugin = "slow_outbox"\n'
        f'outbox = "{deployment.folder / "outbox.jsonl"}"\n'
        f"delay_s = {delay_s}\n"
        "[limits]\nrequests_per_minute = 1000000\n"
        f"[jobs]\nlease_s = {LEASE_S}\nsweep_s = 0.1\nmin_in_flight = {min_in_flight}\n"
        '[log]\nlevel = "warning"\n',
        database_url,
    )


@contextmanager
def in_threads(works: Sequence[Callable[[], None]], stop: threading.Event) -> Iterator[None]:
    """Runs `works` beside the block, sets `stop` after it, and raises what one of them raised."""
    with ThreadPoolExecutor(len(works)) as threads:
        futures = [threads.submit(work) for work in works]
        try:
            yield
        finally:
            # Also when the block failed: the pool waits for its threads, and one that failed may
            # be the reason.
            stop.set()
            for future in futures:
                future.result()


async def query_postgres(url: str, sql: str) -> list[tuple[Any, ...]]:
    connection = await asyncpg.connect(url)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()
