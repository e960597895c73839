"""/v1/permissions, what subscribers granted, and what is told of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import Blocked, ChannelUser, Started
from msgsvc_core.kernel.errors import PermissionHasSubscribers
from msgsvc_core.service import Service
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe
from tests.api.reading import events_named

MakeTenant = Callable[..., Awaitable[Tenant]]

ANN = ChannelUser("user-Ann", "Ann", "ann", "en")
CHANGED = "subscription.permission_changed"


async def make(client: httpx2.AsyncClient, key: str, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/permissions", json={"key": key, "title": "News", **body})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def granted_by(client: httpx2.AsyncClient, subscriber_id: str) -> list[str]:
    return list((await client.get(f"/v1/subscribers/{subscriber_id}")).json()["permissions"])


async def told(client: httpx2.AsyncClient) -> list[tuple[str, bool]]:
    """Which permissions were told of as granted or revoked, oldest first."""
    return [(data["permission"], data["granted"]) for data in await events_named(client, CHANGED)]


async def block(service: Service, name: str = "Ann") -> None:
    user = ChannelUser(f"user-{name}", name, None, "en")
    await service.inbound.receive(
        "messenger_a", Blocked(update_id=f"block-{name}", chat_id=f"chat-{name}", user=user)
    )


async def test_a_permission_is_made_and_shown(client: httpx2.AsyncClient) -> None:
    made = await make(
        client, "news", title={"en": "News", "ru": "Новости"}, description="Weekly", default=True
    )

    assert made == {
        "key": "news",
        "title": {"en": "News", "ru": "Новости"},
        "description": "Weekly",
        "default": True,
        "active_subscribers": 0,
        "created_at": "2026-01-15T12:00:00.000Z",
    }
    assert (await client.get("/v1/permissions/news")).json() == made


@pytest.mark.both_databases
async def test_permissions_are_listed_page_by_page_without_gap(client: httpx2.AsyncClient) -> None:
    keys = [f"p{number}" for number in range(5)]
    for key in keys:
        await make(client, key)

    first = (await client.get("/v1/permissions?limit=3")).json()
    second = (await client.get("/v1/permissions", params={"cursor": first["next_cursor"]})).json()

    assert [one["key"] for one in first["data"] + second["data"]] == keys[::-1]
    assert second["next_cursor"] is None


async def test_people_are_shown_permissions_in_the_order_they_were_made(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    for key in ("a", "b", "c"):
        await make(client, key)

    async with service.db.read() as tx:
        found = await service.get(Permissions).list_all(tx, tenant.project.project_id)
    assert [one.key for one in found] == ["a", "b", "c"]


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"key": "News"}, "key"),
        ({"key": ""}, "key"),
        ({"key": "x" * 65}, "key"),
        ({"title": ""}, "title"),
        ({"title": "x" * 65}, "title"),
        ({"title": {"ru": "x" * 65}}, "title"),
        ({"title": None}, "title"),
        ({"description": "x" * 257}, "description"),
        ({"description": {"de": "x"}}, "description"),
        ({"default": "yes"}, "default"),
        ({"default": None}, "default"),
    ],
)
async def test_a_malformed_permission_is_refused_by_its_field(
    client: httpx2.AsyncClient, check_error: CheckError, body: dict[str, Any], field: str
) -> None:
    made = await client.post("/v1/permissions", json={"key": "news", "title": "News", **body})
    errors = [check_error(made, 400, "validation_failed")]
    if field != "key":
        await make(client, "news")
        changed = await client.patch("/v1/permissions/news", json=body)
        errors.append(check_error(changed, 400, "validation_failed"))

    assert all(error["error"].startswith(f"{field}: ") for error in errors)


async def test_texts_of_the_greatest_length_are_taken(client: httpx2.AsyncClient) -> None:
    await make(client, "x" * 64, title="ё" * 64, description={"ru": "ё" * 256})


async def test_a_key_that_is_taken_is_a_conflict(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await make(client, "news")

    answer = await client.post("/v1/permissions", json={"key": "news", "title": "Other"})

    check_error(answer, 409, "conflict")
    assert (await client.get("/v1/permissions/news")).json()["title"] == "News"


@pytest.mark.both_databases
async def test_a_change_keeps_what_it_leaves_out(client: httpx2.AsyncClient) -> None:
    await make(client, "news", description="Weekly", default=True)

    renamed = await client.patch("/v1/permissions/news", json={"title": {"ru": "Новости"}})
    bare = await client.patch("/v1/permissions/news", json={"description": None, "default": False})
    same = await client.patch("/v1/permissions/news", json={})

    assert renamed.json()["title"] == {"ru": "Новости"}
    assert (renamed.json()["description"], renamed.json()["default"]) == ("Weekly", True)
    assert (bare.json()["description"], bare.json()["default"]) == (None, False)
    assert same.json() == bare.json()


async def test_an_unknown_permission_is_not_found(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    for answer in (
        await client.get("/v1/permissions/nothing"),
        await client.patch("/v1/permissions/nothing", json={}),
        await client.delete("/v1/permissions/nothing"),
        await client.put(f"/v1/subscribers/{ann}/permissions/nothing"),
        await client.delete(f"/v1/subscribers/{ann}/permissions/nothing"),
    ):
        check_error(answer, 404, "not_found")


async def test_only_subscribers_that_there_are_grant(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await make(client, "news")

    for method in ("PUT", "DELETE"):
        answer = await client.request(method, "/v1/subscribers/sub_nobody/permissions/news")
        check_error(answer, 404, "subscriber_not_found")


async def test_only_a_real_change_is_told(client: httpx2.AsyncClient, ann: str) -> None:
    await make(client, "news")
    path = f"/v1/subscribers/{ann}/permissions/news"

    granted = [(await client.put(path)).json()["permissions"] for _ in range(2)]
    revoked = [(await client.delete(path)) for _ in range(2)]

    assert granted == [["news"], ["news"]]
    assert [(each.status_code, each.content) for each in revoked] == [(204, b"")] * 2
    assert (await client.get(f"/v1/subscribers/{ann}")).json()["permissions"] == []
    assert await told(client) == [("news", True), ("news", False)]


async def test_the_event_carries_the_subscriber(client: httpx2.AsyncClient, ann: str) -> None:
    await make(client, "news")
    await client.put(f"/v1/subscribers/{ann}/permissions/news")

    assert await events_named(client, CHANGED) == [
        {
            "occurred_at": "2026-01-15T12:00:00.000Z",
            "subscriber_id": ann,
            "channel": "messenger_a",
            "first_name": "Ann",
            "username": "ann",
            "lang": "en",
            "tags": [],
            "external_id": None,
            "permission": "news",
            "granted": True,
        }
    ]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_grants_at_once_are_told_once(client: httpx2.AsyncClient, ann: str) -> None:
    await make(client, "news")
    path = f"/v1/subscribers/{ann}/permissions/news"

    answers = await asyncio.gather(*[client.put(path) for _ in range(10)])

    assert {answer.status_code for answer in answers} == {200}
    assert await told(client) == [("news", True)]


async def test_a_default_is_granted_by_who_subscribes_from_then_on(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    before = await subscribe("Ann")
    await make(client, "news", default=True)
    await make(client, "sale")
    after = await subscribe("Bob")

    assert await granted_by(client, before) == []
    assert await granted_by(client, after) == ["news"]
    assert (await client.get("/v1/permissions/news")).json()["active_subscribers"] == 1


async def test_a_default_is_told_after_the_subscription(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await make(client, "news", default=True)
    await subscribe("Ann")

    names = [event["event"] for event in (await client.get("/v1/events")).json()["data"]]
    assert names == [CHANGED, "subscription.created"]


async def test_who_returns_has_granted_what_they_had(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    for key in ("kept", "revoked"):
        await make(client, key, default=True)
    subscriber_id = await subscribe("Ann")
    await client.delete(f"/v1/subscribers/{subscriber_id}/permissions/revoked")
    await block(service)
    await make(client, "later", default=True)
    await subscribe("Ann")

    assert await granted_by(client, subscriber_id) == ["kept"]


@pytest.mark.both_databases
async def test_a_default_that_is_one_no_more_stays_with_who_granted_it(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await make(client, "news", default=True)
    first = await subscribe("Ann")
    await client.patch("/v1/permissions/news", json={"default": False})
    second = await subscribe("Bob")

    assert await granted_by(client, first) == ["news"]
    assert await granted_by(client, second) == []


async def test_a_permission_of_active_subscribers_is_not_removed(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe, check_error: CheckError
) -> None:
    await make(client, "news", default=True)
    for name in ("Ann", "Bob"):
        await subscribe(name)
    await block(service, "Ann")

    check_error(await client.delete("/v1/permissions/news"), 409, "permission_has_subscribers")
    assert (await client.get("/v1/permissions/news")).json()["active_subscribers"] == 1
    await block(service, "Bob")
    assert (await client.delete("/v1/permissions/news")).status_code == 204


async def test_a_granted_permission_is_removed_by_who_confirms_how_many_granted_it(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, subscribe: Subscribe
) -> None:
    project_id = tenant.project.project_id
    await make(client, "news", default=True)
    subscriber_id = await subscribe("Ann")
    await subscribe("Bob")
    with pytest.raises(PermissionHasSubscribers, match="2 active"):
        async with service.db.transaction() as tx:
            # Bob came after the number was shown.
            await service.get(Permissions).delete_confirmed(tx, project_id, "news", 1)
    kept = await granted_by(client, subscriber_id)
    async with service.db.transaction() as tx:
        removed_from = await service.get(Permissions).delete_confirmed(tx, project_id, "news", 2)

    assert (kept, removed_from) == (["news"], 2)
    assert await granted_by(client, subscriber_id) == []
    assert (await client.get("/v1/permissions")).json()["data"] == []


@pytest.mark.parametrize("name", ["Ann", "Bob"])
async def test_a_link_grants_to_known_and_new_alike(
    client: httpx2.AsyncClient, subscribe: Subscribe, name: str
) -> None:
    for key in ("news", "sale", "other"):
        await make(client, key)
    await subscribe("Ann")
    subscriber_id = await subscribe(name, permissions=["sale", "news", "sale"])
    await subscribe(name, permissions=["sale"])

    assert await granted_by(client, subscriber_id) == ["news", "sale"]
    assert await told(client) == [("news", True), ("sale", True)]


async def test_a_link_grants_only_permissions_that_there_are(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await make(client, "news")

    answer = await client.post("/v1/subscribers/links", json={"permissions": ["news", "nws"]})

    error = check_error(answer, 400, "validation_failed")["error"]
    assert error == "permissions[1]: there is no permission 'nws'"


async def test_a_link_goes_on_without_a_permission_that_was_removed(
    service: Service, client: httpx2.AsyncClient
) -> None:
    for key in ("news", "sale"):
        await make(client, key)
    link = await client.post("/v1/subscribers/links", json={"permissions": ["news", "sale"]})
    await client.delete("/v1/permissions/news")
    payload = link.json()["links"]["messenger_a"].partition("start=")[2]
    await service.inbound.receive(
        "messenger_a", Started(update_id="u1", chat_id="chat-Ann", user=ANN, payload=payload)
    )

    (found,) = (await client.get("/v1/subscribers")).json()["data"]
    assert found["permissions"] == ["sale"]


async def test_a_project_has_20_permissions_and_not_one_more(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    for number in range(20):
        await make(client, f"p{number}")

    more = await client.post("/v1/permissions", json={"key": "more", "title": "More"})

    assert "at most 20" in check_error(more, 409, "conflict")["error"]
    assert len((await client.get("/v1/permissions")).json()["data"]) == 20


async def test_a_removed_permission_makes_room_for_another(
    make_service: ServiceFactory, make_tenant: MakeTenant, check_error: CheckError
) -> None:
    service = await make_service(limits={"permissions": 1})
    client = (await make_tenant(service)).client
    await make(client, "news")

    more = await client.post("/v1/permissions", json={"key": "more", "title": "More"})
    check_error(more, 409, "conflict")
    await client.delete("/v1/permissions/news")
    await make(client, "more")
