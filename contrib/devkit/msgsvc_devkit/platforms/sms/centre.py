"""A message centre with SMPP 3.4, and the people whose telephones it reaches."""

import asyncio
import re
import ssl
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgsvc_devkit.platforms.sms import wire
from msgsvc_devkit.platforms.sms.people import Person
from msgsvc_devkit.platforms.sms.wire import Fields, Refusal, Submitted

#: The service's account.
SYSTEM_ID, PASSWORD = "shop", "fake-pw1"

#: The number that messages are from, and that people write to.
SENDER = "+4915110000000"

#: Seconds until a delivery that nobody acknowledged is made again.
REDELIVERY_S = 5.0

#: Seconds after a delivery that was refused.
REFUSED_S = 0.1

#: How the next request is broken: it is done, and then the connection is closed (`lost`), the answer can't be
#: read (`garbage`), or there is none (`hang`).
Break = Literal["lost", "garbage", "hang"]

#: What a receipt holds: the text of appendix B, the optional parameters, or both.
ReceiptForm = Literal["both", "text", "tlv"]

_STATES = {"ENROUTE": 1, "DELIVRD": 2, "EXPIRED": 3, "DELETED": 4, "UNDELIV": 5, "REJECTD": 8}


@dataclass(frozen=True, slots=True)
class Delivery:
    """A `deliver_sm` that waits for a session."""

    body: bytes


