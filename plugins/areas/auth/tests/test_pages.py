"""The pages in the dashboard: links, a sign-in to try, the latest sign-ins."""

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from msgsvc_auth import plugin
from msgsvc_auth.service import TRIAL
from msgsvc_core.channels import ChannelUser, MessageReceived
from msgsvc_devkit import FakeClock
from msgsvc_devkit.dashboard import visitor

from .conftest import CALLBACK, Person

WITH_DASHBOARD: dict[str, Any] = {
    "extra_plugins": [("auth", plugin)],
    "plugins": ("dashboard",),
}

#: What somebody might try to have a page run.
HOSTILE = "<script>alert(1)</script>\"'{{7*7}}"


async def test_a_trial_shows_what_to_write_where_a_link_can_not_carry_it(
    make_service: Any,
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    channel = service.channels["messenger_a"]
    channel.capabilities = replace(channel.capabilities, start_links=False)
    begun = await owner.post("/sign-in/try")

    assert len(re.findall(r"Write there: <strong>start \w+</strong>", begun.text)) == 1


async def test_the_owner_tries_the_sign_in_as_a_user_would(make_service: Any) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    person = Person(service, "messenger_a", ChannelUser("u1", HOSTILE, None, "en"))

    begun = await owner.post("/sign-in/try")
    path = re.search(r'hx-get="([^"]+/sign-in/try/ses_\w+)"', begun.text)
    link = re.search(r'href="([^"]+\?start=auth_[^"]+)"', begun.text)
    assert path is not None
    assert link is not None
    waiting = await owner.client.get(path[1], headers={"HX-Request": "true", "HX-Target": "state"})
    await person.press(await person.open(unescape(link[1])), "Yes")
    confirmed = await owner.get(path[1])
    exchanged = await owner.post(path[1])
    listed = await owner.get("/sign-in")

    assert "<html" not in waiting.text
    assert "Waiting for confirmation" in waiting.text
    assert "Exchange the code" in confirmed.text
    assert "&#34;subscriber_id&#34;: &#34;sub_" in exchanged.text
    assert "Signed in" in listed.text
    for shown in (confirmed, exchanged, listed):
        assert "<script>alert" not in shown.text


async def test_the_overview_tells_how_sign_ins_went(make_service: Any, clock: FakeClock) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    person = Person(service, "messenger_a", ChannelUser("u1", "Ann", None, "en"))

    async def begin() -> str:
        begun = await owner.post("/sign-in/try")
        link = re.search(r'href="([^"]+\?start=auth_[^"]+)"', begun.text)
        assert link is not None
        return unescape(link[1])

    await begin()
    clock.advance(3600)
    link = await begin()
    clock.advance(12)
    await person.press(await person.open(link), "Yes")
    await begin()
    shown = await owner.get("")
    clock.advance(25 * 3600)
    quiet = await owner.get("")
    await owner.client.aclose()

    # One has expired, one was confirmed, one still waits.
    assert re.search(r'Sign-in success</a></h2>\s*<p class="figure">50%</p>', shown.text)
    assert re.search(r'Median sign-in time</a></h2>\s*<p class="figure">12 s</p>', shown.text)
    assert "Sign-in success" not in quiet.text


@pytest.mark.parametrize("body", [{"state": "s"}, {"state": TRIAL, "callback_url": CALLBACK}])
async def test_the_sign_ins_of_customers_are_not_for_who_tries(
    make_service: Any, body: dict[str, str]
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    _, secret = await service.projects.create_key(project.project_id, "site")
    headers = {"Authorization": f"Bearer {secret}"}
    site = {"slug": "shop", "name": "Shop", "callback_url": CALLBACK}
    await owner.client.post("/v1/auth/links", json=site, headers=headers)
    begun = await owner.client.post("/v1/auth/session", json=body, headers=headers)
    session_id = begun.json()["session_id"]

    shown = await owner.get(f"/sign-in/try/{session_id}")
    taken = await owner.post(f"/sign-in/try/{session_id}")

    assert (shown.status_code, taken.status_code) == (404, 404)


async def test_a_link_shows_what_to_write_where_it_can_not_lead_to_the_question(
    make_service: Any,
) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    channel = service.channels["messenger_a"]
    channel.capabilities = replace(channel.capabilities, start_links=False)
    slug = "a-shop-whose-name-is-rather-long"
    typed = {"name": "Shop", "slug": slug, "callback_url": "https://shop.example/back"}
    await owner.post("/sign-in/links/new", typed)
    shown = await owner.get(f"/sign-in/links/{slug}")
    written = re.findall(r"Write there: <strong>(.+?)</strong>", shown.text)
    person = Person(service, "messenger_a", ChannelUser("u1", "Ann", None, "en"))
    said = {"chat_id": person.chat_id, "user": person.user}
    await person.receive(MessageReceived(update_id="w1", text=written[0], **said))

    # It is no code, which would end.
    assert written == [f"start auth_{slug}"]
    assert [button.text for [button, *_] in person.shown.message.buttons][:1] == ["Yes"]


@pytest.mark.both_databases
async def test_a_link_is_made_changed_and_deleted(make_service: Any) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    typed = {"name": HOSTILE, "slug": "shop", "callback_url": "https://shop.example/back"}

    refused = await owner.post("/sign-in/links/new", {**typed, "callback_url": "ftp://x"})
    made = await owner.post("/sign-in/links/new", typed)
    shown = await owner.get("/sign-in/links/shop")
    changed = await owner.post(
        "/sign-in/links/shop", {**typed, "number_matching": "1", "name": "Shop"}
    )
    listed = await owner.get("/sign-in")
    deleted = await owner.post("/sign-in/links/shop/delete")

    assert refused.status_code == 400
    assert 'value="shop"' in refused.text
    assert made.headers["location"].endswith("/sign-in/links/shop")
    assert "/login/shop" in shown.text
    assert "<script>alert" not in shown.text
    assert changed.status_code == 303
    assert "https://shop.example/back" in listed.text
    assert deleted.status_code == 303
    assert (await owner.get("/sign-in/links/shop")).status_code == 404


async def test_a_viewer_looks_on_and_another_projects_link_is_not_there(make_service: Any) -> None:
    service = await make_service(**WITH_DASHBOARD)
    project, other = [await service.projects.create(name) for name in ("Shop", "Other")]
    owner = await visitor(service, project.project_id)
    viewer = await visitor(service, project.project_id, "viewer")
    stranger = await visitor(service, other.project_id)
    await owner.post(
        "/sign-in/links/new",
        {"name": "Shop", "slug": "shop", "callback_url": "https://shop.example/back"},
    )

    looked = await viewer.get("/sign-in/links/shop")
    refused = await viewer.post("/sign-in/try")
    hidden = await stranger.get("/sign-in/links/shop")

    assert looked.status_code == 200
    assert "Delete the link" not in looked.text
    assert refused.status_code == 403
    assert hidden.status_code == 404
