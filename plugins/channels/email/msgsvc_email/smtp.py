"""Deliveries by SMTP: connections that are kept, and servers that take over from one another."""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

import aiosmtplib
import structlog
from aiosmtplib import SMTP

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_core.kernel.clock import Clock
from msgsvc_email.failures import SmtpRefusal, Step, refusal
from msgsvc_email.settings import EmailSettings, SmtpServer

#: Seconds for which an unused connection is kept; servers close theirs after 10 s to 5 min.
IDLE_S = 30.0

#: Seconds after which an unused connection is tried with NOOP before a message is sent over it.
TRUSTED_S = 2.0

#: Seconds for which a server that could not be reached is passed over.
DOWN_S = 30.0

#: Seconds to establish a connection.
CONNECT_S = 15.0

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
        self._room = asyncio.Semaphore(settings.connections)
        self._idle: deque[_Connection] = deque()
        self._down_until_ms = 0

    @property
    def is_down(self) -> bool:
        return self._clock.monotonic_ms() < self._down_until_ms

    async def deliver(self, envelope: Envelope) -> None:
        async with self._room:
            connection = await self._connection()
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
                await self._reset(connection, error)
                raise
            except BaseException:
                _drop(connection)
                raise
            await self._give_back(connection)

    async def check(self) -> None:
        connection = await self._open()
        try:
            await _asked(connection.smtp.noop(), "connect")
        except DeliveryError as error:
            raise _NoConnection(error) from None
        finally:
            _drop(connection)

    async def close(self) -> None:
        while self._idle:
            await _quit(self._idle.pop())

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
            await connection.smtp.data(envelope.content)
        except aiosmtplib.SMTPDataError as error:
            if 400 <= error.code < 600:
                raise refusal("content", error.code, error.message) from None
            raise _in_doubt(f"the server's reply has the code {error.code}") from None
        except aiosmtplib.SMTPResponseException:
            raise _in_doubt("the server's reply to the message can't be read") from None
        except (aiosmtplib.SMTPException, OSError, ValueError) as error:
            raise _in_doubt(f"the connection was lost ({type(error).__name__})") from None
        connection.sent += 1

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
