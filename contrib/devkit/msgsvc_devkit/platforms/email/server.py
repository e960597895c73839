"""The server: SMTP for the service under test, and the people whose mailboxes it has."""

import asyncio
import base64
import binascii
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email import policy
from email.message import EmailMessage
from typing import Any

from msgsvc_devkit.platforms.email.faults import Faults
from msgsvc_devkit.platforms.email.imap import ImapSession, Mailbox
from msgsvc_devkit.platforms.email.messages import IncorrectMail, Mail, read_mail

#: Domain of all mailboxes.
DOMAIN = "shop.example"

#: The service's account.
USERNAME, PASSWORD = "sender@shop.example", "fake-mail-password"

#: The server's name in `Authentication-Results`.
AUTHSERV_ID = "mx.shop.example"

#: Bytes that a message may have (SIZE, RFC 1870).
MAX_BYTES = 20_000_000

#: Bytes of a command's line (RFC 5321, section 4.5.3.1.4, with room for parameters).
MAX_COMMAND = 2048

_MAIL = re.compile(r"FROM:<([^<>\s]*)>((?: [A-Z0-9-]+(?:=[!-<>-~]+)?)*)", re.IGNORECASE)
_RCPT = re.compile(r"TO:<([^<>\s]+@[^<>\s]+)>((?: [A-Z0-9-]+(?:=\S+)?)*)", re.IGNORECASE)


@dataclass(slots=True)
class Person:
    """A person with a mailbox. `closed` if it takes nothing any more."""

    name: str
    address: str
    messages: list[Mail] = field(default_factory=list)
    closed: bool = False


