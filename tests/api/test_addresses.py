"""People who are added by their address, on a channel that knows them by one."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Capabilities, ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant

CheckError = Callable[..., None]


@pytest.fixture(autouse=True)
def mail(service: Service) -> RecordingChannel:
    """`messenger_a` as a channel of email addresses."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    return channel


async def add(client: httpx2.AsyncClient, address: str, **body: Any) -> httpx2.Response:
    given = {"channel": "messenger_a", "address": address, **body}
    return await client.post("/v1/subscribers", json=given)


async def events(client: httpx2.AsyncClient) -> list[tuple[str, Any]]:
    found = (await client.get("/v1/events")).json()["data"]
    return [(each["event"], each["data"].get("source")) for each in found]


@pytest.mark.both_databases
async def test_a_person_is_added_by_their_address_and_written_to(
    client: httpx2.AsyncClient, service: Service, mail: RecordingChannel
) -> None:
    await client.post("/v1/permissions", json={"key": "news", "title": "News"})
    answer = await add(
        client,
        " Ann@Example.COM ",
        first_name="Ann",
        lang="ru",
        external_id="u1",
        tags=["vip"],
        permissions=["news"],
        attributes={"city": "Oslo"},
    )
    ann = answer.json()
    sent = await client.post("/v1/send", json={"external_id": "u1", "text": "Hello"})
    await settled(service)

    assert answer.status_code == 201, answer.text
    assert ann == (await client.get(f"/v1/subscribers/{ann['subscriber_id']}")).json()
    assert (ann["username"], ann["first_name"], ann["lang"]) == ("ann@example.com", "Ann", "ru")
    assert (ann["tags"], ann["permissions"], ann["external_id"]) == (["vip"], ["news"], "u1")
    assert (ann["status"], ann["attributes"]) == ("active", {"city": "Oslo"})
    assert sent.status_code == 202
    assert [(each.chat_id, each.message.text) for each in mail.sent] == [
        ("ann@example.com", "Hello")
    ]
    assert ("subscription.created", "api") in await events(client)


async def test_one_without_consent_gets_no_messages(
    client: httpx2.AsyncClient, service: Service
) -> None:
    ann = (await add(client, "ann@example.com", status="unsubscribed")).json()
    await client.post("/v1/send", json={"subscriber_id": ann["subscriber_id"], "text": "Hello"})
    await settled(service)

    [message] = (await client.get("/v1/messages")).json()["data"]
    assert (ann["status"], message["status"]) == ("unsubscribed", "skipped")
    assert "subscription.created" not in [name for name, _ in await events(client)]


async def test_a_person_is_added_once(client: httpx2.AsyncClient, check_error: CheckError) -> None:
    ann = (await add(client, "ann@example.com")).json()
    check_error(await add(client, "ANN@example.com"), 409, "already_subscribed")

    await client.delete(f"/v1/subscribers/{ann['subscriber_id']}")
    refused = await add(client, "ann@example.com")

    check_error(refused, 409, "conflict")
    assert ann["subscriber_id"] in refused.json()["error"]


@pytest.mark.parametrize("name", ["Ann\r\nBcc: eve@shop.example", "Ann\x1b", "Ann\u2028"])
async def test_a_first_name_is_one_line(client: httpx2.AsyncClient, name: str) -> None:
    body = {"channel": "messenger_a", "address": "ann@example.com", "first_name": name}
    answer = await client.post("/v1/subscribers", json=body)

    assert answer.status_code == 400
    assert "first_name" in answer.text


@pytest.mark.parametrize("address", ["ann", "ann@", "@example.com", "a b@example.com", "a@b"])
async def test_what_is_no_address_is_refused_and_not_repeated(
    client: httpx2.AsyncClient, check_error: CheckError, address: str
) -> None:
    answer = await add(client, address)

    check_error(answer, 400, "validation_failed")
    assert answer.json()["error"] == "address: must be an email address, as ann@shop.example"


async def test_nobody_is_added_where_people_begin_by_themselves(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    for channel in ("messenger_b", "unknown"):
        body = {"channel": channel, "address": "ann@example.com"}
        answer = await client.post("/v1/subscribers", json=body)

        check_error(answer, 400, "validation_failed")
        assert answer.json()["error"].startswith("channel: ")


async def test_what_is_refused_of_a_person_adds_nobody(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await add(client, "bob@example.com", external_id="u1")

    check_error(await add(client, "ann@example.com", external_id="u1"), 409, "conflict")
    check_error(await add(client, "ann@example.com", permissions=["no"]), 404, "not_found")
    check_error(
        await add(client, "ann@example.com", attributes={"a": "x" * 9000}), 400, "validation_failed"
    )
    check_error(await add(client, "ann@example.com", external_id=" x"), 400, "invalid_external_id")

    assert len((await client.get("/v1/subscribers")).json()["data"]) == 1


async def test_a_person_is_found_by_the_beginning_of_their_address(
    client: httpx2.AsyncClient,
) -> None:
    await add(client, "ann@example.com")
    await add(client, "bob@example.com")

    found = await client.get("/v1/subscribers", params={"query": "ANN@"})

    assert [each["username"] for each in found.json()["data"]] == ["ann@example.com"]


async def test_a_name_stays_when_the_address_alone_is_seen(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant
) -> None:
    ann = (await add(client, "ann@example.com", first_name="Ann")).json()
    links = (await client.post("/v1/subscribers/links", json={})).json()["links"]
    payload = links["messenger_a"].partition("start=")[2]
    update = Started(
        update_id="1",
        chat_id="ann@example.com",
        user=ChannelUser("ann@example.com", "", "ann@example.com"),
        payload=payload,
    )
    await service.inbound.receive("messenger_a", update)

    now = (await client.get(f"/v1/subscribers/{ann['subscriber_id']}")).json()
    assert (now["first_name"], now["username"]) == ("Ann", "ann@example.com")


async def test_a_message_names_the_page_where_a_mail_program_unsubscribes(
    client: httpx2.AsyncClient, service: Service, mail: RecordingChannel
) -> None:
    ann = (await add(client, "ann@example.com")).json()
    await client.post("/v1/send", json={"subscriber_id": ann["subscriber_id"], "text": "Hello"})
    await settled(service)
    url = mail.sent[0].message.unsubscribe_url
    assert url is not None
    path = "/preferences/" + url.partition("/preferences/")[2]

    looked = await client.get(path)
    before = (await client.get(f"/v1/subscribers/{ann['subscriber_id']}")).json()
    answer = await client.post(path, data={"List-Unsubscribe": "One-Click"})
    after = (await client.get(f"/v1/subscribers/{ann['subscriber_id']}")).json()

    assert (looked.status_code, before["status"]) == (200, "active")
    assert (answer.status_code, answer.content, after["status"]) == (200, b"", "unsubscribed")


async def test_a_bounced_address_comes_back_when_the_project_says_so(
    client: httpx2.AsyncClient, service: Service, check_error: CheckError
) -> None:
    ann = (await add(client, "ann@example.com")).json()
    async with service.db.transaction() as tx:
        await service.subscribers.block(
            tx, "messenger_a", "ann@example.com", reason="chat_not_found"
        )

    refused = await add(client, "ann@example.com")
    back = await client.post(f"/v1/subscribers/{ann['subscriber_id']}/subscribe")

    check_error(refused, 409, "conflict")
    assert (back.status_code, back.json()["status"]) == (200, "active")
    again = await client.post(f"/v1/subscribers/{ann['subscriber_id']}/subscribe")
    check_error(again, 409, "already_subscribed")
