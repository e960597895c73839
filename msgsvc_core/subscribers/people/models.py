"""A person: internal, and of the API."""

from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import Query, RequestModel, ResponseModel
from msgsvc_core.api.pagination import NextCursor
from msgsvc_core.api.types import CreatedAt, OnChannel, SubscriberId, Time
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.contacts.models import ContactKind, Contacts
from msgsvc_core.subscribers.models import (
    FirstName,
    Lang,
    Locale,
    Status,
    Subscriber,
    TagNames,
    Username,
)

#: Whether the project may write to a person on a channel.
Consent = Literal["subscribed", "unsubscribed"]

ExternalId = Annotated[
    str,
    Field(
        description="Your own id of the person, 1-128 printable characters.",
        examples=[examples.EXTERNAL_ID],
    ),
]
ConsentField = Annotated[
    Consent,
    Field(
        description="`subscribed` people get your messages on this channel; `unsubscribed` ones ended that,"
        " blocked the bot, never began, or you ended it.",
        examples=["subscribed"],
    ),
]


@value_object
class Person:
    """The subscribers with an `external_id`, by channel, and the verified contacts of each."""

    external_id: str
    subscribers: tuple[Subscriber, ...]
    contacts: dict[str, Contacts]

    @property
    def created_at_ms(self) -> int:
        """When the person first subscribed, on any channel."""
        return min(each.created_at_ms for each in self.subscribers)


class VerifiedContact(ResponseModel):
    """A phone number or an email address that the person has proven to be theirs."""

    kind: ContactKind = Field(description="`phone` or `email`.", examples=["email"])
    value: str = Field(description="The number or the address.", examples=["ann@example.com"])
    verified_at: Time = Field(description="When it was verified last.", examples=[examples.TIME])


class PersonAddress(ResponseModel):
    """A person on one channel."""

    subscriber_id: SubscriberId
    channel: OnChannel
    username: Username
    first_name: FirstName
    lang: Lang
    locale: Locale
    status: Status = Field(description="As of the subscriber.", examples=["active"])
    consent: ConsentField
    verified_contacts: list[VerifiedContact] = Field(
        description="Contacts that were verified on this channel: by the messenger, or by a code."
    )
    tags: TagNames
    permissions: list[str] = Field(
        description="Keys of the permissions granted on this channel.",
        examples=[[examples.PERMISSION]],
    )
    created_at: CreatedAt = Field(description="When the person first subscribed on this channel.")
    last_seen_at: Time = Field(description="When the person last did something on this channel.")

    @classmethod
    def of(cls, subscriber: Subscriber, contacts: Contacts) -> "PersonAddress":
        return cls(
            subscriber_id=subscriber.subscriber_id,
            channel=subscriber.channel,
            username=subscriber.username or "",
            first_name=subscriber.first_name,
            lang=subscriber.lang,
            locale=subscriber.locale,
            status=subscriber.status,
            consent="subscribed" if subscriber.status == "active" else "unsubscribed",
            verified_contacts=verified(contacts),
            tags=list(subscriber.tags),
            permissions=list(subscriber.permissions),
            created_at=to_rfc3339(subscriber.created_at_ms),
            last_seen_at=to_rfc3339(subscriber.last_seen_at_ms),
        )


class PersonAnswer(ResponseModel):
    """A person with all addresses and accounts."""

    external_id: ExternalId
    addresses: list[PersonAddress] = Field(description="One per channel, by the channel's name.")

    @classmethod
    def of(cls, person: Person) -> "PersonAnswer":
        return cls(
            external_id=person.external_id,
            addresses=[
                PersonAddress.of(one, person.contacts.get(one.subscriber_id, Contacts()))
                for one in person.subscribers
            ],
        )


class PersonList(ResponseModel):
    """A page of people, by their `external_id`."""

    data: list[PersonAnswer] = Field(description="The page's people.")
    next_cursor: NextCursor


class PersonQuery(Query):
    """Which person."""

    external_id: ExternalId


class SetPersonConsentBody(RequestModel):
    """Whether a person gets messages on one channel."""

    external_id: ExternalId
    channel: OnChannel
    consent: ConsentField


class MergePeopleBody(RequestModel):
    """Two people who are one."""

    external_id: ExternalId = Field(
        description="The id that ends. All subscribers who have it get the other.",
        examples=["user-43"],
    )
    into: ExternalId = Field(
        description="The id that stays.",
        examples=[examples.EXTERNAL_ID],
    )


class SplitPersonBody(RequestModel):
    """A subscriber who is somebody else than the rest of the person."""

    subscriber_id: SubscriberId


def verified(contacts: Contacts) -> list[VerifiedContact]:
    """The contacts as answers show them."""
    found: list[VerifiedContact] = []
    if contacts.phone is not None and contacts.phone_verified_at_ms is not None:
        at = to_rfc3339(contacts.phone_verified_at_ms)
        found.append(VerifiedContact(kind="phone", value=contacts.phone, verified_at=at))
    if contacts.email is not None and contacts.email_verified_at_ms is not None:
        at = to_rfc3339(contacts.email_verified_at_ms)
        found.append(VerifiedContact(kind="email", value=contacts.email, verified_at=at))
    return found
