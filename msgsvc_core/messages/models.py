"""Models of messages: internal, and of the API."""

from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import (
    CreatedAt,
    HttpUrl,
    Kept,
    MomentMs,
    NamedByExternalId,
    NamedById,
    NamedOnChannel,
    OnChannel,
    SubscriberId,
    Time,
    Url,
)
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.channels.contract import Channel
from msgsvc_core.channels.failures import Reason
from msgsvc_core.channels.inbound import OWN_BUTTON
from msgsvc_core.content.outgoing import (
    Button,
    ButtonStyle,
    Format,
    Media,
    MediaType,
    OutgoingMessage,
)
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.clock import optional_rfc3339, to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.values import value_object
from msgsvc_core.kernel.visible_text import check_visible
from msgsvc_core.routing.models import ROUTE_ID, RouteStep, SkippedStep, read_steps
from msgsvc_core.subscribers.models import PermissionKey, Recipient

MessageStatus = Literal["queued", "sending", "sent", "failed", "skipped", "unknown"]

#: Maximum bytes of a button's data, which every platform supports (decision 0075).
BUTTON_DATA_BYTES = 64

#: Maximum bytes of `metadata` as JSON.
METADATA_BYTES = 4096

MessageId = Annotated[
    str,
    Field(
        description="Id of the message, from `POST /v1/send` or a delivery event.",
        examples=[examples.MESSAGE_ID],
    ),
]
BatchId = Annotated[
    str,
    Field(
        description="Id of the batch, from `POST /v1/send/batch`.",
        examples=[examples.BATCH_ID],
    ),
]
Metadata = Annotated[
    dict[str, Any] | None,
    Field(description="That of `POST /v1/send`.", examples=[{"order_id": "1207"}]),
]


#: Of a button's style, in bodies and answers.
BUTTON_STYLE = (
    "Its colour on messengers that have such: blue, green or red. Others show the button like any. Null for"
    " the messenger's own colour."
)


