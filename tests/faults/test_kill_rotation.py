"""kill -9 of a rotation of the secret keys at random points, while values change: the new key reads all."""

import asyncio
import random
import signal
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

from msgsvc_core.core_parts import CORE_SEALED
from msgsvc_core.db import CORE_MIGRATIONS, Database
from msgsvc_core.security import SecretBox
from msgsvc_core.security.rotation import KeyRotation
from msgsvc_core.security.sealed import SealedColumn
from tests.faults.conftest import Figure, Rounds

pytestmark = pytest.mark.faults

OLD, NEW = "older-key-" * 4, "newer-key-" * 4

#: Seconds between two changes of values by somebody else.
CHANGE_S = 0.005

#: Rotates, and kills itself once it has done so many values: before a commit, or after it.
DYING = """
import asyncio, os, signal, sys
from contextlib import asynccontextmanager
from msgsvc_core.core_parts import CORE_SEALED
from msgsvc_core.db import Database
from msgsvc_core.security import SecretBox, rotation

url, values, within, *keys = sys.argv[1:]
rotation.STEP = 20
left = int(values)

def die():
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)

def on_step(column, count):
    global left
    left -= count
    if within == "no":
        die()

async def main():
    db = Database(url, pool_size=2)
    await db.connect()

    @asynccontextmanager
    async def transaction():
        async with db.transaction() as tx:
            yield tx
            die()

    await rotation.KeyRotation(
        secrets=SecretBox(keys), columns=CORE_SEALED, read=db.read, transaction=transaction
    ).run(on_step)
    await db.disconnect()

asyncio.run(main())
"""


def unseen(_column: SealedColumn, _count: int) -> None:
    """Progress that nobody looks at."""


@dataclass
class Values:
    """Encrypted values, and what each must be in the end."""

    db: Database
    texts: dict[str, str] = field(default_factory=dict)
    changes: int = 0
    is_over: bool = False

    async def fill(self, count: int) -> None:
        self.texts = {f"{number:06}": f"value {number}" for number in range(count)}
        box = SecretBox([OLD])
        rows = [
            {"digest": digest, "sealed": box.encrypt(text), "expires_at_ms": 2**53}
            for digest, text in self.texts.items()
        ]
        async with self.db.transaction() as tx:
            await tx.insert_many("core_start_codes", rows)

    async def change(self) -> None:
        """Changes one after another, by the old and the new key in turn, as services do that are restarted
        one by one."""
        boxes = [SecretBox([OLD, NEW]), SecretBox([NEW, OLD])]
        while not self.is_over:
            digest = random.choice(list(self.texts))
            text = f"changed {self.changes}"
            async with self.db.transaction() as tx:
                await tx.execute(
                    "UPDATE core_start_codes SET sealed = :sealed WHERE digest = :digest",
                    {"digest": digest, "sealed": boxes[self.changes % 2].encrypt(text)},
                )
            self.texts[digest] = text
            self.changes += 1
            await asyncio.sleep(CHANGE_S)

    async def read(self) -> dict[str, str]:
        box = SecretBox([NEW])
        async with self.db.read() as tx:
            rows = await tx.fetch_all("SELECT digest, sealed FROM core_start_codes")
        return {row["digest"]: box.decrypt(row["sealed"]) for row in rows}


async def test_a_rotation_that_is_killed_again_and_again_reaches_every_value(
    backend: Any, rounds: Rounds, figure: Figure
) -> None:
    kills, count = rounds(short=2, long=10), rounds(short=600, long=50_000)
    url = await backend.fresh([CORE_MIGRATIONS])
    db = Database(url)
    await db.connect()
    values = Values(db)
    await values.fill(count)
    changing = asyncio.create_task(values.change())
    # A killed run has left the rest: so each next one is killed in what is left.
    for number in range(kills):
        left = count * (kills - number) / (kills + 1)
        point = str(round(random.uniform(0.05, 1 / (kills - number + 1)) * left))
        arguments = [url, point, random.choice(["no", "yes"]), NEW, OLD]
        dying = await asyncio.create_subprocess_exec(sys.executable, "-c", DYING, *arguments)
        assert await dying.wait() == -signal.SIGKILL
    # Everybody has the new key first by now.
    values.is_over = True
    await changing
    rotation = KeyRotation(
        secrets=SecretBox([NEW, OLD]), columns=CORE_SEALED, read=db.read, transaction=db.transaction
    )
    rotated = await rotation.run(unseen)
    found = await values.read()
    await db.disconnect()

    wrong = sum(found.get(digest) != text for digest, text in values.texts.items())
    last = rotated.renewed.total()
    figure(
        f"kill -9 of a rotation of secret keys, {db.dialect}",
        f"{kills} kills, {count} values, {values.changes} changes meanwhile, {wrong} wrong;"
        f" {last} were left for the last run",
        kills=kills,
        values=count,
        changes=values.changes,
        wrong=wrong,
    )
    assert values.changes
    assert 0 < last < count
    assert found == values.texts
    await backend.give_back(url)
