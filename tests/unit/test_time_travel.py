"""The clock of a test service arrives wherever it is sent, in whole milliseconds."""

import asyncio

import pytest

from msgsvc_devkit.clock import MovableClock
from msgsvc_devkit.core import MemoryCore
from msgsvc_devkit.ephemeral.time_travel import TimeTravel


@pytest.mark.parametrize(
    "moves", [(0.1, 0.2), (0.3, 0.3, 0.1), (1 / 3,) * 3, (0.0004,), (61.7, 0.0015)]
)
async def test_moves_that_no_float_can_say_exactly_end(
    core: MemoryCore, moves: tuple[float, ...]
) -> None:
    clock = MovableClock()
    travel = TimeTravel(clock=clock, db=core.db, jobs=core.jobs)

    async with asyncio.timeout(10):
        for seconds in moves:
            await travel.advance(seconds)

    assert clock.ahead_s == pytest.approx(sum(moves), abs=0.001 * len(moves))
