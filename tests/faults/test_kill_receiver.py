"""The process that asks for a bot's updates is killed or ended, and what the next one makes of it."""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from msgsvc_core.config.settings import load_settings
from msgsvc_core.service import Service
from msgsvc_devkit import until as settled_when
from msgsvc_devkit.machine import has
from tests.faults import mailroom
from tests.faults.conftest import Figure, Rounds
from tests.process import Deployment, Server, install_module, until

pytestmark = pytest.mark.faults

#: Seconds within which another process asks after a kill -9 (issue of the channels), and after a
#: SIGTERM, which gives the bot back.
KILLED_S, ENDED_S = 15.0, 5.0

#: The same in the short form, beside other tests. A bot that a SIGTERM did not give back stays with its
#: process for a lease, which is longer there.
SHORT_KILLED_S, SHORT_ENDED_S, SHORT_LEASE_S = 60.0, 30.0, 60.0

#: Seconds of a lease, by default.
LEASE_S = 10.0

#: Seconds of updates before each fault.
UNDER_WAY_S = 1.0

#: Seconds between two updates.
ARRIVAL_S = 0.02


@dataclass
class Mailroom:
    """Two servers of one deployment, whose one bot is one's at a time."""

    deployment: Deployment
    database_url: str
    arrived: int = 0
    servers: list[Server] = field(default_factory=list)

    def start(self) -> None:
        self.servers.append(self.deployment.start())

    def polls(self) -> list[dict[str, Any]]:
        path = self.deployment.folder / "polls.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def receiver(self) -> Server:
        """The server that asks for updates now."""
        pid = self.polls()[-1]["pid"]
        return next(server for server in self.servers if server.process.pid == pid)

    def taken_over_s(self, since: float, before: int) -> float:
        """Seconds from `since` until another process than `before` asked."""
        until(lambda: self.polls()[-1]["pid"] != before, timeout_s=2 * SHORT_LEASE_S)
        first = next(
            poll["at"] for poll in self.polls() if poll["pid"] != before and poll["at"] > since
        )
        return float(first - since)

    @contextmanager
    def arriving(self) -> Iterator[None]:
        """Updates come one after the other while the block lasts."""
        stop = threading.Event()

        def arrive() -> None:
            while not stop.wait(ARRIVAL_S):
                with (self.deployment.folder / "arrivals").open("a") as file:
                    file.write(f"mail_{self.arrived}\n")
                self.arrived += 1

        thread = threading.Thread(target=arrive)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    async def effects(self) -> Counter[str]:
        connection = await asyncpg.connect(self.database_url)
        try:
            rows = await connection.fetch("SELECT payload FROM mailroom_effects")
        finally:
            await connection.close()
        return Counter(row["payload"] for row in rows)


@pytest.fixture
async def room(
    tmp_path: Path, databases: Any, rounds: Rounds, fault: str
) -> AsyncIterator[Mailroom]:
    if not has("postgres"):
        pytest.skip("PostgreSQL does not answer")
    installed = tmp_path / "installed"
    install_module(installed, Path(mailroom.__file__))
    deployment = Deployment(tmp_path, [installed])
    url = await databases["postgresql"].empty()
    lease_s = rounds(short=SHORT_LEASE_S if fault == "SIGTERM" else LEASE_S, long=LEASE_S)
    deployment.configure(
        'plugins = ["mailroom"]\n[channels.messenger_a]\nplugin = "mailroom"\n'
        f'folder = "{tmp_path}"\n[jobs]\nlease_s = {lease_s}\n[log]\nlevel = "warning"\n',
        url,
    )
    (tmp_path / "arrivals").touch()
    settings = load_settings(deployment.config, env={}, plugins=())
    await Service(settings, extra_plugins=[("mailroom", mailroom)]).migrate()
    connection = await asyncpg.connect(url)
    await connection.execute(mailroom.TABLE)
    await connection.close()
    made = Mailroom(deployment, url)
    made.start()
    made.start()
    until(lambda: bool(made.polls()))
    yield made
    for server in made.servers:
        server.kill()
    await databases["postgresql"].give_back(url)


@pytest.mark.parametrize("fault", ["kill -9", "SIGTERM"])
async def test_another_process_receives_soon_and_each_update_has_one_effect(
    room: Mailroom, rounds: Rounds, figure: Figure, fault: str
) -> None:
    count = rounds(short=2, long=10)
    worst_s = 0.0
    with room.arriving():
        for _ in range(count):
            await asyncio.sleep(UNDER_WAY_S)
            receiver = room.receiver()
            began = time.monotonic()
            receiver.kill() if fault == "kill -9" else receiver.end()
            room.servers.remove(receiver)
            worst_s = max(worst_s, room.taken_over_s(began, receiver.process.pid))
            room.start()
    last = f"mail_{room.arrived - 1}"

    async def all_arrived() -> bool:
        return last in await room.effects()

    # What is missing then is counted below.
    with suppress(TimeoutError):
        await settled_when(all_arrived, interval_s=0.1)
    effects = await room.effects()

    lost = room.arrived - len(effects)
    twice = sum(number > 1 for number in effects.values())
    figure(
        f"{fault} of the process that polls",
        f"{count} times, taken over in at most {worst_s:.1f} s; {room.arrived} updates,"
        f" {lost} lost, {twice} with two effects",
        faults=count,
        worst_s=round(worst_s, 2),
        updates=room.arrived,
        lost=lost,
        twice=twice,
    )
    assert lost == twice == 0
    if fault == "kill -9":
        assert worst_s <= rounds(short=SHORT_KILLED_S, long=KILLED_S)
    else:
        assert worst_s <= rounds(short=SHORT_ENDED_S, long=ENDED_S)
