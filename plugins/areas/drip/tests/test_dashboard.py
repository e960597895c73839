"""The pages of chains: made, built step by step, followed, held and removed."""

from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_drip import count_store
from msgsvc_drip.service import Drips

from .conftest import HOUR, WITH_DRIP, Shop

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'
FIRST = {"name": HOSTILE, "trigger_on": "manual", "delay": "1", "unit": "hours", "text": HOSTILE}


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    dashboard = pytest.importorskip("msgsvc_dashboard.plugin", reason="shows the pages")
    plugins = [*WITH_DRIP["extra_plugins"], ("dashboard", dashboard)]
    return await make_service(**{**WITH_DRIP, "extra_plugins": plugins})


@pytest.mark.both_databases
async def test_a_chain_is_built_step_by_step(shop: Shop) -> None:
    admin = await visitor(shop.service, shop.project_id, "admin")

    empty = await admin.get("/drips")
    refused = await admin.post("/drips", {**FIRST, "delay": "soon"})
    made = await admin.post("/drips", FIRST)
    here = made.headers["location"]
    drip_id = here.rpartition("/")[2]
    second = {"delay": "2", "unit": "days", "text": "Two", "at_local_time": "10:00"}
    await admin.post(f"{here}/steps/new", {**second, "place": "1", "version": "1"})
    await admin.post(f"{here}/steps/new", {**FIRST, "text": "Three", "place": "2", "version": "2"})
    stale = await admin.post(f"{here}/steps/3/move", {"to": "earlier", "version": "2"})
    moved = await admin.post(
        f"{here}/steps/3/move",
        {"to": "earlier", "version": "3"},
        headers={"HX-Request": "true", "HX-Target": "chain"},
    )
    await admin.post(f"{here}/steps/1/remove", {"version": "4"})
    form = await admin.get(f"{here}/steps/2")
    only = {"version": "5", "when_tags_any": "vip, gold", "when_attribute": "age"}
    await admin.post(f"{here}/steps/2", {**second, **only, "text": "Last", "when_equals": "30"})
    await admin.post(f"{here}/edit", {"name": "Hello", "trigger_on": "tag", "trigger_value": "new"})
    kept = await shop.call(f"/drips/{drip_id}", "GET")
    shown = await admin.get(here)

    assert "Create the first campaign" in empty.text
    assert refused.status_code == 400
    assert "delay" in refused.text
    assert 'list="zones-timezone"' in refused.text
    assert '<option value="Europe/Berlin">' in refused.text
    assert "<script>alert" not in refused.text
    assert refused.text.count("&lt;script&gt;alert(1)") == 2
    assert stale.status_code == 409
    assert "changed meanwhile" in stale.text
    assert "<html" not in moved.text
    assert moved.text.index("Three") < moved.text.index("Two")
    assert 'value="10:00"' in form.text
    assert [step["message"]["text"] for step in kept["steps"]] == ["Three", "Last"]
    assert kept["steps"][1]["when"] == {
        "tags_any": ["vip", "gold"],
        "attribute": {"name": "age", "equals": 30},
    }
    assert (kept["name"], kept["trigger"]) == ("Hello", {"on": "tag", "value": "new"})
    assert 'Tag <span class="chip"><bdi>new</bdi></span> added' in shown.text


async def test_a_step_is_previewed_while_it_is_written_and_nothing_is_changed(shop: Shop) -> None:
    admin = await visitor(shop.service, shop.project_id, "admin")
    viewer = await visitor(shop.service, shop.project_id, "viewer")
    here = (await admin.post("/drips", FIRST)).headers["location"]
    step = {"delay": "2", "unit": "days", "place": "1", "version": "1"}
    typed = {**step, "text": "Hi **{{ first_name }}**", "format": "markdown"}

    async def fragment(path: str, **fields: str) -> str:
        by_htmx = {"HX-Request": "true", "HX-Target": "preview"}
        answer = await admin.post(f"{path}/preview", {**typed, **fields}, headers=by_htmx)
        assert answer.status_code == 200
        assert "<html" not in answer.text
        return answer.text

    paths = ("/drips", f"{here}/steps/new", f"{here}/steps/1")
    live = [await fragment(path) for path in paths]
    one = await fragment(paths[1], when_channel="messenger_b")
    empty = await fragment(paths[1], text="")
    wrong = [
        await fragment(paths[2], text="x" * 5000),
        await fragment(paths[2], text="Hi {{ attributes.city }}"),
        await fragment(paths[2], variables="a = 1"),
    ]
    hostile = await fragment(paths[0], text=HOSTILE)
    whole = [await admin.post(f"{path}/preview", typed) for path in paths]
    gone = await admin.post(f"{here}/steps/2/preview", typed)
    refused = await viewer.post(f"{here}/steps/1/preview", typed)
    kept = await shop.call(f"/drips/{here.rpartition('/')[2]}", "GET")

    for shown in (*live, *(page.text for page in whole)):
        assert '<span class="mark-bold">Alex</span>' in shown
        assert "messenger_a" in shown
    assert "messenger_b" in one
    assert "messenger_a" not in one
    assert "as you type" in empty
    assert [each.count('class="notice') for each in wrong] == [1, 1, 1]
    assert "<script>alert" not in hostile
    for page in whole:
        assert "Hi **{{ first_name }}**</textarea>" in page.text
        assert 'name="delay" type="number" value="2"' in page.text
    assert 'name="place" value="1"' in whole[1].text
    assert f'action="{here}/steps/1"' in whole[2].text
    assert (gone.status_code, refused.status_code) == (404, 403)
    assert [each["message"]["text"] for each in kept["steps"]] == [HOSTILE]


