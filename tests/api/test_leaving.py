"""Leaving a project's notifications, and coming back."""

import asyncio

import httpx2
import pytest

from msgsvc_core.kernel.errors import SubscriberNotFound
from msgsvc_core.service import Service
from msgsvc_devkit import settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import CheckError, Send, Subscribe
from tests.api.test_subscribers import events_of


async def leave(service: Service, tenant: Tenant, subscriber_id: str) -> bool:
    async with service.db.transaction() as tx:
        return await service.subscribers.unsubscribe(
            tx, tenant.project.project_id, subscriber_id, reason="stop"
        )


async def test_leaving_tells_the_reason_and_how_the_person_had_come(
    service: Service, tenant: Tenant, ann: str
) -> None:
    await leave(service, tenant, ann)

    name, data = (await events_of(tenant.client))[-1]
    assert name == "subscription.deleted"
    assert (data["subscriber_id"], data["first_name"]) == (ann, "Ann")
    assert (data["reason"], data["source"]) == ("stop", "deep_link")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_who_end_a_subscription_at_once_end_it_once(
    service: Service, tenant: Tenant, ann: str
) -> None:
    ended = await asyncio.gather(*(leave(service, tenant, ann) for _ in range(5)))

    assert sorted(ended) == [False, False, False, False, True]
    names = [name for name, _ in await events_of(tenant.client)]
    assert names == ["subscription.created", "subscription.deleted"]


async def test_a_foreign_or_unknown_person_cannot_be_unsubscribed(
    service: Service, tenant: Tenant
) -> None:
    with pytest.raises(SubscriberNotFound):
        await leave(service, tenant, "sub_nobody")


@pytest.mark.both_databases
async def test_who_blocked_the_bot_stays_blocked(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, ann: str
) -> None:
    async with service.db.transaction() as tx:
        await service.subscribers.block(tx, "messenger_a", "user-Ann", reason="user_blocked_bot")

    assert await leave(service, tenant, ann) is False
    shown = (await client.get(f"/v1/subscribers/{ann}")).json()
    assert shown["status"] == "blocked"


async def status_of(client: httpx2.AsyncClient, subscriber_id: str) -> str:
    return str((await client.get(f"/v1/subscribers/{subscriber_id}")).json()["status"])


async def test_who_is_deleted_is_unsubscribed_and_still_shown(
    client: httpx2.AsyncClient, ann: str
) -> None:
    answer = await client.delete(f"/v1/subscribers/{ann}")

    assert (answer.status_code, answer.content) == (204, b"")
    assert await status_of(client, ann) == "unsubscribed"
    name, data = (await events_of(client))[-1]
    assert (name, data["reason"]) == ("subscription.deleted", "api")


async def test_who_is_deleted_twice_has_left_once(client: httpx2.AsyncClient, ann: str) -> None:
    answers = await asyncio.gather(*(client.delete(f"/v1/subscribers/{ann}") for _ in range(4)))

    assert {answer.status_code for answer in answers} == {204}
    names = [name for name, _ in await events_of(client)]
    assert names == ["subscription.created", "subscription.deleted"]


async def test_who_has_left_gets_no_messages(
    service: Service, client: httpx2.AsyncClient, ann: str, send: Send
) -> None:
    await client.delete(f"/v1/subscribers/{ann}")
    message_id = await send()
    await settled(service)

    assert (await client.get(f"/v1/messages/{message_id}")).json()["status"] == "skipped"


@pytest.mark.parametrize("query", ["?erase=maybe", "?forever=true"])
async def test_a_deletion_that_is_not_understood_deletes_nothing(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError, query: str
) -> None:
    answer = await client.delete(f"/v1/subscribers/{ann}{query}")

    check_error(answer, 400, "validation_failed")
    assert await status_of(client, ann) == "active"


async def test_who_left_comes_back_by_the_api(client: httpx2.AsyncClient, ann: str) -> None:
    await client.delete(f"/v1/subscribers/{ann}")
    answer = await client.post(f"/v1/subscribers/{ann}/subscribe")

    assert answer.status_code == 200
    assert (answer.json()["subscriber_id"], answer.json()["status"]) == (ann, "active")
    name, data = (await events_of(client))[-1]
    assert (name, data["source"], data["first_name"]) == ("subscription.created", "api", "Ann")


async def test_who_left_in_the_messenger_comes_back_by_the_api(
    service: Service, tenant: Tenant, ann: str
) -> None:
    await leave(service, tenant, ann)
    answer = await tenant.client.post(f"/v1/subscribers/{ann}/subscribe")

    assert answer.json()["status"] == "active"


async def test_subscribing_somebody_twice_is_already_subscribed(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    answer = await client.post(f"/v1/subscribers/{ann}/subscribe")

    check_error(answer, 409, "already_subscribed")


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_two_who_subscribe_somebody_at_once_subscribe_them_once(
    client: httpx2.AsyncClient, ann: str
) -> None:
    await client.delete(f"/v1/subscribers/{ann}")
    answers = await asyncio.gather(
        *(client.post(f"/v1/subscribers/{ann}/subscribe") for _ in range(4))
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    names = [name for name, _ in await events_of(client)]
    assert names.count("subscription.created") == 2


@pytest.mark.both_databases
async def test_who_blocked_the_bot_can_only_come_back_by_themselves(
    service: Service, client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    async with service.db.transaction() as tx:
        await service.subscribers.block(tx, "messenger_a", "user-Ann", reason="user_blocked_bot")
    answer = await client.post(f"/v1/subscribers/{ann}/subscribe")

    assert "only they can" in check_error(answer, 409, "conflict")["error"]
    assert await status_of(client, ann) == "blocked"


async def test_who_left_comes_back_by_a_link_with_what_they_had(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann", tags=["vip"], external_id="customer-1")
    await client.delete(f"/v1/subscribers/{ann}")

    assert await subscribe("Ann") == ann
    shown = (await client.get(f"/v1/subscribers/{ann}")).json()
    assert (shown["status"], shown["tags"]) == ("active", ["vip"])
    assert shown["external_id"] == "customer-1"