class FakeSmsCentre:
    """A centre on a free port of 127.0.0.1, in `async with`.

    `revoked` makes it refuse the account; `statuses` refuse the next requests, but for those that are 0, and
    `breaks` break them, in order. `receipt_state` is what receipts say, `receipt_form` how, and
    `hexadecimal_ids` has answers name ids in hexadecimal, receipts in decimal. `most_waiting` is the window
    that it allows.
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.people: dict[str, Person] = {}
        self.revoked = False
        self.statuses: deque[int] = deque()
        self.breaks: deque[Break] = deque()
        #: Whether it reports on each message by itself, and what.
        self.tells_receipts = True
        self.receipt_state = "DELIVRD"
        self.receipt_form: ReceiptForm = "both"
        self.hexadecimal_ids = False
        self.most_waiting = 50
        #: Every short message that it took, with its id, and what it refused for breaking the protocol.
        self.submitted: list[tuple[str, Submitted]] = []
        self.violations: list[str] = []
        #: Commands of all sessions in order; sessions that were bound.
        self.commands: list[int] = []
        self.binds = 0
        #: Answers to the centre's `enquire_link`.
        self.alive = 0
        self.port = 0
        self._tls = tls
        self._ids = 1_000_000
        self._server: asyncio.Server | None = None
        self._sessions: set[_Session] = set()
        self._queue: deque[Delivery] = deque()
        self._changed = asyncio.Event()
        self._delivering: asyncio.Task[None] | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The section `[channels.<name>]`."""
        return {
            "plugin": "sms",
            "host": "127.0.0.1",
            "port": self.port,
            "tls": "implicit" if self._tls else "none",
            "system_id": SYSTEM_ID,
            "password": PASSWORD,
            "sender": SENDER,
            "allowed_prefixes": "+49, +7",
            "blocked_statuses": hex(wire.OPTED_OUT),
        }

    def person(self, name: str, number: str = "+4915120000001") -> Person:
        """Somebody with a telephone of that number."""
        return self.people.setdefault(number, Person(name, number))

    # ---- what people do -------------------------------------------------------------------------

    def write(self, person: Person, text: str, *, part_octets: int = 0, reference: int = 7) -> None:
        """Writes to the service; a long text in parts, if `part_octets` says how large they are."""
        coding, content = wire.to_short(text)
        if not part_octets or len(content) <= part_octets:
            self.deliver(wire.deliver_body(person.number, SENDER, content, coding=coding))
            return
        parts = [content[at : at + part_octets] for at in range(0, len(content), part_octets)]
        for number, part in enumerate(parts, 1):
            header = bytes((5, 0, 3, reference, len(parts), number))
            self.deliver(
                wire.deliver_body(
                    person.number, SENDER, header + part, coding=coding, esm_class=0x40
                )
            )

    def deliver(self, body: bytes) -> None:
        """Has a `deliver_sm` wait until a session takes it."""
        self._queue.append(Delivery(body))
        self._changed.set()

    def receipt(self, message_id: str, number: str, state: str) -> None:
        """Reports on a message, by the id that its answer named."""
        shown = str(int(message_id, 16)) if self.hexadecimal_ids else message_id
        dlvrd = "001" if state == "DELIVRD" else "000"
        error = "000" if state == "DELIVRD" else "034"
        text = (
            f"id:{shown} sub:001 dlvrd:{dlvrd} submit date:2611281200 done date:2611281201"
            f" stat:{state} err:{error} text:"
        )
        tlvs = {0x001E: shown.encode() + b"\0", 0x0427: bytes((_STATES[state],))}
        self.deliver(
            wire.deliver_body(
                number,
                SENDER,
                b"" if self.receipt_form == "tlv" else text.encode(),
                esm_class=0x04,
                tlvs={} if self.receipt_form == "text" else tlvs,
            )
        )

    # ---- its life -------------------------------------------------------------------------------

    async def __aenter__(self) -> "FakeSmsCentre":
        await self.restart()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.kill()

    async def kill(self) -> None:
        """Closes the port and all connections at once."""
        if self._delivering is not None:
            self._delivering.cancel()
            await asyncio.gather(self._delivering, return_exceptions=True)
            self._delivering = None
        if self._server is not None:
            self._server.close()
        self._drop_sessions()
        if self._server is not None:
            await self._server.wait_closed()
            self._server = None

    async def restart(self) -> None:
        """Listens again, with what it had."""
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self._tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        self._delivering = asyncio.create_task(self._deliver_all())

    def revoke(self) -> None:
        """The account is closed, with its sessions."""
        self.revoked = True
        self._drop_sessions()

    def drop_connections(self) -> None:
        """Every connection breaks."""
        self._drop_sessions()

    def enquire(self) -> None:
        """Asks every bound session whether it is there."""
        for session in self._sessions:
            if session.bound:
                session.request(wire.ENQUIRE, b"")

    def _drop_sessions(self) -> None:
        for session in list(self._sessions):
            session.abort()

    # ---- sessions -------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = _Session(self, reader, writer)
        self._sessions.add(session)
        try:
            await session.run()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._sessions.discard(session)
            session.abort()
            writer.close()

    async def _deliver_all(self) -> None:
        """Delivers one after the other; what was not acknowledged comes again, unless it is malformed."""
        while True:
            session = next((each for each in self._sessions if each.receives), None)
            if not self._queue or session is None:
                await self._changed.wait()
                self._changed.clear()
                continue
            answer = session.request(wire.DELIVER, self._queue[0].body)
            try:
                async with asyncio.timeout(REDELIVERY_S):
                    if await answer in {wire.OK, wire.BAD_LENGTH}:
                        self._queue.popleft()
                    else:
                        await asyncio.sleep(REFUSED_S)
            except (TimeoutError, ConnectionError):
                continue

    def changed(self) -> None:
        """A session was bound or ended."""
        self._changed.set()

    def take(self, submitted: Submitted) -> str:
        """Takes a short message; returns its id. Raises `Refusal`."""
        self._check(submitted)
        text, part = wire.text_of(submitted)
        number = f"+{submitted.destination[2]}"
        person = self.people.get(number)
        if person is not None and person.gone:
            raise Refusal(wire.BAD_DESTINATION)
        if person is not None and person.opted_out:
            raise Refusal(wire.OPTED_OUT)
        self._ids += 1
        message_id = f"{self._ids:X}" if self.hexadecimal_ids else str(self._ids)
        self.submitted.append((message_id, submitted))
        if person is None:
            person = self.person("", number)
        sender = submitted.source[2]
        if not person.is_off:
            person.receive(message_id, sender, text, part)
            if submitted.registered & 1 and self.tells_receipts:
                self.receipt(message_id, number, self.receipt_state)
        return message_id

    def _check(self, submitted: Submitted) -> None:
        ton, npi, number = submitted.destination
        if (ton, npi) != (1, 1):
            raise Refusal(wire.BAD_DESTINATION_TON)
        if not re.fullmatch(r"[1-9][0-9]{6,14}", number):
            raise Refusal(wire.BAD_DESTINATION)
        ton, _, name = submitted.source
        named = r"[A-Za-z0-9 ._&-]{1,11}" if ton == 5 else r"[0-9]{3,15}"
        if not re.fullmatch(named, name):
            raise Refusal(wire.BAD_SOURCE)
        if submitted.registered not in {0, 1, 2}:
            raise Refusal(wire.BAD_REGISTERED)
        if 0x0424 in submitted.tlvs and submitted.content:
            raise Refusal(wire.BAD_LENGTH)


