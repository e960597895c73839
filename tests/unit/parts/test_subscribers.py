"""How people become subscribers, what is known of them, and that nothing is left of them."""

from typing import Any

import pytest

from msgsvc_core.channels import ChannelIdentity
from msgsvc_core.channels.failures import ForeignBot
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
from msgsvc_core.subscribers.erasure.job import AGAIN_AFTER_S, JOB, WAITING_S
from msgsvc_core.subscribers.languages import LanguageMapping
from msgsvc_core.subscribers.models import Subscriber, SubscriberQuery, UpdateSubscriberBody
from msgsvc_core.subscribers.permissions.models import CreatePermissionBody
from msgsvc_core.subscribers.service import Subscribers
from msgsvc_core.subscribers.subscribing import Subscribing
from msgsvc_devkit import FakeContext, plugin_context
from msgsvc_devkit.fakes import PROJECT, FakeJobContext, FakeTx, claimed
from msgsvc_devkit.fakes.database import Answer
from tests.unit.parts.people import ANN, erasure_of, greetings_of
from tests.unit.parts.rows import NOW_MS, subscriber_row

# ---- subscribing --------------------------------------------------------------------------------


def subscribing_of(core: FakeContext) -> Subscribing:
    return Subscribing(
        clock=core.clock,
        texts=core.texts,
        events=core.events,
        channels=core.channels,
        tags=core.tags,
        permissions=core.permissions,
        greetings=greetings_of(core),
        preferences=core.subscribers.preferences,
    )


async def subscribe(core: FakeContext, tx: Tx, **more: Any) -> tuple[Subscriber, bool]:
    return await subscribing_of(core).subscribe(
        tx, PROJECT, "messenger_a", ANN, "c7", source="deep_link", **more
    )


NO_CHAT: Answer = []


async def test_who_is_new_is_told_of_once_and_welcomed_with_the_default_permissions() -> None:
    core = plugin_context()
    news = CreatePermissionBody.model_validate({"key": "news", "title": "News", "default": True})
    await core.permissions.create(FakeTx(), PROJECT, news)
    person = [subscriber_row(core.subscribers.person(user_id="7"))]
    # Read once, with the permissions: what was just inserted is known.
    tx = FakeTx(answers=[NO_CHAT, 1, person])
    found, is_new = await subscribe(core, tx)

    assert (found.subscriber_id, is_new) == ("sub_1", True)
    assert core.events.names == ["subscription.created", "subscription.permission_changed"]
    assert ["news"] in core.permissions.granted.values()
    assert len(core.outbox.sent) == 1


async def test_who_is_subscribed_already_is_brought_up_to_date_in_silence() -> None:
    core = plugin_context()
    person = [subscriber_row(core.subscribers.person(user_id="7"))]
    tx = FakeTx(answers=[NO_CHAT, 0, [{"subscriber_id": "sub_1"}], 0, person])
    _, is_new = await subscribe(core, tx, tags=["vip"])

    assert not is_new
    assert (core.events.emitted, core.outbox.sent) == ([], [])


async def test_who_comes_back_is_told_of_and_gets_no_default_permission_again() -> None:
    core = plugin_context()
    news = CreatePermissionBody.model_validate({"key": "news", "title": "News", "default": True})
    await core.permissions.create(FakeTx(), PROJECT, news)
    person = [subscriber_row(core.subscribers.person(user_id="7"))]
    tx = FakeTx(answers=[NO_CHAT, 0, [{"subscriber_id": "sub_1"}], 1, person])
    _, is_new = await subscribe(core, tx)

    assert is_new
    assert core.events.names == ["subscription.created"]
    assert core.permissions.granted[PROJECT, "sub_1"] == []


async def test_who_is_erased_between_two_looks_is_new() -> None:
    core = plugin_context()
    person = [subscriber_row(core.subscribers.person(user_id="7"))]
    tx = FakeTx(answers=[NO_CHAT, 0, [], 1, person])
    _, is_new = await subscribe(core, tx)

    assert is_new


async def test_the_language_chosen_in_the_chat_is_theirs_before_the_messengers() -> None:
    core = plugin_context()
    person = [subscriber_row(core.subscribers.person(user_id="7"))]
    tx = FakeTx(answers=[[{"user_id": "7", "lang": "ru"}], 1, person])
    await subscribe(core, tx)

    assert tx.statements[1][1]["lang"] == "ru"


async def test_tags_are_mapped_again_where_the_setting_prefers_another_language() -> None:
    core = plugin_context()
    pairs = [("de-AT", "en"), ("fr", "en"), ("pt", "pt-BR")]
    known, austrian, french, brazilian = [
        [{"locale": locale, "lang": lang}] for locale, lang in [("de", "de"), *pairs]
    ]
    core.db.answers += [known, austrian, french, brazilian, [], 3]

    await LanguageMapping(languages=("en", "ru", "de", "pt-BR")).map(FakeJobContext(core.db), [])

    ((_, changed),) = [one for one in core.db.statements if one[0].startswith("UPDATE")]
    assert (changed["locale"], changed["before"], changed["lang"]) == ("de-AT", "en", "de")


