"""What every page has, in both languages, in an empty project and in one that has everything."""

import re
from collections.abc import Awaitable, Callable
from html.parser import HTMLParser

import pytest

from msgsvc_core.pages.icons import shapes
from msgsvc_core.service import Service
from msgsvc_dashboard.frame.navigation import GROUPS
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from tests.api.resources import MiniAppPlugin, resources_of
from tests.api.subscribing import subscribing
from tests.dashboard.walking import SETTINGS, Walk, at, pages_of

MakeTenant = Callable[..., Awaitable[Tenant]]


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("mini_app", MiniAppPlugin())], **SETTINGS)


class Parsed(HTMLParser):
    """What stands in a page: its elements, its ids, and what its policy forbids."""

    #: Elements that have no end.
    VOID = frozenset({"meta", "link", "input", "br", "hr", "img", "path", "source", "wbr"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.forbidden: list[str] = []
        self.lang = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        if self._open:
            self.forbidden.append(f"never closed: {self._open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append(tag)
        if tag not in self.VOID:
            self._open.append(tag)
        self.lang = values.get("lang") or "" if tag == "html" else self.lang
        if "id" in values:
            self.ids.append(values["id"] or "")
        self.forbidden += [
            name for name in values if name == "style" or name.startswith(("on", "hx-on"))
        ]
        if tag == "style" or (tag == "script" and "src" not in values):
            self.forbidden.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in self.VOID:
            return
        if not self._open or self._open[-1] != tag:
            self.forbidden.append(f"</{tag}> in {self._open[-3:]}")
            return
        self._open.pop()


def faults(html: str, lang: str) -> list[str]:
    """What is wrong with a page or fragment."""
    parsed = Parsed(html)
    found = [f"forbidden: {one}" for one in parsed.forbidden]
    found += [f"id {one!r} twice" for one in {*parsed.ids} if parsed.ids.count(one) > 1]
    if "html" not in parsed.tags:
        return found
    title = re.search(r"<title>(.*?)</title>", html, re.DOTALL)
    if title is None or not title[1].partition("·")[0].strip():
        found.append("no title")
    if parsed.tags.count("h1") != 1:
        found.append(f"{parsed.tags.count('h1')} h1")
    if parsed.lang != lang:
        found.append(f"lang is {parsed.lang!r}")
    # With the frame, an entry of the navigation says where one is: that of the page, or of those around it.
    here = re.findall(r' aria-current="\w+"', html[html.find('id="pages"') : html.find("<main")])
    if len(here) != 1:
        found.append(f"{len(here)} entries of the navigation say that one is there")
    return found


async def visit(who: Visitor, walk: Walk, lang: str) -> list[str]:
    answer = await who.client.get(walk.url, headers={"Accept-Language": lang})
    if answer.status_code == 303:
        return []
    if answer.status_code != 200:
        return [f"{walk} answers {answer.status_code}"]
    if not answer.headers["content-type"].startswith("text/html"):
        return []
    policy = answer.headers["content-security-policy"]
    assert "'unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    return [f"{walk} in {lang}: {fault}" for fault in faults(answer.text, lang)]


async def test_every_page_without_parameters_answers_in_an_empty_project(
    service: Service, make_tenant: MakeTenant
) -> None:
    project_id = (await make_tenant(service)).project.project_id
    owner = await visitor(service, project_id)
    operator = await stranger(service, project_id, is_operator=True)
    found = []

    for page in pages_of(service):
        if page.method == "GET" and "{" not in page.path:
            who = operator if page.access == "installation:operate" else owner
            for lang in ("en", "ru"):
                found += await visit(who, at(page, project_id, {}), lang)
    await owner.client.aclose()
    await operator.client.aclose()

    assert not found, "\n".join(found)


@pytest.mark.both_databases
async def test_every_page_answers_in_a_project_that_has_everything(
    service: Service, make_tenant: MakeTenant
) -> None:
    tenant = await make_tenant(service)
    project_id = tenant.project.project_id
    ids = await resources_of(service, tenant, subscribing(service, tenant), "Ann")
    owner = await visitor(service, project_id)
    operator = await stranger(service, project_id, is_operator=True)
    ids["account_id"] = owner.account_id
    found = []

    for page in pages_of(service):
        if page.method == "GET":
            who = operator if page.access == "installation:operate" else owner
            for lang in ("en", "ru"):
                found += await visit(who, at(page, project_id, ids), lang)
    await owner.client.aclose()
    await operator.client.aclose()

    assert not found, "\n".join(found)


async def test_every_entry_of_the_navigation_has_a_group_and_an_icon(service: Service) -> None:
    entries = {page.name: page.nav for page in pages_of(service) if page.nav is not None}
    paths = {page.path for page in pages_of(service)}

    assert {nav.icon for nav in entries.values()} <= shapes().keys()
    assert {nav.group for nav in entries.values()} <= set(GROUPS)
    assert {path for nav in entries.values() for path in nav.also} <= paths
    assert all("{" not in page.path for page in pages_of(service) if page.nav is not None)
