"""Emails that come in as updates."""

import hashlib
import html
import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import getaddresses, parseaddr

import structlog

from msgsvc_core.channels import (
    ChannelUser,
    MediaType,
    MessageReceived,
    ReceivedFile,
    Started,
    Update,
)
from msgsvc_core.channels.commands import START_PAYLOAD
from msgsvc_email.bounces import read_report, report_type
from msgsvc_email.proof import Proof, normalized, own_id_in, proof_of
from msgsvc_email.settings import EmailSettings
from msgsvc_email.tokens import Tokens

#: Characters of a text that is taken; emails may be of any length.
MAX_TEXT = 16_000

_START = re.compile(r"/?start(?:\s+(\S+))?\s*", re.IGNORECASE)
_REPLY = re.compile(r"\s*(re|aw|sv|antw|ответ|отв)\s*(\[\d+\])?:", re.IGNORECASE)

#: Lines that begin the quotation of what is answered.
_QUOTED = re.compile(
    r"(on .{6,200} wrote:|am .{6,200} schrieb.*:|le .{6,200} a écrit\s*:"
    r"|.{6,200}\bпишет:|.{6,200}\bнаписал\(?а?\)?:"
    r"|-{2,}\s*(original message|исходное сообщение|пересылаемое сообщение|ursprüngliche nachricht)\s*-{2,}"
    r"|_{20,})\s*",
    re.IGNORECASE,
)

log = structlog.get_logger(__name__)


class InboundMail:
    """Reads the mails of one channel's mailbox."""

    def __init__(self, settings: EmailSettings, tokens: Tokens, channel: str) -> None:
        assert settings.imap is not None
        self._settings = settings
        self._mailbox = settings.mailbox
        self._authserv_id = settings.imap.authserv_id
        self._tokens = tokens
        self._channel = channel

    def read(self, raw: bytes, place: str) -> list[Update]:
        """The updates of a mail; `place` is where it is, for its files."""
        try:
            mail = message_from_bytes(raw, policy=policy.default)
            assert isinstance(mail, EmailMessage)
            return self._read(mail, raw, place)
        except Exception as error:  # noqa: BLE001 - the standard library's parser raises many
            self._skipped(f"it can't be read ({type(error).__name__})")
            return []

    def _read(self, mail: EmailMessage, raw: bytes, place: str) -> list[Update]:
        update_id = _update_id(mail, raw)
        if report_type(mail):
            return read_report(
                mail,
                update_id,
                tokens=self._tokens,
                mailbox=self._mailbox,
                channel=self._channel,
            )
        named = getaddresses([str(one) for one in mail.get_all("From", [])])
        senders = normalized([address for _, address in named])
        if len(named) != 1 or len(senders) != 1:
            return self._skipped("it is not from one address")
        if why := self._is_automatic(mail, senders[0]):
            return self._skipped(why)
        proof = proof_of(
            mail,
            senders[0],
            tokens=self._tokens,
            mailbox=self._mailbox,
            authserv_id=self._authserv_id,
        )
        if proof is None:
            return self._skipped("nothing proves its sender")
        return self._of_person(mail, senders[0], proof, update_id, files_of(mail, place))

    def _of_person(
        self,
        mail: EmailMessage,
        sender: str,
        proof: Proof,
        update_id: str,
        files: list[ReceivedFile],
    ) -> list[Update]:
        name = parseaddr(str(mail["From"]))[0] or sender.partition("@")[0]
        user = ChannelUser(sender, " ".join(name.split())[:64], sender)
        subject, text = " ".join(str(mail.get("Subject", "")).split()), text_of(mail)
        start = _START.fullmatch(subject) or (None if files else _START.fullmatch(text))
        if start is not None:
            # A start may sign in, for which knowing an address that went through many hands is too little.
            payload = start[1] or ""
            if proof != "server" or (payload and not START_PAYLOAD.fullmatch(payload)):
                return self._skipped("nothing proves the sender of a start")
            return [Started(update_id=update_id, chat_id=sender, user=user, payload=payload)]
        answered = own_id_in(mail, sender, self._tokens)
        if subject and answered is None and not _REPLY.match(subject):
            text = f"{subject}\n\n{text}".strip()
        if not text and not files:
            return self._skipped("it is empty")
        return [
            MessageReceived(
                update_id=update_id,
                chat_id=sender,
                user=user,
                text=text,
                files=tuple(files),
                message_ref=str(mail.get("Message-ID", "")).strip("<> ") or None,
                reply_to=answered,
            )
        ]

    def _is_automatic(self, mail: EmailMessage, sender: str) -> str:
        """Why a mail is not from a person; empty if it may be."""
        if str(mail.get("Auto-Submitted", "no")).partition(";")[0].strip().lower() != "no":
            return "a program sent it"
        if str(mail.get("Precedence", "")).strip().lower() in {"bulk", "list", "junk"}:
            return "it is bulk mail"
        if any(
            name in mail for name in ("List-Id", "List-Unsubscribe", "X-Autoreply", "X-Autorespond")
        ):
            return "it is of a list, or an automatic reply"
        if str(mail.get("Return-Path", "")).strip() == "<>":
            return "it is a report of a server"
        if sender in {self._settings.sender, self._mailbox}:
            return "it is from this channel"
        return ""

    def _skipped(self, why: str) -> list[Update]:
        log.warning("email_skipped", channel=self._channel, error=why)
        return []


