"""Subscribing by link, and what the API shows of subscribers."""

from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Blocked, ChannelUser, MessageReceived, Started
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, RecordingChannel, settled
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import CheckError, Subscribe

ANN = ChannelUser("user-Ann", "Ann", "ann", "en")


async def link_payload(client: httpx2.AsyncClient, **body: Any) -> str:
    answer = await client.post("/v1/subscribers/links", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["links"]["messenger_a"].partition("start=")[2])


def started(payload: str, update_id: str = "u1", user: ChannelUser = ANN) -> Started:
    return Started(update_id=update_id, chat_id="chat-1", user=user, payload=payload)


async def events_of(client: httpx2.AsyncClient) -> list[tuple[str, dict[str, Any]]]:
    """Names and data, oldest first."""
    data = (await client.get("/v1/events")).json()["data"]
    return [(event["event"], event["data"]) for event in reversed(data)]


async def test_a_subscriber_is_shown_as_they_are_on_the_platform(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Ann", tags=["vip"], external_id="customer-1")

    answer = await client.get(f"/v1/subscribers/{subscriber_id}")

    assert answer.json() == {
        "subscriber_id": subscriber_id,
        "channel": "messenger_a",
        "first_name": "Ann",
        "username": "ann",
        "lang": "en",
        "locale": "en",
        "tags": ["vip"],
        "permissions": [],
        "attributes": {},
        "external_id": "customer-1",
        "status": "active",
        "created_at": "2026-01-15T12:00:00.000Z",
        "last_seen_at": "2026-01-15T12:00:00.000Z",
    }


async def test_ids_have_the_form_of_the_spec(subscribe: Subscribe) -> None:
    subscriber_id = await subscribe()

    prefix, _, rest = subscriber_id.partition("_")
    assert (prefix, len(rest), rest.isalnum()) == ("sub", 22, True)


async def test_an_unknown_subscriber_is_not_found(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await client.get("/v1/subscribers/sub_nobody")

    check_error(answer, 404, "subscriber_not_found")


async def test_subscribing_emits_the_event_with_the_subscribers_fields(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Ann")

    ((name, data),) = await events_of(client)
    assert name == "subscription.created"
    assert data == {
        "occurred_at": "2026-01-15T12:00:00.000Z",
        "subscriber_id": subscriber_id,
        "channel": "messenger_a",
        "first_name": "Ann",
        "username": "ann",
        "lang": "en",
        "tags": [],
        "external_id": None,
        "source": "deep_link",
    }


async def test_the_event_of_a_link_with_tags_and_an_id_carries_them(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Ann", tags=["vip"], external_id="customer-1")

    ((_, data),) = await events_of(client)
    assert (data["tags"], data["external_id"]) == (["vip"], "customer-1")


async def test_opening_a_link_twice_subscribes_once(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    assert await subscribe("Ann") == await subscribe("Ann")
    assert [name for name, _ in await events_of(client)] == ["subscription.created"]


async def test_an_update_that_comes_twice_is_handled_once(
    service: Service, client: httpx2.AsyncClient, channel: RecordingChannel
) -> None:
    update = started(await link_payload(client))
    for _ in range(2):
        await service.inbound.receive("messenger_a", update)
    await settled(service)

    assert len(channel.sent) == 1


async def test_the_bot_confirms_in_the_persons_language(
    service: Service, subscribe: Subscribe, channel: RecordingChannel
) -> None:
    await subscribe("Анна", lang="ru-RU")

    assert channel.texts == ["Вы подписаны на уведомления от «Shop»."]


async def test_another_language_becomes_the_default_one(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Annette", lang="fr")

    assert (await client.get(f"/v1/subscribers/{subscriber_id}")).json()["lang"] == "en"


async def test_an_expired_link_subscribes_nobody(
    service: Service, client: httpx2.AsyncClient, clock: FakeClock, channel: RecordingChannel
) -> None:
    payload = await link_payload(client, expires_in=60)
    clock.advance(60)
    await service.inbound.receive("messenger_a", started(payload))
    await settled(service)

    assert (await client.get("/v1/subscribers")).json()["data"] == []
    assert "no longer valid" in channel.texts[0]


async def test_a_disabled_projects_link_subscribes_nobody(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, channel: RecordingChannel
) -> None:
    payload = await link_payload(client)
    await service.projects.set_active(tenant.project.project_id, False)
    await service.inbound.receive("messenger_a", started(payload))
    await settled(service)

    assert "no longer valid" in channel.texts[0]
    await service.projects.set_active(tenant.project.project_id, True)
    assert (await client.get("/v1/subscribers")).json()["data"] == []


@pytest.mark.shared_service
@pytest.mark.parametrize("payload", ["sub_", "sub_nonsense", "other_thing", "x" * 64])
async def test_an_unknown_start_payload_is_answered_kindly(
    service: Service, channel: RecordingChannel, payload: str
) -> None:
    await service.inbound.receive("messenger_a", started(payload))
    await settled(service)

    assert "no longer valid" in channel.texts[0]


async def test_a_start_without_payload_is_greeted(
    service: Service, channel: RecordingChannel
) -> None:
    await service.inbound.receive("messenger_a", started(""))
    await settled(service)

    assert channel.texts[0].startswith("Hello!")


async def test_a_text_that_nobody_wants_does_no_harm(
    service: Service, channel: RecordingChannel
) -> None:
    await service.inbound.receive(
        "messenger_a", MessageReceived(update_id="t1", chat_id="chat-1", user=ANN, text="Hi?")
    )
    await settled(service)

    assert channel.sent == []


@pytest.mark.both_databases
async def test_who_blocks_the_bot_is_no_subscriber_any_more(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Ann")
    await service.inbound.receive(
        "messenger_a", Blocked(update_id="b1", chat_id="chat-Ann", user=ANN)
    )

    assert (await client.get(f"/v1/subscribers/{subscriber_id}")).json()["status"] == "blocked"
    name, data = (await events_of(client))[-1]
    assert (name, data["reason"]) == ("subscription.deleted", "user_blocked_bot")


async def test_who_comes_back_is_the_same_subscriber_and_created_again(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    first_id = await subscribe("Ann")
    await service.inbound.receive(
        "messenger_a", Blocked(update_id="b1", chat_id="chat-Ann", user=ANN)
    )

    assert await subscribe("Ann") == first_id
    assert [name for name, _ in await events_of(client)] == [
        "subscription.created",
        "subscription.deleted",
        "subscription.created",
    ]


async def test_one_person_on_two_channels_is_two_subscribers(subscribe: Subscribe) -> None:
    assert await subscribe("Ann") != await subscribe("Ann", channel="messenger_b")


async def test_a_changed_name_is_taken_over(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Ann")
    renamed = ChannelUser("user-Ann", "Anna", "anna", "en")
    payload = await link_payload(client)
    await service.inbound.receive("messenger_a", started(payload, "u2", renamed))

    shown = (await client.get(f"/v1/subscribers/{subscriber_id}")).json()
    assert (shown["first_name"], shown["username"]) == ("Anna", "anna")


async def test_an_external_id_that_is_taken_on_the_channel_stays_with_its_owner(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    owner = await subscribe("Ann", external_id="customer-1")
    other = await subscribe("Bob", external_id="customer-1")

    found = (await client.get("/v1/subscribers?external_id=customer-1")).json()["data"]
    assert [subscriber["subscriber_id"] for subscriber in found] == [owner]
    assert (await client.get(f"/v1/subscribers/{other}")).json()["external_id"] is None


async def test_one_external_id_may_bind_one_subscriber_of_each_channel(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Ann", channel="messenger_a", external_id="customer-1")
    second = await subscribe("Ann", channel="messenger_b")
    # As the project says; by a link, the first is asked before.
    await client.patch(f"/v1/subscribers/{second}", json={"external_id": "customer-1"})

    found = (await client.get("/v1/subscribers?external_id=customer-1")).json()["data"]
    assert {subscriber["channel"] for subscriber in found} == {"messenger_a", "messenger_b"}


@pytest.mark.shared_service
@pytest.mark.parametrize(
    "external_id", ["", " x", "x ", "x" * 129, "a\nb", "a\tb", "\u200b", "\u00a0x"]
)
async def test_a_malformed_external_id_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, external_id: str
) -> None:
    answer = await client.post("/v1/subscribers/links", json={"external_id": external_id})

    check_error(answer, 400, "invalid_external_id")


@pytest.mark.parametrize("external_id", ["x", "x" * 128, "a b", "клиент-1", "日本", "%_'\":?"])
async def test_any_printable_external_id_is_found_again(
    client: httpx2.AsyncClient, subscribe: Subscribe, external_id: str
) -> None:
    subscriber_id = await subscribe("Ann", external_id=external_id)

    found = await client.get("/v1/subscribers", params={"external_id": external_id})

    assert [subscriber["subscriber_id"] for subscriber in found.json()["data"]] == [subscriber_id]


@pytest.mark.shared_service
@pytest.mark.parametrize("tag", ["", "a b", "a.b", "x" * 65, "😀", "a\n"])
async def test_a_malformed_tag_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, tag: str
) -> None:
    answer = await client.post("/v1/subscribers/links", json={"tags": [tag]})

    check_error(answer, 400, "validation_failed")


@pytest.mark.parametrize("tag", ["a", "VIP_1-2", "постоянный", "常連", "x" * 64])
async def test_a_tag_has_letters_of_any_script(
    client: httpx2.AsyncClient, subscribe: Subscribe, tag: str
) -> None:
    subscriber_id = await subscribe("Ann", tags=[tag])

    found = await client.get("/v1/subscribers", params={"tag": tag})

    assert [subscriber["subscriber_id"] for subscriber in found.json()["data"]] == [subscriber_id]


async def test_a_project_has_20_tags_and_not_one_more(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    full = await client.post("/v1/subscribers/links", json={"tags": [f"t{n}" for n in range(20)]})
    known = await client.post("/v1/subscribers/links", json={"tags": ["t0", "t19"]})
    more = await client.post("/v1/subscribers/links", json={"tags": ["t20"]})

    assert (full.status_code, known.status_code) == (201, 201)
    check_error(more, 409, "conflict")


@pytest.mark.both_databases
async def test_pages_lead_from_the_newest_to_the_oldest_without_gap_or_repetition(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    names = [f"P{number}" for number in range(5)]
    for name in names:
        await subscribe(name)

    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        params = {"limit": "2", **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/v1/subscribers", params=params)).json()
        seen += [subscriber["first_name"] for subscriber in page["data"]]
        cursor = page["next_cursor"]

    assert seen == names[::-1]


async def test_a_page_that_ends_the_list_has_no_cursor(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    for name in ("Ann", "Bob"):
        await subscribe(name)

    assert (await client.get("/v1/subscribers?limit=2")).json()["next_cursor"] is None


@pytest.mark.shared_service
@pytest.mark.parametrize("cursor", ["x", "????", "ä", "%00", "c3ViXyc7LS0", ""])
async def test_a_cursor_that_is_not_ours_is_a_bad_request(
    client: httpx2.AsyncClient, check_error: CheckError, cursor: str
) -> None:
    answer = await client.get("/v1/subscribers", params={"cursor": cursor})

    check_error(answer, 400, "validation_failed" if cursor == "\0" else "bad_request")


async def test_a_link_is_given_per_channel_with_its_qr_code(client: httpx2.AsyncClient) -> None:
    answer = (await client.post("/v1/subscribers/links", json={"expires_in": 60})).json()

    assert set(answer["links"]) == set(answer["qr"]) == {"messenger_a", "messenger_b"}
    assert answer["expires_at"] == "2026-01-15T12:01:00.000Z"


async def test_the_qr_code_needs_no_key(client: httpx2.AsyncClient) -> None:
    address = (await client.post("/v1/subscribers/links", json={})).json()["qr"]["messenger_a"]

    answer = await client.get(address.partition("8000")[2], headers={"Authorization": ""})

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("image/svg+xml")


async def test_the_database_does_not_hold_what_a_link_carries(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    payload = await link_payload(client)

    async with service.db.read() as tx:
        (row,) = await tx.fetch_all("SELECT * FROM core_links")
    assert payload.removeprefix("sub_") not in " ".join(str(row[column]) for column in row.keys())
