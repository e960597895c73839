"""Each bot is received for by one process, which loses nothing and takes nothing twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from msgsvc_core.channels import InboundContext, InboundRule
from msgsvc_core.channels.health.states import ChannelStates
from msgsvc_core.channels.reception.receiver import UpdateReceiver
from msgsvc_core.plugins.hookspecs import hookimpl
from msgsvc_core.service import Service
from msgsvc_devkit import FakeClock, until
from msgsvc_devkit.fixtures import ServiceFactory, Tenant
from msgsvc_devkit.runners import TestRunner
from tests.channels.conftest import AddBot, knows_bot
from tests.channels.messenger import Bot, Platform, started


class Guests:
    """A plugin that notes who started a bot; `fail` makes it fail for some."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fail: set[str] = set()

    @hookimpl
    def register_inbound(self) -> Sequence[InboundRule]:
        return [InboundRule("start", self._started, prefix="guest_")]

    async def _started(self, ctx: InboundContext) -> None:
        payload = ctx.update.payload  # type: ignore[attr-defined] # a start, by the rule
        if payload in self.fail:
            raise ZeroDivisionError
        ctx.tx.on_commit(lambda: self.seen.append(payload))


@pytest.fixture
def guests() -> Guests:
    return Guests()


@pytest.fixture
async def service(
    make_service: ServiceFactory, platform: Platform, guests: Guests, settings: dict[str, Any]
) -> Service:
    plugins = [("fake", platform), ("guests", guests)]
    return await make_service(extra_plugins=plugins, **settings)


@pytest.fixture
async def beside(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    guests: Guests,
    settings: dict[str, Any],
) -> Service:
    plugins = [("fake", platform), ("guests", guests)]
    url = service.settings.database_url
    return await make_service(extra_plugins=plugins, database_url=url, **settings)


def bring(bot: Bot, *numbers: int) -> None:
    """Somebody opens a link to the bot, once for each number."""
    for number in numbers:
        bot.bring(started(f"guest_{number}", update_id=f"u{number:06}"))


async def saw(guests: Guests, count: int) -> list[str]:
    async def enough() -> bool:
        return len(guests.seen) >= count

    await until(enough)
    return guests.seen


async def polled_again(bot: Bot, times: int = 3) -> None:
    """Returns when the bot has been asked for updates some more times."""
    before = len(bot.polls)

    async def more() -> bool:
        return len(bot.polls) >= before + times

    await until(more)


@asynccontextmanager
async def stopped_dead(service: Service) -> AsyncIterator[None]:
    """The process takes no part any more, and gives nothing back, as if it had been killed."""
    receiver = service.get(UpdateReceiver)
    assert receiver._keeper is not None
    receiver._keeper.cancel()
    await receiver._stop_tasks(list(receiver._tasks))
    yield


async def test_one_process_at_a_time_asks_for_a_bots_updates(
    service: Service, beside: Service, platform: Platform, guests: Guests
) -> None:
    bot = platform.bots["shared"]
    bring(bot, 1, 2, 3)

    seen = await saw(guests, 3)
    await polled_again(bot)

    assert seen == ["guest_1", "guest_2", "guest_3"]
    assert bot.most_polling == 1
    assert bot.waiting == []


@pytest.mark.parametrize(
    ("backend", "runner"),
    [("postgresql", "embedded"), ("postgresql", "redis"), ("sqlite", "embedded")],
    indirect=True,
)
async def test_what_came_is_answered_by_whoever_runs_jobs(
    service: Service, runner: TestRunner, platform: Platform
) -> None:
    bot = platform.bots["shared"]

    bot.bring(started("", update_id="u1"))

    async def answered() -> bool:
        return bool(bot.texts)

    await until(answered)
    assert bot.texts == ["Hello! To start, open a link from a site that uses this bot."]


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_another_process_goes_on_where_a_stopped_one_left_off(
    service: Service, beside: Service, platform: Platform, guests: Guests
) -> None:
    bot = platform.bots["shared"]
    bring(bot, 1, 2)
    await saw(guests, 2)
    await polled_again(bot)

    await service.get(UpdateReceiver).stop()
    bot.polls.clear()
    bring(bot, 3)
    seen = await saw(guests, 3)

    assert seen == ["guest_1", "guest_2", "guest_3"]
    assert bot.polls[0] == "u000002"
    assert bot.most_polling == 1


