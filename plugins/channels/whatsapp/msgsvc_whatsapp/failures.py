"""Maps the platform's errors to the seven delivery reasons (Cloud API: "Error codes")."""

import json
from collections.abc import Mapping
from typing import Any

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.http import PlatformAnswer
from msgsvc_core.kernel.json import read_json

#: Characters of the platform's words that an error keeps.
MAX_DETAIL = 300

#: The user has not written for 24 hours, so that only a template may be sent.
WINDOW_CLOSED = 131047

#: The user wants no more marketing messages of this business.
OPTED_OUT = 131050

#: Too many messages to one user; all other limits are those of the number, its account or the app.
PAIR_LIMIT = 131056

REASONS: Mapping[int, Reason] = {
    # The token, its permissions, and accounts that are blocked: every call would fail.
    0: Reason.BOT_BANNED,
    10: Reason.BOT_BANNED,
    190: Reason.BOT_BANNED,
    368: Reason.BOT_BANNED,
    131005: Reason.BOT_BANNED,
    131031: Reason.BOT_BANNED,
    # Its display name is not approved yet; its bill is not paid.
    131037: Reason.BOT_BANNED,
    131042: Reason.BOT_BANNED,
    131045: Reason.BOT_BANNED,
    133010: Reason.BOT_BANNED,
    # Limits.
    4: Reason.RATE_LIMITED,
    80007: Reason.RATE_LIMITED,
    130429: Reason.RATE_LIMITED,
    131048: Reason.RATE_LIMITED,
    PAIR_LIMIT: Reason.RATE_LIMITED,
    131064: Reason.RATE_LIMITED,
    133016: Reason.RATE_LIMITED,
    # The platform itself.
    1: Reason.PLATFORM_UNAVAILABLE,
    2: Reason.PLATFORM_UNAVAILABLE,
    131000: Reason.PLATFORM_UNAVAILABLE,
    131016: Reason.PLATFORM_UNAVAILABLE,
    131057: Reason.PLATFORM_UNAVAILABLE,
    # The user.
    131026: Reason.CHAT_NOT_FOUND,
    OPTED_OUT: Reason.USER_BLOCKED_BOT,
    # The message.
    100: Reason.INVALID_MESSAGE,
    131008: Reason.INVALID_MESSAGE,
    131009: Reason.INVALID_MESSAGE,
    WINDOW_CLOSED: Reason.INVALID_MESSAGE,
    131051: Reason.INVALID_MESSAGE,
    131052: Reason.INVALID_MESSAGE,
    131053: Reason.INVALID_MESSAGE,
    131062: Reason.INVALID_MESSAGE,
    132000: Reason.INVALID_MESSAGE,
    132001: Reason.INVALID_MESSAGE,
    132005: Reason.INVALID_MESSAGE,
    132007: Reason.INVALID_MESSAGE,
    132008: Reason.INVALID_MESSAGE,
    132012: Reason.INVALID_MESSAGE,
    132015: Reason.INVALID_MESSAGE,
    132016: Reason.INVALID_MESSAGE,
}

#: What operators can do about an error, where the platform's words don't say so.
HINTS: Mapping[int, str] = {
    131037: "ask for approval of the number's display name in WhatsApp Manager",
    131042: "check the account's payment method in WhatsApp Manager",
    131049: "WhatsApp limits how much marketing a person gets from all businesses together; try again after a"
    " day at the earliest, or use a utility template",
}

#: Permissions that were not granted, or were removed.
PERMISSIONS = range(200, 300)

#: "Object does not exist": with code 100, the id of the phone number is wrong, or the token may not see it.
NO_SUCH_OBJECT = 33

#: A gateway's answers that say that the platform was not reached.
NOT_DONE = frozenset({502, 503})


