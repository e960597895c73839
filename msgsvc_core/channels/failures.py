"""Errors of calls to a messenger, and of its calls to us."""

from enum import StrEnum
from math import isnan
from typing import Literal

from msgsvc_core.kernel.errors import Unavailable
from msgsvc_core.kernel.storable_text import storable

#: Seconds for `retry_after` when no bot is ready: about the interval at which platforms are asked for bots'
#: profiles.
READY_RETRY_S = 5

#: Maximum seconds that a platform may ask to wait (a day).
MAX_RETRY_AFTER_S = 86_400.0


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

    `retry_after_s` is the platform's own wait, with `rate_limited`; None leaves the wait to us. `scope` says
    whether the wait applies to the whole bot or to this chat. `in_doubt` means that the call may have
    succeeded, e.g. when the connection broke after the request was sent: a message then ends as `unknown` and
    is not sent again. `moved_to` is the chat's new id, with any reason: the message is sent there, and the
    stored chat id of every subscriber in it is replaced. `outage` is set by the caller: the platform is
    unavailable, so this does not count as an attempt. `contested` means, of `poll_updates`, that another
    program takes the bot's updates: polls that succeed in between do not end the interruption.
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
        contested: bool = False,
    ) -> None:
        # The platform's words and figures, which may be anything: what follows from them is stored.
        text = storable(text)
        super().__init__(f"{reason}: {text}")
        self.reason = reason
        self.text = text
        self.retry_after_s = _bounded(retry_after_s)
        self.scope = scope
        self.in_doubt = in_doubt
        self.moved_to = None if moved_to is None else storable(moved_to)
        self.outage = False
        self.contested = contested

    @property
    def only_waits(self) -> bool:
        """Whether the failure does not count as an attempt, and only delays the message."""
        return self.reason is Reason.RATE_LIMITED or self.outage


class LocalFailure(DeliveryError):
    """The platform was not called: a file of the message could not be fetched, or our own database is
    unavailable. Says nothing about the platform."""


class LimitReached(LocalFailure):
    """A limit of the channel's own stops the message, e.g. against toll fraud, before the platform is called.

    The message fails at once, as `rate_limited`: it would only wait behind others that the limit stops too.
    """

    def __init__(self, text: str) -> None:
        super().__init__(Reason.RATE_LIMITED, text)

    @property
    def only_waits(self) -> bool:
        """Whether the message waits instead of failing: not for a limit."""
        return False


class WaitedTooLong(LocalFailure):
    """The message has waited too long for a channel that makes no calls: see `channels.health.overdue`."""


class ChannelPaused(Exception):
    """The bot may not make calls now, or not in this chat: the platform asked to wait, or the bot is
    stopped. The call was not made, or refused for that reason."""


class InvalidWebhook(Exception):
    """A call to a bot's URL under `/hooks` that is not from the platform; answered with 401."""


class InvalidMiniApp(Exception):
    """Mini app data that the platform did not sign for this bot, or too long ago."""


class ChannelNotReady(Exception):
    """The bot's profile is not known yet: the platform has not responded since the bot was added."""


class ForeignBot(Exception):
    """A project's own bot received a payload of another project; the update is then not handled."""


def _bounded(wait_s: float | None) -> float | None:
    if wait_s is None:
        return None
    # Compared first: a whole number may have any size.
    bounded = min(max(wait_s, 0), MAX_RETRY_AFTER_S)
    return None if isnan(bounded) else bounded


def no_bot_ready() -> Unavailable:
    """The error when there are no links: no bot's profile is known yet, or none receives anything."""
    return Unavailable(
        "no bot can be opened by a link: its messenger could not be asked yet, or it receives nothing",
        retry_after_s=READY_RETRY_S,
    )
