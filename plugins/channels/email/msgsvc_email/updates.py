"""Emails that come in as updates."""

import hashlib
import re
from dataclasses import dataclass

import structlog

from msgsvc_core.channels import (
    ChannelUser,
    ItemKind,
    MediaType,
    MessageReceived,
    ReceivedFile,
    Started,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.channels.commands import START_PAYLOAD, read_command
from msgsvc_core.channels.updates import NOBODY
from msgsvc_email.bounces import is_no_failure, read_report
from msgsvc_email.mail import Head, Mail, is_of_server
from msgsvc_email.proof import Proof, own_id_in, proof_of
from msgsvc_email.settings import EmailSettings
from msgsvc_email.structured import bare, sender_in
from msgsvc_email.tokens import Tokens

_START = re.compile(r"/?start(?:\s+(\S+))?\s*", re.IGNORECASE)

#: The marks of replies before a subject, as programs write them in their languages.
_REPLY = re.compile(
    r"(?:\s*(?:re|aw|sv|antw|res|rif|r|odp|vs|vá|ynt|ответ|отв|回复|回覆|答复|返信)"
    r"\s{0,3}(?:\[\d{1,4}\]|\(\d{1,4}\))?\s{0,3}[:：])+\s*",
    re.IGNORECASE,
)

#: Messages of a conversation that an update names, and characters of the id of one.
MAX_REFS, MAX_REF = 20, 250

_REF = re.compile(rf"<([!-;=?-~]{{1,{MAX_REF}}})>")

#: Characters that are kept of a mail's `Message-ID` (RFC 5322, section 2.1.1: a line has 998).
MAX_MESSAGE_ID = 998

#: Marks of mails that nobody wrote to us: of lists, and of programs that answer.
_AUTOMATIC = ("list-id", "x-autoreply", "x-autorespond", "x-autoresponse", "x-autoresponder")

#: Subjects of programs that answer for people and say so nowhere else.
_AWAY = re.compile(
    r"(?:(?:automatic reply|auto(?:matic)?[ -]?(?:repl(?:y|ies)|response)|out of (?:the )?office|on vacation"
    r"|automatische antwort|abwesenheitsnotiz|abwesend|réponse automatique|absence du bureau"
    r"|respuesta automática|risposta automatica|automatisch antwoord|resposta automática"
    r"|odpowiedź automatyczna|automatická odpověď|automatick[áa] odpove[ďd]|autosvar|automatisk svar"
    r"|automaattinen vastaus|automatikus válasz|otomatik yanıt|răspuns automat|αυτόματη απάντηση"
    r"|автоответ|автоматический ответ|автоматична відповідь|automatski odgovor)\b"
    r"|自動応答|自動返信|自动答复|自动回复|自動回覆|자동 회신)",
    re.IGNORECASE,
)

#: Values of `Precedence` that no person's mail has.
_BULK = frozenset({"bulk", "list", "junk", "auto_reply", "auto-reply"})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ArrivedMail:
    """A mail as it arrived. `place` is where it is, for its files; `size` is its bytes if `raw` is only its
    beginning; `anyway` that somebody has looked at it, and wants it taken."""

    raw: bytes
    place: str
    size: int = 0
    anyway: bool = False

    def unreadable(
        self,
        reason: UnreadableReason,
        why: str,
        *,
        kind: ItemKind = "email",
        user: ChannelUser = NOBODY,
    ) -> list[Update]:
        """In place of the updates of a mail that nothing is made of."""
        return [
            Unreadable(
                # Not its `Message-ID`: whoever repeats one must not keep another mail off the shelf.
                update_id=Unreadable.id_of(self.raw),
                raw=self.raw,
                reason=reason,
                detail=why,
                kind=kind,
                user=user,
                origin=self.place,
                size=self.size,
            )
        ]


class InboundMail:
    """What the mails of one channel's mailbox come to."""

    def __init__(self, settings: EmailSettings, tokens: Tokens, channel: str) -> None:
        assert settings.imap is not None
        self._settings = settings
        self._mailbox = settings.mailbox
        self._authserv_id = settings.imap.authserv_id
        self._tokens = tokens
        self._channel = channel

    def updates(self, mail: Mail, arrived: ArrivedMail) -> list[Update]:
        """The updates of a mail."""
        update_id = _update_id(mail.head, arrived.raw)
        if mail.report_type or is_of_server(mail.head):
            return self._of_server(mail, arrived, update_id)
        senders = mail.head.all("from")
        sender = sender_in(senders[0]) if len(senders) == 1 else None
        if sender is None:
            return arrived.unreadable(UnreadableReason.NO_SENDER, "it is not from one address")
        name, address = sender
        if address in {self._settings.sender, self._mailbox}:
            log.info("email_skipped", channel=self._channel, error="it is from this channel")
            return []
        user = ChannelUser(address, (name or address.partition("@")[0])[:64], address)
        why = self._is_automatic(mail.head)
        if why and not arrived.anyway:
            return arrived.unreadable(UnreadableReason.AUTOMATIC, why, user=user)
        proof = proof_of(
            mail.head,
            address,
            tokens=self._tokens,
            mailbox=self._mailbox,
            authserv_id=self._authserv_id,
        )
        if proof is None and arrived.anyway:
            proof = "operator"
        if proof is None:
            why = "nothing proves that it is from its sender"
            return arrived.unreadable(UnreadableReason.UNPROVEN_SENDER, why, user=user)
        return self._of_person(mail, user, proof, update_id, arrived)

    def _of_server(self, mail: Mail, arrived: ArrivedMail, update_id: str) -> list[Update]:
        updates = read_report(mail, update_id, tokens=self._tokens, mailbox=self._mailbox)
        if updates:
            return updates
        if is_no_failure(mail):
            log.info("report_skipped", channel=self._channel, kind=mail.report_type)
            return []
        why = "it reports on no message of this channel"
        return arrived.unreadable(UnreadableReason.UNMATCHED, why, kind="report")

    def _of_person(
        self,
        mail: Mail,
        user: ChannelUser,
        proof: Proof,
        update_id: str,
        arrived: ArrivedMail,
    ) -> list[Update]:
        sender, subject, text = user.user_id, mail.head.decoded("subject"), mail.text
        files = files_of(mail, arrived.place)
        start = _START.fullmatch(subject) or (None if files else _START.fullmatch(text))
        if start is not None:
            # A start may sign in, for which knowing an address that went through many hands is too little.
            payload = start[1] or ""
            if proof != "server" or (payload and not START_PAYLOAD.fullmatch(payload)):
                return _unproven_start(arrived, user)
            return [Started(update_id=update_id, chat_id=sender, user=user, payload=payload)]
        reply = _REPLY.match(subject)
        subject = subject[reply.end() :] if reply else subject
        refers_to = _refs_in(mail.head)
        begins = bool(subject) and not reply and not refers_to
        if not text and not files and begins:
            # People write short mails in the subject.
            text = subject
        if not text and not files:
            why = "it has neither a text nor files"
            return arrived.unreadable(UnreadableReason.EMPTY, why, user=user)
        command = read_command(text)
        if proof != "server" and command is not None and command.name == "start":
            return _unproven_start(arrived, user)
        return [
            MessageReceived(
                update_id=update_id,
                chat_id=sender,
                user=user,
                text=text,
                files=tuple(files),
                message_ref=mail.head.get("message-id").strip("<> ")[:MAX_MESSAGE_ID] or None,
                reply_to=own_id_in(mail.head, sender, self._tokens),
                subject=subject,
                refers_to=refers_to,
                begins=begins,
            )
        ]

    @staticmethod
    def _is_automatic(head: Head) -> str:
        """Why a mail is not from a person; empty if it may be."""
        if bare(head.get("auto-submitted")).partition(";")[0].strip().lower() not in {"", "no"}:
            return "a program sent it"
        if bare(head.get("precedence")).strip().lower() in _BULK:
            return "it is bulk mail"
        # `List-Unsubscribe` alone is in what many programs send in a person's name.
        automatic = any(name in head for name in _AUTOMATIC)
        if (
            automatic
            or "autoresponder" in head.get("x-post-messageclass").lower()
            or _AWAY.match(head.decoded("subject"))
        ):
            return "it is of a list, or an automatic reply"
        if head.get("return-path").strip() == "<>":
            return "it is a report of a server"
        return ""


def _unproven_start(arrived: ArrivedMail, user: ChannelUser) -> list[Update]:
    """Also of a mail that is to be taken anyway: a start may sign in."""
    why = "it starts the bot, and its server does not prove who sent it"
    return arrived.unreadable(UnreadableReason.UNPROVEN_SENDER, why, user=user)


def files_of(mail: Mail, place: str) -> list[ReceivedFile]:
    kinds: dict[str, MediaType] = {"image": "image", "video": "video"}
    return [
        ReceivedFile(
            kinds.get(one.content_type.partition("/")[0], "document"),
            f"{place}:{one.number}",
            one.name,
            one.content_type,
            one.size,
        )
        for one in mail.files
    ]


def _refs_in(head: Head) -> tuple[str, ...]:
    """The messages that a mail refers to, oldest first."""
    named = f"{head.get('references')} {head.get('in-reply-to')}"
    refs = dict.fromkeys(_REF.findall(named))
    return tuple(refs)[-MAX_REFS:]


def _update_id(head: Head, raw: bytes) -> str:
    """The same for a mail that is found a second time, e.g. after the folder got new ids."""
    given = head.get("message-id")
    named = f"{given}\n{head.get('from')}".encode() if given else raw
    return f"mail-{hashlib.sha256(named).hexdigest()[:40]}"
