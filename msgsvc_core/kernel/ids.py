"""Public ids: a type prefix and the base62 of a UUIDv7, so that ids sort by creation time.

Ids are not secrets: their random part comes from a fast generator, reseeded in each process. Use
`new_token` or `new_secret_id` for anything that must not be guessable.
"""

import math
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

#: All pairs of digits: encoding takes half the steps, and several ids are made per request.
_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]
_PAIR, _FOUR, _EIGHT = 62**2, 62**4, 62**8

#: Base62 characters of 128 bits.
ID_WIDTH = 22


class _Stamps:
    """Strictly increasing timestamps: milliseconds and a 12-bit fraction (RFC 9562, section 6.2, method
    3)."""

    def __init__(self) -> None:
        self._time_ns: Callable[[], int] = time.time_ns
        self._lock = threading.Lock()
        self._last = 0

    def set_time(self, time_ns: Callable[[], int]) -> None:
        """The next stamp is of that time, even if it is before the last one."""
        with self._lock:
            self._time_ns = time_ns
            self._last = 0

    def next(self) -> int:
        nanoseconds = self._time_ns()
        stamp = (nanoseconds // 1_000_000 << 12) | (nanoseconds % 1_000_000 * 4096 // 1_000_000)
        with self._lock:
            if stamp <= self._last:
                stamp = self._last + 1
            self._last = stamp
        return stamp


_stamps = _Stamps()


@contextmanager
def stamped_by(time_ns: Callable[[], int]) -> Iterator[None]:
    """Within the block all ids of this process are of that time, in Unix nanoseconds: for programs that
    simulate other times than the machine's."""
    _stamps.set_time(time_ns)
    try:
        yield
    finally:
        _stamps.set_time(time.time_ns)


def encode_base62(data: bytes, width: int) -> str:
    """`data` as a big-endian number in base62, left-padded with `0` to `width` characters.

    The alphabet is in ASCII order and the width is fixed, so the text sorts as the bytes do.
    """
    return _encode(int.from_bytes(data, "big"), width)


def _encode(number: int, width: int) -> str:
    pairs = []
    while number:
        number, pair = divmod(number, 62 * 62)
        pairs.append(_PAIRS[pair])
    pairs.reverse()
    return "".join(pairs).lstrip("0").rjust(width, "0")


def _encode_id(number: int) -> str:
    """`_encode` to `ID_WIDTH` characters in two thirds of its time: two divisions are of large integers."""
    high, low = divmod(number, _EIGHT)
    high, middle = divmod(high, _EIGHT)
    a, b = divmod(high, _FOUR)
    c, d = divmod(middle, _FOUR)
    e, f = divmod(low, _FOUR)
    return (
        f"{_PAIRS[a]}{_PAIRS[b // _PAIR]}{_PAIRS[b % _PAIR]}"
        f"{_PAIRS[c // _PAIR]}{_PAIRS[c % _PAIR]}{_PAIRS[d // _PAIR]}{_PAIRS[d % _PAIR]}"
        f"{_PAIRS[e // _PAIR]}{_PAIRS[e % _PAIR]}{_PAIRS[f // _PAIR]}{_PAIRS[f % _PAIR]}"
    )


def uuid7() -> int:
    """128 bits of a UUIDv7 that increases with every call in this process."""
    stamp = _stamps.next()
    low = 0b10 << 62 | random.getrandbits(62)
    return (stamp >> 12 << 16 | 0x7000 | stamp & 0xFFF) << 64 | low


def new_id(prefix: str) -> str:
    """A new public id, e.g. `new_id("sub")` gives `sub_02Yz...` with 22 characters after the prefix."""
    return f"{prefix}_{_encode_id(uuid7())}"


def earliest_id(prefix: str, ms: int) -> str:
    """The least id that `new_id` could have made at a time in Unix milliseconds: all made from then on follow
    it. It is none itself."""
    return f"{prefix}_{_encode_id((ms << 16 | 0x7000) << 64)}"


def creation_ms(text: str) -> int:
    """When an id of `new_id` was made, in Unix milliseconds. Raises ValueError for another text."""
    head, _, tail = text.rpartition("_")
    if not is_id(text, head):
        raise ValueError(f"{text!r} is not an id")
    number = 0
    for digit in tail:
        number = number * 62 + ALPHABET.index(digit)
    return number >> 80


def is_id(text: str, prefix: str) -> bool:
    """Whether a text has the form of an id of `new_id(prefix)`."""
    head, _, tail = text.rpartition("_")
    return head == prefix and len(tail) == ID_WIDTH and tail.isascii() and tail.isalnum()


def new_secret_id(prefix: str) -> str:
    """An id that is also hard to guess: the time-ordered part, then 128 random bits."""
    return new_id(prefix) + encode_base62(secrets.token_bytes(16), ID_WIDTH)


def new_token(bits: int = 128) -> str:
    """Random base62 text of at least `bits` bits, for links and codes."""
    size = (bits + 7) // 8
    return encode_base62(secrets.token_bytes(size), math.ceil(size * 8 / math.log2(62)))
