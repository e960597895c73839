"""Actions on several subscribers of the list."""

import re
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_devkit import settled
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", plugin)])


@pytest.fixture
async def owner(service: Service) -> Visitor:
    project = await service.projects.create("Shop")
    return await visitor(service, project.project_id)


@pytest.fixture
async def people(service: Service, owner: Visitor) -> list[str]:
    async with service.db.transaction() as tx:
        return [
            (
                await service.subscribers.ensure(
                    tx,
                    owner.project_id,
                    "messenger_a",
                    ChannelUser(f"user-{name}", name, None, lang),
                    f"chat-{name}",
                    source="api",
                )
            ).subscriber_id
            for name, lang in (("Ann", "en"), ("Bob", "en"), ("Жанна", "ru"))
        ]


async def names(owner: Visitor, **filters: Any) -> set[str]:
    html = (await owner.get("/subscribers", **filters)).text
    return set(re.findall(r'<bdi class="person">(.*?)</bdi>', html))


async def test_the_checked_ones_get_a_tag(
    service: Service, owner: Visitor, people: list[str]
) -> None:
    form = {"who": "chosen", "id": people[:2], "action": "add_tag", "bulk_tag": "vip"}
    answer = await owner.post("/subscribers/bulk", form)
    await settled(service)
    state = await owner.client.get(answer.headers["location"])

    assert answer.status_code == 303
    assert await names(owner, tag="vip") == {"Ann", "Bob"}
    assert "Completed" in state.text
    assert 'value="2" max="2"' in state.text


async def test_all_who_match_lose_a_tag_and_others_keep_it(
    service: Service, owner: Visitor, people: list[str]
) -> None:
    tag = {"action": "add_tag", "bulk_tag": "vip"}
    await owner.post("/subscribers/bulk", {"who": "page", "on_page": people, **tag})
    await settled(service)
    untag = {"who": "all", "action": "remove_tag", "bulk_tag": "vip"}
    await owner.post("/subscribers/bulk?lang=en", untag)
    await settled(service)

    assert await names(owner, tag="vip") == {"Жанна"}


async def test_an_erasure_waits_until_its_number_is_typed(
    service: Service, owner: Visitor, people: list[str]
) -> None:
    answer = await owner.post("/subscribers/bulk", {"who": "all", "action": "erase"})
    await settled(service)
    at = answer.headers["location"].partition(owner.project_id)[2]
    asked = (await owner.get(at)).text
    wrong = await owner.post(f"{at}/confirm", {"confirmed": "2"})
    untyped = await owner.post(f"{at}/confirm", {"confirmed": "yes"})
    assert await names(owner) == {"Ann", "Bob", "Жанна"}

    await owner.post(f"{at}/confirm", {"confirmed": "3"})
    await settled(service)

    assert "3 subscribers will be erased" in asked
    assert (wrong.status_code, untyped.status_code) == (400, 400)
    assert await names(owner) == set()
    assert "Completed" in (await owner.get(at)).text
    assert "Erase subscribers" in (await owner.get("/subscribers/bulk")).text


async def test_a_cancelled_one_erases_nobody(
    service: Service, owner: Visitor, people: list[str]
) -> None:
    answer = await owner.post(
        "/subscribers/bulk", {"who": "chosen", "id": people, "action": "erase"}
    )
    at = answer.headers["location"].partition(owner.project_id)[2]
    await owner.post(f"{at}/cancel")
    late = await owner.post(f"{at}/confirm", {"confirmed": "3"})
    await settled(service)

    assert late.status_code == 409
    assert await names(owner) == {"Ann", "Bob", "Жанна"}


async def test_the_checked_ones_are_exported_in_a_file(owner: Visitor, people: list[str]) -> None:
    form = {"who": "chosen", "id": [people[2], people[0]], "action": "export"}
    answer = await owner.post("/subscribers/bulk", form)

    rows = answer.text.splitlines()
    assert answer.headers["content-type"].startswith("text/csv")
    assert [row.partition(",")[0] for row in rows[1:]] == [people[2], people[0]]


async def test_all_who_match_are_exported_by_the_file_of_the_list(
    owner: Visitor, people: list[str]
) -> None:
    answer = await owner.post("/subscribers/bulk?lang=ru", {"who": "all", "action": "export"})

    assert answer.headers["location"].endswith("/subscribers/export?lang=ru")


async def test_nobody_checked_is_said_above_the_list_with_its_filters(
    owner: Visitor, people: list[str]
) -> None:
    form = {"who": "chosen", "action": "add_tag", "bulk_tag": "vip"}
    answer = await owner.post("/subscribers/bulk?lang=ru", form)

    assert answer.status_code == 400
    assert "check one of the subscribers at least" in answer.text
    assert set(re.findall(r'<bdi class="person">(.*?)</bdi>', answer.text)) == {"Жанна"}


async def test_who_may_only_look_is_offered_no_boxes_and_changes_nobody(
    service: Service, owner: Visitor, people: list[str]
) -> None:
    viewer = await visitor(service, owner.project_id, "viewer")
    shown = (await viewer.get("/subscribers")).text
    refused = await viewer.post(
        "/subscribers/bulk", {"who": "chosen", "id": people, "action": "erase"}
    )
    await viewer.client.aclose()

    assert 'name="id"' not in shown
    assert refused.status_code == 403
