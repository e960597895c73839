"""Who pressed which button of a broadcast, in its report."""

import re
from typing import Any

import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import LIMITS, PLUGINS, AddPeople, ended, take

BUTTONS = [
    [{"text": {"en": "Yes", "ru": "Да"}, "data": "yes"}, {"text": "No", "data": "no"}],
    [{"text": "Shop", "url": "https://shop.example"}],
]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", dashboard), *PLUGINS], limits=LIMITS)


async def press(service: Service, channel: RecordingChannel, number: int, *data: str) -> None:
    """The person of a number presses buttons of their last message."""
    chat_id = f"chat-{number}"
    [ref, *_] = [each.message_ref for each in reversed(channel.sent) if each.chat_id == chat_id]
    for count, each in enumerate(data):
        await service.inbound.receive(
            "messenger_a",
            ButtonPressed(
                update_id=f"{ref}-{number}-{count}",
                chat_id=chat_id,
                user=ChannelUser(f"user-{number}", "Ann", None, "en"),
                data=each,
                message_ref=ref,
                button_ref="press",
            ),
        )
    await settled(service)


def told(page: Any) -> list[str]:
    part = page.text.partition("Pressed buttons")[2].partition("</ul>")[0]
    plain = [re.sub("<[^>]+>", "", each) for each in re.findall("<li>(.*?)</li>", part, re.DOTALL)]
    return [" ".join(each.split()) for each in plain]


@pytest.mark.both_databases
async def test_people_are_counted_once_for_each_button_that_they_press(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    ids = await people(4)
    admin = await visitor(service, tenant.project.project_id, "admin")
    job_id = await take(tenant.client, buttons=BUTTONS)
    other = await take(tenant.client, text="Other", audience={"subscriber_ids": ids[3:]})
    for each in (job_id, other):
        await ended(tenant.client, each)
    await press(service, channel, 0, "yes", "yes", "no")
    await press(service, channel, 1, "yes")
    await press(service, channel, 2, "made up")

    report, none = [await admin.get(f"/broadcasts/{each}") for each in (job_id, other)]
    await tenant.client.delete(f"/v1/subscribers/{ids[0]}?erase=true")
    without = await admin.get(f"/broadcasts/{job_id}")

    assert told(report) == ["2 Yes 50%", "1 No 25%"]
    assert "Pressed buttons" not in none.text
    assert told(without) == ["1 Yes 25%", "0 No 0%"]


async def test_a_press_on_a_single_message_is_none_of_a_broadcast(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann] = await people(1)
    row = [{"text": "Yes", "data": "yes"}]
    await tenant.client.post(
        "/v1/broadcast/test", json={"subscriber_id": ann, "text": "Hi", "buttons": [row]}
    )
    await settled(service)
    await press(service, channel, 0, "yes")
    async with service.db.read() as tx:
        kept = await tx.fetch_all("SELECT data FROM broadcasts_clicks")
    events = await tenant.client.get("/v1/events", params={"event": "button.clicked"})

    assert kept == []
    assert len(events.json()["data"]) == 1


async def test_presses_are_kept_as_long_as_recipients(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(1)
    job_id = await take(tenant.client, buttons=BUTTONS)
    await ended(tenant.client, job_id)
    await press(service, channel, 0, "yes")

    async def kept() -> int:
        async with service.db.read() as tx:
            count: int = await tx.fetch_val("SELECT COUNT(*) FROM broadcasts_clicks")
        return count

    async def is_gone() -> bool:
        return await kept() == 0

    days = service.settings.limits.recipient_days
    clock.advance((days - 1) * 24 * 3600)
    await settled(service)
    before = await kept()
    clock.advance(2 * 24 * 3600)
    await until(is_gone)

    assert before == 1
