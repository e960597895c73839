"""Every page by role, with another's ids and with forged forms: allowed or refused as the role table says."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from msgsvc_core.dashboard import ALLOWED
from msgsvc_core.members.models import Role
from msgsvc_core.service import Service
from msgsvc_dashboard.frame.browser import CSRF_FIELD, csrf_token
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.resources import MiniAppPlugin, resources_of
from tests.api.subscribing import subscribing
from tests.dashboard.walking import SETTINGS, Walk, at, pages_of

ROLES: tuple[Role, ...] = ("owner", "admin", "agent", "viewer")
MakeTenant = Callable[..., Awaitable[Tenant]]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS)


class AnyName(dict[str, str]):
    """Names every resource alike, for pages that are never to be reached."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "x"


async def knock(visitor: Visitor, walk: Walk) -> httpx2.Response:
    """Asks for a page; of a change, sends what is no form, which only who may is told."""
    if walk.page.method == "GET":
        return await visitor.client.get(walk.url)
    return await visitor.client.post(
        walk.url, content=b"no form", headers={"Content-Type": "text/plain"}
    )


async def test_every_page_opens_for_the_roles_of_the_table_and_for_nobody_else(
    service: Service, make_tenant: MakeTenant
) -> None:
    project_id = (await make_tenant(service)).project.project_id
    walks = [at(page, project_id, AnyName()) for page in pages_of(service)]
    visitors = {role: await visitor(service, project_id, role) for role in ROLES}
    outside = await stranger(service, project_id)
    operator = await stranger(service, project_id, is_operator=True)
    found: list[str] = []

    async def check(name: str, who: Visitor, walk: Walk, wanted: set[int]) -> None:
        answer = await knock(who, walk)
        if answer.status_code not in wanted:
            found.append(f"{name}: {walk} answers {answer.status_code}, not {sorted(wanted)}")

    async with AsyncExitStack() as stack:
        for each in (*visitors.values(), outside, operator):
            stack.push_async_callback(each.client.aclose)
        nobody = Visitor(service, project_id, "")
        stack.push_async_callback(nobody.client.aclose)
        for walk in walks:
            await check("nobody", nobody, walk, {303})
            # Who may is asked for a form, or shown a page that has nothing of that name.
            entered = {415} if walk.page.method == "POST" else {200, 303, 404}
            if walk.page.access == "account:self":
                for name, who in {**visitors, "stranger": outside}.items():
                    await check(name, who, walk, entered)
                continue
            operates = walk.page.access == "installation:operate"
            await check("operator", operator, walk, entered if operates else {404})
            await check("stranger", outside, walk, {403} if operates else {404})
            for role, who in visitors.items():
                may = role in ALLOWED.get(walk.page.access, ())
                await check(role, who, walk, entered if may else {403})

    assert walks
    assert not found, "\n".join(found)


async def test_another_projects_ids_name_nothing_and_nothing_of_it_changes(
    service: Service, make_tenant: MakeTenant
) -> None:
    tenant, other = await make_tenant(service, "Shop"), await make_tenant(service, "Other")
    owner = await visitor(service, tenant.project.project_id)
    ids = await resources_of(service, other, subscribing(service, other), "Ann")
    named = [page for page in pages_of(service) if "{" in page.path]
    project_pages = [
        page for page in named if page.access not in {"installation:operate", "account:self"}
    ]
    before = await rows_of(service, other.project.project_id)

    found = []
    for page in project_pages:
        walk = at(page, tenant.project.project_id, ids)
        answer = await (owner.get(walk.url) if page.method == "GET" else owner.post(walk.url))
        if answer.status_code != 404:
            found.append(f"{walk} answers {answer.status_code}")
    after = await rows_of(service, other.project.project_id)
    await owner.client.aclose()

    assert not found, "\n".join(found)
    assert after == before


async def test_a_form_that_is_not_ours_is_refused_by_every_change(
    service: Service, make_tenant: MakeTenant
) -> None:
    project_id = (await make_tenant(service)).project.project_id
    owner = await visitor(service, project_id)
    operator = await stranger(service, project_id, is_operator=True)
    found = []

    for page in pages_of(service):
        if page.method == "GET":
            continue
        walk = at(page, project_id, AnyName())
        who = operator if page.access == "installation:operate" else owner
        token = csrf_token(service.secrets, who.session_id)
        forgeries: dict[str, dict[str, Any]] = {
            "no token": {"data": {"x": "y"}},
            "a wrong token": {"data": {CSRF_FIELD: "0" * len(token)}},
            "from another site": {
                "data": {CSRF_FIELD: token},
                "headers": {"Sec-Fetch-Site": "cross-site"},
            },
            "from another origin": {
                "data": {CSRF_FIELD: token},
                "headers": {"Origin": "https://evil.example"},
            },
        }
        for name, sent in forgeries.items():
            answer = await who.client.post(walk.url, **sent)
            if answer.status_code != 403:
                found.append(f"{walk} with {name} answers {answer.status_code}")
    await owner.client.aclose()
    await operator.client.aclose()

    assert not found, "\n".join(found)


async def rows_of(service: Service, project_id: str) -> dict[str, list[str]]:
    """All rows of a project, by table."""
    async with service.db.read() as tx:
        columns = (
            "SELECT m.name AS t FROM sqlite_master m, pragma_table_info(m.name) c"
            " WHERE m.type = 'table' AND c.name = 'project_id'"
            if tx.dialect == "sqlite"
            else "SELECT table_name AS t FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND column_name = 'project_id'"
        )
        tables = sorted(row["t"] for row in await tx.fetch_all(columns))
        found = {}
        for table in tables:
            rows = await tx.fetch_all(
                f"SELECT * FROM {table} WHERE project_id = :project_id", {"project_id": project_id}
            )
            found[table] = sorted(str(dict(row)) for row in rows)
        return found
