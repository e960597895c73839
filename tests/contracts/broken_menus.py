"""Channels that break a promise about the menu of commands, and the checks of the kit that notice."""

from collections.abc import Sequence
from contextlib import suppress

from msgsvc_core.channels import BotCommand, DeliveryError
from tests.contracts.broken_channels import breaks
from tests.contracts.pigeon import PigeonChannel


@breaks("test_the_menu_shows_the_commands_in_the_persons_language_or_the_default_one")
class MenuInAnotherLanguage(PigeonChannel):
    async def set_commands(self, commands: Sequence[BotCommand], default_lang: str) -> None:
        russian = [BotCommand(one.name, {"ru": one.about["ru"]}) for one in commands]
        await super().set_commands(russian, "ru")


@breaks("test_the_menu_shows_no_command_any_more_that_was_left_out")
class MenuThatGrows(PigeonChannel):
    async def set_commands(self, commands: Sequence[BotCommand], default_lang: str) -> None:
        before = self.pigeons.menus
        await super().set_commands(commands, default_lang)
        for lang, shown in before.items():
            self.pigeons.menus[lang] = shown | self.pigeons.menus.get(lang, {})


@breaks("test_a_menu_that_is_refused_raises_the_reason")
class MenuThatMayBeLost(PigeonChannel):
    async def set_commands(self, commands: Sequence[BotCommand], default_lang: str) -> None:
        with suppress(DeliveryError):
            await super().set_commands(commands, default_lang)
