"""The content of a message in requests and responses, declared once.

The fields are the same for what a caller sends (`Content`), what a template holds in each language
(`TemplateContent`), and what a recipient sees (`MessageAnswer`). Only the types of their values differ: they
are the type arguments of the models below. Channels get an `OutgoingMessage`, whose fields have their names.
"""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import HttpUrl, Kept, Url
from msgsvc_core.api.validation import wrong_field
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

#: Maximum bytes of a button's data, which every platform supports (decision 0075).
BUTTON_DATA_BYTES = 64

TEXT_EXAMPLE = "Hi Ann, your order 1207 is on its way."

TextT = TypeVar("TextT")
UrlT = TypeVar("UrlT")
DataT = TypeVar("DataT")
NameT = TypeVar("NameT")
MediaT = TypeVar("MediaT")
FormatT = TypeVar("FormatT")
RowsT = TypeVar("RowsT")

#: Defaults of fields whose type is an argument; their types allow them.
_NONE: Any = None
_no_rows: Callable[[], Any] = list


class MessageButton(BaseModel, Generic[TextT, UrlT, DataT]):
    """A button of a message."""

    text: TextT = Field(description="Label.")
    url: UrlT | None = Field(
        None, description="Page that the button opens; null or left out if it has `data`."
    )
    data: DataT | None = Field(
        None,
        description="What `button.clicked` carries, at most 64 bytes; null or left out if the button has a"
        " `url`.",
    )
    style: ButtonStyle | None = Field(
        None,
        description="Its colour on messengers that have such: blue, green or red. Others show the button like"
        " any. Null for the messenger's own colour.",
        examples=["primary"],
    )


class GivenButton(MessageButton[TextT, UrlT, DataT], RequestModel, Generic[TextT, UrlT, DataT]):
    """A button in a request."""

    @model_validator(mode="after")
    def _one_action(self) -> Self:
        """Exactly one of `url` and `data` is given."""
        if (self.url is None) == (self.data is None):
            raise InvalidValue("give exactly one of url and data")
        return self


class MessageMedia(BaseModel, Generic[UrlT, NameT]):
    """The file of a message."""

    type: MediaType = Field(description="How the messenger shows the file.", examples=["document"])
    url: UrlT = Field(
        description="Where the file is fetched from: any public address, or the `url` of a file of"
        " `POST /v1/files`."
    )
    filename: NameT | None = Field(
        None,
        description="Name of a document that the recipient sees; null or left out for the one in the URL.",
    )


class TextPart(BaseModel, Generic[TextT]):
    """The text of a message."""

    text: TextT
    format: Format = Field(
        "plain",
        description="Markup of `text`: none, a subset of Markdown, or a subset of HTML. `rich` is that of"
        " `html`, and headings, lists, tables, quotes, code blocks and dividers, which messengers without"
        " them show as lines.",
        examples=["plain"],
    )


class MediaPart(BaseModel, Generic[MediaT]):
    """The file of a message, if it has one."""

    media: MediaT | None = Field(None, description="File that is shown with the text.")


class ButtonsPart(BaseModel, Generic[RowsT]):
    """The buttons of a message."""

    buttons: RowsT = Field(
        default_factory=_no_rows,
        description="Rows of buttons under the message, from top to bottom.",
    )


class MessageContent(
    ButtonsPart[RowsT], MediaPart[MediaT], TextPart[TextT], Generic[TextT, MediaT, RowsT]
):
    """What a message holds."""


class TemplatePart(BaseModel):
    """The template of a message, and its values."""

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


class ContentOrTemplate(
    MessageContent[TextT, MediaT, RowsT],
    TemplatePart,
    RequestModel,
    Generic[TextT, MediaT, RowsT],
):
    """What a message holds, or the template that it is made of."""

    text: TextT = _NONE

    @model_validator(mode="after")
    def _text_or_template(self) -> Self:
        """Either `text` or `template` is given. With `template`: no `format`, `media` or `buttons`."""
        self.check_source()
        return self

    def check_source(self) -> None:
        """For validators: there is a text, or a template and no contents. A default value counts as
        omitted."""
        if self.template is None:
            if self.text is None:
                raise wrong_field("text", "is required, unless template is given")
            return
        for field in MessageContent.model_fields:
            value = getattr(self, field)
            if value and (field, value) != ("format", "plain"):
                raise wrong_field(field, "can't be combined with template, which has its own")


class ContentChanges(RequestModel, Generic[TextT, FormatT, MediaT, RowsT]):
    """Changes of a message's contents; omitted fields stay unchanged. The types say what null does."""

    text: TextT = _NONE
    format: FormatT = _NONE
    media: MediaT = _NONE
    buttons: RowsT = Field(
        _NONE,
        description="Rows from top to bottom; replaces all existing buttons, `[]` removes them.",
    )


