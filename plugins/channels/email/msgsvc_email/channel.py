"""One sender of emails: the implementation of the channel contract."""

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import IO
from urllib.parse import quote

import structlog

from msgsvc_core.channels import (
    BotProfile,
    Capabilities,
    Channel,
    ChannelContext,
    ChannelHealth,
    ChannelIdentity,
    ChannelNotReady,
    DeliveryError,
    OutgoingMessage,
    Pace,
    Polled,
    Reason,
    Unreadable,
    UnreadableReason,
    Update,
)
from msgsvc_core.kernel.email import normalized
from msgsvc_core.kernel.errors import InvalidValue
from msgsvc_core.kernel.parser_process import ParserFailed, ParserProcess, ParserTimedOut
from msgsvc_email.dkim import Signer, read_key
from msgsvc_email.encoded_files import EncodedFile, EncodedFiles
from msgsvc_email.imap import Folder, ImapFailed, cursor_of, opened, uids_of
from msgsvc_email.layout import Footer
from msgsvc_email.mail import UnreadableMail, content_of_file, read_mail
from msgsvc_email.message import Addresses, composed, problem_of
from msgsvc_email.settings import EmailSettings
from msgsvc_email.smtp import Envelope, SmtpServers, Trust
from msgsvc_email.texts import EmailTexts
from msgsvc_email.tokens import Tokens
from msgsvc_email.updates import ArrivedMail, InboundMail

#: Seconds of a long poll; the contract allows 30.
WAIT_S = 25.0

#: Mails that are read in one poll.
AT_ONCE = 20

#: Bytes of a mail that is read at once, in some milliseconds; a larger one is read in another process.
READ_AT_ONCE = 32_768

#: Seconds to read a mail of the largest size.
READ_S = 10.0

#: Seconds to read a mail that somebody wants taken anyway: nobody else waits for it.
TAKE_S = 60.0

#: Days of mail that are read the first time, and when the folder has new ids.
LOOK_BACK_DAYS = 2

log = structlog.get_logger(__name__)


