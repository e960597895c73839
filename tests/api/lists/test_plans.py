"""However much a project has, a page of a list looks at few rows, whatever it is filtered by."""

from collections.abc import AsyncIterator

import httpx2
import pytest

from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.jobs import inspection
from msgsvc_core.messages.indexing import file_all
from msgsvc_core.service import Service
from msgsvc_core.subscribers.permissions import Permissions
from msgsvc_core.subscribers.tags import Tags
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_forms import store as submissions
from tests.api.lists.asking import Asked, lists
from tests.api.lists.filling import START_MS, Sizes, fill, id_of
from tests.api.lists.plans import Explainer, Statement, explainer_of, note_statements
from tests.api.lists.project import ids_of
from tests.api.resources import PLUGINS, SETTINGS

#: A connection of its own explains the statements.
pytestmark = pytest.mark.database_file

SIZES = Sizes(messages=4000, subscribers=4000, tickets=4000, others=4000)

#: Entries of a page.
PAGE = 3

#: Rows that a statement may look at for a page, with what belongs to its entries.
MOST_LOOKED_AT = 300


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(
        plugins=PLUGINS, webhooks=SETTINGS["webhooks"], jobs={"runner": "none"}
    )


@pytest.fixture
async def ids(service: Service, client: httpx2.AsyncClient, tenant: Tenant) -> dict[str, str]:
    """What the rows belong to, and what lists have in their paths."""
    ids = await ids_of(client)
    async with service.db.transaction() as tx:
        await fill(tx, tenant.project.project_id, ids, SIZES)
    await file_all(service.db)
    return {**ids, "ticket_id": "1"}


@pytest.fixture
async def explainer(service: Service, ids: dict[str, str]) -> AsyncIterator[Explainer]:
    made = await explainer_of(service.settings.database_url)
    yield made
    await made.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Statement]:
    return note_statements(monkeypatch)


async def test_every_page_of_every_list_looks_at_few_rows(
    service: Service,
    client: httpx2.AsyncClient,
    ids: dict[str, str],
    asked: list[Statement],
    explainer: Explainer,
) -> None:
    unserved: list[str] = []
    for requests in lists(service.endpoints, ids, SIZES).values():
        for request in requests:
            pages = await first_pages(client, request)
            assert asked, request
            unserved += [f"{request} {pages} {told}" for told in await too_much(asked, explainer)]

    assert not unserved, f"{len(unserved)} of them\n" + "\n\n".join(unserved)


@pytest.mark.usefixtures("ids")
async def test_what_operators_list_and_what_is_removed_in_time_looks_at_few_rows(
    service: Service, asked: list[Statement], explainer: Explainer
) -> None:
    unserved: list[str] = []
    late_ms = START_MS * 2
    async with service.db.read() as tx:
        for work in (
            lambda: service.mailings.list_any(tx, ended=True, limit=PAGE),
            lambda: service.mailings.list_any(tx, ended=False, limit=PAGE),
            lambda: inspection.list_jobs(tx, inspection.Filter(), PAGE),
            lambda: inspection.list_jobs(tx, inspection.Filter("dead"), PAGE),
            lambda: inspection.list_jobs(
                tx, inspection.Filter("dead", name="message.deliver"), PAGE
            ),
            lambda: inspection.list_jobs(tx, inspection.Filter("running"), PAGE),
            lambda: submissions.list_old(tx, late_ms, spam=True, limit=PAGE),
            lambda: submissions.list_old(tx, late_ms, spam=False, limit=PAGE),
        ):
            await work()
            unserved += await too_much(asked, explainer)

    assert not unserved, "\n\n".join(unserved)


@pytest.mark.usefixtures("ids")
async def test_what_the_dashboard_alone_lists_looks_at_few_rows(
    service: Service, tenant: Tenant, asked: list[Statement], explainer: Explainer
) -> None:
    project_id, page = tenant.project.project_id, PageQuery(limit=PAGE)
    unserved: list[str] = []
    async with service.db.read() as tx:
        permissions = await service.get(Permissions).list_all(tx, project_id)
        moments, cursor = await service.messages.history(tx, project_id, id_of("sub", 1), page)
        further = PageQuery(limit=PAGE, cursor=cursor)
        await service.messages.history(tx, project_id, id_of("sub", 3), page)
        await service.messages.history(tx, project_id, id_of("sub", 1), further)
        tags = await service.get(Tags).list_all(tx, project_id, 10)
        counted = await service.get(Permissions).count_active_roughly(
            tx, project_id, permissions, 10
        )
        unserved += await too_much(asked, explainer)

    assert len(moments) == PAGE
    assert {tag.name: tag.subscribers for tag in tags} == {"most": 10, "rare": 3}
    assert counted["most"] == 10
    assert not unserved, "\n\n".join(unserved)


async def too_much(asked: list[Statement], explainer: Explainer) -> list[str]:
    """Takes the statements, and says which of them looked at too many rows, and how."""
    works = [(statement, await explainer.explain(statement)) for statement in asked]
    asked.clear()
    return [
        f"{work.looked_at} rows: {statement.sql}\n{work.plan}"
        for statement, work in works
        if work.looked_at > MOST_LOOKED_AT
    ]


async def first_pages(client: httpx2.AsyncClient, request: Asked) -> list[int]:
    """Asks for two pages; says how many entries they have."""
    seen, cursor = [], None
    while len(seen) < 2 and (cursor or not seen):
        query = {**request.query, "limit": PAGE} | ({} if cursor is None else {"cursor": cursor})
        answer = await client.get(request.path, params=query)
        assert answer.status_code == 200, f"{request}: {answer.text}"
        found = answer.json()
        found = found.get("messages", found)
        seen.append(len(found["data"]))
        cursor = found["next_cursor"]
    return seen
