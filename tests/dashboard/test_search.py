"""The search of a project, with every area: what it finds, for whom, and how little it reads."""

import html
import re
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from msgsvc_core.messages.indexing import file_all
from msgsvc_core.service import Service
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.lists.filling import Sizes, fill, id_of
from tests.api.lists.plans import explainer_of, note_statements
from tests.api.lists.project import ids_of
from tests.api.resources import MiniAppPlugin, resources_of
from tests.api.subscribing import subscribing
from tests.dashboard.walking import SETTINGS

MakeTenant = Callable[..., Awaitable[Tenant]]

#: What the search box sends.
BY_BOX = {"HX-Request": "true", "HX-Target": "search-hits"}

#: Names of resources, and the page that each of their ids leads to; `{}` is the id.
BY_ID = {
    "subscriber_id": "/subscribers/{}",
    "message_id": "/messages/{}",
    "drip_id": "/drips/{}",
    "form_id": "/forms/{}",
    "webhook_id": "/webhooks/{}",
    "ticket_id": "/tickets/{}",
    "scheduled_id": "/schedules/{}",
    "recurring_id": "/schedules/{}",
    "delivery_id": "/webhooks/deliveries/{}",
    "template": "/templates/{}",
}

#: Rows that a statement may look at for a search.
MOST_LOOKED_AT = 300


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS)


@pytest.fixture
async def tenant(service: Service, make_tenant: MakeTenant) -> Tenant:
    return await make_tenant(service)


@pytest.fixture
async def owner(service: Service, tenant: Tenant) -> AsyncIterator[Visitor]:
    made = await visitor(service, tenant.project.project_id)
    yield made
    await made.client.aclose()


async def found(who: Visitor, text: str) -> list[str]:
    """Titles of what the search box lists."""
    shown = await who.client.get(who.url("/search"), params={"q": text}, headers=BY_BOX)
    assert shown.status_code == 200, shown.text
    assert "<html" not in shown.text
    return [html.unescape(title) for title in re.findall(r"<bdi>(.*?)</bdi>", shown.text)]


async def test_an_id_leads_to_what_it_is_of_and_for_no_other_project(
    service: Service, tenant: Tenant, owner: Visitor, make_tenant: MakeTenant
) -> None:
    ids = await resources_of(service, tenant, subscribing(service, tenant), "Ann")
    other = await visitor(service, (await make_tenant(service)).project.project_id)
    led, elsewhere = {}, {}
    for name in BY_ID:
        led[name] = (await owner.get("/search", q=f" {ids[name]} ")).headers.get("location")
        elsewhere[name] = await found(other, ids[name])
    await other.client.aclose()

    assert led == {name: owner.url(path.format(ids[name])) for name, path in BY_ID.items()}
    assert elsewhere == {name: [] for name in BY_ID}


async def test_it_finds_people_tickets_keys_and_pages_by_what_one_remembers(
    service: Service, tenant: Tenant, owner: Visitor
) -> None:
    ids = await resources_of(service, tenant, subscribing(service, tenant), "Ann")
    by_name, by_number = await found(owner, "an"), await found(owner, "#1")
    by_external_id = await found(owner, ids["external_id"])
    pages = await found(owner, "web")
    page = await owner.get("/search", q="web")
    nothing = await owner.get("/search", q="<b>nothing</b>")

    assert "Ann" in by_name
    assert by_number[0].startswith("#1")
    assert by_external_id == ["Ann", "Messages to Ann"]
    assert "Webhooks" in pages
    assert page.status_code == 200
    assert f'href="{owner.url("/webhooks")}"' in page.text
    assert "Nothing found" in nothing.text
    assert "<b>nothing" not in nothing.text


async def test_a_role_finds_what_it_may_open(
    service: Service, tenant: Tenant, owner: Visitor
) -> None:
    ids = await resources_of(service, tenant, subscribing(service, tenant), "Ann")
    agent = await visitor(service, tenant.project.project_id, "agent")
    people = await found(agent, "ann")
    hidden = [await found(agent, ids[name]) for name in ("message_id", "webhook_id", "form_id")]
    pages = await found(agent, "web"), await found(agent, "tick")
    await agent.client.aclose()

    assert "Ann" in people
    assert hidden == [[], [], []]
    assert pages[0] == []
    assert pages[1] == ["Tickets"]


async def test_texts_that_are_no_names_find_nothing_and_break_nothing(owner: Visitor) -> None:
    for text in ("@", "#", "%", "'", "9" * 40, "sub_", "msg_" + "x" * 90, "\u202e", "{{7*7}}"):
        shown = await owner.client.get(owner.url("/search"), params={"q": text}, headers=BY_BOX)

        assert shown.status_code == 200, text
        assert "49" not in shown.text


@pytest.mark.database_file
async def test_a_search_looks_at_few_rows_of_many(
    make_service: ServiceFactory, make_tenant: MakeTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What jobs ask of the database meanwhile is not the search's.
    service = await make_service(
        extra_plugins=[("mini_app", MiniAppPlugin())], **{**SETTINGS, "jobs": {"runner": "none"}}
    )
    tenant = await make_tenant(service)
    owner = await visitor(service, tenant.project.project_id)
    ids = await ids_of(tenant.client)
    async with service.db.transaction() as tx:
        await fill(tx, tenant.project.project_id, ids, Sizes(4000, 4000, 4000, 4000))
    await file_all(service.db)
    explainer = await explainer_of(service.settings.database_url)
    asked = note_statements(monkeypatch)
    unserved = []
    for text in ("a", "ann", "#17", "17", id_of("msg", 9), id_of("sub", 9), id_of("tkt", 9)):
        await found(owner, text)
        assert asked, text
        works = [(statement, await explainer.explain(statement)) for statement in asked]
        asked.clear()
        unserved += [
            f"{text}: {work.looked_at} rows: {statement.sql}\n{work.plan}"
            for statement, work in works
            if work.looked_at > MOST_LOOKED_AT
        ]
    await explainer.close()
    await owner.client.aclose()

    assert not unserved, "\n\n".join(unserved)