class ButtonBody(RequestModel):
    """A button: `url` opens a page, `data` comes back as the event `button.clicked`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Track the parcel", "url": f"{examples.SITE_URL}/orders/1207"},
                {"text": "Call me back", "data": "call:1207"},
            ]
        }
    )

    text: Annotated[str, Field(min_length=1, max_length=64), AfterValidator(check_visible)] = Field(
        description="Label, at most 64 characters, at least one of them visible.",
        examples=["Track the parcel"],
    )
    url: HttpUrl | None = Field(
        None,
        description="Page that the button opens. Exactly one of this and `data`.",
        examples=[f"{examples.SITE_URL}/orders/1207"],
    )
    data: str | None = Field(
        None,
        min_length=1,
        description="Your own text, at most 64 bytes, that `button.clicked` carries. Exactly one of this and"
        " `url`.",
        examples=["call:1207"],
    )
    style: ButtonStyle | None = Field(None, description=BUTTON_STYLE, examples=["primary"])

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

    type: MediaType = Field(description="How the messenger shows the file.", examples=["document"])
    url: HttpUrl = Field(
        description="Where the file is fetched from: any public address, or the `url` of a file of"
        " `POST /v1/files`.",
        examples=[f"{examples.SITE_URL}/invoices/1207.pdf"],
    )
    filename: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="Name of a document that the recipient sees; without it, the one in the URL.",
        examples=["invoice-1207.pdf"],
    )

    def to_media(self) -> Media:
        return Media(self.type, self.url, self.filename)


def to_rows(rows: list[list[ButtonBody]]) -> tuple[tuple[Button, ...], ...]:
    return tuple(
        tuple(Button(button.text, button.url, button.data, button.style) for button in row)
        for row in rows
    )


MessageText = Annotated[str, Field(min_length=1), AfterValidator(check_visible)]

#: What bodies of messages have in common.
FORMAT = "Markup of `text`: none, a subset of Markdown, or a subset of HTML."
BUTTON_ROWS = "Rows of buttons under the message, from top to bottom."
MEDIA = "File that is shown with the text."
TEXT_EXAMPLE = "Hi Ann, your order 1207 is on its way."


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

    text: MessageText = Field(description="Text that the recipient sees.", examples=[TEXT_EXAMPLE])
    format: Format = Field("plain", description=FORMAT, examples=["plain"])
    media: MediaBody | None = Field(None, description=MEDIA)
    buttons: list[list[ButtonBody]] = Field(default_factory=list, description=BUTTON_ROWS)

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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": TEXT_EXAMPLE,
                    "buttons": [
                        [{"text": "Track the parcel", "url": f"{examples.SITE_URL}/orders/1207"}],
                        [{"text": "Call me back", "data": "call:1207"}],
                    ],
                    "metadata": {"order_id": "1207"},
                },
                {
                    "external_id": examples.EXTERNAL_ID,
                    "template": "order_shipped",
                    "variables": {"order": 1207},
                    "permission": examples.PERMISSION,
                    "expires_in": 86400,
                },
                {
                    "subscriber_id": examples.SUBSCRIBER_ID,
                    "text": "Your **invoice** for order 1207.",
                    "format": "markdown",
                    "media": {
                        "type": "document",
                        "url": f"{examples.SITE_URL}/invoices/1207.pdf",
                        "filename": "invoice-1207.pdf",
                    },
                    "silent": True,
                },
            ]
        }
    )

    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: NamedOnChannel = None
    route: str | None = Field(
        None,
        description="Id of a route of `POST /v1/routes`: the person, named by `external_id`, is tried on its"
        " channels in their order, until one of them is reached. It remains one message, with one outcome.",
        examples=[ROUTE_ID],
    )
    template: str | None = Field(
        None,
        description="Key of a template, in place of `text`, `format`, `media` and `buttons`.",
        examples=["order_shipped"],
    )
    variables: Variables | None = Field(
        None,
        description="Values for the template's `{{ name }}`: texts, numbers, true or false. Those without a"
        " default in the template are required.",
        examples=[{"order": 1207}],
    )
    text: MessageText | None = Field(
        None,
        description="Text that the recipient sees, at most `limits.text_length` characters of"
        " `GET /v1/project`. Required unless `template` is given.",
        examples=[TEXT_EXAMPLE],
    )
    format: Format = Field("plain", description=FORMAT, examples=["plain"])
    media: MediaBody | None = Field(None, description=MEDIA)
    buttons: list[list[ButtonBody]] = Field(default_factory=list, description=BUTTON_ROWS)
    permission: PermissionKey | None = Field(
        None,
        description="Key of a permission. The message is skipped unless the subscriber has granted it when"
        " it is delivered.",
        examples=[examples.PERMISSION],
    )
    silent: bool = Field(
        False, description="Deliver without a notification sound.", examples=[False]
    )
    expires_in: int | None = Field(
        None,
        ge=1,
        le=30 * 24 * 3600,
        description="Seconds after which the message is skipped if it could not be sent yet; without it, it"
        " never is for that reason.",
        examples=[86400],
    )
    metadata: dict[str, Any] | None = Field(
        None,
        description="Your own data, at most 4,096 bytes as JSON; delivery events carry it, the recipient"
        " never sees it.",
        examples=[{"order_id": "1207"}],
    )

    @model_validator(mode="after")
    def _text_or_template(self) -> "SendBody":
        if self.route is not None:
            for field in ("channel", "subscriber_id"):
                if getattr(self, field) is not None:
                    raise wrong_field(
                        field, "can't stand beside route, which has channels; give external_id"
                    )
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

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "text": "Hi Ann, your order 1207 was delivered.",
                    "buttons": [[{"text": "Rate us", "url": f"{examples.SITE_URL}/rate/1207"}]],
                },
                {"buttons": []},
            ]
        }
    )

    text: Kept[MessageText] = Field(
        None, description="New text.", examples=["Hi Ann, your order 1207 was delivered."]
    )
    format: Kept[Format] = Field(None, description=FORMAT, examples=["plain"])
    media: Kept[MediaBody] = Field(
        None, description="New file; that of a sent message changes where the channel supports it."
    )
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

    message_id: MessageId = Field(
        description="Names the message in `/v1/messages` and in delivery events."
    )
    status: Literal["queued"] = Field(
        "queued",
        description="Always `queued`: the outcome is reported by `delivery.success` and `delivery.failed`.",
        examples=["queued"],
    )


#: What ends a step of a route after the messenger has accepted the message.
Awaited = Literal["delivered", "read", "answered"]

#: What became of a step of a route.
CopyStatus = Literal["sent", "failed", "unknown", "skipped"]

#: The reason of a step whose message could not be sent in its time.
NOT_IN_TIME = "not_in_time"


@value_object
class MessageCopy:
    """A step of a message's route that is over, or waits: the message as it was sent there, or why it was
    not."""

    step: int
    channel: str
    subscriber_id: str | None
    bot: str | None
    status: CopyStatus
    reason: str | None
    error: str | None
    message_ref: str | None
    finished_at_ms: int
    delivered_at_ms: int | None = None
    read_at_ms: int | None = None


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
    #: The recorded trace of the request, or of the mailing's run, that sent it.
    trace_id: str | None = None
    #: When the platform reported that it arrived, and that it was read.
    delivered_at_ms: int | None = None
    read_at_ms: int | None = None
    #: The route, its steps when the message was accepted (`routing.models.read_steps`), and the number of the
    #: one it is at, from 0; None without a route. The recipient and the bot are those of the step.
    route_id: str | None = None
    route_steps: str | None = None
    route_step: int | None = None
    #: What it waits for while it is `sending`, and no call is in progress.
    waits_for: Awaited | None = None
    #: Whom a message with a route is for. None of a person without such an id, and of older messages: it is
    #: for whoever its subscriber is.
    external_id: str | None = None
    #: The steps that are over; only loaded for answers.
    past_steps: tuple[MessageCopy, ...] = ()

    @property
    def steps(self) -> tuple[RouteStep, ...]:
        """The steps of its route."""
        return () if self.route_steps is None else read_steps(self.route_steps)

    @property
    def key(self) -> tuple[str, str]:
        return self.project_id, self.message_id


@value_object
class PreparedRoute:
    """The route of a prepared message, the step at which it begins, and those before it, which are passed
    over."""

    route_id: str
    steps: tuple[RouteStep, ...]
    step: int
    skipped: tuple[SkippedStep, ...]


@value_object
class PreparedMessage:
    """What a body comes to: who gets it, by which bot, and what they are shown."""

    receiver: Recipient
    channel: Channel
    content: OutgoingMessage
    route: PreparedRoute | None = None


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

    text: str = Field(description="Label.", examples=["Track the parcel"])
    url: Url | None = Field(
        description="Page that the button opens; null if it has `data`.",
        examples=[f"{examples.SITE_URL}/orders/1207"],
    )
    data: str | None = Field(
        description="What `button.clicked` carries; null if the button has a `url`.",
        examples=[None],
    )
    style: ButtonStyle | None = Field(description=BUTTON_STYLE, examples=["primary"])


class MediaAnswer(ResponseModel):
    """The file of a message."""

    type: MediaType = Field(description="How the messenger shows the file.", examples=["document"])
    url: Url = Field(
        description="Where the file is fetched from.",
        examples=[f"{examples.SITE_URL}/invoices/1207.pdf"],
    )
    filename: str | None = Field(
        description="Name of a document that the recipient sees; null for the one in the URL.",
        examples=["invoice-1207.pdf"],
    )


class PastStepAnswer(ResponseModel):
    """A step of a message's route that is over, or whose report is waited for."""

    channel: OnChannel
    subscriber_id: str | None = Field(
        description="Whom it was sent to; null if the step was passed over.",
        examples=[examples.SUBSCRIBER_ID],
    )
    status: CopyStatus = Field(
        description="`sent`: the messenger accepted the message there. `skipped`: the step was passed over.",
        examples=["failed"],
    )
    reason: str | None = Field(
        description="Why it failed, as in `reason` of the message, or was passed over: e.g. `no_subscriber`,"
        " `unsubscribed`, `outside_hours` or `not_in_time`; null if it was sent.",
        examples=["user_blocked_bot"],
    )
    error: str | None = Field(
        description="For people: why it failed; null otherwise.",
        examples=["Forbidden: bot was blocked by the user"],
    )
    finished_at: Time = Field(
        description="When the messenger accepted or refused it, or the step was passed over.",
        examples=[examples.DONE],
    )
    delivered_at: Time | None = Field(
        description="When it arrived there, as the messenger reports it; null otherwise.",
        examples=[None],
    )
    read_at: Time | None = Field(
        description="When it was read there, as the messenger reports it; null otherwise.",
        examples=[None],
    )

    @classmethod
    def of(cls, copy: MessageCopy) -> "PastStepAnswer":
        return cls(
            channel=copy.channel,
            subscriber_id=copy.subscriber_id,
            status=copy.status,
            reason=copy.reason,
            error=copy.error,
            finished_at=to_rfc3339(copy.finished_at_ms),
            delivered_at=optional_rfc3339(copy.delivered_at_ms),
            read_at=optional_rfc3339(copy.read_at_ms),
        )


