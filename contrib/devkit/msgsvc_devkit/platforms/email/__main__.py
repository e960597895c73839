"""Runs the fake mail server for manual trials: `python -m msgsvc_devkit.platforms.email`."""

import argparse
import asyncio
from collections.abc import Mapping
from email.message import EmailMessage
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from msgsvc_devkit.keyboard import Command, converse, run_by_hand, section_of, show
from msgsvc_devkit.platforms.email.messages import Mail
from msgsvc_devkit.platforms.email.server import DOMAIN, FakeMail, Person

HELP = """\
You are Ann, with a mailbox: {address}. What you can do, and what arrives, is shown here:
  write TEXT      writes to the service         reply TEXT       replies to its last mail
  open LINK       writes what a mailto: link holds
  forge TEXT      writes as somebody who is not you, but says so
  close, reopen   the mailbox                   quit
Links of buttons open in a browser.
"""


def main() -> None:
    """Serves the fake until `quit`, end of input, or Ctrl-C."""
    parser = argparse.ArgumentParser(description="A fake mail server, on this machine.")
    parser.add_argument("--port", type=int, default=8096, help="for SMTP; IMAP has the next one")
    options = parser.parse_args()
    run_by_hand(_serve(options), parser, options.port)


async def _serve(options: argparse.Namespace) -> None:
    platform = FakeMail()
    platform.port = options.port
    platform.imap_port = options.port + 1 if options.port else 0
    async with platform:
        ann = platform.person("Ann")
        help_text = HELP.format(address=ann.address)
        show(f"{section_of(platform.inbound_settings)}\n{help_text}")
        await converse(_commands(platform, ann), _watch(ann), help_text)


def _commands(platform: FakeMail, ann: Person) -> Mapping[str, Command]:
    def open_link(link: str) -> None:
        if not link.startswith(f"mailto:news@{DOMAIN}?"):
            raise ValueError("that is no mailto: link to the service")
        fields = parse_qs(urlsplit(link).query)
        subject, [text] = fields.get("subject", [""])[0], fields.get("body", [""])
        platform.deliver(_mail(ann, text, subject))

    def reply(text: str) -> None:
        if not ann.messages:
            raise ValueError("there is no mail to reply to")
        last = ann.messages[-1]
        mail = _mail(ann, text, f"Re: {last.header('Subject')}")
        mail["In-Reply-To"] = f"<{last.message_id}>"
        platform.deliver(mail)

    def keep(*, closed: bool) -> None:
        ann.closed = closed

    return {
        "write": lambda text: platform.deliver(_mail(ann, text)),
        "forge": lambda text: platform.deliver(_mail(ann, text), verified=False),
        "open": open_link,
        "reply": reply,
        "close": lambda _: keep(closed=True),
        "reopen": lambda _: keep(closed=False),
    }


def _mail(person: Person, text: str, subject: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = f"{person.name} <{person.address}>"
    mail["To"] = f"news@{DOMAIN}"
    mail["Subject"] = subject
    mail["Message-ID"] = f"<{uuid4().hex}@{person.address.rpartition('@')[2]}>"
    mail.set_content(text)
    return mail


async def _watch(ann: Person) -> None:
    seen = 0
    while True:
        for mail in ann.messages[seen:]:
            show(_shown(mail))
        seen = len(ann.messages)
        # The server has no notice of it for people, who look at the screen a few times a second.
        await asyncio.sleep(0.2)


def _shown(mail: Mail) -> str:
    files = "".join(f"  <{each.mime_type} {each.filename}>\n" for each in mail.attachments)
    buttons = "".join(f"  [{label}] {url}\n" for row in mail.rows for label, url in row)
    return f"{mail.header('From')}> {mail.header('Subject')}\n{mail.text}\n{files}{buttons}"


if __name__ == "__main__":
    main()