def text_of(mail: EmailMessage) -> str:
    """What a person wrote: without what they quote, and without their signature."""
    part = mail.get_body(("plain", "html"))
    if part is None:
        return ""
    content = str(part.get_content())
    if part.get_content_type() == "text/html":
        content = _without_markup(content)
    lines = content.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_written(lines)).strip("\n ")[:MAX_TEXT]


def _written(lines: list[str]) -> list[str]:
    kept: list[str] = []
    for number, line in enumerate(lines):
        if line == "-- " or _begins_quotation(line, lines[number + 1 :]):
            break
        kept.append(line)
    # Answers below or between quotations stay, the quotations go.
    return [line for line in kept if not line.startswith(">")]


def _begins_quotation(line: str, later: list[str]) -> bool:
    # The line that introduces a quotation may be broken in two.
    pair = f"{line} {later[0]}" if later and not line.startswith(">") else line
    if not (_QUOTED.fullmatch(line.strip()) or _QUOTED.fullmatch(pair.strip())):
        return False
    quotes = [each.startswith(">") for each in later if each.strip()]
    # Where more is written below the quotation, it is an answer between the lines.
    return line.startswith(("-", "_")) or (any(quotes) and quotes[-1])


def _without_markup(text: str) -> str:
    text = re.sub(r"(?is)<(script|style|head|blockquote)\b.*?</\1\s*>", "", text)
    text = re.sub(r'(?is)<div[^>]*class="?gmail_quote.*', "", text)
    text = re.sub(r"(?i)<br\s*/?>|</(p|div|tr|li|h[1-6])\s*>", "\n", re.sub(r"\s+", " ", text))
    return html.unescape(re.sub(r"<[^>]*>", "", text)).replace("\xa0", " ")


def parts_of(mail: EmailMessage) -> list[EmailMessage]:
    """The parts that are files, in order."""
    body = [mail.get_body(("plain",)), mail.get_body(("html",))]
    return [
        part
        for part in mail.walk()
        if isinstance(part, EmailMessage)
        and not part.is_multipart()
        and not any(part is one for one in body)
        and (part.get_filename() or part.get_content_maintype() != "text")
    ]


def files_of(mail: EmailMessage, place: str) -> list[ReceivedFile]:
    found = []
    for number, part in enumerate(parts_of(mail)):
        content = part.get_payload(decode=True)
        size = len(content) if isinstance(content, bytes) else None
        kinds: dict[str, MediaType] = {"image": "image", "video": "video"}
        found.append(
            ReceivedFile(
                kinds.get(part.get_content_maintype(), "document"),
                f"{place}:{number}",
                part.get_filename(),
                part.get_content_type(),
                size,
            )
        )
    return found


def _update_id(mail: EmailMessage, raw: bytes) -> str:
    """The same for a mail that is found a second time, e.g. after the folder got new ids."""
    given = str(mail.get("Message-ID", "")).strip()
    named = f"{given}\n{mail.get('From', '')}".encode("utf-8", "replace") if given else raw
    return f"mail-{hashlib.sha256(named).hexdigest()[:40]}"
