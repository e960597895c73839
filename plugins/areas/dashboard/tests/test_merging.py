"""People are merged on a page that shows both before; and who may do so."""

import re
from typing import Any

import pytest

from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    settings: dict[str, Any] = {"extra_plugins": [("dashboard", plugin)]}
    return await make_service(**settings)


@pytest.fixture
async def owner(service: Service) -> Visitor:
    project = await service.projects.create("Shop")
    return await visitor(service, project.project_id)


async def subscribed(
    service: Service, project_id: str, name: str, own_id: str | None, channel: str = "messenger_a"
) -> str:
    user = ChannelUser(f"user-{name}", name, name.lower(), "en")
    async with service.db.transaction() as tx:
        made = await service.subscribers.ensure(
            tx, project_id, channel, user, f"chat-{name}", source="api", external_id=own_id
        )
    return made.subscriber_id


async def own_id_of(service: Service, project_id: str, subscriber_id: str) -> str | None:
    async with service.db.read() as tx:
        return (await service.subscribers.get(tx, project_id, subscriber_id)).external_id


def offered(html: str) -> dict[str, str]:
    """The fields of the form that merges; empty without one."""
    return dict(re.findall(r'name="(into|seen)" value="([^"]*)"', html))


async def test_both_are_shown_and_then_merged(service: Service, owner: Visitor) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", "u1")
    anna = await subscribed(service, owner.project_id, "Anna", "u2", "messenger_b")
    at = f"/subscribers/{ann}/merge"

    profile = (await owner.get(f"/subscribers/{ann}")).text
    empty = (await owner.get(at)).text
    searched = (await owner.get(at, person="an")).text
    fragment = (await owner.get(f"{at}/found", person="an")).text
    chosen = {"person": "an", "person-searched": "an", "person-chosen": anna}
    preview = (await owner.get(at, **chosen)).text
    before = await own_id_of(service, owner.project_id, ann)
    merged = await owner.post(at, offered(preview))
    log = (await owner.get("/audit")).text

    assert f'{at}"' in profile
    assert (offered(empty), offered(searched)) == ({}, {})
    assert f'value="{anna}"' in searched
    assert anna in fragment
    assert ann not in fragment
    assert offered(preview) == {"into": "u2", "seen": "u1"}
    assert "All of these addresses get the ID u2. The ID u1 ends." in preview
    assert before == "u1"
    assert merged.headers["location"].endswith(f"/subscribers/{ann}")
    assert await own_id_of(service, owner.project_id, ann) == "u2"
    assert "People merged" in log


async def test_a_subscriber_without_an_id_gets_that_of_the_other(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", None)
    anna = await subscribed(service, owner.project_id, "Anna", "u2", "messenger_b")
    bob = await subscribed(service, owner.project_id, "Bob", None, "messenger_b")

    reverse = (await owner.get(f"/subscribers/{anna}/merge", person=ann)).text
    neither = (await owner.get(f"/subscribers/{ann}/merge", person=bob)).text
    preview = (await owner.get(f"/subscribers/{ann}/merge", person="u2")).text
    merged = await owner.post(f"/subscribers/{ann}/merge", offered(preview))
    same = (await owner.get(f"/subscribers/{ann}/merge", person=anna)).text

    assert f"/subscribers/{ann}/merge?person={anna}" in reverse
    assert "Neither has an ID of yours" in neither
    assert (offered(reverse), offered(neither), offered(same)) == ({}, {}, {})
    assert "This subscriber gets the ID u2." in preview
    assert merged.status_code == 303
    assert await own_id_of(service, owner.project_id, ann) == "u2"
    assert "They are one person already." in same


async def test_two_accounts_on_a_channel_are_refused_in_words(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", "u1")
    bob = await subscribed(service, owner.project_id, "Bob", "u2")
    new = await subscribed(service, owner.project_id, "New", None)

    preview = (await owner.get(f"/subscribers/{ann}/merge", person=bob)).text
    refused = await owner.post(f"/subscribers/{ann}/merge", {"into": "u2", "seen": "u1"})
    also = await owner.post(f"/subscribers/{new}/merge", {"into": "u2", "seen": ""})
    itself = await owner.post(f"/subscribers/{ann}/merge", {"into": "u1", "seen": "u1"})

    assert "They can&#39;t be merged: both have an account on messenger_a" in preview
    assert offered(preview) == {}
    assert (refused.status_code, also.status_code, itself.status_code) == (409, 409, 400)
    assert "both have an account on messenger_a" in refused.text
    assert await own_id_of(service, owner.project_id, ann) == "u1"


async def test_who_changed_since_the_page_was_opened_is_not_merged(
    service: Service, owner: Visitor
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", "u1")
    await subscribed(service, owner.project_id, "Anna", "u2", "messenger_b")
    fields = offered((await owner.get(f"/subscribers/{ann}/merge", person="u2")).text)
    await owner.post(f"/subscribers/{ann}/edit", {"external_id": "u3", "lang": "en"})

    refused = await owner.post(f"/subscribers/{ann}/merge", fields)

    assert refused.status_code == 409
    assert "was changed meanwhile" in refused.text
    assert await own_id_of(service, owner.project_id, ann) == "u3"


async def test_people_of_another_project_are_nowhere(service: Service, owner: Visitor) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", "u1")
    elsewhere = await service.projects.create("Elsewhere")
    eve = await subscribed(service, elsewhere.project_id, "Eve", "u9", "messenger_b")

    answers = [
        await owner.get(f"/subscribers/{eve}/merge"),
        await owner.get(f"/subscribers/{eve}/merge/found", person="an"),
        await owner.post(f"/subscribers/{eve}/merge", {"into": "u1", "seen": "u9"}),
        await owner.post(f"/subscribers/{ann}/merge", {"into": "u9", "seen": "u1"}),
    ]
    previews = [
        (await owner.get(f"/subscribers/{ann}/merge", person=who)).text
        for who in (eve, "u9", "Eve")
    ]

    assert [answer.status_code for answer in answers] == [404] * 4
    assert [offered(preview) for preview in previews] == [{}] * 3
    assert all("No matches" in preview for preview in previews)
    assert await own_id_of(service, elsewhere.project_id, eve) == "u9"


@pytest.mark.parametrize("role", ["viewer", "agent"])
async def test_who_may_not_change_subscribers_may_not_merge_them(
    service: Service, owner: Visitor, role: Any
) -> None:
    ann = await subscribed(service, owner.project_id, "Ann", "u1")
    await subscribed(service, owner.project_id, "Anna", "u2", "messenger_b")
    other = await visitor(service, owner.project_id, role)
    at = f"/subscribers/{ann}/merge"

    profile = (await other.get(f"/subscribers/{ann}")).text
    answers = [
        await other.get(at),
        await other.get(f"{at}/found"),
        await other.post(at, {"into": "u2", "seen": "u1"}),
    ]

    assert "/merge" not in profile
    assert [answer.status_code for answer in answers] == [403] * 3
    assert await own_id_of(service, owner.project_id, ann) == "u1"
