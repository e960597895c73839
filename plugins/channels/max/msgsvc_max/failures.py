"""Maps the platform's errors to the seven delivery reasons.

The schema lists the statuses and says that an error has a `code` and a `message`; it lists few codes. The
others were observed in practice (docs/decisions/0016).
"""

import re
from collections.abc import Mapping
from typing import Any

from msgsvc_core.channels.failures import DeliveryError, Reason
from msgsvc_core.channels.http import PlatformAnswer
from msgsvc_core.kernel.json import read_json

#: Characters of the platform's words that an error keeps.
MOST_WORDS = 300

_TOKEN_REFUSED = frozenset({"verify.token"})
_SUSPENDED = re.compile(r"dialogs?\.suspended")
_NOT_THE_PERSON = re.compile(r"no\.permission")
_CHAT_GONE = re.compile(r"\b(chat|dialog|user)s?\b.*\bnot[. _]?found", re.IGNORECASE)
_GONE = re.compile(r"not[. _]?found", re.IGNORECASE)
_FILE = re.compile(r"attachment|photo|image|upload|\burl\b", re.IGNORECASE)


class MaxRefusal(DeliveryError):
    """The platform responded with an error."""

    def __init__(
        self,
        reason: Reason,
        status: int,
        code: str,
        words: str,
        retry_after_s: float | None = None,
        *,
        in_doubt: bool = False,
    ) -> None:
        text = f"{status} {code}: {words}" if code else f"{status} {words}"
        super().__init__(reason, text[:MOST_WORDS], retry_after_s, in_doubt=in_doubt)
        self.status = status
        self.code = code
        self.words = words

    @property
    def not_ready(self) -> bool:
        """A file is still being worked on; in a moment the same call succeeds."""
        return self.code == "attachment.not.ready"

    @property
    def gone(self) -> bool:
        """What the call was about is not there."""
        return self.reason in {Reason.INVALID_MESSAGE, Reason.CHAT_NOT_FOUND} and bool(
            _GONE.search(f"{self.code} {self.words}")
        )

    @property
    def of_file(self) -> bool:
        """It is a file that the platform did not like, or could not fetch."""
        return self.reason is Reason.INVALID_MESSAGE and bool(
            _FILE.search(f"{self.code} {self.words}")
        )


def read_answer(answer: PlatformAnswer) -> dict[str, Any]:
    """The object of a successful response. Raises `DeliveryError` for any other response."""
    body = _object(answer.body)
    if not 200 <= answer.status < 300:
        raise to_refusal(answer.status, answer.headers, body or {})
    if body is None:
        # It was probably done; asking again might do it twice.
        raise DeliveryError(
            Reason.PLATFORM_UNAVAILABLE, "the platform's answer is not JSON", in_doubt=True
        )
    # The platform refuses with status 200 too: `success` is false, or there is an error's `code`.
    if body.get("success") is False or isinstance(body.get("code"), str):
        raise to_refusal(answer.status, answer.headers, body)
    return body


def to_refusal(status: int, headers: Mapping[str, str], body: Mapping[str, Any]) -> MaxRefusal:
    """The error of a response."""
    code, words = _text(body.get("code")), _text(body.get("message"))
    reason = _reason(status, code, words, explained=bool(code or words))
    retry_after_s = _retry_after_s(headers) if reason is Reason.RATE_LIMITED else None
    # A gateway that gave up waiting can't know what became of the request.
    return MaxRefusal(reason, status, code, words, retry_after_s, in_doubt=status == 504)


def _reason(status: int, code: str, words: str, *, explained: bool) -> Reason:
    if status == 401 or code in _TOKEN_REFUSED:
        return Reason.BOT_BANNED
    if status == 429 or code == "too.many.requests":
        return Reason.RATE_LIMITED
    if status >= 500 or code in {"attachment.not.ready", "internal.error", "service.unavailable"}:
        return Reason.PLATFORM_UNAVAILABLE
    if not explained and status != 400:
        # No answer of the Bot API: a proxy's page, or a base URL that leads elsewhere.
        return Reason.PLATFORM_UNAVAILABLE
    return _reason_in_words(status, code, words)


def _reason_in_words(status: int, code: str, words: str) -> Reason:
    said = f"{code} {words}"
    if _SUSPENDED.search(said):
        return Reason.USER_BLOCKED_BOT
    if _NOT_THE_PERSON.search(said):
        # The bot is no administrator of a group: a person has to look, the chat is there.
        return Reason.UNKNOWN
    if code == "chat.denied" or _CHAT_GONE.search(said):
        return Reason.CHAT_NOT_FOUND
    return Reason.INVALID_MESSAGE if status in {200, 400, 404, 413} else Reason.UNKNOWN


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        found = read_json(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
