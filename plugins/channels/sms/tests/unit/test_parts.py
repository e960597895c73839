"""The plugin's objects one by one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_devkit import MemoryCore, memory_core
from msgsvc_devkit.contexts import JobInTest
from msgsvc_devkit.core import PROJECT
from msgsvc_sms.jobs import KEPT_DAYS, SmsJobs
from msgsvc_sms.operators import Operators

CHANNEL = ChannelIdentity("sms", key="sms")


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    async with memory_core(plugins=["sms"]) as core:
        yield core


async def test_a_limit_is_told_once_and_counted_each_time(core: MemoryCore) -> None:
    for first in (True, False):
        async with core.db.transaction() as tx:
            await core.get(Operators).limit_reached(
                tx,
                CHANNEL,
                PROJECT,
                rule="number_hour",
                says="10 messages an hour to one number",
                ends_at_ms=0,
                first=first,
            )

    assert core.event_names == ["sms.limit_reached"]
    counted = core.metrics.registry.get_sample_value(
        "msgsvc_sms_stopped_total", {"rule": "number_hour"}
    )
    assert counted == 2


#: A row of each table, but for the column that dates it.
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "sms_inbox": ("received_at_ms", {"item_id": "1", "sealed": ""}),
    "sms_parts": (
        "received_at_ms",
        {"sender_hash": "1", "reference": 1, "total": 2, "sealed": ""},
    ),
    "sms_numbers": ("sent_at_ms", {"number_hash": "1"}),
    "sms_counters": ("window_ends_at_ms", {"rule": "day", "subject": "", "used": 1}),
    "sms_blocks": (
        "ends_at_ms",
        {"rule": "day", "subject": "", "began_at_ms": 0, "refused": 1},
    ),
}


@pytest.mark.parametrize("table", KEPT_DAYS)
async def test_a_row_is_purged_after_its_days(core: MemoryCore, table: str) -> None:
    dated, values = ROWS[table]
    kept_from_ms = core.clock.now_ms() - KEPT_DAYS[table] * DAY_MS
    async with core.db.transaction() as tx:
        for channel, at_ms in (("old", kept_from_ms - 1), ("new", kept_from_ms)):
            await tx.insert(table, {"channel": channel, dated: at_ms, **values})
    await SmsJobs(clock=core.clock).purge(JobInTest(core.db), [])

    async with core.db.read() as tx:
        left = await tx.fetch_all(f"SELECT channel FROM {table}", {})
    assert [row["channel"] for row in left] == ["new"]
