"""Checks of channels whose platform has a command menu."""

from msgsvc_core.channels import BotCommand, Channel, Reason
from msgsvc_devkit.conformance.messenger import Messenger
from msgsvc_devkit.conformance.stage import Stage, needs
from msgsvc_devkit.conformance.verdicts import done, expect_reason, refusal

#: Commands of minimum and maximum length, with characters that a platform may not expect.
HELP = BotCommand("help", {"en": "What <b>this</b> bot & you can do", "ru": "Что умеет этот бот"})
LONG = BotCommand("a_" + "9" * 30, {"en": "x" * 64, "ru": "ы" * 64})


class Commands(Stage):
    """`set_commands`."""

    async def test_the_menu_shows_the_commands_in_the_persons_language_or_the_default_one(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.capabilities.commands, "menu of commands")
        await done(channel.set_commands([HELP, LONG], "en"), "set_commands")

        for lang in ("en", "ru", "de"):
            shown = await messenger.menu(lang)
            wanted = [
                {one.name: one.about[reads] for one in (HELP, LONG)}
                for reads in (lang, "en")
                if reads in HELP.about
            ]
            assert dict(shown) in wanted, f"the menu for {lang!r} shows {shown}, and not {wanted}"

    async def test_the_menu_shows_no_command_any_more_that_was_left_out(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.capabilities.commands, "menu of commands")
        await done(channel.set_commands([HELP, LONG], "en"), "set_commands")
        await done(channel.set_commands([LONG], "ru"), "the second set_commands")

        for lang in ("en", "ru", "de"):
            shown = await messenger.menu(lang)
            assert list(shown) == [LONG.name], f"the menu for {lang!r} shows {list(shown)}"

    async def test_a_menu_that_is_refused_raises_the_reason(
        self, channel: Channel, messenger: Messenger
    ) -> None:
        needs(channel.capabilities.commands, "menu of commands")
        await messenger.fail_next(Reason.PLATFORM_UNAVAILABLE)
        error = await refusal(channel.set_commands([HELP], "en"), "set_commands")

        expect_reason(
            error, Reason.PLATFORM_UNAVAILABLE, "`set_commands` of a platform that is away"
        )
