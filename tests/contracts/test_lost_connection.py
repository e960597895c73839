"""A connection that PostgreSQL ends while it is being given back to the pool."""

import asyncio
from collections.abc import Callable

import pytest

from msgsvc_core.db import Database
from msgsvc_devkit.databases import PostgresDatabases
from msgsvc_devkit.work import PATIENCE_S


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
async def test_a_connection_that_ends_while_it_is_given_back_is_no_error(
    backend: PostgresDatabases,
) -> None:
    url = await backend.empty()
    db = Database(url, pool_size=2)
    await db.connect()
    answers = []
    # It ends at another step of the way back each time; the pool raised at one of them.
    for steps in range(10):
        async with db.read() as tx:
            answers.append(await tx.fetch_val("SELECT 1"))
            _in_steps(steps, tx._raw.terminate)
    async with asyncio.timeout(PATIENCE_S), db.transaction() as first, db.read() as second:
        answers += [await first.fetch_val("SELECT 1"), await second.fetch_val("SELECT 1")]
    await db.disconnect()
    await backend.give_back(url)

    assert answers == [1] * 12


def _in_steps(steps: int, call: Callable[[], None]) -> None:
    """Calls after so many turns of the loop."""
    loop = asyncio.get_running_loop()
    if steps:
        loop.call_soon(_in_steps, steps - 1, call)
    else:
        call()
