"""Supabase's send SMS hook: its bodies, its signature by Standard Webhooks, and how it is refused."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest
from httpx2 import AsyncClient

from msgsvc_devkit import FakeClock, RecordingChannel
from plugins.areas.gateway.tests.conftest import (
    PHONE,
    Join,
    Make,
    Post,
    messages,
    recorded,
    refusal,
)

KEY = b"k" * 32
SECRET = "v1,whsec_" + base64.b64encode(KEY).decode()


def signed(body: bytes, at_s: int, key: bytes = KEY) -> dict[str, str]:
    """The headers of Supabase's request, made from the text of the standard."""
    text = b"msg-1." + str(at_s).encode() + b"." + body
    signature = base64.b64encode(hmac.digest(key, text, hashlib.sha256)).decode()
    return {
        "webhook-id": "msg-1",
        "webhook-timestamp": str(at_s),
        "webhook-signature": f"v1,{signature}",
    }


def body_of(**changed: Any) -> bytes:
    body = json.loads(recorded("supabase"))
    return json.dumps({**body, **changed}).encode()


@pytest.mark.both_databases
async def test_supabases_code_goes_to_the_number_in_our_words(
    make: Make,
    post: Post,
    join: Join,
    first: RecordingChannel,
    client: AsyncClient,
    clock: FakeClock,
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("supabase", signing_key=SECRET)
    body, now_s = recorded("supabase"), clock.now_ms() // 1000

    answers = [await post(gateway, body, **signed(body, now_s)) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    # A retry, which Supabase signs anew, is one message.
    [sent] = first.sent
    assert sent.message.text.startswith("Your code to sign in to ")
    assert "402913" in sent.message.text
    [message] = await messages(client, gateway)
    assert message["status"] == "sent"
    assert "error" not in answers[0].json()


async def test_only_signed_requests_are_taken(
    make: Make, post: Post, join: Join, first: RecordingChannel, clock: FakeClock
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("supabase", signing_key=SECRET)
    body, now_s = recorded("supabase"), clock.now_ms() // 1000
    right = signed(body, now_s)
    wrong = [
        {},
        signed(body, now_s, b"x" * 32),
        signed(body + b" ", now_s),
        signed(body, now_s - 301),
        signed(body, now_s + 301),
        {**right, "webhook-id": "msg-2"},
        {**right, "webhook-timestamp": "9" * 40},
        {**right, "webhook-timestamp": "now"},
    ]

    for headers in wrong:
        assert refusal(await post(gateway, body, **headers)) == (401, "gateway_signature_invalid")

    assert not first.sent


async def test_while_its_secret_is_replaced_one_of_two_signatures_is_enough(
    make: Make, post: Post, join: Join, clock: FakeClock
) -> None:
    """Supabase separates them by a comma and a space."""
    await join("messenger_a", phone=PHONE)
    gateway = await make("supabase", signing_key=SECRET)
    body, now_s = recorded("supabase"), clock.now_ms() // 1000
    right, other = signed(body, now_s), signed(body, now_s, b"x" * 32)
    for separator in (", ", " "):
        both = separator.join(each["webhook-signature"] for each in (right, other))
        answer = await post(gateway, body, **{**right, "webhook-signature": both})

        assert answer.status_code == 200, answer.text


async def test_a_changed_number_gets_the_code_and_the_old_one_does_not(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", "1001", phone=PHONE)
    await join("messenger_a", "1002", phone="+12025550199")
    gateway = await make("supabase")
    user = {"phone": "12025550123", "new_phone": "12025550199"}
    await post(gateway, body_of(user=user, sms={"otp": "402913", "phone": "12025550199"}))

    [sent] = first.sent
    assert sent.chat_id == "chat-1002"
    assert "sign in" not in sent.message.text


async def test_earlier_releases_name_the_number_in_the_user_alone(
    make: Make, post: Post, join: Join, first: RecordingChannel, client: AsyncClient
) -> None:
    await join("messenger_a", phone=PHONE)
    template = {"key": "gateway_mfa_verification", "text": "Second factor: {{ code }}"}
    await client.post("/v1/templates", json=template)
    gateway = await make("supabase")
    await post(gateway, body_of(metadata=None, sms={"otp": "402913"}))
    await post(gateway, body_of(sms={"otp": "402914", "sms_type": "mfa"}))

    assert [sent.chat_id for sent in first.sent] == ["chat-1001"] * 2
    assert first.sent[0].message.text.startswith("Your code to sign in to ")
    assert first.sent[1].message.text == "Second factor: 402914"


async def test_its_people_are_told_why_no_code_comes(make: Make, post: Post) -> None:
    """It shows the message of an answer with 200; any other is an error of its own server."""
    gateway = await make("supabase")
    unknown = await post(gateway, recorded("supabase"))
    wrong = await post(gateway, body_of(sms={"otp": ""}))

    assert unknown.status_code == 200
    assert unknown.json()["error"]["http_code"] == 422
    assert "can be reached" in unknown.json()["error"]["message"]
    assert (wrong.status_code, wrong.json()["error"]["http_code"]) == (200, 400)


@pytest.mark.parametrize("key", ["zitadel-key", "v1,whsec_c2hvcnQ=", "v1,whsec_%%%%%%%%"])
async def test_what_is_no_secret_of_supabases_is_refused(client: AsyncClient, key: str) -> None:
    body = {"name": "S", "sender": "supabase", "channels": ["messenger_a"], "signing_key": key}
    answer = await client.post("/v1/gateways", json=body)

    assert refusal(answer) == (400, "validation_failed")
    assert "v1,whsec_" in answer.json()["error"]
