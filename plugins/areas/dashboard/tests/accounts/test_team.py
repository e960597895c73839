"""Projects and their people: invitations, roles, the plan's limits, also for two who ask at once."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.billing import Plan
from msgsvc_core.kernel.errors import ApiError, Conflict, Forbidden, NotFound
from msgsvc_core.members.models import AddMemberBody, Role, UpdateMemberBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_dashboard.accounts import Account, Accounts, Team
from msgsvc_devkit.fixtures import ServiceFactory
from plugins.areas.dashboard.tests.accounts.people import new_account


class Plans:
    """What billing would say."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @hookimpl
    async def decide_plan(self, account_id: str) -> Plan:
        assert account_id
        return self._plan


def body(email: str, role: Role = "agent") -> AddMemberBody:
    return AddMemberBody(name=email.partition("@")[0].title(), email=email, role=role)


async def project_of(service: Service, account: Account, name: str = "Shop") -> str:
    async with service.db.transaction() as tx:
        return (await service.get(Accounts).create_project(tx, account, name)).project_id


@pytest.mark.both_databases
async def test_an_invitation_makes_who_accepts_it_a_member_once(service: Service) -> None:
    ann = await new_account(service)
    project_id = await project_of(service, ann)
    async with service.db.transaction() as tx:
        bob, old = await service.get(Team).invite(
            tx, project_id, body("robert@x.example"), by="admin"
        )
        token = await service.get(Team).invite_again(tx, project_id, bob.member_id, by="admin")
    account = await new_account(service, "robert@x.example", password=None)
    async with service.db.transaction() as tx:
        before = await service.members.role_of(tx, account.account_id, project_id)
        with pytest.raises(NotFound):
            await service.get(Team).join(tx, old, account)
        joined = await service.get(Team).join(tx, token, account)
        with pytest.raises(NotFound):
            await service.get(Team).join(tx, token, account)
        role = await service.members.role_of(tx, account.account_id, project_id)
        with pytest.raises(Conflict, match="joined"):
            await service.get(Team).invite_again(tx, project_id, bob.member_id, by="owner")
        await service.get(Team).remove(tx, project_id, bob.member_id, by="admin")
        after = await service.members.role_of(tx, account.account_id, project_id)

    assert joined.member_id == bob.member_id
    assert (before, role, after) == (None, "agent", None)


async def test_an_invitation_makes_nobody_but_its_addressee_a_member(service: Service) -> None:
    ann = await new_account(service)
    project_id = await project_of(service, ann)
    async with service.db.transaction() as tx:
        _, token = await service.get(Team).invite(tx, project_id, body("bob@x.example"), by="admin")
    eve = await new_account(service, "eve@x.example", password=None)
    with pytest.raises(Forbidden, match="another email"):
        async with service.db.transaction() as tx:
            await service.get(Team).join(tx, token, eve)
    bob = await new_account(service, "bob@x.example", password=None)
    async with service.db.transaction() as tx:
        joined = await service.get(Team).join(tx, token, bob)

    assert joined.email == "bob@x.example"


async def test_who_was_removed_joins_by_no_old_invitation(service: Service) -> None:
    ann = await new_account(service)
    project_id = await project_of(service, ann)
    account = await new_account(service, "bob@x.example", password=None)
    async with service.db.transaction() as tx:
        bob, token = await service.get(Team).invite(
            tx, project_id, body("bob@x.example"), by="owner"
        )
        await service.members.remove(tx, project_id, bob.member_id)

    async with service.db.transaction() as tx:
        with pytest.raises(NotFound, match="taken back"):
            await service.get(Team).join(tx, token, account)


