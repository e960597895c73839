"""Headers of attempts, as the journal keeps them: few, short, and without what signs anybody in."""

import json
from collections.abc import Iterable

from msgsvc_core.kernel.json import to_json
from msgsvc_core.kernel.storable_text import storable
from msgsvc_webhooks.models import HeaderPairs

#: Bytes of the names and values that are kept of one message (decision 0006): a request of ours has about
#: 700, with two secrets 850.
KEPT_HEADER_BYTES = 2048

#: Characters of a value that are kept.
KEPT_VALUE_LENGTH = 512

#: Headers of a response whose values are sessions of the receiver; the journal has their names alone.
WITHHELD = frozenset({"set-cookie", "set-cookie2", "authorization", "proxy-authorization"})


def kept(headers: Iterable[tuple[str, str]]) -> HeaderPairs:
    """What is kept of headers, in their order: as many as fit."""
    found: list[tuple[str, str]] = []
    left = KEPT_HEADER_BYTES
    for name, value in headers:
        shown = "…" if name.lower() in WITHHELD else _shortened(value)
        left -= len(name.encode()) + len(shown.encode())
        if left < 0:
            break
        found.append((name, shown))
    return tuple(found)


def dumped(headers: HeaderPairs) -> str | None:
    """For the database; None without any."""
    return to_json(headers) if headers else None


def loaded(column: str | None) -> HeaderPairs:
    return tuple((name, value) for name, value in json.loads(column or "[]"))


def _shortened(value: str) -> str:
    plain = storable(value)
    return plain if len(plain) <= KEPT_VALUE_LENGTH else f"{plain[:KEPT_VALUE_LENGTH]}…"
