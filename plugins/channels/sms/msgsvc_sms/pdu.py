"""The protocol data units of SMPP 3.4 that the client uses, as bytes and back (sections 3 to 5)."""

import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum

#: Bytes of a header, and of the largest unit that is read: a message with a payload of 64 KB.
HEADER_BYTES = 16
MAX_BYTES = 70_000

#: Sequence numbers go from 1 to this one, and begin again (section 5.1.4).
LAST_SEQUENCE = 0x7FFFFFFF

#: Set in the command of an answer.
RESPONSE = 0x80000000

_HEADER = struct.Struct(">IIII")


class Command(IntEnum):
    """`command_id` (section 5.1.2.1)."""

    GENERIC_NACK = 0x80000000
    BIND_RECEIVER = 0x01
    BIND_TRANSMITTER = 0x02
    SUBMIT_SM = 0x04
    DELIVER_SM = 0x05
    UNBIND = 0x06
    BIND_TRANSCEIVER = 0x09
    ENQUIRE_LINK = 0x15


class Status(IntEnum):
    """`command_status` (section 5.1.3), those that the client tells apart."""

    OK = 0x00
    INVALID_LENGTH = 0x01
    INVALID_COMMAND_LENGTH = 0x02
    INVALID_COMMAND = 0x03
    WRONG_BIND_STATE = 0x04
    ALREADY_BOUND = 0x05
    SYSTEM_ERROR = 0x08
    INVALID_SOURCE = 0x0A
    INVALID_DESTINATION = 0x0B
    BIND_FAILED = 0x0D
    INVALID_PASSWORD = 0x0E
    INVALID_SYSTEM_ID = 0x0F
    QUEUE_FULL = 0x14
    INVALID_ESM_CLASS = 0x43
    SUBMIT_FAILED = 0x45
    INVALID_SOURCE_TON = 0x48
    INVALID_SOURCE_NPI = 0x49
    INVALID_DESTINATION_TON = 0x50
    INVALID_DESTINATION_NPI = 0x51
    THROTTLED = 0x58
    INVALID_EXPIRY = 0x62
    TEMPORARY_RECEIVER_ERROR = 0x64
    INVALID_TLV_LENGTH = 0xC2
    UNKNOWN_ERROR = 0xFF


class Tlv(IntEnum):
    """Tags of optional parameters (section 5.3.2)."""

    RECEIPTED_MESSAGE_ID = 0x001E
    SAR_REFERENCE = 0x020C
    SAR_TOTAL = 0x020E
    SAR_NUMBER = 0x020F
    SC_INTERFACE_VERSION = 0x0210
    NETWORK_ERROR_CODE = 0x0423
    MESSAGE_PAYLOAD = 0x0424
    MESSAGE_STATE = 0x0427


#: `esm_class`: the kind of a delivered message, 0 for what somebody wrote, and whether it has a user data
#: header (section 5.2.12).
ESM_KIND, ESM_HEADER = 0x3C, 0x40

#: `data_coding` of what is sent (section 5.2.19).
DEFAULT_CODING, UCS2_CODING = 0, 8

#: Alphabets of `data_coding` up to 0x0F, by Python's names; `default` is the centre's, `octets` may be any.
_ALPHABETS = {
    0x00: "default",
    0x01: "ascii",
    0x03: "latin-1",
    0x05: "shift_jis",
    0x06: "iso8859-5",
    0x07: "iso8859-8",
    0x08: "utf-16-be",
    0x0A: "iso2022_jp",
    0x0E: "euc_kr",
}


def alphabet_of(coding: int) -> str:
    """The alphabet of a text that was delivered. From 0x10 on centres pass on the network's own scheme (3GPP
    TS 23.038, section 4), in which a message has a class as well, or an indication of waiting messages."""
    if coding < 0x10:
        return _ALPHABETS.get(coding, "octets")
    group, kind = coding >> 4, (coding >> 2) & 3
    if group >= 0xF:
        return "octets" if kind & 1 else "default"
    if group == 0xE:
        return "utf-16-be"
    if group >= 0xC:
        return "default"
    # 0x20: compressed, which no telephone sends.
    if group >= 8 or coding & 0x20:
        return "octets"
    return {0: "default", 2: "utf-16-be"}.get(kind, "octets")


#: The version that a bind names.
INTERFACE_VERSION = 0x34


class Malformed(Exception):
    """Bytes that are no correct unit."""


@dataclass(frozen=True, slots=True)
class Pdu:
    """One unit: its header without the length, and its body."""

    command: int
    sequence: int
    status: int = 0
    body: bytes = b""

    @property
    def is_response(self) -> bool:
        return bool(self.command & RESPONSE)

    def __bytes__(self) -> bytes:
        size = HEADER_BYTES + len(self.body)
        return _HEADER.pack(size, self.command, self.status, self.sequence) + self.body


