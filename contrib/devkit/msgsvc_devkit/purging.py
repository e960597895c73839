"""Helpers for tests of purge jobs that delete in steps (`in_steps`)."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from msgsvc_core.db import Tx
from msgsvc_core.jobs import steps
from msgsvc_core.service import Service
from msgsvc_devkit.clock import FakeClock
from msgsvc_devkit.work import settled

#: Age in milliseconds of the old rows: a thousand days, longer than any retention.
AGE_MS = 1000 * 24 * 3600 * 1000


class Purged(NamedTuple):
    """The keys of the remaining rows, and how many rows each non-empty step removed."""

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
    """Inserts five old rows and a new one into `table`, made by `row(its time)`, with the keys `x0` to `x5`;
    then advances the clock by an hour, so that the purge runs with two rows per step.

    `step` is the import path of the function that deletes rows: `(tx, before_ms, most)`, returning their
    number.
    """
    await settled(service)
    async with service.db.transaction() as tx:
        for number in range(6):
            at_ms = clock.now_ms() - (0 if number == 5 else AGE_MS + number)
            await tx.insert(table, {key: f"x{number}", **row(at_ms)})
    real, taken = getattr(*step), list[int]()

    async def noted(tx: Tx, before_ms: int, most: int, **others: Any) -> int:
        count: int = await real(tx, before_ms, most, **others)
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
