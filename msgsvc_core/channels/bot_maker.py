"""Bots that a person makes on the platform in one step, to be managed by one of ours."""

from collections.abc import Mapping
from typing import Any, Protocol


class BotMaker(Protocol):
    """What a bot that manages others does, for `Channel.bot_maker`.

    The person confirms on the platform; the platform then tells the managing bot, which reports `BotCreated`.
    """

    def suggest(self, name: str, random: str) -> str:
        """A username for a bot: of `name`, that of a channel, and of ten random characters `a-z0-9`."""
        ...

    def link(self, username: str, title: str) -> str:
        """The URL on which a person makes a bot with that username, and `title` as its name.

        Raises `ChannelNotReady` while the managing bot's own name is unknown.
        """
        ...

    async def settings_of(self, account: str) -> Mapping[str, Any]:
        """The settings of a channel for the bot with that id (`BotCreated.account`), with its token.

        Raises `DeliveryError`.
        """
        ...
