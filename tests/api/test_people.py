"""People: the subscribers that share an `external_id`, shown together, merged and split."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import Subscribe

CheckError = Callable[..., Any]

pytestmark = pytest.mark.both_databases

LOOKUP = "/v1/people/lookup"


async def person(client: httpx2.AsyncClient, external_id: str) -> dict[str, Any]:
    answer = await client.get(LOOKUP, params={"external_id": external_id})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def on(client: httpx2.AsyncClient, external_id: str) -> list[str]:
    """The channels of a person."""
    return [each["channel"] for each in (await person(client, external_id))["addresses"]]


async def consents(client: httpx2.AsyncClient, external_id: str) -> dict[str, str]:
    found = await person(client, external_id)
    return {each["channel"]: each["consent"] for each in found["addresses"]}


async def test_a_person_is_shown_with_all_addresses(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, subscribe: Subscribe
) -> None:
    await client.post("/v1/permissions", json={"key": "news", "title": "News"})
    on_a = await subscribe("Ann", external_id="u1", tags=["vip"], permissions=["news"])
    on_b = await subscribe("Anna", channel="messenger_b")
    await client.patch(f"/v1/subscribers/{on_b}", json={"external_id": "u1"})
    await client.delete(f"/v1/subscribers/{on_b}")
    async with service.db.transaction() as tx:
        await service.contacts.record(
            tx,
            tenant.project.project_id,
            on_a,
            kind="phone",
            value="+12025550123",
            source="telegram",
        )

    found = await person(client, "u1")
    first, second = found["addresses"]
    assert found["external_id"] == "u1"
    assert (first["subscriber_id"], first["channel"]) == (on_a, "messenger_a")
    assert (first["username"], first["status"], first["consent"]) == ("ann", "active", "subscribed")
    assert (first["tags"], first["permissions"]) == (["vip"], ["news"])
    assert first["verified_contacts"] == [
        {"kind": "phone", "value": "+12025550123", "verified_at": "2026-01-15T12:00:00.000Z"}
    ]
    assert (second["subscriber_id"], second["consent"]) == (on_b, "unsubscribed")
    assert second["verified_contacts"] == []


@pytest.mark.parametrize(
    "external_id", ["a/b", "lookup", "merge", "../v1", "50%", "é ?&=#", "+1 2"]
)
async def test_any_id_is_found(
    client: httpx2.AsyncClient, subscribe: Subscribe, external_id: str
) -> None:
    ann = await subscribe("Ann", external_id=external_id)

    found = await person(client, external_id)
    assert [each["subscriber_id"] for each in found["addresses"]] == [ann]


async def test_people_are_listed_page_by_page_without_those_who_have_no_id(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Zoe")
    names = ("Ann", "Bob", "Cid")
    for name in names:
        await subscribe(name, external_id=f"{name}/é")
    anna = await subscribe("Anna", channel="messenger_b")
    await client.patch(f"/v1/subscribers/{anna}", json={"external_id": "Ann/é"})

    first = (await client.get("/v1/people", params={"limit": 2})).json()
    second = (
        await client.get("/v1/people", params={"limit": 2, "cursor": first["next_cursor"]})
    ).json()
    listed = [*first["data"], *second["data"]]
    assert [each["external_id"] for each in listed] == [f"{name}/é" for name in names]
    assert len(listed[0]["addresses"]) == 2
    assert second["next_cursor"] is None


async def test_nobody_is_found_by_an_unknown_or_another_projects_id(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    make_tenant: Callable[..., Any],
    check_error: CheckError,
) -> None:
    await subscribe("Ann", external_id="u1")
    other = await make_tenant(service, "Other")

    for asked, external_id in ((client, "u2"), (other.client, "u1")):
        answer = await asked.get(LOOKUP, params={"external_id": external_id})
        check_error(answer, 404, "subscriber_not_found")
    answer = await client.get(LOOKUP, params={"external_id": " u1"})
    check_error(answer, 400, "invalid_external_id")
    assert (await other.client.get("/v1/people")).json()["data"] == []


async def test_consent_is_set_per_channel(client: httpx2.AsyncClient, subscribe: Subscribe) -> None:
    await subscribe("Ann", external_id="u1")
    anna = await subscribe("Anna", channel="messenger_b")
    await client.patch(f"/v1/subscribers/{anna}", json={"external_id": "u1"})
    body = {"external_id": "u1", "channel": "messenger_b"}

    ended = await client.post("/v1/people/consent", json={**body, "consent": "unsubscribed"})
    assert ended.status_code == 200, ended.text
    assert await consents(client, "u1") == {
        "messenger_a": "subscribed",
        "messenger_b": "unsubscribed",
    }
    for _ in range(2):
        again = await client.post("/v1/people/consent", json={**body, "consent": "subscribed"})
        assert again.status_code == 200, again.text
    assert (await consents(client, "u1"))["messenger_b"] == "subscribed"
    events = (await client.get("/v1/events")).json()["data"]
    told = [each["event"] for each in events if each["data"].get("channel") == "messenger_b"]
    assert sorted(told) == [
        "subscription.created",
        "subscription.created",
        "subscription.deleted",
    ]


async def test_two_people_become_one(client: httpx2.AsyncClient, subscribe: Subscribe) -> None:
    await subscribe("Ann", external_id="u1")
    anna = await subscribe("Anna", channel="messenger_b", external_id="old-1")

    merged = await client.post("/v1/people/merge", json={"external_id": "old-1", "into": "u1"})
    assert merged.status_code == 200, merged.text
    assert merged.json() == await person(client, "u1")
    assert await on(client, "u1") == ["messenger_a", "messenger_b"]
    assert [each["external_id"] for each in (await client.get("/v1/people")).json()["data"]] == [
        "u1"
    ]
    found = await client.get("/v1/subscribers", params={"query": "u1"})
    assert anna in [each["subscriber_id"] for each in found.json()["data"]]


async def test_a_merge_is_refused_as_a_whole(
    client: httpx2.AsyncClient, subscribe: Subscribe, check_error: CheckError
) -> None:
    await subscribe("Ann", external_id="u1")
    await subscribe("Ben", external_id="u2")
    bens = await subscribe("Benny", channel="messenger_b")
    await client.patch(f"/v1/subscribers/{bens}", json={"external_id": "u2"})

    async def merge(external_id: str, into: str) -> httpx2.Response:
        return await client.post(
            "/v1/people/merge", json={"external_id": external_id, "into": into}
        )

    said = check_error(await merge("u2", "u1"), 409, "conflict")
    assert "messenger_a" in said["error"]
    assert await on(client, "u2") == ["messenger_a", "messenger_b"]
    check_error(await merge("u1", "u1"), 400, "validation_failed")
    check_error(await merge("u1", "nobody"), 404, "subscriber_not_found")
    check_error(await merge("nobody", "u1"), 404, "subscriber_not_found")


async def test_two_merges_in_opposite_directions_lose_nobody(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Ann", external_id="u1")
    await subscribe("Anna", channel="messenger_b", external_id="u2")

    answers = await asyncio.gather(
        client.post("/v1/people/merge", json={"external_id": "u1", "into": "u2"}),
        client.post("/v1/people/merge", json={"external_id": "u2", "into": "u1"}),
    )
    assert sorted(answer.status_code for answer in answers) == [200, 404]
    [left] = (await client.get("/v1/people")).json()["data"]
    assert [each["channel"] for each in left["addresses"]] == ["messenger_a", "messenger_b"]


async def test_an_open_personal_link_leads_to_the_id_that_stays(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    await subscribe("Ann", external_id="u1")
    anna = await subscribe("Anna", channel="messenger_b", external_id="old-1")
    answer = await client.post("/v1/subscribers/links", json={"external_id": "old-1"})
    assert answer.status_code == 201
    await client.post("/v1/people/merge", json={"external_id": "old-1", "into": "u1"})

    async with service.db.read() as tx:
        carried = await tx.fetch_all("SELECT external_id FROM core_links")
    assert "old-1" not in {row["external_id"] for row in carried}
    assert "u1" in {row["external_id"] for row in carried}
    assert (await client.get(f"/v1/subscribers/{anna}")).json()["external_id"] == "u1"


async def test_a_subscriber_leaves_the_person(
    client: httpx2.AsyncClient, subscribe: Subscribe, check_error: CheckError
) -> None:
    await subscribe("Ann", external_id="u1")
    anna = await subscribe("Anna", channel="messenger_b", tags=["vip"])
    await client.patch(f"/v1/subscribers/{anna}", json={"external_id": "u1"})

    split = await client.post("/v1/people/split", json={"subscriber_id": anna})
    assert split.status_code == 200, split.text
    assert (split.json()["external_id"], split.json()["tags"]) == (None, ["vip"])
    assert await on(client, "u1") == ["messenger_a"]
    again = await client.post("/v1/people/split", json={"subscriber_id": anna})
    check_error(again, 409, "conflict")
    unknown = await client.post("/v1/people/split", json={"subscriber_id": "sub_unknown"})
    check_error(unknown, 404, "subscriber_not_found")
