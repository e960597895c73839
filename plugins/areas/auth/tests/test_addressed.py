"""Sign-in by an email address: the question goes there, and is answered on a page."""

import re
from typing import Any

import httpx2
import pytest

from msgsvc_auth import plugin
from msgsvc_core.channels import Button, Capabilities
from msgsvc_core.service import Service
from msgsvc_devkit import RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant

ANN = {"channel": "messenger_a", "address": " Ann@Example.com"}


@pytest.fixture(autouse=True)
def mail(service: Service) -> RecordingChannel:
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    channel.capabilities = Capabilities(
        addresses=True, identity="mailbox", buttons="pages", edit=False
    )
    return channel


async def begin(tenant: Tenant, service: Service, **body: Any) -> dict[str, Any]:
    answer = await tenant.client.post("/v1/auth/session", json={**ANN, **body})
    assert answer.status_code == 201, answer.text
    await settled(service)
    found: dict[str, Any] = answer.json()
    return found


async def status(tenant: Tenant, begun: dict[str, Any]) -> dict[str, Any]:
    answer = await tenant.client.get(f"/v1/auth/session/{begun['session_id']}/status")
    found: dict[str, Any] = answer.json()
    return found


async def press(tenant: Tenant, service: Service, button: Button) -> httpx2.Response:
    assert button.url is not None
    path = "/b/" + button.url.partition("/b/")[2]
    page = await tenant.client.get(path)
    attempt = re.search(r'name="attempt" value="([0-9a-f]+)"', page.text)
    assert attempt is not None, page.text
    answer = await tenant.client.post(path, data={"attempt": attempt[1]})
    await settled(service)
    return answer


async def test_a_person_signs_in_by_their_mailbox(
    service: Service, tenant: Tenant, mail: RecordingChannel
) -> None:
    begun = await begin(tenant, service, state="s1", lang="ru")
    [question] = mail.sent
    said = await press(tenant, service, question.message.buttons[0][0])
    now = await status(tenant, begun)
    answer = await tenant.client.post("/v1/auth/verify", json={"code": now["code"]})

    verified = answer.json()
    assert (begun["links"], begun["qr"]) == ({}, {})
    assert question.chat_id == "ann@example.com"
    assert question.message.text.startswith("Войти")
    assert question.message.unsubscribe_url is None
    assert said.status_code == 200
    assert (now["status"], verified["username"]) == ("confirmed", "ann@example.com")
    project_id = tenant.project.project_id
    async with service.db.read() as tx:
        contacts = await service.contacts.find(tx, project_id, verified["subscriber_id"])
    assert contacts.email == "ann@example.com"
    assert len(mail.sent) == 1, "the page has said the rest"


async def test_a_number_is_chosen_in_the_mailbox(
    service: Service, tenant: Tenant, mail: RecordingChannel
) -> None:
    begun = await begin(tenant, service, number_matching=True)
    buttons = [button for row in mail.sent[0].message.buttons for button in row]
    wrong = next(b for b in buttons if b.text.isdigit() and b.text != str(begun["match_number"]))

    await press(tenant, service, wrong)

    assert (await status(tenant, begun))["status"] == "denied"


async def test_nobody_confirms_by_looking(
    service: Service, tenant: Tenant, mail: RecordingChannel
) -> None:
    begun = await begin(tenant, service)
    for row in mail.sent[0].message.buttons:
        for button in row:
            await tenant.client.get("/b/" + (button.url or "").partition("/b/")[2])

    assert (await status(tenant, begun))["status"] == "pending"


async def test_one_mailbox_gets_so_many_questions(make_service: Any, make_tenant: Any) -> None:
    service = await make_service(extra_plugins=[("auth", plugin)], auth={"sessions_per_hour": 100})
    service.channels["messenger_a"].capabilities = Capabilities(addresses=True, buttons="pages")
    shop = await make_tenant(service, "Shop")
    for _ in range(5):
        await begin(shop, service)

    refused = await shop.client.post("/v1/auth/session", json=ANN)
    other = await shop.client.post("/v1/auth/session", json={**ANN, "address": "bob@example.com"})

    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit_project")
    assert "auth.sessions_per_hour_per_recipient" in refused.json()["error"]
    assert other.status_code == 201


@pytest.mark.parametrize(
    "body",
    [
        {"address": "ann@example.com"},
        {**ANN, "address": "ann"},
        {**ANN, "channel": "messenger_b"},
        {**ANN, "channel": "unknown"},
    ],
)
async def test_what_is_no_address_starts_nothing(
    tenant: Tenant, service: Service, mail: RecordingChannel, body: dict[str, Any]
) -> None:
    answer = await tenant.client.post("/v1/auth/session", json=body)
    await settled(service)

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert mail.sent == []