@pytest.mark.database_file
@pytest.mark.both_databases
async def test_another_process_takes_over_when_the_lease_of_a_dead_one_is_over(
    service: Service, beside: Service, platform: Platform, guests: Guests, clock: FakeClock
) -> None:
    bot = platform.bots["shared"]
    bring(bot, 1)
    await saw(guests, 1)
    async with stopped_dead(service):
        bring(bot, 2)
        clock.advance(service.settings.jobs.lease_s - 1)
        await asyncio.sleep(0.1)  # long enough for one that would not wait
        during_the_lease = list(guests.seen)
        clock.advance(2)

        seen = await saw(guests, 2)

    assert during_the_lease == ["guest_1"]
    assert seen == ["guest_1", "guest_2"]


async def test_updates_that_were_taken_but_not_acknowledged_have_one_effect(
    service: Service, beside: Service, platform: Platform, guests: Guests, clock: FakeClock
) -> None:
    """The process dies between taking updates and noting it."""
    bot = platform.bots["shared"]
    await polled_again(bot)
    bring(bot, 1, 2, 3)
    await saw(guests, 3)
    async with stopped_dead(service):
        async with service.db.transaction() as tx:
            # As if it had died before it noted anything: all comes again.
            await tx.execute("UPDATE core_bots SET cursor = NULL")
        bring(bot, 1, 2, 3, 4)
        clock.advance(service.settings.jobs.lease_s + 1)
        seen = await saw(guests, 4)

    assert seen == [f"guest_{number}" for number in (1, 2, 3, 4)]


async def test_a_process_that_lost_its_lease_notes_nothing(
    make_service: ServiceFactory, platform: Platform, guests: Guests, settings: dict[str, Any]
) -> None:
    """It was asleep, say, and another has taken over."""
    # So long that it does not look whether it still has its lease, and ends, before the update came.
    jobs = {**settings["jobs"], "lease_s": 3600}
    service = await make_service(
        extra_plugins=[("fake", platform), ("guests", guests)], **{**settings, "jobs": jobs}
    )
    bot = platform.bots["shared"]
    await polled_again(bot)
    bot.may_answer.clear()
    async with service.db.transaction() as tx:
        await tx.execute("UPDATE core_lanes SET owner = 'somebody' WHERE lane LIKE 'receive:%'")
    bring(bot, 1)
    bot.may_answer.set()
    await saw(guests, 1)
    await polled_again(bot, 1)

    async with service.db.read() as tx:
        noted = await tx.fetch_val("SELECT cursor FROM core_bots WHERE channel = 'messenger_a'")

    assert noted is None


async def test_a_handler_that_fails_does_not_stop_the_bot(
    service: Service, platform: Platform, guests: Guests
) -> None:
    guests.fail = {"guest_2"}

    bring(platform.bots["shared"], 1, 2, 3)

    assert await saw(guests, 2) == ["guest_1", "guest_3"]


async def test_a_platform_that_is_away_is_asked_again(
    service: Service, platform: Platform, guests: Guests
) -> None:
    bot = platform.bots["shared"]
    bot.away = True
    await polled_again(bot, 1)

    bot.away = False
    bring(bot, 1)

    assert await saw(guests, 1) == ["guest_1"]


async def test_a_bot_that_a_project_adds_is_received_for_until_it_is_removed(
    service: Service,
    beside: Service,
    platform: Platform,
    guests: Guests,
    tenant: Any,
    add_bot: AddBot,
) -> None:
    made = await add_bot("own_bot")
    bot = platform.bots["own"]
    await knows_bot(beside, made["channel_id"])
    bring(bot, 1)
    await saw(guests, 1)

    await tenant.client.delete("/v1/channels/own_bot")

    async def closed_everywhere() -> bool:
        return bot.closed == 2 and not bot.polling

    await until(closed_everywhere)
    asked = len(bot.polls)
    await polled_again(platform.bots["shared"])
    assert len(bot.polls) == asked


