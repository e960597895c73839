"""Models of messages: internal, and of the API."""

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import AfterValidator, Field, model_validator

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import HttpUrl, Kept, MomentMs
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.content.outgoing import Button, Format, Media, OutgoingMessage
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.values import value_object
from msgsvc_core.kernel.visible_text import check_visible
from msgsvc_core.subscribers.models import PermissionKey, Recipient

MessageStatus = Literal["queued", "sending", "sent", "failed", "skipped", "unknown"]

#: Maximum bytes of a button's data, which every platform supports (decision 0075).
BUTTON_DATA_BYTES = 64

#: Maximum bytes of `metadata` as JSON.
METADATA_BYTES = 4096


class ButtonBody(RequestModel):
    """A button: `url` opens a page, `data` comes back as the event `button.clicked`."""

    text: Annotated[str, Field(min_length=1, max_length=64), AfterValidator(check_visible)]
    url: HttpUrl | None = None
    data: str | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _one_action(self) -> "ButtonBody":
        if (self.url is None) == (self.data is None):
            raise InvalidValue("give exactly one of url and data")
        if self.data is not None:
            if len(self.data.encode()) > BUTTON_DATA_BYTES:
                raise InvalidValue("data must be at most {limit} bytes", limit=BUTTON_DATA_BYTES)
            if self.data.startswith(OWN_BUTTON):
                raise InvalidValue("data must not begin with {prefix!r}", prefix=OWN_BUTTON)
        return self


class MediaBody(RequestModel):
    """A file that the platform fetches from `url` and shows with the message."""

    type: Literal["image", "video", "document"]
    url: HttpUrl
    filename: str | None = Field(None, min_length=1, max_length=255)

    def to_media(self) -> Media:
        return Media(self.type, self.url, self.filename)


def to_rows(rows: list[list[ButtonBody]]) -> tuple[tuple[Button, ...], ...]:
    return tuple(
        tuple(Button(button.text, button.url, button.data) for button in row) for row in rows
    )


MessageText = Annotated[str, Field(min_length=1), AfterValidator(check_visible)]


class HasSource(Protocol):
    """A body with contents of its own or a template."""

    @property
    def text(self) -> Any: ...

    @property
    def template(self) -> str | None: ...

    @property
    def format(self) -> str: ...

    @property
    def media(self) -> Any: ...

    @property
    def buttons(self) -> Any: ...


def check_source(body: HasSource) -> None:
    """For validators: a body has a text of its own, or a template and no contents.

    A default value counts as omitted.
    """
    if body.template is None:
        if body.text is None:
            raise wrong_field("text", "is required, unless template is given")
        return
    own = {"text": body.text, "format": body.format, "media": body.media, "buttons": body.buttons}
    for field, value in own.items():
        if value and (field, value) != ("format", "plain"):
            raise wrong_field(field, "can't stand beside template, which has its own")


class Content(RequestModel):
    """The content of a message, also that of a rendered template."""

    text: MessageText
    format: Format = "plain"
    media: MediaBody | None = None
    buttons: list[list[ButtonBody]] = Field(default_factory=list)

    def to_message(self, *, silent: bool = False) -> OutgoingMessage:
        return OutgoingMessage(
            text=self.text,
            format=self.format,
            buttons=to_rows(self.buttons),
            media=self.media.to_media() if self.media else None,
            silent=silent,
        )


class SendBody(RequestModel):
    """A message to one subscriber, named by `subscriber_id` or by `external_id`: a `text`, or a
    `template` with its `variables`."""

    subscriber_id: str | None = None
    external_id: str | None = None
    channel: str | None = Field(None, description="With external_id: the channel to use.")
    template: str | None = Field(
        None, description="Key of a template, in place of text, format, media and buttons."
    )
    variables: Variables | None = Field(
        None, description="Texts, numbers, true or false for the template's `{{ name }}`."
    )
    text: MessageText | None = None
    format: Format = "plain"
    media: MediaBody | None = None
    buttons: list[list[ButtonBody]] = Field(
        default_factory=list, description="Rows from top to bottom."
    )
    permission: PermissionKey | None = Field(
        None, description="Skipped unless the subscriber has granted it when it is delivered."
    )
    silent: bool = Field(False, description="Deliver without a notification sound.")
    expires_in: int | None = Field(
        None,
        ge=1,
        le=30 * 24 * 3600,
        description="Seconds after which it is skipped if not sent yet.",
    )
    metadata: dict[str, Any] | None = Field(None, description="Returned in delivery events.")

    @model_validator(mode="after")
    def _text_or_template(self) -> "SendBody":
        check_source(self)
        if self.template is None and self.variables is not None:
            raise wrong_field("variables", "are for a template, and none is given")
        return self

    def to_message(self) -> OutgoingMessage:
        """The message of a body without template."""
        assert self.text is not None, "a template is rendered instead"
        return OutgoingMessage(
            text=self.text,
            format=self.format,
            buttons=to_rows(self.buttons),
            media=self.media.to_media() if self.media else None,
            silent=self.silent,
        )


