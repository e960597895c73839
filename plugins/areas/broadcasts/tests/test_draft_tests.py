"""Tests of a draft: a message to one subscriber, which is no part of a broadcast."""

import re
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import RecordingChannel, until
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

from .conftest import LIMITS, PLUGINS, AddPeople, add, give

DRAFT = {"text": "Hi **{{ first_name }}**, {{ tags }}", "format": "markdown", "to": "all"}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", dashboard), *PLUGINS], limits=LIMITS)


async def messages(tenant: Tenant) -> list[dict[str, Any]]:
    answer = await tenant.client.get("/v1/messages")
    return list(answer.json()["data"])


async def sent(tenant: Tenant) -> dict[str, Any]:
    """The newest message, once it is sent."""

    async def look() -> dict[str, Any] | None:
        found = await messages(tenant)
        return found[0] if found and found[0]["status"] == "sent" else None

    return await until(look)


def chosen(page: Any) -> list[str]:
    return re.findall(r'name="test_to" value="(\w+)" checked', page.text)


async def test_a_draft_goes_to_one_subscriber_with_their_values_and_is_no_broadcast(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann, _bob] = await people(2)
    await give(service, tenant, "vip", [ann])
    body = {"text": "Hi {{ first_name }}, {{ tags }}", "buttons": [[{"text": "Go", "data": "go"}]]}

    taken = await tenant.client.post("/v1/broadcast/test", json={**body, "subscriber_id": ann})
    message = await sent(tenant)
    listed = await tenant.client.get("/v1/broadcast")

    assert taken.status_code == 202
    assert taken.json() == {"message_id": message["message_id"], "status": "queued"}
    assert (message["subscriber_id"], message["text"]) == (ann, "Hi P0, vip")
    assert message["buttons"] == [[{"text": "Go", "url": None, "data": "go", "style": None}]]
    assert [each.message.text for each in channel.sent] == ["Hi P0, vip"]
    assert listed.json()["data"] == []


async def test_a_draft_in_a_language_and_of_a_template_is_rendered_for_the_subscriber(
    service: Service, tenant: Tenant, people: AddPeople, channel: RecordingChannel
) -> None:
    [ann] = await people(1, lang="ru")
    text = {"en": "Hi {{ first_name }}", "ru": "Привет, {{ first_name }}: {{ code }}"}
    await tenant.client.post("/v1/templates", json={"key": "sale", "text": text})
    draft = {"template": "sale", "variables": {"code": "X"}, "subscriber_id": ann}

    taken = await tenant.client.post("/v1/broadcast/test", json=draft)
    message = await sent(tenant)

    assert taken.status_code == 202, taken.text
    assert message["text"] == "Привет, P0: X"


