"""Models of templates: internal, and of the API."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Kept, OnChannel, UpdatedAt, Url
from msgsvc_core.content.outgoing import ButtonStyle, Format, MediaType, OutgoingMessage
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.i18n import Language, Localized, visible
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.fields import BUTTON_STYLE

#: A template's key in the API.
TemplateKey = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$", examples=["order_shipped"])]

#: A template in a path.
NamedTemplate = Annotated[
    str, Field(description="The template, by its key.", examples=["order_shipped"])
]

#: Maximum characters of a template's text, before variables are inserted. The rendered text has the limits of
#: every message.
SOURCE_LENGTH = 16_000

#: Maximum characters of a button's text or data, and of a URL.
SHORT_SOURCE_LENGTH = 1000
ADDRESS_LENGTH = 2048

Source = Annotated[str, Field(min_length=1, max_length=SHORT_SOURCE_LENGTH)]
AddressSource = Annotated[str, Field(min_length=1, max_length=ADDRESS_LENGTH)]

#: The example of templates, and what it comes to for Ann.
TEXT: dict[str, Any] = {
    "en": 'Hi {{ name | default("there") }}, your order {{ order }} is on its way.',
    "ru": "Здравствуйте! Заказ {{ order }} уже в пути.",
}
RENDERED = "Hi Ann, your order 1207 is on its way."
ORDER_URL = f"{examples.SITE_URL}/orders/{{{{ order }}}}"
INVOICE_URL = f"{examples.SITE_URL}/invoices/{{{{ order }}}}.pdf"
BUTTON: dict[str, Any] = {
    "text": {"en": "Track the parcel", "ru": "Где посылка?"},
    "url": ORDER_URL,
}

FORMAT = "Markup of `text`: none, a subset of Markdown, or a subset of HTML."
BUTTON_ROWS = "Rows of buttons under the message, from top to bottom."


class TemplateButton(RequestModel):
    """A button as in `POST /v1/send`; all of it may hold variables."""

    model_config = ConfigDict(json_schema_extra={"examples": [BUTTON]})

    text: Annotated[Localized, visible(SHORT_SOURCE_LENGTH)] = Field(
        description="Label, or one per language.", examples=[BUTTON["text"]]
    )
    url: AddressSource | None = Field(
        None,
        description="Page that the button opens; its scheme and host can't hold variables. Exactly one of"
        " this and `data`.",
        examples=[ORDER_URL],
    )
    data: Source | None = Field(
        None,
        description="Your own text that `button.clicked` carries, at most 64 bytes when filled in. Exactly"
        " one of this and `url`.",
        examples=["call:{{ order }}"],
    )
    style: ButtonStyle | None = Field(None, description=BUTTON_STYLE, examples=["primary"])

    @model_validator(mode="after")
    def _one_action(self) -> "TemplateButton":
        if (self.url is None) == (self.data is None):
            raise InvalidValue("give exactly one of url and data")
        return self


class TemplateMedia(RequestModel):
    """A file as in `POST /v1/send`; address and name may hold variables."""

    type: MediaType = Field(description="How the messenger shows the file.", examples=["document"])
    url: AddressSource = Field(
        description="Where the file is fetched from; its scheme and host can't hold variables.",
        examples=[INVOICE_URL],
    )
    filename: Source | None = Field(
        None,
        description="Name of a document that the recipient sees; without it, the one in the URL.",
        examples=["invoice-{{ order }}.pdf"],
    )


class TemplateContent(RequestModel):
    """What a template is made of."""

    text: Annotated[Localized, visible(SOURCE_LENGTH)] = Field(
        description="One text for all, or one per language; recipients get theirs, else that of the service's"
        " default language. May hold variables.",
        examples=[TEXT],
    )
    format: Format = Field("plain", description=FORMAT, examples=["plain"])
    media: TemplateMedia | None = Field(None, description="File that is shown with the text.")
    buttons: list[list[TemplateButton]] = Field(default_factory=list, description=BUTTON_ROWS)

    def to_column(self) -> str:
        return to_json(self.model_dump(exclude_defaults=True))


class CreateTemplateBody(TemplateContent):
    """A new template."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"key": "order_shipped", "text": TEXT, "buttons": [[BUTTON]]},
                {
                    "key": "invoice",
                    "text": "Your **invoice** for order {{ order }}.",
                    "format": "markdown",
                    "media": {
                        "type": "document",
                        "url": INVOICE_URL,
                        "filename": "invoice-{{ order }}.pdf",
                    },
                },
            ]
        }
    )

    key: TemplateKey = Field(
        description="What `template` of `POST /v1/send` names it by; it can't be changed later."
    )

    def to_content(self) -> TemplateContent:
        return TemplateContent.model_validate(self.model_dump(exclude={"key"}, exclude_unset=True))


