"""Maps the homeserver's errors to the seven delivery reasons.

The specification lists them under "Standard error response".
"""

from collections.abc import Mapping
from typing import Any

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.http import PlatformAnswer
from msgsvc_core.kernel.json import read_json

#: Characters of the homeserver's words that an error keeps.
MAX_WORDS = 300

#: Statuses of gateways that have not reached the homeserver: the call had no effect.
NOT_DONE = frozenset({502, 503})

REASONS = {
    "M_FORBIDDEN": Reason.CHAT_NOT_FOUND,
    "M_NOT_FOUND": Reason.INVALID_MESSAGE,
    "M_UNKNOWN_TOKEN": Reason.BOT_BANNED,
    "M_MISSING_TOKEN": Reason.BOT_BANNED,
    "M_USER_DEACTIVATED": Reason.BOT_BANNED,
    "M_USER_LOCKED": Reason.BOT_BANNED,
    "M_USER_SUSPENDED": Reason.BOT_BANNED,
    "M_LIMIT_EXCEEDED": Reason.RATE_LIMITED,
    # Of the whole homeserver, until its administrator acts.
    "M_RESOURCE_LIMIT_EXCEEDED": Reason.PLATFORM_UNAVAILABLE,
    "M_BAD_JSON": Reason.INVALID_MESSAGE,
    "M_NOT_JSON": Reason.INVALID_MESSAGE,
    "M_INVALID_PARAM": Reason.INVALID_MESSAGE,
    "M_MISSING_PARAM": Reason.INVALID_MESSAGE,
    "M_TOO_LARGE": Reason.INVALID_MESSAGE,
}


class MatrixError(DeliveryError):
    """The homeserver refused a call; `errcode` is its code."""

    def __init__(
        self,
        reason: Reason,
        status: int,
        errcode: str,
        words: str,
        retry_after_s: float | None = None,
        *,
        in_doubt: bool = False,
    ) -> None:
        text = f"{status} {errcode}: {words}" if errcode else f"{status} {words}"
        super().__init__(reason, text[:MAX_WORDS], retry_after_s, in_doubt=in_doubt)
        self.status = status
        self.errcode = errcode

    @property
    def not_found(self) -> bool:
        """What the call names does not exist, or the bot may not see it."""
        return self.errcode == "M_NOT_FOUND"

    @property
    def forbidden(self) -> bool:
        """The bot is not in the room, or may not do this in it."""
        return self.errcode == "M_FORBIDDEN"


def read_answer(answer: PlatformAnswer) -> dict[str, Any]:
    """The object of a successful response. Raises `DeliveryError` for any other response."""
    body = _object(answer.body)
    if not 200 <= answer.status < 300:
        raise to_error(answer.status, answer.headers, body or {})
    if body is None:
        # It was probably done; asking again might do it twice.
        raise DeliveryError(
            Reason.PLATFORM_UNAVAILABLE, "the homeserver's answer is not JSON", in_doubt=True
        )
    return body


def to_error(status: int, headers: Mapping[str, str], body: Mapping[str, Any]) -> MatrixError:
    """The error of a response."""
    errcode, words = _text(body.get("errcode")), _text(body.get("error"))
    reason = _reason(status, errcode)
    wait_s = _retry_after_s(headers, body) if reason is Reason.RATE_LIMITED else None
    in_doubt = status >= 500 and status not in NOT_DONE
    return MatrixError(reason, status, errcode, words, wait_s, in_doubt=in_doubt)


def _reason(status: int, errcode: str) -> Reason:
    if status == 429:
        return Reason.RATE_LIMITED
    if errcode in REASONS:
        return REASONS[errcode]
    if status >= 500 or not errcode:
        # A gateway's page, or a base URL that leads elsewhere.
        return Reason.PLATFORM_UNAVAILABLE
    if errcode == "M_UNKNOWN":
        # "The client should assume that the request being made was invalid."
        return {400: Reason.INVALID_MESSAGE, 401: Reason.BOT_BANNED}.get(status, Reason.UNKNOWN)
    return Reason.UNKNOWN


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = read_json(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _retry_after_s(headers: Mapping[str, str], body: Mapping[str, Any]) -> float | None:
    """The wait that the homeserver asks for: its header, or the older field of the body."""
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        wait_ms = body.get("retry_after_ms")
        if not isinstance(wait_ms, int | float) or isinstance(wait_ms, bool):
            return None
        # A whole number of JSON may be too large to be divided.
        seconds = min(wait_ms, 10**9) / 1000
    return seconds if seconds >= 0 else None
