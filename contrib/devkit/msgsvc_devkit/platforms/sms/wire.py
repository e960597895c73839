"""The units of SMPP 3.4 as the centre reads and writes them, by the specification alone."""

import struct
from dataclasses import dataclass, field

#: Commands.
NACK = 0x80000000
BIND_RX, BIND_TX, SUBMIT, DELIVER = 0x01, 0x02, 0x04, 0x05
UNBIND, BIND_TRX, ENQUIRE = 0x06, 0x09, 0x15
RESPONSE = 0x80000000

#: Statuses.
OK, BAD_LENGTH, BAD_COMMAND_LENGTH, BAD_COMMAND, BAD_STATE = 0x00, 0x01, 0x02, 0x03, 0x04
ALREADY_BOUND, SYSTEM_ERROR, BAD_SOURCE, BAD_DESTINATION = 0x05, 0x08, 0x0A, 0x0B
BIND_FAILED, BAD_PASSWORD, BAD_SYSTEM_ID, QUEUE_FULL = 0x0D, 0x0E, 0x0F, 0x14
BAD_ESM_CLASS, SUBMIT_FAILED, BAD_DESTINATION_TON, THROTTLED = 0x43, 0x45, 0x50, 0x58
BAD_REGISTERED, BAD_TLV_LENGTH = 0x07, 0xC2

#: A carrier's own status (0x400 to 0x4FF are vendors'): the person wants no messages.
OPTED_OUT = 0x0401

#: The GSM 7-bit default alphabet in rows of 16, and its extension (3GPP TS 23.038).
GSM = (
    "@£$¥èéùìòÇ\nØø\rÅå"
    "Δ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ"
    " !\"#¤%&'()*+,-./"
    "0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNO"
    "PQRSTUVWXYZÄÖÑÜ§"
    "¿abcdefghijklmno"
    "pqrstuvwxyzäöñüà"
)
EXTENDED = {
    10: "\f", 20: "^", 40: "{", 41: "}", 47: "\\", 60: "[", 61: "~", 62: "]", 64: "|", 101: "€",
}  # fmt: skip


class Refusal(Exception):
    """The unit is answered with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(hex(status))
        self.status = status


@dataclass(frozen=True, slots=True)
class Submitted:
    """A `submit_sm`."""

    service_type: str
    source: tuple[int, int, str]
    destination: tuple[int, int, str]
    esm_class: int
    registered: int
    coding: int
    content: bytes
    tlvs: dict[int, bytes] = field(default_factory=dict)


class Fields:
    """Reads a body field by field; a body that ends too soon is refused."""

    def __init__(self, body: bytes) -> None:
        self._left = body

    def octets(self, count: int) -> bytes:
        if len(self._left) < count:
            raise Refusal(BAD_COMMAND_LENGTH)
        found, self._left = self._left[:count], self._left[count:]
        return found

    def octet(self) -> int:
        return self.octets(1)[0]

    def text(self, most: int) -> str:
        """A C-octet string of at most so many bytes with its zero."""
        found, zero, left = self._left.partition(b"\0")
        if not zero or len(found) >= most or not found.isascii():
            raise Refusal(BAD_COMMAND_LENGTH)
        self._left = left
        return found.decode()

    def tlvs(self) -> dict[int, bytes]:
        found = {}
        while self._left:
            tag, length = struct.unpack(">HH", self.octets(4))
            found[tag] = self.octets(length)
        return found


def unit(command: int, status: int, sequence: int, body: bytes = b"") -> bytes:
    return struct.pack(">IIII", 16 + len(body), command, status, sequence) + body


def read_submitted(body: bytes) -> Submitted:
    """Raises `Refusal`."""
    fields = Fields(body)
    service_type = fields.text(6)
    source = (fields.octet(), fields.octet(), fields.text(21))
    destination = (fields.octet(), fields.octet(), fields.text(21))
    esm_class, _protocol, _priority = fields.octet(), fields.octet(), fields.octet()
    for _ in ("schedule", "validity"):
        moment = fields.text(17)
        if moment and len(moment) != 16:
            raise Refusal(BAD_COMMAND_LENGTH)
    registered, _replace, coding, _canned = (fields.octet() for _ in range(4))
    length = fields.octet()
    if length > 254:
        raise Refusal(BAD_LENGTH)
    content = fields.octets(length)
    return Submitted(
        service_type, source, destination, esm_class, registered, coding, content, fields.tlvs()
    )


def text_of(submitted: Submitted) -> tuple[str, tuple[int, int, int] | None]:
    """The text of a short message, and which part of which message it is. Raises `Refusal`."""
    content, header, part = submitted.content, b"", None
    if submitted.esm_class & 0x40:
        if not content or len(content) <= content[0]:
            raise Refusal(BAD_ESM_CLASS)
        header, content = content[: content[0] + 1], content[content[0] + 1 :]
        part = _concatenation(header)
    if submitted.coding == 0:
        septets = len(content) + -(-8 * len(header) // 7)
        if septets > 160 or any(each > 127 for each in content):
            raise Refusal(BAD_LENGTH)
        return from_gsm(content), part
    if submitted.coding not in {3, 8}:
        raise Refusal(SUBMIT_FAILED)
    if len(header) + len(content) > 140:
        raise Refusal(BAD_LENGTH)
    if submitted.coding == 3:
        return content.decode("latin-1"), part
    try:
        return content.decode("utf-16-be"), part
    except UnicodeDecodeError:
        raise Refusal(SUBMIT_FAILED) from None


def from_gsm(data: bytes) -> str:
    """Raises `Refusal` for what is in no table."""
    found, codes = "", iter(data)
    for code in codes:
        if code != 27:
            found += GSM[code]
            continue
        extended = EXTENDED.get(next(codes, -1))
        if extended is None:
            raise Refusal(SUBMIT_FAILED)
        found += extended
    return found


def to_short(text: str) -> tuple[int, bytes]:
    """`data_coding` and content of what a person writes, as their telephone encodes it."""
    escaped = {char: code for code, char in EXTENDED.items()}
    found = b""
    for char in text:
        if char in escaped:
            found += bytes((27, escaped[char]))
        elif char in GSM and char != "\x1b":
            found += bytes((GSM.index(char),))
        else:
            return 8, text.encode("utf-16-be")
    return 0, found


def deliver_body(
    source: str,
    destination: str,
    content: bytes,
    *,
    coding: int = 0,
    esm_class: int = 0,
    tlvs: dict[int, bytes] | None = None,
) -> bytes:
    """The body of a `deliver_sm`."""
    numbers = b"".join(
        bytes((1, 1)) + number.lstrip("+").encode() + b"\0" for number in (source, destination)
    )
    optional = b"".join(
        struct.pack(">HH", tag, len(value)) + value for tag, value in (tlvs or {}).items()
    )
    fixed = bytes((esm_class, 0, 0)) + b"\0\0" + bytes((0, 0, coding, 0, len(content)))
    return b"\0" + numbers + fixed + content + optional


def _concatenation(header: bytes) -> tuple[int, int, int]:
    match header[1:3]:
        case b"\x00\x03" if len(header) == 6:
            reference, total, number = header[3], header[4], header[5]
        case b"\x08\x04" if len(header) == 7:
            reference, total, number = int.from_bytes(header[3:5]), header[5], header[6]
        case _:
            raise Refusal(BAD_ESM_CLASS)
    if not 1 <= number <= total or total < 2:
        raise Refusal(BAD_ESM_CLASS)
    return reference, total, number
