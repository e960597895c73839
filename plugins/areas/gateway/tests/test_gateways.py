"""Gateways: made, changed, deleted; and their URLs."""

from typing import Any

import pytest
from httpx2 import AsyncClient

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel
from plugins.areas.gateway.tests.conftest import PHONE, Join, Make, Post, recorded, refusal


async def test_a_gateway_is_shown_without_its_secret(make: Make, client: AsyncClient) -> None:
    made = await make("zitadel", signing_key="zitadel-key")
    url = made.pop("url")

    shown = (await client.get(f"/v1/gateways/{made['gateway_id']}")).json()
    listed = (await client.get("/v1/gateways")).json()["data"]

    assert "/compat/zitadel/" in url
    assert shown == made
    assert listed == [made]
    assert made["has_signing_key"]
    assert "zitadel-key" not in str(shown)


async def test_name_channels_and_key_can_be_changed(make: Make, client: AsyncClient) -> None:
    made = await make("zitadel", signing_key="zitadel-key")
    path = f"/v1/gateways/{made['gateway_id']}"

    changed = (
        await client.patch(
            path, json={"name": "New", "channels": ["messenger_b"], "signing_key": None}
        )
    ).json()

    assert (changed["name"], changed["channels"], changed["has_signing_key"]) == (
        "New",
        ["messenger_b"],
        False,
    )
    assert (await client.get(path)).json() == changed


@pytest.mark.parametrize(
    "body",
    [
        {"sender": "okta"},
        {"channels": []},
        {"channels": ["unknown"]},
        {"channels": ["messenger_a", "messenger_a"]},
        {"name": ""},
        {"signing_key": "logto-does-not-sign"},
    ],
)
async def test_what_makes_no_gateway_is_refused(
    make: Make, client: AsyncClient, body: dict[str, Any]
) -> None:
    whole = {"name": "Logto", "sender": "logto", "channels": ["messenger_a"], **body}

    assert refusal(await client.post("/v1/gateways", json=whole)) == (400, "validation_failed")
    gateway = await make("logto")
    if "sender" not in body:
        answer = await client.patch(f"/v1/gateways/{gateway['gateway_id']}", json=body)
        assert refusal(answer) == (400, "validation_failed")


async def test_a_project_has_so_many_gateways(make: Make, client: AsyncClient) -> None:
    for _ in range(20):
        await make("novu")

    body = {"name": "Novu", "sender": "novu", "channels": ["messenger_a"]}
    assert refusal(await client.post("/v1/gateways", json=body)) == (409, "conflict")


async def test_after_a_rotation_both_urls_are_accepted_for_a_day(
    make: Make, post: Post, join: Join, client: AsyncClient, clock: FakeClock
) -> None:
    await join("messenger_a", phone=PHONE)
    old = await make("novu")
    path = f"/v1/gateways/{old['gateway_id']}/rotate-url"

    new = (await client.post(path)).json()

    assert new["url"] != old["url"]
    assert new["previous_valid_until"] == "2026-01-16T12:00:00.000Z"
    for each in (old, new):
        assert (await post(each, recorded("novu"))).status_code == 200
    clock.advance(24 * 3600)
    assert refusal(await post(old, recorded("novu"))) == (404, "not_found")
    assert (await post(new, recorded("novu"))).status_code == 200


async def test_a_url_is_that_of_its_sender_and_of_its_gateway(
    make: Make, post: Post, join: Join, client: AsyncClient, first: RecordingChannel
) -> None:
    await join("messenger_a", phone=PHONE)
    made = await make("novu")
    for url in (
        made["url"].replace("/novu/", "/logto/"),
        made["url"].replace("/novu/", "/okta/"),
        made["url"][:-1],
        made["url"] + "x",
    ):
        assert refusal(await post({"url": url}, recorded("novu"))) == (404, "not_found")

    await client.delete(f"/v1/gateways/{made['gateway_id']}")

    assert refusal(await post(made, recorded("novu"))) == (404, "not_found")
    assert refusal(await client.get(f"/v1/gateways/{made['gateway_id']}")) == (404, "not_found")
    assert first.sent == []


async def test_a_project_that_is_switched_off_takes_nothing(
    make: Make, post: Post, service: Service
) -> None:
    made = await make("novu")
    [project] = await service.projects.list()
    await service.projects.set_active(project.project_id, False)

    assert refusal(await post(made, recorded("novu"))) == (403, "project_inactive")


async def test_too_large_a_body_and_another_type_are_refused(make: Make, post: Post) -> None:
    made = await make("novu")

    large = await post(made, b'{"to":"' + b"1" * 70_000 + b'"}')
    other = await post(made, recorded("novu"), **{"Content-Type": "text/plain"})

    assert refusal(large) == (413, "payload_too_large")
    assert refusal(other) == (400, "bad_request")
