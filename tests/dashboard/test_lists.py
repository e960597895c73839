"""However much there is, a page looks at few rows, whatever its list is filtered by."""

from collections.abc import AsyncIterator, Mapping
from urllib.parse import parse_qsl

import pytest

from msgsvc_core.messages.indexing import file_all
from msgsvc_core.service import Service
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.lists.filling import Sizes, fill, id_of
from tests.api.lists.plans import Explainer, Statement, explainer_of, note_statements
from tests.api.lists.project import ids_of
from tests.api.resources import MiniAppPlugin
from tests.dashboard.list_filling import fill_pages
from tests.dashboard.listing import UNSET, Offered, is_list, older
from tests.dashboard.walking import SETTINGS, Walk, at, pages_of

#: People are enough for PostgreSQL to look up the fifty of a page one by one.
SIZES = Sizes(messages=4000, subscribers=16_000, tickets=4000, others=4000)

#: Rows that a statement may look at: the fifty entries of a page, with what belongs to each.
MOST_LOOKED_AT = 600

#: Statements that may look at more, by what only they say, and why.
BOUNDED: Mapping[str, int] = {
    # Up to 1,000 who carry each of the two tags, along its index.
    "ORDER BY s.subscriber_id LIMIT :most) AS found) AS subscribers": 2 * 1000 + 100,
    # Up to 1,000 whom each of the two permissions reaches, with each the person.
    "ORDER BY g.subscriber_id LIMIT :most) AS found) AS active": 4 * 1000 + 100,
    # Up to 5,000 people, each with why a broadcast leaves them out.
    "AS found GROUP BY found.reason": 6 * 5_000 + 100,
    # Up to 10,000 active people, by the bot that writes to them.
    "AS found GROUP BY bot": 4 * 10_000,
    # Up to 1,000 who have come to the end of a chain, and as many at each of its steps.
    "SELECT 0 AS place, COUNT(*)": 10_000,
    # All accounts, which are those who rent the service and not their customers: once for each of them.
    "SUBSTR(a.email, 1, :length) = :prefix": 2 * 4000 + 100,
    # All projects, likewise.
    "SUBSTR(project_id, 1, :length) = :prefix": 2 * 4000 + 1000,
    # Up to 1,000 active subscribers; of more the number of the last hour is shown.
    "status = 'active' LIMIT :at_most": 2 * 1000 + 100,
    # Up to 10,000 entries of a list, along its index; those of a tag or a permission with the person.
    "AS walked": 5 * 10_000,
    # Up to 1,000 submissions of a form.
    "SELECT 1 AS one FROM forms_submissions": 2 * 1000 + 100,
}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(
        extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS, jobs={"runner": "none"}
    )


@pytest.fixture
async def owner(service: Service, tenant: Tenant) -> AsyncIterator[Visitor]:
    made = await visitor(service, tenant.project.project_id)
    yield made
    await made.client.aclose()


@pytest.fixture
async def operator(service: Service, tenant: Tenant) -> AsyncIterator[Visitor]:
    made = await stranger(service, tenant.project.project_id, is_operator=True)
    yield made
    await made.client.aclose()


@pytest.fixture
async def ids(service: Service, tenant: Tenant, owner: Visitor) -> dict[str, str]:
    """What the rows belong to, and what pages have in their paths."""
    ids = await ids_of(tenant.client)
    async with service.db.transaction() as tx:
        await fill(tx, tenant.project.project_id, ids, SIZES)
        await fill_pages(tx, tenant.project.project_id, owner.account_id, SIZES.others)
    await file_all(service.db)
    one = {"ticket_id": "1", "account_id": owner.account_id, "member_id": id_of("mem", 1)}
    by_prefix = {"waiting_job_id": "job", "client_id": "app", "subscriber_id": "sub"}
    return {**ids, **one, **{name: id_of(prefix, 1) for name, prefix in by_prefix.items()}}


@pytest.mark.database_file
@pytest.mark.usefixtures("tenant")
async def test_every_page_of_every_list_looks_at_few_rows(
    service: Service,
    owner: Visitor,
    operator: Visitor,
    ids: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explainer = await explainer_of(service.settings.database_url)
    asked = note_statements(monkeypatch)
    found: list[str] = []
    done: set[tuple[str, str]] = set()
    for page in pages_of(service):
        if not is_list(page):
            continue
        who = operator if page.access == "installation:operate" else owner
        walk = at(page, owner.project_id, ids)
        found += await check(who, walk, asked, done, explainer)
    await explainer.close()

    assert not found, f"{len(found)} of them\n" + "\n\n".join(found)


async def check(
    who: Visitor,
    walk: Walk,
    asked: list[Statement],
    done: set[tuple[str, str]],
    explainer: Explainer,
) -> list[str]:
    """What is wrong with a page: as it is opened, with each filter, and each of these one page further."""
    found, seen, waiting = [], set(), ["", UNSET.get(walk.page.name, "")]
    while waiting:
        query = waiting.pop(0)
        if query in seen:
            continue
        seen.add(query)
        asked.clear()
        answer = await who.client.get(walk.url, params=parse_qsl(query))
        if answer.status_code not in {200, 303, 404}:
            found.append(f"{walk} ?{query} answers {answer.status_code}")
        # A further page leads nowhere that the first does not.
        if "cursor" not in query:
            offered = Offered(answer.text, walk.page.name, walk.url)
            found += [f"say what {each} is asked for" for each in offered.unknown if not query]
            if query in {"", UNSET.get(walk.page.name)}:
                waiting += offered.queries
            waiting += older(offered.queries)
        found += [f"{walk} ?{query} {told}" for told in await too_much(asked, done, explainer)]
    return found


async def too_much(
    asked: list[Statement], done: set[tuple[str, str]], explainer: Explainer
) -> list[str]:
    """Takes the statements, and says which of them looked at too many rows, and how."""
    # Pages ask many things alike, of which the frame asks most.
    once = {key_of(each): each for each in asked if key_of(each) not in done}
    done.update(once)
    works = [(statement, await explainer.explain(statement)) for statement in once.values()]
    asked.clear()
    return [
        f"{work.looked_at} rows: {statement.sql}\n{work.plan}"
        for statement, work in works
        if work.looked_at > most(statement)
    ]


def key_of(statement: Statement) -> tuple[str, str]:
    return statement.sql, repr(statement.params)


def most(statement: Statement) -> int:
    return max((n for said, n in BOUNDED.items() if said in statement.sql), default=MOST_LOOKED_AT)
