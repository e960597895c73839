"""Maps answers of message centres and gateways to the delivery reasons (docs/decisions/0148)."""

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_sms.pdu import Command, Status

#: What the answers say; those that are not here are `unknown`.
_REASONS: dict[int, Reason] = {
    Status.THROTTLED: Reason.RATE_LIMITED,
    Status.QUEUE_FULL: Reason.RATE_LIMITED,
    Status.SYSTEM_ERROR: Reason.PLATFORM_UNAVAILABLE,
    Status.INVALID_DESTINATION: Reason.CHAT_NOT_FOUND,
    Status.BIND_FAILED: Reason.BOT_BANNED,
    Status.INVALID_PASSWORD: Reason.BOT_BANNED,
    Status.INVALID_SYSTEM_ID: Reason.BOT_BANNED,
    Status.INVALID_LENGTH: Reason.INVALID_MESSAGE,
    Status.INVALID_COMMAND_LENGTH: Reason.INVALID_MESSAGE,
    Status.INVALID_SOURCE: Reason.INVALID_MESSAGE,
    Status.INVALID_ESM_CLASS: Reason.INVALID_MESSAGE,
    Status.INVALID_SOURCE_TON: Reason.INVALID_MESSAGE,
    Status.INVALID_SOURCE_NPI: Reason.INVALID_MESSAGE,
    Status.INVALID_DESTINATION_TON: Reason.INVALID_MESSAGE,
    Status.INVALID_DESTINATION_NPI: Reason.INVALID_MESSAGE,
    Status.INVALID_EXPIRY: Reason.INVALID_MESSAGE,
    Status.INVALID_TLV_LENGTH: Reason.INVALID_MESSAGE,
    # The session is in another state than we think, e.g. after the centre forgot it: bind again.
    Status.WRONG_BIND_STATE: Reason.PLATFORM_UNAVAILABLE,
    Status.ALREADY_BOUND: Reason.PLATFORM_UNAVAILABLE,
}

_NAMES = {each.value: each.name.lower() for each in Status}


class Refused(DeliveryError):
    """The centre answered with an error: nothing is in doubt."""

    def __init__(self, status: int, command: Command) -> None:
        name = _NAMES.get(status, "no status of the standard")
        # A bind fails for the account alone, whatever the status.
        otherwise = (
            Reason.PLATFORM_UNAVAILABLE if command is not Command.SUBMIT_SM else Reason.UNKNOWN
        )
        super().__init__(_REASONS.get(status, otherwise), f"status 0x{status:08X} ({name})")
        self.status = status


def unavailable(why: str) -> DeliveryError:
    """The platform can't be asked; nothing was sent."""
    return DeliveryError(Reason.PLATFORM_UNAVAILABLE, why)
