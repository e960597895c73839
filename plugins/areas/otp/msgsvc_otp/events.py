"""The events that the plugin emits. None of them carries a code."""

from pydantic import Field

from msgsvc_core.api.endpoint import ResponseModel
from msgsvc_core.events import EventSpec
from msgsvc_otp.models import OtpId, PurposeOfCode

SENT, VERIFIED = "otp.sent", "otp.verified"
FAILED_ATTEMPT, MAX_ATTEMPTS_REACHED = "otp.failed_attempt", "otp.max_attempts_reached"


class OtpEvent(ResponseModel):
    """Fields of every event of a one-time code, with the subscriber's."""

    otp_id: OtpId
    purpose: PurposeOfCode
    attempts_left: int = Field(
        description="Attempts that the person still has for this code.", examples=[2]
    )


OTP_EVENTS = (
    EventSpec(
        SENT,
        "The messenger accepted the message with the code.",
        OtpEvent,
        group="sign_in",
        title=lambda _, _data: _("Code sent"),
    ),
    EventSpec(
        VERIFIED,
        "The code was verified; it can't be used again.",
        OtpEvent,
        group="sign_in",
        title=lambda _, _data: _("Entered the right code"),
    ),
    EventSpec(
        FAILED_ATTEMPT,
        "A wrong code was given.",
        OtpEvent,
        group="sign_in",
        title=lambda _, _data: _("Entered a wrong code"),
    ),
    EventSpec(
        MAX_ATTEMPTS_REACHED,
        "The last allowed attempt was wrong; the code is no longer valid.",
        OtpEvent,
        group="sign_in",
        title=lambda _, _data: _("Entered too many wrong codes"),
    ),
)
