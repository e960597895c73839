"""A broadcast that is cancelled in the middle: what the platform still sees, and what the counts say."""

import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from msgsvc_devkit import until
from msgsvc_devkit.machine import has
from msgsvc_devkit.runners import TestRunner
from tests.faults.campaign import CALL_S, Campaign, campaign
from tests.faults.conftest import Figure, Rounds

pytestmark = [
    pytest.mark.faults,
    pytest.mark.parametrize(
        ("runner", "on"),
        [("embedded", "sqlite"), ("embedded", "postgresql"), ("redis", "postgresql")],
        indirect=["runner"],
    ),
]

PEOPLE = 4000


async def test_nothing_more_is_sent_after_a_cancel_and_the_counts_are_the_platforms(
    tmp_path: Path, databases: Any, runner: TestRunner, on: str, rounds: Rounds, figure: Figure
) -> None:
    if on == "postgresql" and not has("postgres"):
        pytest.skip("PostgreSQL does not answer")
    cancels, latest_s = rounds(short=2, long=20), -CALL_S
    wrong: list[str] = []
    async with campaign(tmp_path, databases, runner, PEOPLE, on=on) as this:
        server = await asyncio.to_thread(this.start)
        try:
            for number in range(cancels):
                text = f"Sale {number}"
                latest_s = max(latest_s, await _cancelled_in_the_middle(this, text))
                wrong += await _differences(this, text)
        finally:
            await asyncio.to_thread(server.end)
        lines = sum(len(this.log(f"Sale {number}")) for number in range(cancels))
        sent = await this.query("SELECT SUM(sent) AS sent FROM core_mailings")
        told = await this.told()

    figure(
        f"broadcast cancelled, {runner.name}, {on}",
        f"{cancels} cancels of {PEOPLE} recipients: the last call {latest_s:.2f} s after,"
        f" {lines} sent, {len(wrong)} counts wrong",
        cancels=cancels,
        latest_s=latest_s,
        wrong=len(wrong),
    )
    assert wrong == []
    # The process has ended: nothing came after what each cancel was compared with.
    assert sent[0]["sent"] == lines
    assert told == ["broadcast.cancelled"] * cancels
    # The bar; the short form runs beside other tests.
    assert latest_s <= rounds(short=60, long=2)


async def _cancelled_in_the_middle(this: Campaign, text: str) -> float:
    """Seconds from the cancel to the last message that the platform saw."""
    await this.ask(text)

    async def some_are_sent() -> bool:
        return await this.sent() > 0

    await until(some_are_sent, timeout_s=60)
    await asyncio.sleep(CALL_S * random.uniform(0, 1))
    await this.cancel()
    cancelled_s = time.time()
    await until(this.is_ended, timeout_s=60)
    return max(float(line["at_s"]) for line in this.log(text)) - cancelled_s


async def _differences(this: Campaign, text: str) -> list[str]:
    """Where mailing, ledger, messages and the platform's log don't say the same."""
    mailing, ledger, shown = await this.mailing(), await this.statuses(), this.shown(text)
    [messages] = await this.query(
        "SELECT COUNT(*) AS sent FROM core_messages WHERE job_id = :job_id AND status = 'sent'"
    )
    statuses = Counter(ledger.values())
    reached = {chat for chat, status in ledger.items() if status == "sent"}
    sent = mailing["sent"]
    checks = {
        "status": mailing["status"] == "cancelled",
        "in the middle": 0 < sent < PEOPLE,
        "counts": (mailing["failed"], mailing["skipped"], mailing["total"])
        == (0, PEOPLE - sent, PEOPLE),
        "ledger": set(statuses) == {"sent", "queued"} and statuses["sent"] == sent,
        "messages": messages["sent"] == sent,
        "platform": shown.keys() == reached and set(shown.values()) == {1},
    }
    return [f"{text}: {name}" for name, holds in checks.items() if not holds]
