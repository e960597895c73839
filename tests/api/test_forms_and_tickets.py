"""Forms and the helpdesk in one chat: each takes what is meant for it."""

from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import plugin as forms
from msgsvc_helpdesk import plugin as helpdesk
from tests.api.conversation.people import Talker, events_of

FORM: dict[str, Any] = {
    "slug": "help",
    "title": "Ask us",
    "fields": [
        {"key": "name", "type": "text", "label": "Name?", "required": True},
        {"key": "email", "type": "email", "label": "E-mail?", "required": True},
    ],
    "rules": [{"to": {"kind": "ticket", "priority": "high", "subject": "A question"}}],
}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("forms", forms), ("helpdesk", helpdesk)])


@pytest.fixture
async def ann(service: Service, tenant: Tenant) -> Talker:
    """She has opened the form."""
    made = await tenant.client.post("/v1/forms", json=FORM)
    assert made.status_code == 201, made.text
    talker = Talker(service, ChannelUser("1001", "Ann", "ann_k", "en"))
    await talker.start("form_help")
    return talker


async def tickets(tenant: Tenant) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await tenant.client.get("/v1/tickets")).json()["data"]
    return found


async def test_a_form_filled_in_in_the_messenger_opens_a_ticket(
    ann: Talker, tenant: Tenant
) -> None:
    await ann.write("Ann")
    await ann.write("ann@example.com")
    before = await tickets(tenant)
    await ann.press("Send")

    assert before == []
    [ticket] = await tickets(tenant)
    assert (ticket["subject"], ticket["priority"]) == ("A question", "high")
    [submitted] = await events_of(tenant, "form.submitted")
    assert ticket["subscriber_id"] == submitted["subscriber_id"]


async def test_what_is_written_while_a_form_waits_is_a_ticket(ann: Talker, tenant: Tenant) -> None:
    await ann.write("Ann")
    for _ in range(3):
        await ann.write("no address")
    during = await tickets(tenant)
    await ann.press("Later")
    waits = ann.shown[-1]
    await ann.write("What do you need my address for?")
    asked = await tickets(tenant)
    await ann.press("Continue", waits)
    await ann.write("ann@example.com")
    await ann.press("Send")

    assert during == []
    assert len(asked) == 1
    assert len(await tickets(tenant)) == 2
