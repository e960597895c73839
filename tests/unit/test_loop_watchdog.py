"""What keeps the event loop is logged and counted."""

import asyncio
import time

import structlog
from prometheus_client import CollectorRegistry

from msgsvc_core.telemetry.loop_watchdog import watched_loop


def keep_the_loop(seconds: float) -> None:
    # Asleep, so that the watchdog's thread gets its turn on a busy machine, too.
    time.sleep(seconds)


async def test_a_blocked_loop_is_told_with_what_it_was_doing() -> None:
    registry = CollectorRegistry()
    with structlog.testing.capture_logs() as lines:
        async with watched_loop(registry):
            await asyncio.sleep(0.1)
            keep_the_loop(2)
            await asyncio.sleep(0.2)

    [line] = [each for each in lines if each["event"] == "loop_blocked"]
    assert line["seconds"] > 1
    assert "keep_the_loop (unit/test_loop_watchdog.py:" in line["stack"]
    assert registry.get_sample_value("msgsvc_loop_blocked_seconds_count") == 1


async def test_a_loop_that_only_waits_is_not_blocked() -> None:
    registry = CollectorRegistry()
    async with watched_loop(registry, most_s=5.0):
        await asyncio.sleep(0.3)

    assert registry.get_sample_value("msgsvc_loop_blocked_seconds_count") == 0