class EmailChannel(Channel):
    """Sends by SMTP; decisions are in docs/decisions/0143. The id of a user, and of their chat, is their
    address; that of a message is its `Message-ID`."""

    capabilities = Capabilities(
        rich=True,
        buttons="pages",
        identity="mailbox",
        addresses=True,
        start_links=False,
        edit=False,
        delete=False,
    )

    def __init__(
        self, context: ChannelContext, identity: ChannelIdentity, settings: EmailSettings
    ) -> None:
        super().__init__(identity)
        self.capabilities = replace(self.capabilities, repeatable=settings.drops_duplicates)
        if settings.imap is not None:
            self.receiving = "poll"
            self.capabilities = replace(
                self.capabilities,
                start_links=True,
                receives_files=True,
                tells_replies=True,
                subjects=True,
            )
        self.pace = Pace(per_bot_s=settings.per_second)
        self._context = context
        self._settings = settings
        self._trust = Trust(settings)
        self._servers = SmtpServers(settings, context.clock, self._trust)
        self._tokens = Tokens(context.secrets, identity.key, settings.domain)
        self._folder: Folder | None = None
        self._files: EncodedFiles | None = None
        self._parser = ParserProcess()
        self._signer = _signer(settings)

    # ---- out ------------------------------------------------------------------------------------

    async def send(self, chat_id: str, message: OutgoingMessage) -> str:
        address = self._address(chat_id)
        problem = self.problem(message)
        if problem is not None:
            raise DeliveryError(Reason.INVALID_MESSAGE, problem)
        message_id = self._tokens.message_id(message.key, address)
        addresses = Addresses(address, self._reply_to(address), message_id)
        if message.media is None:
            content = self._content(message, addresses, None)
        else:
            file = await self._encoded_files().get(message.media)
            content = await asyncio.to_thread(self._content, message, addresses, file)
        await self._servers.deliver(
            Envelope(
                self._return_path(address),
                address,
                content,
                envelope_id=message.key or message_id,
                utf8=not address.isascii(),
            )
        )
        return message_id

    def _content(
        self, message: OutgoingMessage, addresses: Addresses, file: EncodedFile | None
    ) -> bytes:
        now_ms = self._context.clock.now_ms()
        content = composed(
            message,
            addresses,
            self._settings,
            at=datetime.fromtimestamp(now_ms / 1000, UTC),
            footer=self._footer(message.unsubscribe_url),
            file=file,
        )
        return content if self._signer is None else self._signer.signed(content, now_ms // 1000)

    def _encoded_files(self) -> EncodedFiles:
        if self._files is None:
            self._files = EncodedFiles(self._context.media(), self._settings.max_attachment_bytes)
        return self._files

    async def edit(self, chat_id: str, message_ref: str, message: OutgoingMessage) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "an email that was sent can't be changed")

    async def delete(self, chat_id: str, message_ref: str) -> None:
        raise DeliveryError(Reason.INVALID_MESSAGE, "an email that was sent can't be deleted")

    async def answer_button(self, button_ref: str, text: str | None = None) -> None:
        """Buttons are links: nobody waits."""

    def deep_link(self, payload: str) -> str:
        if self._settings.imap is None:
            raise ChannelNotReady(f"the channel {self.name!r} receives no emails")
        return f"mailto:{quote(self._settings.mailbox, safe='@')}?subject=start%20{payload}"

    async def check(self) -> ChannelHealth:
        try:
            await self._servers.check()
            if self._settings.imap is not None:
                async with opened(self._settings.imap, self._trust):
                    pass
        except ImapFailed as error:
            # Sending works, so the channel is not stopped.
            return ChannelHealth(ok=False, detail=error.text, unreachable=error.reason.retryable)
        except DeliveryError as error:
            revoked = error.reason is Reason.BOT_BANNED
            return ChannelHealth(
                ok=False, detail=error.text, revoked=revoked, unreachable=error.reason.retryable
            )
        name = self._settings.sender_name or self._settings.sender
        return ChannelHealth(
            ok=True,
            detail=f"{name} <{self._settings.sender}>",
            profile=BotProfile(name),
            account=self._settings.sender,
        )

    def problem(self, message: OutgoingMessage) -> str | None:
        return super().problem(message) or problem_of(message)

    def parse_address(self, text: str) -> str:
        return normalized(text)

    # ---- in -------------------------------------------------------------------------------------

    async def poll_updates(self, cursor: str | None) -> Polled:
        assert self._settings.imap is not None
        inbound = InboundMail(self._settings, self._tokens, self.key)
        folder, self._folder = self._folder, None
        try:
            if folder is None:
                folder = await Folder.open(self._settings.imap, self._trust)
            uids = await self._waited_for(folder, cursor)
            updates: list[Update] = []
            for uid in uids:
                found = await folder.fetch(uid)
                if found is None:
                    log.info("email_skipped", channel=self.key, error="it is gone")
                    continue
                arrived = ArrivedMail(found.raw, f"{folder.validity}:{uid}", found.size)
                if found.is_whole:
                    updates += await self._read(inbound, arrived, READ_S)
                else:
                    why = f"it has {found.size} bytes"
                    updates += arrived.unreadable(UnreadableReason.TOO_LARGE, why)
        except BaseException:
            if folder is not None:
                folder.close()
            raise
        self._folder = folder
        known = uids_of(cursor)
        before = known[1] if known and known[0] == folder.validity else 0
        return Polled(tuple(updates), cursor_of(folder.validity, uids, before))

    async def fetch_file(self, file_ref: str, into: IO[bytes], max_bytes: int) -> None:
        found = re.fullmatch(r"(\d{1,10}):(\d{1,10}):(\d{1,4})", file_ref)
        gone = DeliveryError(Reason.INVALID_MESSAGE, "there is no such file any more")
        if found is None or self._settings.imap is None:
            raise gone
        validity, uid, number = map(int, found.groups())
        async with opened(self._settings.imap, self._trust) as folder:
            found_mail = await folder.fetch(uid) if folder.validity == validity else None
        raw = found_mail.raw if found_mail is not None and found_mail.is_whole else b""
        try:
            content = await self._parser.run(READ_S, content_of_file, raw, number)
        except (UnreadableMail, ParserFailed):
            content = None
        if content is None:
            raise gone
        if len(content) > max_bytes:
            raise DeliveryError(Reason.INVALID_MESSAGE, f"it is larger than {max_bytes} bytes")
        into.write(content)

    async def take_anyway(self, item: Unreadable) -> list[Update]:
        """Without the checks whether a program sent it and whether it is from its sender, and with more time.

        Not for a start, which may sign in.
        """
        if self._settings.imap is None:
            why = "the channel receives no emails any more"
            return ArrivedMail(item.raw, item.origin).unreadable(item.reason, why, kind=item.kind)
        inbound = InboundMail(self._settings, self._tokens, self.key)
        arrived = ArrivedMail(item.raw, item.origin, anyway=True)
        return await self._read(inbound, arrived, TAKE_S)

    async def _read(
        self, inbound: InboundMail, arrived: ArrivedMail, timeout_s: float
    ) -> list[Update]:
        try:
            if len(arrived.raw) <= READ_AT_ONCE:
                mail = read_mail(arrived.raw)
            else:
                mail = await self._parser.run(timeout_s, read_mail, arrived.raw)
            return inbound.updates(mail, arrived)
        except UnreadableMail as error:
            return arrived.unreadable(UnreadableReason.MALFORMED, str(error))
        except ParserTimedOut as error:
            return arrived.unreadable(UnreadableReason.TIMED_OUT, str(error))
        except ParserFailed as error:
            return arrived.unreadable(UnreadableReason.FAULT, str(error))
        except Exception as error:
            # A fault of ours with one mail must not stop the others.
            log.exception("email_failed", channel=self.key)
            why = f"the service failed on it ({type(error).__name__})"
            return arrived.unreadable(UnreadableReason.FAULT, why)

    async def _waited_for(self, folder: Folder, cursor: str | None) -> list[int]:
        """The ids of the next mails; none if there are none for some time."""
        uids = await self._new_in(folder, cursor)
        if not uids:
            await folder.wait(WAIT_S)
            uids = await self._new_in(folder, cursor)
        return uids[:AT_ONCE]

    async def _new_in(self, folder: Folder, cursor: str | None) -> list[int]:
        known = uids_of(cursor)
        if known is not None and known[0] == folder.validity:
            return await folder.search_after(known[1])
        # The first time, and after the folder was made anew: what was seen before is recognised by its id.
        day = datetime.fromtimestamp(self._context.clock.now_ms() / 1000, UTC)
        return await folder.search_since(day - timedelta(days=LOOK_BACK_DAYS))

    # ---- its life -------------------------------------------------------------------------------

    async def close(self) -> None:
        if self._folder is not None:
            self._folder.close()
            self._folder = None
        if self._files is not None:
            await self._files.close()
            self._files = None
        await self._parser.close()
        await self._servers.close()

    def _address(self, chat_id: str) -> str:
        try:
            return normalized(chat_id)
        except InvalidValue:
            raise DeliveryError(Reason.CHAT_NOT_FOUND, "chat_id: is no email address") from None

    def _footer(self, unsubscribe_url: str | None) -> Footer | None:
        """None for system messages, such as codes and sign-ins: nobody unsubscribes from those."""
        if unsubscribe_url is None or not self._settings.unsubscribe:
            return None
        _ = self._context.provided(EmailTexts).into(self._settings.lang)
        sender = self._settings.sender_name or self._settings.sender
        return Footer(
            text=_("You get this email because you subscribed to {sender}.", sender=sender),
            label=_("Unsubscribe"),
            url=unsubscribe_url,
        )

    def _reply_to(self, address: str) -> str | None:
        settings = self._settings
        if settings.reply_to is not None or settings.imap is None:
            return settings.reply_to
        if settings.imap.subaddresses:
            return self._tokens.subaddress(settings.mailbox, "r", address)
        return settings.mailbox if settings.mailbox != settings.sender else None

    def _return_path(self, address: str) -> str:
        """The address that bounces go to."""
        settings = self._settings
        if settings.imap is None:
            return settings.sender
        if settings.imap.subaddresses:
            return self._tokens.subaddress(settings.mailbox, "b", address)
        return settings.mailbox


def _signer(settings: EmailSettings) -> Signer | None:
    if settings.dkim_key is None or settings.dkim_selector is None:
        return None
    key = read_key(settings.dkim_key.get_secret_value())
    return Signer(key, settings.domain, settings.dkim_selector)
