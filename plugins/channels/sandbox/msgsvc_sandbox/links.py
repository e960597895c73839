"""Start links: how they are written, and how a pasted one is read."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from msgsvc_sandbox.models import START_PAYLOAD

_OPEN_PATH = re.compile(r"/sandbox/open/([A-Za-z0-9_.-]+)/?$")


@dataclass(frozen=True)
class StartLink:
    """The bot of a start link, and the payload that it gets when the person presses Start."""

    channel: str
    payload: str


def start_link(base_url: str, channel: str, payload: str) -> str:
    """The address that opens `channel` with `payload`, as a QR code carries it."""
    link = f"{base_url.rstrip('/')}/sandbox/open/{quote(channel, safe='')}"
    return f"{link}?{urlencode({'start': payload})}" if payload else link


def valid_payload(payload: str) -> bool:
    """Whether a messenger would accept this payload: at most 64 of A-Z a-z 0-9 _ and -."""
    return re.fullmatch(START_PAYLOAD, payload) is not None


def read_start_link(link: str) -> StartLink | None:
    """What a pasted or scanned address asks for; `None` when it is no start link.

    The host is not compared: one service is often reached as localhost, by its address and
    through a proxy, and the link must work from each of them.
    """
    try:
        parts = urlsplit(link.strip())
        query = parse_qs(parts.query, max_num_fields=20)
    except ValueError:
        return None
    match = _OPEN_PATH.search(parts.path)
    if match is None:
        return None
    payload = query.get("start", [""])[0]
    return StartLink(match[1], payload) if valid_payload(payload) else None
