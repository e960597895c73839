"""Traces: one send is one trace, from the request to the webhook, without secrets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import structlog.testing
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_core.telemetry.logs import add_trace
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.telegram import FakeTelegram
from msgsvc_devkit.webhooks import WebhookReceiver
from tests.api.subscribing import subscribing
from tests.spans import Recorded, Tree, span_id_of, trace_id_of

BOTH_DATABASES = pytest.mark.parametrize("backend", ["sqlite", "postgresql"], indirect=True)
AND_A_WORKER = pytest.mark.parametrize(
    ("backend", "runner"),
    [("sqlite", "embedded"), ("postgresql", "embedded"), ("postgresql", "redis")],
    indirect=True,
)

MakeTenant = Callable[..., Awaitable[Tenant]]

TEXT = "Your parcel is on its way"

WEBHOOK: Tree = ("process webhooks.deliver", [("POST", [])])
SENT: list[Tree] = [("transaction", []), ("POST /bot{token}/sendMessage", []), ("transaction", [])]


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as telegram:
        yield telegram


@pytest.fixture
async def service(
    make_service: ServiceFactory, telegram: FakeTelegram, recorded: Recorded
) -> Service:
    bot = {
        "plugin": "telegram",
        "token": telegram.bot.token,
        "base_url": telegram.url,
        "receiving": "poll",
    }
    service = await make_service(
        plugins=("telegram", "webhooks"),
        channels={"messenger_a": bot},
        webhooks={"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
        use_clock=SystemClock(),
        use_tracing=recorded.tracing,
    )

    async def knows_its_bot() -> bool:
        return service.channels["messenger_a"].profile is not None

    await until(knows_its_bot)
    return service


@pytest.fixture
async def anna(service: Service, tenant: Tenant, telegram: FakeTelegram) -> str:
    """Somebody who has subscribed."""
    answer = await tenant.client.post("/v1/subscribers/links", json={})
    await telegram.person("Anna").open(answer.json()["links"]["messenger_a"])

    async def subscribed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await tenant.client.get("/v1/subscribers")).json()["data"]
        return found

    [anna] = await until(subscribed, interval_s=0.05)
    await settled(service)
    return str(anna["subscriber_id"])


@pytest.fixture
async def webhook(tenant: Tenant, webhook_receiver: WebhookReceiver) -> WebhookReceiver:
    url = f"{webhook_receiver.url}/tok3n-of-the-receiver"
    body = {"url": url, "events": ["delivery.success", "delivery.failed"]}
    answer = await tenant.client.post("/v1/webhooks", json=body)
    assert answer.status_code == 201, answer.text
    webhook_receiver.secret = answer.json()["secret"]
    return webhook_receiver


@pytest.mark.both_databases
@AND_A_WORKER
async def test_a_send_is_one_trace_from_the_request_to_the_webhook(
    service: Service, tenant: Tenant, anna: str, webhook: WebhookReceiver, recorded: Recorded
) -> None:
    answer = await tenant.client.post("/v1/send", json={"subscriber_id": anna, "text": TEXT})
    delivery = await webhook.next("delivery.success")
    await settled(service)

    [request] = recorded.named("POST /v1/send")
    assert recorded.tree(request) == (
        "POST /v1/send",
        [("group commit", []), ("process message.deliver", [*SENT, WEBHOOK])],
    )
    assert request.parent is None
    assert request.attributes == {
        "http.request.method": "POST",
        "http.route": "/v1/send",
        "http.response.status_code": 202,
        "url.scheme": "http",
        "msgsvc.request_id": answer.headers["X-Request-Id"],
        "msgsvc.project_id": tenant.project.project_id,
    }
    [job] = recorded.named("process message.deliver")
    assert job.attributes is not None
    assert job.attributes["messaging.destination.name"] == "message.deliver"
    assert job.attributes["msgsvc.job.attempt"] == 1
    # The receiver can go on with the trace.
    [tried] = webhook.tries(delivery.delivery_id)
    [call] = recorded.within(recorded.named("process webhooks.deliver")[0])
    assert tried.headers["traceparent"].split("-")[1:3] == [trace_id_of(call), span_id_of(call)]


@pytest.mark.both_databases
@BOTH_DATABASES
async def test_attempts_of_a_job_and_of_a_webhook_are_spans_of_the_same_trace(
    service: Service,
    tenant: Tenant,
    anna: str,
    webhook: WebhookReceiver,
    telegram: FakeTelegram,
    recorded: Recorded,
) -> None:
    telegram.fail_next("sendMessage", 500, "Internal Server Error")
    webhook.fail(503)
    await tenant.client.post("/v1/send", json={"subscriber_id": anna, "text": TEXT})
    await webhook.next("delivery.success")
    await settled(service)

    [request] = recorded.named("POST /v1/send")
    assert recorded.tree(request) == (
        "POST /v1/send",
        [
            ("group commit", []),
            ("process message.deliver", SENT),
            ("process message.deliver", [*SENT, WEBHOOK, WEBHOOK]),
        ],
    )
    first, second = recorded.named("process message.deliver")
    assert first.attributes is not None
    assert second.attributes is not None
    assert first.attributes["msgsvc.job.outcome"] == "rescheduled"
    assert second.attributes["msgsvc.job.attempt"] == 2
    [*_, failed, _] = recorded.named("POST /bot{token}/sendMessage")
    assert failed.attributes is not None
    assert failed.attributes["http.response.status_code"] == 500
    assert failed.attributes["error.type"] == "500"
    assert not failed.status.is_ok


@BOTH_DATABASES
async def test_no_span_holds_a_secret_a_text_or_a_person(
    service: Service,
    tenant: Tenant,
    anna: str,
    webhook: WebhookReceiver,
    telegram: FakeTelegram,
    recorded: Recorded,
) -> None:
    telegram.break_next("sendMessage", "reset")
    webhook.hang_up()
    await tenant.client.get("/v1/messages", params={"subscriber_id": anna})
    await tenant.client.post("/v1/send", json={"subscriber_id": anna, "text": TEXT})
    await webhook.next()
    await settled(service)

    said = "\n".join(span.to_json() for span in recorded.spans)
    assert "sendMessage" in said
    assert "webhooks.deliver" in said
    assert isinstance(webhook.secret, str)
    secrets = [telegram.bot.token, telegram.bot.token.partition(":")[2], tenant.key, webhook.secret]
    for hidden in [*secrets, "tok3n-of-the-receiver", TEXT, "Anna", anna]:
        assert hidden not in said


@BOTH_DATABASES
async def test_a_person_who_subscribes_by_polling_begins_a_trace(
    service: Service, anna: str, recorded: Recorded
) -> None:
    [update] = recorded.named("process Started")
    assert update.parent is None
    names = [name for name, _ in recorded.tree(update)[1]]
    assert names == ["transaction"]
    # The greeting was enqueued in that transaction.
    [(_, within)] = recorded.tree(update)[1]
    assert [name for name, _ in within] == ["process channel.call"]


@BOTH_DATABASES
async def test_recurring_jobs_belong_to_no_trace(
    service: Service, anna: str, clock: FakeClock
) -> None:
    clock.advance(3600)
    await settled(service)
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT traceparent FROM core_jobs WHERE key = 'recurring'")

    assert rows
    assert {row["traceparent"] for row in rows} == {None}


CALLER = "0af7651916cd43dd8448eb211c80319c"


@pytest.mark.parametrize("trust", [True, False])
async def test_a_callers_trace_goes_on_only_if_callers_are_trusted(
    make_service: ServiceFactory, make_tenant: MakeTenant, recorded: Recorded, trust: bool
) -> None:
    service = await make_service(use_tracing=recorded.tracing, tracing={"trust_incoming": trust})
    tenant = await make_tenant(service)
    headers = {"traceparent": f"00-{CALLER}-b7ad6b7169203331-01"}
    answer = await tenant.client.get("/v1/project", headers=headers)

    [request] = recorded.named("GET /v1/project")
    assert answer.headers["X-Request-Id"].startswith("req_")
    assert (trace_id_of(request) == CALLER) is trust
    links = [f"{link.context.trace_id:032x}" for link in request.links]
    assert links == ([] if trust else [CALLER])


@pytest.mark.parametrize("header", ["", "00-0-0-00", f"ff-{CALLER}-b7ad6b7169203331-01", "\xff"])
async def test_an_invalid_traceparent_is_ignored(
    make_service: ServiceFactory, make_tenant: MakeTenant, recorded: Recorded, header: str
) -> None:
    service = await make_service(use_tracing=recorded.tracing, tracing={"trust_incoming": True})
    tenant = await make_tenant(service)
    answer = await tenant.client.get(
        "/v1/project", headers={"traceparent": header.encode("latin-1")}
    )

    [request] = recorded.named("GET /v1/project")
    assert answer.status_code == 200
    assert request.parent is None


async def test_pages_are_named_by_their_route_and_probes_are_not_traced(
    make_service: ServiceFactory, make_tenant: MakeTenant, recorded: Recorded
) -> None:
    service = await make_service(use_tracing=recorded.tracing)
    tenant = await make_tenant(service)
    for path in ("/healthz", "/readyz", "/metrics", "/docs/errors", "/no/such/page?token=abc"):
        await tenant.client.get(path)

    requests = [span.name for span in recorded.spans if span.name.startswith("GET")]
    assert requests == ["GET /docs/errors", "GET"]


@pytest.mark.both_databases
@BOTH_DATABASES
async def test_jobs_that_run_together_stay_in_their_own_traces(
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    clock: FakeClock,
    webhook_receiver: WebhookReceiver,
    recorded: Recorded,
) -> None:
    service = await make_service(
        plugins=("webhooks",),
        webhooks={"allow_http": True, "allow_cidrs": ["127.0.0.0/8"]},
        use_tracing=recorded.tracing,
    )
    tenant = await make_tenant(service)
    people = [await subscribing(service, tenant)(name) for name in ("Ann", "Ben", "Cleo")]
    body = {"url": webhook_receiver.url, "events": ["delivery.success"]}
    await tenant.client.post("/v1/webhooks", json=body)
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=60)]
    for person in people:
        await tenant.client.post("/v1/send", json={"subscriber_id": person, "text": TEXT})
        await settled(service)
    clock.advance(61)
    service.jobs.wake("channel:messenger_a", 0)
    await until(lambda: _count(webhook_receiver, 3))
    await settled(service)

    requests = recorded.named("POST /v1/send")
    trees = [recorded.tree(request)[1] for request in requests]
    delivered = [tree[-1] for tree in trees]
    # The transactions of several jobs belong to none of them.
    assert delivered == [("process message.deliver", [WEBHOOK])] * 3
    together = [span.attributes or {} for span in recorded.named("process message.deliver")]
    assert [each.get("messaging.batch.message_count") for each in together[-3:]] == [3, 3, 3]


async def _count(receiver: WebhookReceiver, count: int) -> bool:
    return len(receiver.requests) >= count


@BOTH_DATABASES
async def test_a_job_that_runs_much_later_begins_a_trace_that_links_to_its_cause(
    make_service: ServiceFactory, make_tenant: MakeTenant, clock: FakeClock, recorded: Recorded
) -> None:
    service = await make_service(use_tracing=recorded.tracing)
    tenant = await make_tenant(service)
    ann = await subscribing(service, tenant)("Ann")
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=4000)]
    await tenant.client.post("/v1/send", json={"subscriber_id": ann, "text": TEXT})
    await settled(service)
    clock.advance(4001)
    service.jobs.wake("channel:messenger_a", 0)
    await settled(service)

    [request] = recorded.named("POST /v1/send")
    first, late = recorded.named("process message.deliver")
    assert trace_id_of(first) == trace_id_of(request)
    assert late.parent is None
    assert [f"{link.context.span_id:016x}" for link in late.links] == [span_id_of(request)]


@pytest.mark.both_databases
@BOTH_DATABASES
async def test_explain_names_the_trace_of_a_message_and_of_a_job(
    make_service: ServiceFactory, make_tenant: MakeTenant, recorded: Recorded
) -> None:
    service = await make_service(use_tracing=recorded.tracing)
    tenant = await make_tenant(service)
    ann = await subscribing(service, tenant)("Ann")
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=60)]
    answer = await tenant.client.post("/v1/send", json={"subscriber_id": ann, "text": TEXT})
    await settled(service)

    [request] = recorded.named("POST /v1/send")
    messages, _, jobs, *_ = service.explainers()
    async with service.db.read() as tx:
        message = await messages.explain(tx, answer.json()["message_id"])
        assert message is not None
        job = await jobs.explain(tx, str(message.facts["job_id"]))
    assert job is not None
    assert message.facts["trace_id"] == trace_id_of(request)
    assert job.facts["trace_id"] == trace_id_of(request)


async def test_what_is_not_sampled_is_not_recorded_anywhere_later(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    recorded = Recorded(ALWAYS_OFF)
    service = await make_service(use_tracing=recorded.tracing)
    tenant = await make_tenant(service)
    ann = await subscribing(service, tenant)("Ann")
    await tenant.client.post("/v1/send", json={"subscriber_id": ann, "text": TEXT})
    await settled(service)

    assert recorded.spans == []
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(trace_id) FROM core_messages") == 0


async def test_lines_of_the_log_name_the_trace(
    make_service: ServiceFactory,
    make_tenant: MakeTenant,
    recorded: Recorded,
) -> None:
    service = await make_service(use_tracing=recorded.tracing)
    tenant = await make_tenant(service)
    ann = await subscribing(service, tenant)("Ann")
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.failures = [DeliveryError(Reason.USER_BLOCKED_BOT, "blocked")]
    with structlog.testing.capture_logs(processors=[add_trace]) as lines:
        await tenant.client.post("/v1/send", json={"subscriber_id": ann, "text": TEXT})
        await settled(service)

    [request] = recorded.named("POST /v1/send")
    [line] = [line for line in lines if line["event"] == "request"]
    assert line["trace_id"] == trace_id_of(request)
    assert line["span_id"] == span_id_of(request)


@BOTH_DATABASES
async def test_a_broadcast_runs_in_a_trace_of_its_own_which_its_messages_name(
    make_service: ServiceFactory, make_tenant: MakeTenant, recorded: Recorded
) -> None:
    service = await make_service(plugins=("broadcasts",), use_tracing=recorded.tracing)
    tenant = await make_tenant(service)
    for name in ("Ann", "Ben"):
        await subscribing(service, tenant)(name)
    answer = await tenant.client.post(
        "/v1/broadcast", json={"text": TEXT, "audience": {"all": True}}
    )
    assert answer.status_code == 202, answer.text

    async def completed() -> bool:
        found = await tenant.client.get(f"/v1/broadcast/{answer.json()['job_id']}")
        return bool(found.json()["status"] == "completed")

    await until(completed, interval_s=0.05)
    await settled(service)

    [request] = recorded.named("POST /v1/broadcast")
    runs = {trace_id_of(span): span for span in recorded.named("process mailing.send")}
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT trace_id FROM core_messages")
    assert len(rows) == 2
    for row in rows:
        run = runs[row["trace_id"]]
        assert run.parent is None
        [link] = run.links
        assert f"{link.context.trace_id:032x}" == trace_id_of(request)
