"""An error on our side, made by a table that is away: what a person reads in the dashboard and elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.resources import MiniAppPlugin, resources_of
from tests.api.subscribing import subscribing
from tests.dashboard.walking import SETTINGS

#: Pages with the table without which they can't answer. Their braces name resources.
PUBLIC = {
    "/login/{slug}": "auth_links",
    "/f/{form_id}": "forms_forms",
    "/oidc/{project_id}/device": "oidc_device_requests",
    "{preferences}": "core_subscribers",
}

#: What is sent there; the others are asked for.
SENT = {"/oidc/{project_id}/device": {"user_code": "BCDF-GHJK"}}

#: What is for the log alone.
DETAILS = (
    "Traceback",
    "no such table",
    "UndefinedTable",
    "does not exist",
    "SELECT",
    "_away",
    ".py",
)

WORDS = {
    "en": ("Something went wrong", "Request ID:"),
    "ru": ("Что-то пошло не так", "Номер запроса:"),
}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS)


@pytest.fixture
async def owner(service: Service, tenant: Tenant) -> AsyncIterator[Visitor]:
    made = await visitor(service, tenant.project.project_id)
    yield made
    await made.client.aclose()


@pytest.fixture
async def ids(service: Service, tenant: Tenant) -> dict[str, str]:
    made = dict(await resources_of(service, tenant, subscribing(service, tenant), "Ann"))
    project_id = tenant.project.project_id
    url = service.subscribers.preferences.url(project_id, made["subscriber_id"])
    return {**made, "project_id": project_id, "preferences": httpx2.URL(url).path}


@asynccontextmanager
async def without(service: Service, table: str) -> AsyncIterator[None]:
    """The table is away meanwhile."""
    async with service.db.transaction() as tx:
        await tx.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    try:
        yield
    finally:
        async with service.db.transaction() as tx:
            await tx.execute(f"ALTER TABLE {table}_away RENAME TO {table}")


def check(answer: httpx2.Response, lang: str) -> None:
    """A page that says so in the person's language, with what the log calls it, and nothing else of it."""
    assert answer.status_code == 500, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert f'<html lang="{lang}"' in answer.text
    for words in WORDS[lang]:
        assert words in answer.text
    assert answer.headers["x-request-id"] in answer.text
    assert [each for each in DETAILS if each in answer.text] == []


@pytest.mark.parametrize("lang", WORDS)
@pytest.mark.parametrize("path", PUBLIC)
async def test_a_public_page_that_fails_says_so(
    service: Service, client: httpx2.AsyncClient, ids: dict[str, str], path: str, lang: str
) -> None:
    url = path.format(**ids)
    headers = {"accept-language": lang}
    assert (await client.get(url, headers=headers)).status_code in {200, 303}
    async with without(service, PUBLIC[path]):
        method = "POST" if path in SENT else "GET"
        answer = await client.request(method, url, headers=headers, data=SENT.get(path))

    check(answer, lang)


@pytest.mark.parametrize("lang", WORDS)
async def test_a_page_of_the_dashboard_that_fails_says_so(
    service: Service, owner: Visitor, lang: str
) -> None:
    headers = {"accept-language": lang}
    async with without(service, "webhooks_endpoints"):
        answer = await owner.client.get(owner.url("/webhooks"), headers=headers)
        to_htmx = await owner.client.get(
            owner.url("/webhooks"), headers={**headers, "hx-request": "true"}
        )

    check(answer, lang)
    assert to_htmx.headers["hx-retarget"] == "#problem"
    assert to_htmx.headers["x-request-id"] in to_htmx.text
    assert [each for each in DETAILS if each in to_htmx.text] == []
