"""The core's commands over Telegram's Bot API: /stop, /settings and /lang, over real HTTP."""

import pytest
import structlog

from msgsvc_core.channels import BotCommand, DeliveryError, Reason
from msgsvc_core.channels.reception.health import ReceptionHealth
from msgsvc_core.channels.reception.receiver import MENUS_AT_ONCE, UpdateReceiver
from msgsvc_devkit import until
from msgsvc_devkit.platforms.telegram import FakeTelegram, Person
from msgsvc_telegram.channel import TelegramChannel
from plugins.channels.telegram.tests.conftest import Site, SiteFactory
from plugins.channels.telegram.tests.test_service import every_way


@pytest.fixture
async def site(make_site: SiteFactory, receiving: str) -> Site:
    return await make_site(receiving)


@pytest.fixture
async def anna(site: Site, telegram: FakeTelegram) -> Person:
    """Whose Telegram is Russian; a subscriber of a project that asks for one permission."""
    permission = {"key": "sales", "title": {"en": "Sales", "ru": "Распродажи"}}
    await site.post("/v1/permissions", **permission)
    anna = telegram.person("Anna", username="anna_k", lang="ru")
    await site.subscribe(anna)
    await anna.wait_for("Вы подписаны")
    return anna


async def subscriber(site: Site) -> dict[str, object]:
    [found] = (await site.client.get("/v1/subscribers")).json()["data"]
    return dict(found)


@every_way
async def test_a_person_leaves_by_stop_and_comes_back_by_start(site: Site, anna: Person) -> None:
    await anna.write("/stop")
    await anna.wait_for("Вы отписаны от «Shop»")
    deleted = await site.event("subscription.deleted")
    await anna.start()
    await site.some_events("subscription.created", 2)

    assert deleted["reason"] == "stop"
    assert (await subscriber(site))["status"] == "active"


@every_way
async def test_a_person_turns_a_permission_on_in_the_settings(site: Site, anna: Person) -> None:
    await anna.write("/settings")
    settings = await anna.wait_for(button="☐ Распродажи: выкл.")

    press = await anna.press("☐ Распродажи: выкл.", settings)
    await press.answered()
    changed = await site.event("subscription.permission_changed")
    await anna.wait_until(lambda: settings.labels == [["☑ Распродажи: вкл."]])

    assert (changed["permission"], changed["granted"]) == ("sales", True)
    assert (await subscriber(site))["permissions"] == ["sales"]


@every_way
async def test_a_person_chooses_a_language_and_is_answered_in_it(site: Site, anna: Person) -> None:
    await anna.write("/lang")
    question = await anna.wait_for(button="English")
    press = await anna.press("English", question)
    await press.answered()
    await anna.wait_until(lambda: question.text == "You will now get messages in English.")

    await anna.write("/stop")

    await anna.wait_for("You are unsubscribed from Shop.")
    assert (await subscriber(site))["lang"] == "en"


@pytest.mark.both_databases
@every_way
async def test_who_unblocks_the_bot_is_subscribed_by_start_alone(site: Site, anna: Person) -> None:
    await anna.block()
    await site.event("subscription.deleted")
    await anna.unblock()

    async def can_be_reached() -> bool:
        return (await subscriber(site))["status"] == "unsubscribed"

    await until(can_be_reached)
    await anna.start()
    await site.some_events("subscription.created", 2)

    assert (await subscriber(site))["status"] == "active"


@every_way
async def test_a_command_to_this_bot_by_its_name_is_understood(
    site: Site, anna: Person, telegram: FakeTelegram
) -> None:
    profile = site.service.channels["messenger_a"].profile
    assert profile is not None

    await anna.write("/stop@another_bot")
    await anna.write(f"/STOP@{profile.username} ")

    await anna.wait_for("Вы отписаны от «Shop»")
    assert len(await site.events("subscription.deleted")) == 1


MENU = {
    "settings": "choose what you get",
    "lang": "language / язык",
    "stop": "unsubscribe",
    "help": "list of commands",
}


