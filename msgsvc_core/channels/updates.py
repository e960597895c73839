"""Inbound data from messengers: updates, webhook calls and mini app users."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.content.outgoing import MediaType, ReplyTarget

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

    On a channel with `Capabilities.subjects`, `subject` is that of the message, without marks of a reply;
    `refers_to` are the ids of earlier messages of its conversation, oldest first; and `begins` is True if it
    is the first of one.
    """

    text: str
    files: tuple[ReceivedFile, ...] = ()
    message_ref: str | None = None
    reply_to: str | None = None
    subject: str | None = None
    refers_to: tuple[str, ...] = ()
    begins: bool = False

    @property
    def as_reply_target(self) -> ReplyTarget | None:
        """What an answer to this message is told of it; None on a channel without subjects."""
        if self.subject is None or self.message_ref is None:
            return None
        return ReplyTarget(self.subject, (*self.refers_to, self.message_ref))


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
    they use.

    `by_failure` is set if it is what a server found when it delivered to them, such as a bounce: should
    they write nevertheless, it was wrong.
    """

    by_failure: bool = False


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
    not arrive; `reason` and `detail` then say why. With `bot_banned` the platform takes no message of the bot
    any more: the bot is stopped, as by a refused call.

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


class UnreadableReason(StrEnum):
    """Why a channel made no update of an item."""

    #: It does not have the platform's format.
    MALFORMED = "malformed"
    #: It has the platform's format, and is of a kind that the channel does not know.
    UNKNOWN_KIND = "unknown_kind"
    #: It is larger than the channel reads.
    TOO_LARGE = "too_large"
    #: Reading it took longer than it may.
    TIMED_OUT = "timed_out"
    #: It is encrypted, and no key reads it.
    UNDECRYPTABLE = "undecryptable"
    #: It does not name one sender.
    NO_SENDER = "no_sender"
    #: Nothing proves that it is from the sender that it names.
    UNPROVEN_SENDER = "unproven_sender"
    #: A program, a mailing list or an automatic reply seems to have sent it.
    AUTOMATIC = "automatic"
    #: It has neither a text nor files.
    EMPTY = "empty"
    #: It reports on no message that was sent here.
    UNMATCHED = "unmatched"
    #: The service failed on it, reading or processing it: a bug.
    FAULT = "fault"
    #: It was taken anyway, and the channel made nothing of it.
    NOTHING_IN_IT = "nothing_in_it"


def _as_json(value: Any) -> bytes:
    """A value that was read from JSON."""
    try:
        return json.dumps(value).encode()
    except RecursionError:
        return b"(values in more levels than can be written)"


#: What an item is, in words that people know.
ItemKind = Literal["email", "update", "report"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable(Update):
    """An item that arrived and that the channel can't read. It is kept on the channel's shelf, where somebody
    can look at it, and have it taken anyway (`Channel.take_anyway`).

    Return it in place of the update that it would have been, so that one such item costs only itself. Leave
    out what is known and meant to be ignored, such as the bot's own messages.

    `raw` is the item as it arrived, without its neighbours in a batch: what `take_anyway` needs to read it.
    `detail` says for a person what is wrong, and repeats nothing of the content. `origin` is for the channel
    alone, e.g. where a file of the item is. Give `user` if it is known, so that the item goes with the
    person's erasure. `update_id` is that of the update; without a platform's id, use `id_of(raw)`.
    """

    chat_id: str = ""
    user: ChannelUser = NOBODY
    raw: bytes = field(repr=False)
    reason: UnreadableReason
    detail: str = ""
    kind: ItemKind = "update"
    origin: str = ""
    #: Bytes of the item, if it is larger than `raw`, of which the channel then read only the beginning.
    size: int = 0

    @staticmethod
    def id_of(raw: bytes) -> str:
        """An `update_id` that is the same each time the item comes."""
        return f"raw-{hashlib.sha256(raw).hexdigest()[:40]}"

    @classmethod
    def of(
        cls,
        raw: Any,
        reason: UnreadableReason,
        detail: str,
        *,
        user: ChannelUser = NOBODY,
        kind: ItemKind = "update",
        origin: str = "",
    ) -> "Unreadable":
        """An item without an id of the platform's: its bytes, or a value that was read from JSON."""
        raw = raw if isinstance(raw, bytes) else _as_json(raw)
        return cls(
            update_id=cls.id_of(raw),
            raw=raw,
            reason=reason,
            detail=detail,
            user=user,
            kind=kind,
            origin=origin,
        )

    @classmethod
    def failed(cls, raw: Any, error: Exception, *, origin: str = "") -> "Unreadable":
        """An item on which the channel failed by a bug: it must not stop those after it."""
        why = f"the service failed on it ({type(error).__name__})"
        return cls.of(raw, UnreadableReason.FAULT, why, origin=origin)


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
