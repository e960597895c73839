"""The people who work on a project: rules built from fakes."""

from dataclasses import fields

import pytest

from msgsvc_core.billing import Plan
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.members.models import AddMemberBody, Member, UpdateMemberBody
from msgsvc_core.members.quota import MemberQuota
from msgsvc_core.members.service import Members
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeTx
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.rows import NOW_MS

OLGA = Member(PROJECT, "mem_1", "Olga", "olga@shop.example", "agent", "active", NOW_MS)
IVAN = Member(PROJECT, "mem_2", "Ivan", "ivan@shop.example", "admin", "active", NOW_MS)


class Changes(list[tuple[Member, Member | None]]):
    """What was told of members, before and after."""

    async def __call__(self, tx: Tx, before: Member, after: Member | None) -> None:
        self.append((before, after))


async def nobody(_tx: Tx, _id: str) -> None:
    """The project is the operator's, and so has no plan."""


async def no_plan(_tx: Tx, _account_id: str | None) -> Plan | None:
    return None


def members_of(core: FakeContext, changes: Changes) -> Members:
    return Members(
        clock=core.clock,
        subscribers=core.subscribers,
        quota=MemberQuota(owner_of=nobody, plan_of=no_plan, email_of=nobody),
        on_changed=changes,
    )


def found(*members: Member, accounts: tuple[str, ...] = ()) -> list[Answer]:
    """What the two queries for members answer; `accounts` are the first one's in messengers."""
    columns = [field.name for field in fields(Member)][:-1]
    bound = [{"member_id": members[0].member_id, "subscriber_id": each} for each in accounts]
    return [[{name: getattr(each, name) for name in columns} for each in members], bound]


def locked(member: Member, *, accounts: tuple[str, ...] = ()) -> list[Answer]:
    return [[{"found": 1}], *found(member, accounts=accounts)]


async def test_an_email_is_one_active_members() -> None:
    members = members_of(plugin_context(), Changes())
    body = AddMemberBody(name="Olga", email="Olga@Shop.example")
    added = await members.add(FakeTx(answers=[1]), PROJECT, body)

    assert (added.email, added.role) == ("olga@shop.example", "agent")
    with pytest.raises(Conflict, match="olga@shop"):
        await members.add(FakeTx(answers=[0]), PROJECT, body)
    with pytest.raises(Conflict, match="ivan@shop"):
        taken: list[Answer] = [*locked(OLGA), [{"found": 1}]]
        await members.change(
            FakeTx(answers=taken), PROJECT, "mem_1", UpdateMemberBody(email=IVAN.email)
        )


async def test_a_change_is_told_with_what_was_before_and_none_is_not() -> None:
    changes = Changes()
    members = members_of(plugin_context(), changes)
    await members.change(
        FakeTx(answers=[*locked(OLGA), 1]), PROJECT, "mem_1", UpdateMemberBody(name="Olga")
    )
    assert changes == []
    after = await members.change(
        FakeTx(answers=[*locked(OLGA), 1]), PROJECT, "mem_1", UpdateMemberBody(role="viewer")
    )

    assert changes == [(OLGA, after)]
    assert (after.role, after.name) == ("viewer", "Olga")


async def test_who_was_removed_is_neither_changed_nor_bound() -> None:
    gone = Member(PROJECT, "mem_1", "Olga", "olga@shop.example", "agent", "removed", NOW_MS)
    members = members_of(plugin_context(), Changes())

    with pytest.raises(Conflict, match="was removed"):
        await members.change(
            FakeTx(answers=locked(gone)), PROJECT, "mem_1", UpdateMemberBody(name="O")
        )
    with pytest.raises(Conflict, match="was removed"):
        await members.bind(FakeTx(answers=locked(gone)), PROJECT, "mem_1", "sub_1")
    with pytest.raises(NotFound):
        await members.bind(FakeTx(answers=[[]]), PROJECT, "mem_1", "sub_1")


async def test_who_is_removed_loses_their_messengers_and_links_once() -> None:
    changes = Changes()
    members = members_of(plugin_context(), changes)
    tx = FakeTx(answers=[*locked(OLGA, accounts=("sub_1",)), 1, 1, 2])
    await members.remove(tx, PROJECT, "mem_1")
    await members.remove(FakeTx(answers=[*locked(OLGA), 0]), PROJECT, "mem_1")

    [(before, after)] = changes
    assert after is not None
    assert before.subscriber_ids == ("sub_1",)
    assert (after.status, after.subscriber_ids, after.removed_at_ms) == ("removed", (), NOW_MS)
    assert [sql.split()[2] for sql, _ in tx.statements[-2:]] == [
        "core_member_subscribers",
        "core_member_links",
    ]


async def test_a_messenger_account_goes_over_to_another_member_and_both_are_told() -> None:
    changes = Changes()
    members = members_of(plugin_context(), changes)
    theirs = found(IVAN, accounts=("sub_1",))
    bound = await members.bind(
        FakeTx(answers=[*locked(OLGA), *theirs, 1]), PROJECT, "mem_1", "sub_1"
    )

    assert bound.subscriber_ids == ("sub_1",)
    assert [(before.name, after and after.subscriber_ids) for before, after in changes] == [
        ("Ivan", ()),
        ("Olga", ("sub_1",)),
    ]
    again = locked(OLGA, accounts=("sub_1",))
    assert await members.bind(FakeTx(answers=again), PROJECT, "mem_1", "sub_1") == bound
    assert len(changes) == 2


async def test_what_is_not_theirs_is_not_unlinked() -> None:
    changes = Changes()
    members = members_of(plugin_context(), changes)

    with pytest.raises(NotFound, match="sub_2"):
        await members.unlink(FakeTx(answers=[*locked(OLGA), 0]), PROJECT, "mem_1", "sub_2")
    assert changes == []


async def test_an_erased_member_is_told_of_as_gone() -> None:
    changes = Changes()
    members = members_of(plugin_context(), changes)
    await members.erase(FakeTx(answers=[*locked(OLGA), 1]), PROJECT, "mem_1")

    assert changes == [(OLGA, None)]


async def test_a_person_is_found_by_those_of_their_subscriptions_that_are_bound() -> None:
    core = plugin_context()
    core.subscribers.person("sub_1", user_id="7")
    core.subscribers.person("sub_2", user_id="7", project_id="prj_2")
    answers: list[Answer] = [
        [{"project_id": PROJECT, "subscriber_id": "sub_1"}],
        *found(OLGA, accounts=("sub_1",)),
    ]
    theirs = await members_of(core, Changes()).list_by_person(
        FakeTx(answers=answers), "messenger_a", "7"
    )

    assert [(subscriber_id, each.name) for subscriber_id, each in theirs] == [("sub_1", "Olga")]


async def test_an_account_joins_only_whom_there_is() -> None:
    members = members_of(plugin_context(), Changes())

    with pytest.raises(NotFound, match="no active member"):
        await members.link_account(FakeTx(answers=[0]), PROJECT, "mem_9", "acc_1")
