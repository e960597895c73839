"""A file as an answer, and an answer that is changed by editing it, on every messenger."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.kernel.clock import SystemClock
from msgsvc_core.service import Service
from msgsvc_devkit import until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin as forms
from msgsvc_sandbox.models import Message
from tests.channels.phones import (
    MESSENGERS,
    MaxPhone,
    Messenger,
    Phone,
    SandboxPhone,
    TelegramPhone,
    seen,
)
from tests.channels.test_forms import ready

FORM = {
    "slug": "plan",
    "title": "Plan",
    "fields": [
        {"key": "name", "type": "text", "label": "Name?", "required": True},
        {"key": "plan", "type": "file", "label": "A plan?", "required": True},
    ],
}


@pytest.fixture(params=MESSENGERS)
async def messenger(request: pytest.FixtureRequest) -> AsyncIterator[Messenger]:
    async with MESSENGERS[request.param]() as messenger:
        yield messenger


@pytest.fixture
async def service(make_service: ServiceFactory, messenger: Messenger) -> Service:
    service = await make_service(
        extra_plugins=[(messenger.name, messenger.plugin), ("forms", forms)],
        channels={"messenger_a": {"plugin": messenger.name, **messenger.settings}},
        use_clock=SystemClock(),
    )
    await ready(service)
    return service


async def send_file(phone: Phone, content: bytes, name: str) -> None:
    match phone:
        case TelegramPhone():
            await phone.person.send_file("document", content, name=name, mime_type="text/plain")
        case MaxPhone():
            await phone.person.send_file("file", content, name)
        case SandboxPhone():
            await phone.person.send_file(name, content, channel="messenger_a")
        case _:
            raise TypeError(phone)


async def edit(phone: Phone, text: str) -> None:
    """Changes what was written last."""
    match phone:
        case TelegramPhone() | MaxPhone():
            await phone.person.edit(text)
        case SandboxPhone(written=Message() as message):
            await phone.person.edit(message, text)
        case _:
            raise TypeError(phone)


async def test_a_file_and_an_edited_answer_are_submitted(
    service: Service, messenger: Messenger, tenant: Tenant
) -> None:
    made = (await tenant.client.post("/v1/forms", json=FORM)).json()
    phone = await messenger.phone(service, "en")
    await phone.open(made["links"]["messenger_a"])
    await seen(phone, "Name?")
    await phone.write("An")
    await seen(phone, "A plan?")
    await edit(phone, "Ann")
    await seen(phone, "Your answer to “Name?” was changed.")
    await send_file(phone, b"The plan is simple.", "plan.txt")
    summary = await seen(phone, "Is everything right?")
    await phone.press("Send")
    await seen(phone, "Your answers were sent")
    path = f"/v1/forms/{made['form_id']}/submissions"
    [kept] = (await tenant.client.get(path)).json()["data"]
    name, plan = (answer["value"] for answer in kept["answers"])

    async def fetched() -> bool:
        file = (await tenant.client.get(f"/v1/files/{plan[0]['file_id']}")).json()
        return bool(file["status"] == "ready")

    await until(fetched, interval_s=0.02)
    content = await tenant.client.get(f"/v1/files/{plan[0]['file_id']}/content")

    assert "plan.txt" in summary.text
    assert (name, plan[0]["filename"]) == ("Ann", "plan.txt")
    assert content.content == b"The plan is simple."
