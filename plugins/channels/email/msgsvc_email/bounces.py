"""Reports of mail servers: messages that did not arrive (RFC 3464), and complaints (RFC 5965).

Servers such as qmail, Exim and older Exchange write what happened for people to read; that is read too.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from msgsvc_core.channels import Blocked, ChannelUser, DeliveryReported, Reason, Update
from msgsvc_email.failures import hidden, is_no_mailbox, reason_of_report
from msgsvc_email.mail import Head, Mail
from msgsvc_email.structured import addresses_in, bare, normalized, recipients
from msgsvc_email.tokens import Tokens

#: Addresses that are looked at in each place of a report. A message of ours is to one person.
MAX_NAMED = 20

#: Paragraphs of a text that are looked at, and characters of the words that are kept.
MAX_PARAGRAPHS, MAX_DETAIL = 200, 300

#: Kinds of complaints that say that a person wants no more.
_UNWANTED = frozenset({"abuse", "opt-out", "fraud"})

#: A message id of ours in a text, as `Tokens` makes them.
_OWN_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\.[a-z2-7]{16}@[a-z0-9.-]{1,255}")

#: Where the copy of what was sent begins in a text.
_COPY = re.compile(
    r"^-+ ?(?:below this line is a copy|this is a copy|original message|returned message)",
    re.IGNORECASE | re.MULTILINE,
)


#: Words of a server that goes on trying.
_DELAYED = re.compile(
    r"\bdelayed\b|\bwarning only\b|\bstill being retried\b|\bnot yet been delivered\b"
    r"|\bdelivery attempts will continue\b|\bwarning: could not send\b|\bverzögert\b|\bbeing retried\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A recipient whom a message did not reach, in the server's words."""

    address: str
    status: str
    words: str

    @property
    def is_gone(self) -> bool:
        return is_no_mailbox(self.status, self.words)


def read_report(mail: Mail, update_id: str, *, tokens: Tokens, mailbox: str) -> list[Update]:
    """What a report says of messages of ours, and of the addresses that take nothing any more, or don't want
    to.

    Anyone can send a report. It counts if it came to the address that bounces of messages to that person go
    to, or holds the id of one: both are signed, and only servers on the way have seen them.
    """
    to = _returned_to(mail)
    named, ids = list(islice(_named(mail, to), MAX_NAMED)), _ids_in(mail)
    delivered_to = recipients(mail.head)[:MAX_NAMED]
    updates: list[Update] = []
    for failure in named:
        # An address that forwards to another: the report names that one, the message ours.
        for address in dict.fromkeys([*normalized([failure.address]), *to]):
            user = ChannelUser(address, "", address)
            mark = hashlib.sha256(address.encode()).hexdigest()[:8]
            ref = next((one for one in ids if tokens.is_own_id(one, address)), None)
            returned = any(tokens.is_subaddress(one, mailbox, "b", address) for one in delivered_to)
            if ref is not None and not _is_complaint(mail):
                updates.append(_reported(failure, ref.strip("<> "), f"{update_id}-{mark}-failed"))
            if (ref is not None or returned) and (_is_complaint(mail) or failure.is_gone):
                updates.append(
                    Blocked(
                        update_id=f"{update_id}-{mark}",
                        chat_id=address,
                        user=user,
                        by_failure=not _is_complaint(mail),
                    )
                )
    return list({update.update_id: update for update in updates}.values())


def is_no_failure(mail: Mail) -> bool:
    """Whether a report only says that a message is delayed, or has gone on: nothing is to be done then."""
    actions = [bare(block.get("action")).strip().lower() for _, block in mail.blocks]
    told = {action for action in actions if action}
    return bool(told) and told <= {"delayed", "delivered", "relayed", "expanded"}


def _reported(failure: _Failure, ref: str, update_id: str) -> DeliveryReported:
    words = hidden(failure.words)[:MAX_DETAIL] or failure.status
    return DeliveryReported(
        update_id=update_id,
        message_ref=ref,
        state="failed",
        reason=reason_of_report(failure.status, failure.words),
        detail=words or Reason.UNKNOWN,
    )


def _is_complaint(mail: Mail) -> bool:
    return mail.report_type == "feedback-report"


def _named(mail: Mail, to: list[str]) -> Iterator[_Failure]:
    if _is_complaint(mail):
        return _complained(mail, to)
    return _failed(mail) if mail.report_type else _told(mail)


def _returned_to(mail: Mail) -> list[str]:
    found = recipients(mail.returned) if mail.returned is not None else []
    return normalized(found[:MAX_NAMED])


def _ids_in(mail: Mail) -> list[str]:
    """What may be the id of a message of ours."""
    if mail.returned is not None:
        return [mail.returned.get("message-id")]
    return list(dict.fromkeys(_OWN_ID.findall(mail.bounce_text)))[:MAX_NAMED]


def _failed(mail: Mail) -> Iterator[_Failure]:
    """The recipients for whom a report says that delivery failed, without those for whom it is delayed."""
    for kind, block in mail.blocks:
        if kind == "message/feedback-report":
            continue
        if bare(block.get("action")).strip().lower() != "failed":
            continue
        # What the receiving server said; `Status` is what the reporting one made of it.
        words = block.get("diagnostic-code").partition(";")[2].strip()
        for address in _addresses(block, "original-recipient", "final-recipient"):
            yield _Failure(address, block.get("status"), words)


def _told(mail: Mail) -> Iterator[_Failure]:
    """The same, of a text for people: an address, and what is said beside it."""
    copy = _COPY.search(mail.bounce_text)
    text = mail.bounce_text[: copy.start()] if copy else mail.bounce_text
    if _DELAYED.search(mail.head.decoded("subject")) or _DELAYED.search(text):
        return
    named = addresses_in(mail.head.get("x-failed-recipients"))
    paragraphs = re.split(r"\n[ \t]*\n", text)[:MAX_PARAGRAPHS]
    for number, words in enumerate(paragraphs):
        found = addresses_in(words)
        # Exchange says what happened in the next paragraph, others in the same.
        following = paragraphs[number + 1] if number + 1 < len(paragraphs) else ""
        said = words if is_no_mailbox(words, words) else f"{words}\n{following}"
        for address in found:
            yield _Failure(address, said, said)
    for address in named:
        yield _Failure(address, text, text)


def _complained(mail: Mail, to: list[str]) -> Iterator[_Failure]:
    fields = next((block for kind, block in mail.blocks if kind == "message/feedback-report"), None)
    if fields is None or fields.get("feedback-type").strip().lower() not in _UNWANTED:
        return
    # Without the recipient, which many leave out, it is whom the message was to.
    for address in (*_addresses(fields, "original-rcpt-to"), *to):
        yield _Failure(address, "", "")


def _addresses(block: Head, *names: str) -> Iterator[str]:
    for name in names:
        for value in block.all(name):
            yield value.rpartition(";")[2].strip().strip("<>")