@every_way
async def test_the_bots_menu_shows_the_commands_in_the_persons_language(
    site: Site, telegram: FakeTelegram
) -> None:
    async def filled() -> bool:
        return set(telegram.bot.commands) == {None, "en", "ru"}

    await until(filled)

    assert telegram.bot.menu("de") == telegram.bot.menu("en") == MENU
    assert telegram.bot.menu("ru")["stop"] == "отписаться"


@pytest.mark.parametrize(("backend", "receiving"), [("sqlite", "poll")], indirect=["backend"])
async def test_a_menu_that_telegram_refuses_stops_nothing_and_is_tried_once(
    make_site: SiteFactory, telegram: FakeTelegram, receiving: str
) -> None:
    telegram.fail_next("setMyCommands", 400, "Bad Request: BOT_COMMAND_INVALID")
    site = await make_site(receiving)

    await site.subscribe(telegram.person())

    assert len(telegram.calls_of("setMyCommands")) == 1


@pytest.mark.parametrize(("backend", "receiving"), [("sqlite", "poll")], indirect=["backend"])
async def test_a_menu_that_is_the_operators_is_left_alone(
    make_site: SiteFactory, telegram: FakeTelegram, receiving: str
) -> None:
    site = await make_site(receiving, bot={"command_menu": False})

    await site.subscribe(telegram.person())

    assert telegram.calls_of("setMyCommands") == []


@pytest.mark.parametrize(("backend", "receiving"), [("sqlite", "poll")], indirect=["backend"])
async def test_a_bot_is_polled_while_its_menu_waits_for_those_of_others(
    make_site: SiteFactory, telegram: FakeTelegram, receiving: str
) -> None:
    site = await make_site(receiving)
    receiver = site.service.get(UpdateReceiver)
    await receiver.stop()
    telegram.bot.commands.clear()
    others = [await receiver._menus.acquire() for _ in range(MENUS_AT_ONCE)]
    await receiver.start()

    await site.subscribe(telegram.person())
    shown_meanwhile = dict(telegram.bot.commands)
    for _ in others:
        receiver._menus.release()

    async def filled() -> bool:
        return set(telegram.bot.commands) == {None, "en", "ru"}

    await until(filled)

    assert shown_meanwhile == {}


@pytest.mark.parametrize(
    "commands",
    [
        [BotCommand("Stop", {"en": "x"})],
        [BotCommand("stop", {"en": " "})],
        [BotCommand("stop", {"en": "x" * 257})],
        [BotCommand(f"c{number}", {"en": "x"}) for number in range(101)],
    ],
)
async def test_the_fake_refuses_what_telegram_does(
    channel: TelegramChannel, commands: list[BotCommand]
) -> None:
    with pytest.raises(DeliveryError) as refused:
        await channel.set_commands(commands, "en")

    assert refused.value.reason is Reason.INVALID_MESSAGE


@pytest.mark.parametrize(("backend", "receiving"), [("sqlite", "poll")], indirect=["backend"])
@pytest.mark.parametrize(
    ("method", "event"), [("setMyCommands", "commands_not_shown"), ("getMe", "bot_not_asked")]
)
async def test_what_fails_beside_the_updates_is_no_interruption_of_them(
    make_site: SiteFactory, telegram: FakeTelegram, receiving: str, method: str, event: str
) -> None:
    with structlog.testing.capture_logs() as lines:
        if method == "getMe":
            # Who the bot is, is asked again by the next process that receives for it.
            site = await make_site(receiving)
            await site.service.get(UpdateReceiver).stop()
            telegram.fail_next(method, 502, "Bad Gateway", times=1_000_000)
            await site.service.get(UpdateReceiver).start()
        else:
            telegram.fail_next(method, 502, "Bad Gateway", times=1_000_000)
            site = await make_site(receiving)
        await site.subscribe(telegram.person())

        async def logged() -> bool:
            return any(line["event"] == event for line in lines)

        await until(logged)
    async with site.service.db.read() as tx:
        shown = await site.service.get(ReceptionHealth).shown(tx, site.service.channels.shared)

    assert "updates_interrupted" not in {line["event"] for line in lines}
    assert shown["messenger_a"] is not None
    assert shown["messenger_a"].status == "receiving"
