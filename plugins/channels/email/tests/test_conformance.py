"""The channel keeps the core's contract."""

from collections.abc import Sequence
from email.message import EmailMessage
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import pytest

from msgsvc_core.channels import Button, ChannelUser, MediaType, Reason, Update
from msgsvc_devkit import (
    ChannelContract,
    Fault,
    Messenger,
    PluginContract,
    ReceivingContract,
    Shown,
    cannot,
)
from msgsvc_devkit.conformance.failures import Failures
from msgsvc_devkit.conformance.life import Life
from msgsvc_devkit.platforms.email import DOMAIN, FakeMail, Mail, Person
from msgsvc_devkit.platforms.email.faults import Break, Step
from msgsvc_email import plugin

#: The refusals in servers' words, and what they are replies to.
REFUSALS: dict[Reason, tuple[Step, str]] = {
    Reason.CHAT_NOT_FOUND: ("RCPT", "550 5.1.1 no such user"),
    Reason.BOT_BANNED: ("MAIL", "553 5.7.1 sender address rejected: not owned by user"),
    Reason.INVALID_MESSAGE: ("DATA", "554 5.7.1 message content rejected"),
    Reason.RATE_LIMITED: ("RCPT", "450 4.2.0 greylisted, try again later"),
    Reason.PLATFORM_UNAVAILABLE: ("MAIL", "452 4.3.1 insufficient system storage"),
    Reason.UNKNOWN: ("DATA", "554 5.0.0 transaction failed"),
}


class EmailMessenger(Messenger):
    """Ann, with a mailbox on the fake server."""

    def __init__(self, platform: FakeMail) -> None:
        self._platform = platform
        self._ann = platform.person("Ann")
        self.settings = platform.settings
        self.user = ChannelUser(self._ann.address, "Ann")
        self.chat_id = self._ann.address

    async def follow(self, link: str) -> None:
        cannot("without IMAP the channel receives nothing")

    async def start(self, payload: str = "") -> None:
        """Nobody has to start: an address is enough."""

    async def told(self) -> Sequence[Update]:
        cannot("without IMAP the channel receives nothing")

    async def write(self, text: str) -> None:
        cannot("without IMAP the channel receives nothing")

    async def press(self, ref: str, data: str) -> None:
        cannot("buttons are links")

    async def block(self) -> None:
        cannot("people unsubscribe at the service; mail servers know nothing of it")

    async def unblock(self) -> None:
        cannot("people unsubscribe at the service; mail servers know nothing of it")

    async def leave(self) -> None:
        self._ann.closed = True

    async def shown(self) -> Sequence[Shown]:
        return [
            Shown(
                ref=mail.message_id,
                text=mail.text,
                buttons=tuple(tuple(Button(label, url) for label, url in row) for row in mail.rows),
                media_type=media_type_of(mail),
            )
            for mail in self._ann.messages
        ]

    async def notices(self) -> Sequence[str]:
        cannot("buttons are links")

    async def fail_next(self, reason: Reason, retry_after_s: float | None = None) -> None:
        if reason not in REFUSALS:
            cannot("no reply of a mail server says that a person blocked the sender")
        if retry_after_s is not None:
            cannot("mail servers don't say how long to wait")
        self._platform.faults.refuse_next(*REFUSALS[reason])

    async def break_next(self, fault: Fault) -> None:
        if fault == "5xx":
            await self.fail_next(Reason.PLATFORM_UNAVAILABLE)
        else:
            lost: dict[Fault, Break] = {"garbage": "garbage", "hang": "hang"}
            self._platform.faults.break_next(lost.get(fault, "lost"))

    async def kill(self) -> None:
        await self._platform.kill()

    async def restart(self) -> None:
        await self._platform.restart()

    async def revoke(self) -> None:
        self._platform.revoke()

    async def puzzle(self) -> None:
        cannot("without IMAP the channel receives nothing")


def media_type_of(mail: Mail) -> MediaType | None:
    types: dict[str, MediaType] = {"image": "image", "video": "video"}
    for file in mail.attachments:
        return types.get(file.mime_type.partition("/")[0], "document")
    return None


class TestEmail(ChannelContract):
    """What is sent."""

    plugin = plugin
    kind = "email"

    @pytest.fixture
    async def messenger(self, platform: FakeMail) -> Messenger:
        return EmailMessenger(platform)


class InboundMessenger(EmailMessenger):
    """Ann, who also writes to the mailbox of the service."""

    def __init__(self, platform: FakeMail) -> None:
        super().__init__(platform)
        self.settings = platform.inbound_settings

    async def follow(self, link: str) -> None:
        parts = urlsplit(link)
        if parts.scheme != "mailto" or parts.path != f"news@{DOMAIN}":
            raise ValueError(link)
        self._platform.deliver(mail_of(self._ann, "", parse_qs(parts.query)["subject"][0]))

    async def start(self, payload: str = "") -> None:
        self._platform.deliver(mail_of(self._ann, "", f"start {payload}"))

    async def write(self, text: str) -> None:
        self._platform.deliver(mail_of(self._ann, text))

    async def send_file(
        self, media_type: MediaType, content: bytes, filename: str, text: str = ""
    ) -> None:
        mail = mail_of(self._ann, text)
        kinds = {"image": "image/png", "video": "video/mp4", "document": "application/pdf"}
        maintype, subtype = kinds[media_type].split("/")
        mail.add_attachment(content, maintype=maintype, subtype=subtype, filename=filename)
        self._platform.deliver(mail)

    async def reply(self, ref: str, text: str) -> None:
        mail = mail_of(self._ann, text, "Re: first")
        mail["In-Reply-To"] = f"<{ref}>"
        self._platform.deliver(mail, verified=False)

    async def puzzle(self) -> None:
        self._platform.mailbox.add(b"\xff\x00 no mail at all")
        self._platform.mailbox.add(b"From: a@b.example, c@d.example\r\n\r\nx")


def mail_of(person: Person, text: str, subject: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = f"{person.name} <{person.address}>"
    mail["To"] = f"news@{DOMAIN}"
    mail["Subject"] = subject
    mail["Message-ID"] = f"<{uuid4().hex}@{person.address.rpartition('@')[2]}>"
    mail.set_content(text)
    return mail


class TestEmailInbound(ReceivingContract):
    """What is received."""

    plugin = plugin
    kind = "email"

    @pytest.fixture
    async def messenger(self, platform: FakeMail) -> Messenger:
        return InboundMessenger(platform)


class TestEmailInboundFailures(Failures, Life):
    """Calls that also concern the mailbox."""

    plugin = plugin
    kind = "email"

    @pytest.fixture
    async def messenger(self, platform: FakeMail) -> Messenger:
        return InboundMessenger(platform)


class TestEmailPlugin(PluginContract):
    """The rules for every plugin."""

    plugin = plugin
    name = "email"
