"""Saved views: who sees and changes which, and lists that open with one."""

import doctest
import re
from collections.abc import Awaitable, Callable
from html import unescape
from typing import Any

import pytest

from msgsvc_core.members.models import Role
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.views import service as views
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory, Tenant

FAILED = {"path": "/messages", "query": "status=failed&cursor=x&channel=&at=51", "name": "Failed"}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", plugin)])


@pytest.fixture
def enter(service: Service, tenant: Tenant) -> Callable[[Role], Awaitable[Visitor]]:
    async def made(role: Role) -> Visitor:
        return await visitor(service, tenant.project.project_id, role)

    return made


def shown(html: str) -> list[str]:
    """The names above the list; the one that is open in brackets."""
    found = re.findall(r'<a class="chip" href="[^"]*"( aria-current="page")?>(.*?)</a>', html)
    plain = [(here, re.sub(r"<[^>]+>", "", text)) for here, text in found]
    return [f"[{unescape(text)}]" if here else unescape(text) for here, text in plain]


def id_in(html: str) -> str:
    found = re.search(r'name="view_id" value="(vie_\w+)"', html)
    assert found is not None
    return found[1]


def test_the_example_of_filters_holds() -> None:
    assert doctest.testmod(views).failed == 0


async def test_a_view_is_its_authors_unless_it_is_shared(enter: Any) -> None:
    owner, viewer = await enter("owner"), await enter("viewer")
    before = await owner.get("/messages", status="failed")
    saved = await owner.post("/views", FAILED)
    await owner.post("/views", {**FAILED, "query": "status=sent", "name": "Ours", "shared": "1"})
    mine = await owner.client.get(saved.headers["location"])
    theirs = await viewer.get("/messages", status="sent")
    foreign = await viewer.post("/views/delete", {"view_id": id_in(mine.text)})
    shared = {"view_id": id_in(theirs.text), "name": "Theirs"}
    refused = [
        (await viewer.post(f"/views/{what}", shared)).status_code for what in ("change", "delete")
    ]
    too_far = await viewer.post("/views", {**FAILED, "shared": "1"})
    own = await viewer.post("/views", {**FAILED, "name": "My own"})
    then = await viewer.get("/messages", status="sent")
    await owner.client.aclose()
    await viewer.client.aclose()

    assert shown(before.text) == []
    assert saved.headers["location"].endswith("/messages?status=failed")
    assert shown(mine.text) == ["All", "[Failed]", "Shared with the project: Ours"]
    assert shown(theirs.text) == ["All", "[Shared with the project: Ours]"]
    assert (foreign.status_code, refused, too_far.status_code) == (404, [403, 403], 403)
    assert own.status_code == 303
    assert shown(then.text) == ["All", "[Shared with the project: Ours]", "My own"]


async def test_a_list_opens_with_the_readers_default_view_until_it_is_gone(enter: Any) -> None:
    owner, agent = await enter("owner"), await enter("admin")
    saved = await owner.post("/views", {**FAILED, "shared": "1"})
    view_id = id_in((await owner.client.get(saved.headers["location"])).text)
    change = {"view_id": view_id, "name": "Lost", "default": "1"}
    await owner.post("/views/change", change)
    opened = await owner.get("/messages")
    everything = await owner.get("/messages", view="all")
    others = await agent.get("/messages")
    await owner.post("/views/change", {"view_id": view_id, "name": "Lost"})
    plain = await owner.get("/messages")
    await owner.post("/views/change", change)
    await agent.post("/views/delete", {"view_id": view_id})
    after = await owner.get("/messages")
    log = await owner.get("/audit")
    await owner.client.aclose()
    await agent.client.aclose()

    assert (opened.status_code, opened.headers["location"]) == (303, saved.headers["location"])
    assert shown(everything.text) == ["[All]", "Shared with the project: Lost"]
    assert (others.status_code, plain.status_code, after.status_code) == (200, 200, 200)
    assert shown(after.text) == []
    assert "views.delete_view" in log.text


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": " "},
        {"name": "x" * 41},
        {"query": "cursor=x"},
        {"query": "status=" + "x" * 2000},
        {"path": "//evil.example"},
        {"path": "https://evil.example/"},
    ],
)
async def test_what_is_no_view_of_a_list_is_refused(enter: Any, wrong: dict[str, str]) -> None:
    owner = await enter("owner")
    answer = await owner.post("/views", {**FAILED, **wrong})
    await owner.client.aclose()

    assert answer.status_code == 400


async def test_a_list_has_a_limited_number_of_views(enter: Any) -> None:
    owner = await enter("owner")
    codes = [
        (await owner.post("/views", {**FAILED, "query": f"batch_id=bat_{n}"})).status_code
        for n in range(views.MOST_VIEWS + 1)
    ]
    await owner.client.aclose()

    assert codes == [303] * views.MOST_VIEWS + [409]
