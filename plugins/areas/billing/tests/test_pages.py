"""The pages of credits: the owner's and the operator's."""

import pytest

from msgsvc_billing import plugin
from msgsvc_core.channels import ChannelUser
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_dashboard.accounts import Accounts
from msgsvc_devkit import FakeClock
from msgsvc_devkit.dashboard import Visitor, stranger, visitor
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.billing.tests.conftest import DAY, Payer

HOSTILE = '"><img src=x onerror=alert(1)>{{7*7}}'


@pytest.fixture
async def service(make_service: ServiceFactory) -> Service:
    return await make_service(extra_plugins=[("billing", plugin), ("dashboard", dashboard)])


@pytest.fixture
async def owner(service: Service) -> Visitor:
    project = await service.projects.create("Shop")
    return await visitor(service, project.project_id, "owner")


@pytest.fixture
def payer(service: Service, owner: Visitor) -> Payer:
    return Payer(service, owner.account_id, owner.project_id)


@pytest.mark.both_databases
async def test_an_owner_sees_what_is_left_and_what_is_about_to_end(
    owner: Visitor, payer: Payer, clock: FakeClock
) -> None:
    await payer.charge("ses_1", quantity=40)
    fine = (await owner.get("/billing")).text
    await payer.spend_all()
    in_grace = (await owner.get("/billing")).text
    clock.advance(3 * DAY)
    blocked = (await owner.get("/billing")).text

    assert "60 of 100" in fine
    assert '<rect class="bar"' in fine
    assert "You are out of credits" not in fine
    assert "Everything keeps working until 18 Jan 2026, 12:00" in in_grace
    assert "Paid operations are blocked" in blocked


@pytest.mark.both_databases
async def test_an_owner_goes_through_the_ledger_and_saves_it_where_the_plan_has_it(
    service: Service, owner: Visitor, payer: Payer, clock: FakeClock
) -> None:
    assert "No charges yet" in (await owner.get("/billing/ledger")).text
    for number in range(51):
        await payer.charge(f"ses_first_{number}")
    clock.advance(DAY)
    await payer.charge("ses_late")
    first = (await owner.get("/billing/ledger")).text
    older = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    second = (await owner.client.get(older)).text

    assert "ses_late" in first
    assert "ses_first_0<" not in first
    assert "ses_first_0<" in second
    assert "Monthly credits" in second
    since = (await owner.get("/billing/ledger", since="2026-01-16")).text
    assert "ses_late" in since
    assert "ses_first_50" not in since
    async with service.db.transaction() as tx:
        await service.get(Accounts).change(tx, owner.account_id, timezone="Pacific/Auckland")
    # Where the evening before is the day already.
    there = (await owner.get("/billing/ledger", since="2026-01-16")).text
    assert "ses_first_50" in there
    none = (await owner.get("/billing/ledger", operation="otp.send")).text
    assert "No matches" in none
    wrong = await owner.get("/billing/ledger", since=HOSTILE)
    assert "enter a date" in wrong.text
    assert "<img" not in wrong.text
    assert (await owner.get("/billing/ledger/export")).status_code == 303
    await payer.change_plan("basic")
    saved = await owner.get("/billing/ledger/export", operation="auth.confirmed")
    assert saved.status_code == 200
    assert len(saved.text.splitlines()) == 53


@pytest.mark.both_databases
async def test_who_is_blocked_writes_to_nobody_by_the_dashboard_either(
    service: Service, owner: Visitor, payer: Payer, clock: FakeClock
) -> None:
    async with service.db.transaction() as tx:
        ann = await service.subscribers.ensure(
            tx, owner.project_id, "messenger_a", ChannelUser("7", "Ann"), "chat-7", source="api"
        )
    message = {"to": ann.subscriber_id, "text": "Hello", "format": "plain"}
    await payer.spend_all()
    clock.advance(3 * DAY + 1)

    refused = await owner.post("/messages/new", message)
    await payer.grant(10)
    taken = await owner.post("/messages/new", message)

    assert (refused.status_code, taken.status_code) == (402, 303)


async def test_pages_of_credits_are_the_owners_alone(
    service: Service, owner: Visitor, payer: Payer
) -> None:
    await payer.change_plan("basic")
    admin = await visitor(service, owner.project_id, "admin")

    for path in ("/billing", "/billing/ledger", "/billing/ledger/export"):
        assert (await admin.get(path)).status_code == 403
    for path in ("", f"/{owner.account_id}"):
        assert (await owner.get(f"/dashboard/operator/billing{path}")).status_code in {403, 404}
    grant = f"/dashboard/operator/billing/{owner.account_id}/grant"
    assert (await owner.post(grant, {"credits": "5"})).status_code in {403, 404}
    assert (await payer.state()).packs == 0


async def test_a_project_of_the_operator_says_that_nobody_pays(
    service: Service, owner: Visitor, payer: Payer
) -> None:
    await payer.change_plan("basic")
    member = await visitor(service, owner.project_id, "viewer")
    async with service.db.transaction() as tx:
        await tx.execute(
            "UPDATE core_members SET role = 'owner' WHERE project_id = :project_id",
            {"project_id": owner.project_id},
        )
        await service.get(Accounts).give_project(tx, owner.project_id, None)

    assert "This project is not billed" in (await member.get("/billing")).text
    assert "No charges yet" in (await member.get("/billing/ledger")).text


@pytest.mark.both_databases
async def test_the_operator_finds_an_account_gives_it_credits_and_changes_its_plan(
    service: Service, owner: Visitor, payer: Payer, clock: FakeClock
) -> None:
    operator = await stranger(service, owner.project_id, is_operator=True)
    await payer.spend_all()
    clock.advance(4 * DAY)
    listed = (await operator.get("/dashboard/operator/billing", email="Owner")).text
    assert f"/operator/billing/{owner.account_id}" in listed
    assert "Blocked" in listed
    here = f"/dashboard/operator/billing/{owner.account_id}"
    refused = await operator.post(f"{here}/grant", {"credits": "many", "note": HOSTILE})
    assert refused.status_code == 400
    assert "must be a whole number" in refused.text
    assert "&gt;&lt;img src=x" in refused.text
    assert "<img" not in refused.text
    given = await operator.post(f"{here}/grant", {"credits": "500", "note": HOSTILE})

    assert given.status_code == 303
    shown = (await operator.get(here)).text
    assert "500" in shown
    assert "<img" not in shown
    assert await payer.standing() == "ok"
    changed = await operator.post(f"{here}/plan", {"plan": "basic"})
    assert changed.status_code == 303
    assert (await payer.state()).plan == "basic"
    again = await operator.post(f"{here}/plan", {"plan": "basic"})
    assert again.status_code == 409
    unknown = await operator.post(f"{here}/plan", {"plan": "gold"})
    assert unknown.status_code == 400
    missing = await operator.get("/dashboard/operator/billing/acc_0000000000000000000000")
    assert missing.status_code == 404
    assert await payer.is_even()
