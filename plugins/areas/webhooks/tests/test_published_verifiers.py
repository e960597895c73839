"""Deliveries received over HTTP, verified by libraries that others have published.

`stripe` verifies the API's own header, whose form is Stripe's; `standardwebhooks` the headers of
Standard Webhooks. Both refuse what is older than five minutes, so these tests' time ends now.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import standardwebhooks
import stripe

from msgsvc_core.security.signing import InvalidWebhook, open_webhook, verify_standard
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.webhooks import ReceivedRequest, WebhookReceiver

#: Seconds for which a replaced secret still signs (decision 0075).
DAY_S = 24 * 3600

Verify = Callable[[ReceivedRequest, str], None]


def by_stripe(request: ReceivedRequest, secret: str) -> None:
    # Not construct_event: it goes on to read Stripe's own fields.
    stripe.WebhookSignature.verify_header(
        request.body.decode(), request.headers["X-Service-Signature"], secret, tolerance=300
    )


def by_standard_webhooks(request: ReceivedRequest, secret: str) -> None:
    standardwebhooks.Webhook(secret).verify(request.body, dict(request.headers))


def by_ours(request: ReceivedRequest, secret: str) -> None:
    open_webhook(request.headers, request.body, secret)
    if not verify_standard(request.headers, request.body, secret):
        raise InvalidWebhook("the headers of Standard Webhooks do not match")


VERIFIERS = [by_stripe, by_standard_webhooks, by_ours]
REFUSALS = (
    stripe.SignatureVerificationError,
    standardwebhooks.WebhookVerificationError,
    InvalidWebhook,
)


@pytest.fixture
def clock() -> FakeClock:
    """A day before now."""
    return FakeClock(datetime.now(UTC) - timedelta(seconds=DAY_S))


@pytest.fixture
def deliver(
    service: Service, tenant: Tenant, webhook_receiver: WebhookReceiver
) -> Callable[..., Any]:
    """Lets an event happen; returns the request that told of it."""

    async def happen(**fields: Any) -> ReceivedRequest:
        async with service.db.transaction() as tx:
            await service.events.emit(tx, tenant.project.project_id, "event.tracked", fields)
        await settled(service)
        return webhook_receiver.requests[-1]

    return happen


@pytest.mark.parametrize("verify", VERIFIERS)
async def test_delivery_verifies(
    clock: FakeClock,
    add_webhook: Any,
    webhook_receiver: WebhookReceiver,
    deliver: Any,
    verify: Verify,
) -> None:
    webhook = await add_webhook(webhook_receiver.url)
    clock.advance(DAY_S)

    request = await deliver(name="Привет, Zoë 👋", properties={"a": 1.0, "b": [None, "\u2028"]})

    verify(request, webhook["secret"])


@pytest.mark.parametrize("verify", VERIFIERS)
async def test_changed_delivery_does_not_verify(
    clock: FakeClock,
    add_webhook: Any,
    webhook_receiver: WebhookReceiver,
    deliver: Any,
    verify: Verify,
) -> None:
    webhook = await add_webhook(webhook_receiver.url)
    clock.advance(DAY_S)
    request = await deliver(name="visit", properties={})
    body = request.body.replace(b"visit", b"order")

    with pytest.raises(REFUSALS):
        verify(ReceivedRequest("POST", "/", request.headers, body, 200), webhook["secret"])


@pytest.mark.parametrize("verify", VERIFIERS)
async def test_both_secrets_verify_for_24_hours_after_a_rotation_and_then_the_new_one(
    clock: FakeClock,
    client: Any,
    add_webhook: Any,
    webhook_receiver: WebhookReceiver,
    deliver: Any,
    verify: Verify,
) -> None:
    webhook = await add_webhook(webhook_receiver.url)
    rotated = await client.post(f"/v1/webhooks/{webhook['webhook_id']}/rotate-secret")
    old, new = webhook["secret"], rotated.json()["secret"]

    clock.advance(DAY_S - 1)
    during = await deliver(name="visit", properties={})
    clock.advance(1)
    after = await deliver(name="visit", properties={})

    verify(during, old)
    verify(during, new)
    verify(after, new)
    with pytest.raises(REFUSALS):
        verify(after, old)


@pytest.mark.parametrize("verify", VERIFIERS)
async def test_every_try_of_a_retried_delivery_verifies(
    clock: FakeClock,
    service: Service,
    add_webhook: Any,
    webhook_receiver: WebhookReceiver,
    deliver: Any,
    verify: Verify,
) -> None:
    webhook = await add_webhook(webhook_receiver.url)
    webhook_receiver.fail(500, times=2)
    clock.advance(DAY_S)

    await deliver(name="visit", properties={})
    for wait_s in (1, 2):
        clock.advance(wait_s)
        await settled(service)
    webhook_receiver.secret = webhook["secret"]
    delivery = await webhook_receiver.next("event.tracked")
    tries = webhook_receiver.tries(delivery.delivery_id)

    assert [one.status for one in tries] == [500, 500, 200]
    assert len({one.headers["X-Service-Signature"] for one in tries}) == 3
    for one in tries:
        verify(one, webhook["secret"])
