"""What the core knows of accounts, built from fakes."""

import pytest

from msgsvc_core.billing import Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.members.models import Role
from msgsvc_core.members.owners import OwnerProtection
from msgsvc_core.members.quota import MemberQuota
from msgsvc_core.plugins.accounts import AccountDirectory
from msgsvc_core.plugins.audit import AuditLog, AuditRecord
from msgsvc_dashboard.accounts.directory import PublishedAccounts
from msgsvc_dashboard.accounts.service import Accounts
from msgsvc_devkit import plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx


async def test_without_a_plugin_that_keeps_accounts_there_are_none() -> None:
    directory = AccountDirectory(source=lambda: None)

    assert await directory.page(FakeTx(), "", None, 10) == ()
    with pytest.raises(NotFound):
        await directory.find(FakeTx(), "acc_1")


async def test_a_change_by_the_command_line_is_recorded_as_such() -> None:
    kept: list[AuditRecord] = []

    async def record(_tx: Tx, record: AuditRecord) -> None:
        kept.append(record)

    await AuditLog(record=record).write_command(FakeTx(), "key.created", PROJECT, "key_1")

    assert (kept[0].target, kept[0].detail, kept[0].account_id) == ("key_1", {"by": "cli"}, None)


async def test_whoever_signs_owners_in_refuses_what_a_key_does_to_them() -> None:
    async def check_role(_tx: Tx, _project: str, member: str, role: Role | None) -> None:
        raise Conflict("{member} stays", member=member)

    async def check_identity(_tx: Tx, _project: str, _member: str) -> None: ...

    protection = OwnerProtection(check_role=check_role, check_identity=check_identity)
    await protection.check_owner_by_key(FakeTx(), PROJECT, "mem_1")

    with pytest.raises(Conflict, match="mem_1 stays"):
        await protection.check_by_key(FakeTx(), PROJECT, "mem_1")


@pytest.mark.parametrize(("others", "refused"), [(1, False), (2, True)])
async def test_an_owner_counts_as_one_of_the_plans_members(others: int, refused: bool) -> None:
    async def owner(_tx: Tx, _id: str) -> str | None:
        return "acc_1"

    async def email(_tx: Tx, _id: str) -> str | None:
        return "owner@shop.example"

    async def plan(_tx: Tx, _account_id: str | None) -> Plan | None:
        return Plan("small", max_members=3)

    quota = MemberQuota(owner_of=owner, plan_of=plan, email_of=email)
    tx = FakeTx(answers=[[{"count": others}]])
    await quota.check_room(tx, PROJECT, "owner@shop.example")

    if refused:
        with pytest.raises(Conflict, match="'small' has 3 member"):
            await quota.check_room(tx, PROJECT, "new@shop.example")
    else:
        await quota.check_room(tx, PROJECT, "new@shop.example")


async def test_others_know_an_account_by_its_email_and_not_how_it_signs_in() -> None:
    core, tx = plugin_context(), FakeTx(answers=[1])
    accounts = Accounts(
        clock=core.clock,
        db=core.db,
        session_days=14,
        projects=core.projects,
        members=core.members,
        billing=core.billing,
    )
    ann = await accounts.create(tx, email="Ann@Shop.example", name="Ann")
    never = dict.fromkeys(("signed_in_at_ms", "totp_confirmed_at_ms", "lang", "timezone"))
    row = {**never, **tx.statements[0][1], "has_password": True, "has_totp": False}
    published = PublishedAccounts(accounts=accounts)
    found = await published.find_many(FakeTx(answers=[[row]]), [ann.account_id])

    assert found[ann.account_id].email == "ann@shop.example"
    assert not hasattr(found[ann.account_id], "has_password")
