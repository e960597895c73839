"""What need not be remembered any longer is removed, and nothing else."""

from contextlib import AbstractAsyncContextManager
from typing import Any

import httpx2
import pytest

from msgsvc_core.db import Tx
from msgsvc_core.db.retention import RetentionRule
from msgsvc_core.jobs import JobContext, Stopping, retention, steps
from msgsvc_core.jobs.retention import Retention
from msgsvc_core.kernel.clock import DAY_MS, HOUR_MS
from msgsvc_core.kernel.ids import earliest_id
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    """With the plugin whose tables are among `ROWS`."""
    return await make_service(plugins=("dashboard",))


async def test_events_go_back_as_far_as_the_setting_says(
    service: Service, client: httpx2.AsyncClient, clock: FakeClock, subscribe: Any
) -> None:
    await subscribe("Ann")
    clock.advance(29 * 24 * 3600)
    await settled(service)
    before = (await client.get("/v1/events")).json()["data"]

    clock.advance(2 * 24 * 3600)
    await settled(service)

    assert len(before) == 1
    assert (await client.get("/v1/events")).json()["data"] == []


@pytest.mark.both_databases
async def test_messages_go_after_message_days_unless_they_are_yet_to_be_delivered(
    make_service: ServiceFactory, tenant: Tenant, clock: FakeClock
) -> None:
    service = await make_service(limits={"message_days": 7})
    await settled(service)
    now_ms = clock.now_ms()
    days_ago = {"sent": 8, "queued": 9, "failed": 10, "skipped": 6}
    async with service.db.transaction() as tx:
        for status, days in days_ago.items():
            at_ms = now_ms - days * DAY_MS
            await tx.insert("core_messages", message(tenant, status, at_ms))

    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT status FROM core_messages ORDER BY status")
    assert [row["status"] for row in rows] == ["queued", "skipped"]


async def test_without_message_days_messages_are_kept(
    service: Service, tenant: Tenant, clock: FakeClock
) -> None:
    await settled(service)
    async with service.db.transaction() as tx:
        old_ms = clock.now_ms() - 1000 * DAY_MS
        await tx.insert("core_messages", message(tenant, "sent", old_ms))
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) AS count FROM core_messages") == 1


def message(tenant: Tenant, status: str, at_ms: int) -> dict[str, Any]:
    """A message without a job, with the id of that time."""
    return {
        "project_id": tenant.project.project_id,
        "message_id": earliest_id("msg", at_ms),
        "subscriber_id": "sub_1",
        "channel": "messenger_a",
        "status": status,
        "content": "{}",
        "attempts": 1,
        "created_at_ms": at_ms,
    }


#: By table: its key, its time, and what else a row needs; `owned` makes those it refers to.
ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "core_updates": ("update_id", "received_at_ms", {"channel": "messenger_a"}),
    "core_offers": (
        "chat_id",
        "asked_at_ms",
        {"channel": "messenger_a", "offer_id": "off_1", "sealed": ""},
    ),
    "core_button_pages": (
        "digest",
        "shown_at_ms",
        {"channel": "messenger_a", "chat_id": "77", "sealed": ""},
    ),
    "core_shelf": (
        "item_id",
        "received_at_ms",
        {
            "channel": "messenger_a",
            "kind": "update",
            "reason": "malformed",
            "detail": "",
            "origin": "",
            "size": 1,
            "kept": 1,
            "sealed": "",
        },
    ),
    "core_start_codes": ("digest", "expires_at_ms", {"sealed": ""}),
    "core_idempotency": ("key", "created_at_ms", {"fingerprint": "x"}),
    "core_events": ("event_id", "occurred_at_ms", {"name": "x", "data": "{}"}),
    "dashboard_audit": ("entry_id", "at_ms", {"action": "x", "detail": "{}", "ip": ""}),
    "core_links": ("digest", "expires_at_ms", {"tag_ids": "[]"}),
    "core_member_links": ("digest", "expires_at_ms", {"member_id": "mem_1"}),
    "dashboard_account_links": ("digest", "expires_at_ms", {"purpose": "password"}),
    "dashboard_account_sessions": (
        "digest",
        "expires_at_ms",
        {
            "account_id": "acc_1",
            "session_id": "x",
            "created_at_ms": 0,
            "seen_at_ms": 0,
            "ip": "",
            "user_agent": "",
        },
    ),
    "dashboard_account_requests": (
        "digest",
        "expires_at_ms",
        {
            "purpose": "x",
            "status": "x",
            "number": 1,
            "ip": "",
            "user_agent": "",
            "created_at_ms": 0,
        },
    ),
}