class MessageAnswer(ResponseModel):
    """A message as the API shows it."""

    message_id: MessageId
    subscriber_id: SubscriberId
    channel: OnChannel
    status: MessageStatus = Field(
        description="`queued` and `sending` are not final. `skipped`: it was not sent, and `error` says why."
        " `unknown`: the connection broke while it was sent, so it may have arrived.",
        examples=["sent"],
    )
    reason: Reason | None = Field(
        description="Why it failed, for programs; null unless `status` is `failed` or `unknown`.",
        examples=[None],
    )
    error: str | None = Field(
        description="For people: why it failed, was skipped, has to be tried again, or could not be edited or"
        " deleted; null if nothing of that happened.",
        examples=[None],
    )
    attempts: int = Field(
        description="Tries of delivery so far; waiting for a platform that is limiting or unavailable is"
        " none.",
        examples=[1],
    )
    text: str = Field(
        description="What the recipient sees; of a template, with its variables filled in.",
        examples=[TEXT_EXAMPLE],
    )
    format: Format = Field(description=FORMAT, examples=["plain"])
    buttons: list[list[ButtonAnswer]] = Field(description=BUTTON_ROWS)
    media: MediaAnswer | None = Field(
        description="File shown with the text; null without one.", examples=[None]
    )
    silent: bool = Field(
        description="Whether it is delivered without a notification sound.", examples=[False]
    )
    permission: str | None = Field(
        description="Permission that the recipient must have granted on delivery; null if none is needed.",
        examples=[None],
    )
    batch_id: str | None = Field(
        description="Batch of `POST /v1/send/batch` that it came with; null for others.",
        examples=[None],
    )
    job_id: str | None = Field(
        description="Broadcast or other mailing that it belongs to; null for others.",
        examples=[None],
    )
    metadata: Metadata
    created_at: CreatedAt = Field(examples=[examples.TIME])
    expires_at: Time | None = Field(
        description="When it is skipped if not sent yet; null without a limit.",
        examples=[None],
    )
    finished_at: Time | None = Field(
        description="When `status` became final; null until then.", examples=[examples.DONE]
    )
    delivered_at: Time | None = Field(
        description="When it arrived, as the messenger reports it; null before that, and on channels that do"
        " not report it.",
        examples=[None],
    )
    read_at: Time | None = Field(
        description="When the recipient read it, as the messenger reports it; null before that, and on"
        " channels that do not report it.",
        examples=[None],
    )
    edited_at: Time | None = Field(
        description="When the last edit became visible; null without one.", examples=[None]
    )
    deleted_at: Time | None = Field(
        description="When it was deleted from the chat, or cancelled; null otherwise.",
        examples=[None],
    )
    route: str | None = Field(
        description="Route that it is sent by; null without one. `subscriber_id` and `channel` are those of"
        " the step that it is at.",
        examples=[None],
    )
    waits_for: Awaited | None = Field(
        description="What is waited for at this step of its route before the next one is tried, while"
        " `status` is `sending`; null otherwise.",
        examples=[None],
    )
    past_steps: list[PastStepAnswer] = Field(
        description="Steps of its route so far, in their order; empty without a route."
    )

    @classmethod
    def of(cls, message: Message) -> "MessageAnswer":
        content = message.content
        media = content.media
        return cls(
            message_id=message.message_id,
            subscriber_id=message.subscriber_id,
            channel=message.channel,
            status=message.status,
            reason=message.reason and Reason(message.reason),
            error=message.error,
            attempts=message.attempts,
            text=content.text,
            format=content.format,
            buttons=[
                [
                    ButtonAnswer(text=each.text, url=each.url, data=each.data, style=each.style)
                    for each in row
                ]
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
            delivered_at=optional_rfc3339(message.delivered_at_ms),
            read_at=optional_rfc3339(message.read_at_ms),
            edited_at=optional_rfc3339(message.edited_at_ms),
            deleted_at=optional_rfc3339(message.deleted_at_ms),
            route=message.route_id,
            waits_for=message.waits_for,
            past_steps=[PastStepAnswer.of(copy) for copy in message.past_steps],
        )


class MessageList(ResponseModel):
    """A page of messages, newest first."""

    data: list[MessageAnswer] = Field(description="The page's messages.")
    next_cursor: NextCursor


class MessageQuery(PageQuery):
    """Filters and paging."""

    status: MessageStatus | None = Field(
        None, description="Only messages of this status.", examples=["failed"]
    )
    reason: Reason | None = Field(
        None, description="Only messages that failed for this reason.", examples=["bot_banned"]
    )
    subscriber_id: str | None = Field(
        None, description="Only messages to this recipient.", examples=[examples.SUBSCRIBER_ID]
    )
    channel: str | None = Field(
        None, description="Only messages on this channel.", examples=[examples.CHANNEL]
    )
    created_after: MomentMs | None = Field(
        None, description="Only messages made after this time.", examples=[examples.EARLIER]
    )
    batch_id: str | None = Field(
        None, description="Only messages of this batch.", examples=[examples.BATCH_ID]
    )


class DeliverySuccess(ResponseModel):
    """Fields of `delivery.success`. `batch_id` is that of `POST /v1/send/batch`, `job_id` that of a
    broadcast or another mailing."""

    leave_out_none: ClassVar[frozenset[str]] = frozenset({"batch_id", "job_id"})

    message_id: MessageId
    batch_id: str | None = Field(
        None,
        description="Batch that the message came with; absent for others.",
        examples=[examples.BATCH_ID],
    )
    job_id: str | None = Field(
        None,
        description="Broadcast or other mailing that the message belongs to; absent for others.",
    )
    metadata: Metadata


class DeliveryDelivered(DeliverySuccess):
    """Fields of `delivery.delivered`: the messenger reports that the message arrived."""

    delivered_at: Time = Field(
        description="When it arrived, as the messenger reports it.", examples=[examples.DONE]
    )


class DeliveryRead(DeliverySuccess):
    """Fields of `delivery.read`: the messenger reports that the recipient has read the message."""

    read_at: Time = Field(
        description="When it was read, as the messenger reports it.", examples=[examples.DONE]
    )


class DeliveryFailed(DeliverySuccess):
    """Fields of `delivery.failed`. Act on the flags, not on the text of `error`.

    `status` is the message's: `failed`, or `unknown` where the service can't tell whether it arrived. If that
    turns out later, the message's status is corrected; `delivery.success` follows if it did arrive. On a
    channel that reports failures later, it may follow `delivery.success`.
    """

    status: Literal["failed", "unknown"] = Field(
        description="`unknown`: the connection broke while it was sent, so it may have arrived.",
        examples=["failed"],
    )
    reason: Reason = Field(
        description="Why it failed, for programs.", examples=["user_blocked_bot"]
    )
    retryable: bool | None = Field(
        description="Whether the same message could succeed later; null if `status` is `unknown`.",
        examples=[False],
    )
    should_unsubscribe: bool | None = Field(
        description="Whether the person can't be reached any more; null if `status` is `unknown`.",
        examples=[True],
    )
    error: str = Field(
        description="Why it failed, for people; the wording may change.",
        examples=["Forbidden: bot was blocked by the user"],
    )


#: How the messages of a batch ended.
Sent = Annotated[int, Field(description="Messages that the messenger accepted.", examples=[2])]
Failed = Annotated[
    int, Field(description="Messages that failed, those of `unknown` included.", examples=[1])
]
Unknown = Annotated[
    int, Field(description="Messages of which nobody can tell whether they arrived.", examples=[0])
]
Skipped = Annotated[
    int,
    Field(
        description="Messages that were not sent: cancelled, expired, without the permission, or to people"
        " who had unsubscribed.",
        examples=[0],
    ),
]


class BatchCompleted(ResponseModel):
    """Fields of `batch.completed`: `total` is the sum of `sent`, `failed` and `skipped`. `failed` holds
    those of `unknown`: the service can't tell whether they arrived."""

    batch_id: BatchId
    sent: Sent
    failed: Failed
    unknown: Unknown
    skipped: Skipped
    total: int = Field(description="Messages of the batch that were accepted.", examples=[3])


class ButtonClicked(ResponseModel):
    """Fields of `button.clicked`."""

    message_id: str | None = Field(
        description="Message that has the button; null if it is not known, e.g. for an old one.",
        examples=[examples.MESSAGE_ID],
    )
    data: str = Field(description="The button's `data`.", examples=["call:1207"])
    text: str = Field(description="The button's label.", examples=["Call me back"])
