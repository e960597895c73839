"""Models of projects and API keys: internal, and of the API."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import Kept
from msgsvc_core.config.settings import LimitSettings
from msgsvc_core.kernel.i18n import Localized, visible

#: Maximum characters of a project's text for system messages.
MAX_TEXT_LENGTH = 1000

#: Variables of a text, as `{{ first_name }}`: of its recipient, and the project's name.
TEXT_VARIABLES = ("first_name", "project")

BotText = Annotated[Localized, visible(MAX_TEXT_LENGTH)]


@dataclass(frozen=True, slots=True)
class Project:
    """A tenant. Everything else belongs to one."""

    project_id: str
    name: str
    status: Literal["active", "disabled"]
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class ProjectTexts:
    """A project's texts for system messages; None for the default text."""

    #: Sent after subscribing.
    welcome: Localized | None = None
    #: Sent after unsubscribing.
    farewell: Localized | None = None


#: The scope of all areas, and of all except those that are reserved for owners.
EVERYTHING, ALL_BUT_OWNERS = "*", "*admin"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as stored: its visible prefix and its digest. `scopes` are areas, `EVERYTHING` or
    `ALL_BUT_OWNERS`: a key never has more access than its creator."""

    key_id: str
    project_id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]

    def opens(self, area: str, *, owners_only: bool = False) -> bool:
        if EVERYTHING in self.scopes or area in self.scopes:
            return True
        return ALL_BUT_OWNERS in self.scopes and not owners_only


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as an operator sees it. `revoked_at_ms` is None while it is active.

    `last_used_at_ms` is up to a minute old (`key_uses`), and None for a key that was never used.
    """

    key: ApiKey
    created_at_ms: int
    last_used_at_ms: int | None
    revoked_at_ms: int | None


class ChannelAnswer(ResponseModel):
    """A channel that the project can use, and the link to its bot, once the bot's profile is known.

    `own`: whether it is the project's own, or shared with others.
    """

    name: str
    own: bool
    link: str | None


class LimitsAnswer(ResponseModel):
    """The limits in force; those of plugins stand beside their endpoints."""

    requests_per_minute: int
    text_length: int
    button_rows: int
    buttons_per_row: int
    tags: int
    permissions: int
    templates: int
    attributes_bytes: int
    batch_messages: int
    event_properties_bytes: int

    @classmethod
    def of(cls, limits: LimitSettings) -> "LimitsAnswer":
        return cls(**{name: getattr(limits, name) for name in cls.model_fields})


class ProjectAnswer(ResponseModel):
    """The project that an API key belongs to. `plan` is null where nothing is billed."""

    project_id: str
    name: str
    status: Literal["active", "disabled"]
    plan: str | None
    created_at: str
    welcome: Localized | None
    farewell: Localized | None
    limits: LimitsAnswer
    channels: list[ChannelAnswer]


class ProjectBody(RequestModel):
    """What is to change; a field that is left out stays. A text that is null is removed."""

    name: Kept[str] = Field(None, description="Name shown to people: 1-64 printable characters.")
    welcome: BotText | None = Field(
        None,
        description="Text after subscribing, or one per language. `{{ first_name }}` and `{{ "
        "project }}` are filled in.",
    )
    farewell: BotText | None = Field(
        None, description="Text after unsubscribing, or one per language."
    )
