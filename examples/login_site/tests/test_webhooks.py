"""Deliveries that the site receives: whose signature holds, and what is listed of them."""

import hashlib
import hmac
import io
import json
import secrets
import time
from typing import Any

import pytest

from examples.login_site.tests.browser import Browser
from examples.login_site.tests.fake_service import SECRET, secret_of


def signed(body: bytes, delivery_id: str, *secrets_: str) -> dict[str, str]:
    """The headers of a delivery signed with each of the secrets."""
    now = str(int(time.time()))
    digests = [
        hmac.new(secret.encode(), now.encode() + b"." + body, hashlib.sha256).hexdigest()
        for secret in secrets_
    ]
    signature = ",".join([f"t={now}", *(f"v1={digest}" for digest in digests)])
    return {"X-Service-Signature": signature, "X-Service-Delivery-Id": delivery_id}


async def deliver(browser: Browser, body: bytes, headers: dict[str, str]) -> int:
    async with browser.http.post("/webhooks", data=body, headers=headers) as response:
        return response.status


async def listed(browser: Browser, delivery_id: str) -> list[dict[str, Any]]:
    received = await browser.json("/events.json")
    return [one for one in received if one["delivery_id"] == delivery_id]


def event_body(first_name: str) -> bytes:
    # Spaces and Cyrillic as no serialiser would write them again: the raw bytes are what counts.
    data = json.dumps({"first_name": first_name}, ensure_ascii=False)
    return f'{{ "event":"auth.completed",  "data": {data} }}'.encode()


async def test_a_signed_delivery_is_listed_as_valid(browser: Browser) -> None:
    body = event_body("Анна")

    status = await deliver(browser, body, signed(body, "whd_valid", SECRET))

    [event] = await listed(browser, "whd_valid")
    assert status == 204
    assert event.pop("received_at").endswith("Z")
    assert event == {
        "delivery_id": "whd_valid",
        "event": "auth.completed",
        "data": {"first_name": "Анна"},
        "signature_valid": True,
        "tries": 1,
    }


async def test_one_matching_signature_of_two_is_enough(browser: Browser) -> None:
    body = event_body("Jan")

    status = await deliver(browser, body, signed(body, "whd_rotated", secret_of(b"old"), SECRET))

    assert status == 204


@pytest.mark.parametrize(
    "signature", ["", "t=1", "t=1,v1=00", "t=1,v1=", "v1=ключ", "garbage", "t=1,v1=" + "0" * 64]
)
async def test_a_bad_signature_is_refused_and_its_content_not_kept(
    browser: Browser, signature: str
) -> None:
    delivery_id = f"whd_{secrets.token_hex(4)}"
    headers = {"X-Service-Signature": signature, "X-Service-Delivery-Id": delivery_id}

    status = await deliver(browser, event_body("Mallory"), headers)

    [event] = await listed(browser, delivery_id)
    assert status == 400
    assert (event["signature_valid"], event["data"]) == (False, None)


async def test_a_changed_body_is_refused(browser: Browser) -> None:
    headers = signed(event_body("Kim"), "whd_changed", SECRET)

    assert await deliver(browser, event_body("Kim "), headers) == 400


async def test_a_repeated_delivery_is_counted_and_listed_once(browser: Browser) -> None:
    body = event_body("Lena")

    first = await deliver(browser, body, signed(body, "whd_twice", SECRET))
    second = await deliver(browser, body, signed(body, "whd_twice", SECRET))

    [event] = await listed(browser, "whd_twice")
    assert (first, second) == (204, 204)
    assert event["tries"] == 2


async def test_a_forged_delivery_does_not_take_the_id_of_a_real_one(browser: Browser) -> None:
    body = event_body("Mira")

    await deliver(browser, body, signed(body, "whd_raced", secret_of(b"wrong")))
    await deliver(browser, body, signed(body, "whd_raced", SECRET))

    marks = [event["signature_valid"] for event in await listed(browser, "whd_raced")]
    assert sorted(marks) == [False, True]


async def test_a_body_beyond_the_limit_is_refused(browser: Browser) -> None:
    body = b" " * (1_048_576 + 1)
    headers = signed(body, "whd_large", SECRET)

    async with browser.http.post("/webhooks", data=io.BytesIO(body), headers=headers) as response:
        assert response.status == 413
