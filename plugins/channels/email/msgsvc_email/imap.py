"""A mailbox read by IMAP (RFC 9051): what is needed to follow a folder, and no more."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_email.settings import ImapServer

#: Seconds to connect, and for the reply to a command.
CONNECT_S, REPLY_S = 15.0, 60.0

#: Bytes of a line of the server without its literals.
MAX_LINE = 1_000_000

#: Bytes of a message that is read; larger ones are skipped.
MAX_MESSAGE_BYTES = 40_000_000

#: Bytes that are read of a larger one: its fields, and what people see first.
BEGINNING_BYTES = 65_536

#: Month names of dates (RFC 9051, section 9), which are no locale's.
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_LITERAL = re.compile(rb"\{(\d+)\+?\}\r\n\Z")
_VALIDITY = re.compile(rb"\[UIDVALIDITY (\d+)\]", re.IGNORECASE)
_SIZE = re.compile(rb"RFC822\.SIZE (\d+)", re.IGNORECASE)


@dataclass(slots=True)
class _Response:
    """One response of the server; literals are cut out of `text`."""

    text: bytes
    literals: list[bytes] = field(default_factory=list)


class ImapFailed(DeliveryError):
    """The server refused, or did not answer; `is_account` if it does not take the account."""

    def __init__(self, text: str, *, is_account: bool = False) -> None:
        reason = Reason.BOT_BANNED if is_account else Reason.PLATFORM_UNAVAILABLE
        super().__init__(reason, f"IMAP: {text}")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A message as the server has it. `size` is more than the length of `raw` if that is its beginning."""

    raw: bytes
    size: int

    @property
    def is_whole(self) -> bool:
        return self.size <= len(self.raw)


