"""Models of subscribers: internal, and of the API."""

from typing import Annotated, Any, Literal

from pydantic import Field

from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.api.pagination import PageQuery
from msgsvc_core.api.types import Kept, MomentMs
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers import searching

#: Sources of a subscription (event `subscription.created`).
Source = Literal["deep_link", "mini_app", "auth", "otp", "form", "helpdesk", "api"]
Status = Literal["active", "unsubscribed", "blocked"]

#: A tag's name: letters of any script, digits, `_` and `-` (decision 0075: up to 64 characters).
TagName = Annotated[str, Field(pattern=r"^[\w-]{1,64}$")]

#: A permission's key in the API.
PermissionKey = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$")]

#: Default lifetime of a subscription link in seconds: 30 days.
LINK_EXPIRES_IN_S = 30 * 24 * 3600


@value_object
class Subscriber:
    """A user on one channel of one project; `bot` is the key of the bot that they started last."""

    project_id: str
    subscriber_id: str
    channel: str
    bot: str
    user_id: str
    chat_id: str
    first_name: str
    username: str | None
    lang: str
    external_id: str | None
    status: Status
    source: Source
    created_at_ms: int
    last_seen_at_ms: int
    attributes: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()

    def event_fields(self) -> dict[str, Any]:
        """A subscriber's fields in events (decision 0075)."""
        return {
            "subscriber_id": self.subscriber_id,
            "channel": self.channel,
            "first_name": self.first_name,
            # Always a text, even if empty (decision 0075).
            "username": self.username or "",
            "lang": self.lang,
            "tags": list(self.tags),
            "external_id": self.external_id,
        }


@value_object
class Recipient:
    """The fields of a subscriber that are needed to send to them."""

    subscriber_id: str
    channel: str
    bot: str
    status: Status
    last_seen_at_ms: int
    lang: str


@value_object
class PersonSubscription:
    """A project that a user is or was subscribed to by a bot, which is shared by projects."""

    project_id: str
    subscriber_id: str
    status: Status


class SubscriberAnswer(ResponseModel):
    """A subscriber as the API shows them."""

    subscriber_id: str
    channel: str
    first_name: str
    username: str = Field(description="Empty for people without one.")
    lang: Language
    tags: list[str]
    permissions: list[str]
    external_id: str | None
    attributes: dict[str, Any]
    status: Status
    created_at: str
    last_seen_at: str

    @classmethod
    def of(cls, subscriber: Subscriber) -> "SubscriberAnswer":
        return cls(
            **subscriber.event_fields(),
            permissions=list(subscriber.permissions),
            attributes=subscriber.attributes or {},
            status=subscriber.status,
            created_at=to_rfc3339(subscriber.created_at_ms),
            last_seen_at=to_rfc3339(subscriber.last_seen_at_ms),
        )


class SubscriberList(ResponseModel):
    """A page of subscribers, newest first."""

    data: list[SubscriberAnswer]
    next_cursor: str | None


class SubscriberFilters(Query):
    """Filters, all of which a subscriber must meet."""

    channel: str | None = None
    status: Status | None = None
    lang: Language | None = None
    external_id: str | None = None
    tag: str | None = Field(None, description="Only subscribers with this tag.")
    permission: str | None = Field(
        None, description="Only subscribers who granted this permission (key)."
    )
    created_after: MomentMs | None = Field(
        None, description="Only people who first subscribed after this time."
    )


class SubscriberQuery(SubscriberFilters, PageQuery):
    """Filters, all of which a subscriber must meet, a search, and paging."""

    query: str | None = Field(
        None,
        min_length=1,
        max_length=searching.MOST,
        description="Case-insensitive prefix of the first name, username or `external_id`. Results "
        "are ordered by name instead of newest first.",
    )

    def place_of(self, subscriber: Subscriber) -> str:
        """The position of a subscriber for the cursor."""
        if self.query is None:
            return subscriber.subscriber_id
        names = (subscriber.first_name, subscriber.username, subscriber.external_id)
        return searching.place_of(self.query, subscriber.subscriber_id, *names)


class UpdateSubscriberBody(RequestModel):
    """Changes of a subscriber; what is left out stays."""

    external_id: str | None = Field(
        None, description="Your own id of the person; null unbinds the one they have."
    )
    lang: Kept[Language] = None
    tags: Kept[list[TagName]] = Field(None, description="Replaces all tags.")
    attributes: Kept[dict[str, Any]] = Field(
        None, description="Your own data; replaces the current attributes."
    )


class LinkBody(RequestModel):
    """What a subscription link carries."""

    tags: list[TagName] = Field(default=[], description="Tags added to people who open it.")
    permissions: list[PermissionKey] = Field(
        default=[], description="Permissions granted by opening it."
    )
    external_id: str | None = Field(
        None,
        description="Your own id of this person; assigned to the first person to open the link.",
    )
    expires_in: int = Field(
        LINK_EXPIRES_IN_S,
        ge=60,
        le=366 * 24 * 3600,
        description="Seconds for which the link works; with an `external_id` the default is the setting"
        " `limits.personal_link_s`, a day.",
    )


class LinkAnswer(ResponseModel):
    """A link per channel, and the address of its QR code as SVG."""

    leave_out_none = frozenset({"start_messages"})

    links: dict[str, str]
    qr: dict[str, str]
    start_messages: dict[str, str] | None = Field(
        None,
        description="Text that the person sends to the bot, per channel whose link can only open the chat.",
    )
    expires_at: str


class SubscriptionCreated(ResponseModel):
    """Fields of `subscription.created`."""

    source: Source


class SubscriptionDeleted(ResponseModel):
    """Fields of `subscription.deleted`; `source` is how the person had subscribed."""

    source: Source
    reason: str


class PermissionChanged(ResponseModel):
    """Fields of `subscription.permission_changed`."""

    permission: str
    granted: bool
