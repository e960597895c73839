"""Models of templates: internal, and of the API."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Kept
from msgsvc_core.content.outgoing import Format, OutgoingMessage
from msgsvc_core.content.substitution import Variables
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.i18n import Language, Localized, visible
from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.values import value_object

#: A template's key in the API.
TemplateKey = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]

#: Maximum characters of a template's text, before variables are inserted. The rendered text has the limits of
#: every message.
SOURCE_LENGTH = 16_000

#: Maximum characters of a button's text or data, and of a URL.
SHORT_SOURCE_LENGTH = 1000
ADDRESS_LENGTH = 2048

Source = Annotated[str, Field(min_length=1, max_length=SHORT_SOURCE_LENGTH)]
AddressSource = Annotated[str, Field(min_length=1, max_length=ADDRESS_LENGTH)]


class TemplateButton(RequestModel):
    """A button as in `POST /v1/send`; all of it may hold variables."""

    text: Annotated[Localized, visible(SHORT_SOURCE_LENGTH)]
    url: AddressSource | None = None
    data: Source | None = None

    @model_validator(mode="after")
    def _one_action(self) -> "TemplateButton":
        if (self.url is None) == (self.data is None):
            raise InvalidValue("give exactly one of url and data")
        return self


class TemplateMedia(RequestModel):
    """A file as in `POST /v1/send`; address and name may hold variables."""

    type: Literal["image", "video", "document"]
    url: AddressSource
    filename: Source | None = None


class TemplateContent(RequestModel):
    """What a template is made of."""

    text: Annotated[Localized, visible(SOURCE_LENGTH)] = Field(
        description='One text for all, or texts by language: `{"en": "Hi {{ name }}", "ru": ...}`.'
    )
    format: Format = "plain"
    media: TemplateMedia | None = None
    buttons: list[list[TemplateButton]] = Field(
        default_factory=list, description="Rows from top to bottom."
    )

    def to_column(self) -> str:
        return to_json(self.model_dump(exclude_defaults=True))


class CreateTemplateBody(TemplateContent):
    """A new template."""

    key: TemplateKey = Field(description="Key used in `POST /v1/send`.")

    def to_content(self) -> TemplateContent:
        return TemplateContent.model_validate(self.model_dump(exclude={"key"}, exclude_unset=True))


class UpdateTemplateBody(RequestModel):
    """New contents; what is left out stays, and null for `media` takes the file away."""

    text: Kept[Annotated[Localized, visible(SOURCE_LENGTH)]] = None
    format: Kept[Format] = None
    media: TemplateMedia | None = None
    buttons: Kept[list[list[TemplateButton]]] = None

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
    """A template; `variables` are those that it uses, in the order in which they come first."""

    key: str
    template_id: str
    text: Localized
    format: Format
    media: TemplateMedia | None
    buttons: list[list[TemplateButton]]
    variables: list[str]
    required_variables: list[str]
    created_at: str
    updated_at: str

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

    data: list[TemplateAnswer]
    next_cursor: str | None


class PreviewBody(RequestModel):
    """Values to try a template with."""

    variables: Variables = Field(default_factory=dict)
    lang: Language | None = Field(None, description="Only this language (default: all).")


class PreviewButton(ResponseModel):
    """A button as it would be sent."""

    text: str
    url: str | None
    data: str | None


class PreviewMedia(ResponseModel):
    """A file as it would be sent."""

    type: Literal["image", "video", "document"]
    url: str
    filename: str | None


class Problem(ResponseModel):
    """Why a channel would refuse the message."""

    channel: str
    problem: str


class PreviewMessage(ResponseModel):
    """What somebody of that language would get."""

    lang: Language
    text: str
    format: Format
    media: PreviewMedia | None
    buttons: list[list[PreviewButton]]
    problems: list[Problem]

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
                [PreviewButton(text=b.text, url=b.url, data=b.data) for b in row]
                for row in message.buttons
            ],
            problems=problems,
        )


class PreviewAnswer(ResponseModel):
    """The message in each language that was asked for. `unused` are variables that nothing in the
    template takes: `POST /v1/send` ignores them, so look here for typos."""

    data: list[PreviewMessage]
    unused: list[str]