class EditBody(RequestModel):
    """What a message is to show from now on. What is left out stays as it is."""

    text: Kept[MessageText] = None
    format: Kept[Format] = None
    media: Kept[MediaBody] = None
    buttons: Kept[list[list[ButtonBody]]] = Field(
        None,
        description="Rows from top to bottom; replaces all existing buttons, `[]` removes them.",
    )

    @model_validator(mode="after")
    def _one_at_least(self) -> "EditBody":
        if not self.model_fields_set:
            raise InvalidValue("give at least one of text, format, media and buttons")
        return self

    def changed(self, message: OutgoingMessage) -> OutgoingMessage:
        """The content of `message` after the edit."""
        return replace(
            message,
            text=message.text if self.text is None else self.text,
            format=message.format if self.format is None else self.format,
            media=message.media if self.media is None else self.media.to_media(),
            buttons=message.buttons if self.buttons is None else to_rows(self.buttons),
        )


class SendAnswer(ResponseModel):
    """The message was taken and will be delivered."""

    message_id: str
    status: Literal["queued"] = "queued"


@value_object
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
    permission: str | None = None
    batch_id: str | None = None
    edited_at_ms: int | None = None
    deleted_at_ms: int | None = None
    #: What the recipient sees while an edit is pending; None if that is `content`.
    shown: OutgoingMessage | None = None
    #: The mailing that the message belongs to.
    job_id: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.project_id, self.message_id


@value_object
class PreparedMessage:
    """What a body comes to: who gets it, by which bot, and what they are shown."""

    receiver: Recipient
    channel: Channel
    content: OutgoingMessage


@value_object
class FinalStatus:
    """The last status of a message; `ref` is what the platform knows it by."""

    message: Message
    status: MessageStatus
    reason: str | None = None
    error: str | None = None
    ref: str | None = None


class ButtonAnswer(ResponseModel):
    """A button: either `url` or `data`."""

    text: str
    url: str | None
    data: str | None


class MediaAnswer(ResponseModel):
    """The file of a message."""

    type: str
    url: str
    filename: str | None


class MessageAnswer(ResponseModel):
    """A message as the API shows it.

    `reason` is one of the delivery reasons when it failed. `error` is for people: why it failed, was
    skipped, has to be tried again, or could not be edited or deleted. `attempts` counts tries.
    """

    message_id: str
    subscriber_id: str
    channel: str
    status: MessageStatus
    reason: str | None
    error: str | None
    attempts: int
    text: str
    format: str
    buttons: list[list[ButtonAnswer]]
    media: MediaAnswer | None
    silent: bool
    permission: str | None
    batch_id: str | None
    job_id: str | None
    metadata: dict[str, Any] | None
    created_at: str
    expires_at: str | None
    finished_at: str | None
    edited_at: str | None
    deleted_at: str | None

    @classmethod
    def of(cls, message: Message) -> "MessageAnswer":
        content = message.content
        media = content.media
        return cls(
            message_id=message.message_id,
            subscriber_id=message.subscriber_id,
            channel=message.channel,
            status=message.status,
            reason=message.reason,
            error=message.error,
            attempts=message.attempts,
            text=content.text,
            format=content.format,
            buttons=[
                [ButtonAnswer(text=each.text, url=each.url, data=each.data) for each in row]
                for row in content.buttons
            ],
            media=media and MediaAnswer(type=media.type, url=media.url, filename=media.filename),
            silent=content.silent,
            permission=message.permission,
            batch_id=message.batch_id,
            job_id=message.job_id,
            metadata=message.metadata,
            created_at=to_rfc3339(message.created_at_ms),
            expires_at=optional_rfc3339(message.expires_at_ms),
            finished_at=optional_rfc3339(message.finished_at_ms),
            edited_at=optional_rfc3339(message.edited_at_ms),
            deleted_at=optional_rfc3339(message.deleted_at_ms),
        )


class MessageList(ResponseModel):
    """A page of messages, newest first."""

    data: list[MessageAnswer]
    next_cursor: str | None


class MessageQuery(PageQuery):
    """Filters and paging."""

    status: MessageStatus | None = None
    reason: Reason | None = Field(None, description="Filter by the reason of failure.")
    subscriber_id: str | None = None
    channel: str | None = None
    created_after: MomentMs | None = Field(None, description="Only messages sent after this time.")
    batch_id: str | None = None


class DeliverySuccess(ResponseModel):
    """Fields of `delivery.success`. `batch_id` is that of `POST /v1/send/batch`, `job_id` that of a
    broadcast or another mailing."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset({"batch_id", "job_id"})

    message_id: str
    batch_id: str | None = None
    job_id: str | None = None
    metadata: dict[str, Any] | None


class DeliveryFailed(DeliverySuccess):
    """Fields of `delivery.failed`. Act on the flags, not on the text of `error`.

    `status` is the message's: `failed`, or `unknown` where the service can't tell whether it arrived. If that
    turns out later, the message's status is corrected; `delivery.success` follows if it did arrive.
    """

    status: Literal["failed", "unknown"]
    reason: str
    retryable: bool | None
    should_unsubscribe: bool | None
    error: str


class BatchCompleted(ResponseModel):
    """Fields of `batch.completed`: `total` is the sum of `sent`, `failed` and `skipped`. `failed` holds
    those of `unknown`: the service can't tell whether they arrived."""

    batch_id: str
    sent: int
    failed: int
    unknown: int
    skipped: int
    total: int


class ButtonClicked(ResponseModel):
    """Fields of `button.clicked`."""

    message_id: str | None
    data: str
    text: str