async def test_a_test_that_could_not_be_sent_to_all_is_refused(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    [ann] = await people(1)
    client = tenant.client
    refused = [
        await client.post("/v1/broadcast/test", json={"text": "Hi", "subscriber_id": "sub_none"}),
        await client.post("/v1/broadcast/test", json={"text": "Hi"}),
        await client.post(
            "/v1/broadcast/test", json={"text": "{{ attributes.city }}", "subscriber_id": ann}
        ),
        await client.post(
            "/v1/broadcast/test", json={"text": "Hi", "permission": "ads", "subscriber_id": ann}
        ),
    ]

    assert [each.status_code for each in refused] == [404, 400, 400, 400]
    assert refused[0].json()["code"] == "subscriber_not_found"
    assert "attributes.city" in refused[2].json()["error"]
    assert await messages(tenant) == []


async def test_the_form_sends_a_test_keeps_the_draft_and_remembers_who_gets_it(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    [ann] = await people(1)
    [bob] = await people(1, first=1, first_name="Bob", search_name="bob")
    project_id = tenant.project.project_id
    admin = await visitor(service, project_id, "admin")
    other = await visitor(service, project_id, "owner")

    first = await admin.get("/broadcasts/new")
    nobody = await admin.post("/broadcasts/test", DRAFT)
    found = await admin.post("/broadcasts/new", {**DRAFT, "test_who": "Bo"})
    told = await admin.post("/broadcasts/test", {**DRAFT, "test_to": bob, "name": "Sale"})
    message = await sent(tenant)
    again = await admin.get("/broadcasts/new")
    others = await other.get("/broadcasts/new")

    assert 'name="test_to"' not in first.text
    assert nobody.status_code == 400
    assert "choose who gets the test" in nobody.text
    assert bob in found.text
    assert ann not in found.text
    assert told.status_code == 200
    assert f"/messages/{message['message_id']}" in told.text
    assert message["text"] == "Hi **Bob**, "
    assert 'value="Sale"' in told.text
    assert "Hi **{{ first_name }}**" in told.text
    assert chosen(again) == [bob]
    assert chosen(others) == []


async def test_with_scripts_only_the_parts_that_change_are_answered(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    [ann] = await people(1, search_name="p0")
    admin = await visitor(service, tenant.project.project_id, "admin")

    def by_htmx(target: str) -> dict[str, str]:
        return {"HX-Request": "true", "HX-Target": target}

    found = await admin.get("/broadcasts/testers", test_who="p0", test_to=ann)
    told = await admin.post(
        "/broadcasts/test", {**DRAFT, "test_to": ann}, headers=by_htmx("tested")
    )
    wrong = await admin.post(
        "/broadcasts/test", {**DRAFT, "text": "", "test_to": ann}, headers=by_htmx("tested")
    )

    assert chosen(found) == [ann]
    for each in (found, told):
        assert "<html" not in each.text
    assert "being sent" in told.text
    assert wrong.status_code == 400
    assert len(await messages(tenant)) == 1


async def test_who_may_not_send_to_all_sends_no_test_and_none_to_other_projects(
    service: Service, tenant: Tenant, make_tenant: Any, people: AddPeople
) -> None:
    [ann] = await people(1)
    other = await make_tenant(service)
    [theirs] = await add(service, other, 1)
    viewer = await visitor(service, tenant.project.project_id, "viewer")
    elsewhere = await visitor(service, other.project.project_id, "admin")
    admin = await visitor(service, tenant.project.project_id, "admin")

    refused = [
        await viewer.post("/broadcasts/test", {**DRAFT, "test_to": ann}),
        await viewer.get("/broadcasts/testers", test_who="P"),
        await elsewhere.post("/broadcasts/test", {**DRAFT, "test_to": f"{ann}x"}),
    ]
    own = await elsewhere.post("/broadcasts/test", {**DRAFT, "test_to": theirs})
    fresh = await admin.get("/broadcasts/new")

    assert [each.status_code for each in refused] == [403, 403, 404]
    assert own.status_code == 200
    assert chosen(fresh) == []
    assert await messages(tenant) == []


@pytest.mark.both_databases
async def test_who_got_the_last_test_is_forgotten_with_the_subscriber_and_with_the_member(
    service: Service, tenant: Tenant, people: AddPeople
) -> None:
    [ann, bob] = await people(2)
    project_id = tenant.project.project_id
    one = await visitor(service, project_id, "owner")
    two = await visitor(service, project_id, "admin")
    for who, to in ((one, ann), (two, bob)):
        await who.post("/broadcasts/test", {**DRAFT, "test_to": to})
    async with service.db.transaction() as tx:
        await service.subscribers.erase(tx, project_id, ann)
    member_id = await _member_of(service, two, project_id)
    async with service.db.transaction() as tx:
        await service.members.remove(tx, project_id, member_id)
    page = await one.get("/broadcasts/new")
    async with service.db.read() as tx:
        kept = await tx.fetch_all("SELECT subscriber_id FROM broadcasts_testers")

    assert chosen(page) == []
    assert kept == []


async def _member_of(service: Service, who: Visitor, project_id: str) -> str:
    async with service.db.read() as tx:
        member = await service.members.find_by_account(tx, project_id, who.account_id)
    assert member is not None
    return member.member_id