async def test_another_projects_bot_subscribes_nobody() -> None:
    core = plugin_context()
    core.channels.register(ChannelIdentity("bot", "chn_1", "prj_2"), "recording", {})

    with pytest.raises(ForeignBot):
        await subscribing_of(core).subscribe(
            FakeTx(answers=[NO_CHAT]), PROJECT, "chn_1", ANN, "c7", source="deep_link"
        )


# ---- subscribers --------------------------------------------------------------------------------


def subscribers_of(core: FakeContext) -> Subscribers:
    return Subscribers(
        db=core.db,
        events=core.events,
        channels=core.channels,
        tags=core.tags,
        permissions=core.permissions,
        subscribing=subscribing_of(core),
        erasure=erasure_of(core),
        attributes_bytes=30,
    )


def rows(*people: Subscriber) -> Answer:
    return [subscriber_row(person) for person in people]


async def test_a_request_names_a_person_in_exactly_one_way() -> None:
    subscribers = subscribers_of(plugin_context())

    with pytest.raises(MutuallyExclusiveIdentifiers):
        await subscribers.get_recipient(PROJECT, subscriber_id="sub_1", external_id="e1")
    with pytest.raises(ValidationFailed, match="external_id"):
        await subscribers.get_recipient(PROJECT, subscriber_id=None, external_id=None)
    for wrong in ("", " e1", "e\n1", "e" * 129):
        with pytest.raises(InvalidExternalId):
            await subscribers.get_recipient(PROJECT, subscriber_id=None, external_id=wrong)
    with pytest.raises(ValidationFailed, match="messenger_a, messenger_b"):
        await subscribers.get_recipient(
            PROJECT, subscriber_id="sub_1", external_id=None, channel="fax"
        )


async def test_of_several_with_one_id_a_message_reaches_the_one_who_can_be_reached() -> None:
    core = plugin_context()
    person = core.subscribers.person
    left = person("sub_1", external_id="e1", status="unsubscribed", last_seen_at_ms=9)
    gone = person("sub_2", external_id="e1", bot="chn_gone", last_seen_at_ms=8)
    seen = person("sub_3", external_id="e1", channel="messenger_b", last_seen_at_ms=5)
    older = person("sub_4", external_id="e1", last_seen_at_ms=4)

    async def meant(*people: Subscriber, channel: str | None = None) -> str:
        tx = FakeTx(answers=[rows(*people)])
        found = await subscribers_of(core).get_recipient(
            PROJECT, subscriber_id=None, external_id="e1", channel=channel, tx=tx
        )
        return found.subscriber_id

    assert await meant(left, gone, seen, older) == "sub_3"
    assert await meant(left, gone, seen, older, channel="messenger_a") == "sub_4"
    # Whose bot is gone: better than one who has left.
    assert await meant(left, gone) == "sub_2"
    with pytest.raises(SubscriberNotFound, match="e1"):
        await meant()


async def test_a_person_is_not_reached_on_a_channel_that_is_not_theirs() -> None:
    core = plugin_context()
    tx = FakeTx(answers=[rows(core.subscribers.person())])

    with pytest.raises(ValidationFailed, match="is on messenger_a"):
        await subscribers_of(core).get_recipient(
            PROJECT, subscriber_id="sub_1", external_id=None, channel="messenger_b", tx=tx
        )


async def test_a_change_is_refused_before_anything_is_written() -> None:
    core = plugin_context()
    subscribers, tx = subscribers_of(core), FakeTx()

    with pytest.raises(ValidationFailed, match="30 bytes"):
        body = UpdateSubscriberBody(attributes={"note": "x" * 30})
        await subscribers.change(tx, PROJECT, "sub_1", body)
    with pytest.raises(InvalidExternalId):
        await subscribers.change(tx, PROJECT, "sub_1", UpdateSubscriberBody(external_id=" "))


async def test_an_id_that_another_has_on_the_channel_is_taken() -> None:
    core = plugin_context()
    person = rows(core.subscribers.person())
    tx = FakeTx(answers=[person, 0, person])

    with pytest.raises(Conflict, match="another subscriber"):
        await subscribers_of(core).change(
            tx, PROJECT, "sub_1", UpdateSubscriberBody(external_id="e1")
        )


async def test_new_tags_take_the_place_of_all() -> None:
    core = plugin_context()
    person = rows(core.subscribers.person(tags=["old"]))
    tx = FakeTx(answers=[person, 1, person])
    await subscribers_of(core).change(
        tx, PROJECT, "sub_1", UpdateSubscriberBody(tags=["vip", "new"])
    )

    assert core.tags.carried[PROJECT, "sub_1"] == ["vip", "new"]
    assert set(tx.statements[1][1]) == {"project_id", "subscriber_id"}


