"""How a text becomes short messages: alphabets, and parts of a long text (3GPP TS 23.038 and 23.040)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

#: The GSM 7-bit default alphabet: the position of a character is its code (TS 23.038, section 6.2.1).
#: Position 27 is the escape to the extension table.
ALPHABET = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\x1bÆæßÉ"
    " !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§"
    "¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
ESCAPE = 0x1B

#: The extension table (TS 23.038, section 6.2.1.1): each takes two codes, of which the first is the escape.
EXTENSION = {
    "\f": 0x0A,
    "^": 0x14,
    "{": 0x28,
    "}": 0x29,
    "\\": 0x2F,
    "[": 0x3C,
    "~": 0x3D,
    "]": 0x3E,
    "|": 0x40,
    "€": 0x65,
}

#: What the default alphabet has instead of typographic characters, which double the price of a text.
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a`\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2022", "-"),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u200a\u202f\t", " "),
        **dict.fromkeys("\u00ad\u200b\u2060\ufeff", ""),
        "\u2026": "...",
    }
)

_CODES = {char: code for code, char in enumerate(ALPHABET) if code != ESCAPE}
_EXTENDED = {code: char for char, code in EXTENSION.items()}

#: Bits of a short message's user data: 140 bytes.
USER_DATA_BITS = 140 * 8

#: Parts that a concatenated message may have (TS 23.040, section 9.2.3.24.1).
MOST_PARTS = 255

Alphabet = Literal["gsm", "ucs2"]

#: Bits of a reference that the parts of a message share.
ReferenceBits = Literal[8, 16]


@dataclass(frozen=True, slots=True)
class Split:
    """A text as parts, each encoded: one byte per septet for `gsm`, UTF-16 for `ucs2`."""

    alphabet: Alphabet
    parts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Which part of which message it is."""

    reference: int
    total: int
    number: int


def is_gsm(text: str) -> bool:
    """Whether the default alphabet and its extension have every character of the text."""
    return all(char in _CODES or char in EXTENSION for char in text)


def plain(text: str) -> str:
    """The text with plain punctuation instead of typographic, if the default alphabet then has all of it."""
    if is_gsm(text):
        return text
    replaced = text.translate(_PLAIN)
    return replaced if is_gsm(replaced) else text


def longest(text: str, parts: int) -> int | None:
    """Characters of a text like this one that fit into so many parts; None if it needs UCS-2."""
    if not is_gsm(text):
        return None
    doubled = sum(char in EXTENSION for char in text)
    # With the larger reference; a character of two septets is not cut, so that it may waste one in each part.
    return parts * (_room(7, 16) - (doubled > 0)) - doubled


def split(text: str, reference_bits: ReferenceBits = 8, *, latin1: bool = False) -> Split:
    """The parts of a text, in the alphabet that needs fewer of them. None is cut within a character.

    With `latin1` the default alphabet is only used where ISO 8859-1 has the text too, for centres whose
    default alphabet that is.
    """
    if is_gsm(text) and (not latin1 or all(ord(char) < 256 for char in text)):
        single, of_many = _room(7, 0), _room(7, reference_bits)
        return Split("gsm", _packed([_gsm(char) for char in text], single, of_many))
    single, of_many = _room(8, 0), _room(8, reference_bits)
    units = [char.encode("utf-16-be", "surrogatepass") for char in text]
    return Split("ucs2", _packed(units, single, of_many))


def decode_gsm(data: bytes) -> str:
    """The text of one byte per septet; what the tables don't have is a replacement character."""
    found, codes = [], iter(data)
    for code in codes:
        if code == ESCAPE:
            # A receiver that does not know an extension shows the character of the default table.
            extended = next(codes, None)
            if extended is not None:
                found.append(_EXTENDED.get(extended) or _default(extended))
        else:
            found.append(_default(code))
    return "".join(found)


def unpacked(data: bytes) -> bytes:
    """One byte per septet, of septets that were packed into bytes (TS 23.038, section 6.1.2.1)."""
    bits = int.from_bytes(data, "little")
    septets = bytes((bits >> 7 * at) & 0x7F for at in range(len(data) * 8 // 7))
    # Seven bits that are left over are no character.
    return septets[:-1] if len(data) % 7 == 0 and septets.endswith(b"\0") else septets


def header(part: Concatenation, reference_bits: ReferenceBits) -> bytes:
    """The user data header of a part."""
    if reference_bits == 8:
        return bytes((5, 0, 3, part.reference & 0xFF, part.total, part.number))
    reference = (part.reference & 0xFFFF).to_bytes(2)
    return bytes((6, 8, 4, *reference, part.total, part.number))


def read_header(data: bytes) -> tuple[Concatenation | None, bytes]:
    """The concatenation in a user data header, and what follows the header. Raises `ValueError`."""
    if not data or len(data) <= data[0]:
        raise ValueError("the user data header is longer than the message")
    end = data[0] + 1
    found = None
    for element, value in _elements(data[1:end]):
        if element == 0 and len(value) == 3:
            found = Concatenation(value[0], value[1], value[2])
        elif element == 8 and len(value) == 4:
            found = Concatenation(int.from_bytes(value[:2]), value[2], value[3])
    if found is not None and not 1 <= found.number <= found.total:
        # Receivers ignore such a reference (TS 23.040, section 9.2.3.24.1).
        found = None
    return found, data[end:]


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        if len(data) < 2 or len(data) < 2 + data[1]:
            raise ValueError("an element of the user data header is cut off")
        yield data[0], data[2 : 2 + data[1]]
        data = data[2 + data[1] :]


def _room(bits: int, reference_bits: int) -> int:
    """Septets or bytes of text in a part; with a header they begin after it, on a septet's border."""
    header_bytes = {0: 0, 8: 6, 16: 7}[reference_bits]
    return (USER_DATA_BITS - header_bytes * 8) // bits


def _packed(units: list[bytes], single: int, of_many: int) -> tuple[bytes, ...]:
    if sum(map(len, units)) <= single:
        return (b"".join(units),)
    parts, current = [], bytearray()
    for unit in units:
        if len(current) + len(unit) > of_many:
            parts.append(bytes(current))
            current.clear()
        current += unit
    return (*parts, bytes(current))


def _gsm(char: str) -> bytes:
    code = _CODES.get(char)
    return bytes((ESCAPE, EXTENSION[char])) if code is None else bytes((code,))


def _default(code: int) -> str:
    return ALPHABET[code] if code < len(ALPHABET) and code != ESCAPE else "\ufffd"
