"""Deadlines of tests, longer on a slow machine.

async with asyncio.timeout(patient(5)):
    ...
"""

import os
import statistics
import time

#: The factor by which deadlines are multiplied, for the worker processes of a session.
SLOWNESS_VARIABLE = "MSGSVC_TEST_SLOWNESS"

#: Milliseconds that `_work` takes on the machine for which deadlines are written, of 2 idle cores.
WORK_MS = 16.0

#: Deadlines are at most this many times as long: a session must end.
MOST_SLOWNESS = 8.0


def slowness() -> float:
    """How many times as slow as the reference this machine is now, 1 to `MOST_SLOWNESS`. It is measured once
    in a session, by its first process."""
    if SLOWNESS_VARIABLE not in os.environ:
        os.environ[SLOWNESS_VARIABLE] = str(round(_measured(), 2))
    return float(os.environ[SLOWNESS_VARIABLE])


def patient(seconds: float) -> float:
    """A deadline for a test, in seconds, on this machine."""
    return seconds * slowness()


def _measured() -> float:
    # By the clock: other programs that keep the machine busy make it slower, too.
    spent_ms = [_work() for _ in range(9)]
    return min(max(1.0, statistics.median(spent_ms) / WORK_MS), MOST_SLOWNESS)


def _work() -> float:
    started = time.perf_counter()
    total = 0
    for number in range(200_000):
        total += number % 7
    assert total
    return 1000 * (time.perf_counter() - started)
