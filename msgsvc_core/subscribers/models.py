"""Models of subscribers: internal, and of the API."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor, PageQuery
from msgsvc_core.api.types import (
    Characters,
    CreatedAt,
    Kept,
    MomentMs,
    OnChannel,
    SubscriberId,
    Time,
    Url,
)
from msgsvc_core.channels import Identity
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.i18n import Language, LanguageTag, Title
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers import searching

#: Sources of a subscription (event `subscription.created`).
Source = Literal["deep_link", "mini_app", "auth", "otp", "form", "helpdesk", "api"]

#: What pages call them.
SOURCE_TITLES: Mapping[str, Title] = {
    "deep_link": lambda _: _("Subscription link"),
    "mini_app": lambda _: _("Mini app"),
    "auth": lambda _: _("Sign-in"),
    "otp": lambda _: _("One-time code"),
    "form": lambda _: _("Form"),
    "helpdesk": lambda _: _("Helpdesk"),
    "api": lambda _: _("API"),
}

Status = Literal["active", "unsubscribed", "blocked"]

#: What a project may say of a person whom it adds.
AddedStatus = Literal["active", "unsubscribed"]

#: A tag's name: letters of any script, digits, `_` and `-` (decision 0075: up to 64 characters).
TagName = Annotated[str, Characters(r"[\w-]", 64), Field(examples=[examples.TAG])]

#: A permission's key in the API.
PermissionKey = Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,64}$", examples=[examples.PERMISSION])]

#: A tag and a permission in a path.
NamedTag = Annotated[str, Field(description="The tag, by its name.", examples=[examples.TAG])]
NamedPermission = Annotated[
    str, Field(description="The permission, by its key.", examples=[examples.PERMISSION])
]

#: Control characters and the ends of lines: a name stands in headers, greetings and logs.
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _check_is_one_line(name: str) -> str:
    if _NOT_IN_NAMES.search(name):
        raise InvalidValue("must be one line without control characters")
    return name


#: A first name that a request gives, and what every response and event shows of a subscriber.
GivenFirstName = Annotated[str, Field(max_length=128), AfterValidator(_check_is_one_line)]
FirstName = Annotated[
    str, Field(description="First name, as the messenger has it.", examples=["Ann"])
]
Username = Annotated[
    str,
    Field(
        description="Name on the messenger, without `@`; empty for people without one. On channels of"
        " addresses it is the address.",
        examples=["ann_example"],
    ),
]
Lang = Annotated[
    Language,
    Field(
        description="Language of system messages and templates: the one of the service's that is closest to"
        " `locale`.",
        examples=["en"],
    ),
]
Locale = Annotated[
    str | None,
    Field(
        description="The person's language tag (BCP 47), as the messenger or you gave it, or as they chose"
        " it; null if nobody has since tags are kept. `lang` is the language of the service that is closest"
        " to it.",
        examples=["en-GB"],
    ),
]
TagNames = Annotated[list[str], Field(description="The person's tags.", examples=[[examples.TAG]])]
OwnId = Annotated[
    str | None,
    Field(
        description="Your own id of the person; null until one is assigned.",
        examples=[examples.EXTERNAL_ID],
    ),
]

#: Links to bots, in responses.
BotLinks = Annotated[
    dict[str, Url],
    Field(
        description="The link that opens the bot, per channel.",
        examples=[{examples.CHANNEL: f"{examples.BOT_URL}?start={examples.START}"}],
    ),
]
QrCodes = Annotated[
    dict[str, Url],
    Field(
        description="The address of the same link as a QR code (SVG), per channel; no key needed.",
        examples=[
            {examples.CHANNEL: f"{examples.BASE_URL}/qr/{examples.CHANNEL}/{examples.START}.svg"}
        ],
    ),
]
StartMessages = Annotated[
    dict[str, str] | None,
    Field(
        description="Text that the person sends to the bot, e.g. `start K7QF2M9X`, per channel whose link"
        " can only open the chat; show it next to the link. Absent if there is no such channel.",
    ),
]

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
    locale: str | None = None
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
    external_id: str | None = None


@value_object
class PersonSubscription:
    """A project that a user is or was subscribed to by a bot, which is shared by projects."""

    project_id: str
    subscriber_id: str
    status: Status


class SubscriberAnswer(ResponseModel):
    """A subscriber as the API shows them."""

    subscriber_id: SubscriberId
    channel: OnChannel
    first_name: FirstName
    username: Username
    lang: Lang
    locale: Locale
    tags: TagNames
    permissions: list[str] = Field(
        description="Keys of the permissions that the person has granted.",
        examples=[[examples.PERMISSION]],
    )
    external_id: OwnId
    attributes: dict[str, Any] = Field(
        description="Your own data, as set last; `{}` without any.", examples=[{"city": "Oslo"}]
    )
    status: Status = Field(
        description="`active` people get messages; `unsubscribed` ones ended it, or you did; `blocked` ones"
        " blocked the bot or deleted the chat.",
        examples=["active"],
    )
    created_at: CreatedAt = Field(description="When the person first subscribed.")
    last_seen_at: Time = Field(description="When the person last did something in the bot.")

    @classmethod
    def of(cls, subscriber: Subscriber) -> "SubscriberAnswer":
        return cls(
            **subscriber.event_fields(),
            locale=subscriber.locale,
            permissions=list(subscriber.permissions),
            attributes=subscriber.attributes or {},
            status=subscriber.status,
            created_at=to_rfc3339(subscriber.created_at_ms),
            last_seen_at=to_rfc3339(subscriber.last_seen_at_ms),
        )


class SubscriberList(ResponseModel):
    """A page of subscribers, newest first."""

    data: list[SubscriberAnswer] = Field(description="The page's subscribers.")
    next_cursor: NextCursor


class SubscriberFilters(Query):
    """Filters, all of which a subscriber must meet."""

    channel: str | None = Field(
        None, description="Only subscribers on this channel.", examples=[examples.CHANNEL]
    )
    status: Status | None = Field(
        None, description="Only subscribers of this status.", examples=["active"]
    )
    lang: Language | None = Field(
        None, description="Only subscribers of this language.", examples=["en"]
    )
    external_id: str | None = Field(
        None,
        description="Only the subscribers of the person with this id of yours, one per channel.",
        examples=[examples.EXTERNAL_ID],
    )
    tag: str | None = Field(
        None, description="Only subscribers with this tag.", examples=[examples.TAG]
    )
    permission: str | None = Field(
        None,
        description="Only subscribers who have granted the permission with this key.",
        examples=[examples.PERMISSION],
    )
    created_after: MomentMs | None = Field(
        None,
        description="Only people who first subscribed after this time.",
        examples=["2026-01-01T00:00:00Z"],
    )
    created_before: MomentMs | None = Field(
        None,
        description="Only people who first subscribed before this time.",
        examples=["2026-04-01T00:00:00Z"],
    )


class SubscriberQuery(SubscriberFilters, PageQuery):
    """Filters, all of which a subscriber must meet, a search, and paging."""

    query: str | None = Field(
        None,
        min_length=1,
        max_length=searching.MOST,
        description="Case-insensitive prefix of the first name, username or `external_id`. Results "
        "are ordered by name instead of newest first.",
        examples=["ann"],
    )

    def place_of(self, subscriber: Subscriber) -> str:
        """The position of a subscriber for the cursor."""
        if self.query is None:
            return subscriber.subscriber_id
        names = (subscriber.first_name, subscriber.username, subscriber.external_id)
        return searching.place_of(self.query, subscriber.subscriber_id, *names)


#: An address of a channel of addresses, in requests.
#: What the service has made sure of, by the channel's `Capabilities.identity`.
ProvenIdentity = Annotated[
    Identity | None,
    Field(
        description="What the sign-in proved about the person: an `account` on the messenger, access to a"
        " `mailbox`, a `phone` number, or an account that a `homeserver` vouches for; null if unknown.",
        examples=["account"],
    ),
]
Address = Annotated[
    str,
    Field(
        min_length=1,
        max_length=320,
        description="Email address or phone number, on a channel where people are known by one.",
        examples=["ann@example.com"],
    ),
]


class AddSubscriberBody(RequestModel):
    """A person by their address, on a channel where people are known by one, such as email."""

    channel: str = Field(description="Name of the channel.", examples=["email"])
    address: Address
    status: AddedStatus = Field(
        "active",
        description="`active` people get messages: you have their consent. `unsubscribed` ones get only"
        " one-time codes and sign-ins.",
    )
    first_name: GivenFirstName = Field("", description="First name.", examples=["Ann"])
    lang: LanguageTag | None = Field(
        None,
        description="The person's language, by any tag of BCP 47; kept as `locale`. Without it, texts are in"
        " the service's default language.",
        examples=["en-GB"],
    )
    external_id: str | None = Field(
        None,
        description="Your own id of the person, 1-128 printable characters.",
        examples=[examples.EXTERNAL_ID],
    )
    tags: list[TagName] = Field(
        default=[],
        description="The person's tags; missing ones are created.",
        examples=[[examples.TAG]],
    )
    permissions: list[PermissionKey] = Field(
        default=[],
        description="Keys of permissions that the person has granted, beside those that all get.",
        examples=[[examples.PERMISSION]],
    )
    attributes: dict[str, Any] = Field(
        default={},
        description="Your own data, at most `limits.attributes_bytes` of `GET /v1/project` as JSON.",
        examples=[{"city": "Oslo"}],
    )


class UpdateSubscriberBody(RequestModel):
    """Changes of a subscriber; omitted fields stay unchanged."""

    external_id: str | None = Field(
        None,
        description="Your own id of the person, 1-128 printable characters; null removes the one they have.",
        examples=[examples.EXTERNAL_ID],
    )
    lang: Kept[LanguageTag] = Field(
        None,
        description="The person's language, by any tag of BCP 47; kept as `locale`.",
        examples=["en-GB"],
    )
    tags: Kept[list[TagName]] = Field(
        None,
        description="Replaces all tags; `[]` removes them. Missing ones are created.",
        examples=[[examples.TAG]],
    )
    attributes: Kept[dict[str, Any]] = Field(
        None,
        description="Your own data, at most `limits.attributes_bytes` of `GET /v1/project` as JSON; replaces"
        " all of it.",
        examples=[{"city": "Oslo"}],
    )


class CreateLinkBody(RequestModel):
    """What a subscription link carries."""

    tags: list[TagName] = Field(
        default=[],
        description="Tags added to people who open it; missing ones are created.",
        examples=[[examples.TAG]],
    )
    permissions: list[PermissionKey] = Field(
        default=[],
        description="Keys of permissions granted by opening it.",
        examples=[[examples.PERMISSION]],
    )
    external_id: str | None = Field(
        None,
        description="Your own id of this person, 1-128 printable characters; assigned to the first person to"
        " open the link. Without it, everybody may use the link.",
        examples=[examples.EXTERNAL_ID],
    )
    # A factory, as the API description has no default then: it depends on `external_id`.
    expires_in: int = Field(
        default_factory=lambda: LINK_EXPIRES_IN_S,
        ge=60,
        le=366 * 24 * 3600,
        description="Seconds for which the link works. Without it, 30 days; with an `external_id`, the"
        " setting `limits.personal_link_s`, a day.",
        examples=[86400],
    )


class LinkAnswer(ResponseModel):
    """A link per channel, and the address of its QR code as SVG."""

    leave_out_none = frozenset({"start_messages"})

    links: BotLinks
    qr: QrCodes
    start_messages: StartMessages = None
    expires_at: Time = Field(description="When the links stop working.", examples=[examples.LATER])


#: How a person subscribed.
SubscribedBy = Annotated[
    Source,
    Field(
        description="How the person subscribed: by a link (`deep_link`), in a mini app, by signing in, for a"
        " one-time code, by a form or a support ticket, or by your own call.",
        examples=["deep_link"],
    ),
]


class SubscriptionCreated(ResponseModel):
    """Fields of `subscription.created`."""

    source: SubscribedBy


class SubscriptionDeleted(ResponseModel):
    """Fields of `subscription.deleted`."""

    source: SubscribedBy
    reason: str = Field(
        description="`stop`: the person ended it in the bot. `api`: you did, by the API or on a page."
        " `user_blocked_bot` and `chat_not_found`: the messenger says so. Plugins may add others.",
        examples=["stop"],
    )


class PermissionChanged(ResponseModel):
    """Fields of `subscription.permission_changed`."""

    permission: str = Field(description="Key of the permission.", examples=[examples.PERMISSION])
    granted: bool = Field(description="False after it was revoked.", examples=[True])