#: Tables of rows that are of no project.
OF_NONE = {
    "core_updates",
    "core_offers",
    "core_button_pages",
    "core_shelf",
    "core_start_codes",
    "dashboard_account_sessions",
    "dashboard_account_requests",
}


@pytest.mark.parametrize("table", ROWS)
async def test_what_is_old_goes_a_step_at_a_time(
    service: Service,
    tenant: Tenant,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
) -> None:
    monkeypatch.setattr(steps, "STEP", 2)
    taken: list[int] = []
    monkeypatch.setattr(retention, "in_steps", noting(taken))
    await settled(service)
    async with service.db.transaction() as tx:
        await owned(tx, tenant.project.project_id)
        await fill(tx, table, tenant.project.project_id, clock.now_ms())
    taken.clear()
    clock.advance(3600)
    await settled(service)

    assert await left(service, table) == ["x5"]
    assert [count for count in taken if count] == [2, 2, 1]


async def test_a_part_that_fails_keeps_no_other_from_its_turn(
    service: Service, tenant: Tenant, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await settled(service)
    broken = RetentionRule("core_projects", "no_such_column")
    monkeypatch.setattr(service.get(Retention), "_rules", [broken, *service.get(Retention)._rules])
    async with service.db.transaction() as tx:
        await fill(tx, "core_events", tenant.project.project_id, clock.now_ms())
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        error = await tx.fetch_val("SELECT last_error FROM core_jobs WHERE name = 'core.purge'")
    assert await left(service, "core_events") == ["x5"]
    assert "no_such_column" in error


async def test_of_several_parts_that_fail_the_first_is_told_and_a_stop_goes_before() -> None:
    done: list[str] = []

    def part(name: str, error: Exception | None = None) -> steps.Part:
        async def do() -> None:
            done.append(name)
            if error is not None:
                raise error

        return do

    with pytest.raises(ValueError, match="first"):
        await steps.in_parts(
            part("a", ValueError("first")), part("b", KeyError("second")), part("c")
        )
    with pytest.raises(Stopping):
        await steps.in_parts(part("d", ValueError("third")), part("e", Stopping()), part("f"))

    assert done == ["a", "b", "c", "d", "e"]


async def test_a_stop_waits_for_one_step_and_no_more(service: Service) -> None:
    class Context:
        stopping = False

        def transaction(self) -> AbstractAsyncContextManager[Tx]:
            return service.db.transaction()

    context, taken = Context(), list[int]()

    async def step(_tx: Tx, most: int) -> int:
        taken.append(most)
        context.stopping = True
        return most

    with pytest.raises(Stopping):
        await steps.in_steps(context, step, 3)  # type: ignore[arg-type]  # as much as it asks for

    assert taken == [3]


def noting(taken: list[int]) -> Any:
    """`in_steps`, which notes with how many rows each step was done."""

    async def in_steps(ctx: JobContext, step: steps.Step, most: int | None = None) -> None:
        async def noted(tx: Tx, most: int) -> int:
            taken.append(await step(tx, most))
            return taken[-1]

        await steps.in_steps(ctx, noted, most)

    return in_steps


async def owned(tx: Tx, project_id: str) -> None:
    """A member and an account, which others refer to."""
    who = {"name": "Ann", "email": "ann@x.example", "status": "active", "created_at_ms": 0}
    await tx.insert(
        "core_members", {"project_id": project_id, "member_id": "mem_1", "role": "owner", **who}
    )
    await tx.insert("dashboard_accounts", {"account_id": "acc_1", "is_operator": False, **who})


async def fill(tx: Tx, table: str, project_id: str, now_ms: int) -> None:
    """Five rows that are a thousand days old, and `x5`, which will be new for two hours."""
    key, column, more = ROWS[table]
    await tx.execute(f"DELETE FROM {table}")
    for number in range(6):
        at_ms = now_ms + 2 * HOUR_MS if number == 5 else now_ms - 1000 * DAY_MS
        row = {key: f"x{number}", column: at_ms, **more}
        if table not in OF_NONE:
            row["project_id"] = project_id
        if table == "core_shelf":
            row["update_id"] = f"x{number}"
        if table == "dashboard_account_requests":
            row["browser_digest"] = f"x{number}"
        await tx.insert(table, row)


async def left(service: Service, table: str) -> list[str]:
    key = ROWS[table][0]
    async with service.db.read() as tx:
        return [row[key] for row in await tx.fetch_all(f"SELECT {key} FROM {table}")]
