"""How a project looks on its public pages, through the API and on the pages."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest

from msgsvc_core.db.errors import Deadlock
from msgsvc_core.projects.branding.service import ProjectBranding
from msgsvc_core.service import Service
from msgsvc_devkit.fixtures import Tenant
from tests.api.conftest import CheckError
from tests.logos import SHAPE, png, svg
from tests.payloads import NAMES

NOTHING = {"sender_name": None, "accent": None, "shades": None, "logo_url": None}


async def put_logo(client: httpx2.AsyncClient, content: bytes) -> Any:
    return await client.post("/v1/project/branding/logo", files={"file": ("logo", content)})


async def test_a_project_has_the_look_of_the_service_at_first(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/v1/project/branding")).json() == NOTHING


async def test_a_change_leaves_alone_what_it_does_not_name(client: httpx2.AsyncClient) -> None:
    await client.patch("/v1/project/branding", json={"sender_name": "Corner Coffee"})
    changed = (await client.patch("/v1/project/branding", json={"accent": "#FFD400"})).json()

    assert changed["sender_name"] == "Corner Coffee"
    assert changed["accent"] == "#ffd400"
    # Yellow is no colour for a link on white.
    assert changed["shades"]["light"]["link"] != "#ffd400"
    assert changed["shades"]["dark"]["accent"] == "#ffd400"
    assert (await client.get("/v1/project/branding")).json() == changed
    null = (await client.patch("/v1/project/branding", json={"accent": None})).json()
    assert (null["accent"], null["sender_name"]) == (None, "Corner Coffee")


@pytest.mark.parametrize(
    "body",
    [
        {"accent": "red"},
        {"accent": "#fff"},
        {"accent": "#ffffff;}body{display:none"},
        {"accent": "url(//evil.example)"},
        {"accent": "#12345g"},
        {"sender_name": ""},
        {"sender_name": "a\nb"},
        {"sender_name": "x" * 65},
    ],
)
async def test_what_is_no_colour_or_name_is_refused(
    client: httpx2.AsyncClient, check_error: CheckError, body: dict[str, Any]
) -> None:
    check_error(await client.patch("/v1/project/branding", json=body), 400, "validation_failed")

    assert (await client.get("/v1/project/branding")).json() == NOTHING


async def test_the_colours_are_a_stylesheet_that_never_changes(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/brand/7b2fbe.css")

    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    assert answer.text.startswith(":root {\n  --accent: light-dark(#7b2fbe, #")
    assert (await client.get("/brand/preview/7b2fbe.css")).text.startswith(".branded {")


@pytest.mark.parametrize(
    "path", ["7B2FBE.css", "7b2fb.css", "red.css", "7b2fbe}.css", "lgo_x", "x"]
)
async def test_nothing_else_is_a_stylesheet_or_a_logo(
    client: httpx2.AsyncClient, path: str
) -> None:
    assert (await client.get(f"/brand/{path}")).status_code == 404


async def test_a_logo_is_served_so_that_nothing_in_it_runs(client: httpx2.AsyncClient) -> None:
    url = (await put_logo(client, svg())).json()["logo_url"]
    answer = await client.get(url)

    assert answer.content == svg(SHAPE.replace("/>", "></path>"))
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_logo_whose_first_transaction_ended_by_a_deadlock_is_read_again(
    client: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_logo, tried = ProjectBranding.set_logo, []

    async def deadlocked_once(branding: ProjectBranding, *arguments: Any) -> Any:
        tried.append(arguments)
        if len(tried) == 1:
            raise Deadlock("deadlock detected")
        return await set_logo(branding, *arguments)

    monkeypatch.setattr(ProjectBranding, "set_logo", deadlocked_once)
    answer = await put_logo(client, svg())

    assert answer.status_code == 200, answer.text
    assert len(tried) == 2


async def test_a_new_logo_replaces_the_old_one(client: httpx2.AsyncClient) -> None:
    old = (await put_logo(client, svg())).json()["logo_url"]
    new = (await put_logo(client, png())).json()["logo_url"]

    assert (await client.get(old)).status_code == 404
    assert (await client.get(new)).headers["content-type"] == "image/png"
    removed = await client.delete("/v1/project/branding/logo")
    assert (removed.status_code, removed.content) == (204, b"")
    assert (await client.get("/v1/project/branding")).json()["logo_url"] is None
    assert (await client.get(new)).status_code == 404


async def test_a_refused_logo_leaves_the_old_one(
    client: httpx2.AsyncClient, check_error: CheckError
) -> None:
    kept = (await put_logo(client, png())).json()["logo_url"]
    check_error(await put_logo(client, svg("<script/>")), 400, "validation_failed")
    check_error(await put_logo(client, b"\0" * 65537), 400, "validation_failed")

    assert (await client.get("/v1/project/branding")).json()["logo_url"] == kept


async def test_another_projects_branding_stays(
    service: Service,
    client: httpx2.AsyncClient,
    make_tenant: Callable[[Service], Awaitable[Tenant]],
) -> None:
    other_tenant = await make_tenant(service)
    await client.patch("/v1/project/branding", json={"sender_name": "Mine", "accent": "#7b2fbe"})
    await put_logo(client, png())
    await other_tenant.client.delete("/v1/project/branding/logo")

    assert (await other_tenant.client.get("/v1/project/branding")).json() == NOTHING
    assert (await client.get("/v1/project/branding")).json()["logo_url"] is not None


async def test_names_that_try_to_be_markup_are_kept_as_text(client: httpx2.AsyncClient) -> None:
    for name in NAMES:
        answer = await client.patch("/v1/project/branding", json={"sender_name": name})
        if answer.is_success:
            assert answer.json()["sender_name"] == name
