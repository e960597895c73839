"""Codes to an email address or a phone number, of people who are not known yet."""

import re
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Capabilities
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant

ANN = {"channel": "messenger_a", "address": "Ann@example.com"}


@pytest.fixture(autouse=True)
def mail(service: Service) -> RecordingChannel:
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = Capabilities(addresses=True, identity="mailbox", buttons="pages")
    return channel


def refusal(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


async def send(client: httpx2.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/otp/send", json={**ANN, **body})
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_code_verifies_an_address_that_nobody_knew(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant, mail: RecordingChannel
) -> None:
    asked = await send(client, lang="ru")
    await settled(service)
    [sent] = mail.sent
    code = re.search(r"\d{6}", sent.message.text)
    assert code is not None

    answer = await client.post("/v1/otp/verify", json={"otp_id": asked["otp_id"], "code": code[0]})

    verified = answer.json()
    assert answer.status_code == 200, answer.text
    assert verified["proves"] == "mailbox"
    assert (sent.chat_id, verified["username"]) == ("ann@example.com", "ann@example.com")
    person = (await client.get(f"/v1/subscribers/{verified['subscriber_id']}")).json()
    assert (person["status"], person["lang"]) == ("unsubscribed", "ru")
    async with service.db.read() as tx:
        contacts = await service.contacts.find(
            tx, tenant.project.project_id, verified["subscriber_id"]
        )
    assert contacts.email == "ann@example.com"


async def test_a_wrong_code_verifies_nothing(
    client: httpx2.AsyncClient, service: Service, tenant: Tenant
) -> None:
    asked = await send(client)
    body = {"otp_id": asked["otp_id"], "code": "not it"}

    assert refusal(await client.post("/v1/otp/verify", json=body)) == (400, "otp_invalid")
    [ann] = (await client.get("/v1/subscribers")).json()["data"]
    async with service.db.read() as tx:
        contacts = await service.contacts.find(tx, tenant.project.project_id, ann["subscriber_id"])
    assert contacts.email is None


async def test_an_address_has_the_limits_of_a_person(client: httpx2.AsyncClient) -> None:
    await send(client)

    again = await client.post("/v1/otp/send", json={**ANN, "address": " ann@EXAMPLE.com"})

    assert refusal(again) == (425, "too_early")
    assert len((await client.get("/v1/subscribers")).json()["data"]) == 1


@pytest.mark.both_databases
async def test_a_bounced_address_gets_no_codes(
    client: httpx2.AsyncClient, service: Service
) -> None:
    await send(client)
    async with service.db.transaction() as tx:
        await service.subscribers.block(
            tx, "messenger_a", "ann@example.com", reason="chat_not_found"
        )

    # No event tells of it: she was not subscribed.
    again = await client.post("/v1/otp/send", json={**ANN, "purpose": "other"})

    assert refusal(again) == (409, "conflict")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({**ANN, "subscriber_id": "sub_1"}, "mutually_exclusive_identifiers"),
        ({**ANN, "external_id": "u1"}, "mutually_exclusive_identifiers"),
        ({"address": "ann@example.com"}, "validation_failed"),
        ({**ANN, "address": "ann"}, "validation_failed"),
        ({**ANN, "channel": "messenger_b"}, "validation_failed"),
        ({**ANN, "channel": "unknown"}, "validation_failed"),
    ],
)
async def test_who_is_meant_has_to_be_clear(
    client: httpx2.AsyncClient, body: dict[str, Any], code: str
) -> None:
    assert refusal(await client.post("/v1/otp/send", json=body)) == (400, code)

    assert (await client.get("/v1/subscribers")).json()["data"] == []
