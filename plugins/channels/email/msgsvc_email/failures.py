"""Maps replies of mail servers to the seven delivery reasons (docs/decisions/0143)."""

import re
from typing import Literal

from msgsvc_core.channels import DeliveryError, Reason

#: What a reply is to: connection and account, sender, recipient, content.
Step = Literal["connect", "sender", "recipient", "content"]

#: Characters of a server's words that an error keeps.
MOST_WORDS = 300

#: Characters of a server's words that are read.
MOST_READ = 2_000

#: Code of enhanced status: class, subject, detail (RFC 3463); no part of an address such as 5.1.1.20.
_ENHANCED = re.compile(r"(?<![\d.])([245])\.(\d{1,3})\.(\d{1,3})(?!\.?\d)")

#: The mailbox or its domain does not exist, or takes nothing any more (RFC 3463, RFC 7505, RFC 7504). 4.4:
#: the domain has no host for mail.
_NO_MAILBOX = frozenset({"1.1", "1.2", "1.3", "1.4", "1.6", "1.10", "2.1", "4.4"})

#: Codes that servers give for anything, a mailbox that does not exist among it: their words decide.
_VAGUE = frozenset({"", "0.0", "1.0", "1.351", "2.0", "4.1", "5.0", "5.1", "7.1"})

_NOUN = r"(?:users?|mailbox(?:es)?|recipients?|accounts?|address(?:es)?|alias|local[ -]part)"
_MAILBOX_WORDS = re.compile(
    rf"\b{_NOUN}(?: \S{{1,254}}| (?:that )?you tried to reach)? (?:is |was |has been )?"
    r"(?:unknown|not found|not known|not exist|does(?:n't| not) exist|disabled|inactive|suspended|deactivated"
    r"|no longer (?:exists|active|available|valid|in use))\b"
    rf"|\b(?:no such|unknown|invalid|non-?existent) (?:local )?{_NOUN}\b"
    r"|\b(?:unrouteable|undeliverable) address|\bno mailbox (?:here )?by that name"
    r"|\bnot a (?:known|valid) (?:user|mailbox|recipient)|\bnot our customer"
    r"|\buser doesn't have an? \S{1,254} account|\bdomain \S{1,254} does not accept mail"
    r"|\bnot listed in (?:public name|domino directory)",
    re.IGNORECASE,
)

#: RFC 5321's own words for 550, and Exchange Online's for an address that its tenant does not have.
_UNAVAILABLE = re.compile(r"\bmailbox unavailable\b", re.IGNORECASE)
_NO_TENANTS = re.compile(r"\brecipient address rejected: access denied\b", re.IGNORECASE)

#: Words about the sender or the content, which say nothing about the mailbox.
_OTHER_WORDS = re.compile(
    r"\bsenders?\b|\bfrom address|\bspf\b|\bdkim\b|\bdmarc\b|\bspam\b|\bblack ?list|\bblock ?list"
    r"|\breputation\b|\bpolic(?:y|ies)\b|\byour (?:ip|host|domain|network)\b",
    re.IGNORECASE,
)

#: Too large, or content that the server can't take.
_CONTENT = frozenset({"2.3", "3.3", "3.4", "6.0", "6.1", "6.2", "6.3", "6.7", "6.9"})

#: Nobody took it for days.
_EXPIRED = frozenset({"4.1", "4.7", "4.300", "4.316"})

#: The server does not know us: no message of ours would be taken.
_NOT_LET_IN = frozenset({"7.0", "7.8", "7.9", "7.11", "7.12", "7.13", "7.14"})

#: Words by which a server says that it takes no message of ours to anybody, whichever command they answer.
_NEEDS_ACCOUNT = re.compile(
    r"\brelay(?:ing)? (?:access )?(?:is )?(?:denied|prohibited|not (?:permitted|allowed))|\bunable to relay"
    r"|\b(?:do(?:es)?n't|do(?:es)? not|not permitted to|cannot|can't) relay"
    r"|\bauthentication (?:is )?required|\bmust (?:first )?(?:be )?authenticate|\bmust issue a? ?starttls",
    re.IGNORECASE,
)

_ADDRESS = re.compile(r"(?<![^\s<>])<?[^\s<>@]++@[^\s<>@]+>?")


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
        self.step = step
        self.is_servers = is_servers


def is_no_mailbox(status: str, words: str) -> bool:
    """Whether a status such as `5.1.1`, or none, and a server's words say together that a mailbox does not
    exist, or takes nothing any more. A person is unsubscribed for it, so what could mean anything else does
    not count.
    """
    found = _ENHANCED.search(status)
    if found is not None and found[1] != "5":
        return False
    detail = f"{int(found[2])}.{int(found[3])}" if found else ""
    words = " ".join(words[:MOST_READ].split())
    if detail in _NO_MAILBOX:
        return True
    if detail not in _VAGUE or _OTHER_WORDS.search(words):
        return False
    if _MAILBOX_WORDS.search(words):
        return True
    return bool(
        (detail in {"", "0.0", "5.0"} and _UNAVAILABLE.search(words))
        or (detail == "4.1" and _NO_TENANTS.search(words))
    )


def reason_of_report(status: str, words: str) -> Reason:
    """Why a message did not arrive that a server had accepted."""
    if is_no_mailbox(status, words):
        return Reason.CHAT_NOT_FOUND
    found = _ENHANCED.search(status)
    detail = f"{int(found[2])}.{int(found[3])}" if found else ""
    if (found is not None and found[1] == "4") or detail in _EXPIRED:
        return Reason.PLATFORM_UNAVAILABLE
    return Reason.INVALID_MESSAGE if detail in _CONTENT else Reason.UNKNOWN


def hidden(words: str) -> str:
    """A server's words in one line without addresses, which are personal data and are logged."""
    return _ADDRESS.sub("<address>", " ".join(words[:MOST_READ].split()))


def refusal(step: Step, code: int, words: str) -> SmtpRefusal:
    """The error for a reply that is no success."""
    words = " ".join(words[:MOST_READ].split())
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
    if step == "recipient":
        return _of_recipient(code, words, detail)
    if code == 530 or detail in _NOT_LET_IN - {"7.0"} or _NEEDS_ACCOUNT.search(words):
        return Reason.BOT_BANNED
    if detail in _CONTENT or (code == 552 and detail != "2.2"):
        return Reason.INVALID_MESSAGE
    if step == "sender":
        # The account may not send as this sender, so none of its messages is taken.
        is_sender = detail[:2] in {"1.", "7."} or code in {550, 553}
        return Reason.BOT_BANNED if is_sender else Reason.UNKNOWN
    return Reason.INVALID_MESSAGE if detail.startswith("7.") else Reason.UNKNOWN


def _of_recipient(code: int, words: str, detail: str) -> Reason:
    """A reply to RCPT is about one address, unless it says in so many words that it is about all."""
    if detail in _NO_MAILBOX:
        # Before the words: "user unknown in relay recipient table" is about a user.
        return Reason.CHAT_NOT_FOUND
    if _NEEDS_ACCOUNT.search(words):
        return Reason.BOT_BANNED
    if code in {550, 551, 553, 554} and is_no_mailbox(f"5.{detail}" if detail else "", words):
        return Reason.CHAT_NOT_FOUND
    if detail in _CONTENT or detail.startswith("7.") or code in {501, 555}:
        return Reason.INVALID_MESSAGE
    return Reason.INVALID_MESSAGE if code == 552 and detail != "2.2" else Reason.UNKNOWN
