"""Bots that people make in one tap, managed by ours (Bot API 9.6)."""

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from msgsvc_core.channels import BotProfile, DeliveryError, Reason
from msgsvc_telegram.client import BotApi
from msgsvc_telegram.messages import number

#: Characters of a bot's name (`bots.createBot`, `name`), and of the part of a username that is a channel's.
MAX_NAME, MAX_PART = 64, 16


class ManagedBots:
    """Implements `BotMaker` for a bot with bot management enabled in @BotFather."""

    def __init__(self, *, api: BotApi, profile: Callable[[], BotProfile]) -> None:
        self._api = api
        self._profile = profile

    def suggest(self, name: str, random: str) -> str:
        # 5-32 of a-z, 0-9 and _, ending in `bot`.
        part = "_".join(filter(None, name[:MAX_PART].split("_")))
        return f"{part}_{random}_bot"

    def link(self, username: str, title: str) -> str:
        # Bot API changelog, 9.6: https://t.me/newbot/{manager}/{username}[?name={name}]
        manager = self._profile().username
        return f"https://t.me/newbot/{manager}/{username}?name={quote(title[:MAX_NAME], safe='')}"

    async def settings_of(self, account: str) -> Mapping[str, Any]:
        user_id = number(account, Reason.INVALID_MESSAGE, "bot")
        token = await self._api.call("getManagedBotToken", {"user_id": user_id})
        if not isinstance(token, str):
            raise DeliveryError(Reason.PLATFORM_UNAVAILABLE, "getManagedBotToken: no token")
        return {"token": token}
