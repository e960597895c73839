"""What somebody inside a project might try: to become its owner, to keep a key too many, to go on."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest

from msgsvc_billing import plugin as billing
from msgsvc_core.members.models import AddMemberBody
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin
from msgsvc_dashboard.accounts import Accounts, Team
from msgsvc_dashboard.frame.browser import CSRF_FIELD, csrf_token
from msgsvc_devkit.dashboard import Visitor, visitor
from msgsvc_devkit.fixtures import ServiceFactory


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("dashboard", plugin)])


async def key_of(admin: Visitor) -> dict[str, str]:
    """The header of an API key that an admin makes, for everything."""
    made = await admin.post("/keys", {"name": "mine", "which": "all"})
    secret = re.search(r'class="secret"[^>]*>([^<]+)<', made.text)
    assert secret is not None, made.text
    return {"Authorization": f"Bearer {secret[1]}"}


async def test_an_admin_makes_no_owner_by_an_api_key_and_ends_none(service: Service) -> None:
    project = await service.projects.create("Shop")
    admin = await visitor(service, project.project_id, "admin")
    async with service.db.transaction() as tx:
        mine = await service.members.find_by_account(tx, project.project_id, admin.account_id)
        boss = await service.get(Accounts).create(tx, email="boss@x.example", name="Boss")
        owner, _token = await service.get(Team).invite(
            tx,
            project.project_id,
            AddMemberBody(name="Boss", email=boss.email, role="owner"),
            by="owner",
        )
        friend, _token = await service.get(Team).invite(
            tx,
            project.project_id,
            AddMemberBody(name="Eve", email="eve@x.example", role="agent"),
            by="admin",
        )
    assert mine is not None
    headers, client = await key_of(admin), admin.client
    path = "/v1/members"
    raised = await client.patch(f"{path}/{mine.member_id}", json={"role": "owner"}, headers=headers)
    by_friend = await client.patch(
        f"{path}/{friend.member_id}", json={"role": "owner"}, headers=headers
    )
    lowered = await client.patch(
        f"{path}/{owner.member_id}", json={"role": "agent"}, headers=headers
    )
    ended = await client.delete(f"{path}/{owner.member_id}", headers=headers)
    changed = await client.patch(
        f"{path}/{friend.member_id}", json={"role": "viewer"}, headers=headers
    )
    async with service.db.read() as tx:
        role = await service.members.role_of(tx, admin.account_id, project.project_id)
    await client.aclose()

    for refused in (raised, by_friend, lowered, ended):
        assert refused.status_code == 409
        assert "in the dashboard" in refused.text
    assert changed.status_code == 200
    assert role == "admin"


async def test_an_admin_becomes_no_owner_by_an_api_keys_name_email_or_link(
    service: Service,
) -> None:
    project = await service.projects.create("Shop")
    admin = await visitor(service, project.project_id, "admin")
    async with service.db.transaction() as tx:
        account = await service.get(Accounts).create(tx, email="boss@x.example", name="Boss")
        body = AddMemberBody(name="Boss", email=account.email, role="owner")
        boss, token = await service.get(Team).invite(tx, project.project_id, body, by="owner")
        await service.get(Team).join(tx, token, account)
    headers, client, path = await key_of(admin), admin.client, f"/v1/members/{boss.member_id}"
    renamed = await client.patch(path, json={"name": "Eve"}, headers=headers)
    led_away = await client.patch(path, json={"email": "eve@x.example"}, headers=headers)
    linked = await client.post(f"{path}/link", json={}, headers=headers)
    async with service.db.read() as tx:
        after = await service.members.get(tx, project.project_id, boss.member_id)
    await client.aclose()

    assert [each.status_code for each in (renamed, led_away, linked)] == [409] * 3
    assert (after.name, after.email) == (boss.name, boss.email)


async def test_an_admin_sees_no_billing_by_an_api_key(make_service: ServiceFactory) -> None:
    service = await make_service(extra_plugins=[("dashboard", plugin), ("billing", billing)])
    project = await service.projects.create("Shop")
    admin = await visitor(service, project.project_id, "admin")
    owner = await visitor(service, project.project_id)
    all_of_admin, all_of_owner = await key_of(admin), await key_of(owner)
    asked = await admin.post("/keys", {"name": "b", "which": "some", "areas": "billing"})
    offered = [(await who.get("/keys/new")).text for who in (admin, owner)]
    listed = (await owner.get("/keys")).text
    paths = ("/v1/billing", "/v1/billing/ledger", "/v1/billing/usage", "/v1/project")
    by_admin = [(await admin.client.get(path, headers=all_of_admin)).status_code for path in paths]
    by_owner = [(await owner.client.get(path, headers=all_of_owner)).status_code for path in paths]
    await admin.client.aclose()
    await owner.client.aclose()

    assert by_admin == [403, 403, 403, 200]
    assert by_owner == [200] * 4
    assert asked.status_code == 400
    assert ['value="billing"' in text for text in offered] == [False, True]
    assert "everything admins may do" in listed


async def test_a_key_for_some_areas_of_which_none_is_chosen_is_not_made(service: Service) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    refused = await owner.post("/keys", {"name": "shop", "which": "some"})
    unknown = await owner.post("/keys", {"name": "shop", "which": "some", "areas": "nowhere"})
    async with service.db.read() as tx:
        kept = await service.projects.keys_of(tx, project.project_id)
    await owner.client.aclose()

    assert (refused.status_code, unknown.status_code) == (400, 400)
    assert "at least one scope" in refused.text
    assert kept == []


async def test_who_is_removed_or_signed_out_while_they_send_a_form_changes_nothing(
    service: Service,
) -> None:
    project = await service.projects.create("Shop")
    admin = await visitor(service, project.project_id, "admin")
    owner = await visitor(service, project.project_id)

    async def post(who: Visitor, *, removed: bool) -> Any:
        token = csrf_token(service.secrets, who.session_id)
        form = urlencode({"name": "Mine now", CSRF_FIELD: token}).encode()

        async def slowly() -> AsyncIterator[bytes]:
            yield form[:9]
            async with service.db.transaction() as tx:
                if removed:
                    mine = await service.members.find_by_account(tx, who.project_id, who.account_id)
                    assert mine is not None
                    await service.get(Team).remove(tx, who.project_id, mine.member_id, by="owner")
                else:
                    await service.get(Accounts).end_others(tx, who.account_id, "")
            yield form[9:]

        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return await who.client.post(who.url("/settings"), content=slowly(), headers=kind)

    removed, ended = await post(admin, removed=True), await post(owner, removed=False)
    await owner.sign_in()
    shown = await owner.get("/settings")
    await admin.client.aclose()
    await owner.client.aclose()

    assert removed.status_code == 404
    assert ended.headers["location"].startswith("/dashboard/sign-in")
    assert "Mine now" not in shown.text


@pytest.mark.both_databases
async def test_an_admin_takes_no_owners_email_and_speaks_for_none_in_messengers(
    service: Service,
) -> None:
    project = await service.projects.create("Shop")
    admin = await visitor(service, project.project_id, "admin")
    async with service.db.transaction() as tx:
        boss, _token = await service.get(Team).invite(
            tx,
            project.project_id,
            AddMemberBody(name="Boss", email="boss@x.example", role="owner"),
            by="owner",
        )
    path = f"/members/{boss.member_id}"
    typed = {"name": "Boss", "email": "eve@x.example", "role": "owner"}
    changed = await admin.post(path, typed)
    linked = await admin.post(f"{path}/messenger")
    async with service.db.read() as tx:
        kept = await service.members.get(tx, project.project_id, boss.member_id)
    await admin.client.aclose()

    assert (changed.status_code, linked.status_code) == (403, 403)
    assert "?start=" not in linked.text
    assert kept.email == "boss@x.example"


async def test_an_address_that_no_database_takes_is_no_page(service: Service) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    statuses = [
        (await owner.client.get(owner.url(path))).status_code
        for path in (
            "/subscribers/%00",
            "/messages/%ED%A0%80",
            "/messages/new?to=%00",
            "/tags?a%00=",
        )
    ]
    await owner.client.aclose()

    assert statuses == [404, 404, 400, 400]
