"""GET /metrics: who may read it, and what it says."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import httpx2
import pytest
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.jobs import NewJob
from msgsvc_core.service import Service
from msgsvc_core.telemetry.database_metrics import FRESH_S, DatabaseMetrics
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

TOKEN = "a-token-of-some-length-for-tests"

#: Settings of a service that uses its database for nothing but what is asked of it.
AT_REST: dict[str, Any] = {"jobs": {"runner": "none"}, "own_channels": {"follow_s": 3600}}


def reader(service: Service, *, address: str = "127.0.0.1", **headers: str) -> httpx2.AsyncClient:
    """Somebody who asks from that address."""
    return httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=service.app, client=(address, 1)),
        base_url="http://msgsvc.test",
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )


async def status(service: Service, **who: str) -> int:
    async with reader(service, **who) as client:
        return (await client.get("/metrics")).status_code


async def figures(service: Service) -> Callable[..., float | None]:
    """Reads `/metrics`; then `value(name, **labels)` answers from what was read."""
    async with reader(service) as client:
        answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    return lambda name, **labels: found.get((f"msgsvc_{name}", frozenset(labels.items())))


# ---- who may read -------------------------------------------------------------------------------


@pytest.mark.shared_service
@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
async def test_this_machine_may_read(service: Service, address: str) -> None:
    assert await status(service, address=address) == 200


@pytest.mark.shared_service
@pytest.mark.parametrize("address", ["10.0.0.1", "203.0.113.7", "2001:db8::1", "testclient", ""])
async def test_nobody_else_may(service: Service, address: str, check_error: Any) -> None:
    async with reader(service, address=address) as client:
        answer = await client.get("/metrics")

    check_error(answer, 403, "forbidden")


@pytest.mark.shared_service
@pytest.mark.parametrize("header", ["X_Forwarded_For", "Forwarded", "Via", "X_Real_IP"])
async def test_who_comes_through_a_proxy_is_not_taken_for_this_machine(
    service: Service, header: str
) -> None:
    assert await status(service, **{header: "127.0.0.1"}) == 403


async def test_a_trusted_proxy_says_who_asks(make_service: ServiceFactory) -> None:
    service = await make_service(
        server={"trusted_proxies": ("127.0.0.1",)}, metrics={"allow": ("203.0.113.7",)}
    )

    assert await status(service, X_Forwarded_For="203.0.113.7") == 200
    assert await status(service, X_Forwarded_For="203.0.113.8") == 403
    assert await status(service) == 403


@pytest.mark.parametrize(
    ("header", "value"),
    [("Forwarded", "for=203.0.113.8"), ("Via", "1.1 x"), ("X_Forwarded_For", "unknown")],
)
async def test_behind_a_trusted_proxy_that_does_not_say_who_asks_nobody_is_this_machine(
    make_service: ServiceFactory, header: str, value: str
) -> None:
    service = await make_service(server={"trusted_proxies": ("127.0.0.1",)})

    assert await status(service, **{header: value}) == 403
    assert await status(service) == 200


async def test_the_token_opens_them_to_any_address(make_service: ServiceFactory) -> None:
    service = await make_service(metrics={"token": TOKEN})

    assert await status(service, address="203.0.113.7", Authorization=f"Bearer {TOKEN}") == 200
    assert await status(service, address="203.0.113.7", Authorization=f"Bearer {TOKEN}x") == 403
    assert await status(service, address="203.0.113.7", Authorization="Bearer ") == 403
    assert await status(service, address="203.0.113.7", Authorization=f"Basic {TOKEN}") == 403


async def test_an_api_key_is_no_token(service: Service, tenant: Tenant) -> None:
    authorization = f"Bearer {tenant.key}"

    assert await status(service, address="203.0.113.7", Authorization=authorization) == 403


# ---- requests -----------------------------------------------------------------------------------


async def test_requests_are_counted_by_template_and_status(
    service: Service, client: httpx2.AsyncClient
) -> None:
    for _ in range(3):
        await client.get("/v1/messages/msg_nothing")
    await client.get("/v1/project")

    value = await figures(service)

    labels = {"method": "GET", "endpoint": "/v1/messages/{message_id}"}
    assert value("http_requests_total", **labels, status="404") == 3
    assert value("http_requests_total", method="GET", endpoint="/v1/project", status="200") == 1
    assert value("http_request_duration_seconds_count", **labels) == 3
    assert value("http_request_duration_seconds_bucket", **labels, le="+Inf") == 3
    # The scrape itself.
    assert value("http_requests_in_flight") == 1


async def test_what_callers_make_up_makes_no_new_series(
    service: Service, client: httpx2.AsyncClient
) -> None:
    for number in range(5):
        await client.request(f"BREW{number}", f"/nothing/{number}")

    value = await figures(service)

    assert value("http_requests_total", method="OTHER", endpoint="page", status="404") == 5


async def test_rate_limited_requests_are_counted(
    make_service: ServiceFactory, make_tenant: Any
) -> None:
    service = await make_service(limits={"requests_per_minute": 2})
    tenant = await make_tenant(service)
    for _ in range(5):
        await tenant.client.get("/v1/project")

    value = await figures(service)

    assert value("rate_limited_requests_total") == 3


# ---- jobs and the database ----------------------------------------------------------------------


async def test_jobs_are_counted_by_the_prefix_of_their_lane(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(jobs={"runner": "none"})
    now_ms = clock.now_ms()
    async with service.db.transaction() as tx:
        for number in range(3):
            lane = f"channel:{number}"
            due = NewJob("message.deliver", lane=lane, run_at_ms=now_ms - 1000 * number)
            await service.jobs.enqueue(tx, due)
        later = NewJob("message.deliver", lane="channel:1", run_at_ms=now_ms + 60_000)
        await service.jobs.enqueue(tx, later)

    clock.advance(5)
    value = await figures(service)

    assert value("jobs", lane="channel", state="ready") == 3
    assert value("jobs", lane="channel", state="delayed") == 1
    assert value("jobs", lane="default", state="dead") == 0
    assert value("jobs_oldest_due_age_seconds", lane="channel") == 7
    assert value("jobs_oldest_due_age_seconds", lane="default") == 0
    assert value("database_up") == 1


async def test_the_backlog_of_each_channel_is_shown_and_those_of_projects_together(
    make_service: ServiceFactory, clock: FakeClock
) -> None:
    service = await make_service(jobs={"runner": "none"})
    now_ms = clock.now_ms()
    async with service.db.transaction() as tx:
        for number, key in enumerate(("messenger_a", "chn_1", "chn_2")):
            due = NewJob("message.deliver", lane=f"channel:{key}", run_at_ms=now_ms - 1000 * number)
            await service.jobs.enqueue(tx, due)

    clock.advance(5)
    value = await figures(service)

    assert value("channel_jobs", channel="messenger_a", state="ready") == 1
    assert value("channel_jobs", channel="messenger_a", state="dead") == 0
    assert value("channel_jobs", channel="own", state="ready") == 2
    assert value("channel_oldest_due_age_seconds", channel="messenger_a") == 5
    assert value("channel_oldest_due_age_seconds", channel="own") == 7
    assert value("job_runners") == 0


async def test_the_use_of_connections_is_shown(make_service: ServiceFactory) -> None:
    service = await make_service(**AT_REST)
    async with service.db.transaction():
        value = await figures(service)

    assert value("database_connections_in_use") == 1
    assert value("database_connections_waiting") == 0
    assert (value("database_connections_max") or 0) >= 2


async def test_who_waits_for_a_connection_is_shown(make_service: ServiceFactory) -> None:
    service = await make_service(database_pool=2, **AT_REST)

    async def write() -> None:
        async with service.db.transaction():
            pass

    async with service.db.transaction(), _second(service):
        waiting = asyncio.create_task(write())
        await asyncio.sleep(0)
        metrics = service.metrics.database
        samples = {family.name: family.samples for family in metrics.collect()}
        shown = samples["msgsvc_database_connections_waiting"][0].value
    await waiting

    assert shown == 1
    assert service.db.usage.waiting == service.db.usage.in_use == 0


@asynccontextmanager
async def _second(service: Service) -> Any:
    """The other connection of a pool of two. SQLite's one writer is taken already."""
    if service.db.dialect == "sqlite":
        yield
    else:
        async with service.db.transaction():
            yield


