"""Commands: what a person writes to a bot as `/stop`, on every messenger alike."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: What a command may be called: Telegram's rule, the strictest (Bot API, BotCommand).
COMMAND_NAME = re.compile(r"[a-z0-9_]{1,32}")

#: What a start payload may hold, on every platform.
START_PAYLOAD = re.compile(r"[A-Za-z0-9_-]{1,64}")

_COMMAND = re.compile(r"/([A-Za-z0-9_]{1,32})(?:@([A-Za-z0-9_.]{1,64}))?(?:\s+(\S.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """`/settings@shop_bot off sales`: `name` is `settings`, `bot` `shop_bot`, `argument` `off sales`."""

    name: str
    bot: str | None = None
    argument: str = ""

    def is_for(self, username: str | None) -> bool:
        """Whether it names no other bot than this; one whose name is not known takes all."""
        return None in {self.bot, username} or str(self.bot).lower() == str(username).lower()


@dataclass(frozen=True, slots=True)
class BotCommand:
    """A command in a bot's menu: its name without `/`, and what it is for, by language.

    `BotCommand("stop", {"en": "unsubscribe", "ru": "отписаться"})`
    """

    name: str
    about: Mapping[str, str]


def read_command(text: str) -> Command | None:
    """The command that `text` is; None for all other words."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    name, bot, argument = found.groups()
    return Command(name.lower(), bot, argument or "")
