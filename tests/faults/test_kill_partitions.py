"""kill -9 of purges that partition a table and drop its partitions, two at once, while messages are sent: no
send fails, no kept message is lost, and the last run finishes what the others left."""

import asyncio
import random
import signal
import sys
from typing import Any

import pytest

from msgsvc_core.db import CORE_MIGRATIONS, Database
from msgsvc_core.db.partitions import partitioned_table
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.messages.retention import partition_rule
from tests.faults.conftest import Figure, Rounds

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("backend", ["postgresql"], indirect=True),
]

DAYS = 8
HOUR_MS = 3_600_000
START_MS = 1_800_000_000_000

#: Purges at a time, and kills itself before a statement, or while the server executes it.
DYING = """
import asyncio, os, signal, sys
from prometheus_client import CollectorRegistry
from msgsvc_core.db import Database
from msgsvc_core.db.partitions import PartitionedTable
from msgsvc_core.jobs.partitioning import Partitioning
from msgsvc_core.messages.retention import MessagePurge
from msgsvc_core.telemetry.partition_metrics import PartitionMetrics
from msgsvc_devkit.contexts import JobInTest

url, now_ms, statements, how = sys.argv[1:]
left = int(statements)

class Clock:
    def now_ms(self):
        return int(now_ms)

class Dying:
    def __init__(self, raw):
        self.raw = raw

    def __getattr__(self, name):
        return getattr(self.raw, name)

    async def execute(self, sql, *values):
        global left
        left -= 1
        if left == 0 and how == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        if left == 0:
            asyncio.get_running_loop().call_later(0.002, os.kill, os.getpid(), signal.SIGKILL)
        return await self.raw.execute(sql, *values)

real = PartitionedTable.__init__
PartitionedTable.__init__ = lambda self, raw, rule: real(self, Dying(raw), rule)

async def main():
    db = Database(url, pool_size=2, session="msgsvc killed")
    await db.connect()
    partitioning = Partitioning(clock=Clock(), db=db, min_mib=1,
                                metrics=PartitionMetrics(CollectorRegistry()))
    purge = MessagePurge(clock=Clock(), message_days=8, partitioning=partitioning)
    await purge.purge(JobInTest(db))
    await db.disconnect()

asyncio.run(main())
"""


class Sender:
    """Sends one message after another, at a time that the test moves on."""

    def __init__(self, db: Database) -> None:
        self.db, self.now_ms = db, START_MS
        self.sent = list[str]()
        self.is_over = False

    async def send(self) -> None:
        while not self.is_over:
            self.now_ms += 1
            message_id = earliest_id("msg", self.now_ms)
            row = {
                "project_id": "prj_1",
                "message_id": message_id,
                "subscriber_id": "sub_1",
                "channel": "messenger_a",
                "status": "sent",
                "content": "{}",
                "attempts": 1,
                "created_at_ms": self.now_ms,
            }
            async with self.db.transaction() as tx:
                await tx.insert("core_messages", row)
            self.sent.append(message_id)
            await asyncio.sleep(0.002)


@pytest.mark.timeout(600)
async def test_purges_that_are_killed_while_they_partition_lose_no_message(
    backend: Any, rounds: Rounds, figure: Figure
) -> None:
    turns, more = rounds(short=4, long=60), "100000"
    url = await backend.fresh([CORE_MIGRATIONS])
    db = Database(url, session="msgsvc killed")
    await db.connect()
    async with db.transaction() as tx:
        # More than a MiB of what is older than the retention.
        await tx.execute(
            "INSERT INTO core_messages (project_id, message_id, subscriber_id, channel, status, content,"
            " attempts, created_at_ms) SELECT 'prj_0', CAST(:head AS text) || substr(CAST(10000000000 + i"
            " AS text), 2), 'sub_1', 'messenger_a', 'sent', '{}', 1, 0"
            " FROM generate_series(1, 9000) AS s (i)",
            {"head": earliest_id("msg", START_MS - 30 * DAY_MS)[:-10]},
        )
    sender = Sender(db)
    sending = asyncio.create_task(sender.send())
    killed = 0
    for turn in range(turns):
        # In the first one dies for certain.
        most = 25 if turn else 2
        codes = await asyncio.gather(
            *(_purge(url, sender, str(random.randint(1, most))) for _ in range(2))
        )
        killed += codes.count(-signal.SIGKILL)
        # Purges run each hour. If each of a whole day died, an end that was set ahead would be reached.
        sender.now_ms += DAY_MS if 0 in codes else HOUR_MS
    sender.is_over = True
    await sending
    for _ in range(2):
        assert await _purge(url, sender, more) == 0
    async with db.read() as tx:
        rows = await tx.fetch_all("SELECT message_id FROM core_messages ORDER BY message_id")
    async with partitioned_table(db, partition_rule(DAYS)) as table:
        assert table is not None
        parts = await table.partitions()
    await db.disconnect()

    found = {row["message_id"] for row in rows}
    kept = [each for each in sender.sent if each >= _oldest(sender.now_ms)]
    lost = sum(each not in found for each in kept)
    figure(
        "kill -9 of purges that partition messages, postgresql",
        f"{killed} kills in {turns} turns of two, {len(sender.sent)} sends meanwhile, {lost} lost",
        kills=killed,
        sends=len(sender.sent),
        lost=lost,
    )
    assert killed
    assert kept
    assert lost == 0
    assert not any(each.is_pending for each in parts)
    assert parts[0].start is None
    assert parts[-1].end is None
    assert [each.end for each in parts[:-1]] == [each.start for each in parts[1:]]
    assert len(parts) <= DAYS + 4
    await backend.give_back(url)


def _oldest(now_ms: int) -> str:
    return earliest_id("msg", now_ms - DAYS * DAY_MS)


async def _purge(url: str, sender: Sender, statements: str) -> int:
    how = random.choice(["before", "within"])
    arguments = [url, str(sender.now_ms), statements, how]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", DYING, *arguments)
    return await process.wait()
