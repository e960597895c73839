"""Programs whose request can't be written: their fields are found by paths."""

import json
from typing import Any

import pytest
from httpx2 import AsyncClient

from msgsvc_devkit import RecordingChannel
from plugins.areas.gateway.tests.conftest import PHONE, Join, Make, Post, refusal

PATHS = {"to": "user.phone", "code": "sms.otp", "id": "metadata.0.uuid"}


def body_of(**changed: Any) -> bytes:
    body = {
        "user": {"phone": PHONE},
        "sms": {"otp": "402913"},
        "metadata": [{"uuid": "u-1"}],
        "purpose": "sign_in",
        **changed,
    }
    return json.dumps(body).encode()


@pytest.mark.both_databases
async def test_fields_are_found_where_the_program_has_them(
    make: Make, post: Post, join: Join, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    gateway = await make("generic", paths=PATHS)
    answers = [
        await post(gateway, body_of()),
        # The same id is the same message, whatever else it says.
        await post(gateway, body_of(sms={"otp": "402914"})),
        # A code as a number; without an id the body is what makes it one.
        await post(gateway, body_of(sms={"otp": 402915}, metadata=[])),
    ]

    assert [answer.status_code for answer in answers] == [200] * 3
    assert [("402913" in s.message.text, "402915" in s.message.text) for s in first.sent] == [
        (True, False),
        (False, True),
    ]
    # Fields without a path have their own names at the top.
    assert first.sent[0].message.text.startswith("Your code to sign in to ")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (body_of(user={}), "user.phone"),
        (body_of(user={"phone": None}), "user.phone"),
        (body_of(user=[PHONE]), "user.phone"),
        (b"[]", "user.phone"),
        (b"1", "user.phone"),
        (b"[" * 100_000, "JSON"),
        (b"", "JSON"),
        (body_of(sms={"otp": ["402913"]}), "code"),
        (body_of(sms={}), "code"),
        (body_of(metadata=[{"uuid": {"a": 1}}]), "id"),
    ],
)
async def test_a_body_without_them_is_refused_with_the_place(
    make: Make, post: Post, body: bytes, says: str
) -> None:
    gateway = await make("generic", paths=PATHS)
    answer = await post(gateway, body)

    assert answer.status_code in {400, 413}, answer.text
    assert says in answer.json()["error"] or answer.status_code == 413


async def test_paths_are_shown_changed_and_removed(make: Make, client: AsyncClient) -> None:
    made = await make("generic", paths=PATHS)
    path = f"/v1/gateways/{made['gateway_id']}"
    renamed = (await client.patch(path, json={"name": "New"})).json()
    changed = (await client.patch(path, json={"paths": {"to": "phone"}})).json()
    removed = (await client.patch(path, json={"paths": None})).json()

    assert made["paths"] == renamed["paths"] == PATHS
    assert changed["paths"] == {"to": "phone"}
    assert removed["paths"] is None


@pytest.mark.parametrize(
    ("sender", "paths"),
    [
        ("logto", {"to": "user.phone"}),
        ("generic", {"to": "user..phone"}),
        ("generic", {"to": ""}),
        ("generic", {"to": "a b"}),
        ("generic", {"to": "a" * 201}),
        ("generic", {"phone": "user.phone"}),
    ],
)
async def test_what_is_no_path_is_refused(
    client: AsyncClient, sender: str, paths: dict[str, str]
) -> None:
    body = {"name": "S", "sender": sender, "channels": ["messenger_a"], "paths": paths}

    assert refusal(await client.post("/v1/gateways", json=body)) == (400, "validation_failed")
