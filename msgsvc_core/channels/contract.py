"""What a messenger must be able to do for us. A channel plugin implements `Channel`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from msgsvc_core.record import record

Format = Literal["plain", "markdown", "html"]


class Reason(StrEnum):
    """Why a delivery failed (interface spec, section 6)."""

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
    """

    def __init__(self, reason: Reason, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{reason}: {text}")
        self.reason = reason
        self.text = text
        self.retry_after_s = retry_after_s


@record
class Button:
    """A button under a message: either opens `url`, or sends `data` back to the bot."""

    text: str
    url: str | None = None
    data: str | None = None


@record
class Media:
    """A file that goes with a message, fetched by the platform from `url`."""

    type: Literal["image", "video", "document"]
    url: str
    filename: str | None = None


@record
class OutgoingMessage:
    """What is shown in a chat. `buttons` are rows from top to bottom."""

    text: str
    format: Format = "plain"
    buttons: tuple[tuple[Button, ...], ...] = ()
    media: Media | None = None
    silent: bool = False

    def to_payload(self) -> dict[str, Any]:
        """JSON for a job's payload or a column; `from_payload` reads it back."""
        payload: dict[str, Any] = {"text": self.text, "format": self.format}
        if self.buttons:
            payload["buttons"] = [
                [_without_none(text=b.text, url=b.url, data=b.data) for b in row]
                for row in self.buttons
            ]
        if self.media:
            payload["media"] = _without_none(
                type=self.media.type, url=self.media.url, filename=self.media.filename
            )
        if self.silent:
            payload["silent"] = True
        return payload

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> "OutgoingMessage":
        media = payload.get("media")
        return cls(
            text=payload["text"],
            format=payload.get("format", "plain"),
            buttons=tuple(
                tuple(Button(**button) for button in row) for row in payload.get("buttons", ())
            ),
            media=Media(**media) if media else None,
            silent=payload.get("silent", False),
        )


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a platform takes.

    A project's message that asks for more is refused before any call is made. What the bot says by
    itself is adapted: an edit becomes a new message, buttons are left out.
    """

    #: Characters of a text (interface spec, section 8: 4,000 for every channel).
    max_text_length: int = 4000
    formats: frozenset[Format] = frozenset({"plain", "markdown", "html"})
    media_types: frozenset[str] = frozenset({"image", "video", "document"})
    buttons: bool = True
    edit: bool = True
    delete: bool = True


@dataclass(frozen=True, slots=True)
class ChannelUser:
    """The person as the platform describes them. `lang` is the platform's code, e.g. `ru-RU`."""

    user_id: str
    first_name: str
    username: str | None = None
    lang: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Something that happened in a chat. `update_id` is the platform's, unique per channel."""

    update_id: str
    chat_id: str
    user: ChannelUser


@dataclass(frozen=True, slots=True, kw_only=True)
class Started(Update):
    """The person pressed Start; `payload` is what the link carried, or an empty string."""

    payload: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReceived(Update):
    """The person wrote something."""

    text: str
    message_ref: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonPressed(Update):
    """The person pressed a button that carries `data`.

    `message_ref` is the message with the button, as `send` returned it; `button_ref` is what
    `answer_button` needs.
    """

    data: str
    message_ref: str
    button_ref: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(Update):
    """The person stopped or blocked the bot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unblocked(Update):
    """The person lets the bot write again, without having pressed Start."""


@dataclass(frozen=True, slots=True)
class ChannelHealth:
    """What `check` found. `detail` is for an operator, e.g. the bot's name or the refusal."""

    ok: bool
    detail: str = ""


class Receive(Protocol):
    """Takes an update into the core. It returns after the update's effects are committed."""

    async def __call__(self, update: Update) -> None: ...


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """A platform's call to `/hooks/{channel}`: the raw body, and header names in lower case."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Channel(ABC):
    """One bot on one messenger. `name` is what the API shows, e.g. `messenger_a`.

    Every method that calls the platform raises `DeliveryError`, and nothing else, when the call does
    not succeed. Methods may be called concurrently.
    """

    capabilities: Capabilities = Capabilities()

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        """Shows `message` in the chat; returns the platform's id of it, unique within the chat."""

    @abstractmethod
    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        """Replaces text and buttons of a message that `send` returned."""

    @abstractmethod
    async def delete(self, chat_id: str, message_ref: str) -> None:
        """Removes a message; one that is gone already is no error."""

    @abstractmethod
    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Ends the waiting state of a pressed button, with an optional short notice."""

    @abstractmethod
    def deep_link(self, payload: str) -> str:
        """The URL that opens the bot and makes it receive `Started(payload=payload)`.

        `payload` is 1-64 characters of `A-Z a-z 0-9 _ -`.
        """

    @abstractmethod
    async def check(self) -> ChannelHealth:
        """Asks the platform whether the bot may work. Never raises."""

    def parse_update(self, call: WebhookCall) -> list[Update]:
        """Verifies and reads a webhook call of the platform.

        An unknown kind of update gives an empty list. Raises `InvalidWebhook` when the call is not
        from the platform. Channels without webhooks leave this as it is.
        """
        raise InvalidWebhook("this channel takes no webhooks")

    async def run(self, receive: Receive) -> None:  # noqa: B027 - optional: most need no loop
        """Runs as long as the service does, e.g. long polling; returns at once where none is needed.

        Hand every update to `receive` in order, and acknowledge it to the platform only after
        `receive` returned. Cancelled at the service's end.
        """

    async def close(self) -> None:  # noqa: B027 - optional
        """Frees connections; called once, after the last use."""


class InvalidWebhook(Exception):
    """A call to `/hooks/{channel}` that is not from the platform; answered with 401."""
