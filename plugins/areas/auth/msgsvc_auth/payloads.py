"""Start payloads of links to a bot.

A session's token and a link's slug share the prefix that decision 0075 gives static links. A slug has no
`_`, so `auth_s_<token>` is never one.
"""

import re
from dataclasses import dataclass

PREFIX = "auth_"

_SESSION = re.compile(rf"{PREFIX}s_([0-9A-Za-z]{{22}})")
_LINK = re.compile(rf"{PREFIX}([a-z0-9-]{{3,48}})")


@dataclass(frozen=True, slots=True)
class StartPayload:
    """The start payload of a session, by its token, or of a static link, by its slug."""

    token: str | None = None
    slug: str | None = None


def session_payload(token: str) -> str:
    return f"{PREFIX}s_{token}"


def link_payload(slug: str) -> str:
    """The payload of a static link (decision 0075)."""
    return PREFIX + slug


def read_payload(payload: str) -> StartPayload | None:
    """None for any other payload."""
    if match := _SESSION.fullmatch(payload):
        return StartPayload(token=match[1])
    if match := _LINK.fullmatch(payload):
        return StartPayload(slug=match[1])
    return None
