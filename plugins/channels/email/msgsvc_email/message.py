"""A message as an email: headers, text, HTML and file."""

import binascii
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime

from msgsvc_core.channels import OutgoingMessage
from msgsvc_core.content.blocks import from_rich
from msgsvc_core.content.markup import to_spans
from msgsvc_email.encoded_files import EncodedFile
from msgsvc_email.layout import Footer, Picture, html_blocks, html_document, html_text, plain_text
from msgsvc_email.settings import EmailSettings

#: Bytes of the mark that stands for a file; they are 48 characters of Base64, which are in no text by chance.
MARK_BYTES = 36

#: Characters of a subject made of the text: what programs show, and a header's line (RFC 5322, 2.1.1).
MAX_SUBJECT = 78

#: Images that mail programs show in a message.
SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif"})

#: What ends a line, and what is no text in a header.
_CONTROL = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]+")

#: A message id without its brackets. Programs don't keep to the grammar of RFC 5322; this fits in a line.
_MESSAGE_ID = re.compile(r"[!-;=?-~]{1,250}")

#: Half of a surrogate pair, which is no text.
_HALF = re.compile("[\ud800-\udfff]")

#: Maximum characters of a button's label and URL: a line of the text part (RFC 5322) has 998 bytes.
MAX_BUTTON_TEXT, MAX_URL = 128, 2048


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where a message goes, and where what comes back from it goes."""

    recipient: str
    reply_to: str | None
    message_id: str


def problem_of(message: OutgoingMessage) -> str | None:
    """Why a message can't be an email."""
    if _HALF.search(message.text):
        return "text: holds half of a character"
    for number, row in enumerate(message.buttons):
        for place, button in enumerate(row):
            where = f"buttons[{number}][{place}]"
            if len(button.text) > MAX_BUTTON_TEXT:
                return f"{where}.text: must be 1-{MAX_BUTTON_TEXT} characters on this channel"
            if len(button.url or "") > MAX_URL:
                return f"{where}.url: must be at most {MAX_URL} characters on this channel"
    return None


def composed(
    message: OutgoingMessage,
    addresses: Addresses,
    settings: EmailSettings,
    *,
    at: datetime,
    footer: Footer | None,
    file: EncodedFile | None,
) -> bytes:
    """The message with all its headers; its lines end with CRLF."""
    subject = subject_of(message, settings)
    headers = {
        "From": _sender(settings),
        "To": _angled(addresses.recipient),
        "Subject": encoded("Subject", subject),
        "Date": format_datetime(at),
        "Message-ID": f"<{addresses.message_id}>",
        "Content-Language": settings.lang,
    }
    refs = references_of(message)
    if refs:
        headers |= {"In-Reply-To": refs[-1], "References": "\r\n ".join(refs)}
    if not message.by_person:
        headers["Auto-Submitted"] = "auto-replied" if refs else "auto-generated"
        # The same for Exchange, which would answer that somebody is away.
        headers["X-Auto-Response-Suppress"] = "All"
    if addresses.reply_to is not None:
        headers["Reply-To"] = _angled(addresses.reply_to)
    if footer is not None:
        headers["List-Unsubscribe"] = f"<{footer.url}>"
        if footer.url.startswith("https://"):
            # One POST unsubscribes, without a page (RFC 8058).
            headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return _written(headers) + _body(message, settings, subject, footer, file)


def references_of(message: OutgoingMessage) -> list[str]:
    """The ids of the messages before it, in brackets; without those that could break a header."""
    given = message.in_reply_to.refs if message.in_reply_to is not None else ()
    return [f"<{ref}>" for ref in given if _MESSAGE_ID.fullmatch(ref)]


def subject_of(message: OutgoingMessage, settings: EmailSettings) -> str:
    """That of the message which it answers; else the configured one, or else the first line of the text, cut
    at `MAX_SUBJECT` characters."""
    if message.in_reply_to is not None and message.in_reply_to.subject:
        subject = message.in_reply_to.subject
        return f"Re: {subject}" if references_of(message) else subject
    if settings.subject:
        return settings.subject
    text = "".join(span.text for span in to_spans(message.text, message.format))
    lines = (" ".join(_CONTROL.sub(" ", line).split()) for line in text.splitlines())
    first = next(filter(None, lines), "") or settings.sender_name or settings.sender
    if len(first) <= MAX_SUBJECT:
        return first
    # At the end of a word, unless that would leave little.
    head = first[: MAX_SUBJECT - 1]
    whole, _, _ = head.rpartition(" ")
    return (whole if len(whole) > MAX_SUBJECT // 2 else head).rstrip() + "…"


def encoded(name: str, text: str) -> str:
    """A header's text on one line or more, as RFC 2047 writes other characters than ASCII."""
    text = " ".join(_CONTROL.sub(" ", text).split())
    if text.isascii() and len(text) <= MAX_SUBJECT and "=?" not in text:
        return text
    return Header(text, "utf-8", header_name=name, maxlinelen=76).encode(linesep="\r\n")


def _sender(settings: EmailSettings) -> str:
    name = settings.sender_name
    if not name:
        return settings.sender
    if name.isascii() and "=?" not in name:
        quoted = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{quoted}" <{settings.sender}>'
    return f"{encoded('From', name)} <{settings.sender}>"


def _angled(address: str) -> str:
    return f"<{address}>"


def _written(headers: Mapping[str, str]) -> bytes:
    lines = []
    for name, value in headers.items():
        # Values are settings, signed by us, or encoded above; a line break here would be a mistake of ours.
        assert not re.search(r"\r(?!\n)|(?<!\r)\n|\n(?![ \t])", value), name
        lines.append(f"{name}: {value}\r\n".encode())
    return b"".join(lines)


def _body(
    message: OutgoingMessage,
    settings: EmailSettings,
    subject: str,
    footer: Footer | None,
    file: EncodedFile | None,
) -> bytes:
    spans = to_spans(message.text, message.format)
    shown = file is not None and message.media is not None and message.media.type == "image"
    shown = shown and file is not None and file.mime_type in SHOWN_IMAGES
    picture = Picture(f"image@{settings.domain}", file.filename) if shown and file else None
    body = EmailMessage(policy=SMTP)
    body.set_content(plain_text(spans, message.buttons, footer), cte="quoted-printable")
    body.add_alternative(
        html_document(
            html_blocks(from_rich(message.text)) if message.format == "rich" else html_text(spans),
            message.buttons,
            title=subject,
            lang=settings.lang,
            picture=picture,
            footer=footer,
        ),
        subtype="html",
        cte="quoted-printable",
    )
    if file is None:
        return body.as_bytes()
    maintype, _, subtype = file.mime_type.partition("/")
    name = _CONTROL.sub(" ", file.filename)
    # The library takes a second for a file of 10 MB. It gets a mark, in whose place the file is put.
    mark = secrets.token_bytes(MARK_BYTES)
    if picture is not None:
        _, html = body.iter_parts()
        html.add_related(
            mark,
            maintype,
            subtype,
            cid=f"<{picture.content_id}>",
            filename=name,
            disposition="inline",
        )
    else:
        body.add_attachment(mark, maintype=maintype, subtype=subtype, filename=name)
    before, _, after = body.as_bytes().partition(binascii.b2a_base64(mark, newline=False) + b"\r\n")
    return b"".join((before, file.lines, after))
