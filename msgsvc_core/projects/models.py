"""Models of projects and API keys: internal, and of the API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import CreatedAt, Kept, Url
from msgsvc_core.config.limits import LimitSettings
from msgsvc_core.kernel.clock import DAY_MS
from msgsvc_core.kernel.i18n import Localized, visible
from msgsvc_core.projects.branding import Branding, PageBrand

#: Maximum characters of a project's text for system messages.
MAX_TEXT_LENGTH = 1000

#: Variables of a text, as `{{ first_name }}`: of its recipient, and the project's name.
TEXT_VARIABLES = ("first_name", "project")

WELCOME = {
    "en": "Hello {{ first_name }}! {{ project }} writes here when your parcel moves.",
    "ru": "Здравствуйте, {{ first_name }}! Здесь будут новости о вашем заказе.",
}

BotText = Annotated[Localized, visible(MAX_TEXT_LENGTH)]


@dataclass(frozen=True, slots=True)
class Project:
    """A tenant. Everything else belongs to one."""

    project_id: str
    name: str
    status: Literal["active", "disabled"]
    created_at_ms: int
    branding: Branding = field(default_factory=Branding)
    #: Whether clicks on links in its broadcasts are counted.
    link_tracking: bool = False

    @property
    def public_name(self) -> str:
        """The name that people read: the sender's, or that of the project."""
        return self.branding.sender_name or self.name

    def brand(self, root: str = "") -> PageBrand:
        """For pages of an application mounted at `root`."""
        return self.branding.on_page(self.public_name, root)


@dataclass(frozen=True, slots=True)
class ProjectTexts:
    """A project's texts for system messages; None for the default text."""

    #: Sent after subscribing.
    welcome: Localized | None = None
    #: Sent after unsubscribing.
    farewell: Localized | None = None


#: Milliseconds before its expiry in which a key is pointed out: enough to replace it in the usual
#: rhythm of releases (decision 0045).
EXPIRES_SOON_MS = 14 * DAY_MS

