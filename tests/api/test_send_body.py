"""What the body of a send may say: the limits of its fields, and the subscriber it names."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Send, Subscribe
from tests.api.reading import message_of

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a text of 4,001 characters": ({"text": "x" * 4001}, "text: must be at most 4000 characters"),
    "4,001 characters in bold": (
        {"text": f"**{'x' * 4001}**", "format": "markdown"},
        "text: must be at most 4000 characters",
    ),
    "16,001 characters with markup": (
        {"text": f"[x](https://shop.example/{'x' * 15_975})", "format": "markdown"},
        "text: must be at most 8000 characters with its markup",
    ),
    "four rows": ({"buttons": [[{"text": "A", "data": "a"}]] * 4}, "buttons: "),
    "four buttons in a row": ({"buttons": [[{"text": "A", "data": "a"}] * 4]}, "buttons[0]: "),
    "an empty row": ({"buttons": [[{"text": "A", "data": "a"}], []]}, "buttons[1]: "),
    "a button without text": ({"buttons": [[{"text": "", "data": "a"}]]}, "buttons[0][0].text: "),
    "a button without action": ({"buttons": [[{"text": "A"}]]}, "buttons[0][0]: "),
    "a button with two actions": (
        {"buttons": [[{"text": "A", "data": "a", "url": "https://example.com"}]]},
        "buttons[0][0]: ",
    ),
    "data of 65 bytes": ({"buttons": [[{"text": "A", "data": "x" * 65}]]}, "buttons[0][0]: "),
    "data of 66 bytes in 33 characters": (
        {"buttons": [[{"text": "A", "data": "й" * 33}]]},
        "buttons[0][0]: ",
    ),
    "data that looks like ours": (
        {"buttons": [[{"text": "A", "data": "~auth"}]]},
        "buttons[0][0]: ",
    ),
    "media of an unknown type": (
        {"media": {"type": "sticker", "url": "https://example.com/a"}},
        "media.type: ",
    ),
    "metadata of 4,097 bytes": ({"metadata": {"a": "x" * 4088}}, "metadata: "),
    "no time to live": ({"expires_in": 0}, "expires_in: "),
    "31 days to live": ({"expires_in": 31 * 24 * 3600}, "expires_in: "),
}

WRONG_URLS: dict[str, tuple[dict[str, Any], str]] = {
    "a script as link": (
        {"buttons": [[{"text": "A", "url": "javascript:alert(1)"}]]},
        "buttons[0][0].url: ",
    ),
    "a link with a space": (
        {"buttons": [[{"text": "A", "url": "https://example.com/a b"}]]},
        "buttons[0][0].url: ",
    ),
    "a link of 2,049 characters": (
        {"buttons": [[{"text": "A", "url": "https://example.com/" + "x" * 2029}]]},
        "buttons[0][0].url: ",
    ),
    "media from a file": ({"media": {"type": "image", "url": "file:///etc/passwd"}}, "media.url: "),
}

TAKEN: dict[str, dict[str, Any]] = {
    "a text of 4,000 characters": {"text": "й" * 4000},
    "4,000 characters in bold": {"text": f"**{'й' * 4000}**", "format": "markdown"},
    "8,000 characters that show 2,000": {"text": "&lt;" * 2000, "format": "html"},
    "3 by 3 buttons": {"buttons": [[{"text": "A", "data": "a"}] * 3] * 3},
    "data of 64 bytes": {"buttons": [[{"text": "A", "data": "й" * 32}]]},
    "a tilde inside data": {"buttons": [[{"text": "A", "data": "a~"}]]},
    "a link with letters of any script": {
        "buttons": [[{"text": "A", "url": "https://пример.рф/страница?x=%20"}]]
    },
    "metadata of 4,096 bytes": {"metadata": {"a": "x" * 4087}},
    "30 days to live": {"expires_in": 30 * 24 * 3600},
}


@pytest.mark.parametrize(("body", "begins"), REFUSED.values(), ids=REFUSED)
async def test_beyond_a_limit_the_call_is_refused_with_the_field(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError, body: dict[str, Any], begins: str
) -> None:
    answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi", **body})

    assert check_error(answer, 400, "validation_failed")["error"].startswith(begins)


@pytest.mark.shared_service
@pytest.mark.parametrize(("body", "begins"), WRONG_URLS.values(), ids=WRONG_URLS)
async def test_a_wrong_url_is_invalid_url_with_the_field(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError, body: dict[str, Any], begins: str
) -> None:
    answer = await client.post("/v1/send", json={"subscriber_id": ann, "text": "Hi", **body})

    assert check_error(answer, 400, "invalid_url")["error"].startswith(begins)


@pytest.mark.parametrize("body", TAKEN.values(), ids=TAKEN)
async def test_at_a_limit_the_message_is_sent(
    service: Service, client: httpx2.AsyncClient, send: Send, body: dict[str, Any]
) -> None:
    message_id = await send(**body)
    await settled(service)

    assert (await message_of(client, message_id))["status"] == "sent"


async def test_a_limit_can_be_raised_by_the_deployer(
    make_service: ServiceFactory, make_tenant: Callable[..., Awaitable[Tenant]]
) -> None:
    service = await make_service(limits={"button_rows": 1})
    client = (await make_tenant(service)).client

    limits = (await client.get("/v1/project")).json()["limits"]

    assert limits["button_rows"] == 1


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "validation_failed"),
        ({"subscriber_id": "sub_1", "external_id": "x"}, 400, "mutually_exclusive_identifiers"),
        ({"subscriber_id": "sub_nobody"}, 404, "subscriber_not_found"),
        ({"external_id": "nobody"}, 404, "subscriber_not_found"),
        ({"external_id": " x"}, 400, "invalid_external_id"),
    ],
)
async def test_a_send_names_exactly_one_subscriber(
    client: httpx2.AsyncClient,
    check_error: CheckError,
    body: dict[str, Any],
    status: int,
    code: str,
) -> None:
    answer = await client.post("/v1/send", json={"text": "Hi", **body})

    check_error(answer, status, code)


async def test_a_send_by_external_id_goes_to_the_most_recently_active_subscriber(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, clock: FakeClock
) -> None:
    await subscribe("Ann", external_id="customer-1")
    clock.advance(60)
    newer = await subscribe("Ann", channel="messenger_b")
    await client.patch(f"/v1/subscribers/{newer}", json={"external_id": "customer-1"})

    answer = await client.post("/v1/send", json={"external_id": "customer-1", "text": "Hi"})

    assert (await message_of(client, answer.json()["message_id"]))["subscriber_id"] == newer


async def test_a_send_by_external_id_goes_to_the_channel_that_is_named(
    client: httpx2.AsyncClient, subscribe: Subscribe, clock: FakeClock
) -> None:
    older = await subscribe("Ann", external_id="customer-1")
    clock.advance(60)
    newer = await subscribe("Ann", channel="messenger_b")
    await client.patch(f"/v1/subscribers/{newer}", json={"external_id": "customer-1"})
    body = {"external_id": "customer-1", "channel": "messenger_a", "text": "Hi"}

    answer = await client.post("/v1/send", json=body)

    assert (await message_of(client, answer.json()["message_id"]))["subscriber_id"] == older
