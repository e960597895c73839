"""A project's people by their pages: invited, changed, removed, and what admins and agents may not."""

import re
from html import unescape
from typing import Any

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_devkit.dashboard import stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.browsers import PASSWORD, browsing, new_account

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>{{7*7}}'


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", plugin)])


def link_in(page: str) -> str:
    """The path of the one-time link that a page shows."""
    match = re.search(r'value="http://[^/]+(/dashboard/link/\w+)"', page)
    assert match, page
    return unescape(match[1])


@pytest.mark.both_databases
async def test_somebody_is_invited_joins_changes_their_role_and_is_removed(
    service: Service,
) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    typed = {"name": HOSTILE, "email": "bob@x.example", "role": "agent"}
    refused = await owner.post("/members", {**typed, "email": "no address"})
    invited = await owner.post("/members", typed)
    listed = await owner.get("/members")
    member = re.search(r"/members/(mem_\w+)", listed.text)
    assert member is not None
    at = f"/members/{member[1]}"
    again = await owner.post(f"{at}/invitation")
    async with browsing(service) as bob, browsing(service) as old:
        ended = await old.open(link_in(invited.text))
        welcome = await bob.open(link_in(again.text))
        await bob.submit(name="Bob", password=PASSWORD, timezone="Asia/Tomsk")
        led_to = bob.to
        await bob.open("/dashboard")
        home = bob.to
        inside = await bob.open(home)
        hidden = await bob.open(f"{home}/members")
        promoted = await owner.post(at, {"name": "Bob B.", "email": "b@x.example", "role": "admin"})
        opened = await bob.open(f"{home}/members")
        await owner.post(f"{at}/remove")
        gone = await bob.open(home)
    async with service.db.transaction() as tx:
        await service.audit.write_command(tx, "key.create", owner.project_id, "key_1")
    log = await owner.get("/audit")
    mine = await owner.get("/audit", account_id=owner.account_id)
    of_none = await owner.get("/audit", account_id="none", about="developers")
    of_team = await owner.get("/audit", about="team", sort="created")
    of_messages = await owner.get("/audit", about="messages")
    wrong = await owner.get("/audit", created_after="yesterday")
    await owner.client.aclose()

    assert "Command line" in log.text
    assert '<td data-label="Who" dir="auto">Command line' not in mine.text
    assert re.findall(r"<small class=\"muted\"><code>([\w.]+)", of_none.text) == ["key.create"]
    done = re.findall(r"<small class=\"muted\"><code>([\w.]+)", of_team.text)
    assert (done[0], done[-1]) == ("team.invite", "team.remove")
    assert f'<a href="{owner.url(at)}"><code>{member[1]}</code></a>' in of_team.text
    assert "No matching changes" in of_messages.text
    assert "must be a day" in wrong.text
    assert refused.status_code == 400
    for page in (refused, listed, invited):
        assert "<script>alert" not in page.text
        assert "<img" not in page.text
        assert "{{7*7}}" in page.text
    assert 'value="no address"' in refused.text
    assert ended.status_code == 404
    assert "Join Shop" in welcome.text
    assert led_to == "/dashboard"
    assert (inside.status_code, hidden.status_code) == (200, 403)
    assert (promoted.status_code, opened.status_code) == (303, 200)
    assert "Bob B." in opened.text
    assert gone.status_code == 404
    assert "team.joined" in log.text
    for action in ("team.invite", "team.invite_again", "team.change", "team.remove"):
        assert f"<code>{action}</code>" in mine.text
    assert "team.joined" not in mine.text


async def test_an_invitation_opens_no_account_that_is_there(service: Service) -> None:
    ann = await new_account(service)
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    invited = await owner.post("/members", {"name": "Ann", "email": ann.email, "role": "admin"})
    link = link_in(invited.text)
    async with browsing(service) as eve, browsing(service) as browser:
        page = await eve.open(link)
        await eve.open("/dashboard/sign-in")
        await eve.submit(link, password="another one, quite long", name="Eve")
        led_to = eve.to
        await browser.sign_in(ann.email, to=link)
        await browser.open(browser.to)
        asked = browser.shown.text
        await browser.submit()
        joined = browser.to
        inside = await browser.open(joined)
    await owner.client.aclose()

    assert "Sign in to join." in page.text
    assert "password" not in page.text.partition("<footer>")[0]
    assert led_to.startswith("/dashboard/sign-in?next=")
    assert "You are signed in as Ann Lee" in asked
    assert joined == f"/dashboard/projects/{project.project_id}"
    assert inside.status_code == 200


async def test_whoever_made_an_account_of_anothers_email_has_no_use_of_it(
    service: Service,
) -> None:
    trap, shop = [await service.projects.create(name) for name in ("Trap", "Shop")]
    eve, ann = [await visitor(service, each.project_id) for each in (trap, shop)]
    operator = await stranger(service, trap.project_id, is_operator=True)
    bob = {"name": "Bob", "email": "bob@x.example", "role": "admin"}
    trapped = link_in((await eve.post("/members", bob)).text)
    invited = link_in((await ann.post("/members", bob)).text)
    async with browsing(service) as squatter, browsing(service) as real:
        await squatter.open(trapped)
        await squatter.submit(name="Bob", password="another one, quite long")
        elsewhere = await squatter.open(f"/dashboard/projects/{shop.project_id}")
        account = re.search(
            r'/accounts/(acc_\w+)/link"', (await operator.get("/dashboard/operator/accounts")).text
        )
        assert account is not None
        reset = await operator.post(
            f"/dashboard/operator/accounts/{account[1]}/link", {"purpose": "password"}
        )
        await squatter.open("/dashboard/account")
        out = squatter.to
        await real.open(link_in(reset.text))
        await real.submit(password=PASSWORD)
        again = await squatter.sign_in("bob@x.example", "another one, quite long")
        await real.open(invited)
        await real.submit()
        joined = real.to
    for each in (eve, ann, operator):
        await each.client.aclose()

    assert elsewhere.status_code == 404
    assert out.startswith("/dashboard/sign-in")
    assert again.status_code == 403
    assert joined == f"/dashboard/projects/{shop.project_id}"


async def test_admins_neither_make_nor_change_owners_and_a_messenger_is_linked(
    service: Service, make_tenant: Any
) -> None:
    tenant = await make_tenant(service)
    admin = await visitor(service, tenant.project.project_id, "admin")
    made = await tenant.client.post(
        "/v1/members", json={"name": "Olga", "email": "olga@x.example", "role": "owner"}
    )
    at = f"/members/{made.json()['member_id']}"
    refused = [
        await admin.post("/members", {"name": "E", "email": "e@x.example", "role": "owner"}),
        await admin.post(at, {"name": "O", "email": "olga@x.example", "role": "viewer"}),
        await admin.post(f"{at}/remove"),
        await admin.post(f"{at}/invitation"),
    ]
    page = await admin.get(at)
    agent = await tenant.client.post("/v1/members", json={"name": "Al", "email": "al@x.example"})
    links = await admin.post(f"/members/{agent.json()['member_id']}/messenger")
    await admin.client.aclose()

    assert [each.status_code for each in refused] == [403] * 4
    assert "only owners" in refused[0].text
    assert "Only owners can change an owner." in page.text
    assert "?start=mem_" in links.text
