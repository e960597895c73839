"""kill -9 of `msgsvc copy` at random points: it goes on where it was, and everything arrives once."""

import asyncio
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db.copying import Scope, copy
from tests.e2e.furnished import furnished
from tests.faults.conftest import Figure, Rounds

pytestmark = pytest.mark.faults

#: Copies three rows per batch, and kills itself once it has done a part of all steps.
DYING = """
import asyncio, os, signal, sys
from msgsvc_core.core_parts import CORE_NOT_COPIED
from msgsvc_core.db.copying import Scope, contract, copy
from msgsvc_core.plugins.loading import load_plugins
from msgsvc_core.db import CORE_MIGRATIONS

source, target, part, *plugins = sys.argv[1:]
contract.BATCH_ROWS = 3

def on_progress(what, done, total):
    if done > float(part) * total:
        os.kill(os.getpid(), signal.SIGKILL)

migrations = [CORE_MIGRATIONS, *load_plugins(plugins).hook.register_migrations()]
asyncio.run(copy(source, target, Scope(migrations, CORE_NOT_COPIED), on_progress))
"""


async def test_a_copy_that_is_killed_again_and_again_is_whole_in_the_end(
    tmp_path: Path, databases: dict[str, Any], rounds: Rounds, figure: Figure
) -> None:
    if "postgresql" not in databases:
        pytest.skip("PostgreSQL does not answer")
    kills = rounds(short=2, long=10)
    async with furnished(tmp_path) as made:
        service = made.service
    scope = Scope(service.migrations, CORE_NOT_COPIED)
    source = service.settings.database_url
    target = await databases["postgresql"].fresh(scope.migrations)
    whole = await copy(source, f"sqlite:///{tmp_path / 'undisturbed.db'}", scope, lambda *_: None)

    for part in sorted(random.uniform(0, 1) for _ in range(kills)):
        arguments = [source, target, str(part), *service.settings.plugins]
        dying = await asyncio.create_subprocess_exec(sys.executable, "-c", DYING, *arguments)
        assert await dying.wait() == -signal.SIGKILL
    copied = await copy(source, target, scope, lambda *_: None)

    assert copied == whole
    figure("kill -9 of a copy", f"{kills} kills, {copied.rows} rows, all there", kills=kills)
    await databases["postgresql"].give_back(target)
