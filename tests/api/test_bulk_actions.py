"""One change of many subscribers, in the background."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.bulk_actions import engine
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.service import Service
from msgsvc_core.subscribers.bulk_actions import BulkActions
from msgsvc_core.subscribers.bulk_actions import service as bulk_actions
from msgsvc_core.subscribers.bulk_actions.models import StartBulkActionBody
from msgsvc_core.subscribers.tags import Tags
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.conftest import CheckError, Subscribe
from tests.api.subscribing import subscribing

PATH = "/v1/subscribers/bulk-actions"

MakeTenant = Callable[..., Awaitable[Tenant]]
Start = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
async def people(subscribe: Subscribe) -> list[str]:
    """Five, of whom the first three are customers."""
    names = ("Ann", "Bob", "Cid", "Dan", "Eve")
    return [await subscribe(name, tags=["customer"] * (name < "D")) for name in names]


@pytest.fixture
def start(client: httpx2.AsyncClient) -> Start:
    async def post(**body: Any) -> dict[str, Any]:
        answer = await client.post(PATH, json=body)
        assert answer.status_code == 202, answer.text
        taken: dict[str, Any] = answer.json()
        return taken

    return post


async def found(client: httpx2.AsyncClient, bulk: dict[str, Any]) -> dict[str, Any]:
    answer = await client.get(f"{PATH}/{bulk['bulk_action_id']}")
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def tagged(client: httpx2.AsyncClient, tag: str) -> set[str]:
    answer = await client.get("/v1/subscribers", params={"tag": tag})
    return {each["subscriber_id"] for each in answer.json()["data"]}


async def finished(client: httpx2.AsyncClient) -> list[dict[str, Any]]:
    """The events of the ends of bulk actions."""
    answer = await client.get("/v1/events", params={"event": "bulk_action.finished"})
    assert answer.status_code == 200, answer.text
    told: list[dict[str, Any]] = answer.json()["data"]
    return [event["data"] for event in told]


async def confirm(client: httpx2.AsyncClient, bulk: dict[str, Any], total: int) -> httpx2.Response:
    return await client.post(f"{PATH}/{bulk['bulk_action_id']}/confirm", json={"total": total})


async def test_a_tag_is_added_to_all_who_match(
    service: Service, client: httpx2.AsyncClient, people: list[str], start: Start
) -> None:
    bulk = await start(action="add_tag", value="vip", filters={"tag": "customer"})
    assert (bulk["status"], bulk["value"], bulk["total"]) == ("running", "vip", None)
    await settled(service)

    ended = await found(client, bulk)
    assert await tagged(client, "vip") == set(people[:3])
    assert (ended["status"], ended["total"], ended["processed"], ended["failed"]) == (
        *("completed", 3, 3, 0),
    )
    assert ended["progress"] == 1.0
    assert ended["finished_at"] is not None
    [told] = await finished(client)
    for field in (
        "bulk_action_id",
        "action",
        "status",
        "total",
        "processed",
        "failed",
        "code",
        "error",
    ):
        assert told[field] == ended[field]
    assert told["kind"] == "subscribers"


@pytest.mark.database_file
async def test_a_tag_is_removed_although_its_list_shrinks_meanwhile(
    service: Service,
    client: httpx2.AsyncClient,
    people: list[str],
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "COLLECTED", 2)
    monkeypatch.setattr(bulk_actions, "CHANGED", 1)
    monkeypatch.setattr(engine, "STEPS", 2)
    bulk = await start(action="remove_tag", value="customer", filters={"tag": "customer"})
    await settled(service)

    assert await tagged(client, "customer") == set()
    assert (await found(client, bulk))["processed"] == 3


async def test_named_subscribers_are_changed_and_unknown_ones_fail(
    service: Service, client: httpx2.AsyncClient, people: list[str], start: Start
) -> None:
    gone = "sub_0000000000000000000000"
    bulk = await start(action="add_tag", value="vip", subscriber_ids=[people[4], gone, people[4]])
    assert (bulk["status"], bulk["total"]) == ("running", 2)
    await settled(service)

    ended = await found(client, bulk)
    assert await tagged(client, "vip") == {people[4]}
    assert (ended["status"], ended["processed"], ended["failed"]) == ("completed", 2, 1)


async def test_an_erasure_waits_for_the_number_and_erases_whom_it_counted(
    service: Service,
    client: httpx2.AsyncClient,
    people: list[str],
    start: Start,
    subscribe: Subscribe,
    check_error: CheckError,
) -> None:
    bulk = await start(action="erase", filters={"tag": "customer"})
    await settled(service)
    waiting = await found(client, bulk)
    assert (waiting["status"], waiting["total"], waiting["processed"]) == ("pending", 3, 0)
    late = await subscribe("Fay", tags=["customer"])
    check_error(await confirm(client, bulk, 4), 400, "validation_failed")

    answer = await confirm(client, bulk, 3)
    await settled(service)

    assert (answer.status_code, answer.json()["status"]) == (200, "running")
    ended = await found(client, bulk)
    assert (ended["status"], ended["processed"]) == ("completed", 3)
    left = (await client.get("/v1/subscribers")).json()["data"]
    assert {each["subscriber_id"] for each in left} == {late, *people[3:]}
    check_error(await confirm(client, bulk, 3), 409, "conflict")


async def test_an_erasure_that_waited_a_day_is_started_anew(
    service: Service,
    client: httpx2.AsyncClient,
    clock: FakeClock,
    people: list[str],
    start: Start,
    check_error: CheckError,
) -> None:
    bulk = await start(action="erase", subscriber_ids=people[:1])
    clock.advance(DAY_MS // 1000)

    check_error(await confirm(client, bulk, 1), 409, "conflict")
    assert (await found(client, bulk))["status"] == "pending"


async def test_a_cancelled_one_changes_nobody_any_more(
    service: Service,
    client: httpx2.AsyncClient,
    people: list[str],
    start: Start,
    check_error: CheckError,
) -> None:
    bulk = await start(action="erase", all=True)
    await settled(service)
    cancel = f"{PATH}/{bulk['bulk_action_id']}/cancel"

    answer = await client.post(cancel)

    assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")
    check_error(await confirm(client, bulk, len(people)), 409, "conflict")
    check_error(await client.post(cancel), 409, "conflict")
    assert len((await client.get("/v1/subscribers")).json()["data"]) == len(people)
    assert [told["status"] for told in await finished(client)] == ["cancelled"]


async def test_one_whose_tag_is_deleted_meanwhile_fails(
    service: Service, client: httpx2.AsyncClient, tenant: Tenant, people: list[str]
) -> None:
    project_id = tenant.project.project_id
    body = StartBulkActionBody(action="add_tag", value="vip", subscriber_ids=people)
    async with service.db.transaction() as tx:
        bulk = await service.get(BulkActions).start(tx, project_id, body)
        await service.get(Tags).delete(tx, project_id, "vip")
    await settled(service)

    ended = await found(client, {"bulk_action_id": bulk.bulk_action_id})
    assert (ended["status"], ended["code"], ended["processed"]) == ("failed", "tag_deleted", 0)
    assert ended["error"] == "The tag was deleted in the meantime."
    assert [(told["status"], told["code"]) for told in await finished(client)] == [
        ("failed", "tag_deleted")
    ]


async def test_one_about_more_than_the_limit_fails_and_changes_nobody(
    make_service: ServiceFactory, make_tenant: MakeTenant
) -> None:
    service = await make_service(limits={"bulk_action_subscribers": 1})
    tenant = await make_tenant(service)
    subscribe = subscribing(service, tenant)
    for name in ("Ann", "Bob"):
        await subscribe(name)
    body = {"action": "add_tag", "value": "vip", "all": True}
    bulk = (await tenant.client.post(PATH, json=body)).json()
    await settled(service)

    ended = await found(tenant.client, bulk)
    assert (ended["status"], ended["code"], ended["processed"]) == ("failed", "too_many", 0)
    assert ended["error"] == "Too many match: narrow the filters."
    assert await tagged(tenant.client, "vip") == set()


async def test_a_step_that_broke_off_is_repeated_and_counted_once(
    service: Service,
    client: httpx2.AsyncClient,
    clock: FakeClock,
    people: list[str],
    start: Start,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk_actions, "CHANGED", 2)
    assign, calls = service.get(Tags).assign, 0

    async def break_off(*given: Any) -> None:
        nonlocal calls
        calls += 1
        await assign(*given)
        if calls == 4:
            raise ConnectionError

    monkeypatch.setattr(service.get(Tags), "assign", break_off)
    bulk = await start(action="add_tag", value="vip", subscriber_ids=people)
    await settled(service)
    assert (await found(client, bulk))["processed"] == 2

    clock.advance(60)
    await settled(service)

    ended = await found(client, bulk)
    assert (ended["status"], ended["processed"], ended["failed"]) == ("completed", 5, 0)
    assert await tagged(client, "vip") == set(people)
    assert len(await finished(client)) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"action": "add_tag", "value": "vip"},
        {"action": "add_tag", "value": "vip", "filters": {}},
        {"action": "add_tag", "value": "vip", "all": True, "filters": {"lang": "en"}},
        {"action": "add_tag", "all": True},
        {"action": "erase", "all": True, "value": "vip"},
        {"action": "erase", "subscriber_ids": []},
        {"action": "erase", "filters": {"channel": "nowhere"}},
    ],
)
async def test_what_does_not_belong_together_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, body: dict[str, Any]
) -> None:
    check_error(await client.post(PATH, json=body), 400, "validation_failed")


async def test_an_unknown_tag_is_not_removed(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    body = {"action": "remove_tag", "value": "vip", "all": True}
    check_error(await client.post(PATH, json=body), 404, "not_found")


async def test_they_are_listed_newest_first(
    client: httpx2.AsyncClient, people: list[str], start: Start
) -> None:
    ids = [
        (await start(action="add_tag", value="vip", subscriber_ids=[person]))["bulk_action_id"]
        for person in people[:3]
    ]

    first = (await client.get(PATH, params={"limit": 2})).json()
    rest = (await client.get(PATH, params={"limit": 2, "cursor": first["next_cursor"]})).json()

    listed = [each["bulk_action_id"] for each in (*first["data"], *rest["data"])]
    assert listed == ids[::-1]
    assert rest["next_cursor"] is None
