"""What need not be remembered any longer is removed, and nothing else."""

from typing import Any

import httpx2
import pytest

from msgsvc_core import housekeeping
from msgsvc_core.db import Tx
from msgsvc_core.jobs import JobContext, Stopping, steps
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, settled
from msgsvc_core.testing.fixtures import Tenant


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


@pytest.mark.parametrize(
    ("table", "column", "more"),
    [
        ("core_events", "occurred_at_ms", {"name": "x", "data": "{}"}),
        ("core_audit", "at_ms", {"action": "x", "detail": "{}", "ip": ""}),
    ],
)
async def test_what_is_old_goes_a_step_at_a_time(
    service: Service,
    tenant: Tenant,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    column: str,
    more: dict[str, Any],
) -> None:
    monkeypatch.setattr(steps, "STEP", 2)
    taken: list[int] = []
    monkeypatch.setattr(housekeeping, "in_steps", noting(taken))
    await settled(service)
    key = {"core_events": "event_id", "core_audit": "entry_id"}[table]
    old_ms = clock.now_ms() - 1000 * 24 * 3600 * 1000
    async with service.db.transaction() as tx:
        await tx.execute(f"DELETE FROM {table}")
        for number in range(6):
            at_ms = old_ms if number < 5 else clock.now_ms()
            ids = {"project_id": tenant.project.project_id, key: f"x{number}"}
            await tx.insert(table, {**ids, column: at_ms, **more})
    taken.clear()
    clock.advance(3600)
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all(f"SELECT {key} FROM {table}")
    assert [row[key] for row in left] == ["x5"]
    assert [count for count in taken if count] == [2, 2, 1]


async def test_a_stop_waits_for_one_step_and_no_more(service: Service) -> None:
    class Context:
        stopping = False

        def __init__(self, service: Service) -> None:
            self.service = service

    context, taken = Context(service), list[int]()

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
