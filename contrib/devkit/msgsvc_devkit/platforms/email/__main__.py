"""Runs the fake mail server for manual trials: `python -m msgsvc_devkit.platforms.email`."""

import argparse
import asyncio
import sys
from email.message import EmailMessage
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from msgsvc_devkit.keyboard import run_by_hand, section_of, typed_lines
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
        _say(f"{section_of(platform.inbound_settings)}\n{HELP.format(address=ann.address)}")
        watching = asyncio.create_task(_watch(ann))
        try:
            async for line in typed_lines():
                command, _, rest = line.partition(" ")
                if command == "quit":
                    break
                _do(platform, ann, command, rest)
        finally:
            watching.cancel()


def _do(platform: FakeMail, ann: Person, command: str, rest: str) -> None:
    match command:
        case "write" | "forge":
            platform.deliver(_mail(ann, rest), verified=command == "write")
        case "open" if rest.startswith(f"mailto:news@{DOMAIN}?"):
            fields = parse_qs(urlsplit(rest).query)
            subject, [text] = fields.get("subject", [""])[0], fields.get("body", [""])
            platform.deliver(_mail(ann, text, subject))
        case "reply" if ann.messages:
            last = ann.messages[-1]
            mail = _mail(ann, rest, f"Re: {last.header('Subject')}")
            mail["In-Reply-To"] = f"<{last.message_id}>"
            platform.deliver(mail)
        case "close" | "reopen":
            ann.closed = command == "close"
        case _:
            _say(HELP.format(address=ann.address))


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
            _say(_shown(mail))
        seen = len(ann.messages)
        # The server has no notice of it for people, who look at the screen a few times a second.
        await asyncio.sleep(0.2)


def _shown(mail: Mail) -> str:
    files = "".join(f"  <{each.mime_type} {each.filename}>\n" for each in mail.attachments)
    buttons = "".join(f"  [{label}] {url}\n" for row in mail.rows for label, url in row)
    return f"{mail.header('From')}> {mail.header('Subject')}\n{mail.text}\n{files}{buttons}"


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
