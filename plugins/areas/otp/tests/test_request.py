"""Codes for people who are not subscribed yet."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.kernel.errors import BillingBlocked
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock
from msgsvc_otp import plugin

from .conftest import ann_of, refusal

NOT_VALID = "This link is no longer valid. Please ask the site for a new one."


@pytest.fixture
async def asked(client: httpx2.AsyncClient) -> dict[str, Any]:
    """A request for a code, as the API answers it."""
    answer = await client.post("/v1/otp/request", json={})
    assert answer.status_code == 201, answer.text
    request: dict[str, Any] = answer.json()
    return request


async def people(client: httpx2.AsyncClient) -> list[str]:
    found = (await client.get("/v1/subscribers")).json()["data"]
    return [person["first_name"] for person in found]


async def test_request_has_a_link_and_a_qr_code_for_every_channel(asked: dict[str, Any]) -> None:
    link = asked["links"]["messenger_a"]
    payload = link.partition("?start=")[2]

    assert set(asked) == {"otp_id", "links", "qr", "expires_in"}
    assert asked["expires_in"] == 600
    assert set(asked["links"]) == set(asked["qr"]) == {"messenger_a", "messenger_b"}
    assert payload.startswith("otp_")
    assert len(payload) == 4 + 22
    assert asked["qr"]["messenger_a"].endswith(f"/qr/messenger_a/{payload}.svg")
    assert asked["otp_id"] not in link


async def test_who_opens_the_link_is_subscribed_and_sent_the_code(
    client: httpx2.AsyncClient, asked: dict[str, Any], ann: Any, verify: Any, seen: Any
) -> None:
    waiting = (await client.get(f"/v1/otp/{asked['otp_id']}")).json()
    said = await ann.open(asked["links"]["messenger_a"])
    sent = (await client.get(f"/v1/otp/{asked['otp_id']}")).json()
    answer = await verify(otp_id=asked["otp_id"], code=ann.code)

    assert (waiting["status"], waiting["subscriber_id"]) == ("pending", None)
    assert said.startswith("Your code for Shop:")
    assert len(ann.messages) == 1
    assert sent["status"] == "sent"
    assert answer.json()["subscriber_id"] == sent["subscriber_id"]
    assert answer.json()["first_name"] == "Ann"
    assert await seen() == [("otp.sent", 3), ("otp.verified", 2)]
    (created,) = (await client.get("/v1/events?event=subscription.created")).json()["data"]
    assert created["data"]["source"] == "otp"


async def test_time_of_the_code_begins_when_the_link_is_opened(
    client: httpx2.AsyncClient, asked: dict[str, Any], ann: Any, verify: Any, clock: FakeClock
) -> None:
    clock.advance(599)
    await ann.open(asked["links"]["messenger_a"])
    clock.advance(299)

    assert (await verify(otp_id=asked["otp_id"], code=ann.code)).status_code == 200


async def test_link_ends_after_its_time(
    client: httpx2.AsyncClient, asked: dict[str, Any], ann: Any, verify: Any, clock: FakeClock
) -> None:
    clock.advance(600)

    assert await ann.open(asked["links"]["messenger_a"]) == NOT_VALID
    assert (await client.get(f"/v1/otp/{asked['otp_id']}")).json()["status"] == "expired"
    assert refusal(await verify(otp_id=asked["otp_id"], code="123456")) == (400, "otp_expired")
    assert await people(client) == []


async def test_first_who_opens_the_link_has_it(
    client: httpx2.AsyncClient, asked: dict[str, Any], ann: Any, bob: Any
) -> None:
    await ann.open(asked["links"]["messenger_a"])

    said = await bob.open(asked["links"]["messenger_a"])

    assert said.startswith("Эта ссылка")
    assert await people(client) == ["Ann"]


async def test_who_opens_it_again_is_told_to_look_above(
    asked: dict[str, Any], ann: Any, verify: Any, clock: FakeClock
) -> None:
    await ann.open(asked["links"]["messenger_a"])
    code = ann.code

    said = await ann.open(asked["links"]["messenger_a"])

    assert said == "Your code for Shop is already in this chat, just above."
    assert (await verify(otp_id=asked["otp_id"], code=code)).status_code == 200
    assert await ann.open(asked["links"]["messenger_a"]) == NOT_VALID


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_twenty_people_who_open_it_at_once_get_one_code(
    service: Service, client: httpx2.AsyncClient, asked: dict[str, Any], ann: Any
) -> None:
    crowd = [
        replace(ann, user=ChannelUser(str(number), f"P{number}", None, "en"))
        for number in range(20)
    ]

    said = await asyncio.gather(*(one.open(asked["links"]["messenger_a"]) for one in crowd))

    assert Counter(text.startswith("Your code") for text in said) == {True: 1, False: 19}
    assert len(await people(client)) == 1


async def test_channel_of_the_request_is_the_only_one(client: httpx2.AsyncClient, ann: Any) -> None:
    request = (await client.post("/v1/otp/request", json={"channel": "messenger_b"})).json()
    there = replace(ann, channel_name="messenger_b")
    payload = request["links"]["messenger_b"].partition("?start=")[2]

    assert set(request["links"]) == set(request["qr"]) == {"messenger_b"}
    assert await ann.open(f"https://x.example?start={payload}") == NOT_VALID
    assert (await there.open(request["links"]["messenger_b"])).startswith("Your code")


async def test_limits_hold_for_links_too_and_the_link_can_be_opened_later(
    client: httpx2.AsyncClient,
    asked: dict[str, Any],
    ann: Any,
    send: Any,
    verify: Any,
    clock: FakeClock,
) -> None:
    await send()
    clock.advance(10)

    soon = await ann.open(asked["links"]["messenger_a"])
    clock.advance(20)
    later = await ann.open(asked["links"]["messenger_a"])

    assert soon == "You just got a code. Open the link again in 20 s."
    assert later.startswith("Your code for Shop:")
    assert (await verify(otp_id=asked["otp_id"], code=ann.code)).status_code == 200


async def test_who_had_five_codes_in_the_hour_is_told_how_long_to_wait(
    client: httpx2.AsyncClient, asked: dict[str, Any], ann: Any, send: Any, clock: FakeClock
) -> None:
    for number in range(5):
        await send(purpose=f"p{number}")
    clock.advance(59)

    said = await ann.open(asked["links"]["messenger_a"])

    assert said == "You got too many codes. Try again in 60 min."


async def test_code_of_a_link_ends_the_one_before_of_the_same_purpose(
    client: httpx2.AsyncClient,
    asked: dict[str, Any],
    ann: Any,
    ann_id: str,
    send: Any,
    verify: Any,
    clock: FakeClock,
) -> None:
    first = await send()
    clock.advance(30)

    await ann.open(asked["links"]["messenger_a"])

    assert (await client.get(f"/v1/otp/{first}")).json()["status"] == "superseded"
    answer = await verify(subscriber_id=ann_id, code=ann.code)
    assert answer.json()["otp_id"] == asked["otp_id"]


async def test_code_that_nobody_was_sent_can_not_be_given(
    client: httpx2.AsyncClient, asked: dict[str, Any], verify: Any
) -> None:
    answer = await verify(otp_id=asked["otp_id"], code="123456")

    assert refusal(answer) == (400, "otp_invalid")
    assert answer.json()["error"] == "code: none was sent yet; nobody has opened the link"


@pytest.mark.shared_service
@pytest.mark.parametrize("payload", ["otp_", "otp_x", "otp_" + "a" * 22, "otp_" + "a" * 23])
async def test_link_of_nothing_is_not_valid(service: Service, ann: Any, payload: str) -> None:
    assert await ann.open(f"https://x.example?start={payload}") == NOT_VALID


class Refusing:
    """Accounts of a project that may buy nothing."""

    @hookimpl
    async def charge(self) -> None:
        raise BillingBlocked


async def test_who_opens_a_link_that_can_not_be_paid_for_is_told_and_not_subscribed(
    make_service: Any, make_tenant: Any
) -> None:
    service = await make_service(extra_plugins=[("otp", plugin), ("accounts", Refusing())])
    client = (await make_tenant(service)).client
    asked = (await client.post("/v1/otp/request", json={})).json()

    said = await ann_of(service).open(asked["links"]["messenger_a"])

    assert said == "Shop can't send you a code at the moment. Please try later."
    assert await people(client) == []
    assert (await client.get(f"/v1/otp/{asked['otp_id']}")).json()["status"] == "pending"