class Folder:
    """A folder of a mailbox, opened for reading on a connection of its own."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._tags = (f"a{number}" for number in count(1))
        self._capabilities: frozenset[str] = frozenset()
        #: While it stays the same, ids of messages do (RFC 9051, section 2.3.1.1).
        self.validity = 0

    @classmethod
    async def open(cls, server: ImapServer, trust: Callable[[], ssl.SSLContext]) -> "Folder":
        """Signs in and opens the folder. Raises `ImapFailed`."""
        with _Failures():
            async with asyncio.timeout(CONNECT_S):
                implicit = server.tls == "implicit"
                reader, writer = await asyncio.open_connection(
                    server.host, server.port, limit=MAX_LINE, ssl=trust() if implicit else None
                )
        folder = cls(reader, writer)
        try:
            await folder._sign_in(server, trust)
        except BaseException:
            folder.close()
            raise
        return folder

    async def search_after(self, uid: int) -> list[int]:
        """The ids of messages after `uid`, in order."""
        # `n:*` names the last message also if its id is lower.
        return [one for one in await self._search(f"UID {uid + 1}:*") if one > uid]

    async def search_since(self, day: datetime) -> list[int]:
        """The ids of messages that came on that day or later."""
        return await self._search(f"SINCE {day.day}-{_MONTHS[day.month - 1]}-{day.year}")

    async def fetch(self, uid: int, max_bytes: int = MAX_MESSAGE_BYTES) -> "Fetched | None":
        """A message, or the beginning of one that has more than `max_bytes`; None if it is gone."""
        found = await self._command(f"UID FETCH {uid} (UID RFC822.SIZE)")
        sizes = [told for one in found if (told := _SIZE.search(one.text))]
        if not sizes:
            return None
        size = int(sizes[0][1])
        part = f"<0.{BEGINNING_BYTES}>" if size > max_bytes else ""
        found = await self._command(f"UID FETCH {uid} (UID BODY.PEEK[]{part})")
        wanted = re.compile(rb"\bUID %d\b" % uid, re.IGNORECASE)
        raw = next(
            (one.literals[0] for one in found if one.literals and wanted.search(one.text)), None
        )
        return None if raw is None else Fetched(raw, size if part else len(raw))

    async def wait(self, seconds: float) -> None:
        """Returns when something may have changed, or after that time."""
        if "IDLE" not in self._capabilities:
            await asyncio.sleep(min(seconds, 5.0))
            await self._command("NOOP")
            return
        tag = await self._send("IDLE")
        with _Failures():
            async with asyncio.timeout(REPLY_S):
                while not (one := await self._read()).text.startswith(b"+"):
                    _refuse_end(one, tag)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wait_for_news(tag)
        self._write(b"DONE\r\n")
        await self._collect(tag)

    def close(self) -> None:
        self._writer.transport.abort()

    async def _wait_for_news(self, tag: str) -> None:
        while True:
            # A cancelled read leaves what came in the buffer of the stream: lines are whole, or not read.
            with _Failures():
                one = await self._read()
            _refuse_end(one, tag)
            if re.match(rb"\* \d+ (EXISTS|EXPUNGE)", one.text, re.IGNORECASE):
                return

    async def _sign_in(self, server: ImapServer, trust: Callable[[], ssl.SSLContext]) -> None:
        with _Failures():
            async with asyncio.timeout(REPLY_S):
                greeting = await self._read()
        if not re.match(rb"\* (OK|PREAUTH)", greeting.text, re.IGNORECASE):
            raise ImapFailed("the server does not greet")
        if server.tls == "starttls":
            await self._command("STARTTLS")
            with _Failures():
                async with asyncio.timeout(CONNECT_S):
                    # Replies sent before the encryption are not taken for later ones (RFC 9051, 11.1).
                    await self._writer.start_tls(trust(), server_hostname=server.host)
        password = server.password.get_secret_value()
        try:
            await self._command(f"LOGIN {_quoted(server.username)} {_quoted(password)}")
        except _Refused as refused:
            # RFC 5530: the server has a problem of its own, and says nothing about the account.
            temporary = "[UNAVAILABLE]" in str(refused).upper()
            raise ImapFailed("the account is not let in", is_account=not temporary) from None
        found = await self._command("CAPABILITY")
        words = b" ".join(one.text for one in found if one.text.upper().startswith(b"* CAPABILITY"))
        self._capabilities = frozenset(words.decode("ascii", "replace").upper().split())
        try:
            found = await self._command(f"EXAMINE {_quoted(server.folder)}")
        except _Refused:
            raise ImapFailed(f"there is no folder {server.folder!r}") from None
        validity = next((v for one in found if (v := _VALIDITY.search(one.text))), None)
        if validity is None:
            raise ImapFailed("the folder has no UIDVALIDITY")
        self.validity = int(validity[1])

    async def _search(self, criteria: str) -> list[int]:
        found = await self._command(f"UID SEARCH {criteria}")
        lines = [one.text for one in found if one.text.upper().startswith(b"* SEARCH")]
        return sorted({int(number) for line in lines for number in re.findall(rb" (\d+)", line)})

    async def _command(self, text: str) -> list[_Response]:
        """The untagged responses to a command. Raises `ImapFailed`."""
        return await self._collect(await self._send(text))

    async def _send(self, text: str) -> str:
        tag = next(self._tags)
        self._write(f"{tag} {text}\r\n".encode())
        with _Failures():
            await self._writer.drain()
        return tag

    def _write(self, data: bytes) -> None:
        self._writer.write(data)

    async def _collect(self, tag: str) -> list[_Response]:
        found: list[_Response] = []
        with _Failures():
            async with asyncio.timeout(REPLY_S):
                while True:
                    one = await self._read()
                    if one.text.startswith(f"{tag} ".encode()):
                        break
                    if not one.text.startswith((b"* ", b"+ ")):
                        raise ImapFailed("the server's reply can't be read")
                    found.append(one)
        if not one.text[len(tag) + 1 :].upper().startswith(b"OK"):
            raise _Refused(one.text.decode("utf-8", "replace"))
        return found

    async def _read(self) -> _Response:
        """One response, with the content of its literals."""
        found = _Response(b"")
        while True:
            line = await self._reader.readuntil(b"\n")
            size = _LITERAL.search(line)
            if size is None:
                found.text += line.rstrip(b"\r\n")
                return found
            length = int(size[1])
            if length > MAX_MESSAGE_BYTES:
                raise ImapFailed("the server sends more than was asked for")
            found.text += line[: size.start()]
            found.literals.append(await self._reader.readexactly(length))


class _Refused(ImapFailed):
    """The server refused a command; the text is its own, and not for logs."""

    def __init__(self, reply: str) -> None:
        super().__init__("the server refused a command")
        self.reply = reply

    def __str__(self) -> str:
        return self.reply if hasattr(self, "reply") else super().__str__()


@asynccontextmanager
async def opened(server: ImapServer, trust: Callable[[], ssl.SSLContext]) -> AsyncIterator[Folder]:
    """A folder that is closed after the block."""
    folder = await Folder.open(server, trust)
    try:
        yield folder
    finally:
        folder.close()


class _Failures:
    """Turns errors of the connection into `ImapFailed`."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ssl.SSLError):
            raise ImapFailed(f"no encrypted connection ({error.reason})") from None
        if isinstance(error, OSError | EOFError | TimeoutError | asyncio.LimitOverrunError):
            raise ImapFailed(f"the server does not answer ({type(error).__name__})") from None


def _refuse_end(response: _Response, tag: str) -> None:
    if response.text.startswith(f"{tag} ".encode()) or response.text.upper().startswith(b"* BYE"):
        raise ImapFailed("the server ended the connection")


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise ImapFailed("account and folder are texts without control characters")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def uids_of(cursor: str | None) -> tuple[int, int] | None:
    """Validity and last id of a cursor."""
    found = re.fullmatch(r"(\d{1,10}):(\d{1,10})", cursor or "")
    return (int(found[1]), int(found[2])) if found else None


def cursor_of(validity: int, uids: Sequence[int], before: int) -> str:
    return f"{validity}:{max(uids, default=before)}"
