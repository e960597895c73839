"""Time-based one-time passwords (RFC 6238): SHA-1, 30 seconds, 6 digits, as supported by all apps."""

import base64
import hmac
import secrets
from urllib.parse import quote, urlencode

#: Seconds for which a code is shown, and its digits (RFC 6238, section 4).
STEP_S, DIGITS = 30, 6

#: Steps before and after the present one whose code is taken: clocks differ, and people are slow.
SLACK = 1

#: Bytes of a secret: the output of SHA-1 (RFC 4226, section 4).
SECRET_BYTES = 20


def new_secret() -> str:
    """In base32, for typing it without a camera."""
    return base64.b32encode(secrets.token_bytes(SECRET_BYTES)).decode()


def code_at(secret: str, step: int, digits: int = DIGITS) -> str:
    """The code of the step that started `step` * 30 seconds after 1970."""
    digest = hmac.digest(base64.b32decode(secret), step.to_bytes(8, "big"), "sha1")
    offset = digest[-1] & 0xF
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return str(number % 10**digits).rjust(digits, "0")


def step_of(secret: str, code: str, now_ms: int) -> int | None:
    """The currently valid step of a code; None for a wrong one."""
    given = "".join(code.split())
    if not (len(given) == DIGITS and given.isascii() and given.isdigit()):
        return None
    now = now_ms // 1000 // STEP_S
    found = None
    for step in range(now - SLACK, now + SLACK + 1):
        if hmac.compare_digest(code_at(secret, step), given):
            found = step
    return found


def enrolment_link(secret: str, email: str, issuer: str) -> str:
    """The URL for the QR code that apps scan."""
    label = quote(f"{issuer}:{email}")
    query = urlencode({"secret": secret, "issuer": issuer, "digits": DIGITS, "period": STEP_S})
    return f"otpauth://totp/{label}?{query}"
