"""One bound SMPP session: its window of requests, keep-alive, and what the centre delivers."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import structlog

from msgsvc_core.channels import DeliveryError, Reason
from msgsvc_sms.failures import Refused, unavailable
from msgsvc_sms.pdu import (
    HEADER_BYTES,
    LAST_SEQUENCE,
    RESPONSE,
    Command,
    Malformed,
    Pdu,
    Reader,
    ShortMessage,
    Status,
    bind_body,
    read_header,
)

#: Called for each delivered message, in their order, before it is acknowledged.
OnDelivered = Callable[[bytes], Awaitable[None]]

#: What a centre answers that keeps the connection, and has lost the session.
_FORGOTTEN = frozenset({Status.WRONG_BIND_STATE, Status.ALREADY_BOUND})

#: Seconds for an orderly end of a session.
UNBIND_S = 2.0

#: Delivered messages that wait to be taken; beyond them nothing more is read.
MOST_WAITING = 100

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Where the centre is, and who binds there."""

    host: str
    port: int
    system_id: str
    password: str
    system_type: str = ""
    tls: ssl.SSLContext | None = None


class SessionLost(DeliveryError):
    """The session ended; `in_doubt` if the request may have been read."""

    def __init__(self, why: str, *, in_doubt: bool) -> None:
        super().__init__(Reason.PLATFORM_UNAVAILABLE, why, in_doubt=in_doubt)


class Session:
    """Made by `open`. When it ends, for whatever reason, `is_open` is False and every request fails."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        window: int,
        timeout_s: float,
        on_delivered: OnDelivered,
        channel: str,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._window = asyncio.Semaphore(window)
        self._timeout_s = timeout_s
        self._on_delivered = on_delivered
        self._channel = channel
        self._sequence = 0
        self._waiting: dict[int, asyncio.Future[Pdu]] = {}
        self._delivered: asyncio.Queue[Pdu] = asyncio.Queue(MOST_WAITING)
        self._ended: str | None = None
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._take())]

    @classmethod
    async def open(
        cls,
        account: Account,
        *,
        window: int,
        timeout_s: float,
        on_delivered: OnDelivered,
        channel: str,
    ) -> "Session":
        """Connects and binds as a transceiver. Raises `DeliveryError`; nothing is in doubt."""
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(
                    account.host, account.port, ssl=account.tls
                )
        except (OSError, TimeoutError) as error:
            # Without the address, which may be the operator's secret; ssl.SSLError is an OSError.
            raise unavailable(f"the centre can't be reached: {type(error).__name__}") from None
        session = cls(
            reader,
            writer,
            window=window,
            timeout_s=timeout_s,
            on_delivered=on_delivered,
            channel=channel,
        )
        body = bind_body(account.system_id, account.password, account.system_type)
        try:
            await session.request(Command.BIND_TRANSCEIVER, body)
        except SessionLost as error:
            await session.close(in_order=False)
            raise unavailable(error.text) from None
        except BaseException:
            await session.close(in_order=False)
            raise
        return session

    @property
    def is_open(self) -> bool:
        return self._ended is None

    async def request(self, command: Command, body: bytes = b"") -> Pdu:
        """Sends a request when the window has room; returns the answer.

        Raises `Refused` for an answer with an error, and `SessionLost` without one.
        """
        async with self._window:
            self._check_open()
            sequence = self._next_sequence()
            answer: asyncio.Future[Pdu] = asyncio.get_running_loop().create_future()
            self._waiting[sequence] = answer
            try:
                self._write(Pdu(command, sequence, body=body))
                async with asyncio.timeout(self._timeout_s):
                    await self._writer.drain()
                    found = await answer
            except (OSError, TimeoutError) as error:
                # Whether it was read is not known, and nothing waits for an answer that comes later.
                self._end(f"no answer: {type(error).__name__}")
                raise SessionLost("the centre did not answer", in_doubt=True) from None
            finally:
                self._waiting.pop(sequence, None)
        if found.command != command | RESPONSE and found.command != Command.GENERIC_NACK:
            self._end("an answer to another request")
            raise SessionLost("the centre answered another request", in_doubt=True)
        if found.status in _FORGOTTEN and command is not Command.BIND_TRANSCEIVER:
            # It answers, but no longer knows who we are: the next use binds again.
            self._end("the centre forgot the session")
        if found.status != Status.OK:
            raise Refused(found.status, command)
        return found

    async def submit(self, message: ShortMessage) -> str:
        """The centre's id of the message that it took."""
        answer = await self.request(Command.SUBMIT_SM, bytes(message))
        try:
            message_id = Reader(answer.body).c_string(65)
        except Malformed:
            message_id = ""
        if not message_id:
            raise SessionLost("the centre did not say which message it is", in_doubt=True)
        return message_id

    async def enquire(self) -> None:
        """Asks whether the other side is there."""
        await self.request(Command.ENQUIRE_LINK)

    async def close(self, *, in_order: bool = True) -> None:
        """Ends the session if it is open, `in_order` with an unbind."""
        if in_order and self._ended is None:
            with suppress(DeliveryError, TimeoutError):
                async with asyncio.timeout(UNBIND_S):
                    await self.request(Command.UNBIND)
        self._end("closed")
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- the connection -------------------------------------------------------------------------

    async def _read(self) -> None:
        why = "the centre closed the connection"
        try:
            while True:
                head = await self._reader.readexactly(HEADER_BYTES)
                length, command, status, sequence = read_header(head)
                body = await self._reader.readexactly(length - HEADER_BYTES)
                await self._handle(Pdu(command, sequence, status, body))
        except Malformed as error:
            why = f"what the centre sent can't be read: {error}"
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._end(why)

    async def _handle(self, pdu: Pdu) -> None:
        if pdu.is_response:
            answer = self._waiting.get(pdu.sequence)
            if answer is not None and not answer.done():
                answer.set_result(pdu)
            return
        match pdu.command:
            case Command.DELIVER_SM:
                await self._delivered.put(pdu)
            case Command.ENQUIRE_LINK:
                self._answer(pdu)
            case Command.UNBIND:
                self._answer(pdu)
                self._end("the centre ended the session")
            case _:
                self._write(Pdu(Command.GENERIC_NACK, pdu.sequence, Status.INVALID_COMMAND))

    async def _take(self) -> None:
        """Delivered messages in their order: each is acknowledged when it is kept."""
        while True:
            pdu = await self._delivered.get()
            try:
                await self._on_delivered(pdu.body)
            except Exception:
                # The edge to the database: the centre delivers it again.
                log.exception("update_not_kept", channel=self._channel)
                self._answer(pdu, Status.TEMPORARY_RECEIVER_ERROR)
            else:
                self._answer(pdu)

    def _answer(self, pdu: Pdu, status: Status = Status.OK) -> None:
        body = b"\0" if pdu.command == Command.DELIVER_SM else b""
        self._write(Pdu(pdu.command | RESPONSE, pdu.sequence, status, body))

    def _write(self, pdu: Pdu) -> None:
        if self._ended is None:
            self._writer.write(bytes(pdu))

    def _check_open(self) -> None:
        if self._ended is not None:
            raise SessionLost(self._ended, in_doubt=False)

    def _next_sequence(self) -> int:
        self._sequence = self._sequence % LAST_SEQUENCE + 1
        return self._sequence

    def _end(self, why: str) -> None:
        if self._ended is not None:
            return
        self._ended = why
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(SessionLost(why, in_doubt=True))
        self._writer.close()
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
