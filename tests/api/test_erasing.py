"""A person who is erased is gone from every table; what others need of them stays."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import ChannelUser, DeliveryError, OutgoingMessage, Reason, Started
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_core.subscribers.erasure import AGAIN_AFTER_S, WAITING_S
from msgsvc_devkit import FakeClock, RecordingChannel, settled, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Send, Subscribe
from tests.api.test_subscribers import events_of

#: A name that stands in no text of ours.
NAME = "Zephyrine"

#: Where it stands that is nothing of the person's: in the ids that the tests give their updates.
ELSEWHERE = ["core_updates"]


async def tables_with(service: Service, text: str) -> list[str]:
    """The tables in which `text` stands somewhere, in whatever case."""
    async with service.db.read() as tx:
        names = await tx.fetch_all(
            "SELECT name FROM sqlite_master WHERE type = 'table'"
            if tx.dialect == "sqlite"
            else "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()"
        )
        found = []
        for name in sorted(row["name"] for row in names):
            rows = await tx.fetch_all(f'SELECT * FROM "{name}"')
            values = [str(row[column]) for row in rows for column in row.keys()]
            if any(text.lower() in value.lower() for value in values):
                found.append(name)
        return found


@pytest.fixture
async def person(subscribe: Subscribe) -> str:
    return await subscribe(NAME, tags=["vip"], external_id=f"{NAME}@example.com")


async def erase(client: httpx2.AsyncClient, subscriber_id: str) -> None:
    answer = await client.delete(f"/v1/subscribers/{subscriber_id}?erase=true")
    assert (answer.status_code, answer.content) == (204, b""), answer.text


async def look_again(service: Service, clock: FakeClock) -> None:
    clock.advance(AGAIN_AFTER_S)
    await settled(service)


async def test_nothing_of_an_erased_person_is_left_in_any_table(
    service: Service, client: httpx2.AsyncClient, person: str
) -> None:
    await client.post(
        "/v1/send",
        json={"subscriber_id": person, "text": f"Hi {NAME}", "metadata": {"name": NAME}},
    )
    await settled(service)
    before = ["core_chats", "core_events", *ELSEWHERE, "core_messages", "core_subscribers"]
    assert await tables_with(service, NAME) == sorted(before)

    await erase(client, person)
    await settled(service)

    assert await tables_with(service, NAME) == ELSEWHERE


async def test_a_bulk_action_that_has_ended_does_not_name_whom_it_looked_for(
    service: Service, client: httpx2.AsyncClient, person: str
) -> None:
    path = "/v1/subscribers/bulk-actions"
    filters = {"external_id": f"{NAME}@example.com"}
    started = await client.post(path, json={"action": "erase", "filters": filters})
    await settled(service)
    before = await tables_with(service, f"{NAME}@example.com")

    confirmed = f"{path}/{started.json()['bulk_action_id']}/confirm"
    assert (await client.post(confirmed, json={"total": 1})).status_code == 200
    await settled(service)

    assert "core_bulk_actions" in before
    assert await tables_with(service, NAME) == ELSEWHERE


async def test_an_erased_person_is_as_one_who_never_was(
    client: httpx2.AsyncClient, person: str, check_error: CheckError
) -> None:
    await erase(client, person)

    for method, path in [
        ("GET", ""),
        ("DELETE", ""),
        ("DELETE", "?erase=true"),
        ("POST", "/subscribe"),
    ]:
        answer = await client.request(method, f"/v1/subscribers/{person}{path}")
        check_error(answer, 404, "subscriber_not_found")
    answer = await client.post("/v1/send", json={"subscriber_id": person, "text": "Hi"})
    check_error(answer, 404, "subscriber_not_found")


async def test_an_erasure_is_told_once_without_what_the_person_was_known_by(
    service: Service, client: httpx2.AsyncClient, person: str
) -> None:
    await asyncio.gather(*(client.delete(f"/v1/subscribers/{person}?erase=true") for _ in range(4)))
    await settled(service)

    told = [data for name, data in await events_of(client) if name == "subscription.deleted"]
    assert told == [
        {
            "occurred_at": "2026-01-15T12:00:00.000Z",
            "subscriber_id": person,
            "channel": "messenger_a",
            "first_name": "",
            "username": "",
            "lang": "en",
            "tags": [],
            "external_id": None,
            "source": "deep_link",
            "reason": "erased",
        }
    ]


async def test_who_left_before_can_be_erased(
    service: Service, client: httpx2.AsyncClient, person: str
) -> None:
    await client.delete(f"/v1/subscribers/{person}")
    await erase(client, person)
    await settled(service)

    reasons = [data.get("reason") for _, data in await events_of(client)]
    assert reasons == [None, "api", "erased"]
    assert await tables_with(service, NAME) == ELSEWHERE


async def test_the_feed_keeps_that_something_happened_and_to_which_id(
    service: Service, client: httpx2.AsyncClient, person: str
) -> None:
    answer = await client.post(
        "/v1/send", json={"subscriber_id": person, "text": "Hi", "metadata": {"order": NAME}}
    )
    await settled(service)
    await erase(client, person)
    await settled(service)

    delivered = next(data for name, data in await events_of(client) if name == "delivery.success")
    assert delivered == {
        "occurred_at": "2026-01-15T12:00:00.000Z",
        "subscriber_id": person,
        "channel": "messenger_a",
        "first_name": "",
        "username": "",
        "lang": "en",
        "tags": [],
        "external_id": None,
        "message_id": answer.json()["message_id"],
        "metadata": {},
    }


async def test_others_keep_what_is_theirs(
    service: Service, client: httpx2.AsyncClient, person: str, subscribe: Subscribe
) -> None:
    ben = await subscribe("Ben", tags=["vip"])
    message = await client.post("/v1/send", json={"subscriber_id": ben, "text": f"About {NAME}"})
    await settled(service)
    before = (await client.get(f"/v1/subscribers/{ben}")).json()
    events = [data for _, data in await events_of(client) if data["subscriber_id"] == ben]

    await erase(client, person)
    await settled(service)

    assert (await client.get(f"/v1/subscribers/{ben}")).json() == before
    message = await client.get(f"/v1/messages/{message.json()['message_id']}")
    assert message.json()["text"] == f"About {NAME}"
    after = [data for _, data in await events_of(client) if data["subscriber_id"] == ben]
    assert after == events


async def test_a_chat_that_another_project_uses_stays_with_it(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, make_tenant: Any
) -> None:
    other = await make_tenant(service, "Other")
    theirs = await subscribe(NAME, to=other)
    await erase(client, await subscribe(NAME))
    await settled(service)

    async with service.db.read() as tx:
        chat = await tx.fetch_one("SELECT project_id, user_id FROM core_chats")
    assert chat is not None
    # It belonged to the project that it had started last, and now to none.
    assert (chat["project_id"], chat["user_id"]) == (None, f"user-{NAME}")
    assert (await other.client.get(f"/v1/subscribers/{theirs}")).json()["first_name"] == NAME


async def test_who_was_erased_may_come_back_as_somebody_new(
    service: Service, client: httpx2.AsyncClient, person: str, subscribe: Subscribe
) -> None:
    await erase(client, person)
    again = await subscribe(NAME)
    await settled(service)

    assert again != person
    shown = (await client.get(f"/v1/subscribers/{again}")).json()
    assert (shown["first_name"], shown["tags"], shown["external_id"]) == (NAME, [], None)
    created = [data for _, data in await events_of(client) if data["subscriber_id"] == again]
    assert [data["first_name"] for data in created] == [NAME]


async def test_a_message_that_waits_is_not_sent_to_who_was_erased(
    service: Service,
    client: httpx2.AsyncClient,
    person: str,
    channel: RecordingChannel,
    clock: FakeClock,
) -> None:
    channel.sent.clear()
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "slow down", retry_after_s=60)]
    await client.post("/v1/send", json={"subscriber_id": person, "text": f"Hi {NAME}"})
    await settled(service)

    await erase(client, person)
    await settled(service)
    assert await tables_with(service, NAME) == ELSEWHERE
    clock.advance(90)
    await settled(service)
    await look_again(service, clock)

    assert channel.texts == []
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) AS count FROM core_messages") == 0


async def test_a_message_to_a_bot_that_is_stopped_goes_when_it_can_end(
    service: Service, client: httpx2.AsyncClient, person: str, clock: FakeClock
) -> None:
    recording = service.channels["messenger_a"]
    assert isinstance(recording, RecordingChannel)
    recording.failures = [DeliveryError(Reason.RATE_LIMITED, "wait", retry_after_s=3000)]
    await client.post("/v1/send", json={"subscriber_id": person, "text": f"Hi {NAME}"})
    await settled(service)
    await erase(client, person)
    await settled(service)
    for _ in range(2):
        await look_again(service, clock)
    assert await left(service) == ["queued"]

    clock.advance(WAITING_S)
    await settled(service)
    clock.advance(WAITING_S)
    await settled(service)

    assert await left(service) == []
    async with service.db.read() as tx:
        jobs = "SELECT COUNT(*) AS count FROM core_jobs WHERE name = 'subscriber.erase'"
        assert await tx.fetch_val(jobs) == 0


async def left(service: Service) -> list[str]:
    """The states of the messages there are."""
    async with service.db.read() as tx:
        rows = await tx.fetch_all("SELECT status FROM core_messages")
    return [row["status"] for row in rows]


class SlowChannel(RecordingChannel):
    """Its calls take until they are let go on."""

    called: asyncio.Event
    may_end: asyncio.Event

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        self.called.set()
        await self.may_end.wait()
        return await super().send(chat_id, message)


@pytest.mark.both_databases
async def test_a_delivery_that_is_under_way_leaves_no_trace_in_the_end(
    service: Service, client: httpx2.AsyncClient, person: str, clock: FakeClock
) -> None:
    slow = service.channels["messenger_a"]
    slow.__class__ = SlowChannel
    assert isinstance(slow, SlowChannel)
    slow.called, slow.may_end = asyncio.Event(), asyncio.Event()
    await client.post("/v1/send", json={"subscriber_id": person, "text": f"Hi {NAME}"})
    await slow.called.wait()

    await erase(client, person)

    async def is_erased_once() -> bool:
        return not await tables_with(service, f"Hi {NAME}")

    await until(is_erased_once)
    slow.may_end.set()
    await settled(service)
    # The platform took it, and the project is told so: it happened.
    assert "delivery.success" in [name for name, _ in await events_of(client)]
    await look_again(service, clock)

    assert await tables_with(service, NAME) == ELSEWHERE
    assert await left(service) == []


@pytest.mark.both_databases
async def test_what_the_bot_has_yet_to_say_to_an_erased_person_is_dropped(
    service: Service, client: httpx2.AsyncClient, person: str, channel: RecordingChannel
) -> None:
    channel.sent.clear()
    channel.failures = [DeliveryError(Reason.RATE_LIMITED, "wait", retry_after_s=60)]
    async with service.db.transaction() as tx:
        await service.outbox.send(
            tx, "messenger_a", f"chat-{NAME}", OutgoingMessage("Your settings")
        )
    await settled(service)
    await erase(client, person)
    await settled(service)

    assert await tables_with(service, NAME) == ELSEWHERE
    assert channel.texts == []


@pytest.mark.both_databases
async def test_an_erased_person_is_not_in_answers_that_are_kept_for_their_key(
    client: httpx2.AsyncClient, service: Service, person: str, check_error: CheckError
) -> None:
    await client.delete(f"/v1/subscribers/{person}")
    path, headers = f"/v1/subscribers/{person}/subscribe", {"Idempotency-Key": "come-back-1"}
    first = await client.post(path, headers=headers)
    assert first.json()["first_name"] == NAME

    await erase(client, person)
    await settled(service)

    replayed = await client.post(path, headers=headers)
    assert replayed.headers["Idempotent-Replayed"] == "true"
    check_error(replayed, 404, "subscriber_not_found")


class ForgetfulPlugin:
    """Fails the first time that it is to forget somebody."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    @hookimpl
    async def erase_subscriber(self, project_id: str, subscriber_id: str) -> None:
        self.asked.append((project_id, subscriber_id))
        if len(self.asked) == 1:
            raise RuntimeError("not now")


