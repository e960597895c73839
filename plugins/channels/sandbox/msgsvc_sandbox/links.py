"""Start links: building them, and parsing a pasted one."""

import re
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from msgsvc_sandbox.models import START_PAYLOAD

_OPEN_PATH = re.compile(r"/sandbox/open/([A-Za-z0-9_.-]+)/?$")


@dataclass(frozen=True)
class StartLink:
    """The bot of a start link, and its payload."""

    channel: str
    payload: str


def start_link(base_url: str, channel: str, payload: str) -> str:
    """The URL that opens `channel` with `payload`, also in QR codes."""
    link = f"{base_url.rstrip('/')}/sandbox/open/{quote(channel, safe='')}"
    return f"{link}?{urlencode({'start': payload})}" if payload else link


def valid_payload(payload: str) -> bool:
    """Whether a messenger would accept this payload: at most 64 of A-Z a-z 0-9 _ and -."""
    return re.fullmatch(START_PAYLOAD, payload) is not None


def read_start_link(link: str) -> StartLink | None:
    """Parses a pasted or scanned URL; `None` if it is not a start link.

    The host is not compared: one service is often reached as localhost, by its address and through a proxy,
    and the link must work for each of them.
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
