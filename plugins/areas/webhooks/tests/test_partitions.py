"""Deliveries and their attempts in partitions on PostgreSQL, by the hourly jobs of a service."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from msgsvc_core.db.partitions import read_partitions
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from plugins.areas.webhooks.tests.test_forgetting import subscribe

pytestmark = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)

TABLES = ("core_events", "core_messages", "webhooks_attempts", "webhooks_deliveries")

#: Rows whose tables and indexes have more than a MiB.
ROWS = 12_000


@pytest.fixture
async def service(make_webhook_service: Callable[..., Awaitable[Service]]) -> Service:
    core = {"limits": {"message_days": 8, "event_days": 8}, "database_partition_mib": 1}
    return await make_webhook_service(journal_days=8, core=core)


async def fill(service: Service, clock: FakeClock, count: int, status: str = "delivered") -> str:
    """Messages, events, deliveries and attempts of now; returns the first delivery's id."""
    now_ms = clock.now_ms()
    number = "substr(CAST(10000000000 + i AS text), 2)"
    values = {
        "core_messages": (
            "msg",
            "message_id",
            "subscriber_id, channel, status, content, attempts, created_at_ms",
            "'sub_1', 'messenger_a', 'sent', '{}', 1, :now_ms",
        ),
        "core_events": ("evt", "event_id", "name, data, occurred_at_ms", "'x', '{}', :now_ms"),
        "webhooks_deliveries": (
            "whd",
            "delivery_id",
            "webhook_id, event_id, event, body, status, attempts, step, created_at_ms",
            f"'whe_1', 'evt_1', 'x', '{{}}', '{status}', 1, 0, :now_ms",
        ),
        "webhooks_attempts": (
            "whd",
            "delivery_id",
            "number, started_at_ms, duration_ms, answer",
            "1, :now_ms, 5, ''",
        ),
    }
    async with service.db.transaction() as tx:
        for table, (prefix, column, names, row) in values.items():
            given = row.replace(":now_ms", "CAST(:now_ms AS bigint)")
            await tx.execute(
                f"INSERT INTO {table} (project_id, {column}, {names})"
                f" SELECT 'prj_1', CAST(:head AS text) || {number}, {given}"
                " FROM generate_series(1, CAST(:count AS int)) AS s (i)",
                {
                    "head": earliest_id(prefix, now_ms)[:-10],
                    "now_ms": now_ms,
                    "count": count,
                },
            )
    return earliest_id("whd", now_ms)[:-10] + f"{1:010}"


async def days_later(service: Service, clock: FakeClock, days: int) -> None:
    for _ in range(days):
        clock.advance(DAY_MS / 1000)
        await settled(service)


async def counts(service: Service) -> dict[str, int]:
    found = {}
    async with service.db.read() as tx:
        for table in TABLES:
            found[table] = await tx.fetch_val(f"SELECT COUNT(*) AS count FROM {table}")
    return found


async def test_all_large_tables_are_partitioned_and_emptied_by_dropping(
    service: Service, clock: FakeClock
) -> None:
    await settled(service)
    clock.advance(3600)
    await fill(service, clock, ROWS)
    await days_later(service, clock, 2)
    async with service.db.read() as tx:
        made = await read_partitions(tx)
    between = await counts(service)
    await days_later(service, clock, 12)
    after = await counts(service)
    async with service.db.read() as tx:
        found = await read_partitions(tx)

    assert tuple(made) == tuple(found) == TABLES
    assert set(between.values()) == {ROWS}
    assert set(after.values()) == {0}
    assert {10, 11, 12} >= {len(each) for each in found.values()}


async def test_a_delivery_to_be_made_keeps_its_partition_until_it_is_old(
    service: Service, clock: FakeClock
) -> None:
    """As without partitions, where it is deleted by its age; its attempts go after it."""
    await settled(service)
    clock.advance(3600)
    await fill(service, clock, ROWS)
    await days_later(service, clock, 4)
    await fill(service, clock, 10, "pending")
    await days_later(service, clock, 8)
    kept = await counts(service)
    await days_later(service, clock, 3)

    assert kept["webhooks_deliveries"] == kept["webhooks_attempts"] == 10
    assert (await counts(service))["webhooks_attempts"] == 0


async def test_a_message_in_a_partition_is_sent_and_found_in_lists_and_by_its_id(
    service: Service, clock: FakeClock, client: Any, tenant: Any
) -> None:
    await settled(service)
    await fill(service, clock, ROWS)
    clock.advance(3600)
    await settled(service)
    subscriber_id = await subscribe(service, tenant, "ann")
    sent = await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "Hello"})
    await settled(service)
    message_id = sent.json()["message_id"]
    one = await client.get(f"/v1/messages/{message_id}")
    many = await client.get("/v1/messages")
    events = await client.get("/v1/events")
    async with service.db.read() as tx:
        tables = await read_partitions(tx)

    assert "core_messages" in tables
    assert one.json()["status"] == "sent"
    assert [each["message_id"] for each in many.json()["data"]] == [message_id]
    assert "delivery.success" in events.text
