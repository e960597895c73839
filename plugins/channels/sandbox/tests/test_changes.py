"""A project's messages in the sandbox, changed by the API: what a person sees of it."""

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.platforms.sandbox import Sandbox, SandboxPerson
from msgsvc_sandbox import plugin
from plugins.channels.sandbox.tests.conftest import CHANNELS


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    """Nobody serves the file that is named here."""
    return await make_service(
        extra_plugins=[("sandbox", plugin)], channels=CHANNELS, media={"check": False}
    )


@pytest.fixture
async def path(service: Service, tenant: Tenant, anna: SandboxPerson) -> str:
    """The address of a message that Anna has."""
    links = (await tenant.client.post("/v1/subscribers/links", json={})).json()["links"]
    await anna.open(links["messenger_a"])
    await settled(service)
    (subscriber,) = (await tenant.client.get("/v1/subscribers")).json()["data"]
    body = {"subscriber_id": subscriber["subscriber_id"], "text": "Ready at 6"}
    sent = await tenant.client.post("/v1/send", json=body)
    await settled(service)
    return f"/v1/messages/{sent.json()['message_id']}"


async def test_an_edit_changes_text_buttons_and_file(
    service: Service, tenant: Tenant, anna: SandboxPerson, path: str
) -> None:
    picture = {"type": "image", "url": "https://shop.example/cup.png"}
    buttons = [[{"text": "Coming", "data": "coming"}]]
    body = {"text": "Ready at 7", "buttons": buttons, "media": picture}
    await tenant.client.post(f"{path}/edit", json=body)
    await settled(service)

    message = (await anna.messages())[-1]
    assert (message.text, message.buttons[0][0].text) == ("Ready at 7", "Coming")
    assert message.media is not None
    assert message.edited_at_ms is not None
    assert (await tenant.client.get(path)).json()["edited_at"] is not None


async def test_a_rich_text_is_shown_as_lines(
    service: Service, tenant: Tenant, anna: SandboxPerson, path: str
) -> None:
    (subscriber,) = (await tenant.client.get("/v1/subscribers")).json()["data"]
    body = {
        "subscriber_id": subscriber["subscriber_id"],
        "text": "<h2>Order 1207</h2><ul><li>Tea</li><li>Mugs</li></ul>"
        "<table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea</td><td>4 €</td></tr></table>",
        "format": "rich",
    }
    sent = await tenant.client.post("/v1/send", json=body)
    await settled(service)

    message = (await anna.messages())[-1]
    assert message.text == "Order 1207\n\n• Tea\n• Mugs\n\nItem | Price\nTea | 4 €"
    assert (message.spans[0].text, message.spans[0].marks) == ("Order 1207", ["bold"])
    shown = (await tenant.client.get(f"/v1/messages/{sent.json()['message_id']}")).json()
    assert (shown["text"], shown["format"]) == (body["text"], "rich")


async def test_a_deletion_takes_the_message_out_of_the_chat(
    service: Service, tenant: Tenant, anna: SandboxPerson, path: str
) -> None:
    await tenant.client.delete(path)
    await settled(service)

    assert "Ready at 6" not in [message.text for message in await anna.messages()]
    assert (await tenant.client.get(path)).json()["deleted_at"] is not None


async def test_what_the_messenger_refuses_stands_on_the_message(
    service: Service, tenant: Tenant, sandbox: Sandbox, anna: SandboxPerson, path: str
) -> None:
    await sandbox.fail("messenger_a", "invalid_message", times=1)
    await tenant.client.post(f"{path}/edit", json={"text": "Ready at 7"})
    await settled(service)

    message = (await tenant.client.get(path)).json()
    assert (message["text"], message["status"]) == ("Ready at 6", "sent")
    assert message["error"] == "edit: the message's media or markup is invalid"
