"""Commands: texts such as `/stop` that users send to a bot, the same on every messenger."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgsvc_core.kernel.i18n import Texts, Translate, package_of

#: Allowed names of commands: Telegram's rule, the strictest (Bot API, BotCommand).
COMMAND_NAME = re.compile(r"[a-z0-9_]{1,32}")

#: Allowed start payloads, on every platform.
START_PAYLOAD = re.compile(r"[A-Za-z0-9_-]{1,64}")

_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_.]{1,64}))?(?:\s+(\S.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """`/settings@shop_bot off sales`: `name` is `settings`, `bot` `shop_bot`, `argument` `off sales`."""

    name: str
    bot: str | None = None
    argument: str = ""

    def is_for(self, username: str | None) -> bool:
        """Whether the command names no other bot. True if this bot's name is not known."""
        return None in {self.bot, username} or str(self.bot).lower() == str(username).lower()


@dataclass(frozen=True, slots=True)
class BotCommand:
    """A command in a bot's menu: its name without `/`, and its description by language.

    `BotCommand("stop", {"en": "unsubscribe", "ru": "отписаться"})`
    """

    name: str
    about: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """A listed command; `about` is its description."""

    name: str
    about: Callable[[Translate], str]


class CommandCatalogue:
    """The listed commands, in the order of their declaration.

    `declared` is called on every read, because a command handler may list all of them.
    """

    def __init__(self, *, texts: Texts, declared: Callable[[], Sequence[ListedCommand]]) -> None:
        self._texts = texts
        self._declared = declared

    def __iter__(self) -> Iterator[ListedCommand]:
        return iter(self._declared())

    def menu(self) -> list[BotCommand]:
        """The listed commands in the form of platforms' menus."""
        languages = dict.fromkeys((*self._texts.spoken, self._texts.default_lang))
        return [
            BotCommand(command.name, {lang: self.about(command, lang) for lang in languages})
            for command in self
        ]

    def listed(self, lang: str) -> list[tuple[str, str]]:
        """The name and the description of each command, in a language."""
        return [(command.name, self.about(command, lang)) for command in self]

    def about(self, command: ListedCommand, lang: str) -> str:
        """The description of a command, with the texts of the package that declared it."""
        return command.about(self._texts.into(lang, package_of(command.about)))


def read_command(text: str) -> Command | None:
    """The command in `text`; None for any other text."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    name, bot, argument = found.groups()
    return Command(name.lower(), bot, argument or "")