class UpdateTemplateBody(RequestModel):
    """New contents; what is left out stays, and null for `media` takes the file away."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": TEXT, "buttons": [[BUTTON]]}, {"media": None}]}
    )

    text: Kept[Annotated[Localized, visible(SOURCE_LENGTH)]] = Field(
        None, description="New text, or one per language; replaces all languages.", examples=[TEXT]
    )
    format: Kept[Format] = Field(None, description=FORMAT, examples=["plain"])
    media: TemplateMedia | None = Field(
        None, description="New file; null takes the file away, and without it, it stays."
    )
    buttons: Kept[list[list[TemplateButton]]] = Field(
        None,
        description="Rows from top to bottom; replaces all existing buttons, `[]` removes them.",
    )

    def merged(self, before: TemplateContent) -> dict[str, Any]:
        """The contents after the change, before validation as a whole."""
        return {
            **before.model_dump(exclude_defaults=True),
            **self.model_dump(exclude_unset=True),
        }


@value_object
class StoredTemplate:
    """A row; `content` is the JSON of a `TemplateContent`."""

    project_id: str
    key: str
    template_id: str
    content: str
    created_at_ms: int
    updated_at_ms: int


class TemplateAnswer(ResponseModel):
    """A template."""

    key: str = Field(description="What `POST /v1/send` names it by.", examples=["order_shipped"])
    template_id: str = Field(
        description="Id of this template; another one that gets its key later has another.",
        examples=["tpl_032VCHFhKppnTNvg47lv30"],
    )
    text: Localized = Field(description="One text for all, or texts by language.", examples=[TEXT])
    format: Format = Field(description=FORMAT, examples=["plain"])
    media: TemplateMedia | None = Field(
        description="File that is shown with the text; null without one.", examples=[None]
    )
    buttons: list[list[TemplateButton]] = Field(
        description=BUTTON_ROWS, examples=[[[{**BUTTON, "data": None, "style": None}]]]
    )
    variables: list[str] = Field(
        description="Names of the variables that it uses, by their first use.",
        examples=[["name", "order"]],
    )
    required_variables: list[str] = Field(
        description="Those of `variables` without a default somewhere: `POST /v1/send` must give them.",
        examples=[["order"]],
    )
    created_at: CreatedAt
    updated_at: UpdatedAt

    @classmethod
    def of(
        cls,
        stored: StoredTemplate,
        content: TemplateContent,
        variables: list[str],
        required: list[str],
    ) -> "TemplateAnswer":
        return cls(
            key=stored.key,
            template_id=stored.template_id,
            text=content.text,
            format=content.format,
            media=content.media,
            buttons=content.buttons,
            variables=variables,
            required_variables=required,
            created_at=to_rfc3339(stored.created_at_ms),
            updated_at=to_rfc3339(stored.updated_at_ms),
        )


class TemplateList(ResponseModel):
    """A page of templates, newest first."""

    data: list[TemplateAnswer] = Field(description="The page's templates.")
    next_cursor: NextCursor


class PreviewBody(RequestModel):
    """Values to try a template with."""

    variables: Variables = Field(
        default_factory=dict,
        description="Values as in `POST /v1/send`; those without a default in the template are required.",
        examples=[{"name": "Ann", "order": 1207}],
    )
    lang: Language | None = Field(
        None, description="Only this language; without it, all of the service.", examples=["en"]
    )


class PreviewButton(ResponseModel):
    """A button as it would be sent."""

    text: str = Field(description="Label.", examples=["Track the parcel"])
    url: Url | None = Field(
        description="Page that the button opens; null if it has `data`.",
        examples=[f"{examples.SITE_URL}/orders/1207"],
    )
    data: str | None = Field(
        description="What `button.clicked` would carry; null if the button has a `url`.",
        examples=[None],
    )
    style: ButtonStyle | None = Field(description=BUTTON_STYLE, examples=["primary"])


class PreviewMedia(ResponseModel):
    """A file as it would be sent."""

    type: MediaType = Field(description="How the messenger shows the file.", examples=["document"])
    url: Url = Field(
        description="Where the file would be fetched from.",
        examples=[f"{examples.SITE_URL}/invoices/1207.pdf"],
    )
    filename: str | None = Field(
        description="Name of a document that the recipient sees; null for the one in the URL.",
        examples=["invoice-1207.pdf"],
    )


class Problem(ResponseModel):
    """Why a channel would refuse the message."""

    channel: OnChannel
    problem: str = Field(
        description="What it would refuse, for people.",
        examples=["text: must be at most 1024 characters beside a file on this channel"],
    )


class PreviewMessage(ResponseModel):
    """The message as a recipient of one language gets it."""

    lang: Language = Field(description="Language of the recipient.", examples=["en"])
    text: str = Field(description="Text with its variables filled in.", examples=[RENDERED])
    format: Format = Field(
        description="Markup of `text`; `html` where the template's own can't show a value as it is.",
        examples=["plain"],
    )
    media: PreviewMedia | None = Field(
        description="File that is shown with the text; null without one.", examples=[None]
    )
    buttons: list[list[PreviewButton]] = Field(description=BUTTON_ROWS)
    problems: list[Problem] = Field(
        description="Channels of the project that would refuse the message; empty if none would.",
        examples=[[]],
    )

    @classmethod
    def of(
        cls, lang: Language, message: OutgoingMessage, problems: list[Problem]
    ) -> "PreviewMessage":
        media = message.media
        return cls(
            lang=lang,
            text=message.text,
            format=message.format,
            media=media and PreviewMedia(type=media.type, url=media.url, filename=media.filename),
            buttons=[
                [PreviewButton(text=b.text, url=b.url, data=b.data, style=b.style) for b in row]
                for row in message.buttons
            ],
            problems=problems,
        )


class PreviewAnswer(ResponseModel):
    """The message in each language that was asked for."""

    data: list[PreviewMessage] = Field(description="One entry per language.")
    unused: list[str] = Field(
        description="Names of given variables that the template does not use, often typos; `POST /v1/send`"
        " ignores them.",
        examples=[[]],
    )
