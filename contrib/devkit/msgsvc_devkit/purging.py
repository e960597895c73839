"""What is old is removed a step at a time: for tests of jobs that use `in_steps`."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs import steps
from msgsvc_core.service import Service
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.work import settled

#: Milliseconds since what is old: a thousand days, longer than anything is kept.
AGE_MS = 1000 * 24 * 3600 * 1000


class Purged(NamedTuple):
    """The keys of the rows that are left, and how many rows each step removed that found any."""

    left: list[str]
    steps: list[int]


async def purged(
    service: Service,
    clock: FakeClock,
    step: tuple[ModuleType, str],
    table: str,
    key: str,
    row: Callable[[int], Mapping[str, Any]],
) -> Purged:
    """Puts five old rows into `table` and a new one, made by `row(its time)`, with the keys `x0` to `x5`;
    then an hour goes by, whose purge takes two rows a step.

    `step` names the function that removes some, as it stands in its module: `(tx, before_ms, most)`,
    returning how many.
    """
    await settled(service)
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else AGE_MS + number)
            await tx.insert(table, {key: f"x{number}", **row(at_ms)})
    real, taken = getattr(*step), list[int]()

    async def noted(tx: Tx, before_ms: int, most: int) -> int:
        count: int = await real(tx, before_ms, most)
        taken.extend([count] if count else [])
        return count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*step, noted)
        patch.setattr(steps, "STEP", 2)
        clock.advance(3600)
        await settled(service)
    async with service.db.read() as tx:
        left = await tx.fetch_all(f"SELECT {key} FROM {table} ORDER BY {key}")
    return Purged([found[key] for found in left], taken)
