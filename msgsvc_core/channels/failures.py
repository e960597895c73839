"""How calls to a messenger fail, and what is wrong with calls from one."""

from enum import StrEnum
from typing import Literal

from msgsvc_core.kernel.errors import Unavailable

#: Seconds after which whoever found no bot ready may ask again: about as often as platforms are asked
#: who their bots are.
READY_RETRY_S = 5


class Reason(StrEnum):
    """Why a delivery failed (decision 0075)."""

    USER_BLOCKED_BOT = "user_blocked_bot"
    CHAT_NOT_FOUND = "chat_not_found"
    BOT_BANNED = "bot_banned"
    INVALID_MESSAGE = "invalid_message"
    RATE_LIMITED = "rate_limited"
    PLATFORM_UNAVAILABLE = "platform_unavailable"
    UNKNOWN = "unknown"

    @property
    def retryable(self) -> bool:
        return self in {Reason.RATE_LIMITED, Reason.PLATFORM_UNAVAILABLE}

    @property
    def should_unsubscribe(self) -> bool:
        return self in {Reason.USER_BLOCKED_BOT, Reason.CHAT_NOT_FOUND}


class DeliveryError(Exception):
    """The platform refused a call, or could not be reached.

    `retry_after_s` is what the platform asked for, with `rate_limited`; None leaves the wait to us.
    `scope` says whom the wait concerns: the whole bot, or this chat alone.
    `in_doubt` means that the platform may have done it all the same, e.g. when the connection broke
    after the request was sent: a message then ends as `unknown` and is not sent a second time.
    `moved_to` is the chat's new id, with whatever reason: the message is sent there, and the stored chat id
    of every subscriber in it is replaced.
    `outage` is set by who made the call: the platform answers nobody, so this was no try of the message.
    """

    def __init__(
        self,
        reason: Reason,
        text: str,
        retry_after_s: float | None = None,
        *,
        scope: Literal["bot", "chat"] = "bot",
        in_doubt: bool = False,
        moved_to: str | None = None,
    ) -> None:
        super().__init__(f"{reason}: {text}")
        self.reason = reason
        self.text = text
        self.retry_after_s = retry_after_s
        self.scope = scope
        self.in_doubt = in_doubt
        self.moved_to = moved_to
        self.outage = False

    @property
    def only_waits(self) -> bool:
        """Whether the failure takes up none of the tries of a message, only time."""
        return self.reason is Reason.RATE_LIMITED or self.outage


class LocalFailure(DeliveryError):
    """The platform was not asked: a file that goes with the message could not be fetched, or our own database
    is away. That says nothing of the platform."""


class ChannelPaused(Exception):
    """The bot may make no call now, or none in this chat: it was told to wait, or is stopped. The call
    was not made, or refused for that reason."""


class InvalidWebhook(Exception):
    """A call to a bot's address under `/hooks` that is not from the platform; answered with 401."""


class InvalidMiniApp(Exception):
    """Mini app data that the platform did not sign for this bot, or too long ago."""


class ChannelNotReady(Exception):
    """The bot's profile is not known yet: the platform could not be asked since it was set up."""


class ForeignBot(Exception):
    """A project's own bot was about to act for another project; the update is then left unclaimed."""


def no_bot_ready() -> Unavailable:
    """What is answered while no platform has told who its bot is, so that there can be no link to one."""
    return Unavailable(
        "no bot is ready yet; its messenger could not be asked", retry_after_s=READY_RETRY_S
    )
