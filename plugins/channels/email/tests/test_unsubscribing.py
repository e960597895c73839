"""Unsubscription by the link, and by one POST of a mail program."""

from urllib.parse import urlsplit

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, OutgoingMessage
from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.email import FakeMail, Mail, Person
from msgsvc_email import plugin

from .conftest import BASE_URL


@pytest.fixture
async def service(make_service: ServiceFactory, platform: FakeMail) -> Service:
    return await make_service(
        extra_plugins=[("email", plugin)],
        use_clock=SystemClock(),
        base_url=BASE_URL,
        channels={"mail": platform.settings},
    )


@pytest.fixture
async def subscriber_id(service: Service, tenant: Tenant, ann: Person) -> str:
    async with service.db.transaction() as tx:
        found = await service.subscribers.ensure(
            tx,
            tenant.project.project_id,
            "mail",
            ChannelUser(ann.address, "Ann"),
            ann.address,
            source="api",
        )
    return found.subscriber_id


async def send(
    client: httpx2.AsyncClient, subscriber_id: str, person: Person, **more: object
) -> Mail:
    """A message as it arrived."""
    before = len(person.messages)
    answer = await client.post(
        "/v1/send", json={"subscriber_id": subscriber_id, "text": "News", **more}
    )
    assert answer.status_code == 202, answer.text

    async def arrived() -> list[Mail]:
        return person.messages[before:]

    return (await until(arrived))[0]


def path_of(link: str) -> str:
    parts = urlsplit(link.strip("<>"))
    return parts.path


async def status(client: httpx2.AsyncClient, subscriber_id: str) -> str:
    return str((await client.get(f"/v1/subscribers/{subscriber_id}")).json()["status"])


@pytest.mark.both_databases
async def test_one_post_unsubscribes(
    client: httpx2.AsyncClient, subscriber_id: str, ann: Person
) -> None:
    mail = await send(client, subscriber_id, ann)
    link = path_of(mail.header("List-Unsubscribe"))
    # As mail programs call it (RFC 8058), without a cookie or key.
    answer = await client.post(
        link,
        content="List-Unsubscribe=One-Click",
        headers={"Content-Type": "application/x-www-form-urlencoded", "Authorization": ""},
    )

    assert (answer.status_code, answer.text) == (200, ""), "programs follow no redirect"
    assert await status(client, subscriber_id) == "unsubscribed"
    again = await client.post(link, data={"List-Unsubscribe": "One-Click"})
    assert again.status_code == 200, "a second time is no error"
    sent = await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "More"})
    message_id = sent.json()["message_id"]

    async def ended() -> bool:
        found = (await client.get(f"/v1/messages/{message_id}")).json()
        return str(found["status"]) not in {"queued", "sending"}

    await until(ended)
    assert len(ann.messages) == 1


async def test_opening_the_link_asks_first(
    client: httpx2.AsyncClient, subscriber_id: str, ann: Person
) -> None:
    mail = await send(client, subscriber_id, ann)
    link = path_of(mail.header("List-Unsubscribe"))
    page = await client.get(link)
    assert page.status_code == 200
    assert "Stop everything" in page.text

    assert await status(client, subscriber_id) == "active", "programs that check links open them"


async def test_a_code_has_no_unsubscribe_link(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient, ann: Person
) -> None:
    """System messages are what a person asks for."""
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, "mail", ann.address, OutgoingMessage("Your code is 123456"))

    async def arrived() -> list[Mail]:
        return ann.messages

    [mail] = await until(arrived)
    assert "List-Unsubscribe" not in mail.parsed
    assert not mail.footer


async def test_a_button_with_data_is_a_link_to_its_page(
    client: httpx2.AsyncClient, subscriber_id: str, ann: Person
) -> None:
    buttons = [[{"text": "Yes", "data": "yes"}, {"text": "Shop", "url": "https://shop.example"}]]
    mail = await send(client, subscriber_id, ann, buttons=buttons)
    [[yes, shop]] = mail.rows

    assert (yes[0], shop) == ("Yes", ("Shop", "https://shop.example"))
    assert yes[1].startswith(f"{BASE_URL}/b/")
    page = await client.get(path_of(yes[1]))
    assert page.status_code == 200
    assert "Yes" in page.text


async def test_an_address_that_does_not_exist_is_unsubscribed(
    client: httpx2.AsyncClient, subscriber_id: str, ann: Person
) -> None:
    ann.closed = True
    await client.post("/v1/send", json={"subscriber_id": subscriber_id, "text": "News"})

    async def unsubscribed() -> bool:
        return await status(client, subscriber_id) != "active"

    await until(unsubscribed)


async def test_a_person_added_by_address_stays_unsubscribed_until_they_are_brought_back(
    client: httpx2.AsyncClient, ann: Person
) -> None:
    given = {"channel": "mail", "address": " Ann@People.example"}
    added = await client.post("/v1/subscribers", json=given)
    assert added.status_code == 201, added.text
    subscriber_id = added.json()["subscriber_id"]
    mail = await send(client, subscriber_id, ann)
    link = path_of(mail.header("List-Unsubscribe"))
    await client.post(link, data={"List-Unsubscribe": "One-Click"})
    assert await status(client, subscriber_id) != "active"

    again = await client.post("/v1/subscribers", json=given)
    assert again.status_code == 409, "a list that is imported again brings nobody back"
    back = await client.post(f"/v1/subscribers/{subscriber_id}/subscribe")
    assert back.status_code == 200, back.text

    assert await status(client, subscriber_id) == "active"
    await send(client, subscriber_id, ann)
