"""kill -9 of `msgsvc copy` at random points: it goes on where it was, and everything arrives once."""

import asyncio
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.db.copying import Copied, copy
from msgsvc_core.db.database import sqlite_path
from tests.copied import Original
from tests.e2e.furnished import furnished
from tests.faults.conftest import Figure, Rounds
from tests.faults.grown import grow

pytestmark = pytest.mark.faults

#: Copies some rows per batch, and kills itself once it has done a part of all steps.
DYING = """
import asyncio, os, signal, sys
from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db.copying import Scope, contract, copy
from msgsvc_core.plugins.loading import load_plugins
from msgsvc_core.db import CORE_MIGRATIONS

source, target, part, rows, *plugins = sys.argv[1:]
contract.BATCH_ROWS = int(rows)

def on_progress(what, done, total):
    if done > float(part) * total:
        os.kill(os.getpid(), signal.SIGKILL)

migrations = [CORE_MIGRATIONS, *load_plugins(plugins).hook.register_migrations()]
asyncio.run(copy(source, target, Scope(migrations, CORE_NOT_COPIED), on_progress))
"""


async def killed_copies(
    original: Original, source: str, target: str, kills: int, rows: int
) -> Copied:
    """Copies, is killed at so many points, and goes on each time."""
    for part in sorted(random.uniform(0, 1) for _ in range(kills)):
        plugins = original.service.settings.plugins
        arguments = [source, target, str(part), str(rows), *plugins]
        dying = await asyncio.create_subprocess_exec(sys.executable, "-c", DYING, *arguments)
        assert await dying.wait() == -signal.SIGKILL
    return await copy(source, target, original.scope, lambda *_: None)


async def test_a_copy_there_and_back_that_is_killed_again_and_again_is_whole_in_the_end(
    tmp_path: Path, databases: dict[str, Any], rounds: Rounds, figure: Figure
) -> None:
    if "postgresql" not in databases:
        pytest.skip("PostgreSQL does not answer")
    kills, batch = rounds(short=1, long=10), rounds(short=50, long=2000)
    subscribers, messages = rounds(short=100, long=10_000), rounds(short=1000, long=100_000)
    async with furnished(tmp_path) as made:
        original = await Original.of(made)
    grow(sqlite_path(original.url), subscribers=subscribers, messages=messages)
    there = await databases["postgresql"].empty()
    back = f"sqlite:///{tmp_path / 'back.db'}"
    undisturbed = f"sqlite:///{tmp_path / 'undisturbed.db'}"
    whole = await copy(original.url, undisturbed, original.scope, lambda *_: None)

    began_s = time.monotonic()
    moved = await killed_copies(original, original.url, there, kills, batch)
    returned = await killed_copies(original, there, back, kills, batch)
    took_s = time.monotonic() - began_s

    figure(
        "kill -9 of a copy from SQLite to PostgreSQL and back",
        f"{kills} kills each way, {whole.rows} rows of {len(whole.tables)} tables,"
        f" {sum(moved.tables[name] != each for name, each in whole.tables.items())} tables differ there and"
        f" {sum(returned.tables[name] != each for name, each in whole.tables.items())} back, {took_s:.0f} s",
        kills=2 * kills,
        rows=whole.rows,
    )
    assert whole.tables["core_messages"].rows > messages
    assert moved == whole
    assert returned == whole
    await original.works_in(there)
    await original.works_in(back)
    await databases["postgresql"].give_back(there)