class WhatsAppRefusal(DeliveryError):
    """The platform responded with an error."""

    def __init__(
        self,
        reason: Reason,
        status: int,
        code: int | None,
        detail: str,
        retry_after_s: float | None = None,
        *,
        in_doubt: bool = False,
    ) -> None:
        text = f"{status} {detail}" if code is None else f"{code}: {detail}"
        super().__init__(
            reason,
            text[:MAX_DETAIL],
            retry_after_s,
            scope="chat" if code == PAIR_LIMIT else "bot",
            in_doubt=in_doubt,
        )
        self.status = status
        self.code = code

    @property
    def window_closed(self) -> bool:
        """Only a template may be sent to this user now."""
        return self.code == WINDOW_CLOSED


def read_answer(answer: PlatformAnswer) -> dict[str, Any]:
    """The object of a successful response. Raises `DeliveryError` for any other response."""
    body = _object(answer.body)
    if not 200 <= answer.status < 300 or "error" in (body or {}):
        raise to_refusal(answer.status, answer.headers, body or {})
    if body is None:
        # It was probably done; asking again might do it twice.
        raise DeliveryError(
            Reason.PLATFORM_UNAVAILABLE, "the platform's answer is not JSON", in_doubt=True
        )
    return body


def to_refusal(status: int, headers: Mapping[str, str], body: Mapping[str, Any]) -> WhatsAppRefusal:
    """The error of a response."""
    error = body.get("error")
    code = error.get("code") if isinstance(error, dict) else None
    if not isinstance(error, dict) or type(code) is not int:
        return _of_gateway(status, headers)
    reason = _reason(status, code, error.get("error_subcode"))
    retry_after_s = _retry_after_s(headers) if reason is Reason.RATE_LIMITED else None
    return WhatsAppRefusal(reason, status, code, detail_of(error), retry_after_s)


def detail_of(error: Mapping[str, Any]) -> str:
    """The platform's words about an error, in a response or a webhook call, and a hint at what to do."""
    data, code = error.get("error_data"), error.get("code")
    details = data.get("details") if isinstance(data, dict) else None
    words = (details, error.get("message"), error.get("title"))
    said = next((one for one in words if isinstance(one, str) and one), "no details")
    hint = HINTS.get(code) if type(code) is int else None
    # The hint stays whole: an error keeps so many characters.
    return said if hint is None else f"{said[: MAX_DETAIL - len(hint) - 20]} ({hint})"


def reason_of(code: Any) -> Reason:
    """Why a message was not delivered that had been accepted, by the code in its status."""
    return _reason(200, code, None) if type(code) is int else Reason.UNKNOWN


def _reason(status: int, code: int, subcode: Any) -> Reason:
    if code in PERMISSIONS or (code == 100 and subcode == NO_SUCH_OBJECT):
        return Reason.BOT_BANNED
    if code in REASONS:
        return REASONS[code]
    if status == 429:
        return Reason.RATE_LIMITED
    return Reason.PLATFORM_UNAVAILABLE if status >= 500 else Reason.UNKNOWN


def _of_gateway(status: int, headers: Mapping[str, str]) -> WhatsAppRefusal:
    """An answer that is not the Graph API's: of a gateway, a proxy, or a base URL that leads elsewhere."""
    if status == 429:
        return WhatsAppRefusal(
            Reason.RATE_LIMITED, status, None, "too many requests", _retry_after_s(headers)
        )
    # A gateway that gave up waiting can't know what became of the request, nor can a crash inside.
    in_doubt = status >= 500 and status not in NOT_DONE
    return WhatsAppRefusal(
        Reason.PLATFORM_UNAVAILABLE,
        status,
        None,
        "the answer is not of the Graph API",
        in_doubt=in_doubt,
    )


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = read_json(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        seconds = _regain_s(headers.get("X-Business-Use-Case-Usage", ""))
    return seconds if seconds > 0 else None


def _regain_s(usage: str) -> float:
    """Seconds until an account may call again: the header says minutes for each of its limits."""
    try:
        found = json.loads(usage)
        minutes = [
            limit["estimated_time_to_regain_access"]
            for limits in found.values()
            for limit in limits
        ]
        return 60.0 * max(map(float, minutes), default=0.0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return 0.0
