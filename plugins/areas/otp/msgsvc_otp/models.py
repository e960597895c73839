"""Models of one-time codes: internal, and of the API."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from msgsvc_core.api import examples
from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.api.types import (
    CreatedAt,
    HttpUrl,
    NamedByExternalId,
    NamedById,
    NamedOnChannel,
    OnChannel,
    SubscriberId,
    Time,
    Url,
)
from msgsvc_core.api.validation import wrong_field
from msgsvc_core.channels import Identity
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import LanguageTag
from msgsvc_core.kernel.values import value_object
from msgsvc_core.routing.models import ROUTE_ID
from msgsvc_core.subscribers.models import (
    Address,
    BotLinks,
    FirstName,
    Lang,
    OwnId,
    ProvenIdentity,
    QrCodes,
    StartMessages,
    Subscriber,
    TagNames,
    Username,
)

Status = Literal[
    "pending",
    "queued",
    "sent",
    "failed",
    "verified",
    "expired",
    "max_attempts_reached",
    "superseded",
]

#: What is stored. `waiting` is a request whose link nobody has opened. A code that ran out stays
#: `active` until the next one takes its place.
StoredStatus = Literal[
    "waiting", "active", "verified", "expired", "max_attempts_reached", "superseded"
]

#: What a code is for, when a request doesn't say (decision 0075).
DEFAULT_PURPOSE = "login"

#: Decision 0075.
Purpose = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$", examples=["login"])]

OTP_ID = "otp_032aJamqrG1ZYIb6C6BSmv"
#: Five minutes after `examples.TIME`.
EXPIRES_AT = "2026-03-01T09:35:00.000Z"
RETURN_URL = f"{examples.SITE_URL}/confirmed"
PAGE_URL = f"{examples.BASE_URL}/code/4pQ9sWv2KxT7mBzR1cYfLd6uHn3JgE8aXo5iTqPbDwM"
RESULT = "9c1185a5c5e9fc54612808977ee8f548b2258d31"
PAYLOAD = "otp_4pQ9sWv2KxT7mBzR1cYfLd"

OtpId = Annotated[
    str,
    Field(
        description="Id of the code, from `POST /v1/otp/send` or `POST /v1/otp/request`.",
        examples=[OTP_ID],
    ),
]
PurposeOfCode = Annotated[str, Field(description="That of the request.", examples=["login"])]


@value_object
class OneTimeCode:
    """One code, from its request to its end. The code itself is not stored."""

    project_id: str
    otp_id: str
    stored_status: StoredStatus
    purpose: str
    #: None until the link of a request is opened.
    subscriber_id: str | None
    #: The messenger and the language that were asked for.
    channel: str | None
    lang: LanguageTag | None
    length: int
    ttl_minutes: int
    max_attempts: int
    attempts: int
    created_at_ms: int
    issued_at_ms: int | None
    #: When the link of a request ends, then when the code does.
    expires_at_ms: int
    code_hash: str | None = None
    sent_at_ms: int | None = None
    reason: str | None = None
    #: The route that it is sent by, the JSON of its steps, and the number of the one that it was sent by
    #: last; None for a code to one channel. `sealed` is the encrypted code, while a step may follow.
    route_id: str | None = None
    steps: str | None = None
    step: int | None = None
    sealed: str | None = None

    @property
    def attempts_left(self) -> int:
        return self.max_attempts - self.attempts

    def terms(self) -> dict[str, Any]:
        """What `SendOtpBody` asks for to get another code like it."""
        return {
            "subscriber_id": self.subscriber_id,
            "purpose": self.purpose,
            "ttl_minutes": self.ttl_minutes,
            "max_attempts": self.max_attempts,
            "length": self.length,
            "lang": self.lang,
        }

    def status(self, now_ms: int) -> Status:
        """The status at that moment."""
        match self.stored_status:
            case "waiting" | "active" if now_ms >= self.expires_at_ms:
                return "expired"
            case "waiting":
                return "pending"
            case "active" if self.sent_at_ms is not None:
                return "sent"
            case "active":
                return "queued" if self.reason is None else "failed"
            case ended:
                return ended

    def is_live(self, now_ms: int) -> bool:
        """Whether it may still be given."""
        return self.stored_status == "active" and now_ms < self.expires_at_ms


@value_object
class Verdict:
    """The result of a right code, with its subscriber, and what it proves about them; None if it was sent on
    several channels, and may have been read on any."""

    code: OneTimeCode
    subscriber: Subscriber
    proves: Identity | None = None


class Terms(RequestModel):
    """Options of a code, within the limits and with the defaults of the settings."""

    purpose: Purpose = Field(
        DEFAULT_PURPOSE,
        description="What the code is for: 1-32 of `a-z`, `0-9` and `_`. A new code replaces the active one"
        " of the same purpose, and no other.",
    )
    ttl_minutes: int | None = Field(
        None,
        ge=1,
        description="Minutes for which the code is valid: 1-30, 5 by default.",
        examples=[5],
    )
    max_attempts: int | None = Field(
        None,
        ge=1,
        description="Attempts to give it, after which it is no longer valid: 1-10, 3 by default.",
        examples=[3],
    )
    length: int | None = Field(
        None, ge=1, description="Digits of the code: 4-8, 6 by default.", examples=[6]
    )
    lang: LanguageTag | None = Field(
        None,
        description="Language of the message, by any tag of BCP 47: the service's that is closest. Without"
        " it, the person's own.",
        examples=["en"],
    )


class SendOtpBody(Terms):
    """The recipient of a code, and its options."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"subscriber_id": examples.SUBSCRIBER_ID},
                {"external_id": examples.EXTERNAL_ID, "purpose": "payment", "ttl_minutes": 2},
                {"channel": "email", "address": "ann@example.com"},
                {"external_id": examples.EXTERNAL_ID, "route_id": ROUTE_ID},
            ]
        }
    )

    subscriber_id: NamedById = None
    external_id: NamedByExternalId = None
    channel: NamedOnChannel = None
    address: Address | None = Field(
        None,
        description="Email address or phone number instead, on the `channel` where people are known by one."
        " Whoever is not known there is added and gets no other messages.",
    )
    route_id: str | None = Field(
        None,
        description="Id of a route: the same code is sent by its steps one after another, until it is given."
        " In place of `channel` and `address`.",
        examples=[ROUTE_ID],
    )
    return_url: HttpUrl | None = Field(
        None,
        description="With it the answer has the `url` of a page that asks for the code, and leads back here"
        " with `result` and `otp_id`; with `error=cancelled` if the person goes back. https, except on"
        " localhost.",
        examples=[RETURN_URL],
    )

    @model_validator(mode="after")
    def _one_way(self) -> "SendOtpBody":
        """With `route_id`: neither `channel` nor `address`."""
        if self.route_id is not None:
            for name in ("channel", "address"):
                if getattr(self, name) is not None:
                    raise wrong_field(
                        name, "can't be combined with route_id, whose steps name the channels"
                    )
        return self


