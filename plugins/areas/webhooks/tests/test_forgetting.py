"""What the journal keeps of a person who was erased, and what receivers still get."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled

#: A name that stands in no text of ours.
NAME = "Zephyrine"


async def subscribe(service: Service, tenant: Any, user_id: str, name: str = NAME) -> str:
    async with service.db.transaction() as tx:
        person = await service.subscribers.ensure(
            tx,
            tenant.project.project_id,
            "messenger_a",
            ChannelUser(user_id, name, name.lower(), "en"),
            f"chat-{user_id}",
            source="auth",
        )
    await settled(service)
    return person.subscriber_id


async def erase(client: httpx2.AsyncClient, service: Service, subscriber_id: str) -> None:
    answer = await client.delete(f"/v1/subscribers/{subscriber_id}?erase=true")
    assert answer.status_code == 204, answer.text
    await settled(service)


async def kept(service: Service) -> str:
    """All that the journal holds, as one text."""
    async with service.db.read() as tx:
        bodies = await tx.fetch_all("SELECT body FROM webhooks_deliveries")
        answers = await tx.fetch_all(
            "SELECT answer, error, request_headers, response_headers FROM webhooks_attempts"
        )
    return "\n".join([row["body"] for row in bodies] + [str(tuple(row)) for row in answers])


async def test_an_erased_person_is_in_no_body_and_no_answer_of_the_journal(
    service: Service, tenant: Any, add_webhook: Any, receiver: Any
):
    receiver.then(receiver.answer(200, f"Thank you, {NAME}", X_Name=NAME))
    await add_webhook()
    person = await subscribe(service, tenant, "1")
    assert (await kept(service)).count(NAME) == 3

    await erase(tenant.client, service, person)

    assert NAME.lower() not in (await kept(service)).lower()
    assert (await kept(service)).count(person) == 2


@pytest.mark.both_databases
async def test_the_receiver_is_told_of_an_erasure_by_the_id_alone(
    service: Service, tenant: Any, add_webhook: Any, receiver: Any
):
    await add_webhook(events=["subscription.deleted"])
    person = await subscribe(service, tenant, "1")
    await erase(tenant.client, service, person)

    (request,) = receiver.received
    data = request.event["data"]
    assert (data["subscriber_id"], data["reason"]) == (person, "erased")
    assert (data["first_name"], data["username"], data["external_id"]) == ("", "", None)


async def test_a_delivery_that_is_tried_again_goes_without_the_person(
    service: Service, tenant: Any, add_webhook: Any, receiver: Any, clock: FakeClock
):
    receiver.then(receiver.answer(500))
    await add_webhook(events=["subscription.created"])
    person = await subscribe(service, tenant, "1")
    await erase(tenant.client, service, person)
    clock.advance(60)
    await settled(service)

    first, second = receiver.received
    assert first.event["data"]["first_name"] == NAME
    assert second.event["data"]["first_name"] == ""
    assert second.event["data"]["subscriber_id"] == person
    ids = {request.headers["X-Service-Delivery-Id"] for request in receiver.received}
    assert len(ids) == 1


async def test_deliveries_about_others_stay_as_they_are(
    service: Service, tenant: Any, add_webhook: Any
):
    await add_webhook()
    await subscribe(service, tenant, "2", name="Ben")
    before = await kept(service)

    await erase(tenant.client, service, await subscribe(service, tenant, "1"))

    assert before.splitlines()[0] in await kept(service)
