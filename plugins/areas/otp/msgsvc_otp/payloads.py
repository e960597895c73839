"""Start payloads of code requests."""

import re

PREFIX = "otp_"

_REQUEST = re.compile(rf"{PREFIX}([0-9A-Za-z]{{22}})")


def request_payload(token: str) -> str:
    return PREFIX + token


def read_payload(payload: str) -> str | None:
    """The token; None for any other payload."""
    match = _REQUEST.fullmatch(payload)
    return match[1] if match else None