async def test_a_scrape_works_while_the_database_is_away(make_service: ServiceFactory) -> None:
    service = await make_service(jobs={"runner": "none"})
    await figures(service)
    service.metrics.database._queried_at -= FRESH_S
    await service.db.disconnect()
    try:
        value = await figures(service)
    finally:
        await service.db.connect()

    assert value("database_up") == 0
    # A number from before would look like one of now.
    assert value("jobs", lane="channel", state="ready") is None
    assert value("channel_jobs", channel="messenger_a", state="ready") is None
    assert value("job_runners") is None
    assert value("http_requests_in_flight") == 1


def database_metrics(service: Service, **more: Any) -> DatabaseMetrics:
    return DatabaseMetrics(
        db=service.db,
        clock=service.clock,
        count_jobs=partial(
            service.jobs.count_by_lane, names=[spec.name for spec in service.job_specs]
        ),
        count_runners=service.jobs.count_runners,
        lane_prefixes=lambda: ["default"],
        check_redis=service.limiter.check,
        **more,
    )


async def test_the_database_is_asked_once_for_many_scrapes(service: Service) -> None:
    seconds = 100.0
    metrics = database_metrics(service, monotonic=lambda: seconds)
    asked = 0

    async def count() -> None:
        nonlocal asked
        asked += 1

    metrics._query = count  # type: ignore[method-assign]  # counted, not asked
    await asyncio.gather(*(metrics.refresh() for _ in range(5)))
    within = asked
    seconds += FRESH_S
    await metrics.refresh()

    assert (within, asked) == (1, 2)


