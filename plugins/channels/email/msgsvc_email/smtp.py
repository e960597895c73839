"""Deliveries by SMTP: connections that are kept, and servers that take over from one another."""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiosmtplib
import structlog
from aiosmtplib import SMTP

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.kernel.clock import Clock
from msgsvc_email.failures import SmtpRefusal, Step, refusal
from msgsvc_email.settings import EmailSettings, SmtpServer
from msgsvc_email.verdicts import Verdicts, refusing_all

#: Seconds for which an unused connection is kept. An account may have few at once (Exchange Online: three),
#: and other processes and channels may use the same one.
IDLE_S = 10.0

#: Seconds for which a pool has a place less after the server refused one more connection.
LOWERED_S = 300.0

#: Seconds after which an unused connection is tried with NOOP before a message is sent over it.
TRUSTED_S = 2.0

#: Seconds for which a server that could not be reached is passed over.
DOWN_S = 30.0

#: Seconds to establish a connection.
CONNECT_S = 15.0

#: Words by which a server refuses one more connection, while those that are open go on.
_TOO_MANY = re.compile(
    r"too many (?:concurrent |simultaneous )?(?:\w+ )?connections|connection(?:s| count)? limit"
    r"|(?:concurrent|simultaneous) connections|4\.3\.2 .{0,40}connections",
    re.IGNORECASE,
)