@pytest.mark.parametrize("written", ["soon", "²", "9" * 5000])
async def test_what_is_no_number_is_refused(shop: Shop, written: str) -> None:
    admin = await visitor(shop.service, shop.project_id, "admin")
    here = (await admin.post("/drips", FIRST)).headers["location"]
    step = {**FIRST, "place": "1", "version": "1"}
    answers = [
        await admin.post("/drips", {**FIRST, "delay": written}),
        await admin.post(f"{here}/steps/new", {**step, "place": written}),
        await admin.post(f"{here}/steps/new", {**step, "version": written}),
        await admin.get(f"{here}/steps/{written}"),
    ]

    assert [answer.status_code for answer in answers] == [400, 400, 400, 404]
    assert "delay" in answers[0].text


@pytest.mark.shared_service
@pytest.mark.parametrize("written", ["NaN", "-Infinity", "1e999", "[" * 2000])
async def test_what_is_no_number_of_json_is_compared_as_a_text(shop: Shop, written: str) -> None:
    admin = await visitor(shop.service, shop.project_id, "admin")
    here = (await admin.post("/drips", FIRST)).headers["location"]
    step = {"delay": "1", "unit": "days", "text": "Two", "place": "1", "version": "1"}
    condition = {"when_attribute": "age", "when_equals": written}
    made = await admin.post(f"{here}/steps/new", {**step, **condition})
    kept = await shop.call(f"/drips/{here.rpartition('/')[2]}", "GET")

    assert made.status_code == 303
    assert kept["steps"][1]["when"]["attribute"] == {"name": "age", "equals": written}


async def test_a_chain_shows_who_is_at_each_step_and_is_held_and_removed(shop: Shop) -> None:
    admin = await visitor(shop.service, shop.project_id, "admin")
    viewer = await visitor(shop.service, shop.project_id, "viewer")
    agent = await visitor(shop.service, shop.project_id, "agent")
    other = await shop.service.projects.create("Other")
    stranger = await visitor(shop.service, other.project_id, "admin")
    drip_id = await shop.chain("One", "Two")
    here = f"/drips/{drip_id}"
    ann, bob = await shop.person("Ann"), await shop.person(HOSTILE)

    found = await admin.get(f"{here}/people/found", person="an")
    unnamed = await admin.post(f"{here}/people", {"person": "ANN"})
    searched = {"person": "an", "person-searched": "an", "person-chosen": ann}
    await admin.post(f"{here}/people", searched)
    await shop.after(HOUR)
    led = await admin.post(f"{here}/people", {"person": bob})
    twice = await admin.post(f"{here}/people", {"person": bob})
    [_, second] = await shop.enrollments(drip_id)
    people = f"{here}/people/{second['enrollment_id']}"
    seen = await viewer.get(here)
    held = await admin.post(f"{people}/pause")
    listed = await admin.get(f"{here}/people", status="paused")
    ended = await admin.post(f"{people}/cancel")
    refusals = [
        (await viewer.post(f"{here}/pause")).status_code,
        (await agent.get(here)).status_code,
        (await stranger.get(here)).status_code,
        (await stranger.post(f"{here}/delete")).status_code,
    ]
    counts = await _counts(shop, drip_id)
    paused = await admin.post(f"{here}/pause")
    shown = await admin.get(here)
    removed = await admin.post(f"{here}/delete")

    assert unnamed.status_code == 404
    for page in (found, unnamed):
        assert f'name="person-chosen" value="{ann}"' in page.text
    assert led.status_code == held.status_code == ended.status_code == 303
    assert twice.status_code == 409
    assert "is already enrolled" in twice.text
    assert seen.text.count("1 waiting") == 2
    assert "/delete" not in seen.text
    assert "&lt;script&gt;alert(1)" in listed.text
    assert "<script>alert" not in listed.text
    assert refusals == [403, 403, 404, 404]
    assert (counts.waiting, counts.cancelled) == ([0, 1], 1)
    assert paused.status_code == removed.status_code == 303
    assert "1 person is in it" in shown.text
    assert (await shop.client.get(f"/v1/drips/{drip_id}")).status_code == 404


@pytest.mark.both_databases
async def test_people_are_counted_by_version_and_no_further_than_asked(shop: Shop) -> None:
    drip_id = await shop.chain("One", "Two")
    for name in ("Ann", "Bob", "Cy"):
        await shop.enroll(drip_id, await shop.person(name))
    await shop.call(f"/drips/{drip_id}", "PATCH", timezone="Europe/Berlin")
    await shop.enroll(drip_id, await shop.person("Dee"))

    counts = await _counts(shop, drip_id)
    async with shop.service.db.read() as tx:
        chain = await shop.service.get(Drips).get(tx, shop.project_id, drip_id)
        bounded = await count_store.count(tx, chain, 2)

    assert (counts.waiting, counts.earlier, counts.inside) == ([1, 0], 3, 4)
    assert not counts.is_bounded
    assert (bounded.earlier, bounded.is_bounded) == (2, True)


async def _counts(shop: Shop, drip_id: str) -> Any:
    drips = shop.service.get(Drips)
    async with shop.service.db.read() as tx:
        return await drips.counts(tx, await drips.get(tx, shop.project_id, drip_id))
