"""/v1/tags, the tags of a subscriber, and the limit of both."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx2
import pytest

from msgsvc_core.channels import Blocked, ChannelUser, Started
from msgsvc_core.jobs import steps
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe

MakeTenant = Callable[..., Awaitable[Tenant]]

ANN = ChannelUser("user-Ann", "Ann", "ann", "en")

MALFORMED = ["", "a b", "a.b", "x" * 65, "😀", "a\n", "a/b"]
WELL_FORMED = ["a", "VIP_1-2", "постоянный", "常連", "x" * 64]


async def tags_of(client: httpx2.AsyncClient, subscriber_id: str) -> list[str]:
    return list((await client.get(f"/v1/subscribers/{subscriber_id}")).json()["tags"])


async def make_tags(client: httpx2.AsyncClient, *names: str) -> None:
    for name in names:
        answer = await client.post("/v1/tags", json={"name": name})
        assert answer.status_code == 201, answer.text


async def test_a_tag_is_made_and_shown(client: httpx2.AsyncClient) -> None:
    made = await client.post("/v1/tags", json={"name": "vip"})
    shown = await client.get("/v1/tags/vip")

    assert made.status_code == 201
    assert shown.json() == made.json()
    assert made.json() == {
        "name": "vip",
        "subscribers": 0,
        "created_at": "2026-01-15T12:00:00.000Z",
    }


async def test_a_tag_counts_its_subscribers_whatever_their_status(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    for name in ("Ann", "Bob"):
        await subscribe(name, tags=["vip"])
    await service.inbound.receive(
        "messenger_a", Blocked(update_id="b1", chat_id="chat-Ann", user=ANN)
    )

    assert (await client.get("/v1/tags/vip")).json()["subscribers"] == 2


async def test_tags_are_listed_from_the_newest_on_page_by_page(
    client: httpx2.AsyncClient, clock: FakeClock
) -> None:
    names = ["б", "a", "в", "z"]
    for name in names:
        await make_tags(client, name)
        clock.advance(1)

    seen: list[str] = []
    cursor: str | None = None
    while cursor is not None or not seen:
        params = {"limit": "1", **({"cursor": cursor} if cursor else {})}
        page = (await client.get("/v1/tags", params=params)).json()
        seen += [tag["name"] for tag in page["data"]]
        cursor = page["next_cursor"]

    assert seen == names[::-1]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_pages_of_tags_made_at_once_have_no_gap(client: httpx2.AsyncClient) -> None:
    names = {"a", "b", "ё", "常", "Z"}
    await client.post("/v1/subscribers/links", json={"tags": sorted(names)})

    first = (await client.get("/v1/tags?limit=3")).json()
    second = (await client.get("/v1/tags", params={"cursor": first["next_cursor"]})).json()

    assert Counter(tag["name"] for tag in first["data"] + second["data"]) == Counter(names)


async def test_a_cursor_of_another_list_is_a_bad_request(
    client: httpx2.AsyncClient, subscribe: Subscribe, check_error: CheckError
) -> None:
    for name in ("Ann", "Bob"):
        await subscribe(name)
    cursor = (await client.get("/v1/subscribers?limit=1")).json()["next_cursor"]

    check_error(await client.get("/v1/tags", params={"cursor": cursor}), 400, "bad_request")


@pytest.mark.shared_service
@pytest.mark.parametrize("name", MALFORMED)
async def test_a_malformed_name_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, name: str
) -> None:
    await make_tags(client, "vip")

    for answer in (
        await client.post("/v1/tags", json={"name": name}),
        await client.patch("/v1/tags/vip", json={"name": name}),
    ):
        assert check_error(answer, 400, "validation_failed")["error"].startswith("name: ")


@pytest.mark.parametrize("name", WELL_FORMED)
async def test_a_name_of_any_script_works_in_every_path(
    client: httpx2.AsyncClient, ann: str, name: str
) -> None:
    path = quote(name)
    added = await client.put(f"/v1/subscribers/{ann}/tags/{path}")
    shown = await client.get(f"/v1/tags/{path}")
    removed = await client.delete(f"/v1/subscribers/{ann}/tags/{path}")
    left = await client.get(f"/v1/subscribers/{ann}")
    renamed = await client.patch(f"/v1/tags/{path}", json={"name": "other"})
    back = await client.patch("/v1/tags/other", json={"name": name})
    deleted = await client.delete(f"/v1/tags/{path}")

    assert added.json()["tags"] == [name]
    assert shown.json()["name"] == name
    assert (removed.status_code, removed.content) == (204, b"")
    assert left.json()["tags"] == []
    assert (renamed.json()["name"], back.json()["name"]) == ("other", name)
    assert deleted.status_code == 204
    assert (await client.get("/v1/tags")).json()["data"] == []


async def test_a_name_that_is_taken_is_a_conflict(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await make_tags(client, "vip", "new")

    check_error(await client.post("/v1/tags", json={"name": "vip"}), 409, "conflict")
    check_error(await client.patch("/v1/tags/new", json={"name": "vip"}), 409, "conflict")
    assert (await client.get("/v1/tags/new")).status_code == 200


async def test_an_unknown_tag_is_not_found(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    for answer in (
        await client.get("/v1/tags/nothing"),
        await client.patch("/v1/tags/nothing", json={"name": "vip"}),
        await client.delete("/v1/tags/nothing"),
        await client.delete(f"/v1/subscribers/{ann}/tags/nothing"),
    ):
        check_error(answer, 404, "not_found")


async def test_a_renamed_tag_keeps_its_subscribers(
    client: httpx2.AsyncClient, subscribe: Subscribe, check_error: CheckError
) -> None:
    subscriber_id = await subscribe("Ann", tags=["vip", "vip-2"])

    renamed = await client.patch("/v1/tags/vip", json={"name": "gold"})

    assert renamed.json()["subscribers"] == 1
    assert await tags_of(client, subscriber_id) == ["gold", "vip-2"]
    check_error(await client.get("/v1/tags/vip"), 404, "not_found")


async def test_a_tag_may_be_renamed_to_what_it_is_called(client: httpx2.AsyncClient) -> None:
    await make_tags(client, "vip")

    assert (await client.patch("/v1/tags/vip", json={"name": "vip"})).status_code == 200
    assert (await client.patch("/v1/tags/vip", json={"name": "VIP"})).json()["name"] == "VIP"


@asynccontextmanager
async def refused_changes(service: Service, *tables: str) -> AsyncIterator[None]:
    """The database fails whoever changes a row of these tables, by a foreign key too."""
    async with service.db.transaction() as tx:
        is_postgres = tx.dialect == "postgresql"
        if is_postgres:
            await tx.execute(
                "CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS"
                " $$ BEGIN RAISE EXCEPTION 'a row was changed'; END $$"
            )
        refusal = (
            "FOR EACH ROW EXECUTE FUNCTION refuse_change()"
            if is_postgres
            else "BEGIN SELECT RAISE(ABORT, 'a row was changed'); END"
        )
        for table in tables:
            await tx.execute(f"CREATE TRIGGER refuse_{table} BEFORE UPDATE ON {table} {refusal}")
    try:
        yield
    finally:
        if is_postgres:
            # The next test has the same tables.
            async with service.db.transaction() as tx:
                await tx.execute("DROP FUNCTION refuse_change CASCADE")


async def test_another_name_changes_no_row_of_whoever_carries_the_tag(
    service: Service, client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    people = [await subscribe(name, tags=["vip"]) for name in ("Ann", "Bob", "Cat")]
    await client.post("/v1/subscribers/links", json={"tags": ["vip"]})

    async with refused_changes(service, "core_subscriber_tags", "core_subscribers", "core_links"):
        renamed = await client.patch("/v1/tags/vip", json={"name": "gold"})

    assert (renamed.status_code, renamed.json()["subscribers"]) == (200, 3)
    for person in people:
        assert await tags_of(client, person) == ["gold"]


@pytest.mark.both_databases
async def test_the_new_name_is_known_everywhere_at_once_and_the_old_one_is_free(
    client: httpx2.AsyncClient, subscribe: Subscribe, check_error: CheckError
) -> None:
    ann = await subscribe("Ann", tags=["vip"])
    bob = await subscribe("Bob")
    await client.patch("/v1/tags/vip", json={"name": "gold"})
    await client.put(f"/v1/subscribers/{bob}/tags/vip")

    async def found(**query: str) -> list[str]:
        page = await client.get("/v1/subscribers", params=query)
        return [person["subscriber_id"] for person in page.json()["data"]]

    assert (await found(tag="gold"), await found(tag="vip")) == ([ann], [bob])
    assert await found(tag="gold", query="ann") == [ann]
    assert await found(tag="nothing") == []
    check_error(await client.patch("/v1/tags/vip", json={"name": "gold"}), 409, "conflict")


async def open_link(
    service: Service, client: httpx2.AsyncClient, link: httpx2.Response
) -> list[str]:
    """The tags of Ann, who opens the link."""
    payload = link.json()["links"]["messenger_a"].partition("start=")[2]
    await service.inbound.receive(
        "messenger_a", Started(update_id="u1", chat_id="chat-Ann", user=ANN, payload=payload)
    )
    (found,) = (await client.get("/v1/subscribers")).json()["data"]
    return list(found["tags"])


async def test_a_link_gives_its_tag_by_the_tags_new_name(
    service: Service, client: httpx2.AsyncClient
) -> None:
    link = await client.post("/v1/subscribers/links", json={"tags": ["vip", "vip-2", "ё"]})
    await client.patch("/v1/tags/vip", json={"name": "gold"})
    await client.patch(f"/v1/tags/{quote('ё')}", json={"name": "е"})

    assert await open_link(service, client, link) == ["gold", "vip-2", "е"]


async def test_a_link_goes_on_without_a_tag_that_was_removed(
    service: Service, client: httpx2.AsyncClient
) -> None:
    link = await client.post("/v1/subscribers/links", json={"tags": ["vip", "new"]})
    await client.delete("/v1/tags/vip")

    assert await open_link(service, client, link) == ["new"]
    assert [tag["name"] for tag in (await client.get("/v1/tags")).json()["data"]] == ["new"]


async def test_a_removed_tag_leaves_its_subscribers(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Ann", tags=["vip", "new"])

    answer = await client.delete("/v1/tags/vip")

    assert (answer.status_code, answer.content) == (204, b"")
    assert await tags_of(client, subscriber_id) == ["new"]


async def test_a_tag_that_is_made_anew_is_carried_by_nobody(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    subscriber_id = await subscribe("Ann", tags=["vip"])

    await client.delete("/v1/tags/vip")
    made = await client.post("/v1/tags", json={"name": "vip"})
    found = (await client.get("/v1/subscribers?tag=vip")).json()["data"]

    assert (made.status_code, made.json()["subscribers"]) == (201, 0)
    assert found == []
    assert await tags_of(client, subscriber_id) == []


async def test_a_removed_tag_is_taken_from_its_subscribers_in_steps(
    service: Service,
    client: httpx2.AsyncClient,
    subscribe: Subscribe,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps, "STEP", 2)
    for name in ("Ann", "Bob", "Cat", "Dan", "Eve"):
        await subscribe(name, tags=["vip", "new"])

    await client.delete("/v1/tags/vip")
    await settled(service)

    async with service.db.read() as tx:
        left = await tx.fetch_all(
            "SELECT t.name, COUNT(*) AS count FROM core_subscriber_tags s"
            " JOIN core_tags t ON t.project_id = s.project_id AND t.tag_id = s.tag_id GROUP BY t.name"
        )
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_tags") == 1
    assert [(row["name"], row["count"]) for row in left] == [("new", 5)]


async def test_a_known_subscriber_gets_the_tags_of_a_link_too(
    subscribe: Subscribe, client: httpx2.AsyncClient
) -> None:
    subscriber_id = await subscribe("Ann", tags=["one"])
    await subscribe("Ann", tags=["two"])

    assert await tags_of(client, subscriber_id) == ["one", "two"]


async def test_a_tag_is_given_once_and_taken_once(client: httpx2.AsyncClient, ann: str) -> None:
    path = f"/v1/subscribers/{ann}/tags/vip"

    given = [(await client.put(path)).json()["tags"] for _ in range(2)]
    taken = [(await client.delete(path)).status_code for _ in range(2)]

    assert given == [["vip"], ["vip"]]
    assert taken == [204, 204]
    assert (await client.get(f"/v1/subscribers/{ann}")).json()["tags"] == []
    assert (await client.get("/v1/tags/vip")).json()["subscribers"] == 0


@pytest.mark.parametrize("tag", ["a b", "a.b", "x" * 65, "😀"])
async def test_a_subscriber_gets_no_tag_of_a_malformed_name(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError, tag: str
) -> None:
    answer = await client.put(f"/v1/subscribers/{ann}/tags/{quote(tag)}")

    assert check_error(answer, 400, "validation_failed")["error"].startswith("tag: must be 1-64")


async def test_tags_are_of_a_subscriber_that_there_is(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    await make_tags(client, "vip")

    for method in ("PUT", "DELETE"):
        answer = await client.request(method, "/v1/subscribers/sub_nobody/tags/vip")
        check_error(answer, 404, "subscriber_not_found")
    check_error(
        await client.put("/v1/subscribers/sub_nobody/tags/new"), 404, "subscriber_not_found"
    )
    assert [tag["name"] for tag in (await client.get("/v1/tags")).json()["data"]] == ["vip"]


async def test_no_way_leads_past_20_tags(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    await make_tags(client, *[f"t{number}" for number in range(20)])

    for answer in (
        await client.post("/v1/tags", json={"name": "more"}),
        await client.put(f"/v1/subscribers/{ann}/tags/more"),
        await client.patch(f"/v1/subscribers/{ann}", json={"tags": ["t0", "more"]}),
        await client.post("/v1/subscribers/links", json={"tags": ["more"]}),
        await client.post(
            "/v1/subscribers/links", json={"tags": [f"u{number}" for number in range(21)]}
        ),
    ):
        assert "at most 20" in check_error(answer, 409, "conflict")["error"]
    assert (await client.put(f"/v1/subscribers/{ann}/tags/t19")).status_code == 200


async def test_a_removed_tag_makes_room_for_another(
    make_service: ServiceFactory, make_tenant: MakeTenant, check_error: CheckError
) -> None:
    client = (await make_tenant(await make_service(limits={"tags": 2}))).client
    await make_tags(client, "one", "two")

    check_error(await client.post("/v1/tags", json={"name": "three"}), 409, "conflict")
    await client.delete("/v1/tags/one")
    assert (await client.post("/v1/tags", json={"name": "three"})).status_code == 201


async def test_each_project_has_its_own_20_tags(
    service: Service, client: httpx2.AsyncClient, make_tenant: MakeTenant
) -> None:
    other = await make_tenant(service, "Other")
    for each in (client, other.client):
        await make_tags(each, *[f"t{number}" for number in range(20)])

    assert (await other.client.get("/v1/tags/t0")).status_code == 200


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_requests_at_once_make_20_tags_and_not_one_more(
    client: httpx2.AsyncClient, ann: str
) -> None:
    def make(number: int) -> Any:
        if number % 2:
            return client.post("/v1/tags", json={"name": f"t{number}"})
        return client.put(f"/v1/subscribers/{ann}/tags/t{number}")

    answers = await asyncio.gather(*[make(number) for number in range(40)])

    assert Counter(answer.is_success for answer in answers) == {True: 20, False: 20}
    assert {answer.status_code for answer in answers} <= {200, 201, 409}
    assert len((await client.get("/v1/tags")).json()["data"]) == 20


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_tags_that_are_given_renamed_and_removed_at_once_end_no_request_badly(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    people = [await subscribe(name, tags=["a", "b"]) for name in ("Ann", "Bob", "Cat")]
    requests: list[Any] = []
    for person in people:
        for first, second in (("a", "b"), ("b", "a"), ("c", "a")):
            requests += [
                client.patch(f"/v1/subscribers/{person}", json={"tags": [first, second]}),
                client.put(f"/v1/subscribers/{person}/tags/{second}"),
                client.delete(f"/v1/subscribers/{person}/tags/{first}"),
                client.patch(f"/v1/tags/{first}", json={"name": f"{first}{second}"}),
                client.delete(f"/v1/tags/{second}"),
                subscribe("Ann", tags=[first, second], external_id="customer-1"),
                client.patch(f"/v1/subscribers/{person}", json={"external_id": "customer-1"}),
            ]

    answers = await asyncio.gather(*requests)

    statuses = Counter(
        answer.status_code for answer in answers if isinstance(answer, httpx2.Response)
    )
    assert set(statuses) <= {200, 204, 404, 409}
    known = {tag["name"] for tag in (await client.get("/v1/tags")).json()["data"]}
    for person in people:
        assert set(await tags_of(client, person)) <= known


async def test_a_cursor_of_another_list_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    for name in ("a", "b"):
        await client.post("/v1/tags", json={"name": name})
    cursor = (await client.get("/v1/tags?limit=1")).json()["next_cursor"]

    own = await client.get("/v1/tags", params={"cursor": cursor})
    other = await client.get("/v1/permissions", params={"cursor": cursor})

    assert [each["name"] for each in own.json()["data"]] == ["a"]
    check_error(other, 400, "bad_request")