#: What a refusal of a recipient may say of the address alone.
_OF_ONE = frozenset({Reason.CHAT_NOT_FOUND, Reason.INVALID_MESSAGE, Reason.UNKNOWN})

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message as it is handed to a server; `utf8` if an address has other characters than ASCII."""

    sender: str
    recipient: str
    content: bytes
    #: Identifies the message in reports on its delivery (RFC 3461).
    envelope_id: str
    utf8: bool = False


@dataclass(slots=True)
class _Connection:
    smtp: SMTP
    sent: int = 0
    used_at_ms: int = 0
    is_new: bool = True


class SmtpServers:
    """Delivers messages by the first of the servers that can be reached."""

    def __init__(self, settings: EmailSettings, clock: Clock, tls: "Trust") -> None:
        self._clock = clock
        self._pools = [_Pool(one, settings, clock, tls) for one in settings.servers]

    async def deliver(self, envelope: Envelope) -> None:
        """Returns when a server has taken the message. Raises `DeliveryError`."""
        failures: list[DeliveryError] = []
        for pool in self._candidates():
            try:
                await pool.deliver(envelope)
            except _NoConnection as error:
                failures.append(error.failure)
            except SmtpRefusal as error:
                if not error.is_servers:
                    raise
                failures.append(error)
            else:
                return
            if len(self._pools) > 1:
                log.warning("smtp_server_failed", server=pool.name, error=str(failures[-1]))
        raise _worst(failures) from None

    async def check(self) -> None:
        """Signs in at the first server that can be reached. Raises `DeliveryError`."""
        failures: list[DeliveryError] = []
        for pool in self._pools:
            try:
                await pool.check()
            except _NoConnection as error:
                failures.append(error.failure)
            else:
                return
        raise _worst(failures) from None

    async def close(self) -> None:
        for pool in self._pools:
            await pool.close()

    def _candidates(self) -> Sequence["_Pool"]:
        up = [pool for pool in self._pools if not pool.is_down]
        return up or self._pools


class Trust:
    """The certificates that are trusted, read on first use: that takes some 10 ms."""

    def __init__(self, settings: EmailSettings) -> None:
        self._ca_file = settings.ca_file
        self._context: ssl.SSLContext | None = None

    def __call__(self) -> ssl.SSLContext:
        if self._context is None:
            self._context = ssl.create_default_context()
            if self._ca_file is not None:
                self._context.load_verify_locations(self._ca_file)
        return self._context


class _NoConnection(Exception):
    """Nothing was sent, and another server may be tried."""

    def __init__(self, failure: DeliveryError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class _Pool:
    """Connections to one server."""

    def __init__(
        self, server: SmtpServer, settings: EmailSettings, clock: Clock, tls: Trust
    ) -> None:
        self.name = f"{server.host}:{server.port}"
        self._server = server
        self._clock = clock
        self._tls = tls
        self._timeout_s = settings.timeout_s
        self._per_connection = settings.per_connection
        self._local_name = settings.domain
        self._own_address = settings.sender
        self._verdicts = Verdicts()
        self._room = asyncio.Semaphore(settings.connections)
        self._idle: deque[_Connection] = deque()
        #: Deliveries that have a connection, or open one.
        self._working = 0
        self._timer: asyncio.TimerHandle | None = None
        self._lowered: list[asyncio.TimerHandle] = []
        self._ending: set[asyncio.Task[None]] = set()
        self._down_until_ms = 0

    @property
    def is_down(self) -> bool:
        return self._clock.monotonic_ms() < self._down_until_ms

    async def deliver(self, envelope: Envelope) -> None:
        async with self._lent() as lent:
            connection = lent
            try:
                try:
                    await self._begin(connection, envelope)
                except _Stale:
                    # It was closed while it was unused, and nothing was sent over it.
                    _drop(connection)
                    connection = await self._open()
                    await self._begin(connection, envelope)
                await self._finish(connection, envelope)
            except SmtpRefusal as error:
                try:
                    weighed = await self._weighed(connection, envelope, error)
                except BaseException:
                    _drop(connection)
                    raise
                await self._reset(connection, error)
                raise weighed from None
            except BaseException:
                _drop(connection)
                raise
            self._verdicts.taken()
            await self._give_back(connection)

    async def check(self) -> None:
        if self._room.locked():
            # All connections that there may be are at work.
            return
        async with self._lent() as lent:
            connection = lent
            try:
                if not lent.is_new:
                    # In its place a new one, which signs in: the account may have been closed meanwhile.
                    await _quit(lent)
                    connection = await self._open()
                await _asked(connection.smtp.noop(), "connect")
                refused = await self._refusal_of_own(connection)
                if self._verdicts.refuses_all(takes_own=refused is None) and refused is not None:
                    raise refusing_all(refused.code, refused.text)
            except DeliveryError as error:
                _drop(connection)
                raise _NoConnection(error) from None
            except BaseException:
                _drop(connection)
                raise
            await self._give_back(connection)

    async def close(self) -> None:
        for timer in (*self._lowered, *([self._timer] if self._timer else [])):
            timer.cancel()
        self._timer = None
        while self._idle:
            await _quit(self._idle.pop())
        await asyncio.gather(*self._ending, return_exceptions=True)

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[_Connection]:
        """A connection, when there is room for one."""
        while True:
            await self._room.acquire()
            self._working += 1
            try:
                connection = await self._connection()
            except _TooManyConnections as error:
                self._working -= 1
                if not self._working:
                    self._room.release()
                    raise _NoConnection(error.failure) from None
                # One of those that work will do; the place of this one comes back later.
                later = asyncio.get_running_loop().call_later(LOWERED_S, self._room.release)
                self._lowered.append(later)
                log.info("smtp_connections_lowered", server=self.name, connections=self._working)
            except BaseException:
                self._working -= 1
                self._room.release()
                raise
            else:
                break
        try:
            yield connection
        finally:
            self._working -= 1
            self._room.release()

    async def _begin(self, connection: _Connection, envelope: Envelope) -> None:
        """Names sender and recipient. Raises `_Stale` if a kept connection turns out to be closed."""
        smtp = connection.smtp
        if envelope.utf8 and not smtp.supports_extension("smtputf8"):
            raise SmtpRefusal(
                Reason.INVALID_MESSAGE,
                "recipient",
                553,
                "the server does not deliver to addresses with other letters than ASCII (SMTPUTF8)",
            )
        encoding = "utf-8" if envelope.utf8 else "ascii"
        reports = smtp.supports_extension("dsn")
        try:
            await _asked(
                smtp.mail(
                    envelope.sender,
                    options=_sender_options(smtp, envelope, reports),
                    encoding=encoding,
                ),
                "sender",
            )
        except SmtpRefusal:
            raise
        except DeliveryError as error:
            if connection.is_new:
                raise _NoConnection(error) from None
            raise _Stale from None
        options = ["NOTIFY=FAILURE"] if reports else []
        if reports and not envelope.utf8:
            # Reports then name this address, also if it forwards to another one.
            options.append(f"ORCPT=rfc822;{_xtext(envelope.recipient)}")
        await _asked(smtp.rcpt(envelope.recipient, options=options, encoding=encoding), "recipient")

    async def _finish(self, connection: _Connection, envelope: Envelope) -> None:
        """Sends the content. From here on the server may have taken the message."""
        try:
            await _send_content(connection.smtp, envelope.content)
        except aiosmtplib.SMTPDataError as error:
            if 400 <= error.code < 600:
                raise refusal("content", error.code, error.message) from None
            raise _in_doubt(f"the server's reply has the code {error.code}") from None
        except aiosmtplib.SMTPResponseException:
            raise _in_doubt("the server's reply to the message can't be read") from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise _in_doubt(f"the connection was lost ({type(error).__name__})") from None
        connection.sent += 1

    async def _weighed(
        self, connection: _Connection, envelope: Envelope, error: SmtpRefusal
    ) -> SmtpRefusal:
        """What a refusal means: of a recipient for good, the server is asked for another one."""
        about_one = error.step == "recipient" and error.reason in _OF_ONE
        if not about_one or not connection.smtp.is_connected:
            return error
        takes_own = await self._refusal_of_own(connection) is None
        return self._verdicts.weighed(envelope.recipient, error, takes_own=takes_own)

    async def _refusal_of_own(self, connection: _Connection) -> SmtpRefusal | None:
        """The server's refusal of the channel's own address as a recipient; None if it takes it. Nothing is
        sent."""
        smtp = connection.smtp
        if not self._own_address.isascii():
            return None
        try:
            await _asked(smtp.rset(), "connect")
            await _asked(smtp.mail(self._own_address), "sender")
            await _asked(smtp.rcpt(self._own_address), "recipient")
            await _asked(smtp.rset(), "connect")
        except SmtpRefusal as error:
            return error
        return None

    async def _connection(self) -> _Connection:
        now_ms = self._clock.monotonic_ms()
        while self._idle:
            connection = self._idle.pop()
            unused_ms = now_ms - connection.used_at_ms
            if unused_ms > IDLE_S * 1000 or not connection.smtp.is_connected:
                _drop(connection)
                continue
            if unused_ms > TRUSTED_S * 1000:
                try:
                    await _asked(connection.smtp.noop(), "connect")
                except DeliveryError:
                    _drop(connection)
                    continue
                except BaseException:
                    _drop(connection)
                    raise
            return connection
        return await self._open()

    async def _open(self) -> _Connection:
        server = self._server
        password = server.password
        smtp = SMTP(
            hostname=server.host,
            port=server.port,
            username=server.username,
            password=password.get_secret_value() if password is not None else None,
            local_hostname=self._local_name,
            timeout=self._timeout_s,
            use_tls=server.tls == "implicit",
            start_tls=server.tls == "starttls",
            tls_context=self._tls() if server.tls != "none" else None,
        )
        try:
            async with asyncio.timeout(CONNECT_S):
                await _asked(smtp.connect(), "connect")
        except (DeliveryError, TimeoutError) as error:
            smtp.close()
            if isinstance(error, SmtpRefusal) and _TOO_MANY.search(error.text):
                raise _TooManyConnections(error) from None
            self._down_until_ms = self._clock.monotonic_ms() + round(DOWN_S * 1000)
            raise _NoConnection(
                error
                if isinstance(error, DeliveryError)
                else DeliveryError(Reason.PLATFORM_UNAVAILABLE, "no connection in time")
            ) from None
        except BaseException:
            smtp.close()
            raise
        self._down_until_ms = 0
        return _Connection(smtp)

    async def _give_back(self, connection: _Connection) -> None:
        connection.is_new = False
        connection.used_at_ms = self._clock.monotonic_ms()
        if connection.sent >= self._per_connection:
            await _quit(connection)
        else:
            self._idle.append(connection)
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(IDLE_S, self._end_idle)

    def _end_idle(self) -> None:
        """Ends the connections that have been unused for too long; the oldest come first."""
        now_ms, self._timer = self._clock.monotonic_ms(), None
        while self._idle and now_ms - self._idle[0].used_at_ms >= IDLE_S * 1000:
            task = asyncio.create_task(_quit(self._idle.popleft()))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        if self._idle:
            self._timer = asyncio.get_running_loop().call_later(IDLE_S / 2, self._end_idle)

    async def _reset(self, connection: _Connection, error: SmtpRefusal) -> None:
        """Keeps the connection after a refusal, unless the server closes it."""
        try:
            if error.code == 421 or not connection.smtp.is_connected:
                raise aiosmtplib.SMTPServerDisconnected("closing")
            await _asked(connection.smtp.rset(), "connect")
        except (DeliveryError, aiosmtplib.SMTPException):
            _drop(connection)
        except BaseException:
            _drop(connection)
            raise
        else:
            await self._give_back(connection)


class _Stale(Exception):
    """A kept connection was closed by the server."""


class _TooManyConnections(_NoConnection):
    """The server refuses one more connection."""


async def _asked(command: Awaitable[object], step: Step) -> None:
    """Awaits a command. Raises `SmtpRefusal` for a refusal, `DeliveryError` without a reply."""
    try:
        await command
    except aiosmtplib.SMTPAuthenticationError as error:
        raise refusal("connect", error.code, error.message) from None
    except (aiosmtplib.SMTPResponseException, aiosmtplib.SMTPRecipientRefused) as error:
        if not 400 <= error.code < 600:
            raise DeliveryError(
                Reason.PLATFORM_UNAVAILABLE, "the server's reply can't be read"
            ) from None
        raise refusal(step, error.code, error.message) from None
    except ssl.SSLError as error:
        raise DeliveryError(
            Reason.PLATFORM_UNAVAILABLE, f"no encrypted connection ({error.reason})"
        ) from None
    except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
        raise DeliveryError(
            Reason.PLATFORM_UNAVAILABLE, f"the server does not answer ({type(error).__name__})"
        ) from None
    except ValueError:
        # A control character in an address, or a setting that the library refuses.
        raise DeliveryError(
            Reason.INVALID_MESSAGE, "the address can't be sent to a server"
        ) from None


async def _send_content(smtp: SMTP, content: bytes) -> None:
    """As `smtp.data`, whose regular expressions for line breaks and dots take 0.17 s of the event loop for a
    file of 10 MB. The lines of `content` end with CRLF."""
    protocol = smtp.protocol
    lock = None if protocol is None else protocol._command_lock
    if protocol is None or lock is None:
        raise aiosmtplib.SMTPServerDisconnected("Connection lost")
    lines = content.replace(b"\r\n.", b"\r\n..")
    try:
        async with lock:
            for sent, expected in ((b"DATA\r\n", 354), (lines + b".\r\n", 250)):
                protocol._response_pending = True
                protocol.write(sent)
                reply = await protocol.read_response(timeout=smtp.timeout)
                if reply.code != expected:
                    raise aiosmtplib.SMTPDataError(reply.code, reply.message)
    except (aiosmtplib.SMTPServerDisconnected, aiosmtplib.SMTPTimeoutError):
        smtp.close()
        raise


def _sender_options(smtp: SMTP, envelope: Envelope, reports: bool) -> list[str]:
    options = ["SMTPUTF8"] if envelope.utf8 else []
    if envelope.utf8 and smtp.supports_extension("8bitmime"):
        options.append("BODY=8BITMIME")
    if smtp.supports_extension("size"):
        # So that a server which takes less says so before the content is sent.
        options.append(f"SIZE={len(envelope.content)}")
    if reports:
        options += ["RET=HDRS", f"ENVID={_xtext(envelope.envelope_id)}"]
    return options


def _xtext(text: str) -> str:
    """As RFC 3461, section 4, writes values."""
    return re.sub(r"[^!-*,-<>-~]", lambda found: f"+{ord(found[0]):02X}", text)


def _in_doubt(text: str) -> DeliveryError:
    return DeliveryError(Reason.PLATFORM_UNAVAILABLE, text, in_doubt=True)


def _worst(failures: Sequence[DeliveryError]) -> DeliveryError:
    """Of all servers' failures, one that allows another attempt, if there is one."""
    return next((one for one in failures if one.reason.retryable), failures[0])


def _drop(connection: _Connection) -> None:
    connection.smtp.close()


async def _quit(connection: _Connection) -> None:
    try:
        if connection.smtp.is_connected:
            await connection.smtp.quit(timeout=2)
    except (aiosmtplib.SMTPException, OSError, TimeoutError):
        pass
    finally:
        _drop(connection)
