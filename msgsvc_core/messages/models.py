"""Messages, inside and on the wire."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from msgsvc_core.api.endpoint import Answer, Body
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import HttpUrl
from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.channels.outgoing import Button, Media, OutgoingMessage
from msgsvc_core.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.record import record

MessageStatus = Literal["queued", "sending", "sent", "failed", "skipped", "unknown"]

#: Bytes of a button's data, the least that every platform takes (API, "Send body").
BUTTON_DATA_BYTES = 64

#: Bytes of `metadata` as JSON.
METADATA_BYTES = 4096


def _check_visible(text: str) -> str:
    if not text.strip():
        raise ValueError("must hold more than spaces")
    return text


class ButtonBody(Body):
    """A button: `url` opens a page, `data` comes back as the event `button.clicked`."""

    text: str = Field(min_length=1, max_length=64)
    url: HttpUrl | None = None
    data: str | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _one_action(self) -> "ButtonBody":
        if (self.url is None) == (self.data is None):
            raise ValueError("give exactly one of url and data")
        if self.data is not None:
            if len(self.data.encode()) > BUTTON_DATA_BYTES:
                raise ValueError(f"data must be at most {BUTTON_DATA_BYTES} bytes")
            if self.data.startswith(OWN_BUTTON):
                raise ValueError(f"data must not begin with {OWN_BUTTON!r}")
        return self


class MediaBody(Body):
    """A file that the platform fetches from `url` and shows with the message."""

    type: Literal["image", "video", "document"]
    url: HttpUrl
    filename: str | None = Field(None, min_length=1, max_length=255)

    def to_media(self) -> Media:
        return Media(self.type, self.url, self.filename)


class SendBody(Body):
    """A message to one subscriber, named by `subscriber_id` or by `external_id`."""

    subscriber_id: str | None = None
    external_id: str | None = None
    channel: str | None = Field(None, description="With external_id: the channel to use.")
    text: Annotated[str, Field(min_length=1), AfterValidator(_check_visible)]
    format: Literal["plain", "markdown", "html"] = "plain"
    media: MediaBody | None = None
    buttons: list[list[ButtonBody]] = Field(
        default_factory=list, description="Rows from top to bottom."
    )
    silent: bool = Field(False, description="Deliver without a sound.")
    expires_in: int | None = Field(
        None,
        ge=1,
        le=30 * 24 * 3600,
        description="Seconds after which it is skipped if not sent yet.",
    )
    metadata: dict[str, Any] | None = Field(None, description="Comes back in delivery events.")

    def to_message(self) -> OutgoingMessage:
        return OutgoingMessage(
            text=self.text,
            format=self.format,
            buttons=tuple(
                tuple(Button(button.text, button.url, button.data) for button in row)
                for row in self.buttons
            ),
            media=self.media.to_media() if self.media else None,
            silent=self.silent,
        )


class SendAnswer(Answer):
    """The message was taken and will be delivered."""

    message_id: str
    status: Literal["queued"] = "queued"


@record
class Message:
    """A message and what is known of its delivery; `bot` is the key of the channel that sends it."""

    project_id: str
    message_id: str
    subscriber_id: str
    channel: str
    bot: str
    status: MessageStatus
    content: OutgoingMessage
    metadata: dict[str, Any] | None
    reason: str | None
    error: str | None
    attempts: int
    message_ref: str | None
    created_at_ms: int
    expires_at_ms: int | None
    finished_at_ms: int | None

    @property
    def key(self) -> tuple[str, str]:
        return self.project_id, self.message_id


@record
class Ending:
    """The last status of a message; `ref` is what the platform knows it by."""

    message: Message
    status: MessageStatus
    reason: str | None = None
    error: str | None = None
    ref: str | None = None


class MessageAnswer(Answer):
    """A message as the API shows it. `reason` is one of the delivery reasons when it failed."""

    message_id: str
    subscriber_id: str
    channel: str
    status: MessageStatus
    reason: str | None
    error: str | None
    attempts: int
    text: str
    metadata: dict[str, Any] | None
    created_at: str
    finished_at: str | None

    @classmethod
    def of(cls, message: Message) -> "MessageAnswer":
        return cls(
            message_id=message.message_id,
            subscriber_id=message.subscriber_id,
            channel=message.channel,
            status=message.status,
            reason=message.reason,
            error=message.error,
            attempts=message.attempts,
            text=message.content.text,
            metadata=message.metadata,
            created_at=to_rfc3339(message.created_at_ms),
            finished_at=optional_rfc3339(message.finished_at_ms),
        )


class MessageList(Answer):
    """A page of messages, newest first."""

    data: list[MessageAnswer]
    next_cursor: str | None


class MessageQuery(PageQuery):
    """Filters and paging."""

    status: MessageStatus | None = None
    subscriber_id: str | None = None


class DeliverySuccess(Answer):
    """Fields of `delivery.success`."""

    message_id: str
    metadata: dict[str, Any] | None


class DeliveryFailed(DeliverySuccess):
    """Fields of `delivery.failed`. Act on the flags, not on the text of `error`."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset()

    reason: str
    retryable: bool | None
    should_unsubscribe: bool | None
    error: str


class ButtonClicked(Answer):
    """Fields of `button.clicked`."""

    message_id: str | None
    data: str
    text: str
