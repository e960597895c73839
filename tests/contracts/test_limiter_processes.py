"""Processes that share a limit in Redis let through together what one would alone."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from msgsvc_core.kernel.ids import new_token
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import REDIS_URL_VARIABLE, redis_url

pytestmark = pytest.mark.skipif(
    not has("redis"), reason=f"Redis does not answer; {REDIS_URL_VARIABLE} names one"
)

PROCESSES = 4
LIMIT = 300
WINDOW_MS = 60_000

#: Seconds for an answer: four processes at once make a busy machine, and exactness is what is tested.
PATIENCE_S = 30.0

#: How many of so many calls for a key in each process passed; at a time in milliseconds, or Redis' own.
HitAll = Callable[..., int]


@pytest.fixture(scope="module")
def hit_all() -> Iterator[HitAll]:
    script = Path(__file__).with_name("limiter_process.py")
    prefix = f"msgsvc-test:{new_token()}:"
    command = [sys.executable, str(script), redis_url(), prefix, str(patient(PATIENCE_S))]
    with ExitStack() as ended:
        started = [
            ended.enter_context(
                subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
                )
            )
            for _ in range(PROCESSES)
        ]
        pipes = [(one.stdin, one.stdout) for one in started if one.stdin and one.stdout]
        assert [answers.readline() for _, answers in pipes] == ["ready\n"] * PROCESSES

        def hit(key: str, calls: int, now_ms: int | None = None) -> int:
            for orders, _ in pipes:
                orders.write(f"{key} {calls} {'-' if now_ms is None else now_ms}\n")
            return sum(int(answers.readline()) for _, answers in pipes)

        yield hit


def test_of_2000_calls_over_4_processes_exactly_300_pass(hit_all: HitAll) -> None:
    assert hit_all("by_redis", 500) == LIMIT


def test_in_any_60_seconds_exactly_300_of_2000_calls_pass(hit_all: HitAll) -> None:
    start_ms = 1_795_167_000_250
    pauses_ms = [0, 100, 20_000, 39_899, 1, 100, 19_999, 1, 39_999, 1]
    passed: list[tuple[int, int]] = []
    expected: list[int] = []
    now_ms = start_ms
    for pause_ms in pauses_ms:
        now_ms += pause_ms
        inside = sum(count for ms, count in passed if ms > now_ms - WINDOW_MS)
        expected.append(min(PROCESSES * 50, LIMIT - inside))
        passed.append((now_ms, hit_all("by_us", 50, now_ms)))

    assert [count for _, count in passed] == expected
    for end_ms, _ in passed:
        assert sum(count for ms, count in passed if end_ms - WINDOW_MS < ms <= end_ms) <= LIMIT
    # Every slot was taken, freed and taken again, twice.
    assert sum(expected) == 3 * LIMIT