class FakeMail:
    """A mail server on a free port of 127.0.0.1, in `async with`.

    `revoked` makes it refuse the service's password; `faults` break or refuse the next deliveries;
    `extensions` are those that it offers.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.faults = Faults()
        self.people: dict[str, Person] = {}
        self.revoked = False
        #: Whether only the service's account may send; otherwise it is a server that receives from any other.
        self.needs_account = True
        self.extensions = [
            f"SIZE {MAX_BYTES}",
            "8BITMIME",
            "ENHANCEDSTATUSCODES",
            "SMTPUTF8",
            "DSN",
        ]
        #: Whether the service's own sender has a mailbox here; `noreply@` may have none.
        self.has_sender = True
        #: The reply to every recipient, from now on: the provider has a fault, or has blocked the service.
        self.refuses_everybody: str | None = None
        #: Connections that were opened, and the commands of all of them in order.
        self.connections = 0
        #: How many SMTP connections are open, and the most that were at once; beyond `max_connections` it
        #: refuses with 421.
        self.open_connections = self.most_connections = 0
        self.max_connections: int | None = None
        self.commands: list[str] = []
        #: The mailbox of the service, and what the server finds out about who sends to it.
        self.mailbox = Mailbox()
        self.username, self.password = USERNAME, PASSWORD
        self.port = 0
        self.imap_port = 0
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The section `[channels.<name>]`."""
        return {
            "plugin": "email",
            "host": "127.0.0.1",
            "port": self.port,
            "tls": "starttls" if self._tls else "none",
            "username": USERNAME,
            "password": PASSWORD,
            "sender": f"news@{DOMAIN}",
            "sender_name": "Shop",
        }

    @property
    def inbound_settings(self) -> Mapping[str, Any]:
        """The same section, with the mailbox."""
        imap = {
            "host": "127.0.0.1",
            "port": self.imap_port,
            "tls": "none",
            "username": self.username,
            "password": self.password,
            "authserv_id": AUTHSERV_ID,
        }
        return {**self.settings, "imap": imap}

    def deliver(self, mail: EmailMessage, *, verified: bool = True) -> None:
        """A mail arrives in the service's mailbox; `verified` if it came from its sender's domain."""
        domain = str(mail.get("From", "")).rpartition("@")[2].strip("> ")
        result = f"dmarc={'pass' if verified else 'fail'} header.from={domain}"
        field = f"Authentication-Results: {AUTHSERV_ID}; {result}\r\n"
        self.mailbox.add(field.encode() + mail.as_bytes(policy=policy.SMTP))

    def person(self, name: str, domain: str = "people.example") -> Person:
        """A person with a mailbox of their name."""
        address = f"{name.lower()}@{domain}"
        return self.people.setdefault(address, Person(name, address))

    def revoke(self) -> None:
        """The account is closed, with its connections."""
        self.revoked = True
        self._break_connections()

    async def __aenter__(self) -> "FakeMail":
        await self.restart()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def kill(self) -> None:
        """Closes the port and all connections at once."""
        for server in self._servers:
            server.close()
        self._break_connections()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()

    async def restart(self) -> None:
        """Listens again, with the mailboxes of before."""
        smtp = await asyncio.start_server(self._serve, "127.0.0.1", self.port, limit=MAX_BYTES * 2)
        imap = await asyncio.start_server(self._serve_imap, "127.0.0.1", self.imap_port)
        self._servers = [smtp, imap]
        self.port = smtp.sockets[0].getsockname()[1]
        self.imap_port = imap.sockets[0].getsockname()[1]

    def _break_connections(self) -> None:
        self.faults.released.set()
        self.faults.released = asyncio.Event()
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.max_connections is not None and self.open_connections >= self.max_connections:
            writer.write(b"421 4.7.0 Too many connections from your host\r\n")
            writer.close()
            return
        self._open.add(writer)
        self.connections += 1
        self.open_connections += 1
        self.most_connections = max(self.most_connections, self.open_connections)
        try:
            await _Session(self, reader, writer, self._tls).run()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            self.open_connections -= 1
            self._open.discard(writer)
            writer.close()

    async def _serve_imap(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            await ImapSession(self, reader, writer).run()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(writer)
            writer.close()


class _Closed(Exception):
    """The session is over."""


class _Session:
    """One SMTP connection, which keeps to the order of commands."""

    def __init__(
        self,
        server: FakeMail,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._tls = tls
        self._encrypted = False
        self._greeted = False
        self._authenticated = False
        self._sender: str | None = None
        self._utf8 = False
        self._person: Person | None = None
        self._refusal: str | None = None

    async def run(self) -> None:
        await self._reply("220 mx.shop.example ESMTP fake")
        try:
            while True:
                line = await self._reader.readuntil(b"\n")
                if not line.endswith(b"\r\n") or len(line) > MAX_COMMAND:
                    await self._reply("500 5.5.2 a command is a line that ends with CR LF")
                    continue
                text = line[:-2].decode()
                self._server.commands.append(text)
                verb, _, rest = text.partition(" ")
                await self._command(verb.upper(), rest)
        except _Closed:
            return

    async def _command(self, verb: str, rest: str) -> None:
        match verb:
            case "EHLO":
                await self._ehlo(rest)
            case "STARTTLS" if self._tls and not self._encrypted:
                await self._reply("220 2.0.0 ready")
                await self._writer.start_tls(self._tls)
                self._encrypted, self._greeted = True, False
            case "AUTH":
                await self._auth(rest)
            case "NOOP":
                await self._noop()
            case "RSET":
                self._forget()
                await self._reply("250 2.0.0 ok")
            case "QUIT":
                await self._reply("221 2.0.0 bye")
                raise _Closed
            case "MAIL":
                await self._mail(rest)
            case "RCPT":
                await self._rcpt(rest)
            case "DATA":
                await self._data()
            case _:
                await self._reply("502 5.5.1 no such command")

    async def _ehlo(self, name: str) -> None:
        if not name:
            await self._reply("501 5.5.4 EHLO names a host")
            return
        self._greeted = True
        self._forget()
        offers = list(self._server.extensions)
        if self._tls and not self._encrypted:
            offers.append("STARTTLS")
        else:
            offers.append("AUTH PLAIN LOGIN")
        lines = ["mx.shop.example", *offers]
        for line in lines[:-1]:
            self._writer.write(f"250-{line}\r\n".encode())
        await self._reply(f"250 {lines[-1]}")

    async def _auth(self, rest: str) -> None:
        kind, _, initial = rest.partition(" ")
        if self._tls and not self._encrypted:
            await self._reply("538 5.7.11 encryption is needed")
            return
        # Clients try one mechanism after the other.
        self._refusal = self._refusal or self._server.faults.take_refusal("AUTH")
        if self._refusal:
            await self._reply(self._refusal)
            return
        if kind.upper() == "PLAIN":
            if not initial:
                await self._reply("334 ")
                initial = (await self._reader.readuntil(b"\r\n")).decode().strip()
            given = _decoded(initial).split("\0")[1:]
        elif kind.upper() == "LOGIN":
            given = [_decoded(initial)] if initial else [await self._asked("VXNlcm5hbWU6")]
            given.append(await self._asked("UGFzc3dvcmQ6"))
        else:
            await self._reply("504 5.5.4 no such mechanism")
            return
        if self._server.revoked or given != [USERNAME, PASSWORD]:
            await self._reply("535 5.7.8 authentication failed")
            return
        self._authenticated = True
        await self._reply("235 2.7.0 welcome")

    async def _asked(self, prompt: str) -> str:
        await self._reply(f"334 {prompt}")
        return _decoded((await self._reader.readuntil(b"\r\n")).decode().strip())

    async def _noop(self) -> None:
        if refusal := self._server.faults.take_refusal("MAIL"):
            await self._reply(refusal)
        else:
            await self._done("250 2.0.0 ok")

    async def _mail(self, rest: str) -> None:
        found = _MAIL.fullmatch(rest)
        if not self._greeted or self._sender is not None:
            await self._reply("503 5.5.1 wrong order")
        elif self._server.needs_account and not self._authenticated:
            await self._reply("530 5.7.0 authentication required")
        elif found is None:
            await self._reply("501 5.5.4 no such sender")
        elif unknown := self._unknown(found[2]):
            await self._reply(f"555 5.5.4 {unknown} was not offered")
        elif refusal := self._server.faults.take_refusal("MAIL"):
            await self._reply(refusal)
        elif found[1] and not found[1].endswith(f"@{DOMAIN}"):
            await self._reply("553 5.7.1 the account may not send as this sender")
        else:
            self._sender, self._utf8 = found[1], "SMTPUTF8" in found[2].upper().split()
            size = re.search(r"SIZE=(\d+)", found[2])
            if size and int(size[1]) > MAX_BYTES:
                self._forget()
                await self._reply("552 5.3.4 too large")
            else:
                await self._reply("250 2.1.0 ok")

    def _unknown(self, options: str) -> str | None:
        """A parameter of an extension that was not offered."""
        needs = {
            "SIZE": "SIZE",
            "BODY": "8BITMIME",
            "SMTPUTF8": "SMTPUTF8",
            "RET": "DSN",
            "ENVID": "DSN",
        }
        needs |= {"NOTIFY": "DSN", "ORCPT": "DSN"}
        offered = {one.split()[0] for one in self._server.extensions}
        names = [one.partition("=")[0].upper() for one in options.split()]
        return next((name for name in names if needs.get(name, name) not in offered), None)

    async def _rcpt(self, rest: str) -> None:
        found = _RCPT.fullmatch(rest)
        person = self._server.people.get(found[1].lower()) if found else None
        if self._sender is None or self._person is not None:
            await self._reply("503 5.5.1 wrong order")
        elif found is None or (not found[1].isascii() and not self._utf8):
            await self._reply("501 5.1.3 no such recipient")
        elif unknown := self._unknown(found[2]):
            await self._reply(f"555 5.5.4 {unknown} was not offered")
        elif refusal := self._server.faults.take_refusal("RCPT"):
            await self._reply(refusal)
        elif self._server.refuses_everybody:
            await self._reply(self._server.refuses_everybody)
        elif self._server.has_sender and found[1] == self._sender:
            # Of whom only a question is asked: nobody sends to it.
            await self._reply("250 2.1.5 ok")
        elif person is None or person.closed:
            await self._reply(f"550 5.1.1 <{found[1]}>: no such mailbox")
        else:
            self._person = person
            await self._reply("250 2.1.5 ok")

    async def _data(self) -> None:
        if self._sender is None or self._person is None:
            await self._reply("503 5.5.1 wrong order")
            return
        await self._reply("354 go on")
        content = await self._reader.readuntil(b"\r\n.\r\n")
        raw = re.sub(rb"(?m)^\.\.", b".", content[:-3])
        sender, person, utf8 = self._sender, self._person, self._utf8
        self._forget()
        if refusal := self._server.faults.take_refusal("DATA"):
            await self._reply(refusal)
            return
        try:
            mail = read_mail(sender, person.address, raw, utf8=utf8)
        except IncorrectMail as error:
            await self._reply(f"554 5.6.0 {error}")
            return
        person.messages.append(mail)
        await self._done("250 2.0.0 queued")

    async def _done(self, reply: str) -> None:
        """Replies to a call that had its effect, unless that reply is to be lost."""
        match self._server.faults.take_break():
            case "lost":
                raise _Closed
            case "garbage":
                await self._reply("<html>200 OK</html>")
            case "hang":
                await self._server.faults.released.wait()
            case _:
                await self._reply(reply)

    async def _reply(self, text: str) -> None:
        self._writer.write(f"{text}\r\n".encode())
        await self._writer.drain()

    def _forget(self) -> None:
        self._sender, self._person, self._utf8 = None, None, False


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