MessageText = Annotated[str, Field(min_length=1), AfterValidator(check_visible)]
#: Markup of a text in changes, which null does not reset.
KeptFormat = Annotated[
    Kept[Format], Field(description="Markup of `text`, as in `POST /v1/send`.", examples=["plain"])
]

_Label = Annotated[
    str,
    Field(min_length=1, max_length=64, examples=["Track the parcel"]),
    AfterValidator(check_visible),
]
_ORDER_URL = f"{examples.SITE_URL}/orders/1207"
_INVOICE_URL = f"{examples.SITE_URL}/invoices/1207.pdf"
_INVOICE = "invoice-1207.pdf"


class ButtonBody(
    GivenButton[
        _Label,
        Annotated[HttpUrl, Field(examples=[_ORDER_URL])],
        Annotated[str, Field(min_length=1, examples=["call:1207"])],
    ]
):
    """A button: `url` opens a page, `data` comes back as the event `button.clicked`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "Track the parcel", "url": _ORDER_URL},
                {"text": "Call me back", "data": "call:1207"},
            ]
        }
    )

    @model_validator(mode="after")
    def _short_data(self) -> Self:
        """`data` has at most 64 bytes as UTF-8."""
        if self.data is not None:
            if len(self.data.encode()) > BUTTON_DATA_BYTES:
                raise InvalidValue("data must be at most {limit} bytes", limit=BUTTON_DATA_BYTES)
            if self.data.startswith(OWN_BUTTON):
                raise InvalidValue("data must not begin with {prefix!r}", prefix=OWN_BUTTON)
        return self


class MediaBody(
    MessageMedia[
        Annotated[HttpUrl, Field(examples=[_INVOICE_URL])],
        Annotated[str, Field(min_length=1, max_length=255, examples=[_INVOICE])],
    ],
    RequestModel,
):
    """A file that the platform fetches from `url` and shows with the message."""

    def to_media(self) -> Media:
        return Media(self.type, self.url, self.filename)


class ButtonAnswer(
    MessageButton[
        Annotated[str, Field(examples=["Track the parcel"])],
        Annotated[Url, Field(examples=[_ORDER_URL])],
        Annotated[str, Field(examples=[None])],
    ],
    ResponseModel,
):
    """A button: either `url` or `data`."""

    @classmethod
    def rows_of(cls, message: OutgoingMessage) -> list[list[Self]]:
        """The buttons of a message."""
        return [
            [cls(text=each.text, url=each.url, data=each.data, style=each.style) for each in row]
            for row in message.buttons
        ]


class MediaAnswer(
    MessageMedia[
        Annotated[Url, Field(examples=[_INVOICE_URL])], Annotated[str, Field(examples=[_INVOICE])]
    ],
    ResponseModel,
):
    """The file of a message."""

    @classmethod
    def of(cls, media: Media | None) -> Self | None:
        """The file of a message; None without one."""
        if media is None:
            return None
        return cls(type=media.type, url=media.url, filename=media.filename)


def to_rows(rows: Iterable[Iterable[ButtonBody]]) -> tuple[tuple[Button, ...], ...]:
    return tuple(
        tuple(Button(button.text, button.url, button.data, button.style) for button in row)
        for row in rows
    )


#: Fields that an `OutgoingMessage` has as they are given.
_AS_GIVEN = tuple(MessageContent.model_fields.keys() - {"text", "media", "buttons"})


def to_message(
    content: MessageContent[Any, MediaBody, list[list[ButtonBody]]], text: str, *, silent: bool
) -> OutgoingMessage:
    """What a channel gets of a content with this text."""
    return OutgoingMessage(
        text=text,
        buttons=to_rows(content.buttons),
        media=content.media.to_media() if content.media else None,
        silent=silent,
        **{name: getattr(content, name) for name in _AS_GIVEN},
    )


def shown(
    message: OutgoingMessage,
    *,
    media: type[MediaAnswer] = MediaAnswer,
    button: type[ButtonAnswer] = ButtonAnswer,
) -> dict[str, Any]:
    """The fields of `MessageContent` in a response that shows this message."""
    return {
        **{name: getattr(message, name) for name in MessageContent.model_fields},
        "media": media.of(message.media),
        "buttons": button.rows_of(message),
    }


class Content(MessageContent[MessageText, MediaBody, list[list[ButtonBody]]], RequestModel):
    """The content of a message, also that of a rendered template."""

    def to_message(self, *, silent: bool = False) -> OutgoingMessage:
        return to_message(self, self.text, silent=silent)
