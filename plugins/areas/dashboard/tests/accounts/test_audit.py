"""The audit log: kept as long as the setting says, and what else ends by itself."""

import pytest

from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import AccountLinks, Accounts, Audit, MessengerSignIn, SignIn
from msgsvc_dashboard.accounts.models import AuditFilters
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.fixtures import Tenant
from msgsvc_devkit.work import until
from plugins.areas.dashboard.tests.accounts.people import browser, new_account


async def test_entries_sessions_and_links_go_when_their_time_is_over(
    service: Service, clock: FakeClock
) -> None:
    ann = await new_account(service)
    await service.get(SignIn).by_password(ann.email, "a wrong one, quite long", browser())
    async with service.db.transaction() as tx:
        await service.get(Accounts).open_session(tx, ann.account_id, ip="", user_agent="")
        await service.get(AccountLinks).for_account(tx, ann.account_id, "password")
        await service.get(MessengerSignIn).begin(tx, "sign_in", browser())
    # What is to be done every hour is, from when it was first noted; and one that is at work as the clock
    # is moved takes the time from before.
    await until(lambda: is_noted(service))
    await settled(service)
    clock.advance(364 * 24 * 3600)
    await settled(service)
    kept = await rows(service)
    clock.advance(2 * 24 * 3600)
    await settled(service)

    assert kept == {"audit": 1, "account_sessions": 0, "account_links": 0, "account_requests": 0}
    assert (await rows(service))["audit"] == 0


async def test_what_an_api_key_configures_is_logged_once_in_its_name(
    service: Service, tenant: Tenant
) -> None:
    calls = [
        ("POST", "/v1/permissions", {"key": "sale", "title": "Sale"}, "one-key-0001"),
        # Answered from its key, and refused: neither changes anything.
        ("POST", "/v1/permissions", {"key": "sale", "title": "Sale"}, "one-key-0001"),
        ("POST", "/v1/permissions", {"key": "sale", "title": "Sale"}, "one-key-0002"),
        ("PATCH", "/v1/permissions/sale", {"title": "Sales"}, None),
        ("DELETE", "/v1/permissions/sale", None, None),
        ("POST", "/v1/events", {"event": "bought", "subscriber_id": "sub_1"}, None),
    ]
    for method, path, body, key in calls:
        headers = {"Idempotency-Key": key} if key else {}
        await tenant.client.request(method, path, json=body, headers=headers)

    async with service.db.read() as tx:
        found = await service.get(Audit).of_project(
            tx, tenant.project.project_id, AuditFilters(), after=None, most=9
        )

    assert [(entry.action, entry.target) for entry in reversed(found)] == [
        ("subscribers.create_permission", "sale"),
        ("subscribers.update_permission", "sale"),
        ("subscribers.delete_permission", "sale"),
    ]
    assert {(entry.detail["by"], entry.account_id) for entry in found} == {("api", None)}
    [key_id] = {entry.detail["key_id"] for entry in found}
    [listed] = await service.projects.list_keys(tenant.project.project_id)
    assert (key_id, found[0].detail["key"]) == (listed.key.key_id, listed.key.name)


@pytest.mark.both_databases
async def test_a_project_shows_its_own_entries_and_those_of_one_person(service: Service) -> None:
    ann, bob = await new_account(service), await new_account(service, "bob@x.example")
    shop, other = await service.projects.create("Shop"), await service.projects.create("Other")
    async with service.db.transaction() as tx:
        for number in range(3):
            for project, account in ((shop, ann), (shop, bob), (other, ann)):
                await service.audit.write(
                    tx,
                    "team.invite",
                    project_id=project.project_id,
                    account_id=account.account_id,
                    detail={"number": number},
                )
    async with service.db.read() as tx:
        first = await service.get(Audit).of_project(
            tx, shop.project_id, AuditFilters(), after=None, most=4
        )
        rest = await service.get(Audit).of_project(
            tx, shop.project_id, AuditFilters(), after=first[-1].entry_id, most=9
        )
        bobs = await service.get(Audit).of_project(
            tx, shop.project_id, AuditFilters(account_id=bob.account_id), after=None, most=9
        )

    assert [entry.detail["number"] for entry in [*first, *rest]] == [2, 2, 1, 1, 0, 0]
    assert {entry.account_name for entry in bobs} == {"Ann Lee"}
    assert [entry.account_id for entry in bobs] == [bob.account_id] * 3


async def is_noted(service: Service) -> bool:
    async with service.db.read() as tx:
        return bool(
            await tx.fetch_val("SELECT COUNT(*) FROM core_jobs WHERE name = 'dashboard.purge'")
        )


async def rows(service: Service) -> dict[str, int]:
    async with service.db.read() as tx:
        return {
            table: await tx.fetch_val(f"SELECT COUNT(*) FROM dashboard_{table}")
            for table in ("audit", "account_sessions", "account_links", "account_requests")
        }
