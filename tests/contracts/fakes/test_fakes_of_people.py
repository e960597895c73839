"""Subscribers, tags, permissions and members: what the real parts do, the fakes do."""

from dataclasses import replace

import pytest

from msgsvc_core.api.pagination import PageQuery, position_of
from msgsvc_core.channels import Capabilities
from msgsvc_core.channels.updates import ChannelUser
from msgsvc_core.db import Tx
from msgsvc_core.kernel.errors import (
    AlreadySubscribed,
    ApiError,
    BadRequest,
    Conflict,
    MutuallyExclusiveIdentifiers,
    NotFound,
    PermissionHasSubscribers,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.members.models import AddMemberBody, MemberQuery, UpdateMemberBody
from msgsvc_core.plugins.context import PluginContext
from msgsvc_core.subscribers.contacts import ContactKind, Contacts
from msgsvc_core.subscribers.models import (
    AddSubscriberBody,
    Subscriber,
    SubscriberFilters,
    SubscriberQuery,
    UpdateSubscriberBody,
)
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody, UpdatePermissionBody
from msgsvc_devkit import FakeClock

ANNA = ChannelUser("77", "Anna", "anna", "en")
BORIS = ChannelUser("78", "Boris", None, "ru")


async def subscribe(
    core: PluginContext,
    tx: Tx,
    project_id: str,
    user: ChannelUser = ANNA,
    channel: str = "messenger_a",
    external_id: str | None = None,
) -> Subscriber:
    return await core.subscribers.ensure(
        tx,
        project_id,
        channel,
        user,
        f"chat {user.user_id}",
        source="deep_link",
        external_id=external_id,
    )


async def names(core: PluginContext, tx: Tx, project_id: str, clock: FakeClock) -> list[str]:
    events = await core.events.between(
        tx, project_id, since_ms=0, until_ms=clock.now_ms(), limit=100
    )
    return [event.name for event in events]


async def test_a_person_subscribes_once_and_comes_back(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    first, is_new = await core.subscribers.subscribe(
        tx, project_id, "messenger_a", ANNA, "c1", source="deep_link"
    )
    again, is_new_again = await core.subscribers.subscribe(
        tx, project_id, "messenger_a", replace(ANNA, first_name="Anya"), "c2", source="api"
    )
    assert await core.subscribers.unsubscribe(tx, project_id, first.subscriber_id, reason="stop")
    back, is_back = await core.subscribers.subscribe(
        tx, project_id, "messenger_a", ANNA, "c2", source="form"
    )

    assert (is_new, is_new_again, is_back) == (True, False, True)
    assert first.subscriber_id == again.subscriber_id == back.subscriber_id
    assert (again.first_name, again.chat_id, again.source) == ("Anya", "c2", "deep_link")
    assert await names(core, tx, project_id, clock) == [
        "subscription.created",
        "subscription.deleted",
        "subscription.created",
    ]


async def test_the_bot_welcomes_those_who_came_by_a_link(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    await subscribe(core, tx, project_id)

    assert await _jobs_of_bots(core, tx) == 1


async def _jobs_of_bots(core: PluginContext, tx: Tx) -> int:
    """How many messages bots are to send."""
    sent = getattr(core.outbox, "sent", None)
    if sent is not None:
        return len(sent)
    count: int = await tx.fetch_val(
        "SELECT COUNT(*) AS n FROM core_jobs WHERE name = 'channel.call'"
    )
    return count


async def test_what_a_project_does_not_have_is_not_given_with_a_subscription(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    await core.tags.ensure(tx, project_id, ["vip"])
    await core.permissions.create(tx, project_id, CreatePermissionBody(key="news", title="News"))
    await core.permissions.create(
        tx, project_id, CreatePermissionBody(key="ads", title="Ads", default=True)
    )
    subscriber = await core.subscribers.ensure(
        tx,
        project_id,
        "messenger_a",
        ANNA,
        "c1",
        source="deep_link",
        tags=["vip", "unknown"],
        permissions=["news", "unknown"],
    )

    assert subscriber.tags == ("vip",)
    assert sorted(subscriber.permissions) == ["ads", "news"]


async def test_a_person_is_added_by_their_address(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    channel = core.channels.resolve(project_id, "messenger_a")
    assert channel is not None
    channel.capabilities = Capabilities(addresses=True, identity="mailbox")
    await core.permissions.create(
        tx, project_id, CreatePermissionBody(key="ads", title="Ads", default=True)
    )

    known, is_new = await core.subscribers.register(
        tx, project_id, "messenger_a", " Ann@Example.com", source="otp"
    )
    again, is_new_again = await core.subscribers.register(
        tx, project_id, "messenger_a", "ann@example.com", source="api", status="active"
    )
    bob = AddSubscriberBody(channel="messenger_a", address="bob@example.com", tags=["vip"])
    added = await core.subscribers.add(tx, project_id, bob)
    await core.contacts.record_address(tx, added)
    with pytest.raises(AlreadySubscribed):
        await core.subscribers.add(tx, project_id, bob)
    with pytest.raises(ValidationFailed, match="address: must be an email address"):
        await core.subscribers.register(tx, project_id, "messenger_a", "ann", source="api")
    with pytest.raises(ValidationFailed, match="channel: people on messenger_b have no address"):
        await core.subscribers.register(tx, project_id, "messenger_b", "a@b.example", source="api")

    assert (is_new, is_new_again) == (True, False)
    assert known == again
    assert (known.user_id, known.username, known.status) == (
        "ann@example.com",
        "ann@example.com",
        "unsubscribed",
    )
    assert core.subscribers.takes_codes(known)
    assert (added.status, added.tags, added.permissions) == ("active", ("vip",), ("ads",))
    contacts = await core.contacts.find(tx, project_id, added.subscriber_id)
    assert contacts.email == "bob@example.com"
    assert await names(core, tx, project_id, clock) == [
        "subscription.created",
        "subscription.permission_changed",
    ]


async def test_an_external_id_is_bound_once_and_to_one_on_a_channel(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    anna = await subscribe(core, tx, project_id, external_id="e1")
    boris = await subscribe(core, tx, project_id, BORIS, external_id="e1")
    elsewhere = await subscribe(core, tx, project_id, ANNA, "messenger_b", external_id="e1")
    again = await subscribe(core, tx, project_id, external_id="e2")

    assert [anna.external_id, boris.external_id, elsewhere.external_id] == ["e1", None, "e1"]
    assert again.external_id == "e1"
    with pytest.raises(Conflict):
        await core.subscribers.change(
            tx, project_id, boris.subscriber_id, UpdateSubscriberBody(external_id="e1")
        )


async def test_a_change_replaces_what_it_names(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    anna = await subscribe(core, tx, project_id, external_id="e1")
    await core.subscribers.add_tag(tx, project_id, anna.subscriber_id, "old")
    body = UpdateSubscriberBody(external_id=None, lang="ru", tags=["a", "b"], attributes={"n": 1})
    changed = await core.subscribers.change(tx, project_id, anna.subscriber_id, body)
    emptied = await core.subscribers.change(
        tx, project_id, anna.subscriber_id, UpdateSubscriberBody(attributes={})
    )

    assert (changed.external_id, changed.lang, changed.tags) == (None, "ru", ("a", "b"))
    assert changed.attributes == {"n": 1}
    assert (emptied.attributes, emptied.tags) == (None, ("a", "b"))
    with pytest.raises(SubscriberNotFound):
        await core.subscribers.change(tx, project_id, "sub_nobody", body)
    with pytest.raises(ValidationFailed, match="attributes"):
        too_many = UpdateSubscriberBody(attributes={"text": "x" * 10_000})
        await core.subscribers.change(tx, project_id, anna.subscriber_id, too_many)


async def test_a_recipient_is_named_by_one_identifier_and_is_the_one_seen_last(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    await subscribe(core, tx, project_id, external_id="e1")
    clock.advance(1)
    later = await subscribe(core, tx, project_id, ANNA, "messenger_b", external_id="e1")

    async def find(**fields: str | None) -> str:
        asked = {"subscriber_id": None, "external_id": None, "channel": None, **fields}
        return (await core.subscribers.get_recipient(project_id, tx=tx, **asked)).subscriber_id

    assert await find(external_id="e1") == later.subscriber_id
    assert await find(external_id="e1", channel="messenger_a") != later.subscriber_id
    with pytest.raises(MutuallyExclusiveIdentifiers):
        await find(external_id="e1", subscriber_id=later.subscriber_id)
    with pytest.raises(SubscriberNotFound):
        await find(external_id="e2")
    with pytest.raises(ValidationFailed, match="messenger_b"):
        await find(subscriber_id=later.subscriber_id, channel="messenger_a")
    with pytest.raises(ValidationFailed):
        await find(external_id="e1", channel="pigeon")
    by_identifier = await core.subscribers.get_by_identifier(
        tx, project_id, subscriber_id=None, external_id="e1", channel=None
    )
    assert by_identifier.subscriber_id == later.subscriber_id
    assert (await core.channels.get_bot(project_id, later.bot, later.channel)).key == "messenger_b"


async def test_people_are_found_with_all_their_subscribers_many_at_once(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    anna = await subscribe(core, tx, project_id, external_id="7")
    also = await subscribe(core, tx, project_id, channel="messenger_b", external_id="7")
    boris = await subscribe(core, tx, project_id, BORIS)
    found = await core.subscribers.list_recipients_of(
        tx,
        [
            (project_id, anna.subscriber_id, None),
            (project_id, boris.subscriber_id, None),
            (project_id, boris.subscriber_id, "7"),
            (project_id, "sub_0000000000000000000000", None),
        ],
    )

    ids = [{each.subscriber_id for each in person} for person in found]
    both = {anna.subscriber_id, also.subscriber_id}
    assert ids == [both, {boris.subscriber_id}, both, set()]


async def test_who_blocks_the_bot_is_subscribed_again_by_themselves_alone(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    anna = await subscribe(core, tx, project_id)
    with pytest.raises(AlreadySubscribed):
        await core.subscribers.resubscribe(tx, project_id, anna.subscriber_id)
    await core.subscribers.lock(tx, "messenger_a", ["77"])
    await core.subscribers.block(tx, "messenger_a", "77", reason="blocked")
    blocked = await core.subscribers.get(tx, project_id, anna.subscriber_id)
    with pytest.raises(Conflict):
        await core.subscribers.resubscribe(tx, project_id, anna.subscriber_id)
    assert not await core.subscribers.unsubscribe(tx, project_id, anna.subscriber_id, reason="api")
    await core.subscribers.unblock(tx, "messenger_a", "77")
    unblocked = await core.subscribers.get(tx, project_id, anna.subscriber_id)
    back = await core.subscribers.resubscribe(tx, project_id, anna.subscriber_id)

    assert [blocked.status, unblocked.status, back.status] == ["blocked", "unsubscribed", "active"]


async def test_an_erased_person_is_gone(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    anna = await subscribe(core, tx, project_id)
    await core.subscribers.erase(tx, project_id, anna.subscriber_id)

    assert await core.subscribers.get_many(tx, [(project_id, anna.subscriber_id)]) == {}
    with pytest.raises(SubscriberNotFound):
        await core.subscribers.get(tx, project_id, anna.subscriber_id)
    with pytest.raises(SubscriberNotFound):
        await core.subscribers.erase(tx, project_id, anna.subscriber_id)
    events = await core.events.between(
        tx,
        project_id,
        ["subscription.deleted"],
        since_ms=0,
        until_ms=clock.now_ms(),
        limit=10,
    )
    assert [event.data["first_name"] for event in events] == [""]


async def test_a_chat_moves_with_its_people(core: PluginContext, tx: Tx, project_id: str) -> None:
    anna = await subscribe(core, tx, project_id)
    await core.subscribers.record_chat(tx, "messenger_a", "77", "c2")
    recorded = await core.subscribers.get(tx, project_id, anna.subscriber_id)
    await core.subscribers.move_chat(tx, "messenger_a", "c2", "c3")
    moved = await core.subscribers.get(tx, project_id, anna.subscriber_id)

    assert [recorded.chat_id, moved.chat_id] == ["c2", "c3"]


async def test_a_person_is_found_by_their_messenger_and_reads_the_language_they_chose(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    subscribers = core.subscribers
    await subscribers.set_language(tx, "messenger_a", "chat 77", "77", "ru")
    anna = await subscribe(core, tx, project_id)
    await subscribers.set_language(tx, "messenger_a", "chat 77", "77", "en")
    key = project_id, anna.subscriber_id

    found = await subscribers.find_by_user(tx, project_id, "messenger_a", "77")
    assert found is not None
    assert (found.subscriber_id, found.lang) == (anna.subscriber_id, "en")
    assert await subscribers.find_by_user(tx, project_id, "messenger_b", "77") is None
    assert [each.status for each in await subscribers.list_by_user(tx, "messenger_a", "77")] == [
        "active"
    ]
    assert await subscribers.language_of(tx, "messenger_a", "77") == "en"
    assert await subscribers.language_of(tx, "messenger_b", "77") is None
    assert await subscribers.lock_existing(tx, [key, (project_id, "sub_x")]) == {key: "active"}
    assert await subscribers.has_bot(tx, project_id, "messenger_a")
    assert not await subscribers.has_bot(tx, project_id, "messenger_b")


async def test_lists_are_newest_first_filtered_and_searched(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    anna = await subscribe(core, tx, project_id)
    clock.advance(1)
    boris = await subscribe(core, tx, project_id, BORIS)
    await core.subscribers.add_tag(tx, project_id, anna.subscriber_id, "vip")

    async def page(**fields: str) -> list[str]:
        found = await core.subscribers.page(tx, project_id, SubscriberQuery(**fields))
        return [each.subscriber_id for each in found]

    assert await page() == [boris.subscriber_id, anna.subscriber_id]
    assert await page(tag="vip") == [anna.subscriber_id]
    assert await page(lang="ru") == [boris.subscriber_id]
    assert await page(query="BOR") == [boris.subscriber_id]
    assert await page(query="@ann") == [anna.subscriber_id]
    assert await page(permission="news") == []
    with pytest.raises(ValidationFailed):
        await page(channel="pigeon")
    after = await core.subscribers.list_after(
        tx, project_id, SubscriberFilters(), boris.subscriber_id, 10
    )
    assert [each.subscriber_id for each in after] == [anna.subscriber_id]


async def test_tags_are_made_renamed_and_removed(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    anna = await subscribe(core, tx, project_id)
    await core.tags.create(tx, project_id, "vip")
    clock.advance(1)
    await core.tags.create(tx, project_id, "new")
    with pytest.raises(Conflict):
        await core.tags.create(tx, project_id, "vip")
    await core.subscribers.add_tag(tx, project_id, anna.subscriber_id, "vip")
    [vip_id] = await core.tags.ids_of(tx, project_id, ["vip"])
    with pytest.raises(Conflict):
        await core.tags.rename(tx, project_id, "vip", "new")
    renamed = await core.tags.rename(tx, project_id, "vip", "gold")
    page = await core.tags.page(tx, project_id, PageQuery())

    assert (renamed.name, renamed.subscribers) == ("gold", 1)
    assert [tag.name for tag in page] == ["new", "gold"]
    assert await core.tags.names_of(tx, project_id, [vip_id, "tag_none"]) == ["gold"]
    assert [tag.name for tag in await core.tags.list_all(tx, project_id, 10)] == ["gold", "new"]
    await core.tags.delete(tx, project_id, "gold")
    assert (await core.subscribers.get(tx, project_id, anna.subscriber_id)).tags == ()
    for missing in (
        core.tags.get(tx, project_id, "gold"),
        core.tags.rename(tx, project_id, "gold", "silver"),
        core.tags.delete(tx, project_id, "gold"),
        core.tags.remove(tx, project_id, anna.subscriber_id, "gold"),
    ):
        with pytest.raises(NotFound):
            await missing


async def test_a_person_carries_a_tag_until_it_is_taken(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    anna = await subscribe(core, tx, project_id)
    await core.tags.add(tx, project_id, anna.subscriber_id, "vip")
    with pytest.raises(ValidationFailed):
        await core.tags.add(tx, project_id, anna.subscriber_id, "not a name")
    await core.tags.assign(tx, project_id, anna.subscriber_id, ["vip", "unknown"])
    with_it = await core.subscribers.get(tx, project_id, anna.subscriber_id)
    await core.subscribers.remove_tag(tx, project_id, anna.subscriber_id, "vip")
    await core.subscribers.remove_tag(tx, project_id, anna.subscriber_id, "vip")
    without = await core.subscribers.get(tx, project_id, anna.subscriber_id)
    await core.tags.ensure(tx, project_id, ["b", "a"])
    await core.tags.replace(tx, project_id, anna.subscriber_id, ["b", "a"])
    replaced = await core.subscribers.get(tx, project_id, anna.subscriber_id)

    assert [with_it.tags, without.tags, replaced.tags] == [("vip",), (), ("a", "b")]


async def test_a_permission_is_granted_revoked_and_counted(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    anna = await subscribe(core, tx, project_id)
    news = await core.permissions.create(
        tx, project_id, CreatePermissionBody(key="news", title="News")
    )
    grant = core.subscribers.set_permission
    assert await grant(tx, project_id, anna.subscriber_id, "news", True)
    assert not await grant(tx, project_id, anna.subscriber_id, "news", True)
    with pytest.raises(NotFound):
        await grant(tx, project_id, anna.subscriber_id, "unknown", True)

    assert await core.permissions.count_active(tx, project_id, [news]) == {"news": 1}
    assert await core.permissions.count_active_roughly(tx, project_id, [news], 10) == {"news": 1}
    with pytest.raises(PermissionHasSubscribers):
        await core.permissions.delete(tx, project_id, "news")
    with pytest.raises(PermissionHasSubscribers):
        await core.permissions.delete_confirmed(tx, project_id, "news", 0)
    assert await grant(tx, project_id, anna.subscriber_id, "news", False)
    assert await core.permissions.count_active(tx, project_id, [news]) == {}
    await core.permissions.delete(tx, project_id, "news")
    assert (await names(core, tx, project_id, clock)).count("subscription.permission_changed") == 2


async def test_permissions_are_defined_once_and_changed(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    body = CreatePermissionBody(key="news", title="News", description="Weekly")
    await core.permissions.create(tx, project_id, body)
    clock.advance(1)
    await core.permissions.create(tx, project_id, CreatePermissionBody(key="ads", title="Ads"))
    with pytest.raises(Conflict):
        await core.permissions.create(tx, project_id, body)
    changed = await core.permissions.update(
        tx, project_id, "news", UpdatePermissionBody(description=None, default=True)
    )

    assert (changed.title, changed.description, changed.default) == ("News", None, True)
    assert await core.permissions.get(tx, project_id, "news") == changed
    all_of_them = await core.permissions.list_all(tx, project_id)
    page = await core.permissions.page(tx, project_id, PageQuery())
    assert [each.key for each in all_of_them] == ["news", "ads"]
    assert [each.key for each in page] == ["ads", "news"]
    await core.permissions.check(tx, project_id, ["news", "ads"])
    with pytest.raises(ValidationFailed, match=r"permissions\[1\]"):
        await core.permissions.check(tx, project_id, ["news", "unknown"])
    for missing in (
        core.permissions.get(tx, project_id, "unknown"),
        core.permissions.update(tx, project_id, "unknown", UpdatePermissionBody(default=True)),
        core.permissions.delete(tx, project_id, "unknown"),
        core.permissions.delete_confirmed(tx, project_id, "unknown", 1),
    ):
        with pytest.raises(NotFound):
            await missing


async def test_grants_are_those_that_are_new(core: PluginContext, tx: Tx, project_id: str) -> None:
    anna = await subscribe(core, tx, project_id)
    await core.permissions.create(tx, project_id, CreatePermissionBody(key="news", title="News"))
    body = CreatePermissionBody(key="ads", title="Ads", default=True)
    await core.permissions.create(tx, project_id, body)
    first = await core.permissions.grant(tx, anna, ["news", "unknown"])
    second = await core.permissions.grant(tx, anna, ["news"], defaults=True)
    assert await core.permissions.set(tx, anna, "news", False)
    assert await core.permissions.delete_confirmed(tx, project_id, "ads", 1) == 1

    assert (first, second) == (["news"], ["ads"])
    assert (await core.subscribers.get(tx, project_id, anna.subscriber_id)).permissions == ()


OLGA = AddMemberBody(name="Olga", email="olga@shop.example", role="agent")


async def test_members_are_added_changed_and_removed(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    olga = await core.members.add(tx, project_id, OLGA)
    with pytest.raises(Conflict, match="olga"):
        await core.members.add(tx, project_id, OLGA)
    pavel = await core.members.add(
        tx, project_id, AddMemberBody(name="Pavel", email="pavel@shop.example", role="agent")
    )
    with pytest.raises(Conflict):
        taken = UpdateMemberBody(email=OLGA.email)
        await core.members.change(tx, project_id, pavel.member_id, taken)
    renamed = await core.members.change(
        tx, project_id, olga.member_id, UpdateMemberBody(name="Olya")
    )
    assert [each.name for each in await core.members.list_agents(tx, project_id)] == [
        "Olya",
        "Pavel",
    ]
    await core.members.remove(tx, project_id, olga.member_id)
    await core.members.remove(tx, project_id, olga.member_id)
    page = await core.members.page(tx, project_id, MemberQuery())

    assert (renamed.name, renamed.email) == ("Olya", OLGA.email)
    assert [each.member_id for each in page] == [pavel.member_id]
    assert (await core.members.get(tx, project_id, olga.member_id)).status == "removed"
    with pytest.raises(Conflict, match="removed"):
        await core.members.change(tx, project_id, olga.member_id, UpdateMemberBody(name="O"))
    await core.members.erase(tx, project_id, olga.member_id)
    assert await core.members.get_many(tx, project_id, [olga.member_id]) == {}
    with pytest.raises(NotFound):
        await core.members.get(tx, project_id, olga.member_id)


async def test_a_messenger_account_is_of_one_member(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    anna = await subscribe(core, tx, project_id)
    olga = await core.members.add(tx, project_id, OLGA)
    pavel = await core.members.add(
        tx, project_id, AddMemberBody(name="Pavel", email="pavel@shop.example", role="agent")
    )
    members = core.members
    await members.bind(tx, project_id, olga.member_id, anna.subscriber_id)
    bound = await members.bind(tx, project_id, pavel.member_id, anna.subscriber_id)

    assert bound.subscriber_ids == (anna.subscriber_id,)
    assert (await members.get(tx, project_id, olga.member_id)).subscriber_ids == ()
    assert await members.find_by_subscriber(tx, project_id, anna.subscriber_id) == bound
    assert await members.list_by_person(tx, "messenger_a", "77") == [(anna.subscriber_id, bound)]
    assert await members.find_by_account(tx, project_id, "acc_nobody") is None
    await members.unlink(tx, project_id, pavel.member_id, anna.subscriber_id)
    assert await members.find_by_subscriber(tx, project_id, anna.subscriber_id) is None
    with pytest.raises(NotFound):
        await members.unlink(tx, project_id, pavel.member_id, anna.subscriber_id)


async def test_cursors_of_another_list_are_refused(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    wrong = PageQuery.model_validate({"cursor": "c29tZXRoaW5n"})
    for refused in (
        core.tags.page(tx, project_id, wrong),
        core.permissions.page(tx, project_id, wrong),
    ):
        with pytest.raises(BadRequest):
            await refused
    with pytest.raises(ApiError):
        await core.subscribers.page(tx, project_id, SubscriberQuery(cursor="c29tZXRoaW5n"))
    assert position_of(1, "a")


async def test_an_account_is_in_projects_that_it_owns_or_is_a_member_of(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    members, projects = core.members, core.projects
    other = (await projects.add(tx, "Cafe")).project_id
    await projects.set_owner(tx, project_id, "acc_1")
    body = AddMemberBody(name="Ann", email="ann@shop.example", role="agent")
    ann = await members.add(tx, other, body)
    await members.link_account(tx, other, ann.member_id, "acc_1")

    assert await projects.owner_of(tx, project_id) == "acc_1"
    assert await projects.count_owned(tx, "acc_1") == 1
    owners = {each.project_id: of for each, of in await projects.list_newest(tx, None, 10)}
    assert (owners[project_id], owners[other]) == ("acc_1", None)
    for prefix in ("caf", other):
        named = [each.project_id for each, _ in await projects.list_newest(tx, None, 10, prefix)]
        assert named == [other]
    assert await members.role_of(tx, "acc_1", project_id) == "owner"
    assert await members.role_of(tx, "acc_1", other) == "agent"
    assert await members.role_of(tx, "acc_2", other) is None
    found = {each.project_id: each.role for each in await members.projects_of(tx, "acc_1")}
    assert (found[project_id], found[other]) == ("owner", "agent")
    assert await members.find_by_account(tx, other, "acc_1") == ann
    assert await members.accounts_of(tx, other) == {ann.member_id: "acc_1"}
    assert await members.has_other_owner(tx, project_id, "mem_none")
    assert not await members.has_other_owner(tx, other, ann.member_id)
    with pytest.raises(NotFound):
        await members.link_account(tx, project_id, ann.member_id, "acc_1")
    with pytest.raises(NotFound):
        await projects.set_owner(tx, "prj_none", "acc_1")


async def test_a_verified_contact_replaces_the_earlier_one_of_its_kind(
    core: PluginContext, tx: Tx, project_id: str, clock: FakeClock
) -> None:
    anna = (await subscribe(core, tx, project_id)).subscriber_id
    boris = (await subscribe(core, tx, project_id, BORIS)).subscriber_id
    first_ms = clock.now_ms()
    given: dict[ContactKind, str] = {"phone": "1 (202) 555-0123", "email": " Anna@Shop.example "}
    for kind, value in given.items():
        await core.contacts.record(tx, project_id, anna, kind=kind, value=value, source="m")
    clock.advance(60)
    await core.contacts.record(
        tx, project_id, anna, kind="phone", value="+442071838750", source="m"
    )

    found = await core.contacts.find(tx, project_id, anna)
    assert (found.phone, found.phone_verified_at_ms) == ("+442071838750", first_ms + 60_000)
    assert (found.email, found.email_verified_at_ms) == ("anna@shop.example", first_ms)
    assert await core.contacts.find(tx, project_id, boris) == Contacts()
    assert await core.contacts.find(tx, "prj_other", anna) == Contacts()
    assert await core.contacts.find_many(tx, project_id, [anna, boris, "sub_0"]) == {anna: found}


async def test_a_contact_that_is_none_is_refused_without_its_value(
    core: PluginContext, tx: Tx, project_id: str
) -> None:
    anna = (await subscribe(core, tx, project_id)).subscriber_id
    given: dict[ContactKind, str] = {"phone": "ring me", "email": "anna at shop"}
    for kind, value in given.items():
        with pytest.raises(ValidationFailed) as refused:
            await core.contacts.record(tx, project_id, anna, kind=kind, value=value, source="m")
        assert value not in str(refused.value)
    with pytest.raises(SubscriberNotFound):
        await core.contacts.record(
            tx, project_id, "sub_0", kind="phone", value="+12025550123", source="m"
        )

    assert await core.contacts.find(tx, project_id, anna) == Contacts()