#: The scope of all areas, of all except those that are reserved for owners, and of the latter for reading.
EVERYTHING, ALL_BUT_OWNERS, READ_ONLY = "*", "*admin", "*read"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as stored: its visible prefix and its digest. `scopes` are areas, `EVERYTHING`,
    `ALL_BUT_OWNERS` or `READ_ONLY`: a key never has more access than its creator."""

    key_id: str
    project_id: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    #: The moment, in Unix milliseconds, from which it is refused; None for never.
    expires_at_ms: int | None = None

    def has_expired(self, now_ms: int) -> bool:
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms

    def opens(self, area: str, *, writes: bool = True, owners_only: bool = False) -> bool:
        """Whether it may call endpoints of the area that change something, or only read."""
        if EVERYTHING in self.scopes or area in self.scopes:
            return True
        if owners_only:
            return False
        return ALL_BUT_OWNERS in self.scopes or (READ_ONLY in self.scopes and not writes)


@dataclass(frozen=True, slots=True)
class ListedKey:
    """A key as an operator sees it. `revoked_at_ms` is None while it is active.

    `last_used_at_ms` is up to a minute old (`key_uses`), and None for a key that was never used.
    """

    key: ApiKey
    created_at_ms: int
    last_used_at_ms: int | None
    revoked_at_ms: int | None

    def is_in_use(self, now_ms: int) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at_ms is None and not self.key.has_expired(now_ms)

    def expires_soon(self, now_ms: int) -> bool:
        """Whether it is in use, and expires within `EXPIRES_SOON_MS`."""
        expires_at_ms = self.key.expires_at_ms
        soon = expires_at_ms is not None and expires_at_ms - now_ms <= EXPIRES_SOON_MS
        return soon and self.is_in_use(now_ms)


class ProjectChannelAnswer(ResponseModel):
    """A channel that the project can use."""

    name: str = Field(
        description="What `channel` of other requests and events names it by.",
        examples=[examples.CHANNEL],
    )
    own: bool = Field(
        description="Whether it is the project's own, of `POST /v1/channels`, or shared with others.",
        examples=[False],
    )
    link: Url | None = Field(
        description="Link to its bot; null until the messenger has reported the bot's name.",
        examples=[f"{examples.BOT_URL}?start=hello"],
    )


class ProjectLimitsAnswer(ResponseModel):
    """Limits of a project and its messages, and of plugins."""

    requests_per_minute: int = Field(
        description="API requests of the project, over all keys. Several processes without Redis count each"
        " by itself, so that more may be accepted.",
        examples=[300],
    )
    text_length: int = Field(description="Characters of a message's text.", examples=[4000])
    button_rows: int = Field(description="Rows of buttons under a message.", examples=[3])
    buttons_per_row: int = Field(description="Buttons in a row.", examples=[3])
    tags: int = Field(description="Tags of the project.", examples=[20])
    permissions: int = Field(description="Permissions of the project.", examples=[20])
    templates: int = Field(description="Templates of the project.", examples=[100])
    attributes_bytes: int = Field(
        description="Bytes of a subscriber's `attributes` as JSON.", examples=[8192]
    )
    batch_messages: int = Field(
        description="Messages of one `POST /v1/send/batch`.", examples=[500]
    )
    event_properties_bytes: int = Field(
        description="Bytes of the `properties` of `POST /v1/events` as JSON.", examples=[8192]
    )
    routes: int = Field(description="Routes of the project.", examples=[20])
    route_steps: int = Field(description="Steps of a route.", examples=[5])
    broadcast_recipients: int = Field(
        description="Recipients of one broadcast.", examples=[100_000]
    )
    broadcast_ids: int = Field(description="Ids that an audience may name.", examples=[10_000])
    bulk_action_subscribers: int = Field(
        description="Subscribers that one bulk action may change.", examples=[100_000]
    )
    import_rows: int = Field(description="Rows of an imported file.", examples=[100_000])
    plugins: dict[str, int] = Field(
        description="Limits of plugins that the operator may raise, by their names in the configuration.",
        examples=[{"survey.surveys_per_project": 200}],
    )

    @classmethod
    def of(cls, limits: LimitSettings, plugins: Mapping[str, int]) -> "ProjectLimitsAnswer":
        names = cls.model_fields.keys() - {"plugins"}
        return cls(**{name: getattr(limits, name) for name in names}, plugins=dict(plugins))


class ProjectAnswer(ResponseModel):
    """The project that an API key belongs to."""

    project_id: str = Field(
        description="The project, as in the logs and commands of the service.",
        examples=[examples.PROJECT_ID],
    )
    name: str = Field(description="Name shown to people.", examples=["Example Shop"])
    status: Literal["active", "disabled"] = Field(
        description="Keys of a `disabled` project are refused.", examples=["active"]
    )
    plan: str | None = Field(
        description="Name of the plan that its owner pays; null where nothing is billed.",
        examples=[None],
    )
    created_at: CreatedAt
    welcome: Localized | None = Field(
        description="Text after subscribing, or one per language; null for the service's own.",
        examples=[WELCOME],
    )
    farewell: Localized | None = Field(
        description="Text after unsubscribing, or one per language; null for the service's own.",
        examples=[None],
    )
    link_tracking: bool = Field(
        description="Whether links in broadcasts lead through this service, which counts who opens them.",
        examples=[False],
    )
    limits: ProjectLimitsAnswer = Field(description="The limits in force.")
    channels: list[ProjectChannelAnswer] = Field(
        description="The channels that the project can use, shared and its own."
    )


class UpdateProjectBody(RequestModel):
    """Changes; omitted fields stay unchanged, and null removes a text."""

    name: Kept[str] = Field(
        None,
        description="Name shown to people: 1-64 printable characters.",
        examples=["Example Shop"],
    )
    welcome: BotText | None = Field(
        None,
        description="Text after subscribing, or one per language, at most 1,000 characters; null for the"
        " service's own. `{{ first_name }}` and `{{ project }}` are filled in.",
        examples=[WELCOME],
    )
    farewell: BotText | None = Field(
        None,
        description="Text after unsubscribing, like `welcome`.",
        examples=["No more messages from {{ project }}. Come back any time!"],
    )
    link_tracking: Kept[bool] = Field(
        None,
        description="Whether links in broadcasts lead through this service, which counts who opens them."
        " For broadcasts that are accepted from then on.",
        examples=[True],
    )
