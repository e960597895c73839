"""PATCH /v1/subscribers/{id}."""

import asyncio
from collections import Counter
from typing import Any

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import ServiceFactory
from tests.api.conftest import CheckError, Subscribe
from tests.api.test_permissions import MakeTenant

#: Nested as deep as a body may be: the body itself and `attributes` are two of 32 levels.
DEEP: dict[str, Any] = {}
for _ in range(30):
    DEEP = {"a": DEEP}


async def change(client: httpx2.AsyncClient, subscriber_id: str, **body: Any) -> httpx2.Response:
    return await client.patch(f"/v1/subscribers/{subscriber_id}", json=body)


async def shown(client: httpx2.AsyncClient, subscriber_id: str) -> dict[str, Any]:
    return dict((await client.get(f"/v1/subscribers/{subscriber_id}")).json())


@pytest.mark.both_databases
async def test_a_change_is_answered_with_the_whole_subscriber(
    client: httpx2.AsyncClient, ann: str
) -> None:
    answer = await change(
        client, ann, external_id="customer-1", lang="ru", tags=["vip"], attributes={"age": 7}
    )

    assert answer.status_code == 200
    assert answer.json() == await shown(client, ann)
    fields = ("external_id", "lang", "tags", "attributes")
    assert {name: answer.json()[name] for name in fields} == {
        "external_id": "customer-1",
        "lang": "ru",
        "tags": ["vip"],
        "attributes": {"age": 7},
    }


@pytest.mark.parametrize(
    "body", [{}, {"lang": "ru"}, {"tags": ["new"]}, {"external_id": "2"}, {"attributes": {}}]
)
async def test_what_a_change_leaves_out_stays(
    client: httpx2.AsyncClient, ann: str, body: dict[str, Any]
) -> None:
    await change(client, ann, external_id="1", lang="en", tags=["vip"], attributes={"a": 1})
    before = await shown(client, ann)

    answer = await change(client, ann, **body)

    implied = {"locale": body["lang"]} if "lang" in body else {}
    assert answer.json() == {**before, **body, **implied}


async def test_tags_replace_the_whole_set(client: httpx2.AsyncClient, ann: str) -> None:
    await change(client, ann, tags=["a", "b"])

    assert (await change(client, ann, tags=["b", "c", "c"])).json()["tags"] == ["b", "c"]
    assert (await change(client, ann, tags=[])).json()["tags"] == []
    # The tags themselves stay.
    assert len((await client.get("/v1/tags")).json()["data"]) == 3


async def test_null_unbinds_the_external_id_and_frees_it(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    ann, bob = await subscribe("Ann", external_id="customer-1"), await subscribe("Bob")

    unbound = await change(client, ann, external_id=None)
    bound = await change(client, bob, external_id="customer-1")

    assert unbound.json()["external_id"] is None
    assert bound.json()["external_id"] == "customer-1"


@pytest.mark.both_databases
async def test_an_external_id_is_bound_once_on_a_channel(
    client: httpx2.AsyncClient, subscribe: Subscribe, check_error: CheckError
) -> None:
    await subscribe("Ann", external_id="customer-1")
    bob = await subscribe("Bob")
    ann_there = await subscribe("Ann", channel="messenger_b")

    taken = await change(client, bob, external_id="customer-1", lang="ru", tags=["vip"])
    error = check_error(taken, 409, "conflict")["error"]

    assert error.startswith("external_id: ")
    # Nothing of a change that is refused remains.
    assert (await shown(client, bob))["lang"] == "en"
    assert (await client.get("/v1/tags")).json()["data"] == []
    assert (await change(client, ann_there, external_id="customer-1")).status_code == 200


async def test_ones_own_external_id_may_be_bound_again(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann", external_id="customer-1")

    assert (await change(client, ann, external_id="customer-1")).status_code == 200
    assert (await change(client, ann, external_id="customer-2")).json()[
        "external_id"
    ] == "customer-2"


@pytest.mark.shared_service
@pytest.mark.parametrize("external_id", ["", " x", "x" * 129, "a\nb"])
async def test_a_malformed_external_id_is_not_bound(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError, external_id: str
) -> None:
    check_error(await change(client, ann, external_id=external_id), 400, "invalid_external_id")


@pytest.mark.shared_service
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"lang": "de_AT"}, "lang"),
        ({"lang": "german language"}, "lang"),
        ({"lang": None}, "lang"),
        ({"tags": None}, "tags"),
        ({"tags": ["ok", "a b"]}, "tags[1]"),
        ({"tags": "vip"}, "tags"),
        ({"attributes": None}, "attributes"),
        ({"attributes": [1]}, "attributes"),
        ({"attributes": "{}"}, "attributes"),
        ({"external_id": 7}, "external_id"),
        ({"status": "active"}, "status"),
        ({"first_name": "Eve"}, "first_name"),
    ],
)
async def test_a_malformed_change_is_refused_by_its_field(
    client: httpx2.AsyncClient,
    ann: str,
    check_error: CheckError,
    body: dict[str, Any],
    field: str,
) -> None:
    before = await shown(client, ann)

    error = check_error(await change(client, ann, **body), 400, "validation_failed")

    assert error["error"].startswith(f"{field}: ")
    assert await shown(client, ann) == before


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"plan": "pro", "seats": 3, "ratio": 0.1, "paid": True, "boss": None},
        {"address": {"city": "Москва", "lines": ["a", {"b": []}]}},
        {"": "", "a'b\"c": "%_:x", "😀": "\u2028"},
        {"big": 2**63 - 1, "small": -(2**63)},
        DEEP,
    ],
)
async def test_attributes_come_back_as_they_were_given(
    client: httpx2.AsyncClient, ann: str, attributes: dict[str, Any]
) -> None:
    await change(client, ann, attributes={"before": 1})

    assert (await change(client, ann, attributes=attributes)).json()["attributes"] == attributes
    assert (await shown(client, ann))["attributes"] == attributes