class _Session:
    """A connection: nothing but a bind is done before the bind, and sequence numbers increase."""

    def __init__(
        self, centre: FakeSmsCentre, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._centre = centre
        self._reader = reader
        self._writer = writer
        self._last = 0
        self._own = 0
        self._asked: dict[int, tuple[int, asyncio.Future[int]]] = {}
        self._unanswered = 0
        self.bound: int | None = None
        self._ended = False

    @property
    def receives(self) -> bool:
        return not self._ended and self.bound in {wire.BIND_RX, wire.BIND_TRX}

    def request(self, command: int, body: bytes) -> asyncio.Future[int]:
        """Sends a request of the centre's; the future is the answer's status."""
        self._own += 1
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked[self._own] = command, answer
        self._writer.write(wire.unit(command, wire.OK, self._own, body))
        return answer

    def abort(self) -> None:
        if self._ended:
            return
        self._ended = True
        self.bound = None
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError())
                # Nobody may be waiting for it.
                answer.exception()
        self._writer.transport.abort()
        self._centre.changed()

    async def run(self) -> None:
        while not self._ended:
            head = await self._reader.readexactly(16)
            length, command, status, sequence = struct.unpack(">IIII", head)
            if not 16 <= length <= 70_000:
                self._answer(wire.NACK, wire.BAD_COMMAND_LENGTH, sequence)
                return
            body = await self._reader.readexactly(length - 16)
            if command & wire.RESPONSE:
                self._answered(command, status, sequence)
                continue
            self._centre.commands.append(command)
            # They should begin with 1 and increase by one; some clients leave some out.
            rises = self._last < sequence <= 0x7FFFFFFF or self._last == 0x7FFFFFFF
            if status != 0 or not rises:
                self._violation(f"sequence {sequence} after {self._last}, status {status}")
                self._answer(wire.NACK, wire.BAD_COMMAND, sequence)
                return
            self._last = sequence
            try:
                self._do(command, sequence, body)
            except Refusal as refusal:
                answer = command | wire.RESPONSE
                known = {wire.SUBMIT, wire.ENQUIRE, wire.UNBIND, *_BINDS}
                if command not in known or command == wire.ENQUIRE:
                    answer = wire.NACK
                self._answer(answer, refusal.status, sequence)

    def _do(self, command: int, sequence: int, body: bytes) -> None:
        if command in _BINDS:
            self._bind(command, sequence, body)
            return
        if self.bound is None:
            self._violation(f"command {command} without a bind")
            raise Refusal(wire.BAD_STATE)
        if command == wire.UNBIND:
            self._answer(command | wire.RESPONSE, wire.OK, sequence)
            self._writer.close()
            self.bound = None
        elif command == wire.ENQUIRE:
            self._finish(command, sequence, b"")
        elif command == wire.SUBMIT:
            if self.bound == wire.BIND_RX:
                raise Refusal(wire.BAD_STATE)
            self._submit(sequence, body)
        else:
            raise Refusal(wire.BAD_COMMAND)

    def _bind(self, command: int, sequence: int, body: bytes) -> None:
        if self.bound is not None:
            self._violation("a second bind")
            raise Refusal(wire.ALREADY_BOUND)
        fields = Fields(body)
        system_id, password = fields.text(16), fields.text(9)
        fields.text(13)
        version = fields.octet()
        fields.octets(2)
        fields.text(41)
        if version != 0x34:
            raise Refusal(wire.BIND_FAILED)
        if system_id != SYSTEM_ID:
            raise Refusal(wire.BAD_SYSTEM_ID)
        if password != PASSWORD or self._centre.revoked:
            raise Refusal(wire.BAD_PASSWORD)
        self.bound = command
        self._centre.binds += 1
        version_tlv = struct.pack(">HHB", 0x0210, 1, 0x34)
        self._answer(command | wire.RESPONSE, wire.OK, sequence, b"FAKE\0" + version_tlv)
        self._centre.changed()

    def _submit(self, sequence: int, body: bytes) -> None:
        if self._centre.statuses and (status := self._centre.statuses.popleft()):
            raise Refusal(status)
        if self._unanswered >= self._centre.most_waiting:
            raise Refusal(wire.THROTTLED)
        message_id = self._centre.take(wire.read_submitted(body))
        self._finish(wire.SUBMIT, sequence, message_id.encode() + b"\0")

    def _finish(self, command: int, sequence: int, body: bytes) -> None:
        """Answers what was done, unless that is to fail."""
        if command == wire.ENQUIRE and self._centre.statuses:
            raise Refusal(self._centre.statuses.popleft())
        how = self._centre.breaks.popleft() if self._centre.breaks else None
        match how:
            case "lost":
                self.abort()
            case "garbage":
                self._writer.write(struct.pack(">IIII", 7, 0xDEADBEEF, 0, sequence) + b"garbage")
            case "hang":
                self._unanswered += 1
            case None:
                self._answer(command | wire.RESPONSE, wire.OK, sequence, body)

    def _answered(self, command: int, status: int, sequence: int) -> None:
        asked = self._asked.pop(sequence, None)
        if asked is None or command not in {asked[0] | wire.RESPONSE, wire.NACK}:
            self._violation(f"answer {command:#x} to nothing")
            return
        if asked[0] == wire.ENQUIRE and status == wire.OK:
            self._centre.alive += 1
        if not asked[1].done():
            asked[1].set_result(status)

    def _answer(self, command: int, status: int, sequence: int, body: bytes = b"") -> None:
        self._writer.write(wire.unit(command, status, sequence, b"" if status else body))

    def _violation(self, what: str) -> None:
        self._centre.violations.append(what)


_BINDS = frozenset({wire.BIND_RX, wire.BIND_TX, wire.BIND_TRX})
