"""What is known of a broadcast's recipients: found by status, and kept for a while."""

import re
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.mailings import purging
from msgsvc_core.mailings.models import RecipientStatus
from msgsvc_core.mailings.recipients import list_page
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import Tenant

from .conftest import AddPeople, add, counts, ended, events, recipients, shown, take

DAY_S = 24 * 3600


async def outcomes(client: httpx2.AsyncClient, job_id: str) -> dict[str, int]:
    """How many each filter finds."""
    found: dict[str, int] = {}
    for status in ("queued", "sent", "failed", "skipped", "unknown"):
        found[status] = len(await recipients(client, job_id, status=status))
    return found


@pytest.mark.both_databases
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
    [told] = await events(client, "broadcast.completed")
    assert [each["unknown"] for each in (done, told)] == [1, 1]


@pytest.mark.both_databases
async def test_those_in_doubt_get_it_again_only_as_far_as_the_audiences_permission_is_granted(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    ids = await people(4)
    await client.post("/v1/permissions", json={"key": "sale", "title": "Sale"})
    for each in ids:
        await client.put(f"/v1/subscribers/{each}/permissions/sale")
    lost = DeliveryError(Reason.PLATFORM_UNAVAILABLE, "connection lost", in_doubt=True)
    channel.failures += [lost, lost]
    job_id = await take(client, audience={"permission": "sale"})
    await ended(client, job_id)
    kept, withdrawn = [
        each["subscriber_id"] for each in await recipients(client, job_id, status="unknown")
    ]
    await client.delete(f"/v1/subscribers/{withdrawn}/permissions/sale")

    answer = await client.post(f"/v1/broadcast/{job_id}/resend-unknown")
    again = await ended(client, answer.json()["job_id"])

    assert counts(again) == (1, 0, 0, 1)
    assert again["audience"] == {"permission": "sale"}
    got = await recipients(client, again["job_id"])
    assert [each["subscriber_id"] for each in got] == [kept]


async def all_pages(client: httpx2.AsyncClient, job_id: str, **query: str) -> list[dict[str, Any]]:
    """The recipients of a status, page by page."""
    path, seen = f"/v1/broadcast/{job_id}/recipients", list[dict[str, Any]]()
    while True:
        page = (await client.get(path, params=query)).json()
        seen += page["data"]
        if page["next_cursor"] is None:
            return seen
        query["cursor"] = page["next_cursor"]


@pytest.mark.both_databases
async def test_pages_of_one_status_hold_each_recipient_once(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    ids = await people(9)
    channel.failures += [DeliveryError(Reason.INVALID_MESSAGE, "no")] * 9
    job_id = await take(client)
    await ended(client, job_id)

    seen = await all_pages(client, job_id, status="failed", limit="4")

    assert [each["subscriber_id"] for each in seen] == ids[::-1]


@pytest.mark.both_databases
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

        await list_page(Listening(), mailing, status, None, 51)  # type: ignore[arg-type] # asked for its SQL alone
        [(sql, params)] = asked
        if tx.dialect == "postgresql":
            # So few rows are read faster as they stand.
            await tx.execute("SET LOCAL enable_seqscan = off")
        explain = "EXPLAIN" if tx.dialect == "postgresql" else "EXPLAIN QUERY PLAN"
        plan = "\n".join(str(list(row)) for row in await tx.fetch_all(f"{explain} {sql}", params))

    assert re.search(r"core_recipients_not_sent", plan), plan
    assert "Sort" not in plan
    assert "TEMP B-TREE" not in plan


@pytest.mark.both_databases
async def test_who_waits_is_found_wherever_the_walk_has_come_to(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    first, again, in_hand, fourth, fifth, last = await people(6)
    job_id = await take(tenant.client, send_at="2026-02-01T00:00:00Z")
    key = {"project_id": tenant.project.project_id, "job_id": job_id}
    rows = [
        {
            **key,
            "subscriber_id": each,
            "bot": "messenger_a",
            "status": "sent" if each in (first, fourth) else "queued",
            "attempts": 1,
            "run_at_ms": 2**50 if each == again else None,
        }
        for each in (first, again, in_hand, fourth, fifth, last)
    ]
    way = {"bot": "messenger_a", "walked_to": fourth, "in_hand": f'["{in_hand}"]'}
    where = " WHERE project_id = :project_id AND job_id = :job_id"
    async with service.db.transaction() as tx:
        await tx.insert_many("core_recipients", rows)
        await tx.insert("core_mailing_ways", {**key, **way, "is_done": False})
        await tx.execute(
            f"UPDATE core_mailings SET status = 'running', total = 6, sent = 2{where}", key
        )

    waiting = await all_pages(tenant.client, job_id, status="queued", limit="1")
    async with service.db.transaction() as tx:
        await tx.execute(
            f"UPDATE core_mailings SET status = 'cancelled', finished_at_ms = 1{where}", key
        )
    cancelled = await all_pages(tenant.client, job_id, status="skipped", limit="3")

    assert [each["subscriber_id"] for each in waiting] == [last, fifth, in_hand, again]
    assert [each["subscriber_id"] for each in cancelled] == [last, fifth, in_hand, again]
    assert {each["status"] for each in cancelled} == {"skipped"}


@pytest.mark.both_databases
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
    assert "no longer stored" in resend.json()["error"]


async def test_ledger_of_what_has_not_ended_is_not_removed(
    service: Service, tenant: Tenant, channel: RecordingChannel, clock: FakeClock
) -> None:
    await add(service, tenant, 2)
    wait = DeliveryError(Reason.RATE_LIMITED, "429", retry_after_s=DAY_S)
    channel.failures += [wait] * 10
    job_id = await take(tenant.client)

    async def is_refused() -> bool:
        return len(channel.failures) < 10

    await until(is_refused)
    clock.advance(100 * DAY_S)
    await settled(service)

    assert (await shown(tenant.client, job_id))["recipients_until"] is None
    assert len(await recipients(tenant.client, job_id)) == 2
