"""What a sign-in has to prove: only such channels are offered, and nothing is confirmed on others."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, Identity
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel

from .conftest import CALLBACK, Person
from .hosted import browsing

PHONE = {"must_prove": ["phone"]}


@pytest.fixture(autouse=True)
def phones(service: Service) -> RecordingChannel:
    """`messenger_b` proves a phone number, the other channels an account."""
    return set_identity(service, "messenger_b", "phone")


def set_identity(service: Service, name: str, identity: Identity) -> RecordingChannel:
    channel = service.channels[name]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = replace(channel.capabilities, identity=identity)
    return channel


@pytest.fixture
def bob_by_phone(service: Service) -> Person:
    return Person(service, "messenger_b", ChannelUser("2001", "Bob", None, "en"))


async def begin(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/auth/session", json=body)
    assert answer.status_code == 201, answer.text
    begun: dict[str, Any] = answer.json()
    return begun


async def verified(client: httpx2.AsyncClient, begun: dict[str, Any]) -> dict[str, Any]:
    status = (await client.get(f"/v1/auth/session/{begun['session_id']}/status")).json()
    answer = await client.post("/v1/auth/verify", json={"code": status["code"]})
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.both_databases
async def test_only_channels_that_prove_it_are_offered(
    client: httpx2.AsyncClient, bob_by_phone: Person
) -> None:
    begun = await begin(client, **PHONE)
    await bob_by_phone.press(await bob_by_phone.open(begun["links"]["messenger_b"]), "Yes")

    assert list(begun["links"]) == list(begun["qr"]) == ["messenger_b"]
    assert (await verified(client, begun))["proves"] == "phone"


async def test_what_was_proven_is_told(client: httpx2.AsyncClient, ann: Person) -> None:
    begun = await begin(client)
    await ann.press(await ann.open(begun["links"]["messenger_a"]), "Yes")

    assert (await verified(client, begun))["proves"] == "account"
    [told] = (await client.get("/v1/events?event=auth.completed")).json()["data"]
    assert told["data"]["proves"] == "account"


async def test_another_channel_does_not_ask(client: httpx2.AsyncClient, ann: Person) -> None:
    """Whoever takes the payload of one bot's link to another bot."""
    begun = await begin(client, **PHONE)

    said = await ann.open(begun["links"]["messenger_b"])

    assert not any(button.text == "Yes" for row in said.message.buttons for button in row)


async def test_a_channel_that_proves_less_by_then_confirms_nothing(
    client: httpx2.AsyncClient, service: Service, bob_by_phone: Person
) -> None:
    begun = await begin(client, **PHONE)
    asked = await bob_by_phone.open(begun["links"]["messenger_b"])
    set_identity(service, "messenger_b", "account")

    await bob_by_phone.press(asked, "Yes")

    status = (await client.get(f"/v1/auth/session/{begun['session_id']}/status")).json()
    assert status["status"] == "pending"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"channel": "messenger_a", **PHONE}, "channel"),
        ({"must_prove": ["homeserver"]}, "must_prove"),
        ({"must_prove": ["passport"]}, "must_prove[0]"),
    ],
)
async def test_what_no_channel_proves_starts_nothing(
    client: httpx2.AsyncClient, body: dict[str, Any], field: str
) -> None:
    answer = await client.post("/v1/auth/session", json=body)

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert answer.json()["error"].startswith(f"{field}: ")


async def test_a_static_link_keeps_what_it_asks_for(client: httpx2.AsyncClient) -> None:
    path = "/v1/auth/links/shop"
    made = await client.post(
        "/v1/auth/links",
        json={"slug": "shop", "name": "Shop", "callback_url": CALLBACK, **PHONE},
    )
    renamed = await client.patch(path, json={"name": "The shop"})
    freed = await client.patch(path, json={"must_prove": []})

    assert (made.status_code, made.json()["must_prove"]) == (201, ["phone"])
    assert list(made.json()["links"]) == ["messenger_b"]
    assert renamed.json()["must_prove"] == ["phone"]
    assert freed.json()["must_prove"] == []
    assert len(freed.json()["links"]) > 1


async def test_the_page_offers_and_accepts_only_these(
    client: httpx2.AsyncClient,
    service: Service,
    link: dict[str, Any],
    ann: Person,
    bob_by_phone: Person,
) -> None:
    await client.patch("/v1/auth/links/shop", json=PHONE)
    async with browsing(service) as browser:
        other = await browser.open("/login/shop?channel=messenger_a")
        await browser.open()
        shown = browser.shown.text
        await bob_by_phone.press(await bob_by_phone.open(browser.link("messenger_b")), "Yes")
        back = await browser.open()

    assert other.status_code == 400
    assert "This link can&#39;t be used" in other.text
    assert 'data-channel="messenger_a"' not in shown
    assert (back.status_code, "code=" in back.headers["Location"]) == (303, True)


@pytest.mark.both_databases
async def test_a_code_of_another_link_is_refused_where_more_must_be_proven(
    client: httpx2.AsyncClient, service: Service, ann: Person, bob_by_phone: Person
) -> None:
    """Somebody brings the bank's state to the link of the same project that asks for nothing."""
    for slug, more in (("books", {}), ("bank", PHONE)):
        body = {"slug": slug, "name": slug, "callback_url": f"https://{slug}.example/back"}
        assert (await client.post("/v1/auth/links", json=body | more)).status_code == 201
    codes = [
        await code_of(service, "/login/books?state=of-the-bank", ann),
        await code_of(service, "/login/bank?state=of-the-bank", bob_by_phone),
    ]

    refused = await client.post("/v1/auth/verify", json={"code": codes[0], **PHONE})
    elsewhere = await client.post("/v1/auth/verify", json={"code": codes[0], "must_prove": []})
    used = await client.post("/v1/auth/verify", json={"code": codes[0], **PHONE})
    body = {"code": codes[1], "must_prove": ["mailbox", "phone"]}
    accepted = await client.post("/v1/auth/verify", json=body)

    assert (refused.status_code, refused.json()["code"]) == (400, "auth_code_invalid")
    assert refused.json()["error"] == "code: of a sign-in that did not prove phone"
    assert (elsewhere.status_code, elsewhere.json()["proves"]) == (200, "account"), "not used up"
    assert (used.status_code, used.json()["code"]) == (400, "auth_code_invalid")
    assert (accepted.status_code, accepted.json()["proves"]) == (200, "phone")


async def code_of(service: Service, path: str, person: Person) -> str:
    """Of a sign-in on a hosted page."""
    async with browsing(service) as browser:
        await browser.open(path)
        await person.press(await person.open(browser.link(person.channel_name)), "Yes")
        back = await browser.reload()
    return str(httpx2.URL(back.headers["Location"]).params["code"])


async def test_a_link_in_print_is_asked_about_on_such_channels_alone(
    client: httpx2.AsyncClient, link: dict[str, Any], ann: Person, bob_by_phone: Person
) -> None:
    await client.patch("/v1/auth/links/shop", json=PHONE)

    refused = await ann.open("?start=auth_shop")
    asked = await bob_by_phone.open("?start=auth_shop")

    assert "Sign in" not in refused.message.text
    assert asked.message.text.startswith("Sign in")


async def test_a_guarantee_counts_once(client: httpx2.AsyncClient, link: dict[str, Any]) -> None:
    changed = await client.patch("/v1/auth/links/shop", json={"must_prove": ["phone", "phone"]})

    assert changed.json()["must_prove"] == ["phone"]
