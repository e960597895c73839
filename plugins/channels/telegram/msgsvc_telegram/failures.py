"""Maps the Bot API's errors to delivery reasons.

The API distinguishes errors by a status and an English sentence. The sentences are those of Telegram's own
Bot API server (tdlib/telegram-bot-api, `Client.cpp`), which also passes on upper-case names from the
servers behind it. They are compared in lower case, by a part that has been stable for years.
"""

from collections.abc import Mapping
from typing import Any, Literal

from msgsvc_core.channels import DeliveryError, Reason

#: What a person or a group did, so that the bot can't reach them any more; status 403.
_GONE_AWAY = (
    "bot was blocked by the user",
    "bot was kicked",
    "bot is not a member",
)

#: The chat was never there for this bot, or is not any more, with whatever status.
_NO_CHAT = (
    "chat not found",
    "user is deactivated",
    "peer_id_invalid",
    "user_id_invalid",
    "bot can't initiate conversation",
    "bots can't send messages to bots",
    "the group chat was deleted",
    "group chat was upgraded",
)

#: Ways to say that Telegram could not fetch a file by its URL; sent as a file, it may still go.
_NOT_FETCHED = (
    "wrong file identifier/http url specified",
    "wrong http url specified",
    "failed to get http url content",
    "wrong type of the web page content",
    "wrong remote file identifier",
    "can't upload file by url",
    "webpage_curl_failed",
    "webpage_media_empty",
)

#: Longest part of Telegram's sentence that is kept, in characters.
MAX_DESCRIPTION = 300


class BotApiError(DeliveryError):
    """An error response in Telegram's words. `migrated_to` is a group's new chat id, if it has one."""

    def __init__(
        self,
        reason: Reason,
        text: str,
        *,
        retry_after_s: float | None = None,
        scope: Literal["bot", "chat"] = "bot",
        migrated_to: int | None = None,
    ) -> None:
        super().__init__(reason, text, retry_after_s, scope=scope)
        self.migrated_to = migrated_to

    def says(self, *parts: str) -> bool:
        """Whether one of `parts`, in lower case, is in what Telegram said."""
        said = self.text.lower()
        return any(part in said for part in parts)

    @property
    def not_fetched(self) -> bool:
        """Whether the file of the message could not be fetched from its URL."""
        return self.says(*_NOT_FETCHED)


def refusal(
    status: int, description: str, parameters: Mapping[str, Any], chat_id: int | None
) -> BotApiError:
    """The error of a response with `"ok": false`.

    `chat_id` is the chat of the call; None for calls that concern no chat.
    """
    text = description[:MAX_DESCRIPTION] or f"status {status} without a word"
    if status == 429:
        return _rate_limited(text, parameters, chat_id)
    migrated_to = parameters.get("migrate_to_chat_id")
    error = BotApiError(
        _reason(status, text.lower()),
        text,
        migrated_to=migrated_to if type(migrated_to) is int else None,
    )
    error.contested = status == 409
    return error


def _reason(status: int, text: str) -> Reason:
    # 409: another program polls this bot's updates, which may end at any time.
    if status >= 500 or status == 409:
        return Reason.PLATFORM_UNAVAILABLE
    # A server of one's own, or an older one, may not know a method; the bot is none the worse for it.
    if status == 404 and "method not found" in text:
        return Reason.UNKNOWN
    # 404 is Telegram's answer to a token that no bot ever had. 421: a server of your own doesn't serve
    # this token.
    if status in {401, 404, 421} or "logged out" in text:
        return Reason.BOT_BANNED
    if any(part in text for part in _NO_CHAT):
        return Reason.CHAT_NOT_FOUND
    if status == 403:
        # An unknown reason must not unsubscribe anybody.
        known = any(part in text for part in _GONE_AWAY)
        return Reason.USER_BLOCKED_BOT if known else Reason.UNKNOWN
    return Reason.INVALID_MESSAGE if status in {400, 413} else Reason.UNKNOWN


def _rate_limited(text: str, parameters: Mapping[str, Any], chat_id: int | None) -> BotApiError:
    """Telegram doesn't say which of its limits was met.

    In a group it is nearly always the group's 20 a minute, and stopping everybody for up to a minute
    would be worse than a wrong guess. Elsewhere the pace keeps us below a chat's limit, so what was
    met must be the bot's.
    """
    after = parameters.get("retry_after")
    known = isinstance(after, int | float) and not isinstance(after, bool) and after > 0
    return BotApiError(
        Reason.RATE_LIMITED,
        text,
        # Without a number, the wait is ours to choose.
        retry_after_s=after if known and after else None,
        scope="chat" if chat_id is not None and chat_id < 0 else "bot",
    )
