"""What the frame does for every page: forms, notices, fragments, looks and files."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory
from tests.dashboard.sample.pages import Kept, SamplePlugin

BY_HTMX = {"HX-Request": "true", "HX-Target": "part", "HX-Current-URL": "http://msgsvc.test/x?y=1"}


@dataclass(frozen=True)
class Place:
    service: Service
    project_id: str
    owner: Visitor

    @property
    def root(self) -> str:
        return f"/dashboard/projects/{self.project_id}"

    async def name(self) -> str:
        async with self.service.db.read() as tx:
            return (await self.service.projects.get(tx, self.project_id)).name


@pytest.fixture
async def place(make_service: ServiceFactory) -> AsyncIterator[Place]:
    plugins: list[tuple[str, Any]] = [("dashboard", plugin), ("sample", SamplePlugin())]
    service = await make_service(extra_plugins=plugins)
    project_id = (await service.projects.create("Shop")).project_id
    owner = await visitor(service, project_id)
    yield Place(service, project_id, owner)
    await owner.client.aclose()


async def test_a_change_leads_on_and_is_told_once(place: Place) -> None:
    changed = await place.owner.post("/samples", {"text": "<b>Новое</b>"})
    first = await place.owner.get("/samples")
    second = await place.owner.get("/samples")

    assert (changed.status_code, changed.headers["location"]) == (303, f"{place.root}/samples")
    assert "httponly" in changed.headers["set-cookie"].lower()
    assert 'role="status">Changed to &lt;b&gt;Новое&lt;/b&gt;.' in first.text
    assert "Changed to" not in second.text
    assert place.service.get(Kept).done == ["<b>Новое</b>"]
    assert await place.name() == "<b>Новое</b>"


async def test_the_audit_log_has_the_titles_and_the_area_of_a_strangers_plugin(
    place: Place,
) -> None:
    await place.owner.post("/samples", {"text": "x"})
    log = (await place.owner.get("/audit")).text
    filtered = (await place.owner.get("/audit", about="sample")).text
    others = (await place.owner.get("/audit", about="team")).text

    assert "Sample added" in log
    assert '<option value="sample">Samples</option>' in log
    assert "Sample added" in filtered
    assert "Sample added" not in others


async def test_nobody_else_puts_a_notice_there(place: Place) -> None:
    changed = await place.owner.post("/samples", {"text": "mine"})
    cookie = changed.cookies["msgsvc_notice"].strip('"')
    other = await visitor(place.service, place.project_id, "admin")
    seen = []
    for who, value in ((other, cookie), (place.owner, f"YQ==.{cookie.partition('.')[2]}")):
        who.client.cookies.set("msgsvc_notice", value)
        seen.append((await who.get("/samples")).text)
    await other.client.aclose()

    assert not any('role="status"' in text for text in seen)


async def test_what_was_typed_is_shown_again_and_nothing_is_changed(place: Place) -> None:
    refused = await place.owner.post("/samples", {"text": "refused"})
    unchanged = await place.name()
    counted = await place.owner.post("/samples", {"text": "counted"})

    assert (refused.status_code, unchanged) == (400, "Shop")
    assert "text: is refused" in refused.text
    assert 'value="refused" aria-invalid="true" aria-describedby="e-text"' in refused.text
    assert '<p class="fault" id="e-text">is refused</p>' in refused.text
    assert "aria-invalid" not in counted.text
    assert (counted.status_code, await place.name()) == (409, "counted")
    assert place.service.get(Kept).done == []


async def test_files_come_with_a_form_up_to_their_limit(place: Place) -> None:
    sent = await place.owner.post("/samples", {"text": "x"}, files={"file": ("a.txt", b"123")})
    shown = await place.owner.get("/samples")
    large = await place.owner.post(
        "/samples", {"text": "y"}, files={"file": ("a.txt", b"1" * 2000)}
    )

    assert sent.status_code == 303
    assert "Changed to x (a.txt, 3)." in shown.text
    assert large.status_code == 413
    assert await place.name() == "x"


async def test_htmx_is_led_on_and_told_what_was_refused(place: Place) -> None:
    part = await place.owner.client.get(f"{place.root}/samples/part", headers=BY_HTMX)
    moved = await place.owner.post("/samples", {"text": "x"}, headers=BY_HTMX)
    missing = await place.owner.client.get("/dashboard/projects/prj_x/samples", headers=BY_HTMX)
    place.owner.client.cookies.clear()
    ended = await place.owner.client.get(f"{place.root}/samples/part", headers=BY_HTMX)

    assert part.text.strip() == '<p id="part">part</p>'
    assert (moved.status_code, moved.headers["hx-redirect"]) == (200, f"{place.root}/samples")
    assert (missing.status_code, missing.headers["hx-retarget"]) == (404, "#problem")
    assert "<html" not in missing.text
    assert ended.headers["hx-redirect"] == "/dashboard/sign-in?next=/x%3Fy%3D1"


async def test_an_address_that_leads_nowhere_is_told_in_words(place: Place) -> None:
    found = [
        await place.owner.get("/nothing/here"),
        await place.owner.get("/dashboard/nothing"),
        await place.owner.client.get("/dashboard/projects/prj_x"),
    ]

    assert {one.status_code for one in found} == {404}
    assert all("<h1>Page not found</h1>" in one.text for one in found)


async def test_who_is_not_signed_in_comes_back_after_it(place: Place) -> None:
    place.owner.client.cookies.clear()
    asked = await place.owner.get("/samples", text="a b")
    posted = await place.owner.post("/samples", {"text": "x"})

    assert (
        asked.headers["location"] == f"/dashboard/sign-in?next={place.root}/samples%3Ftext%3Da%2Bb"
    )
    assert posted.headers["location"] == "/dashboard/sign-in"
    assert await place.name() == "Shop"


@pytest.mark.both_databases
async def test_colours_and_language_are_chosen_in_the_menu_and_lead_back(place: Place) -> None:
    here = f"{place.root}/samples?text=x"
    dark = await place.owner.post("/dashboard/account/look", {"theme": "dark", "next": here})
    shown = await place.owner.get("/samples")
    russian = await place.owner.post(
        "/dashboard/account/look", {"lang": "ru", "next": "//evil.example/dashboard/x"}
    )
    translated = await place.owner.get("/samples")
    forged = await place.owner.client.post("/dashboard/account/look", data={"theme": "light"})
    auto = await place.owner.post("/dashboard/account/look", {"theme": "auto", "next": here})
    again = await place.owner.get("/samples")

    assert dark.headers["location"] == here
    assert 'data-theme="dark"' in shown.text
    assert russian.headers["location"] == "/dashboard"
    assert '<html lang="ru" data-theme="dark">' in translated.text
    assert "Обзор" in translated.text
    assert "четверг, 15 января 2026, 12:00:00, UTC" in translated.text
    assert forged.status_code == 403
    assert auto.status_code == 303
    assert "data-theme" not in again.text


async def test_the_navigation_says_where_one_is_and_offers_what_one_may_open(place: Place) -> None:
    operator = await stranger(place.service, place.project_id, is_operator=True)
    agent = await visitor(place.service, place.project_id, "agent")
    below = (await place.owner.get("/samples/deeper")).text
    beside = (await place.owner.get("/sampling")).text
    log = (await place.owner.get("/dashboard/account/log")).text
    projects = (await place.owner.get("/dashboard/account/projects")).text
    overview = (await place.owner.get("")).text
    runs = (await operator.get("/dashboard/operator/runs")).text
    agents = (await agent.get("")).text
    for who in (operator, agent):
        await who.client.aclose()

    assert re.search(r'href="\S+/samples" aria-current="true"', below)
    assert re.search(r'href="\S+/samples" aria-current="true"', beside)
    assert 'href="/dashboard/account" aria-current="true"' in log
    assert 'href="/dashboard/account/projects" aria-current="page"' in projects
    assert 'href="/dashboard/account" aria-current' not in projects
    assert f'href="{place.root}" aria-current="page"' in overview
    assert "&lt;card&gt;" in overview
    assert "/operator/runs" not in overview
    assert 'href="/dashboard/operator/runs" aria-current="page"' in runs
    assert "/samples" not in agents
    assert "card" not in re.sub(r'class="cards?[^"]*"', "", agents)


async def test_who_is_a_member_is_known_to_the_page(place: Place) -> None:
    admin = await visitor(place.service, place.project_id, "admin")
    member, owner = await admin.get("/samples/deeper"), await place.owner.get("/samples/deeper")
    await admin.client.aclose()

    assert "<p>Admin</p>" in member.text
    assert "<p>nobody</p>" in owner.text


async def test_a_browser_keeps_files_whose_address_changes_with_them(place: Place) -> None:
    html = (await place.owner.get("/samples")).text
    addresses = re.findall(r'(?:href|src)="(\S+_static\S+)"', html)
    found = [await place.owner.client.get(address) for address in addresses]
    old = await place.owner.client.get(re.sub("_static/[0-9a-f]+", "_static/0", addresses[0]))

    assert len(found) >= 4
    assert {one.status_code for one in found} == {200}
    assert all("immutable" in one.headers["cache-control"] for one in found)
    assert old.status_code == 404


async def test_a_download_has_its_name_and_a_head_has_no_body(place: Place) -> None:
    got = await place.owner.get("/samples/file")
    head = await place.owner.client.head(f"{place.root}/samples")

    assert got.text == "a,b\n"
    assert (
        "filename*=UTF-8''%D0%9E%D1%82%D1%87%D1%91%D1%82%20%221%22.csv"
        in (got.headers["content-disposition"])
    )
    assert (head.status_code, head.text) == (200, "")


async def test_a_page_below_another_application_links_below_it(place: Place) -> None:
    below = place.owner.client._transport
    assert below is not None
    below.root_path = "/messages"  # type: ignore[attr-defined] # its transport is of this process
    shown = await place.owner.client.get(f"/messages{place.root}/samples")

    assert f'action="/messages{place.root}/samples"' in shown.text
    assert 'href="/messages/dashboard/_static/' in shown.text


async def test_areas_tell_figures_and_problems_the_worst_first(place: Place) -> None:
    agent = await visitor(place.service, place.project_id, "agent")
    overview, agents = (await place.owner.get("")).text, (await agent.get("")).text
    await agent.client.aclose()

    assert "<figure>" not in overview
    assert 'class="note bad">&lt;note&gt;' in overview
    assert [figure in overview for figure in ("1,234.5<", "50%<", "–<", "100+<")] == [True] * 4
    assert overview.index("&lt;problem&gt;") < overview.index("&lt;warning&gt;")
    assert "&lt;mend&gt;" in overview
    assert "&lt;figure&gt;" not in agents
    assert "&lt;problem&gt;" not in agents