async def test_a_changed_bot_is_received_for_from_the_start(
    service: Service,
    beside: Service,
    platform: Platform,
    guests: Guests,
    tenant: Any,
    add_bot: AddBot,
) -> None:
    """Another token is another bot, whose updates may have the same ids."""
    await add_bot("own_bot")
    bring(platform.bots["own"], 5)
    await saw(guests, 1)
    await polled_again(platform.bots["own"])

    await tenant.client.patch("/v1/channels/own_bot", json={"settings": {"token": "new"}})
    bring(platform.bots["new"], 2, 5)
    seen = await saw(guests, 3)

    assert seen == ["guest_5", "guest_2", "guest_5"]
    assert platform.bots["new"].polls[0] is None
    assert platform.bots["new"].most_polling == 1


@pytest.mark.both_databases
async def test_links_work_at_once_while_the_platform_is_away(
    service: Service,
    make_service: ServiceFactory,
    platform: Platform,
    settings: dict[str, Any],
    add_bot: AddBot,
) -> None:
    made = await add_bot("own_bot")
    await knows_bot(service, "messenger_a")
    for bot in platform.bots.values():
        bot.away = True

    beside = await make_service(
        extra_plugins=[("fake", platform)], database_url=service.settings.database_url, **settings
    )

    for key in ("messenger_a", made["channel_id"]):
        assert beside.channels[key].link("hello") == service.channels[key].link("hello")
        assert beside.channels[key].link("hello") is not None


async def test_who_a_bot_is_reaches_the_processes_that_do_not_ask(
    service: Service, beside: Service, platform: Platform
) -> None:
    await knows_bot(service, "messenger_a")
    await knows_bot(beside, "messenger_a")

    assert platform.bots["shared"].checks == 1


async def test_links_go_on_working_when_another_setting_changes(
    service: Service, beside: Service, platform: Platform, tenant: Any, add_bot: AddBot
) -> None:
    made = await add_bot("own_bot")
    key, bot = made["channel_id"], platform.bots["own"]
    await knows_bot(beside, key)
    bot.away = True

    changed = await tenant.client.patch(
        "/v1/channels/own_bot", json={"settings": {"greeting": "hi"}}
    )
    away = {one.channels[key].link("hello") for one in (service, beside)}
    bot.away = False
    await tenant.client.patch("/v1/channels/own_bot", json={"settings": {"token": "new"}})

    link = "https://fake.example/{}?start=hello"
    new = link.format(platform.bots["new"].username)

    async def both_lead_to_the_new_bot() -> bool:
        return {one.channels[key].link("hello") for one in (service, beside)} == {new}

    await until(both_lead_to_the_new_bot)
    assert changed.json()["settings"]["greeting"] == "hi"
    assert away == {link.format(bot.username)}


async def test_a_refused_token_stops_the_bot_before_anything_is_sent(
    service: Service, tenant: Tenant, platform: Platform, add_bot: AddBot
) -> None:
    platform.bots["wrong"].revoked = True
    await tenant.client.post(
        "/v1/channels",
        json={"name": "shop", "plugin": "fake", "settings": {"token": "wrong"}},
    )

    async def stopped() -> bool:
        shown = (await tenant.client.get("/v1/channels/shop")).json()
        return bool(shown["status"] == "stopped" and shown["detail"] == "the token is refused")

    await until(stopped)


async def test_a_token_that_was_mended_in_the_configuration_sets_the_bot_going_at_the_start(
    make_service: ServiceFactory, platform: Platform, settings: dict[str, Any]
) -> None:
    platform.bots["wrong"].revoked = True
    wrong = {**settings, "channels": {"messenger_a": {"plugin": "fake", "token": "wrong"}}}
    before = await make_service(extra_plugins=[("fake", platform)], **wrong)

    async def stopped(service: Service) -> bool:
        async with service.db.read() as tx:
            return bool(await service.get(ChannelStates).troubled(tx))

    await until(lambda: stopped(before))
    await before.get(UpdateReceiver).stop()
    url = before.settings.database_url
    after = await make_service(extra_plugins=[("fake", platform)], database_url=url, **settings)

    async def works() -> bool:
        return not await stopped(after)

    await until(works)