@pytest.mark.both_databases
async def test_only_owners_make_and_end_owners_and_one_is_left(service: Service) -> None:
    project = await service.projects.create("Shop")
    project_id = project.project_id
    ann = await new_account(service)
    async with service.db.transaction() as tx:
        owner, token = await service.get(Team).invite(
            tx, project_id, body(ann.email, "owner"), by="owner"
        )
        await service.get(Team).join(tx, token, ann)
        other, _ = await service.get(Team).invite(
            tx, project_id, body("b@x.example", "admin"), by="admin"
        )
        refused: list[Any] = [
            service.get(Team).invite(tx, project_id, body("c@x.example", "owner"), by="admin"),
            service.get(Team).invite(tx, project_id, body("c@x.example"), by="agent"),
            service.get(Team).change_role(tx, project_id, other.member_id, "owner", by="admin"),
            service.get(Team).change_role(tx, project_id, owner.member_id, "viewer", by="admin"),
            service.get(Team).remove(tx, project_id, owner.member_id, by="admin"),
        ]
        for asked in refused:
            with pytest.raises(Forbidden):
                await asked
        for last in (
            service.get(Team).remove(tx, project_id, owner.member_id, by="owner"),
            service.get(Team).change_role(tx, project_id, owner.member_id, "admin", by="owner"),
        ):
            with pytest.raises(Conflict, match="last owner"):
                await last
        # One who has not joined yet could do nothing.
        await service.get(Team).change_role(tx, project_id, other.member_id, "owner", by="owner")
        with pytest.raises(Conflict, match="last owner"):
            await service.get(Team).remove(tx, project_id, owner.member_id, by="owner")
        await service.get(Accounts).give_project(tx, project_id, ann.account_id)
        await service.get(Team).remove(tx, project_id, owner.member_id, by="owner")
        role = await service.members.role_of(tx, ann.account_id, project_id)

    assert role == "owner"


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_a_plan_has_so_many_projects_and_members_even_for_two_at_once(
    make_service: ServiceFactory,
) -> None:
    plan = Plan("free", max_projects=2, max_members=2)
    service = await make_service(extra_plugins=[("plans", Plans(plan))])
    ann = await new_account(service)

    async def invite(email: str) -> None:
        async with service.db.transaction() as tx:
            await service.members.add(tx, project_id, body(email))

    made = await asyncio.gather(
        *(project_of(service, ann, f"Shop {number}") for number in range(4)),
        return_exceptions=True,
    )
    project_id = next(one for one in made if isinstance(one, str))
    invited = await asyncio.gather(
        *(invite(f"{name}@x.example") for name in "bcd"), return_exceptions=True
    )

    refused = [str(one) for one in made if isinstance(one, ApiError)]
    assert len(refused) == 2
    assert "'free' has 2 project" in refused[0]
    assert sorted(type(one).__name__ for one in invited) == ["Conflict", "Conflict", "NoneType"]
    # A project of the operator's own has no plan.
    free = await service.projects.create("Operator's")
    async with service.db.transaction() as tx:
        for name in "bcde":
            await service.members.add(tx, free.project_id, body(f"{name}@x.example"))


async def test_a_members_email_is_free_for_the_owner_whatever_the_plan(
    make_service: ServiceFactory,
) -> None:
    service = await make_service(extra_plugins=[("plans", Plans(Plan("free", max_members=1)))])
    ann = await new_account(service)
    project = await service.projects.create("Shop")

    async with service.db.transaction() as tx:
        await service.get(Accounts).give_project(tx, project.project_id, ann.account_id)
        with pytest.raises(Conflict, match="1 member"):
            await service.members.add(tx, project.project_id, body("bob@x.example"))
        member = await service.members.add(tx, project.project_id, body(ann.email))

    assert member.email == ann.email


@pytest.mark.both_databases
async def test_the_owners_place_in_a_plan_is_nobody_elses(make_service: ServiceFactory) -> None:
    service = await make_service(extra_plugins=[("plans", Plans(Plan("free", max_members=1)))])
    ann = await new_account(service)
    bob = await new_account(service, "bob@x.example", password=None)
    project_id = (await service.projects.create("Shop")).project_id
    async with service.db.transaction() as tx:
        await service.get(Accounts).give_project(tx, project_id, ann.account_id)
        member, token = await service.get(Team).invite(tx, project_id, body(ann.email), by="owner")

    async def rename() -> None:
        async with service.db.transaction() as tx:
            change = UpdateMemberBody(email=bob.email)
            await service.members.change(tx, project_id, member.member_id, change)

    async def join(account: Account) -> None:
        async with service.db.transaction() as tx:
            await service.get(Team).join(tx, token, account)

    with pytest.raises(Conflict, match="1 member"):
        await rename()
    with pytest.raises(Forbidden):
        await join(bob)
    await join(ann)
    # Theirs is the place, whatever email they work by.
    await rename()

    async with service.db.read() as tx:
        assert list(await service.get(Team).accounts_of(tx, project_id)) == [member.member_id]
        assert (await service.members.get(tx, project_id, member.member_id)).email == bob.email
