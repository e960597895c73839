"""The people who work on a project."""

from collections.abc import AsyncIterator

import pytest

from msgsvc_core.channels.updates import Started
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import Conflict, NotFound
from msgsvc_core.members.links import MemberLinks
from msgsvc_core.members.models import AddMemberBody, Member, UpdateMemberBody
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from tests.unit.parts.people import ANN


class Changes(list[tuple[Member, Member | None]]):
    """The changes of members that plugins learn of: before and after each."""

    @hookimpl
    async def on_member_changed(self, tx: Tx, before: Member, after: Member | None) -> None:
        self.append((before, after))


@pytest.fixture
def changes() -> Changes:
    return Changes()


@pytest.fixture
async def core(changes: Changes) -> AsyncIterator[MemoryCore]:
    async with memory_core(extra_plugins=[("changes", changes)]) as core:
        yield core


async def add(core: MemoryCore, tx: Tx, name: str) -> Member:
    body = AddMemberBody(name=name, email=f"{name}@Shop.example")
    return await core.members.add(tx, PROJECT, body)


async def test_an_email_is_one_active_members(core: MemoryCore, tx: Tx) -> None:
    olga, _ = await add(core, tx, "Olga"), await add(core, tx, "Ivan")

    assert (olga.email, olga.role) == ("olga@shop.example", "agent")
    with pytest.raises(Conflict, match="olga@shop"):
        await add(core, tx, "OLGA")
    with pytest.raises(Conflict, match="ivan@shop"):
        body = UpdateMemberBody(email="ivan@shop.example")
        await core.members.change(tx, PROJECT, olga.member_id, body)


async def test_a_change_is_told_with_what_was_before_and_none_is_not(
    core: MemoryCore, tx: Tx, changes: Changes
) -> None:
    olga = await add(core, tx, "Olga")
    await core.members.change(tx, PROJECT, olga.member_id, UpdateMemberBody(name="Olga"))
    assert changes == []
    after = await core.members.change(tx, PROJECT, olga.member_id, UpdateMemberBody(role="viewer"))

    assert changes == [(olga, after)]
    assert (after.role, after.name) == ("viewer", "Olga")
    assert await core.members.get(tx, PROJECT, olga.member_id) == after


async def test_who_was_removed_is_neither_changed_nor_bound(core: MemoryCore, tx: Tx) -> None:
    olga = await add(core, tx, "Olga")
    await core.person(tx, "sub_1")
    await core.members.remove(tx, PROJECT, olga.member_id)

    with pytest.raises(Conflict, match="was removed"):
        await core.members.change(tx, PROJECT, olga.member_id, UpdateMemberBody(name="O"))
    with pytest.raises(Conflict, match="was removed"):
        await core.members.bind(tx, PROJECT, olga.member_id, "sub_1")
    with pytest.raises(NotFound):
        await core.members.bind(tx, PROJECT, "mem_9", "sub_1")


async def test_who_is_removed_loses_their_messengers_and_links_once(
    core: MemoryCore, tx: Tx, changes: Changes
) -> None:
    olga = await add(core, tx, "Olga")
    await core.person(tx, "sub_1")
    await core.members.bind(tx, PROJECT, olga.member_id, "sub_1")
    links = core.service.get(MemberLinks)
    payload, _ = await links.create(tx, PROJECT, olga.member_id, 60)
    changes.clear()
    for _ in range(2):
        await core.members.remove(tx, PROJECT, olga.member_id)

    [(before, after)] = changes
    assert after is not None
    assert before.subscriber_ids == ("sub_1",)
    now_ms = core.clock.now_ms()
    assert (after.status, after.subscriber_ids, after.removed_at_ms) == ("removed", (), now_ms)
    assert await core.members.get(tx, PROJECT, olga.member_id) == after
    [rule] = links.rules()
    opened = Started(update_id="1", chat_id="c7", user=ANN, payload=payload)
    assert not await rule.handler(core.inbound(tx, opened))


async def test_a_messenger_account_goes_over_to_another_member_and_both_are_told(
    core: MemoryCore, tx: Tx, changes: Changes
) -> None:
    olga, ivan = await add(core, tx, "Olga"), await add(core, tx, "Ivan")
    await core.person(tx, "sub_1")
    await core.members.bind(tx, PROJECT, ivan.member_id, "sub_1")
    changes.clear()
    bound = await core.members.bind(tx, PROJECT, olga.member_id, "sub_1")

    assert bound.subscriber_ids == ("sub_1",)
    assert await core.members.find_by_subscriber(tx, PROJECT, "sub_1") == bound
    assert [(before.name, after and after.subscriber_ids) for before, after in changes] == [
        ("Ivan", ()),
        ("Olga", ("sub_1",)),
    ]
    assert await core.members.bind(tx, PROJECT, olga.member_id, "sub_1") == bound
    assert len(changes) == 2


async def test_what_is_not_theirs_is_not_unlinked(
    core: MemoryCore, tx: Tx, changes: Changes
) -> None:
    olga, ivan = await add(core, tx, "Olga"), await add(core, tx, "Ivan")
    await core.person(tx, "sub_2")
    bound = await core.members.bind(tx, PROJECT, ivan.member_id, "sub_2")
    changes.clear()

    with pytest.raises(NotFound, match="sub_2"):
        await core.members.unlink(tx, PROJECT, olga.member_id, "sub_2")
    assert changes == []
    assert await core.members.find_by_subscriber(tx, PROJECT, "sub_2") == bound


async def test_an_erased_member_is_told_of_as_gone(
    core: MemoryCore, tx: Tx, changes: Changes
) -> None:
    olga = await add(core, tx, "Olga")
    await core.members.erase(tx, PROJECT, olga.member_id)

    assert changes == [(olga, None)]
    with pytest.raises(NotFound):
        await core.members.get(tx, PROJECT, olga.member_id)


async def test_a_person_is_found_by_those_of_their_subscriptions_that_are_bound(
    core: MemoryCore, tx: Tx
) -> None:
    await core.project(tx, "prj_2")
    await core.person(tx, "sub_1", user_id="7")
    await core.person(tx, "sub_2", user_id="7", project_id="prj_2")
    olga = await add(core, tx, "Olga")
    bound = await core.members.bind(tx, PROJECT, olga.member_id, "sub_1")

    assert await core.members.list_by_person(tx, "messenger_a", "7") == [("sub_1", bound)]


async def test_an_account_joins_only_whom_there_is(core: MemoryCore, tx: Tx) -> None:
    with pytest.raises(NotFound, match="no active member"):
        await core.members.link_account(tx, PROJECT, "mem_9", "acc_1")
