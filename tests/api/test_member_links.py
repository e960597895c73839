"""Links by which members say who they are in a messenger."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, MessageReceived, Started
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import CheckError, Subscribe


@pytest.fixture
async def ann_id(client: httpx2.AsyncClient) -> str:
    """The id of a member."""
    return await member(client, "ann@shop.example")


async def member(client: httpx2.AsyncClient, email: str) -> str:
    answer = await client.post("/v1/members", json={"name": "Ann", "email": email})
    return str(answer.json()["member_id"])


async def link(client: httpx2.AsyncClient, member_id: str, **body: Any) -> str:
    """The start payload of a new link."""
    answer = await client.post(f"/v1/members/{member_id}/link", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["links"]["messenger_a"].partition("start=")[2])


async def open_link(
    service: Service, payload: str, who: str, channel: str = "messenger_a", times: int = 1
) -> None:
    for number in range(times):
        await service.inbound.receive(
            channel,
            Started(
                update_id=f"{payload}-{who}-{number}",
                chat_id=f"chat-{who}",
                user=ChannelUser(f"user-{who}", who, None, "en"),
                payload=payload,
            ),
        )
    await settled(service)


async def subscribers_of(client: httpx2.AsyncClient, member_id: str) -> list[str]:
    found: list[str] = (await client.get(f"/v1/members/{member_id}")).json()["subscriber_ids"]
    return found


def said(channel: RecordingChannel, who: str) -> list[str]:
    return [sent.message.text for sent in channel.sent if sent.chat_id == f"chat-{who}"]


HERE = "Ann, you are now an agent of Shop here."
NO_LINK = "This link is no longer valid. Please ask the site for a new one."


async def test_a_link_leads_into_each_messenger_with_its_picture(
    client: httpx2.AsyncClient, ann_id: str
) -> None:
    answer = (await client.post(f"/v1/members/{ann_id}/link", json={})).json()

    assert set(answer["links"]) == set(answer["qr"]) == {"messenger_a", "messenger_b"}
    assert answer["expires_at"] == "2026-01-16T12:00:00.000Z"
    assert len({url.partition("start=")[2] for url in answer["links"].values()}) == 1


async def test_who_opens_a_link_is_that_member(
    service: Service,
    client: httpx2.AsyncClient,
    ann_id: str,
    tenant: Tenant,
    channel: RecordingChannel,
) -> None:
    await open_link(service, await link(client, ann_id), "Ann")

    [subscriber_id] = await subscribers_of(client, ann_id)
    assert HERE in said(channel, "Ann")
    async with service.db.read() as tx:
        found = await service.members.find_by_subscriber(
            tx, tenant.project.project_id, subscriber_id
        )
    assert found is not None
    assert found.member_id == ann_id


async def test_where_links_carry_nothing_the_member_writes_what_is_shown(
    service: Service, client: httpx2.AsyncClient, ann_id: str, channel: RecordingChannel
) -> None:
    channel.capabilities = replace(channel.capabilities, start_links=False)
    answer = (await client.post(f"/v1/members/{ann_id}/link", json={})).json()
    user = ChannelUser("user-Ann", "Ann", None, "en")
    text = answer["start_messages"]["messenger_a"]
    await service.inbound.receive(
        "messenger_a",
        MessageReceived(update_id="w1", chat_id="chat-Ann", user=user, text=text, message_ref="w1"),
    )
    await settled(service)

    assert set(answer["start_messages"]) == {"messenger_a"}
    assert len(await subscribers_of(client, ann_id)) == 1
    assert HERE in said(channel, "Ann")


async def test_a_link_works_once_and_answers_the_same_person_again(
    service: Service, client: httpx2.AsyncClient, ann_id: str, channel: RecordingChannel
) -> None:
    payload = await link(client, ann_id)

    await open_link(service, payload, "Ann", times=2)
    await open_link(service, payload, "Eve")
    await open_link(service, payload, "Ann", channel="messenger_b")

    assert len(await subscribers_of(client, ann_id)) == 1
    assert said(channel, "Ann").count(HERE) == 2
    assert said(channel, "Eve") == [NO_LINK]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_who_open_a_link_at_once_one_is_the_member(
    service: Service, client: httpx2.AsyncClient, ann_id: str
) -> None:
    payload = await link(client, ann_id)

    await asyncio.gather(*(open_link(service, payload, who) for who in ("Ann", "Eve", "Mal")))

    assert len(await subscribers_of(client, ann_id)) == 1


async def test_a_member_may_work_in_several_messengers(
    service: Service, client: httpx2.AsyncClient, ann_id: str
) -> None:
    await open_link(service, await link(client, ann_id), "Ann")
    await open_link(service, await link(client, ann_id), "Ann", channel="messenger_b")

    assert len(await subscribers_of(client, ann_id)) == 2


async def test_a_subscriber_is_the_member_whose_link_they_opened_last(
    service: Service, client: httpx2.AsyncClient, ann_id: str
) -> None:
    bob_id = await member(client, "bob@shop.example")

    await open_link(service, await link(client, ann_id), "Ann")
    await open_link(service, await link(client, bob_id), "Ann")

    assert await subscribers_of(client, ann_id) == []
    assert len(await subscribers_of(client, bob_id)) == 1


async def test_a_link_expires(
    service: Service,
    client: httpx2.AsyncClient,
    ann_id: str,
    clock: FakeClock,
    channel: RecordingChannel,
) -> None:
    payload = await link(client, ann_id, expires_in=60)

    clock.advance(60)
    await open_link(service, payload, "Ann")

    assert await subscribers_of(client, ann_id) == []
    assert said(channel, "Ann") == [NO_LINK]


async def test_a_disabled_projects_link_makes_nobody_a_member(
    service: Service,
    client: httpx2.AsyncClient,
    tenant: Tenant,
    ann_id: str,
    channel: RecordingChannel,
) -> None:
    payload = await link(client, ann_id)
    await service.projects.set_active(tenant.project.project_id, False)

    await open_link(service, payload, "Ann")

    assert said(channel, "Ann") == [NO_LINK]
    await service.projects.set_active(tenant.project.project_id, True)
    assert await subscribers_of(client, ann_id) == []


async def test_an_expired_link_is_forgotten(
    service: Service, client: httpx2.AsyncClient, ann_id: str, clock: FakeClock
) -> None:
    await link(client, ann_id, expires_in=60)
    kept = await link(client, ann_id, expires_in=7200)
    # The first housekeeping, which runs at the start, says when the next is.
    await settled(service)

    clock.advance(3601)
    await settled(service)

    async with service.db.read() as tx:
        digests = await tx.fetch_all("SELECT digest FROM core_member_links")
    assert len(digests) == 1
    assert kept not in str([row["digest"] for row in digests])


@pytest.mark.parametrize("query", [{}, {"erase": "true"}])
async def test_who_is_removed_is_nobody_in_messengers_and_their_links_end(
    service: Service,
    client: httpx2.AsyncClient,
    ann_id: str,
    tenant: Tenant,
    channel: RecordingChannel,
    query: dict[str, str],
) -> None:
    used, unused = await link(client, ann_id), await link(client, ann_id)
    await open_link(service, used, "Ann")
    [subscriber_id] = await subscribers_of(client, ann_id)

    await client.delete(f"/v1/members/{ann_id}", params=query)
    await open_link(service, unused, "Eve")

    assert said(channel, "Eve") == [NO_LINK]
    async with service.db.read() as tx:
        project_id = tenant.project.project_id
        assert await service.members.find_by_subscriber(tx, project_id, subscriber_id) is None
        assert await tx.fetch_all("SELECT * FROM core_member_links") == []


async def test_who_was_unlinked_does_not_come_back_by_the_link_they_opened(
    service: Service, client: httpx2.AsyncClient, ann_id: str, channel: RecordingChannel
) -> None:
    lost, kept, unused = [await link(client, ann_id) for _ in range(3)]
    await open_link(service, lost, "Lost")
    [subscriber_id] = await subscribers_of(client, ann_id)
    await open_link(service, kept, "Kept")

    await client.delete(f"/v1/members/{ann_id}/subscribers/{subscriber_id}")
    await open_link(service, lost, "Lost", times=2)

    assert said(channel, "Lost")[-1] == NO_LINK
    assert subscriber_id not in await subscribers_of(client, ann_id)
    await open_link(service, kept, "Kept", times=2)
    await open_link(service, unused, "New")
    assert len(await subscribers_of(client, ann_id)) == 2


async def test_who_was_removed_gets_no_link(
    client: httpx2.AsyncClient, ann_id: str, check_error: CheckError
) -> None:
    await client.delete(f"/v1/members/{ann_id}")

    answer = await client.post(f"/v1/members/{ann_id}/link", json={})

    check_error(answer, 409, "conflict")


async def test_an_erased_subscriber_is_no_member_any_more(
    service: Service, client: httpx2.AsyncClient, ann_id: str
) -> None:
    payload = await link(client, ann_id)
    await open_link(service, payload, "Ann")
    [subscriber_id] = await subscribers_of(client, ann_id)

    await client.delete(f"/v1/subscribers/{subscriber_id}", params={"erase": "true"})
    await settled(service)
    await open_link(service, payload, "Ann", times=2)

    assert await subscribers_of(client, ann_id) == []


async def test_the_payload_is_kept_nowhere(
    service: Service, client: httpx2.AsyncClient, ann_id: str
) -> None:
    payload = await link(client, ann_id)

    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT * FROM core_member_links")

    assert payload.removeprefix("mem_") not in str([list(row) for row in rows])


async def test_a_customer_is_no_member(
    service: Service, tenant: Tenant, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Bob")

    async with service.db.read() as tx:
        found = await service.members.find_by_subscriber(
            tx, tenant.project.project_id, subscriber_id
        )

    assert found is None
