"""What is known of a broadcast's recipients: found by status, and kept for a while."""

import re
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.mailings import ledger, purging
from msgsvc_core.mailings.models import RecipientStatus
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock, RecordingChannel, settled, until
from msgsvc_core.testing.fixtures import Tenant

from .conftest import AddPeople, add, counts, ended, recipients, shown, take

DAY_S = 24 * 3600


async def outcomes(client: httpx2.AsyncClient, job_id: str) -> dict[str, int]:
    """How many each filter finds."""
    found: dict[str, int] = {}
    for status in ("queued", "sent", "failed", "skipped", "unknown"):
        found[status] = len(await recipients(client, job_id, status=status))
    return found


async def test_recipients_are_found_by_what_became_of_them(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    ids = await people(10)
    channel.failures += [
        DeliveryError(Reason.PLATFORM_UNAVAILABLE, "lost", in_doubt=True),
        DeliveryError(Reason.CHAT_NOT_FOUND, "gone"),
        DeliveryError(Reason.INVALID_MESSAGE, "no"),
    ]
    job_id = await take(client, send_at="2026-01-15T12:00:05Z")
    before = await outcomes(client, job_id)
    await client.delete(f"/v1/subscribers/{ids[4]}")
    clock.advance(5)

    done = await ended(client, job_id)

    assert set(before.values()) == {0}
    # Who left before it began is not in it.
    assert counts(done) == (6, 3, 0, 9)
    found = await outcomes(client, job_id)
    assert found == {"queued": 0, "sent": 6, "failed": 2, "skipped": 0, "unknown": 1}


async def test_pages_of_one_status_hold_each_recipient_once(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    ids = await people(9)
    channel.failures += [DeliveryError(Reason.INVALID_MESSAGE, "no")] * 9
    job_id = await take(client)
    await ended(client, job_id)
    path, query = f"/v1/broadcast/{job_id}/recipients", {"status": "failed", "limit": "4"}
    seen: list[str] = []

    while True:
        page = (await client.get(path, params=query)).json()
        seen += [each["subscriber_id"] for each in page["data"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert seen == ids[::-1]


@pytest.mark.parametrize("status", ["failed", "skipped", "unknown"])
async def test_who_did_not_get_it_is_found_by_an_index(
    service: Service, tenant: Tenant, status: RecipientStatus
) -> None:
    await add(service, tenant, 1)
    job_id = await take(tenant.client)
    await ended(tenant.client, job_id)
    async with service.db.transaction() as tx:
        mailing = await service.mailings.find_any(tx, job_id)
        asked: list[tuple[str, Any]] = []

        class Listening:
            dialect = tx.dialect

            async def fetch_all(self, sql: str, params: Any) -> list[Any]:
                asked.append((sql, params))
                return []

        await ledger.list_page(Listening(), mailing, status, None, 51)  # type: ignore[arg-type] # asked for its SQL alone
        [(sql, params)] = asked
        if tx.dialect == "postgresql":
            # So few rows are read faster as they stand.
            await tx.execute("SET LOCAL enable_seqscan = off")
        explain = "EXPLAIN" if tx.dialect == "postgresql" else "EXPLAIN QUERY PLAN"
        plan = "\n".join(str(list(row)) for row in await tx.fetch_all(f"{explain} {sql}", params))

    assert re.search(r"core_recipients_told", plan), plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


async def test_ledger_is_kept_as_long_as_the_setting_says(
    service: Service,
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purging, "STEP", 3)
    await people(7)
    channel.failures.append(DeliveryError(Reason.PLATFORM_UNAVAILABLE, "lost", in_doubt=True))
    job_id = await take(client)
    done = await ended(client, job_id)
    clock.advance(60 * DAY_S)
    newer = await take(client)
    await ended(client, newer)

    clock.advance(29 * DAY_S)
    await settled(service)
    kept = await recipients(client, job_id)
    clock.advance(2 * DAY_S)

    async def is_gone() -> bool:
        return await recipients(client, job_id) == []

    await until(is_gone)
    await settled(service)
    resend = await client.post(f"/v1/broadcast/{job_id}/resend-unknown")

    assert done["recipients_until"] == "2026-04-15T12:00:00.000Z"
    assert len(kept) == 7
    assert len(await recipients(client, newer)) == 7
    assert counts(await shown(client, job_id)) == (6, 1, 0, 7)
    assert len((await client.get("/v1/messages", params={"limit": 100})).json()["data"]) == 14
    assert resend.status_code == 409
    assert "not kept" in resend.json()["error"]


async def test_ledger_of_what_has_not_ended_is_not_removed(
    service: Service, tenant: Tenant, channel: RecordingChannel, clock: FakeClock
) -> None:
    await add(service, tenant, 2)
    wait = DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=200 * DAY_S)
    channel.failures.append(wait)
    job_id = await take(tenant.client)

    async def is_refused() -> bool:
        return not channel.failures

    await until(is_refused)
    clock.advance(100 * DAY_S)
    await settled(service)

    assert (await shown(tenant.client, job_id))["recipients_until"] is None
    assert len(await recipients(tenant.client, job_id)) == 2
