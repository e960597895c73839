"""Maps replies of mail servers to the seven delivery reasons (docs/decisions/0143)."""

import re
from typing import Literal

from msgsvc_core.channels import DeliveryError, Reason

#: What a reply is to: connection and account, sender, recipient, content.
Step = Literal["connect", "sender", "recipient", "content"]

#: Characters of a server's words that an error keeps.
MOST_WORDS = 300

#: Code of enhanced status: class, subject, detail (RFC 3463).
_ENHANCED = re.compile(r"\b([245])\.(\d{1,3})\.(\d{1,3})\b")

#: The mailbox or its domain does not exist, or takes nothing any more (RFC 3463, RFC 7505, RFC 7504).
_NO_MAILBOX = frozenset({"1.0", "1.1", "1.2", "1.3", "1.4", "1.6", "1.10", "2.0", "2.1"})

#: Too large, or content that the server can't take.
_CONTENT = frozenset({"2.3", "3.3", "3.4", "6.0", "6.1", "6.2", "6.3", "6.7", "6.9"})

#: The server does not know us: no message of ours would be taken.
_NOT_LET_IN = frozenset({"7.0", "7.8", "7.9", "7.11", "7.12", "7.13", "7.14"})

#: Anyone's message through this server needs an account.
_RELAY = re.compile(r"relay(ing)?\b", re.IGNORECASE)

_ADDRESS = re.compile(r"<?[^\s<>@]+@[^\s<>@]+>?")


class SmtpRefusal(DeliveryError):
    """The server refused; `is_servers` says that another server may take the message."""

    def __init__(
        self, reason: Reason, step: Step, code: int, words: str, *, is_servers: bool = False
    ) -> None:
        chat = step == "recipient" and reason is Reason.RATE_LIMITED
        super().__init__(
            reason, f"{code} {hidden(words)}"[:MOST_WORDS], scope="chat" if chat else "bot"
        )
        self.code = code
        self.is_servers = is_servers


def is_no_mailbox(status: str) -> bool:
    """Whether a status such as `5.1.1` says that the mailbox does not exist, or takes nothing any more."""
    kind, _, detail = status.partition(".")
    # 5.4.4: the domain has no host for mail.
    return kind == "5" and detail in _NO_MAILBOX | {"4.4"}


def hidden(words: str) -> str:
    """A server's words in one line without addresses, which are personal data and are logged."""
    return _ADDRESS.sub("<address>", " ".join(words.split()))


def refusal(step: Step, code: int, words: str) -> SmtpRefusal:
    """The error for a reply that is no success."""
    found = _ENHANCED.search(words)
    detail = f"{int(found[2])}.{int(found[3])}" if found else ""
    if 400 <= code < 500:
        return _later(step, code, words, detail)
    if step == "connect":
        return _not_connected(step, code, words, detail)
    reason = _for_good(step, code, words, detail)
    return SmtpRefusal(reason, step, code, words, is_servers=reason is Reason.BOT_BANNED)


def _later(step: Step, code: int, words: str, detail: str) -> SmtpRefusal:
    if code == 421 or step == "connect" or detail.startswith("3."):
        # The server itself: it stops, or has no room (4.3.x).
        return SmtpRefusal(Reason.PLATFORM_UNAVAILABLE, step, code, words, is_servers=True)
    if step == "recipient" or detail.startswith("7."):
        # This mailbox: full, busy, or greylisted; or too many messages from us.
        return SmtpRefusal(Reason.RATE_LIMITED, step, code, words)
    return SmtpRefusal(Reason.PLATFORM_UNAVAILABLE, step, code, words, is_servers=True)


def _not_connected(step: Step, code: int, words: str, detail: str) -> SmtpRefusal:
    if code in {530, 534, 535, 538} or detail in _NOT_LET_IN:
        return SmtpRefusal(Reason.BOT_BANNED, step, code, words, is_servers=True)
    # 554 instead of a greeting, 502 to EHLO: no server for us, for now.
    return SmtpRefusal(Reason.PLATFORM_UNAVAILABLE, step, code, words, is_servers=True)


def _for_good(step: Step, code: int, words: str, detail: str) -> Reason:
    if code == 530 or detail in _NOT_LET_IN - {"7.0"} or _RELAY.search(words):
        return Reason.BOT_BANNED
    if detail in _CONTENT or (code == 552 and detail != "2.2"):
        return Reason.INVALID_MESSAGE
    if step == "sender":
        # The account may not send as this sender, so none of its messages is taken.
        is_sender = detail[:2] in {"1.", "7."} or code in {550, 553}
        return Reason.BOT_BANNED if is_sender else Reason.UNKNOWN
    if detail.startswith("7."):
        return Reason.INVALID_MESSAGE
    return _of_mailbox(code, detail) if step == "recipient" else Reason.UNKNOWN


def _of_mailbox(code: int, detail: str) -> Reason:
    if detail in _NO_MAILBOX or (not detail and code in {550, 551, 553}):
        return Reason.CHAT_NOT_FOUND
    return Reason.INVALID_MESSAGE if code in {501, 555} else Reason.UNKNOWN