class SentOtpAnswer(ResponseModel):
    """A code that is being sent."""

    leave_out_none = frozenset({"url", "route_id"})

    otp_id: OtpId = Field(description="Names the code when it is verified, and its status.")
    expires_at: Time = Field(description="When the code stops working.", examples=[EXPIRES_AT])
    url: Url | None = Field(
        None,
        description="The page to send the person's browser to; only with `return_url`. It can send further"
        " codes.",
        examples=[PAGE_URL],
    )
    route_id: str | None = Field(
        None,
        description="The route that it is sent by; absent for a code to one channel.",
        examples=[ROUTE_ID],
    )


class RequestOtpBody(Terms):
    """A code for the first person who opens its link."""

    channel: str | None = Field(
        None,
        description="Offer only this channel; without it, all of the project.",
        examples=[examples.CHANNEL],
    )


class RequestedOtpAnswer(ResponseModel):
    """A requested code; it is sent when its link is opened."""

    leave_out_none = frozenset({"start_messages"})

    otp_id: OtpId = Field(description="Names the code when it is verified, and its status.")
    links: BotLinks = Field(examples=[{examples.CHANNEL: f"{examples.BOT_URL}?start={PAYLOAD}"}])
    qr: QrCodes = Field(
        examples=[{examples.CHANNEL: f"{examples.BASE_URL}/qr/{examples.CHANNEL}/{PAYLOAD}.svg"}]
    )
    start_messages: StartMessages = None
    expires_in: int = Field(
        description="Seconds in which the link can be opened; the code's own time starts then.",
        examples=[600],
    )