async def test_plugins_are_asked_until_each_has_forgotten_the_person(
    make_service: ServiceFactory, make_tenant: Any, clock: FakeClock
) -> None:
    plugin = ForgetfulPlugin()
    service = await make_service(extra_plugins=[("forgetful", plugin)])
    tenant: Tenant = await make_tenant(service)
    project_id = tenant.project.project_id
    async with service.db.transaction() as tx:
        person = await service.subscribers.ensure(
            tx, project_id, "messenger_a", ChannelUser("1", NAME), "1", source="auth"
        )
    await erase(tenant.client, person.subscriber_id)
    await settled(service)
    assert len(plugin.asked) == 1

    clock.advance(60)
    await settled(service)
    await look_again(service, clock)

    assert plugin.asked == [(project_id, person.subscriber_id)] * 3


async def test_who_presses_start_while_they_are_erased_is_subscribed_anew(
    service: Service, client: httpx2.AsyncClient, person: str
) -> None:
    link = (await client.post("/v1/subscribers/links", json={})).json()["links"]["messenger_a"]
    user = ChannelUser(f"user-{NAME}", NAME, None, "en")
    started = Started(
        update_id="again",
        chat_id=f"chat-{NAME}",
        user=user,
        payload=link.partition("start=")[2],
    )
    await asyncio.gather(
        client.delete(f"/v1/subscribers/{person}?erase=true"),
        service.inbound.receive("messenger_a", started),
    )
    await settled(service)

    active = (await client.get("/v1/subscribers?status=active")).json()["data"]
    # Whoever came second counts.
    assert [subscriber["first_name"] for subscriber in active] in ([], [NAME])
    assert person not in [subscriber["subscriber_id"] for subscriber in active]
    created = [name for name, _ in await events_of(client) if name == "subscription.created"]
    assert len(created) == 1 + len(active)


async def test_another_projects_person_is_not_erased(
    service: Service, make_tenant: Any, person: str, send: Send, check_error: CheckError
) -> None:
    other = await make_tenant(service, "Other")
    answer = await other.client.delete(f"/v1/subscribers/{person}?erase=true")

    check_error(answer, 404, "subscriber_not_found")
    assert "core_subscribers" in await tables_with(service, NAME)