async def test_a_database_that_does_not_answer_is_not_waited_for(service: Service) -> None:
    metrics = database_metrics(service, timeout_s=0.01)

    async def hang() -> None:
        await asyncio.Event().wait()

    metrics._query = hang  # type: ignore[method-assign]  # a database that hangs
    await metrics.refresh()

    up = next(family for family in metrics.collect() if family.name == "msgsvc_database_up")
    assert up.samples[0].value == 0


# ---- deliveries, and what plugins add -----------------------------------------------------------


async def test_deliveries_are_counted_by_outcome(
    service: Service, client: httpx2.AsyncClient, channel: RecordingChannel, subscribe: Any
) -> None:
    subscriber_id = await subscribe("Ann")
    await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "one"})
    await settled(service)
    channel.failures.append(DeliveryError(Reason.INVALID_MESSAGE, "no"))
    await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "two"})
    await settled(service)

    value = await figures(service)

    labels = {"channel": "messenger_a"}
    assert value("deliveries_total", **labels, outcome="sent", reason="") == 1
    assert value("deliveries_total", **labels, outcome="failed", reason="invalid_message") == 1
    # Of the one that was sent.
    assert value("delivery_duration_seconds_count", **labels) == 1


def test_a_projects_own_channel_is_not_named(service: Service) -> None:
    service.metrics.count_deliveries(1, "a-tenants-secret-project", "sent")

    value = service.metrics.registry.get_sample_value

    labels = {"channel": "own", "outcome": "sent", "reason": ""}
    assert value("msgsvc_deliveries_total", labels) == 1


async def test_a_plugin_adds_its_own(service: Service) -> None:
    brews = Counter("msgsvc_coffee_brews", "Cups.", ["kind"], registry=service.metrics.registry)
    brews.labels("filter").inc()

    value = await figures(service)

    assert value("coffee_brews_total", kind="filter") == 1


async def test_two_services_count_apart(make_service: ServiceFactory) -> None:
    one, other = await make_service(), await make_service()
    one.metrics.count_deliveries(1, "messenger_a", "sent")

    labels = {"channel": "messenger_a", "outcome": "sent", "reason": ""}
    assert one.metrics.registry.get_sample_value("msgsvc_deliveries_total", labels) == 1
    assert other.metrics.registry.get_sample_value("msgsvc_deliveries_total", labels) is None


async def test_events_are_counted_by_name_and_messenger_once_they_are_committed(
    service: Service, client: httpx2.AsyncClient, subscribe: Any
) -> None:
    await subscribe("Ann")
    project_id = (await service.projects.create("Other")).project_id
    with pytest.raises(RuntimeError):
        async with service.db.transaction() as tx:
            await service.events.emit(tx, project_id, "batch.completed", ZERO)
            raise RuntimeError("undone")

    value = await figures(service)

    assert value("events_total", event="subscription.created", channel="messenger_a") == 1
    assert value("events_total", event="batch.completed", channel="") is None


ZERO = {"batch_id": "bat_1", "sent": 0, "failed": 0, "unknown": 0, "skipped": 0, "total": 0}
