"""The limits of sessions hold over processes and restarts, also without Redis."""

import asyncio
from contextlib import asynccontextmanager

import httpx2
import pytest

from msgsvc_auth import plugin
from msgsvc_core.limits import StoredHits
from msgsvc_core.limits.stored import SKEW_MS
from msgsvc_devkit import until

PER_HOUR = 5


@pytest.fixture
async def start(make_service):
    """`await start()`: a process of the same service, on the same database."""
    first = []

    async def start():
        shared = {"database_url": first[0].settings.database_url} if first else {}
        first.append(await make_service(extra_plugins=[("auth", plugin)], **shared))
        return first[-1]

    return start


@asynccontextmanager
async def client_at(service, tenant):
    """A client of the project that calls another process."""
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app),
        base_url="http://msgsvc.test",
        headers={"Authorization": f"Bearer {tenant.key}"},
    ) as client:
        yield client


async def open_sessions(by, count, **body):
    answers = [await by.post("/v1/auth/session", json=body) for _ in range(count)]
    return [answer.status_code for answer in answers]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_processes_let_through_what_one_would(start, make_tenant):
    one, other = await start(), await start()
    tenant = await make_tenant(one)
    async with client_at(other, tenant) as client:
        answers = await asyncio.gather(
            *(by.post("/v1/auth/session", json={}) for by in (tenant.client, client) * 10)
        )

    statuses = [answer.status_code for answer in answers]
    assert statuses.count(201) == PER_HOUR
    assert statuses.count(429) == 20 - PER_HOUR


async def test_a_restart_forgets_no_session_and_the_wait_goes_on(start, make_tenant, clock):
    tenant = await make_tenant(one := await start())
    before = await open_sessions(tenant.client, PER_HOUR)
    await one.stop()
    clock.advance(600)
    other = await start()
    async with client_at(other, tenant) as client:
        refused = await client.post("/v1/auth/session", json={})
        clock.advance(3000)
        later = await open_sessions(client, 1)

    assert before == [201] * PER_HOUR
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "3000")
    assert later == [201]


async def test_a_restart_forgets_no_session_of_an_address(make_service, make_tenant):
    settings = {"auth": {"sessions_per_hour": 100, "sessions_per_hour_per_address": 2}}
    one = await make_service(extra_plugins=[("auth", plugin)], **settings)
    tenant = await make_tenant(one)
    await open_sessions(tenant.client, 2, client={"ip": "203.0.113.7"})
    await one.stop()
    other = await make_service(
        extra_plugins=[("auth", plugin)], database_url=one.settings.database_url, **settings
    )
    async with client_at(other, tenant) as client:
        again = await open_sessions(client, 1, client={"ip": "203.0.113.7"})
        neighbour = await open_sessions(client, 1, client={"ip": "203.0.113.8"})

    assert (again, neighbour) == ([429], [201])


async def test_an_answer_that_is_repeated_takes_no_slot(start, make_tenant):
    client = (await make_tenant(await start())).client
    headers = {"Idempotency-Key": "the-same-session"}
    answers = [
        await client.post("/v1/auth/session", json={}, headers=headers) for _ in range(PER_HOUR)
    ]
    others = await open_sessions(client, PER_HOUR)

    assert len({answer.json()["session_id"] for answer in answers}) == 1
    assert others == [201] * (PER_HOUR - 1) + [429]


async def test_what_is_rolled_back_takes_no_slot(start, clock):
    service = await start()
    hits = StoredHits(clock)
    with pytest.raises(ZeroDivisionError):
        async with service.db.transaction() as tx:
            await hits.hit(tx, "key", 1, 60)
            raise ZeroDivisionError
    async with service.db.transaction() as tx:
        window = await hits.hit(tx, "key", 1, 60)

    assert window.allowed


async def test_guesses_at_a_password_are_counted_over_a_restart(start):
    one = await start()
    for _ in range(3):
        await one.limiter.hit("sign-in:email:ann@example.com", 3, 900)
    await one.stop()
    window = await (await start()).limiter.hit("sign-in:email:ann@example.com", 3, 900)

    assert not window.allowed


@pytest.mark.both_databases
@pytest.mark.parametrize(("ahead_ms", "allowed"), [(SKEW_MS, False), (SKEW_MS + 1, True)])
async def test_hits_of_a_clock_that_was_far_ahead_are_forgotten(start, clock, ahead_ms, allowed):
    service = await start()
    hits = StoredHits(clock)
    async with service.db.transaction() as tx:
        await hits.hit(tx, "key", 1, 60)
        await tx.execute("UPDATE core_limit_hits SET at_ms = at_ms + :ms", {"ms": ahead_ms})
    async with service.db.transaction() as tx:
        window = await hits.hit(tx, "key", 1, 60)

    assert window.allowed is allowed


async def test_hits_that_count_no_more_are_purged(start, clock):
    service = await start()
    async with service.db.transaction() as tx:
        await StoredHits(clock).hit(tx, "key", 1, 60)
    clock.advance(7200)

    async def none_is_left():
        async with service.db.read() as tx:
            return not await tx.fetch_val("SELECT COUNT(*) AS count FROM core_limit_hits")

    await until(none_is_left)
