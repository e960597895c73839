"""/v1/members: the people of a project, one by each email."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.members import Member
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe

Changes = list[tuple[Member, Member | None]]


class Watching:
    """Notes what the hook is told."""

    def __init__(self) -> None:
        self.seen: Changes = []

    @hookimpl
    async def on_member_changed(self, before: Member, after: Member | None) -> None:
        self.seen.append((before, after))


@pytest.fixture
def watching() -> Watching:
    return Watching()


@pytest.fixture
async def service(make_service: ServiceFactory, watching: Watching) -> Service:
    return await make_service(extra_plugins=[("watching", watching)])


async def add(client: httpx2.AsyncClient, email: str = "ann@shop.example", **body: Any) -> Any:
    answer = await client.post("/v1/members", json={"name": "Ann", "email": email, **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def emails(client: httpx2.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get("/v1/members", params=query)
    return [member["email"] for member in answer.json()["data"]]


async def test_a_member_is_shown_as_they_were_added(client: httpx2.AsyncClient) -> None:
    added = await add(client, " Ann@Shop.Example ", name="Ann  Lee", role="admin")

    shown = await client.get(f"/v1/members/{added['member_id']}")
    assert shown.json() == added
    assert added["member_id"].startswith("mem_")
    assert {name: added[name] for name in added if name != "member_id"} == {
        "name": "Ann Lee",
        "email": "ann@shop.example",
        "role": "admin",
        "status": "active",
        "subscriber_ids": [],
        "created_at": "2026-01-15T12:00:00.000Z",
        "removed_at": None,
    }


async def test_who_is_added_without_a_role_answers_customers(client: httpx2.AsyncClient) -> None:
    assert (await add(client))["role"] == "agent"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "  "),
        ("name", "x" * 101),
        ("name", "Ann\x07"),
        ("name", "\u202eAnn"),
        ("email", "ann"),
        ("email", "Ann <ann@shop.example>"),
        ("role", "boss"),
    ],
)
async def test_a_field_that_breaks_a_rule_is_named(
    client: httpx2.AsyncClient, check_error: CheckError, field: str, value: str
) -> None:
    body = {"name": "Ann", "email": "ann@shop.example", field: value}

    answer = await client.post("/v1/members", json=body)

    assert check_error(answer, 400, "validation_failed")["error"].startswith(f"{field}: ")


async def test_an_email_names_one_member_in_whatever_case(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await add(client)

    answer = await client.post("/v1/members", json={"name": "Bob", "email": "ANN@shop.example"})

    check_error(answer, 409, "conflict")
    assert await emails(client) == ["ann@shop.example"]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_who_add_an_email_at_once_one_succeeds(client: httpx2.AsyncClient) -> None:
    body = {"name": "Ann", "email": "ann@shop.example"}

    answers = await asyncio.gather(*(client.post("/v1/members", json=body) for _ in range(5)))

    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]


async def test_another_project_may_have_a_member_of_the_same_email(
    service: Service,
    client: httpx2.AsyncClient,
    make_tenant: Callable[..., Awaitable[Tenant]],
) -> None:
    await add(client)
    other = await make_tenant(service, "Other")

    assert (await add(other.client))["email"] == "ann@shop.example"


async def test_what_is_left_out_of_a_change_stays(client: httpx2.AsyncClient) -> None:
    added = await add(client)

    answer = await client.patch(f"/v1/members/{added['member_id']}", json={"role": "viewer"})

    assert answer.json() == {**added, "role": "viewer"}


async def test_an_email_can_be_changed_to_one_that_is_free(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    ann, _bob = await add(client), await add(client, "bob@shop.example")
    path = f"/v1/members/{ann['member_id']}"

    taken = await client.patch(path, json={"email": "Bob@shop.example"})
    free = await client.patch(path, json={"email": "Lee@shop.example"})
    same = await client.patch(path, json={"email": "lee@shop.example"})

    check_error(taken, 409, "conflict")
    assert free.json()["email"] == same.json()["email"] == "lee@shop.example"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_who_take_an_email_by_a_change_at_once_one_succeeds(
    client: httpx2.AsyncClient,
) -> None:
    paths = [
        f"/v1/members/{(await add(client, f'{name}@shop.example'))['member_id']}" for name in "abc"
    ]

    answers = await asyncio.gather(
        *(client.patch(path, json={"email": "desk@shop.example"}) for path in paths)
    )

    assert sorted(answer.status_code for answer in answers) == [200, 409, 409]


async def test_who_is_removed_is_shown_apart_and_frees_their_email(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    added = await add(client)
    path = f"/v1/members/{added['member_id']}"

    removed, again = await client.delete(path), await client.delete(path)
    changed = await client.patch(path, json={"name": "Lee"})
    anew = await add(client)

    assert (removed.status_code, again.status_code) == (204, 204)
    check_error(changed, 409, "conflict")
    shown = (await client.get(path)).json()
    assert (shown["status"], shown["removed_at"]) == ("removed", "2026-01-15T12:00:00.000Z")
    assert await emails(client, status="removed") == ["ann@shop.example"]
    assert [anew["email"]] == await emails(client)
    assert anew["member_id"] != added["member_id"]


@pytest.mark.both_databases
async def test_who_is_erased_is_gone(
    service: Service, client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    path = f"/v1/members/{(await add(client))['member_id']}"

    await client.delete(path)
    erased = await client.delete(path, params={"erase": "true"})

    assert erased.is_success
    check_error(await client.get(path), 404, "not_found")
    async with service.db.read() as tx:
        assert await tx.fetch_all("SELECT * FROM core_members") == []


@pytest.mark.both_databases
async def test_members_are_listed_by_pages_the_newest_first(client: httpx2.AsyncClient) -> None:
    for name in "abcde":
        await add(client, f"{name}@shop.example", role="viewer" if name == "c" else "agent")

    seen: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        page = (await client.get("/v1/members", params={"limit": 2, **cursor})).json()
        seen += [member["email"][0] for member in page["data"]]
        cursor = {"cursor": page["next_cursor"]}

    assert seen == list("edcba")
    assert page["next_cursor"] is None
    assert await emails(client, role="viewer") == ["c@shop.example"]


async def test_agents_are_all_but_viewers_the_oldest_first(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant
) -> None:
    for name, role in zip("abcd", ("owner", "viewer", "agent", "admin"), strict=True):
        await add(client, f"{name}@shop.example", role=role)
    gone = await add(client, "gone@shop.example")
    await client.delete(f"/v1/members/{gone['member_id']}")

    async with service.db.read() as tx:
        agents = await service.members.list_agents(tx, tenant.project.project_id)

    assert [agent.email[0] for agent in agents] == list("acd")
    assert all(agent.is_agent for agent in agents)


async def test_a_key_needs_the_scope(
    service: Service, tenant: Tenant, client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    async def answered(scope: str) -> httpx2.Response:
        _key, secret = await service.projects.create_key(tenant.project.project_id, "k", [scope])
        return await client.get("/v1/members", headers={"Authorization": f"Bearer {secret}"})

    check_error(await answered("subscribers"), 403, "forbidden")
    assert (await answered("members")).status_code == 200


async def test_plugins_are_told_of_every_change(
    client: httpx2.AsyncClient, watching: Watching
) -> None:
    path = f"/v1/members/{(await add(client))['member_id']}"

    await client.patch(path, json={"role": "viewer"})
    await client.patch(path, json={"role": "viewer"})
    await client.delete(path)
    await client.delete(path)
    await client.delete(path, params={"erase": "true"})

    told = [(before.role, before.status, after and after.status) for before, after in watching.seen]
    assert told == [
        ("agent", "active", "active"),
        ("viewer", "active", "removed"),
        ("viewer", "removed", None),
    ]


@pytest.mark.both_databases
async def test_an_unlinked_subscriber_stays_one(
    service: Service,
    tenant: Tenant,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    check_error: CheckError,
) -> None:
    member_id, subscriber_id = (await add(client))["member_id"], await subscribe()
    async with service.db.transaction() as tx:
        await service.members.bind(tx, tenant.project.project_id, member_id, subscriber_id)
    path = f"/v1/members/{member_id}/subscribers/{subscriber_id}"

    unlinked, again = await client.delete(path), await client.delete(path)

    assert unlinked.is_success
    check_error(again, 404, "not_found")
    assert (await client.get(f"/v1/members/{member_id}")).json()["subscriber_ids"] == []
    assert (await client.get(f"/v1/subscribers/{subscriber_id}")).json()["status"] == "active"
