"""POST /v1/send/batch: what is taken, what is rejected, and how it ends."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Channel, ChannelUser, DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.outbound.gates import OutboundGates
from msgsvc_core.db import Tx
from msgsvc_core.messages.batches.service import PREPARED_AT_ONCE
from msgsvc_core.messages.validation import MessageValidation
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe
from tests.api.reading import events_named


async def post(client: httpx2.AsyncClient, *messages: Any, **options: Any) -> dict[str, Any]:
    answer = await client.post("/v1/send/batch", json={"messages": list(messages)}, **options)
    assert answer.status_code == 202, answer.text
    return dict(answer.json())


async def batch_of(client: httpx2.AsyncClient, batch_id: str) -> dict[str, Any]:
    answer = await client.get(f"/v1/batches/{batch_id}")
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def completed(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    events = await events_named(client, "batch.completed")
    return [{name: event[name] for name in event if name != "occurred_at"} for event in events]


async def test_messages_are_sent_in_their_order_and_the_end_is_told_once(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    channel: RecordingChannel,
) -> None:
    ann, bob = await subscribe("Ann"), await subscribe("Bob", external_id="customer-7")
    before = len(channel.sent)

    answer = await post(
        client,
        {"subscriber_id": ann, "text": "1", "metadata": {"n": 1}},
        {"external_id": "customer-7", "text": "2"},
        {"subscriber_id": ann, "text": "3"},
    )
    await settled(service)

    assert answer["accepted"] == 3
    assert answer["rejected"] == []
    assert answer["batch_id"].startswith("bat_")
    to_ann = [sent.message.text for sent in channel.sent[before:] if sent.chat_id == "chat-Ann"]
    assert to_ann == ["1", "3"]
    counts = {"sent": 3, "failed": 0, "unknown": 0, "skipped": 0, "total": 3}
    assert await completed(client) == [{"batch_id": answer["batch_id"], **counts}]
    events = await events_named(client, "delivery.success")
    assert [event["batch_id"] for event in events] == [answer["batch_id"]] * 3
    assert bob in {event["subscriber_id"] for event in events}


async def test_each_message_is_judged_by_itself(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    good = {"subscriber_id": ann, "text": "Hi"}

    answer = await post(
        client,
        {**good, "txet": "Hi"},
        good,
        {"subscriber_id": "sub_nobody", "text": "Hi"},
        {"subscriber_id": ann, "external_id": "a", "text": "Hi"},
        {"subscriber_id": ann, "text": "x" * 4001},
        "Hi",
        None,
        {"subscriber_id": ann},
        {"subscriber_id": ann, "template": "none"},
        {"external_id": " ", "text": "Hi"},
        {"subscriber_id": ann, "text": "Hi", "buttons": [[{"text": "A"}]]},
        good,
    )
    await settled(service)

    assert answer["accepted"] == 2
    codes = [(one["index"], one["code"]) for one in answer["rejected"]]
    assert codes == [
        (0, "validation_failed"),
        (2, "subscriber_not_found"),
        (3, "mutually_exclusive_identifiers"),
        (4, "validation_failed"),
        (5, "validation_failed"),
        (6, "validation_failed"),
        (7, "validation_failed"),
        (8, "not_found"),
        (9, "invalid_external_id"),
        (10, "validation_failed"),
    ]
    errors = {one["index"]: one["error"] for one in answer["rejected"]}
    assert errors[0] == "txet: there is no such field"
    assert errors[5] == "message: must be a JSON object"
    assert errors[10].startswith("buttons[0][0]: ")
    shown = await batch_of(client, answer["batch_id"])
    assert (shown["status"], shown["sent"], shown["total"]) == ("completed", 2, 2)


@pytest.mark.both_databases
async def test_a_batch_of_which_nothing_was_taken_is_completed_at_once_with_zeros(
    service: Service, client: httpx2.AsyncClient
) -> None:
    answer = await post(client, {"text": "Hi"}, {"subscriber_id": "sub_nobody", "text": "Hi"})
    at_once = await batch_of(client, answer["batch_id"])
    await settled(service)

    zeros = {"sent": 0, "failed": 0, "unknown": 0, "skipped": 0, "total": 0}
    assert (answer["accepted"], len(answer["rejected"])) == (0, 2)
    assert at_once["status"] == "completed"
    assert await completed(client) == [{"batch_id": answer["batch_id"], **zeros}]


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "begins"),
    [
        ([], "body: must be a JSON object"),
        ({}, "messages: is required"),
        ({"messages": []}, "messages: must have at least 1 item"),
        ({"messages": {}}, "messages: must be a list"),
        ({"messages": None}, "messages: must be a list"),
        ({"messages": [{"text": "Hi"}] * 501}, "messages: at most 500"),
        ({"messages": [{"text": "Hi"}], "silent": True}, "silent: there is no such field"),
    ],
)
async def test_a_body_that_is_no_list_of_messages_is_refused_as_a_whole(
    client: httpx2.AsyncClient, check_error: CheckError, body: Any, begins: str
) -> None:
    answer = await client.post("/v1/send/batch", json=body)

    error = check_error(answer, 400, "validation_failed")["error"]

    assert error.startswith(begins)
    assert "after validation" not in error


async def test_the_most_messages_of_a_batch_can_be_set(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    check_error: CheckError,
) -> None:
    service = await make_service(limits={"batch_messages": 1})
    client = (await make_tenant(service)).client

    answer = await client.post("/v1/send/batch", json={"messages": [{}, {}]})

    assert "at most 1" in check_error(answer, 400, "validation_failed")["error"]


async def test_every_way_to_end_is_counted(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    people = {name: await subscribe(name) for name in ("Sent", "Failed", "Doubt", "Late", "Left")}

    async def send(chat_id: str, message: OutgoingMessage) -> str:
        if chat_id == "chat-Failed":
            raise DeliveryError(Reason.USER_BLOCKED_BOT, "blocked")
        if chat_id == "chat-Doubt":
            raise DeliveryError(Reason.UNKNOWN, "no answer", in_doubt=True)
        return f"ref-{chat_id}"

    channel.send = send  # type: ignore[method-assign] # this messenger ends each in its own way
    async with service.db.transaction() as tx:
        await service.subscribers.block(tx, "messenger_a", "user-Left", reason="user_blocked_bot")
    channel_lane = service.get(OutboundGates)["messenger_a"]
    assert not channel_lane.closed
    bodies: list[dict[str, Any]] = [
        {"subscriber_id": subscriber_id, "text": "Hi"} for subscriber_id in people.values()
    ]
    answer = await post(client, *bodies)
    await settled(service)

    counts = {"sent": 2, "failed": 2, "unknown": 1, "skipped": 1, "total": 5}
    assert await completed(client) == [{"batch_id": answer["batch_id"], **counts}]
    failed = await events_named(client, "delivery.failed")
    assert {event["batch_id"] for event in failed} == {answer["batch_id"]}
    assert sorted(event["status"] for event in failed) == ["failed", "skipped", "unknown"]


async def test_a_batch_runs_until_its_last_message_is_final(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    ann, bob = await subscribe("Ann"), await subscribe("Bob")
    channel.failures = [DeliveryError(Reason.PLATFORM_UNAVAILABLE, "away")]
    answer = await post(client, *({"subscriber_id": person, "text": "Hi"} for person in (ann, bob)))
    await settled(service)
    meanwhile = await batch_of(client, answer["batch_id"])
    told = await completed(client)
    clock.advance(10)
    await settled(service)

    assert (meanwhile["status"], meanwhile["sent"], meanwhile["total"]) == ("running", 1, 2)
    assert (meanwhile["finished_at"], told) == (None, [])
    after = await batch_of(client, answer["batch_id"])
    assert (after["status"], after["sent"]) == ("completed", 2)
    assert after["finished_at"] > after["created_at"]
    assert len(await completed(client)) == 1


@pytest.mark.both_databases
async def test_messages_are_listed_by_their_batch(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    first = await post(client, *[{"subscriber_id": ann, "text": str(n)} for n in range(3)])
    await post(client, {"subscriber_id": ann, "text": "other"})

    path = f"/v1/messages?batch_id={first['batch_id']}&limit=2"
    page = (await client.get(path)).json()
    rest = (await client.get(path, params={"cursor": page["next_cursor"]})).json()

    texts = [message["text"] for message in (*page["data"], *rest["data"])]
    assert texts == ["2", "1", "0"]


async def test_a_batch_by_template_is_rendered_for_each(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, channel: RecordingChannel
) -> None:
    ann, olga = await subscribe("Ann"), await subscribe("Olga", lang="ru")
    template = {"key": "hello", "text": {"en": "Hello {{ n }}", "ru": "Привет {{ n }}"}}
    await client.post("/v1/templates", json=template)
    bodies = [
        {"subscriber_id": person, "template": "hello", "variables": {"n": number}}
        for number, person in enumerate((ann, olga, ann))
    ]

    await post(client, *bodies, {"subscriber_id": ann, "template": "hello"})
    await settled(service)

    assert sorted(channel.texts[-3:]) == ["Hello 0", "Hello 2", "Привет 1"]


async def test_an_idempotency_key_covers_the_batch(
    service: Service, client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    key = {"Idempotency-Key": "batch-0001"}
    messages = [{"subscriber_id": ann, "text": "Hi"}, {"text": "nobody"}]

    first = await post(client, *messages, headers=key)
    again = await client.post("/v1/send/batch", json={"messages": messages}, headers=key)
    other = await client.post("/v1/send/batch", json={"messages": messages[:1]}, headers=key)

    assert again.json() == first
    assert again.headers["Idempotent-Replayed"] == "true"
    check_error(other, 409, "idempotency_conflict")
    assert len((await client.get("/v1/messages")).json()["data"]) == 1


async def test_a_batch_that_is_not_there_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    check_error(await client.get("/v1/batches/bat_none"), 404, "not_found")


async def test_five_hundred_messages_are_a_few_statements(
    make_service: ServiceFactory,
    make_tenant: Callable[..., Awaitable[Tenant]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Lanes would ask in the middle, so none are run.
    service = await make_service(jobs={"runner": "none"})
    tenant = await make_tenant(service)
    client, project_id = tenant.client, tenant.project.project_id
    people = []
    for number in range(10):
        user = ChannelUser(f"user-{number}", "Ann", "ann", "en")
        async with service.db.transaction() as tx:
            person = await service.subscribers.ensure(
                tx, project_id, "messenger_a", user, f"chat-{number}", source="api"
            )
        people.append(person.subscriber_id)
        named = {"external_id": f"c-{number}"}
        await client.patch(f"/v1/subscribers/{person.subscriber_id}", json=named)
    await client.post("/v1/templates", json={"key": "hi", "text": "Hi"})
    asked: list[str] = []
    fetch_all = Tx.fetch_all

    async def counted(tx: Tx, sql: str, params: Any = None) -> Any:
        asked.append(sql)
        return await fetch_all(tx, sql, params)

    bodies: list[dict[str, Any]] = []
    for number in range(500):
        body: dict[str, Any] = {"template": "hi"} if number % 2 else {"text": "Hi"}
        person = people[number % 10]
        name = {"subscriber_id": person} if number % 3 else {"external_id": f"c-{number % 10}"}
        bodies.append({**body, **name})
    monkeypatch.setattr(Tx, "fetch_all", counted)
    answer = await post(client, *bodies)

    # Receivers by their id and by external id, and the template.
    of_the_batch = [sql for sql in asked if "keys" in sql]
    assert answer["accepted"] == 500
    assert 0 < len(of_the_batch) <= 6


async def test_others_are_served_while_a_batch_is_judged(
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ann, check = await subscribe("Ann"), MessageValidation.check_content
    turns, prepared = 0, Counter[int]()

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def count(self: MessageValidation, channel: Channel, content: OutgoingMessage) -> None:
        prepared[turns] += 1
        check(self, channel, content)

    monkeypatch.setattr(MessageValidation, "check_content", count)
    other = asyncio.create_task(take_turns())
    answer = await post(client, *[{"subscriber_id": ann, "text": "Hi"}] * 200)
    other.cancel()

    assert answer["accepted"] == prepared.total() == 200
    assert max(prepared.values()) <= PREPARED_AT_ONCE
