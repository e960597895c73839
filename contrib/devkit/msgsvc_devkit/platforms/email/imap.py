"""The mailbox of the service, read by IMAP."""

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msgsvc_devkit.platforms.email.server import FakeMail

_LOGIN = re.compile(r'LOGIN "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)"')


@dataclass(slots=True)
class Mailbox:
    """Mails by their id, in the order in which they came."""

    validity: int = 1
    mails: dict[int, bytes] = field(default_factory=dict)
    #: Set and replaced when a mail comes.
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _next: int = 1

    def add(self, raw: bytes) -> int:
        uid, self._next = self._next, self._next + 1
        self.mails[uid] = raw
        self.news.set()
        self.news = asyncio.Event()
        return uid

    def rebuild(self) -> None:
        """As after a restored backup: other ids, and a validity that says so."""
        self.validity += 1
        self._next += 100
        self.mails = {uid + 100: raw for uid, raw in self.mails.items()}


class ImapSession:
    """One connection, which keeps to the order of commands."""

    def __init__(
        self, server: "FakeMail", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._state = "new"

    async def run(self) -> None:
        await self._say("* OK fake IMAP")
        while True:
            line = (await self._reader.readuntil(b"\r\n")).decode().removesuffix("\r\n")
            tag, _, command = line.partition(" ")
            if not await self._answer(tag, command):
                return

    async def _answer(self, tag: str, command: str) -> bool:
        """False if the connection is to be closed."""
        verb = " ".join(command.upper().split(" ")[: 2 if command.upper().startswith("UID") else 1])
        if verb in {"UID SEARCH", "UID FETCH", "EXAMINE"}:
            if self._server.faults.take_refusal("MAIL"):
                await self._say(f"{tag} NO [UNAVAILABLE] try later")
                return True
            if await self._breaks():
                return False
        await self._done(verb, tag, command)
        return True

    async def _breaks(self) -> bool:
        how = self._server.faults.take_break()
        if how == "garbage":
            await self._say("<html>200 OK</html>")
        if how == "hang":
            await self._server.faults.released.wait()
        return how is not None

    async def _done(self, verb: str, tag: str, command: str) -> None:
        match verb:
            case "LOGIN":
                await self._login(tag, command)
            case "CAPABILITY":
                await self._say("* CAPABILITY IMAP4rev1 IDLE")
                await self._say(f"{tag} OK done")
            case "EXAMINE" if self._state == "in":
                self._state = "open"
                box = self._server.mailbox
                await self._say(f"* {len(box.mails)} EXISTS")
                await self._say(f"* OK [UIDVALIDITY {box.validity}] valid")
                await self._say(f"{tag} OK [READ-ONLY] done")
            case "UID SEARCH" if self._state == "open":
                await self._search(tag, command)
            case "UID FETCH" if self._state == "open":
                await self._fetch(tag, command)
            case "IDLE" if self._state == "open":
                await self._idle(tag)
            case "NOOP":
                await self._say(f"{tag} OK done")
            case _:
                await self._say(f"{tag} BAD not now")

    async def _login(self, tag: str, command: str) -> None:
        found = _LOGIN.fullmatch(command)
        account = (self._server.username, self._server.password)
        if found is None or self._server.revoked or found.groups() != account:
            await self._say(f"{tag} NO [AUTHENTICATIONFAILED] wrong")
            return
        self._state = "in"
        await self._say(f"{tag} OK done")

    async def _search(self, tag: str, command: str) -> None:
        uids = sorted(self._server.mailbox.mails)
        if found := re.fullmatch(r"UID SEARCH UID (\d+):\*", command):
            # The last one is always in the range (RFC 9051, section 9, seq-range).
            uids = [uid for uid in uids if uid >= int(found[1])] or uids[-1:]
        elif not re.fullmatch(r"UID SEARCH SINCE \d{1,2}-[A-Z][a-z]{2}-\d{4}", command):
            await self._say(f"{tag} BAD no such search")
            return
        await self._say("* SEARCH" + "".join(f" {uid}" for uid in uids))
        await self._say(f"{tag} OK done")

    async def _fetch(self, tag: str, command: str) -> None:
        found = re.fullmatch(
            r"UID FETCH (\d+) \(UID (RFC822\.SIZE|BODY\.PEEK\[\](?:<0\.(\d+)>)?)\)", command
        )
        if found is None:
            await self._say(f"{tag} BAD no such item")
            return
        raw = self._server.mailbox.mails.get(int(found[1]))
        if raw is not None and found[2] == "RFC822.SIZE":
            await self._say(f"* 1 FETCH (UID {found[1]} RFC822.SIZE {len(raw)})")
        elif raw is not None:
            raw = raw[: int(found[3])] if found[3] else raw
            self._writer.write(f"* 1 FETCH (UID {found[1]} BODY[] {{{len(raw)}}}\r\n".encode())
            self._writer.write(raw)
            await self._say(")")
        await self._say(f"{tag} OK done")

    async def _idle(self, tag: str) -> None:
        await self._say("+ idling")
        done = asyncio.ensure_future(self._reader.readuntil(b"\r\n"))
        try:
            while not done.done():
                news = asyncio.ensure_future(self._server.mailbox.news.wait())
                await asyncio.wait({done, news}, return_when=asyncio.FIRST_COMPLETED)
                if news.done():
                    await self._say(f"* {len(self._server.mailbox.mails)} EXISTS")
                news.cancel()
            ended = (await done) == b"DONE\r\n"
        finally:
            done.cancel()
        await self._say(f"{tag} OK done" if ended else f"{tag} BAD DONE ends it")

    async def _say(self, text: str) -> None:
        self._writer.write(f"{text}\r\n".encode())
        await self._writer.drain()
