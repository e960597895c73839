"""Bodies of requests about messages, and the query of their list."""

from dataclasses import replace
from typing import Annotated, Any, Protocol

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import (
    HttpUrl,
    Kept,
    MomentMs,
    NamedByExternalId,
    NamedById,
    NamedOnChannel,
)
from msgsvc_core.api.validation import wrong_field
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
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.visible_text import check_visible
from msgsvc_core.messages.fields import (
    BUTTON_DATA_BYTES,
    BUTTON_ROWS,
    BUTTON_STYLE,
    FORMAT,
    MEDIA,
    TEXT_EXAMPLE,
    MessageStatus,
    MessageText,
)
from msgsvc_core.routing.models import ROUTE_ID
from msgsvc_core.subscribers.models import PermissionKey


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
