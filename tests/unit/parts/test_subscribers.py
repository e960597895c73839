"""How people become subscribers, what is known of them, and that nothing is left of them."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from msgsvc_core.channels import ChannelIdentity, chats
from msgsvc_core.channels.failures import ForeignBot
from msgsvc_core.channels.shelf import Shelf
from msgsvc_core.db import Tx
from msgsvc_core.jobs.contract import JobContext, NewJob
from msgsvc_core.kernel.errors import (
    AlreadySubscribed,
    BadRequest,
    Conflict,
    InvalidExternalId,
    MutuallyExclusiveIdentifiers,
    SubscriberNotFound,
    ValidationFailed,
)
from msgsvc_core.subscribers import store
from msgsvc_core.subscribers.erasure.job import AGAIN_AFTER_S, JOB, WAITING_S, SubscriberErasure
from msgsvc_core.subscribers.models import Subscriber, SubscriberQuery, UpdateSubscriberBody
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_devkit.contexts import JobInTest, claimed
from msgsvc_devkit.core import PROJECT, MemoryCore, memory_core
from tests.unit.parts.people import ANN
from tests.unit.parts.rows import NOW_MS


@pytest.fixture
async def core() -> AsyncIterator[MemoryCore]:
    limits = {"attributes_bytes": 30}
    async with memory_core(languages=("en", "ru", "de", "pt-BR"), limits=limits) as core:
        yield core


# ---- subscribing --------------------------------------------------------------------------------


async def subscribe(
    core: MemoryCore, tx: Tx, bot: str = "messenger_a", **more: Any
) -> tuple[Subscriber, bool]:
    return await core.subscribers.subscribe(tx, PROJECT, bot, ANN, "c7", source="deep_link", **more)


async def create_default_permission(core: MemoryCore, tx: Tx) -> None:
    news = CreatePermissionBody.model_validate({"key": "news", "title": "News", "default": True})
    await core.permissions.create(tx, PROJECT, news)


async def test_who_is_new_is_told_of_once_and_welcomed_with_the_default_permissions(
    core: MemoryCore, tx: Tx
) -> None:
    await create_default_permission(core, tx)
    found, is_new = await subscribe(core, tx)

    assert (found.first_name, found.permissions, is_new) == ("Ann", ("news",), True)
    assert await core.subscribers.get(tx, PROJECT, found.subscriber_id) == found
    assert core.event_names == ["subscription.created", "subscription.permission_changed"]
    assert len(await core.texts_sent(tx)) == 1


async def test_who_is_subscribed_already_is_brought_up_to_date_in_silence(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx, user_id="7", chat_id="c1")
    await core.tags.ensure(tx, PROJECT, ["vip"])
    found, is_new = await subscribe(core, tx, tags=["vip"])

    assert not is_new
    assert (found.subscriber_id, found.chat_id, found.tags) == ("sub_1", "c7", ("vip",))
    assert (core.event_names, await core.texts_sent(tx)) == ([], [])


async def test_who_comes_back_is_told_of_and_gets_no_default_permission_again(
    core: MemoryCore, tx: Tx
) -> None:
    await create_default_permission(core, tx)
    await core.person(tx, user_id="7", status="unsubscribed")
    found, is_new = await subscribe(core, tx)

    assert is_new
    assert (found.status, found.permissions) == ("active", ())
    assert core.event_names == ["subscription.created"]


async def test_who_is_erased_between_two_looks_is_new(
    core: MemoryCore, tx: Tx, monkeypatch: pytest.MonkeyPatch
) -> None:
    await core.person(tx, user_id="7")
    refresh = store.refresh

    async def erased_before(tx: Tx, seen: Subscriber) -> tuple[str, bool] | None:
        await core.subscribers.erase(tx, PROJECT, "sub_1")
        return await refresh(tx, seen)

    monkeypatch.setattr(store, "refresh", erased_before)
    found, is_new = await subscribe(core, tx)

    assert is_new
    assert found.subscriber_id != "sub_1"


async def test_the_language_chosen_in_the_chat_is_theirs_before_the_messengers(
    core: MemoryCore, tx: Tx
) -> None:
    await chats.enter(tx, "messenger_a", "c7", "7", PROJECT, NOW_MS)
    await chats.set_language(tx, "messenger_a", "c7", "ru")
    found, _ = await subscribe(core, tx)

    assert found.lang == "ru"


async def test_tags_are_mapped_again_where_the_setting_prefers_another_language(
    core: MemoryCore,
) -> None:
    people = {"de": "de", "de-AT": "en", "fr": "en", "pt": "pt-BR"}
    async with core.db.transaction() as tx:
        for locale, lang in people.items():
            await core.person(tx, f"sub_{locale}", locale=locale, lang=lang)
    await core.run(NewJob("subscribers.languages"))
    async with core.db.read() as tx:
        found = await core.subscribers.list_after(tx, PROJECT, SubscriberQuery(), None, 10)

    assert {each.locale: each.lang for each in found} == people | {"de-AT": "de"}


async def test_another_projects_bot_subscribes_nobody(core: MemoryCore, tx: Tx) -> None:
    core.channels.register(ChannelIdentity("bot", "chn_1", "prj_2"), "recording", {})

    with pytest.raises(ForeignBot):
        await subscribe(core, tx, "chn_1")


# ---- subscribers --------------------------------------------------------------------------------


async def test_a_request_names_a_person_in_exactly_one_way(core: MemoryCore) -> None:
    get_recipient = core.subscribers.get_recipient

    with pytest.raises(MutuallyExclusiveIdentifiers):
        await get_recipient(PROJECT, subscriber_id="sub_1", external_id="e1")
    with pytest.raises(ValidationFailed, match="external_id"):
        await get_recipient(PROJECT, subscriber_id=None, external_id=None)
    for wrong in ("", " e1", "e\n1", "e" * 129):
        with pytest.raises(InvalidExternalId):
            await get_recipient(PROJECT, subscriber_id=None, external_id=wrong)
    with pytest.raises(ValidationFailed, match="messenger_a, messenger_b"):
        await get_recipient(PROJECT, subscriber_id="sub_1", external_id=None, channel="fax")


async def test_of_several_with_one_id_a_message_reaches_the_one_who_can_be_reached(
    core: MemoryCore, tx: Tx
) -> None:
    async def add(subscriber_id: str, channel: str, seen_ms: int, **columns: Any) -> None:
        await core.person(
            tx,
            subscriber_id,
            channel=channel,
            external_id="e1",
            last_seen_at_ms=seen_ms,
            **columns,
        )

    async def meant(channel: str | None = None) -> str:
        found = await core.subscribers.get_recipient(
            PROJECT, subscriber_id=None, external_id="e1", channel=channel, tx=tx
        )
        return found.subscriber_id

    with pytest.raises(SubscriberNotFound, match="e1"):
        await meant()
    await add("sub_left", "fax", 9, bot="messenger_b", status="unsubscribed")
    # Whose bot is gone: better than one who has left.
    await add("sub_gone", "support", 8, bot="chn_gone")
    assert await meant() == "sub_gone"
    await add("sub_seen", "messenger_b", 5)
    await add("sub_older", "messenger_a", 4)

    assert await meant() == "sub_seen"
    assert await meant("messenger_a") == "sub_older"


async def test_a_person_is_not_reached_on_a_channel_that_is_not_theirs(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx)

    with pytest.raises(ValidationFailed, match="is on messenger_a"):
        await core.subscribers.get_recipient(
            PROJECT, subscriber_id="sub_1", external_id=None, channel="messenger_b", tx=tx
        )


async def test_a_change_is_refused_before_anything_is_looked_for(core: MemoryCore, tx: Tx) -> None:
    with pytest.raises(ValidationFailed, match="30 bytes"):
        body = UpdateSubscriberBody(attributes={"note": "x" * 30})
        await core.subscribers.change(tx, PROJECT, "sub_9", body)
    with pytest.raises(InvalidExternalId):
        await core.subscribers.change(tx, PROJECT, "sub_9", UpdateSubscriberBody(external_id=" "))


async def test_an_id_that_another_has_on_the_channel_is_taken(core: MemoryCore, tx: Tx) -> None:
    before = await core.person(tx, "sub_1")
    await core.person(tx, "sub_2", external_id="e1")

    with pytest.raises(Conflict, match="another subscriber"):
        await core.subscribers.change(tx, PROJECT, "sub_1", UpdateSubscriberBody(external_id="e1"))
    assert await core.subscribers.get(tx, PROJECT, "sub_1") == before


async def test_new_tags_take_the_place_of_all(core: MemoryCore, tx: Tx) -> None:
    before = await core.person(tx, tags=["old"])
    after = await core.subscribers.change(
        tx, PROJECT, "sub_1", UpdateSubscriberBody(tags=["vip", "new"])
    )

    assert set(after.tags) == {"vip", "new"}
    assert replace(after, tags=before.tags) == before


async def test_who_left_before_leaves_without_an_event(core: MemoryCore, tx: Tx) -> None:
    await core.person(tx)
    left = [
        await core.subscribers.unsubscribe(tx, PROJECT, "sub_1", reason=reason)
        for reason in ("stop", "api")
    ]

    assert left == [True, False]
    assert [event.data["reason"] for event in core.emitted] == ["stop"]


async def test_only_a_person_can_take_back_that_they_blocked_the_bot(
    core: MemoryCore, tx: Tx
) -> None:
    await core.person(tx, "sub_active")
    await core.person(tx, "sub_blocked", status="blocked")
    await core.person(tx, "sub_left", status="unsubscribed")

    with pytest.raises(AlreadySubscribed):
        await core.subscribers.resubscribe(tx, PROJECT, "sub_active")
    with pytest.raises(Conflict, match="blocked the bot"):
        await core.subscribers.resubscribe(tx, PROJECT, "sub_blocked")
    back = await core.subscribers.resubscribe(tx, PROJECT, "sub_left")
    assert back.status == "active"
    assert [event.data["source"] for event in core.emitted] == ["api"]


async def test_a_blocked_bot_is_told_of_to_each_of_its_projects(core: MemoryCore, tx: Tx) -> None:
    await core.project(tx, "prj_2")
    await core.person(tx, "sub_1", user_id="7")
    await core.person(tx, "sub_2", user_id="7", project_id="prj_2")
    await core.person(tx, "sub_3", user_id="7", channel="messenger_b")
    await core.subscribers.block(tx, "messenger_a", "7", reason="user_blocked_bot")

    assert {event.project_id for event in core.emitted} == {PROJECT, "prj_2"}
    assert core.event_names == ["subscription.deleted"] * 2
    assert (await core.subscribers.get(tx, PROJECT, "sub_3")).status == "active"


async def test_a_page_of_one_list_is_not_continued_as_another(core: MemoryCore, tx: Tx) -> None:
    with pytest.raises(BadRequest, match="cursor"):
        await core.subscribers.page(
            tx, PROJECT, SubscriberQuery.model_construct(query=None, cursor="ann\nsub_1")
        )


async def test_who_is_erased_a_moment_before_is_not_found(
    core: MemoryCore, tx: Tx, monkeypatch: pytest.MonkeyPatch
) -> None:
    await core.person(tx)
    start = core.service.get(SubscriberErasure).start

    async def erased_before(tx: Tx, subscriber: Subscriber) -> bool:
        assert await start(tx, subscriber)
        return await start(tx, subscriber)

    monkeypatch.setattr(core.service.get(SubscriberErasure), "start", erased_before)
    with pytest.raises(SubscriberNotFound):
        await core.subscribers.erase(tx, PROJECT, "sub_1")
    assert core.event_names == ["subscription.deleted"]
    assert len(await core.jobs_named(tx, JOB)) == 1


# ---- erasure ------------------------------------------------------------------------------------


async def enter_chat(tx: Tx, channel: str, chat_id: str) -> None:
    """A chat of the user 7 with a bot, of the project."""
    await chats.enter(tx, channel, chat_id, "7", PROJECT, NOW_MS)


async def test_an_erasure_is_told_without_who_it_was(core: MemoryCore, tx: Tx) -> None:
    person = await core.person(tx, user_id="7", username="ann", external_id="e1", tags=["vip"])
    await enter_chat(tx, "messenger_a", person.chat_id)
    await core.subscribers.erase(tx, PROJECT, "sub_1")

    [event] = core.emitted
    assert (event.data["reason"], event.data["subscriber_id"]) == ("erased", "sub_1")
    assert (event.data["first_name"], event.data["username"]) == ("", "")
    assert (event.data["tags"], event.data["external_id"]) == ([], None)
    [job] = await core.jobs_named(tx, JOB)
    assert (job.payload["round"], job.payload["chat_id"]) == (1, person.chat_id)


async def test_a_chat_that_another_project_writes_to_stays(core: MemoryCore, tx: Tx) -> None:
    await core.project(tx, "prj_2")
    person = await core.person(tx, "sub_1", user_id="7")
    await core.person(tx, "sub_2", user_id="7", project_id="prj_2", chat_id=person.chat_id)
    await enter_chat(tx, "messenger_a", person.chat_id)
    # The project has a bot of its own in place of the shared one, which the person has started too.
    bot = {"project_id": PROJECT, "name": "messenger_a", "channel_id": "chn_1", "revision": 1}
    made = {"plugin": "recording", "settings": "", "created_at_ms": 0, "updated_at_ms": 0}
    await tx.insert("core_channels", bot | made)
    await enter_chat(tx, "chn_1", "own 7")
    await core.subscribers.erase(tx, PROJECT, "sub_1")

    left = await tx.fetch_all("SELECT channel, project_id FROM core_chats")
    assert [(chat["channel"], chat["project_id"]) for chat in left] == [("messenger_a", None)]
    [job] = await core.jobs_named(tx, JOB)
    assert "chat_id" not in job.payload


async def test_what_was_under_way_is_looked_for_again_until_nothing_is_left(
    core: MemoryCore,
) -> None:
    asked = list[str]()
    left = [0, 2, 0]

    async def first(ctx: JobContext, project_id: str, subscriber_id: str) -> int:
        asked.append("first")
        return left.pop(0)

    async def second(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
        asked.append("second")

    erasure = SubscriberErasure(
        clock=core.clock,
        jobs=core.jobs,
        events=core.events,
        erasers=[first, second],
        erase_unreadable=core.service.get(Shelf).erase,
    )
    job = claimed(NewJob(JOB, {"subscriber_id": "sub_1", "round": 1}, project_id=PROJECT))
    for _ in range(3):
        await erasure.erase(JobInTest(core.db), [job])
        async with core.db.read() as tx:
            again = await core.jobs_named(tx, JOB)
        job = again[-1]

    assert asked == ["first", "second"] * 3
    assert [each.run_at_ms - NOW_MS for each in again] == [AGAIN_AFTER_S * 1000, WAITING_S * 1000]
