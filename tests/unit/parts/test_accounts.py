"""What the core knows of accounts, and what the plugins that keep them are asked."""

import pytest

from msgsvc_core.billing import Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.members.models import AddMemberBody, Role
from msgsvc_core.members.owners import OwnerProtection
from msgsvc_core.plugins.audit import AuditRecord
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from tests.unit.parts.billing import Billing


async def test_without_a_plugin_that_keeps_accounts_there_are_none(
    core: MemoryCore, tx: Tx
) -> None:
    assert await core.service.accounts.page(tx, "", None, 10) == ()
    with pytest.raises(NotFound):
        await core.service.accounts.find(tx, "acc_1")


class AuditRecorder:
    """Keeps the records of the audit log."""

    def __init__(self) -> None:
        self.records: list[AuditRecord] = []

    @hookimpl
    async def on_audited(self, tx: Tx, record: AuditRecord) -> None:
        self.records.append(record)


async def test_a_change_by_the_command_line_is_recorded_as_such() -> None:
    kept = AuditRecorder()
    async with memory_core(extra_plugins=[("audit", kept)]) as core, core.db.transaction() as tx:
        await core.service.audit.write_command(tx, "key.created", PROJECT, "key_1")

    [record] = kept.records
    assert (record.target, record.detail, record.account_id) == ("key_1", {"by": "cli"}, None)


class ProtectedOwners:
    """Refuses every new role that an API key gives, and nothing else."""

    @hookimpl
    async def check_role_change(
        self, tx: Tx, project_id: str, member_id: str, role: Role | None
    ) -> None:
        raise Conflict("{member} stays", member=member_id)


async def test_whoever_signs_owners_in_refuses_what_a_key_does_to_them() -> None:
    owners = [("owners", ProtectedOwners())]
    async with memory_core(extra_plugins=owners) as core, core.db.transaction() as tx:
        protection = core.service.get(OwnerProtection)
        await protection.check_owner_by_key(tx, PROJECT, "mem_1")

        with pytest.raises(Conflict, match="mem_1 stays"):
            await protection.check_by_key(tx, PROJECT, "mem_1")


def member(name: str) -> AddMemberBody:
    return AddMemberBody(name=name, email=f"{name}@shop.example", role="agent")


async def test_an_owner_counts_as_one_of_the_plans_members() -> None:
    billing = [("billing", Billing(Plan("small", max_members=3)))]
    async with (
        memory_core(plugins=["dashboard"], extra_plugins=billing) as core,
        core.db.transaction() as tx,
    ):
        accounts = core.get(Accounts)
        owner = await accounts.create(tx, email="owner@shop.example", name="Owner")
        await core.projects.set_owner(tx, PROJECT, owner.account_id)
        await core.members.add(tx, PROJECT, member("olga"))
        await core.members.add(tx, PROJECT, member("ivan"))

        with pytest.raises(Conflict, match="'small' has 3 member"):
            await core.members.add(tx, PROJECT, member("new"))
        # The third place is theirs.
        await core.members.add(tx, PROJECT, member("owner"))


async def test_others_know_an_account_by_its_email_and_not_how_it_signs_in() -> None:
    async with memory_core(plugins=["dashboard"]) as core, core.db.transaction() as tx:
        ann = await core.get(Accounts).create(tx, email="Ann@Shop.example", name="Ann")
        found = await core.service.accounts.find_many(tx, [ann.account_id])

    assert found[ann.account_id].email == "ann@shop.example"
    assert not hasattr(found[ann.account_id], "has_password")
