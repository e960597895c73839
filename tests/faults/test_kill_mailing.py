"""kill -9 of who sends a broadcast, on both runners, and what the platform's log says of it."""

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from msgsvc_core.mailings.sending import MAX_RECIPIENTS_IN_FLIGHT
from msgsvc_devkit import until
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import TestRunner
from tests.faults.campaign import CALL_S, campaign
from tests.faults.conftest import Figure, Rounds

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize("runner", ["embedded", "redis"], indirect=True),
]


async def test_nobody_is_lost_and_nobody_sent_to_twice_over_many_kills(
    tmp_path: Path, databases: Any, runner: TestRunner, rounds: Rounds, figure: Figure
) -> None:
    if runner.name != "embedded" and not has("postgres"):
        pytest.skip("PostgreSQL does not answer")
    kills, people = rounds(short=2, long=20), rounds(short=1600, long=20_000)
    async with campaign(tmp_path, databases, runner, people) as this:
        await this.ask("Hi")
        for number in range(kills):
            server = await asyncio.to_thread(this.start)
            try:
                before = await this.sent()

                async def some_are_sent(before: int = before) -> bool:
                    mailing = await this.mailing()
                    assert mailing["status"] != "paused", mailing["error"]
                    return bool(mailing["sent"] > before)

                # So that a kill comes in the middle, however long a start takes.
                await until(some_are_sent, timeout_s=60)
                await asyncio.sleep(CALL_S * random.uniform(0, 1))
            finally:
                await asyncio.to_thread(server.kill)
            assert not await this.is_ended(), f"it had ended before kill {number + 1}"
        last = await asyncio.to_thread(this.start)
        try:
            await until(this.is_ended, timeout_s=300)
        finally:
            await asyncio.to_thread(last.end)
        mailing, status_of, told = await this.mailing(), await this.statuses(), await this.told()
        messages = await this.query("SELECT status FROM core_messages")

    statuses, shown = Counter(status_of.values()), this.shown("Hi")
    twice = sum(times > 1 for times in shown.values())
    lost = sum(status == "sent" and not shown[chat] for chat, status in status_of.items())
    figure(
        f"kill -9 during a broadcast, {runner.name}",
        f"{kills} kills, {people} recipients: {dict(statuses)}, {lost} lost, {twice} sent to twice",
        kills=kills,
        recipients=people,
        unknown=statuses["unknown"],
        lost=lost,
        twice=twice,
    )
    assert (lost, twice) == (0, 0)
    assert len(status_of) == people
    assert set(statuses) <= {"sent", "unknown"}
    # What was in the platform's hands, each time.
    assert statuses["unknown"] <= kills * MAX_RECIPIENTS_IN_FLIGHT
    assert (mailing["sent"], mailing["failed"]) == (statuses["sent"], statuses["unknown"])
    assert (mailing["skipped"], mailing["total"]) == (0, people)
    assert told == ["broadcast.completed"]
    assert Counter(row["status"] for row in messages) == statuses
