"""Inbound data from messengers: updates, webhook calls and mini app users."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.content.outgoing import MediaType

#: What a platform reports of a message that it had accepted.
ReportedState = Literal["delivered", "read", "failed"]


@dataclass(frozen=True, slots=True)
class ChannelUser:
    """The user as the platform describes them. `lang` is the platform's code, e.g. `ru-RU`.

    `username` is the unique name that people of the messenger know, without the `@` before it, and with the
    server where names belong to one: `ann`, or `ann:example.org` on Matrix; None if they have none. On a
    channel of addresses, `user_id` and `username` are the address. An empty `first_name` leaves the one
    that is known.

    `phone` is their number with its country code if the platform has verified it, and tells it in updates: it
    is recorded as a verified contact of their subscriptions.
    """

    user_id: str
    first_name: str
    username: str | None = None
    lang: str | None = None
    phone: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Something that happened in a chat. `update_id` is the platform's, unique per channel.

    `thread` is the thread of the chat in which it happened (`Capabilities.threads`), as `open_thread`
    returned it, or one that the user has opened; None for the chat itself.
    """

    update_id: str
    chat_id: str
    user: ChannelUser
    thread: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Update):
    """The user pressed Start; `payload` is that of the link, or empty."""

    payload: str = ""


@dataclass(frozen=True, slots=True)
class ReceivedFile:
    """A file that a user sent.

    `file_ref` is the argument of `Channel.fetch_file`. Name, type and size are the platform's claims, if it
    makes any; the actual content is known once it is fetched.
    """

    type: MediaType
    file_ref: str
    filename: str | None = None
    mime_type: str | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageReceived(Update):
    """A user's message, with text or files; `text` is empty for files alone.

    `reply_to` is the message it replies to, as `send` returned it, if the platform reports it.
    """

    text: str
    files: tuple[ReceivedFile, ...] = ()
    message_ref: str | None = None
    reply_to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdited(Update):
    """The user edited their message; `message_ref` is that of its `MessageReceived`."""

    message_ref: str
    text: str
    files: tuple[ReceivedFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonPressed(Update):
    """The user pressed a button with `data`.

    `message_ref` is the message with the button, as `send` returned it; `button_ref` is the argument of
    `answer_button`.
    """

    data: str
    message_ref: str
    button_ref: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(Update):
    """The user stopped or blocked the bot, or left the chat with it. It says nothing of another chat that
    they use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unblocked(Update):
    """The user unblocked the bot, without pressing Start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BotCreated(Update):
    """The user made a bot that this one manages: see `Channel.bot_maker`. It says nothing of a chat.

    `account` is the platform's id of the new bot (`ChannelHealth.account`), `username` is without the `@`.
    """

    account: str
    username: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMoved(Update):
    """The chat has a new id, e.g. because a group became a supergroup: nobody has left.

    `new_user_id` is set if the platform has changed the id of the user too, e.g. with their phone number:
    their subscriptions continue under it."""

    new_chat_id: str
    new_user_id: str | None = None


#: The user of an update in which the platform names none.
NOBODY = ChannelUser("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReported(Update):
    """The platform reports what became of a message that `send` returned as `message_ref`
    (`Capabilities.reports`). The same report has the same `update_id` each time.

    `chat_id` is empty where a message's id is unique on the whole channel, or the platform does not tell the
    chat. `at_ms` is the platform's time; None if it tells none. `failed` means that it was accepted and will
    not arrive; `reason` and `detail` then say why.

    `up_to_ms` is set where the platform reports everything up to a message as delivered or read: when that
    message was sent, by the platform's time. `chat_id` and `user` are then set, and what the bot had sent
    them in this chat before is meant too; `message_ref` is empty if that message is not the bot's.
    """

    chat_id: str = ""
    user: ChannelUser = NOBODY
    message_ref: str
    state: ReportedState
    at_ms: int | None = None
    reason: Reason = Reason.UNKNOWN
    detail: str = ""
    up_to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Polled:
    """The result of `poll_updates`. `cursor` is passed to its next call, and acknowledges these updates.

    A channel that polls several sources combines their positions in one cursor. If one source fails, it
    returns the others' updates, their positions in the cursor, and the failure as `error`.
    """

    updates: tuple[Update, ...]
    cursor: str | None
    error: DeliveryError | None = None


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """A platform's call to a bot's webhook under `/hooks`: the raw body, and header names in lower case.

    `path` is what follows the bot's path, without a leading slash; `query` has the last value of each name;
    `url` is the complete URL as the platform knows it, for signatures that cover it. `secrets` may have
    been passed to `set_webhook`, the current one first: the platform uses an older one until the new one is
    registered.
    """

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    method: str = "POST"
    path: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    url: str = ""

    def has_secret(self, header: str) -> bool:
        """Whether `header` holds one of the secrets, compared in constant time."""
        given = self.headers.get(header, "").encode()
        return any(hmac.compare_digest(given, secret.encode()) for secret in self.secrets)


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """The response to a platform that expects more than a success, e.g. a challenge."""

    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    status: int = 200


@dataclass(frozen=True, slots=True)
class MiniAppUser:
    """The user of a mini app, as `verify_mini_app` read it from data signed by the platform.

    `chat_id` is the chat with the bot; None if the data does not contain it.
    """

    user: ChannelUser
    signed_at_ms: int
    start_payload: str = ""
    chat_id: str | None = None
