"""Paid broadcasts: faster than the free rate while Stars are left, never beyond the day's budget."""

import asyncio
from typing import Any

import pytest

from msgsvc_core.channels import (
    ChannelIdentity,
    ChannelSpending,
    DeliveryError,
    OutgoingMessage,
    Reason,
)
from msgsvc_core.channels.project_channels.models import CreateChannelBody
from msgsvc_core.channels.project_channels.service import ProjectChannels
from msgsvc_core.service import Service
from msgsvc_dashboard import plugin as dashboard
from msgsvc_devkit import FakeClock, settled
from msgsvc_devkit.dashboard import visitor
from msgsvc_devkit.fixtures import ServiceFactory
from msgsvc_devkit.platforms.telegram import FakeTelegram, Limits, Person
from msgsvc_telegram import plugin
from msgsvc_telegram.channel import TelegramChannel
from msgsvc_telegram.settings import TelegramSettings

DAY_S = 24 * 3600

#: Two Stars: twenty messages.
STARS = 2


@pytest.fixture
async def service(make_service: ServiceFactory, telegram: FakeTelegram) -> Service:
    operators = {"telegram": {"base_url": telegram.url}}
    return await make_service(
        extra_plugins=[("telegram", plugin), ("dashboard", dashboard)],
        own_channels={"settings": operators},
    )


@pytest.fixture
def bot(service: Service, telegram: FakeTelegram) -> TelegramChannel:
    return made(service, telegram)


def made(service: Service, telegram: FakeTelegram, **settings: Any) -> TelegramChannel:
    values = {
        "token": telegram.bot.token,
        "base_url": telegram.url,
        "paid_broadcast_stars": STARS,
        "per_bot_s": 3,
    }
    return TelegramChannel(
        service.channels.kinds.context,
        ChannelIdentity("bot", key="bot"),
        TelegramSettings.model_validate(values | settings),
    )


async def people(telegram: FakeTelegram, count: int) -> list[Person]:
    found = [telegram.person(f"Person {number}") for number in range(count)]
    for person in found:
        await person.start()
    return found


async def sent(bot: TelegramChannel, persons: list[Person]) -> list[bool]:
    """Whether each got a message."""

    async def send(person: Person) -> bool:
        try:
            await bot.send(str(person.user_id), OutgoingMessage("Hi"))
        except DeliveryError:
            return False
        return True

    return [await send(person) for person in persons]


def paid(telegram: FakeTelegram) -> int:
    return sum("allow_paid_broadcast" in call.params for call in telegram.calls_of("sendMessage"))


@pytest.mark.both_databases
async def test_only_messages_beyond_the_free_rate_are_paid(
    bot: TelegramChannel, telegram: FakeTelegram, service: Service
) -> None:
    telegram.limits, telegram.bot.star_tenths = Limits(per_bot_s=3), 1000

    assert all(await sent(bot, await people(telegram, 10)))
    assert bot.pace.per_bot_s == 1000
    assert paid(telegram) == 7
    assert telegram.bot.star_tenths == 993
    await bot.close()


@pytest.mark.both_databases
async def test_nothing_is_paid_beyond_the_budget_and_the_free_pace_applies_until_the_next_day(
    bot: TelegramChannel, telegram: FakeTelegram, service: Service, clock: FakeClock
) -> None:
    persons = await people(telegram, 30)
    got = await sent(bot, persons)

    assert got == [True] * 23 + [False] * 7
    assert paid(telegram) == 20
    with pytest.raises(DeliveryError, match="budget of paid broadcasts") as refused:
        await bot.send(str(persons[0].user_id), OutgoingMessage("Hi"))
    assert (refused.value.reason, refused.value.scope) == (Reason.RATE_LIMITED, "bot")
    assert bot.pace.per_bot_s == 3
    # The others wait for the pace, and are free.
    clock.advance(3)
    assert all(await sent(bot, persons[23:]))
    assert paid(telegram) == 20
    clock.advance(DAY_S)
    assert bot.pace.per_bot_s == 1000
    assert all(await sent(bot, persons[:23]))
    assert paid(telegram) == 40
    await bot.close()


@pytest.mark.both_databases
async def test_processes_share_the_budget_and_a_restart_does_not_renew_it(
    telegram: FakeTelegram, service: Service
) -> None:
    persons = await people(telegram, 30)
    bots = [made(service, telegram) for _ in range(3)]
    await asyncio.gather(*(sent(bot, persons) for bot in bots))

    assert paid(telegram) == 20
    for bot in bots:
        await bot.close()


async def test_a_refused_message_costs_nothing(
    bot: TelegramChannel, telegram: FakeTelegram, service: Service
) -> None:
    anna = (await people(telegram, 1))[0]
    assert all(await sent(bot, [anna] * 3))
    telegram.fail_next("sendMessage", 429, "Too Many Requests: retry after 1", times=10)
    assert not any(await sent(bot, [anna] * 10))

    assert sum(await sent(bot, [anna] * 30)) == 20
    await bot.close()


@pytest.mark.both_databases
async def test_an_amount_is_taken_whole_or_not_at_all(
    telegram: FakeTelegram, service: Service
) -> None:
    spending = ChannelSpending(clock=service.clock, db=service.db)
    budget = made(service, telegram).budget
    assert budget is not None

    assert (budget.most, budget.unit, budget.in_units(25)) == (20, "Stars", 2.5)
    assert not await spending.take("bot", 21, budget)
    assert await spending.take("bot", 20, budget)
    assert not await spending.take("bot", 1, budget)


@pytest.mark.both_databases
async def test_the_page_and_the_answer_of_the_channel_tell_what_is_spent(
    telegram: FakeTelegram, service: Service
) -> None:
    project = await service.projects.create("Shop")
    owner = await visitor(service, project.project_id)
    body = CreateChannelBody(
        name="our_bot",
        plugin="telegram",
        settings={"token": telegram.bot.token, "paid_broadcast_stars": 100},
    )
    async with service.db.transaction() as tx:
        own = await service.get(ProjectChannels).create(tx, project.project_id, body)
    channel = service.channels[own.channel_id]
    assert channel.budget is not None
    spending = ChannelSpending(clock=service.clock, db=service.db)
    assert await spending.take(own.channel_id, 125, channel.budget)
    async with service.db.read() as tx:
        [answer] = await service.get(ProjectChannels).answers(tx, [own])

    assert answer.budget is not None
    assert (answer.budget.spent, answer.budget.most) == (12.5, 100)
    assert "12.5 of 100 Stars" in (await owner.get("/channels/our_bot")).text
    async with service.db.transaction() as tx:
        await service.get(ProjectChannels).delete(tx, project.project_id, "our_bot")
    async with service.db.read() as tx:
        assert await tx.fetch_val("SELECT COUNT(*) FROM core_channel_spending") == 0
    await settled(service)
