"""The pages of routes, as a browser without scripts uses them."""

import html
import re
from typing import Any

import pytest

from msgsvc_core.routing import Routes
from msgsvc_core.routing.models import CreateRouteBody, Route, UpdateRouteBody
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard_plugin
from msgsvc_dashboard.people.route_form import RouteForm
from msgsvc_devkit.dashboard import Visitor, visitor

HOURS = {"from": "18:00", "to": "24:00", "timezone": "Europe/Berlin"}
BODY: dict[str, Any] = {
    "name": "Urgent",
    "steps": [
        {"channel": "messenger_a", "until": "answered", "within_seconds": 60},
        {"channel": "messenger_b", "hours": HOURS, "on_unknown": "continue"},
    ],
}
#: What a browser sends of a form with two steps.
WRITTEN = {
    "name": "Urgent",
    "version": "",
    "steps": "2",
    "s0_channel": "messenger_a",
    "s0_until": "sent",
    "s0_within_seconds": "60",
    "s0_timezone": "UTC",
    "s1_channel": "messenger_b",
    "s1_until": "sent",
    "s1_within_seconds": "",
    "s1_from": "08:00",
    "s1_to": "22:00",
    "s1_timezone": "Europe/Berlin",
}


@pytest.fixture
async def service(make_service: Any) -> Service:
    made: Service = await make_service(extra_plugins=[("dashboard", dashboard_plugin)])
    return made


@pytest.fixture
async def owner(service: Service) -> Visitor:
    project = await service.projects.create("Shop")
    return await visitor(service, project.project_id)


async def routes_of(service: Service, owner: Visitor) -> list[Route]:
    async with service.db.read() as tx:
        return await service.get(Routes).list_all(tx, owner.project_id)


async def kept(service: Service, owner: Visitor) -> Route:
    async with service.db.transaction() as tx:
        body = CreateRouteBody.model_validate(BODY)
        return await service.get(Routes).create(tx, owner.project_id, body)


def chosen(page: str, name: str) -> str:
    """What a select of the page has."""
    part = page.split(f'name="{name}"')[1].split("</select>", maxsplit=1)[0]
    found = re.search(r'value="([^"]*)" selected', part)
    return "" if found is None else found[1]


def value(page: str, name: str) -> str:
    found = re.search(rf'name="{name}"[^>]* value="([^"]*)"', page)
    return "" if found is None else html.unescape(found[1])


async def test_a_route_is_made_with_rows_that_are_not_used_left_out(
    service: Service, owner: Visitor
) -> None:
    empty = {"s2_channel": "", "s2_until": "sent", "s2_within_seconds": "", "s2_timezone": "UTC"}

    answer = await owner.post("/routes/new", {**WRITTEN, **empty, "steps": "3"})

    [route] = await routes_of(service, owner)
    assert answer.status_code == 303
    assert answer.headers["location"].partition("?")[0].endswith(f"/routes/{route.route_id}")
    assert [(each.channel, each.within_seconds) for each in route.steps] == [
        ("messenger_a", 60),
        ("messenger_b", None),
    ]
    assert route.steps[0].hours is None
    assert route.steps[1].hours is not None
    assert route.steps[1].hours.timezone == "Europe/Berlin"
    listed = (await owner.get("/routes")).text
    assert "Urgent" in listed
    assert "Messenger A" in listed


async def test_a_form_that_is_saved_as_it_was_opened_changes_nothing(
    service: Service, owner: Visitor
) -> None:
    before = await kept(service, owner)
    page = (await owner.get(f"/routes/{before.route_id}")).text
    names = [f"s{number}_{name}" for number in (0, 1) for name in ("within_seconds", "from", "to")]
    zones = ["s0_timezone", "s1_timezone"]
    selects = [f"s{number}_{name}" for number in (0, 1) for name in ("channel", "until")]
    given = {name: value(page, name) for name in [*names, *zones, "version", "steps", "name"]}
    given |= {name: chosen(page, name) for name in selects}

    await owner.post(f"/routes/{before.route_id}", {**given, "s1_on_unknown": "continue"})

    [after] = await routes_of(service, owner)
    first, second = after.steps
    assert first == before.steps[0]
    assert second.hours is not None
    # Until midnight, which a time field calls 00:00.
    assert (second.hours.from_, second.hours.to) == ("18:00", "24:00")
    assert second.on_unknown == "continue"


@pytest.mark.parametrize(
    ("action", "channels"),
    [
        ("add", ["messenger_a", "messenger_b", ""]),
        ("down-0", ["messenger_b", "messenger_a"]),
        ("up-1", ["messenger_b", "messenger_a"]),
        ("remove-0", ["messenger_b"]),
        ("up-0", ["messenger_a", "messenger_b"]),
        ("remove-7", ["messenger_a", "messenger_b"]),
    ],
)
async def test_buttons_change_the_rows_and_store_nothing(
    service: Service, owner: Visitor, action: str, channels: list[str]
) -> None:
    page = (await owner.post("/routes/steps", {**WRITTEN, "do": action})).text

    rows = [chosen(page, f"s{number}_channel") for number in range(len(channels))]
    assert rows == channels
    assert f'name="steps" value="{len(channels)}"' in page
    assert await routes_of(service, owner) == []


def test_a_route_has_no_more_rows_than_steps() -> None:
    form = RouteForm()
    for _ in range(9):
        form.step("add", 5)

    assert len(form.rows) == 5


async def test_what_is_refused_is_shown_with_what_was_written(
    service: Service, owner: Visitor
) -> None:
    wrong = {**WRITTEN, "s0_within_seconds": "soon", "s1_channel": "messenger_a"}

    page = html.unescape((await owner.post("/routes/new", wrong)).text)

    assert "Step 1, Wait before the next step, seconds: " in page
    assert value(page, "s0_within_seconds") == "soon"
    assert await routes_of(service, owner) == []


@pytest.mark.database_file
async def test_what_another_has_changed_meanwhile_is_not_overwritten_unseen(
    service: Service, owner: Visitor
) -> None:
    route = await kept(service, owner)
    async with service.db.transaction() as tx:
        body = UpdateRouteBody(name="Theirs")
        await service.get(Routes).update(tx, owner.project_id, route.route_id, body)

    refused = await owner.post(f"/routes/{route.route_id}", {**WRITTEN, "version": "1"})
    version = value(refused.text, "version")
    saved = await owner.post(f"/routes/{route.route_id}", {**WRITTEN, "version": version})

    assert "Someone else has changed the route" in html.unescape(refused.text)
    assert version == "2"
    assert saved.status_code == 303
    assert [each.name for each in await routes_of(service, owner)] == ["Urgent"]


async def test_a_route_is_deleted(service: Service, owner: Visitor) -> None:
    route = await kept(service, owner)

    answer = await owner.post(f"/routes/{route.route_id}/delete")

    assert answer.status_code == 303
    assert await routes_of(service, owner) == []


async def test_who_may_only_look_gets_no_form(service: Service, owner: Visitor) -> None:
    route = await kept(service, owner)
    reader = await visitor(service, owner.project_id, "viewer")

    page = (await reader.get(f"/routes/{route.route_id}")).text

    assert "Messenger B" in page
    assert "18:00" in page
    assert 'name="s0_channel"' not in page
    assert (await reader.get("/routes/new")).status_code == 403