@dataclass(frozen=True, slots=True)
class Address:
    """A number or name with its type and numbering plan (sections 5.2.5 to 5.2.8)."""

    text: str
    ton: int = 1
    npi: int = 1


@dataclass(frozen=True, slots=True)
class ShortMessage:
    """The body of `submit_sm` and `deliver_sm` (sections 4.4.1 and 4.6.1)."""

    source: Address
    destination: Address
    content: bytes = field(repr=False)
    coding: int = DEFAULT_CODING
    esm_class: int = 0
    service_type: str = ""
    protocol: int = 0
    validity: str = ""
    registered_delivery: int = 0
    tlvs: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def text_bytes(self) -> bytes:
        """The content: that of the parameter `message_payload` where it is there."""
        return self.tlvs.get(Tlv.MESSAGE_PAYLOAD, self.content)

    @property
    def is_receipt(self) -> bool:
        """Whether it reports on a message: a receipt, an intermediate notification, or an acknowledgement by
        the telephone. Some centres say so by parameters alone, which no person can send."""
        by_parameters = Tlv.RECEIPTED_MESSAGE_ID in self.tlvs and Tlv.MESSAGE_STATE in self.tlvs
        return self.esm_class & ESM_KIND != 0 or by_parameters

    def __bytes__(self) -> bytes:
        fixed = [
            c_string(self.service_type, 6),
            _address(self.source),
            _address(self.destination),
            # Protocol, priority, and no time of delivery.
            bytes((self.esm_class, self.protocol, 0)),
            b"\0",
            c_string(self.validity, 17),
            # Replaces nothing; no predefined message.
            bytes((self.registered_delivery, 0, self.coding, 0, len(self.content))),
            self.content,
        ]
        return b"".join(fixed) + write_tlvs(self.tlvs)


class Reader:
    """Reads the fields of a body in their order. Raises `Malformed`."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._body) - self._at

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        if self.left < count:
            raise Malformed("the body ends within a field")
        self._at += count
        return self._body[self._at - count : self._at]

    def c_string(self, most: int) -> str:
        """A text that ends with a zero, of at most so many bytes with it."""
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise Malformed("a text has no end")
        if end - self._at >= most:
            raise Malformed(f"a text has more than {most - 1} bytes")
        found = self._body[self._at : end]
        self._at = end + 1
        return found.decode("latin-1")

    def address(self, most: int = 21) -> Address:
        ton, npi = self.byte(), self.byte()
        return Address(self.c_string(most), ton, npi)

    def tlvs(self) -> dict[int, bytes]:
        """Optional parameters, as far as they go: the text before one that is cut off can be read."""
        found = {}
        with suppress(Malformed):
            while self.left:
                tag, length = struct.unpack(">HH", self.take(4))
                found[tag] = self.take(length)
        return found


def read_header(data: bytes) -> tuple[int, int, int, int]:
    """Length of the whole unit, command, status and sequence number. Raises `Malformed`."""
    length, command, status, sequence = _HEADER.unpack(data)
    if not HEADER_BYTES <= length <= MAX_BYTES:
        raise Malformed(f"a unit of {length} bytes")
    return length, command, status, sequence


def read_short_message(body: bytes) -> ShortMessage:
    """Raises `Malformed`."""
    reader = Reader(body)
    service_type = reader.c_string(6)
    source, destination = reader.address(), reader.address()
    esm_class, protocol, _priority = reader.take(3)
    reader.c_string(17)
    validity = reader.c_string(17)
    registered, _replace, coding, _default, length = reader.take(5)
    content = reader.take(length)
    return ShortMessage(
        source,
        destination,
        content,
        coding=coding,
        esm_class=esm_class,
        service_type=service_type,
        protocol=protocol,
        validity=validity,
        registered_delivery=registered,
        tlvs=reader.tlvs(),
    )


def bind_body(system_id: str, password: str, system_type: str) -> bytes:
    """The body of a bind (section 4.1)."""
    named = c_string(system_id, 16) + c_string(password, 9) + c_string(system_type, 13)
    # The range of addresses is the account's.
    return named + bytes((INTERFACE_VERSION, 0, 0)) + b"\0"


def c_string(text: str, most: int) -> bytes:
    """A text with its zero. Raises `ValueError` if it does not fit into so many bytes with it."""
    data = text.encode("latin-1")
    if len(data) >= most or b"\0" in data:
        raise ValueError(f"a text of the protocol has at most {most - 1} bytes")
    return data + b"\0"


def write_tlvs(tlvs: Mapping[int, bytes]) -> bytes:
    return b"".join(struct.pack(">HH", tag, len(value)) + value for tag, value in tlvs.items())


def _address(address: Address) -> bytes:
    return bytes((address.ton, address.npi)) + c_string(address.text, 21)