async def test_attributes_have_8_kib_and_not_one_byte_more(
    client: httpx2.AsyncClient, ann: str, check_error: CheckError
) -> None:
    # {"a":"…"} is 8 bytes around letters of two bytes each.
    full = {"a": "ё" * 4092}

    assert (await change(client, ann, attributes=full)).status_code == 200
    more = await change(client, ann, attributes={"a": full["a"] + "x"})
    error = check_error(more, 400, "validation_failed")["error"]
    assert error == "attributes: must be at most 8192 bytes as JSON"


async def test_the_size_of_attributes_is_a_setting(
    make_service: ServiceFactory, make_tenant: MakeTenant, check_error: CheckError
) -> None:
    service = await make_service(limits={"attributes_bytes": 10})
    tenant = await make_tenant(service)
    check_error(
        await tenant.client.patch("/v1/subscribers/sub_1", json={"attributes": {"a": "xxx"}}),
        400,
        "validation_failed",
    )
    check_error(
        await tenant.client.patch("/v1/subscribers/sub_1", json={"attributes": {"a": "xx"}}),
        404,
        "subscriber_not_found",
    )


async def test_only_a_subscriber_that_there_is_changes(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    answer = await change(client, "sub_nobody", tags=["vip"])

    check_error(answer, 404, "subscriber_not_found")
    assert (await client.get("/v1/tags")).json()["data"] == []


async def test_a_language_that_was_set_stays_when_the_person_returns(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    ann = await subscribe("Ann", lang="en")
    await change(client, ann, lang="ru")
    await subscribe("Ann", lang="en")

    assert (await shown(client, ann))["lang"] == "ru"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_who_bind_one_external_id_at_once_one_wins(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    people = [await subscribe(f"P{number}") for number in range(8)]
    for number in range(5):
        answers = await asyncio.gather(
            *[change(client, person, external_id=f"customer-{number}") for person in people]
        )

        statuses = Counter(answer.status_code for answer in answers)
        assert statuses == {200: 1, 409: len(people) - 1}


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_who_open_links_with_one_external_id_at_once_both_subscribe(
    client: httpx2.AsyncClient, subscribe: Subscribe
) -> None:
    people = await asyncio.gather(
        *[subscribe(f"P{number}", external_id="customer-1") for number in range(8)]
    )

    bound = [(await shown(client, person))["external_id"] for person in people]
    assert Counter(bound) == {"customer-1": 1, None: 7}


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_of_two_changes_of_tags_at_once_the_later_one_counts(
    client: httpx2.AsyncClient, ann: str
) -> None:
    sets = [["a", "b"], ["c"], ["d", "e"]]
    for _ in range(5):
        await change(client, ann, tags=["z"])
        await asyncio.gather(*[change(client, ann, tags=tags) for tags in sets])

        assert (await shown(client, ann))["tags"] in sets


async def test_a_service_in_process_sees_the_attributes(
    service: Service, client: httpx2.AsyncClient, ann: str
) -> None:
    await change(client, ann, attributes={"a": 1})
    project_id = (await client.get("/v1/project")).json()["project_id"]

    async with service.db.read() as tx:
        subscriber = await service.subscribers.get(tx, project_id, ann)
    assert subscriber.attributes == {"a": 1}


@pytest.mark.database_file
@pytest.mark.both_databases
@pytest.mark.parametrize("what", ["change", "tag", "grant", "revoke", "untag"])
async def test_who_is_changed_and_erased_at_once_is_changed_before_or_not_found(
    client: httpx2.AsyncClient, subscribe: Subscribe, what: str
) -> None:
    await client.post("/v1/permissions", json={"key": "news", "title": "News"})
    for number in range(6):
        person = await subscribe(f"P{number}", tags=["old"])
        path = f"/v1/subscribers/{person}"
        request = {
            "change": lambda path=path: client.patch(
                path, json={"external_id": "1", "tags": ["vip"], "lang": "ru"}
            ),
            "tag": lambda path=path: client.put(f"{path}/tags/vip"),
            "untag": lambda path=path: client.delete(f"{path}/tags/old"),
            "grant": lambda path=path: client.put(f"{path}/permissions/news"),
            "revoke": lambda path=path: client.delete(f"{path}/permissions/news"),
        }[what]
        erased, changed = await asyncio.gather(client.delete(f"{path}?erase=true"), request())

        assert erased.is_success, erased.text
        assert changed.status_code in {204 if what in {"revoke", "untag"} else 200, 404}
        assert (await client.get(path)).status_code == 404
