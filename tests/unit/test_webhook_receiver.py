"""The receiver for tests of one's own integration."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest

from msgsvc_core.security.signing import (
    InvalidWebhook,
    new_secret,
    open_webhook,
    verify_standard,
)
from msgsvc_devkit import until
from msgsvc_devkit.deadlines import patient
from msgsvc_devkit.webhooks import WebhookReceiver, signed_webhook

SECRET = new_secret()
Post = Callable[..., Awaitable[int]]


@pytest.fixture
async def post(webhook_receiver: WebhookReceiver) -> AsyncIterator[Post]:
    """Sends a delivery to the receiver, which knows the secret; returns the status."""
    webhook_receiver.secret = SECRET
    async with aiohttp.ClientSession() as session:

        async def send(
            event: str = "form.submitted", delivery_id: str | None = None, secret: str = SECRET
        ) -> int:
            headers, body = signed_webhook(event, {"n": 1}, secret, delivery_id=delivery_id)
            url = webhook_receiver.url
            async with session.post(
                url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                return answer.status

        yield send


async def test_delivery_is_handed_on_verified(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    assert await post("form.submitted", "whd_1") == 200

    delivery = await webhook_receiver.next()

    assert (delivery.event, delivery.data, delivery.delivery_id) == (
        "form.submitted",
        {"n": 1},
        "whd_1",
    )
    assert abs(delivery.timestamp - time.time()) < 60


async def test_event_that_is_still_to_come_is_waited_for(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    waiting = asyncio.create_task(webhook_receiver.next("otp.sent"))

    await post("form.submitted")
    await post("otp.sent")

    assert (await waiting).event == "otp.sent"
    assert (await webhook_receiver.next()).event == "form.submitted"


async def test_what_came_instead_is_told_when_none_comes(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    await post("form.submitted")

    with pytest.raises(TimeoutError, match=r"no otp.sent within 0.05 s; .*form.submitted \(200\)"):
        await webhook_receiver.next("otp.sent", timeout_s=0.05)


async def test_repeated_delivery_is_handed_on_once(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    await post(delivery_id="whd_1")
    await post(delivery_id="whd_1")

    await webhook_receiver.next()

    assert len(webhook_receiver.tries("whd_1")) == 2
    with pytest.raises(TimeoutError):
        await webhook_receiver.next(timeout_s=0.05)


async def test_wrong_signature_is_an_error(webhook_receiver: WebhookReceiver, post: Post) -> None:
    await post(secret=new_secret())

    with pytest.raises(InvalidWebhook, match="does not sign"):
        await webhook_receiver.next()


async def test_receiver_without_the_secret_says_so(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    await post()
    webhook_receiver.secret = ""

    with pytest.raises(ValueError, match="secret is empty"):
        await webhook_receiver.next()


async def test_either_secret_of_a_rotation_is_taken(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    new = new_secret()
    webhook_receiver.secret = [new, SECRET]

    await post(secret=SECRET)
    await post(secret=new)

    await webhook_receiver.next()
    await webhook_receiver.next()


async def test_failures_come_first_and_are_not_handed_on(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    webhook_receiver.fail(503, times=2, retry_after=7)

    statuses = [await post(delivery_id="whd_1") for _ in range(3)]
    delivery = await webhook_receiver.next()

    assert statuses == [503, 503, 200]
    assert [one.status for one in webhook_receiver.tries(delivery.delivery_id)] == statuses


async def test_redirect_leads_elsewhere(webhook_receiver: WebhookReceiver, post: Post) -> None:
    webhook_receiver.redirect("http://127.0.0.1:9/")

    assert await post() == 307
    assert await post() == 200


async def test_lost_connection_is_no_answer(webhook_receiver: WebhookReceiver, post: Post) -> None:
    webhook_receiver.hang_up()

    with pytest.raises(aiohttp.ServerDisconnectedError):
        await post(delivery_id="whd_1")
    assert [one.status for one in webhook_receiver.tries("whd_1")] == [None]


async def test_slow_answer_that_nobody_waits_for_is_no_answer(
    webhook_receiver: WebhookReceiver, post: Post
) -> None:
    webhook_receiver.be_slow(30)

    with pytest.raises(TimeoutError):
        # As long as a busy machine may take to send it.
        async with asyncio.timeout(patient(2)):
            await post(delivery_id="whd_1")

    async def noticed() -> bool:
        return bool(webhook_receiver.tries("whd_1"))

    await until(noticed)
    assert webhook_receiver.tries("whd_1")[0].status is None


def test_signed_webhook_is_one_of_ours_in_both_forms() -> None:
    headers, body = signed_webhook(
        "otp.sent", {"name": "Zoë"}, SECRET, delivery_id="whd_1", timestamp=5
    )

    delivery = open_webhook(headers, body, SECRET)

    assert (delivery.delivery_id, delivery.event, delivery.timestamp) == ("whd_1", "otp.sent", 5)
    assert delivery.data == {"name": "Zoë"}
    assert verify_standard(headers, body, SECRET)