class VerifyOtpBody(RequestModel):
    """The code as typed, and the code to compare it with: that of `otp_id`, or the last one of a
    subscriber and purpose."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"otp_id": OTP_ID, "code": "402917"},
                {"subscriber_id": examples.SUBSCRIBER_ID, "purpose": "login", "code": "402 917"},
            ]
        }
    )

    otp_id: str | None = Field(
        None,
        description="The code that was sent. Exactly one of this, `subscriber_id` and `external_id`.",
        examples=[OTP_ID],
    )
    subscriber_id: NamedById = Field(
        None, description="The person whose last code is meant, on one channel."
    )
    external_id: NamedByExternalId = Field(
        None,
        description="The person whose last code is meant, by your own id of them: on all channels, unless"
        " `channel` names one.",
    )
    channel: NamedOnChannel = None
    purpose: Purpose | None = Field(
        None, description="`login` by default. With `otp_id`, checked only if given."
    )
    code: str = Field(
        max_length=64, description="What the person typed; spaces are ignored.", examples=["402917"]
    )


class TakeOtpResultBody(RequestModel):
    """What a hosted page led back to `return_url` with."""

    result: str = Field(
        max_length=128, description="The parameter `result`; works once.", examples=[RESULT]
    )


class VerifiedOtpAnswer(ResponseModel):
    """The subscriber who entered the correct code."""

    verified: Literal[True] = Field(
        True, description="Always true: a wrong code is an error.", examples=[True]
    )
    otp_id: OtpId
    purpose: PurposeOfCode
    subscriber_id: SubscriberId
    channel: OnChannel
    first_name: FirstName
    username: Username
    lang: Lang
    tags: TagNames
    external_id: OwnId
    proves: ProvenIdentity = Field(
        description="What the code proves of the person: an `account` on the messenger, access to a"
        " `mailbox`, a `phone` number, or an account that a `homeserver` vouches for; null if it was sent on"
        " several channels by a route."
    )

    @classmethod
    def of(cls, verdict: Verdict, otp_id: str = "") -> "VerifiedOtpAnswer":
        """`otp_id`: of the code that a hosted page was made for, which may have sent another one."""
        code = verdict.code
        return cls(
            otp_id=otp_id or code.otp_id,
            purpose=code.purpose,
            proves=verdict.proves,
            **verdict.subscriber.event_fields(),
        )


class OtpAnswer(ResponseModel):
    """State of a code."""

    leave_out_none = frozenset({"route_id"})

    otp_id: OtpId
    status: Status = Field(
        description="`pending` until the link of a request is opened, then `queued` until a messenger takes"
        " the message; `failed` if none did. `superseded`: a newer code of the same purpose took its place.",
        examples=["sent"],
    )
    purpose: PurposeOfCode
    subscriber_id: str | None = Field(
        description="The recipient; null until the link of a request is opened. By a route, on the last"
        " channel that it was sent to.",
        examples=[examples.SUBSCRIBER_ID],
    )
    attempts_left: int = Field(
        description="Attempts left; none when the code can't be given any more.", examples=[3]
    )
    reason: str | None = Field(
        description="Why the message did not arrive: as in `delivery.failed`, or `expired` if the code ran"
        " out before it could be sent. Null if nothing of that happened.",
        examples=[None],
    )
    route_id: str | None = Field(
        None,
        description="The route that it is sent by; absent for a code to one channel.",
        examples=[ROUTE_ID],
    )
    created_at: CreatedAt = Field(description="When it was requested.", examples=[examples.TIME])
    expires_at: Time = Field(
        description="When the code stops working, or the link until it is opened.",
        examples=[EXPIRES_AT],
    )

    @classmethod
    def of(cls, code: OneTimeCode, now_ms: int) -> "OtpAnswer":
        return cls(
            otp_id=code.otp_id,
            status=code.status(now_ms),
            purpose=code.purpose,
            subscriber_id=code.subscriber_id,
            attempts_left=code.attempts_left,
            reason=code.reason,
            route_id=code.route_id,
            created_at=to_rfc3339(code.created_at_ms),
            expires_at=to_rfc3339(code.expires_at_ms),
        )
