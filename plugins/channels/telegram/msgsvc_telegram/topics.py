"""Topics in private chats: the threads of the channel contract."""

from typing import Any

import structlog

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.kernel.clock import Clock
from msgsvc_telegram.client import BotApi

#: Characters of a topic's name (Bot API, createForumTopic).
MAX_NAME = 128

#: Seconds after which Telegram is asked again whether the bot has topics: no update tells of a change.
ASK_AGAIN_S = 600

#: What Telegram answers for a topic that was deleted, and where topics were switched off since
#: (tdlib/telegram-bot-api, `check_message_topic`).
GONE = "message thread not found"


#: Seconds for which no topic is asked for after a refusal that names no time.
PAUSE_S = 60

log = structlog.get_logger(__name__)


class Topics:
    """Opens topics if the bot has forum topic mode enabled in private chats, which only getMe tells."""

    def __init__(self, *, api: BotApi, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._enabled = False
        self._asked_at_s: float | None = None
        self._paused_until_s = 0.0

    def learn(self, me: dict[str, Any]) -> None:
        """Takes from getMe's answer whether there are topics."""
        self._enabled = me.get("has_topics_enabled") is True
        self._asked_at_s = self._clock.time()

    async def open(self, chat_id: int, title: str) -> str | None:
        """The id of a new topic; None if the bot has none, or may open none for now.

        A limit of topics is no reason to pause the bot, as one of messages is: codes go on.
        """
        if self._clock.time() < self._paused_until_s or not await self._are_enabled():
            return None
        try:
            params = {"chat_id": chat_id, "name": named(title)}
            topic = await self._api.call("createForumTopic", params)
        except DeliveryError as error:
            if error.reason is Reason.RATE_LIMITED:
                pause_s = error.retry_after_s or PAUSE_S
                self._paused_until_s = self._clock.time() + pause_s
                log.warning("telegram_topics_limited", pause_s=pause_s)
                return None
            # Topics may have been switched off.
            self._asked_at_s = None
            raise
        thread = topic.get("message_thread_id") if isinstance(topic, dict) else None
        if type(thread) is not int:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE,
                "opened, but without a message_thread_id",
                in_doubt=True,
            )
        return str(thread)

    async def _are_enabled(self) -> bool:
        asked_at_s = self._asked_at_s
        if asked_at_s is None or self._clock.time() - asked_at_s >= ASK_AGAIN_S:
            me = await self._api.call("getMe")
            self.learn(me if isinstance(me, dict) else {})
        return self._enabled


def named(title: str) -> str:
    """The title as a topic's name, which must not be empty."""
    text = " ".join(title.split()) or "…"
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
