"""Reports of mail servers: messages that did not arrive (RFC 3464), and complaints (RFC 5965)."""

import hashlib
import re
from collections.abc import Iterator
from email import message_from_string, policy
from email.message import EmailMessage, Message

import structlog

from msgsvc_core.channels import Blocked, ChannelUser, Update
from msgsvc_email.failures import is_no_mailbox
from msgsvc_email.proof import normalized, recipients
from msgsvc_email.tokens import Tokens

log = structlog.get_logger(__name__)

#: Types of the part with what was sent.
_RETURNED = frozenset(
    {"message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers"}
)


def report_type(mail: EmailMessage) -> str:
    """`delivery-status` or `feedback-report`; empty for what is no report."""
    if mail.get_content_type() != "multipart/report":
        return ""
    return str(mail.get_param("report-type", "")).lower()


def read_report(
    mail: EmailMessage, update_id: str, *, tokens: Tokens, mailbox: str, channel: str
) -> list[Update]:
    """The addresses that take nothing any more, or don't want to.

    Anyone can send a report. It counts if it came to the address that bounces of messages to that person go
    to, or holds the id of one: both are signed, and only servers on the way have seen them.
    """
    complaint = report_type(mail) == "feedback-report"
    failed = list(_complained(mail) if complaint else _failed(mail))
    returned = _returned(mail)
    to = normalized(recipients(returned)) if returned is not None else []
    message_id = str(returned.get("Message-ID", "")) if returned is not None else ""
    proven = [
        address
        for address in dict.fromkeys([*normalized(failed), *(to if failed else [])])
        if tokens.is_own_id(message_id, address)
        or any(tokens.is_subaddress(one, mailbox, "b", address) for one in recipients(mail))
    ]
    if not proven:
        log.info("report_skipped", channel=channel, kind=report_type(mail))
    return [
        Blocked(
            update_id=f"{update_id}-{hashlib.sha256(address.encode()).hexdigest()[:8]}",
            chat_id=address,
            user=ChannelUser(address, "", address),
        )
        for address in proven
    ]


def _failed(mail: EmailMessage) -> Iterator[str]:
    """The recipients whose mailboxes don't exist, as the report names them."""
    for part in mail.walk():
        if part.get_content_type() not in {
            "message/delivery-status",
            "message/global-delivery-status",
        }:
            continue
        for block in _blocks(part):
            status = re.search(r"\b([245]\.\d{1,3}\.\d{1,3})\b", str(block.get("Status", "")))
            if str(block.get("Action", "")).strip().lower() != "failed" or status is None:
                continue
            if is_no_mailbox(status[1]):
                yield from _addresses(block, "Original-Recipient", "Final-Recipient")


def _complained(mail: EmailMessage) -> Iterator[str]:
    for part in mail.walk():
        if part.get_content_type() != "message/feedback-report":
            continue
        fields = next(iter(_blocks(part)), part)
        if str(fields.get("Feedback-Type", "")).strip().lower() not in {
            "abuse",
            "opt-out",
            "fraud",
        }:
            continue
        yield from _addresses(fields, "Original-Rcpt-To")
        # Without the recipient, which many leave out, it is whom the message was to.
        returned = _returned(mail)
        yield from recipients(returned) if returned is not None else ()


def _blocks(part: Message) -> list[Message]:
    """The groups of fields of a report."""
    payload = part.get_payload()
    found = payload if isinstance(payload, list) else []
    return [one for one in found if isinstance(one, Message)]


def _addresses(block: Message, *names: str) -> Iterator[str]:
    for name in names:
        for value in block.get_all(name, []):
            yield str(value).rpartition(";")[2].strip().strip("<>")


def _returned(mail: EmailMessage) -> EmailMessage | None:
    """The header of the message that the report is about."""
    for part in mail.walk():
        if part.get_content_type() not in _RETURNED:
            continue
        content = part.get_payload()
        if isinstance(content, list):
            return content[0] if content and isinstance(content[0], EmailMessage) else None
        decoded = part.get_payload(decode=True)
        text = decoded.decode("utf-8", "replace") if isinstance(decoded, bytes) else str(content)
        read = message_from_string(text, policy=policy.default)
        return read if isinstance(read, EmailMessage) else None
    return None
