"""Topics in private chats, which are the threads of the contract."""

from typing import Any

import pytest

from msgsvc_core.channels import Channel, DeliveryError, Media, OutgoingMessage, Reason
from msgsvc_devkit import FakeClock
from msgsvc_devkit.platforms.telegram import FakeTelegram, Person
from msgsvc_telegram.client import BotApi
from msgsvc_telegram.settings import TelegramSettings
from msgsvc_telegram.topics import Topics
from plugins.channels.telegram.tests.conftest import PNG


def chat(person: Person) -> str:
    return str(person.user_id)


def names(telegram: FakeTelegram) -> list[str]:
    return [name for one in telegram.bot.chats.values() for name in one.topics.values()]


async def test_a_bot_without_topics_opens_none(
    telegram: FakeTelegram, channel: Channel, anna: Person
) -> None:
    assert await channel.open_thread(chat(anna), "#1 My parcel") is None
    assert names(telegram) == []


async def test_topics_that_were_enabled_are_seen_within_ten_minutes(
    telegram: FakeTelegram, anna: Person
) -> None:
    values = {"token": telegram.bot.token, "base_url": telegram.url}
    api, clock = BotApi(TelegramSettings.model_validate(values)), FakeClock()
    topics = Topics(api=api, clock=clock)
    assert await topics.open(anna.user_id, "#1") is None
    telegram.bot.has_topics = True
    clock.advance(599)
    assert await topics.open(anna.user_id, "#2") is None
    clock.advance(1)

    assert await topics.open(anna.user_id, "#3") == str(anna.topic("#3"))
    assert len(telegram.calls_of("getMe")) == 2
    await api.close()


async def test_a_check_tells_whether_there_are_topics(
    telegram: FakeTelegram, channel: Channel, anna: Person
) -> None:
    telegram.bot.has_topics = True
    await channel.check()
    asked = len(telegram.calls_of("getMe"))

    await channel.open_thread(chat(anna), "#1")

    assert len(telegram.calls_of("getMe")) == asked


async def test_topics_that_were_disabled_are_asked_about_after_the_refusal(
    telegram: FakeTelegram, channel: Channel, anna: Person
) -> None:
    telegram.bot.has_topics = True
    await channel.open_thread(chat(anna), "#1")
    telegram.bot.has_topics = False

    with pytest.raises(DeliveryError) as refused:
        await channel.open_thread(chat(anna), "#2")

    assert refused.value.reason is Reason.INVALID_MESSAGE
    assert await channel.open_thread(chat(anna), "#3") is None


@pytest.mark.parametrize(("parameters", "pause_s"), [({"retry_after": 30}, 30), ({}, 60)])
async def test_a_limit_of_topics_opens_none_until_it_is_over(
    telegram: FakeTelegram, anna: Person, parameters: dict[str, Any], pause_s: float
) -> None:
    """As an error of the channel it would pause all that the bot sends."""
    telegram.bot.has_topics = True
    values = {"token": telegram.bot.token, "base_url": telegram.url}
    api, clock = BotApi(TelegramSettings.model_validate(values)), FakeClock()
    topics = Topics(api=api, clock=clock)
    telegram.fail_next("createForumTopic", 429, "Too Many Requests", parameters=parameters)

    assert await topics.open(anna.user_id, "#1") is None
    clock.advance(pause_s - 1)
    assert await topics.open(anna.user_id, "#2") is None
    clock.advance(1)
    assert await topics.open(anna.user_id, "#3") == str(anna.topic("#3"))
    assert len(telegram.calls_of("createForumTopic")) == 2
    await api.close()


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("#1 My\nparcel ", "#1 My parcel"),
        (" \n", "…"),
        ("x" * 128, "x" * 128),
        ("x" * 129, "x" * 127 + "…"),
    ],
)
async def test_a_title_becomes_a_name_of_1_to_128_characters(
    telegram: FakeTelegram, channel: Channel, anna: Person, title: str, name: str
) -> None:
    telegram.bot.has_topics = True
    await channel.open_thread(chat(anna), title)

    assert names(telegram) == [name]


async def test_groups_get_no_topics(telegram: FakeTelegram, channel: Channel) -> None:
    telegram.bot.has_topics = True

    assert await channel.open_thread(str(telegram.bot.group().chat_id), "#1") is None


async def test_a_file_goes_into_its_topic_and_beside_it_once_that_is_gone(
    telegram: FakeTelegram, channel: Channel, anna: Person
) -> None:
    telegram.bot.has_topics = True
    thread = await channel.open_thread(chat(anna), "#1")
    message = OutgoingMessage(
        "Look", media=Media("image", telegram.host_file("cup.png", PNG, "image/png"))
    ).in_thread(thread)
    await channel.send(chat(anna), message)
    there = anna.messages[-1].topic
    anna.delete_topic(anna.topic("#1"))
    await channel.send(chat(anna), message)

    assert (str(there), anna.messages[-1].topic) == (thread, None)


async def test_a_message_stays_unsent_where_topics_are_no_reason(
    telegram: FakeTelegram, channel: Channel, anna: Person
) -> None:
    telegram.fail_next("sendMessage", 400, "Bad Request: message thread not found")

    with pytest.raises(DeliveryError):
        await channel.send(chat(anna), OutgoingMessage("Hello"))


async def test_a_thread_that_was_no_topic_is_refused_without_a_call(
    telegram: FakeTelegram, channel: Channel, anna: Person
) -> None:
    before = len(telegram.calls)
    with pytest.raises(DeliveryError) as refused:
        await channel.send(chat(anna), OutgoingMessage("Hello").in_thread("elsewhere"))

    assert refused.value.reason is Reason.INVALID_MESSAGE
    assert len(telegram.calls) == before
