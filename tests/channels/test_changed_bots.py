"""What a bot was told, or found out, counts for it alone: not for another bot, nor for the next one."""

import asyncio
from typing import Any

import httpx2
import pytest

from msgsvc_core.channels import DeliveryError, OutgoingMessage, Reason
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, settled, until
from msgsvc_devkit.fixtures import ServiceFactory
from tests.channels.conftest import AddBot, knows_bot
from tests.channels.messenger import Bot, Platform

TOLD_TO_WAIT = DeliveryError(Reason.RATE_LIMITED, "slow down", 3600)


async def say(service: Service, key: str, text: str) -> None:
    async with service.db.transaction() as tx:
        await service.outbox.send(tx, key, "chat-Ann", OutgoingMessage(text))


async def has_sent(bot: Bot, *texts: str) -> None:
    async def found() -> bool:
        return bot.texts == list(texts)

    await until(found)


async def _is(true: bool) -> bool:
    return true


async def profile_of(service: Service, key: str) -> str:
    async with service.db.read() as tx:
        return str(
            await tx.fetch_val("SELECT profile FROM core_bots WHERE channel = :key", {"key": key})
        )


async def test_two_bots_that_know_a_person_by_the_same_chat_do_not_wait_for_each_other(
    service: Service, platform: Platform, add_bot: AddBot
) -> None:
    made = await add_bot("messenger_a", receiving="nothing")
    own, shared = platform.bots["own"], platform.bots["shared"]
    own.may_answer.clear()
    await say(service, made["channel_id"], "by the own one")

    async def calling() -> bool:
        return own.calling == 1

    await until(calling)
    await say(service, "messenger_a", "by the shared one")
    await has_sent(shared, "by the shared one")

    assert own.texts == []
    own.may_answer.set()


async def test_another_bot_need_not_wait_as_the_one_before_it_was_told_to(
    service: Service, client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    made = await add_bot("messenger_a")
    platform.bots["own"].failures = [TOLD_TO_WAIT]
    await say(service, made["channel_id"], "Hello")
    await settled(service)

    await client.patch("/v1/channels/messenger_a", json={"settings": {"token": "other"}})

    await has_sent(platform.bots["other"], "Hello")


async def test_the_same_bot_waits_as_it_was_told_to_whatever_else_is_set(
    service: Service, client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    made = await add_bot("messenger_a")
    platform.bots["own"].failures = [TOLD_TO_WAIT]
    await say(service, made["channel_id"], "Hello")
    await settled(service)

    await client.patch("/v1/channels/messenger_a", json={"settings": {"greeting": "Hi"}})
    await settled(service)

    async with service.db.read() as tx:
        state = await service.get(ChannelStates).find(tx, made["channel_id"])
    assert state is not None
    assert state.paused_until_ms > service.clock.now_ms() + 3000_000
    assert platform.bots["own"].texts == []


async def test_a_late_ban_of_the_bot_before_does_not_stop_the_one_in_its_place(
    service: Service, client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    made = await add_bot("messenger_a", receiving="nothing")
    own = platform.bots["own"]
    own.may_answer.clear()
    own.failures = [DeliveryError(Reason.BOT_BANNED, "the token was revoked")]
    await say(service, made["channel_id"], "Hello")
    await until(lambda: _is(own.calling == 1))
    before = service.channels[made["channel_id"]]

    settings = {"token": "other", "receiving": "nothing"}
    await client.patch("/v1/channels/messenger_a", json={"settings": settings})
    await until(lambda: _is(service.channels[made["channel_id"]] is not before))
    own.may_answer.set()

    await has_sent(platform.bots["other"], "Hello")
    async with service.db.read() as tx:
        assert await service.get(ChannelStates).troubled(tx) == []


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_what_a_check_says_of_a_bot_that_was_changed_meanwhile_is_not_kept(
    service: Service, client: httpx2.AsyncClient, platform: Platform, add_bot: AddBot
) -> None:
    made = await add_bot("messenger_a")
    own = platform.bots["own"]
    own.username = "renamed"
    own.may_be_checked.clear()
    asked = own.checks
    check = asyncio.create_task(client.post("/v1/channels/messenger_a/check", json={}))

    async def is_asked() -> bool:
        return own.checks > asked

    async def is_other() -> bool:
        known = await profile_of(service, made["channel_id"])
        return platform.bots["other"].username in known

    await until(is_asked)
    await client.patch("/v1/channels/messenger_a", json={"settings": {"token": "other"}})
    await until(is_other)
    own.may_be_checked.set()
    await check

    assert await is_other()


async def test_what_waits_for_a_stopped_bot_ends_when_it_is_configured_no_more(
    service: Service,
    platform: Platform,
    make_service: ServiceFactory,
    settings: dict[str, Any],
    clock: FakeClock,
) -> None:
    url = service.settings.database_url
    channels = {**settings["channels"], "messenger_c": {"plugin": "fake", "token": "c"}}
    await service.stop()
    before = await make_service(
        extra_plugins=[("fake", platform)],
        database_url=url,
        **{**settings, "channels": channels},
    )
    await knows_bot(before, "messenger_c")
    platform.bots["c"].revoked = True
    # So that the answer of a check that is still under way is known to be older.
    clock.advance(1)
    async with before.db.transaction() as tx:
        banned = before.channels["messenger_c"]
        await before.get(ChannelStates).stop(tx, banned, "bot_banned", "the token was revoked")
    await say(before, "messenger_c", "Hello")
    await settled(before)
    await before.stop()

    after = await make_service(extra_plugins=[("fake", platform)], database_url=url, **settings)

    async def over() -> bool:
        async with after.db.read() as tx:
            lane = {"lane": "channel:messenger_c"}
            return not await tx.fetch_val("SELECT 1 FROM core_jobs WHERE lane = :lane", lane)

    await until(over)
    assert platform.bots["c"].texts == []
