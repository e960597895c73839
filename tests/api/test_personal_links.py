"""Subscription links that say who somebody is."""

from typing import Any

import httpx2

from msgsvc_core.channels import ChannelUser, Started
from msgsvc_core.service import Service
from msgsvc_core.testing import FakeClock
from msgsvc_core.testing.fixtures import Tenant

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
