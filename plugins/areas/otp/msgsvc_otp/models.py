"""Models of one-time codes: internal, and of the API."""

from typing import Annotated, Literal

from pydantic import Field

from msgsvc_core.api.endpoint import RequestModel, ResponseModel
from msgsvc_core.kernel.clock import to_rfc3339
from msgsvc_core.kernel.i18n import Language
from msgsvc_core.kernel.values import value_object
from msgsvc_core.subscribers.models import Subscriber

Status = Literal["pending", "sent", "verified", "expired", "max_attempts_reached", "superseded"]

#: What is stored. `waiting` is a request whose link nobody has opened. A code that ran out stays
#: `active` until the next one takes its place.
StoredStatus = Literal[
    "waiting", "active", "verified", "expired", "max_attempts_reached", "superseded"
]

#: What a code is for, when a request doesn't say (decision 0075).
DEFAULT_PURPOSE = "login"

#: Decision 0075.
Purpose = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")]


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
    lang: Language | None
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

    @property
    def attempts_left(self) -> int:
        return self.max_attempts - self.attempts

    def status(self, now_ms: int) -> Status:
        """The status at that moment."""
        match self.stored_status:
            case "waiting" | "active" if now_ms >= self.expires_at_ms:
                return "expired"
            case "waiting":
                return "pending"
            case "active":
                return "pending" if self.sent_at_ms is None else "sent"
            case ended:
                return ended

    def is_live(self, now_ms: int) -> bool:
        """Whether it may still be given."""
        return self.stored_status == "active" and now_ms < self.expires_at_ms


@value_object
class Verdict:
    """The result of a right code, with its subscriber."""

    code: OneTimeCode
    subscriber: Subscriber


class Terms(RequestModel):
    """Options of a code, within the limits and with the defaults of the settings."""

    purpose: Purpose = Field(DEFAULT_PURPOSE, description="One code is active for each purpose.")
    ttl_minutes: int | None = Field(
        None, ge=1, description="Lifetime in minutes: 1-30 (default 5)."
    )
    max_attempts: int | None = Field(None, ge=1, description="Allowed attempts: 1-10 (default 3).")
    length: int | None = Field(None, ge=1, description="Digits: 4-8 (default 6).")
    lang: Language | None = Field(
        None, description="Language of the message; without it, the person's own."
    )


class SendOtpBody(Terms):
    """The recipient of a code, and its options."""

    subscriber_id: str | None = None
    external_id: str | None = Field(None, description="Your own id of this person.")
    channel: str | None = Field(None, description="With `external_id`: only this messenger.")


class SendOtpAnswer(ResponseModel):
    """A code that is being sent."""

    otp_id: str
    expires_at: str


class RequestOtpBody(Terms):
    """A code for the first person who opens its link."""

    channel: str | None = Field(None, description="Offer only this messenger.")


class RequestOtpAnswer(ResponseModel):
    """A requested code; it is sent when its link is opened."""

    leave_out_none = frozenset({"start_messages"})

    otp_id: str
    links: dict[str, str] = Field(description="The link to open, per channel.")
    qr: dict[str, str] = Field(description="The link as an SVG image, per channel; no key needed.")
    start_messages: dict[str, str] | None = Field(
        None,
        description="Text that the person sends to the bot, per channel whose link can only open the chat.",
    )
    expires_in: int = Field(description="Lifetime of the link, in seconds.")


class VerifyOtpBody(RequestModel):
    """The code as typed, and the code to compare it with: that of `otp_id`, or the last one of a
    subscriber and purpose."""

    otp_id: str | None = None
    subscriber_id: str | None = None
    external_id: str | None = Field(None, description="Your own id of this person.")
    channel: str | None = Field(None, description="With `external_id`: only this messenger.")
    purpose: Purpose | None = Field(
        None, description="`login` by default. With `otp_id`, checked only if given."
    )
    code: str = Field(max_length=64, description="Spaces are ignored.")


class VerifyOtpAnswer(ResponseModel):
    """The subscriber who entered the correct code."""

    verified: Literal[True] = True
    otp_id: str
    purpose: str
    subscriber_id: str
    channel: str
    first_name: str
    username: str | None
    lang: Language
    tags: list[str]
    external_id: str | None

    @classmethod
    def of(cls, verdict: Verdict) -> "VerifyOtpAnswer":
        code = verdict.code
        return cls(otp_id=code.otp_id, purpose=code.purpose, **verdict.subscriber.event_fields())


class OtpAnswer(ResponseModel):
    """State of a code."""

    otp_id: str
    status: Status
    purpose: str
    subscriber_id: str | None = Field(description="Null until the link of a request is opened.")
    attempts_left: int
    reason: str | None = Field(
        description="Why the messenger rejected the message, as in `delivery.failed`; or null."
    )
    created_at: str
    expires_at: str = Field(description="Expiry of the code, or of the link until it is opened.")

    @classmethod
    def of(cls, code: OneTimeCode, now_ms: int) -> "OtpAnswer":
        return cls(
            otp_id=code.otp_id,
            status=code.status(now_ms),
            purpose=code.purpose,
            subscriber_id=code.subscriber_id,
            attempts_left=code.attempts_left,
            reason=code.reason,
            created_at=to_rfc3339(code.created_at_ms),
            expires_at=to_rfc3339(code.expires_at_ms),
        )
