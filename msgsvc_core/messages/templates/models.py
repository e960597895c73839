"""Models of templates: internal, and of the API."""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, Kept, OnChannel, UpdatedAt
from msgsvc_core.api.validation import validate
from msgsvc_core.content.outgoing import OutgoingMessage
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Language, Localized, visible
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.values import value_object
from msgsvc_core.messages.content import (
    ButtonAnswer,
    ContentChanges,
    ContentOrTemplate,
    GivenButton,
    KeptFormat,
    MediaAnswer,
    MessageContent,
    MessageMedia,
    shown,
)

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

TemplateText = Annotated[Localized, visible(SOURCE_LENGTH)]


class TemplateButton(
    GivenButton[
        Annotated[Localized, visible(SHORT_SOURCE_LENGTH), Field(examples=[BUTTON["text"]])],
        Annotated[AddressSource, Field(examples=[ORDER_URL])],
        Annotated[Source, Field(examples=["call:{{ order }}"])],
    ]
):
    """A button as in `POST /v1/send`. All of it may hold variables, except the scheme and host of its URL.
    The label may be one per language."""

    model_config = ConfigDict(json_schema_extra={"examples": [BUTTON]})


class TemplateMedia(
    MessageMedia[
        Annotated[AddressSource, Field(examples=[INVOICE_URL])],
        Annotated[Source, Field(examples=["invoice-{{ order }}.pdf"])],
    ],
    RequestModel,
):
    """A file as in `POST /v1/send`. Address and name may hold variables, except the scheme and host of the
    address."""


class TemplateContent(
    MessageContent[
        Annotated[
            TemplateText,
            Field(
                description="One text for all, or one per language; recipients get theirs, else that of the"
                " service's default language. May hold variables.",
                examples=[TEXT],
            ),
        ],
        TemplateMedia,
        list[list[TemplateButton]],
    ],
    RequestModel,
):
    """What a template is made of."""

    @classmethod
    def of(cls, message: ContentOrTemplate[Any, Any, Any]) -> "TemplateContent":
        """The contents of a message that has no template. Raises `ValidationFailed` for what a template
        can't hold."""
        given = message.model_dump(include=set(cls.model_fields), exclude_unset=True)
        return validate(cls, given, languages=None)

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


class UpdateTemplateBody(
    ContentChanges[
        Annotated[
            Kept[TemplateText],
            Field(
                description="New text, or one per language; replaces all languages.",
                examples=[TEXT],
            ),
        ],
        KeptFormat,
        Annotated[
            TemplateMedia | None,
            Field(description="New file; null takes the file away, and without it, it stays."),
        ],
        Kept[list[list[TemplateButton]]],
    ]
):
    """New contents; omitted fields stay unchanged, and null for `media` removes the file."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": TEXT, "buttons": [[BUTTON]]}, {"media": None}]}
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


class _Named(ResponseModel):
    """Which template it is."""

    key: str = Field(description="What `POST /v1/send` names it by.", examples=["order_shipped"])
    template_id: str = Field(
        description="Id of this template; another one that gets its key later has another.",
        examples=["tpl_032VCHFhKppnTNvg47lv30"],
    )


class TemplateAnswer(
    MessageContent[
        Annotated[
            Localized,
            Field(description="One text for all, or texts by language.", examples=[TEXT]),
        ],
        Annotated[TemplateMedia, Field(examples=[None])],
        Annotated[
            list[list[TemplateButton]],
            Field(examples=[[[{**BUTTON, "data": None, "style": None}]]]),
        ],
    ],
    _Named,
):
    """A template."""

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
            **{name: getattr(content, name) for name in MessageContent.model_fields},
            variables=variables,
            required_variables=required,
            created_at=to_rfc3339(stored.created_at_ms),
            updated_at=to_rfc3339(stored.updated_at_ms),
        )


class TemplateList(ResponseModel):
    """A page of templates, newest first."""

    data: list[TemplateAnswer] = Field(description="The page's templates.")
    next_cursor: NextCursor


class PreviewTemplateBody(RequestModel):
    """Values to try a template with."""

    variables: Variables = Field(
        default_factory=dict,
        description="Values as in `POST /v1/send`; those without a default in the template are required.",
        examples=[{"name": "Ann", "order": 1207}],
    )
    lang: Language | None = Field(
        None, description="Only this language; without it, all of the service.", examples=["en"]
    )


class PreviewButton(ButtonAnswer):
    """A button as it would be sent."""


class PreviewMedia(MediaAnswer):
    """A file as it would be sent."""


class Problem(ResponseModel):
    """Why a channel would refuse the message."""

    channel: OnChannel
    problem: str = Field(
        description="What it would refuse, for people.",
        examples=["text: must be at most 1024 characters beside a file on this channel"],
    )


class _InLanguage(ResponseModel):
    """Whose message it is."""

    lang: Language = Field(description="Language of the recipient.", examples=["en"])


class PreviewMessage(
    MessageContent[
        Annotated[
            str, Field(description="Text with its variables filled in.", examples=[RENDERED])
        ],
        Annotated[PreviewMedia, Field(examples=[None])],
        list[list[PreviewButton]],
    ],
    _InLanguage,
):
    """The message as a recipient of one language gets it. The format is `html`
    where the template's own can't show a value as it is."""

    problems: list[Problem] = Field(
        description="Channels of the project that would refuse the message; empty if none would.",
        examples=[[]],
    )

    @classmethod
    def of(
        cls, lang: Language, message: OutgoingMessage, problems: list[Problem]
    ) -> "PreviewMessage":
        return cls(
            lang=lang,
            **shown(message, media=PreviewMedia, button=PreviewButton),
            problems=problems,
        )


class TemplatePreviewAnswer(ResponseModel):
    """The message in each requested language."""

    data: list[PreviewMessage] = Field(description="One entry per language.")
    unused: list[str] = Field(
        description="Names of given variables that the template does not use, often typos; `POST /v1/send`"
        " ignores them.",
        examples=[[]],
    )
