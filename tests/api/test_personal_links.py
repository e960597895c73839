"""Subscription links that say who somebody is."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ButtonPressed, ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant

ANN, EVE = (ChannelUser(name, name, name.lower(), "en") for name in ("Ann", "Eve"))


async def _payload(client: httpx2.AsyncClient, **body: Any) -> str:
    answer = await client.post("/v1/subscribers/links", json=body)
    return str(answer.json()["links"]["messenger_a"].partition("start=")[2])


async def _open(service: Service, channel: str, payload: str, user: ChannelUser) -> None:
    update = Started(
        update_id=f"{channel}-{user.user_id}", chat_id=user.user_id, user=user, payload=payload
    )
    await service.inbound.receive(channel, update)


async def test_a_link_binds_the_first_who_opens_it_and_nobody_in_another_messenger(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    payload = await _payload(client, external_id="customer-1")
    await _open(service, "messenger_a", payload, ANN)
    await _open(service, "messenger_b", payload, EVE)

    bound = (await client.get("/v1/subscribers?external_id=customer-1")).json()["data"]
    everybody = (await client.get("/v1/subscribers")).json()["data"]
    assert [one["first_name"] for one in bound] == ["Ann"]
    assert {one["first_name"] for one in everybody} == {"Ann", "Eve"}


async def test_a_link_with_an_external_id_works_for_a_day(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, clock: FakeClock
) -> None:
    payload = await _payload(client, external_id="customer-1")
    clock.advance(24 * 3600 + 1)
    await _open(service, "messenger_a", payload, ANN)

    assert (await client.get("/v1/subscribers")).json()["data"] == []


async def _press(service: Service, label: str, who: ChannelUser = ANN) -> str:
    """What the newest question in messenger_a becomes, when that button is pressed."""
    channel = service.channels["messenger_a"]
    assert isinstance(channel, RecordingChannel)
    await settled(service)
    asked = next(sent for sent in reversed(channel.sent) if sent.message.buttons)
    [data] = [each.data for each in asked.message.buttons[0] if each.text == label]
    update = ButtonPressed(
        update_id=f"press-{label}-{who.user_id}-{len(channel.edited)}",
        chat_id=who.user_id,
        user=who,
        data=data or "",
        message_ref=asked.message_ref,
        button_ref="b",
    )
    await service.inbound.receive("messenger_a", update)
    await settled(service)
    return channel.edited[-1].message.text if channel.edited else ""


async def _bound(client: httpx2.AsyncClient) -> set[str]:
    found = (await client.get("/v1/subscribers?external_id=customer-1")).json()["data"]
    return {f"{one['first_name']} on {one['channel']}" for one in found}


async def test_a_second_messenger_is_bound_when_the_first_says_yes_and_not_before(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    await _open(service, "messenger_a", await _payload(client, external_id="customer-1"), ANN)
    await _open(service, "messenger_b", await _payload(client, external_id="customer-1"), EVE)
    before = await _bound(client)
    foreign = await _press(service, "Yes, it was me", EVE)
    still = await _bound(client)
    said = await _press(service, "Yes, it was me")

    assert before == still == {"Ann on messenger_a"}
    assert foreign == ""
    assert said == "Confirmed. Your messages can be sent there as well."
    assert await _bound(client) == {"Ann on messenger_a", "Eve on messenger_b"}


async def test_a_no_and_a_late_yes_bind_nobody(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, clock: FakeClock
) -> None:
    await _open(service, "messenger_a", await _payload(client, external_id="customer-1"), ANN)
    await _open(service, "messenger_b", await _payload(client, external_id="customer-1"), EVE)
    refused = await _press(service, "No")
    clock.advance(24 * 3600 + 60)
    late = await _press(service, "Yes, it was me")

    assert refused.startswith("Not confirmed")
    assert late.startswith("This is no longer valid")
    assert await _bound(client) == {"Ann on messenger_a"}


@pytest.mark.both_databases
async def test_where_whoever_was_known_has_left_the_next_is_bound_at_once(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    await _open(service, "messenger_a", await _payload(client, external_id="customer-1"), ANN)
    [ann] = (await client.get("/v1/subscribers")).json()["data"]
    await client.delete(f"/v1/subscribers/{ann['subscriber_id']}")
    await _open(service, "messenger_b", await _payload(client, external_id="customer-1"), EVE)

    assert "Eve on messenger_b" in await _bound(client)


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_links_that_are_opened_at_once_one_binds(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    payloads = [await _payload(client, external_id="customer-1") for _ in range(2)]
    await asyncio.gather(
        _open(service, "messenger_a", payloads[0], ANN),
        _open(service, "messenger_b", payloads[1], EVE),
    )

    assert len(await _bound(client)) == 1