async def test_who_left_before_leaves_without_an_event() -> None:
    core = plugin_context()
    person = core.subscribers.person()
    subscribers = subscribers_of(core)

    assert await subscribers.unsubscribe(
        FakeTx(answers=[1, rows(person)]), PROJECT, "sub_1", reason="stop"
    )
    assert not await subscribers.unsubscribe(
        FakeTx(answers=[0, rows(person)]), PROJECT, "sub_1", reason="stop"
    )
    assert [event.data["reason"] for event in core.events.emitted] == ["stop"]


async def test_only_a_person_can_take_back_that_they_blocked_the_bot() -> None:
    core = plugin_context()
    subscribers = subscribers_of(core)
    active, blocked = core.subscribers.person(), core.subscribers.person(status="blocked")

    with pytest.raises(AlreadySubscribed):
        await subscribers.resubscribe(FakeTx(answers=[0, rows(active)]), PROJECT, "sub_1")
    with pytest.raises(Conflict, match="blocked the bot"):
        await subscribers.resubscribe(FakeTx(answers=[0, rows(blocked)]), PROJECT, "sub_1")
    await subscribers.resubscribe(FakeTx(answers=[1, rows(active)]), PROJECT, "sub_1")
    assert [event.data["source"] for event in core.events.emitted] == ["api"]


async def test_a_blocked_bot_is_told_of_to_each_of_its_projects() -> None:
    core = plugin_context()
    ours, theirs = core.subscribers.person(), core.subscribers.person("sub_2", project_id="prj_2")
    ended: Answer = [
        {"project_id": each.project_id, "subscriber_id": each.subscriber_id}
        for each in (ours, theirs)
    ]
    tx = FakeTx(answers=[ended, rows(ours), rows(theirs)])
    await subscribers_of(core).block(tx, "messenger_a", "1", reason="user_blocked_bot")

    assert [event.project_id for event in core.events.emitted] == [PROJECT, "prj_2"]


async def test_a_page_of_one_list_is_not_continued_as_another() -> None:
    with pytest.raises(BadRequest, match="cursor"):
        await subscribers_of(plugin_context()).page(
            FakeTx(), PROJECT, SubscriberQuery.model_construct(query=None, cursor="ann\nsub_1")
        )


async def test_who_is_erased_a_moment_before_is_not_found() -> None:
    core = plugin_context()
    person = rows(core.subscribers.person())
    already_gone: list[Answer] = [person, [], [], 0, [], 0]

    with pytest.raises(SubscriberNotFound):
        await subscribers_of(core).erase(FakeTx(answers=already_gone), PROJECT, "sub_1")
    assert core.events.emitted == []


# ---- erasure ------------------------------------------------------------------------------------

CHATS: Answer = [
    {"channel": "messenger_a", "chat_id": "chat 1"},
    {"channel": "messenger_b", "chat_id": "b1"},
]


async def test_an_erasure_is_told_without_who_it_was() -> None:
    core = plugin_context()
    person = core.subscribers.person(username="ann", external_id="e1", tags=["vip"])
    # Their chats, bots of other projects, offers, chats, the project's, whether it is there, the row.
    tx = FakeTx(answers=[CHATS, [], 2, 0, 2, 0, [], 1])
    assert await erasure_of(core).start(tx, person)

    [event] = core.events.emitted
    assert (event.data["reason"], event.data["subscriber_id"]) == ("erased", "sub_1")
    assert (event.data["first_name"], event.data["username"]) == ("", "")
    assert (event.data["tags"], event.data["external_id"]) == ([], None)
    [job] = core.jobs.named(JOB)
    assert (job.payload["round"], job.payload["chat_id"]) == (1, "chat 1")


async def test_a_chat_that_another_project_writes_to_stays() -> None:
    core = plugin_context()
    tx = FakeTx(answers=[CHATS, [{"bot": "messenger_a"}], 2, 0, 1, 1, [{"found": 1}], 1])
    await erasure_of(core).start(tx, core.subscribers.person())

    deleted = [params["keys"] for sql, params in tx.statements if "FROM core_chats WHERE (" in sql]
    assert deleted == ['[["messenger_b","b1"]]']
    assert "chat_id" not in core.jobs.named(JOB)[0].payload


async def test_what_was_under_way_is_looked_for_again_until_nothing_is_left() -> None:
    core, asked = plugin_context(), list[str]()
    left = [3, 2, 0]

    async def first(ctx: JobContext, project_id: str, subscriber_id: str) -> int:
        asked.append("first")
        return left.pop(0)

    async def second(ctx: JobContext, project_id: str, subscriber_id: str) -> None:
        asked.append("second")

    waits = []
    payload: dict[str, Any] = {"subscriber_id": "sub_1", "round": 1}
    for _ in range(3):
        job = claimed(NewJob(JOB, payload, project_id=PROJECT))
        await erasure_of(core, first, second).erase(FakeJobContext(core.db), [job])
        if again := core.jobs.named(JOB):
            core.jobs.enqueued.clear()
            payload = again[0].payload
            waits.append((again[0].run_at_ms or 0) - NOW_MS)

    assert asked == ["first", "second"] * 3
    assert waits == [AGAIN_AFTER_S * 1000, WAITING_S * 1000]
