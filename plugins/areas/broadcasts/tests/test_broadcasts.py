"""A broadcast from the call to its end, and what is shown of it."""

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until

from .conftest import AddPeople, counts, ended, events, recipients, shown, take


async def test_everybody_gets_it_once_and_the_end_is_told_once(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(450)

    job_id = await take(client, metadata={"campaign": 7})
    done = await ended(client, job_id)
    await settled(service)

    assert counts(done) == (450, 0, 0, 450)
    assert (done["status"], done["progress"], done["eta_seconds"]) == ("completed", 1.0, None)
    chats = [sent.chat_id for sent in channel.sent]
    assert sorted(chats) == sorted(f"chat-{number}" for number in range(450))
    told = {"job_id": job_id, "sent": 450, "failed": 0, "skipped": 0, "total": 450}
    [completed] = await events(client, "broadcast.completed")
    assert {name: completed[name] for name in told} == told
    assert await events(client, "broadcast.cancelled") == []


async def test_each_message_is_one_of_the_project(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    [subscriber_id] = await people(1)

    job_id = await take(client, metadata={"campaign": 7})
    await ended(client, job_id)

    [message] = (await client.get("/v1/messages")).json()["data"]
    assert (message["job_id"], message["status"], message["text"]) == (job_id, "sent", "Hi")
    [event] = await events(client, "delivery.success")
    assert event["subscriber_id"] == subscriber_id
    assert event["message_id"] == message["message_id"]
    assert (event["job_id"], event["metadata"]) == (job_id, {"campaign": 7})
    [recipient] = await recipients(client, job_id)
    assert recipient == {
        "subscriber_id": subscriber_id,
        "channel": None,
        "status": "sent",
        "reason": None,
        "error": None,
        "attempts": 1,
        "message_id": message["message_id"],
    }
    edited = await client.post(
        f"/v1/messages/{message['message_id']}/edit", json={"text": "Changed"}
    )
    assert edited.is_success, edited.text


async def test_variables_of_each_recipient_and_texts_by_language(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1, first_name="Ann", username="ann", attributes='{"city": "Riga", "age": 30}')
    await people(1, first=1, first_name="Борис", lang="ru")
    text = (
        '{{ first_name }} {{ username | default("-") }}'
        ' {{ attributes.city | default("?") }} {{ sale }}'
    )

    job_id = await take(
        client, text={"en": f"en {text}", "ru": f"ru {text}"}, variables={"sale": 20}
    )
    await ended(client, job_id)

    assert sorted(channel.texts) == ["en Ann ann Riga 20", "ru Борис - ? 20"]


async def test_template_is_sent_as_it_was_at_the_call(
    client: httpx2.AsyncClient,
    people: AddPeople,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    await people(1)
    await client.post("/v1/templates", json={"key": "hello", "text": "Hello {{ first_name }}"})
    job_id = await take(client, template="hello", send_at="2026-01-15T13:00:00Z")
    await client.patch("/v1/templates/hello", json={"text": "Changed"})

    assert (await shown(client, job_id))["status"] == "scheduled"
    clock.advance(3600)
    await ended(client, job_id)

    assert channel.texts == ["Hello P0"]


async def test_value_that_does_not_fit_fails_that_recipient_alone(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(1, attributes='{"bio": "' + "x" * 4000 + '"}')
    await people(1, first=1)

    job_id = await take(client, text='Hi {{ attributes.bio | default("!") }}')
    done = await ended(client, job_id)

    assert counts(done) == (1, 1, 0, 2)
    assert channel.texts == ["Hi !"]
    [failed] = await recipients(client, job_id, status="failed")
    assert failed["reason"] == "invalid_message"


@pytest.mark.both_databases
async def test_who_blocked_the_bot_is_failed_and_unsubscribed(
    service: Service, client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel
) -> None:
    await people(3)
    channel.failures.append(DeliveryError(Reason.USER_BLOCKED_BOT, "Forbidden"))

    job_id = await take(client)
    done = await ended(client, job_id)

    assert counts(done) == (2, 1, 0, 3)
    [failed] = await recipients(client, job_id, status="failed")
    found = (await client.get(f"/v1/subscribers/{failed['subscriber_id']}")).json()
    assert found["status"] == "blocked"
    [event] = await events(client, "delivery.failed")
    assert (event["reason"], event["should_unsubscribe"]) == ("user_blocked_bot", True)


async def test_failed_call_is_tried_again_later(
    client: httpx2.AsyncClient, people: AddPeople, channel: RecordingChannel, clock: FakeClock
) -> None:
    await people(3)
    channel.failures.append(DeliveryError(Reason.PLATFORM_UNAVAILABLE, "502"))

    job_id = await take(client)

    async def two_are_sent() -> bool:
        return (await shown(client, job_id))["sent"] == 2

    await until(two_are_sent)
    clock.advance(5)
    done = await ended(client, job_id)

    assert counts(done) == (3, 0, 0, 3)
    assert sorted(each["attempts"] for each in await recipients(client, job_id)) == [1, 1, 2]


@pytest.mark.parametrize("missing", ["username", "attributes.city", "surname"])
async def test_variable_that_some_lack_needs_a_default(
    client: httpx2.AsyncClient, people: AddPeople, missing: str
) -> None:
    await people(1)

    answer = await client.post(
        "/v1/broadcast", json={"audience": {"all": True}, "text": f"Hi {{{{ {missing} }}}}"}
    )

    assert (answer.status_code, answer.json()["code"]) == (400, "validation_failed")
    assert missing in answer.json()["error"]
